package forge

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

type address struct {
	kind  GitHostKind
	clone *url.URL // as configured
	// api is the root of the API, as its client needs it, with a final slash.
	api *url.URL
	// owner is the account: on GitLab groups with slashes, on Azure Repos the project.
	owner, name string
	// people looks up people, web is the repository's page, on Azure Repos.
	people *url.URL
	web    string
}

func (a address) path() string {
	path := ""
	for _, segment := range a.kind.repository(a) {
		path += "/" + url.PathEscape(segment)
	}
	return path
}

func (a address) resource(segments ...string) *url.URL {
	return joinSegments(a.api, append(a.kind.repository(a), segments...)...)
}

// ErrNoKind means that the kind of Git host must be configured.
var ErrNoKind = errors.New("kind of Git host not known")

// segmentPattern matches names that Git hosts allow. Not every SDK escapes them.
var segmentPattern = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]*$|^\.[A-Za-z0-9_-][A-Za-z0-9._-]*$`)

// locate does not repeat invalid URLs, which may contain secrets.
func locate(r HostedRepository) (address, error) {
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

func apiRoot(clone, api *url.URL) *url.URL {
	if api != nil {
		return api
	}
	return &url.URL{Scheme: clone.Scheme, Host: clone.Host, Path: "/"}
}

func appendPath(root *url.URL, path string) *url.URL {
	at := *root
	at.Path = strings.TrimSuffix(strings.TrimRight(at.Path, "/"), path) + path + "/"
	return &at
}

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
