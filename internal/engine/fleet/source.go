package fleet

import (
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/access"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// Messages never repeat a URL: it may contain a secret.

// Git's form "user@host:path" has no scheme.
var repoSchemes = map[string][]string{
	"git":  {"https", "http", "ssh"},
	"helm": {"https", "http", "oci"},
	"oci":  {"oci"},
}

func checkManifestsRepo(storage, repo, chart string) string {
	if strings.ContainsFunc(repo, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "holds a control character"
	}
	scheme, rest, hasScheme := strings.Cut(repo, "://")
	scheme = strings.ToLower(scheme)
	if storage == "oci" && (!hasScheme || scheme != "oci") {
		return `must start with "oci://" with storage "oci"`
	}
	authority, path, _ := strings.Cut(rest, "/")
	if !hasScheme {
		path = repo
	}
	userinfo, _, hasUser := strings.Cut(authority, "@")
	if hasScheme && hasUser && (strings.Contains(userinfo, ":") || strings.HasPrefix(scheme, "http")) {
		return "has credentials: manifests are written to the repository unencrypted, so remove them from the URL"
	}
	schemes, known := repoSchemes[storage]
	switch {
	case !known: // wrong or unknown
		return ""
	case strings.ContainsAny(path, wildcards) || strings.ContainsAny(authority, "*?{}"):
		return "has one of " + wildcards + ", which a project of Argo CD would read as more than this one URL"
	case strings.ContainsAny(repo, " \\"):
		return "has a space or a backslash, which a URL cannot have"
	case !hasScheme && storage == "git" && scpLike.MatchString(repo):
		return ""
	case !hasScheme && storage == "git":
		return `is not the URL of a Git repository, such as "https://git.example.com/team/app" or "git@git.example.com:team/app"`
	case !hasScheme:
		return `is not the URL of a chart repository, such as "https://charts.example.com" or "oci://registry.example.com/charts"`
	case !slices.Contains(schemes, scheme):
		return "must start with " + strings.Join(schemes, "://, ") + "://, with storage \"" + storage + "\""
	}
	if parsed, err := url.Parse(repo); err != nil || parsed.Hostname() == "" {
		return "is not a URL with a host"
	}
	if scheme == "oci" && chart != unknownText && (storage == "oci" || chart != "") {
		return checkRegistryRepo(storage, folder.Manifests{Repo: repo, Chart: chart})
	}
	return ""
}

func checkRegistryRepo(storage string, m folder.Manifests) string {
	_, err := artifact.ParseRepository(m)
	switch {
	case errors.Is(err, artifact.ErrTagInURL) && storage == "helm":
		return "has a tag: remove it from the URL, and set version"
	case errors.Is(err, artifact.ErrTagInURL):
		return "has a tag: remove it from the URL, and set tag or version"
	case errors.Is(err, artifact.ErrDigestInURL) && storage == "helm":
		return `has a digest: remove it from the URL, and set digest, with storage "oci"`
	case errors.Is(err, artifact.ErrDigestInURL):
		return "has a digest: remove it from the URL, and set digest"
	case err != nil:
		return `is not the URL of a repository of a registry, such as "oci://registry.example.com/team/app" in lower case`
	}
	return ""
}

func checkVersion(version string) string {
	if strings.HasPrefix(version, "sha256:") {
		return "is a digest: set digest in its place"
	}
	return ""
}

func checkDigest(digest string) string {
	if artifact.IsDigest(digest) {
		return ""
	}
	return `is not a digest: "sha256:" and 64 hexadecimal digits in lower case`
}

// https://git-scm.com/docs/git-clone#_git_urls
var scpLike = regexp.MustCompile(`^(?:[\w.+-]+@)?[\w.-]{2,}:[^:/][^:]*$|^(?:[\w.+-]+@)?[\w.-]{2,}:/[^/:][^:]*$`)

func checkRef(name string) string {
	switch {
	case strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune(`~^:?*[\`, r) }):
		return `has a space or one of ~^:?*[\, which Git does not allow in names`
	case strings.Contains(name, "..") || strings.Contains(name, "@{") || strings.Contains(name, "//"):
		return `has "..", "@{" or "//", which Git does not allow in names`
	case name == "@" || strings.HasPrefix(name, "-") || strings.HasPrefix(name, "/") || strings.HasSuffix(name, "/") ||
		strings.HasSuffix(name, "."):
		return `is "@", begins with "-" or "/", or ends with "/" or ".", which Git does not allow in names`
	case strings.HasPrefix(name, "refs/"):
		return `begins with "refs/heads/" or "refs/tags/": remove that`
	}
	for component := range strings.SplitSeq(name, "/") {
		if strings.HasPrefix(component, ".") || strings.HasSuffix(component, ".lock") {
			return `has a part that begins with "." or ends with ".lock", which Git does not allow in names`
		}
	}
	return ""
}

// checkTag has a check for each storage with tags.
var checkTag = map[string]func(string) string{
	"git": checkRef,
	"oci": func(tag string) string {
		if ociTag.MatchString(tag) {
			return ""
		}
		return `is not the tag of an image: letters, digits, "_", "." and "-", at most 128 characters`
	},
}

// ociTag follows https://github.com/opencontainers/distribution-spec/blob/main/spec.md#pulling-manifests
var ociTag = regexp.MustCompile(`^\w[\w.-]{0,127}$`)

func checkSourcePath(path string) string {
	switch {
	case strings.HasPrefix(path, "/"):
		return `must be relative to the root of the source, without a "/" at its beginning: "." is the root`
	case strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' }):
		return "holds a backslash or a control character"
	case strings.Contains(path, "://"):
		return "is a URL, but must be a path within the source"
	case slices.Contains(strings.Split(path, "/"), ".."):
		return `leads out of the source: it must not have ".."`
	}
	return ""
}

func checkSourcePrefix(prefix string) string {
	if at, err := access.Parse(prefix); err != nil || at.IsLocal() || strings.ContainsAny(prefix, "%"+wildcards) {
		return `is not the beginning of a URL with a host, such as "https://git.example.com/team", without credentials, "..", "%", "*" or a query`
	}
	return ""
}

// They have a meaning in an Argo CD project.
const wildcards = "*?{}[]"

func checkChart(chart string) string {
	switch {
	case strings.ContainsAny(chart, wildcards):
		return "has one of " + wildcards + ", which the name of a chart cannot have"
	case slices.Contains(strings.Split(chart, "/"), ".."):
		return `leads out of the repository: it must not have ".."`
	}
	return ""
}

// FindWarnings returns probable mistakes in a valid fleet.
func FindWarnings(f *Fleet) Findings {
	var warnings Findings
	for workload, target := range f.Targets() {
		m := &target.Manifests
		isChart := m.Storage == "helm" || m.Storage == "oci" && (m.Chart != "" || m.Type == "helm")
		if !target.ManifestsPending && isChart && m.Version == "" && m.Tag == "" && m.Digest == "" {
			warnings.Report(TargetPath(workload.Name, target.Name).Attribute("manifests").Attribute("version"),
				"the chart has no version: each new version is deployed at once and everywhere; set version")
		}
	}
	return warnings
}
