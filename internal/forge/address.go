package forge

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// address is where a repository is on its Git host.
type address struct {
	forge Forge
	// api is the root of the API as the forge's SDK takes it, with a slash at
	// its end.
	api *url.URL
	// owner is the account, on GitLab the groups with slashes between them, or on
	// Azure Repos the project.
	owner, name string
	// Of Azure Repos alone: where people are looked up, and the repository's page.
	people *url.URL
	web    string
}

// famous are the Git hosts whose kind follows from their name.
var famous = map[string]Forge{
	"github.com":   GitHub,
	"gitlab.com":   GitLab,
	"gitea.com":    Gitea,
	"codeberg.org": Forgejo,
	// Azure DevOps Services; KindOf knows its older names.
	"dev.azure.com": Azure,
}

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
	at := address{forge: r.Forge}
	if at.forge == "" {
		at.forge = KindOf(clone.Hostname())
	}
	switch at.forge {
	case Gitea, Forgejo, GitHub, GitLab, Azure:
	case "":
		return address{}, fmt.Errorf("the kind of the Git host %q is not known; set forge to gitea, forgejo, github, gitlab or azure", clone.Hostname())
	default:
		return address{}, fmt.Errorf("forge %q is none of gitea, forgejo, github, gitlab and azure", at.forge)
	}
	if r.APIURL != "" {
		if at.api, err = parseURL("api_url", r.APIURL); err != nil {
			return address{}, err
		}
	}
	if at.forge == Azure {
		return locateAzure(clone, at.api)
	}
	path := strings.TrimSuffix(strings.Trim(clone.Path, "/"), ".git")
	if at.forge == GitLab && at.api != nil {
		// GitLab may be installed below a path; then only the API's URL shows which
		// segments are groups.
		prefix := strings.Trim(strings.TrimSuffix(strings.TrimRight(at.api.Path, "/"), "/api/v4"), "/")
		if prefix != "" {
			path = strings.TrimPrefix(path, prefix+"/")
		}
	}
	segments := strings.Split(path, "/")
	below := ""
	if (at.forge == Gitea || at.forge == Forgejo) && len(segments) > 2 {
		below = strings.Join(segments[:len(segments)-2], "/") + "/"
		segments = segments[len(segments)-2:]
	}
	for _, segment := range segments {
		if !segmentPattern.MatchString(segment) {
			return address{}, fmt.Errorf("the URL's path %q does not name a repository", clone.Path)
		}
	}
	if len(segments) < 2 || at.forge == GitHub && len(segments) != 2 {
		return address{}, fmt.Errorf("the URL's path %q is not that of a repository: owner/name", clone.Path)
	}
	at.owner, at.name = strings.Join(segments[:len(segments)-1], "/"), segments[len(segments)-1]
	if at.api == nil {
		at.api = &url.URL{Scheme: clone.Scheme, Host: clone.Host, Path: "/" + below}
		if at.forge == GitHub && KindOf(clone.Hostname()) == GitHub {
			at.api.Host = "api." + clone.Host
		}
	}
	at.api.Path = apiPath(at.forge, at.api)
	return at, nil
}

// apiPath is the path of the API's root, whether or not it was given in full.
func apiPath(forge Forge, api *url.URL) string {
	path := strings.TrimRight(api.Path, "/") + "/"
	switch forge {
	case GitHub:
		if !strings.HasSuffix(path, "/api/v3/") && !strings.HasPrefix(api.Host, "api.") {
			path += "api/v3/"
		}
	case GitLab:
		if !strings.HasSuffix(path, "/api/v4/") {
			path += "api/v4/"
		}
	default:
		path = strings.TrimSuffix(path, "api/v1/") // the SDK adds it
	}
	return path
}

// KindOf is the kind of the Git host with this name; "" where it does not follow from the name.
func KindOf(host string) Forge {
	host = strings.ToLower(host)
	switch {
	case strings.HasSuffix(host, ".ghe.com"):
		return GitHub
	case strings.HasSuffix(host, ".visualstudio.com"):
		return Azure
	}
	return famous[host]
}

// parseURL parses a URL; name is the user's name for it, for errors.
func parseURL(name, raw string) (*url.URL, error) {
	parsed, err := url.Parse(raw)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the %s cannot be parsed as the http or https URL of a Git host", name)
	case parsed.Scheme != "http" && parsed.Scheme != "https":
		return nil, fmt.Errorf("pull requests and commit statuses need an http or https URL of a Git host, and the scheme of the %s is %q", name, parsed.Scheme)
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
func origin(u *url.URL) string {
	return u.Scheme + "://" + strings.ToLower(u.Host)
}
