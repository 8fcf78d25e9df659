package reconciler

import "strings"

// WithScheme returns the URL of a Git repository with its scheme: Git's short form for ssh, user@host:path, becomes
// ssh://user@host/path. Flux and Zarf take only URLs with a scheme. Every other URL and path stays as it is.
// See https://git-scm.com/docs/git-clone#_git_urls.
func WithScheme(repository string) string {
	if strings.Contains(repository, "://") {
		return repository
	}
	host, path, isShort := strings.Cut(repository, ":")
	if !isShort || len(host) < 2 || strings.ContainsAny(host, `/\`) { // a path, or a drive of Windows
		return repository
	}
	return "ssh://" + host + "/" + strings.TrimPrefix(path, "/")
}
