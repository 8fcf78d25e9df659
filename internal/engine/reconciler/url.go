package reconciler

import "strings"

// WithScheme adds the scheme to Git's short form for SSH: user@host:path becomes ssh://user@host/path, because Flux
// and Zarf require a scheme. It returns other URLs and paths unchanged. See
// https://git-scm.com/docs/git-clone#_git_urls.
func WithScheme(repository string) string {
	if strings.Contains(repository, "://") {
		return repository
	}
	host, path, isShort := strings.Cut(repository, ":")
	if !isShort || len(host) < 2 || strings.ContainsAny(host, `/\`) { // a path, or a Windows drive
		return repository
	}
	return "ssh://" + host + "/" + strings.TrimPrefix(path, "/")
}
