package forge

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/access"
)

// address is where a repository is on its Git host.
type address struct {
	kind  Kind
	clone *url.URL // of the repository, as it was given
	// api is the root of the API as what calls it takes it, with a slash at its end.
	api *url.URL
	// owner is the account, on GitLab the groups with slashes between them, or on
	// Azure Repos the project.
	owner, name string
	// Of Azure Repos alone: where people are looked up, and the repository's page.
	people *url.URL
	web    string
}

// path is that of the repository below the root of the API.
func (a address) path() string {
	path := ""
	for _, segment := range a.kind.repository(a) {
		path += "/" + url.PathEscape(segment)
	}
	return path
}

// resource is the URL of something of the repository.
func (a address) resource(segments ...string) *url.URL {
	return joined(a.api, append(a.kind.repository(a), segments...)...)
}

// ErrNoKind is the error of a Git host whose kind follows neither from settings nor from its name.
var ErrNoKind = errors.New("kind of Git host not known")

// segmentPattern is what the Git hosts allow in names of accounts, groups and
// repositories. Not every SDK escapes them.
var segmentPattern = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]*$|^\.[A-Za-z0-9_-][A-Za-z0-9._-]*$`)

// locate reads the repository's URL. Its errors never repeat a URL that could
// not be parsed, which may hold a secret.
func locate(r Repository) (address, error) {
	clone, err := parseURL("url", r.URL)
	if err != nil {
		return address{}, err
	}
	name := r.Forge
	if name == "" {
		name = KindOf(clone.Hostname())
	}
	kind := name.Kind()
	switch {
	case name == "":
		return address{}, failf(ErrNoKind, "the kind of the Git host %q is not known; set forge to %s", clone.Hostname(), Listed(""))
	case kind.Forge == "":
		return address{}, fmt.Errorf("set forge to %s, not %q", Listed(""), name)
	}
	var api *url.URL
	if r.APIURL != "" {
		if api, err = parseURL("api_url", r.APIURL); err != nil {
			return address{}, err
		}
	}
	at, err := kind.locate(clone, api)
	at.kind, at.clone = kind, clone
	return at, err
}

// rootOf is the root of the API: as it was given, else of the server of the repository's URL.
func rootOf(clone, api *url.URL) *url.URL {
	if api != nil {
		return api
	}
	return &url.URL{Scheme: clone.Scheme, Host: clone.Host, Path: "/"}
}

// below is the URL with a path at its end, whether or not that was given.
func below(root *url.URL, path string) *url.URL {
	at := *root
	at.Path = strings.TrimSuffix(strings.TrimRight(at.Path, "/"), path) + path + "/"
	return &at
}

// ownerAndName reads a path of at least two segments: the name is the last one.
func ownerAndName(clone *url.URL, path string) (owner []string, name string, err error) {
	segments := strings.Split(strings.TrimSuffix(strings.Trim(path, "/"), ".git"), "/")
	for _, segment := range segments {
		if !segmentPattern.MatchString(segment) {
			return nil, "", fmt.Errorf("the URL's path %q does not name a repository", clone.Path)
		}
	}
	last := len(segments) - 1
	if last == 0 {
		return nil, "", notARepository(clone)
	}
	return segments[:last], segments[last], nil
}

func notARepository(clone *url.URL) error {
	return fmt.Errorf("the URL's path %q is not that of a repository: owner/name", clone.Path)
}

// parseURL parses a URL; name is the user's name for it, for errors.
func parseURL(name, raw string) (*url.URL, error) {
	parsed, err := url.Parse(raw)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the %s cannot be parsed as the http or https URL of a Git host, such as https://git.example.com/team/app", name)
	case parsed.Scheme == "":
		return nil, fmt.Errorf(
			"pull requests and commit statuses need an http or https URL of a Git host, and the %s has no scheme: begin it with https://",
			name,
		)
	case parsed.Scheme != "http" && parsed.Scheme != "https":
		return nil, fmt.Errorf(
			"pull requests and commit statuses need an http or https URL of a Git host, and the scheme of the %s is %q",
			name,
			parsed.Scheme,
		)
	case parsed.User != nil || strings.Contains(parsed.Host, "@"):
		return nil, fmt.Errorf("the %s has credentials in it; remove them, and give them to the provider's git attribute", name)
	case parsed.Hostname() == "":
		return nil, fmt.Errorf("the %s has no server name", name)
	case parsed.RawQuery != "" || parsed.ForceQuery || parsed.Fragment != "":
		return nil, fmt.Errorf("the %s has a query or a fragment; remove it", name)
	}
	for segment := range strings.SplitSeq(parsed.Path, "/") {
		if segment == "." || segment == ".." {
			return nil, errors.New("the " + name + ` has a path segment "." or ".."`)
		}
	}
	return &url.URL{Scheme: parsed.Scheme, Host: parsed.Host, Path: parsed.Path}, nil
}

// origin is what credentials are bound to.
func origin(u *url.URL) string { return access.OriginOf(u) }
