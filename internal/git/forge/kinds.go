package forge

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// GitHostKind describes a kind of Git host: its capabilities, limits, names and API. It is the only place that
// distinguishes one kind from another.
type GitHostKind struct {
	Forge Forge  // the name in settings
	Title string // the name in texts
	// Servers are the names of its public servers: "github.com", or "*.ghe.com" for every name with that suffix.
	Servers []string
	// Flux is the type of Provider with which Flux' notification controller sets commit statuses.
	Flux string
	// FluxLogin reports whether that Provider takes username:password instead of a token.
	FluxLogin bool
	// GitHubApps reports whether agents can authenticate as a GitHub App.
	GitHubApps bool

	// Labels reports whether pull requests can have labels.
	Labels bool
	// AutoMerge reports whether the API can turn on auto-merge.
	AutoMerge bool
	// Reviewers describes the accepted names of reviewers, such as "a username".
	Reviewers string
	// isReviewer reports whether a name has that form.
	isReviewer func(string) bool
	// MaxBody is the maximum length in bytes of the body of a pull request, without the owner's mark.
	MaxBody int
	// Creator describes the name of the account that set a status; "" if the Git host does not report it.
	Creator string

	// tokenUser is the username that Git sends over https beside a token if none is given. Default: x-access-token.
	tokenUser string
	// mailUser replaces an email address as the username. Default: the address itself.
	mailUser string
	// bearerJWT makes Git send a JSON Web Token as a bearer token.
	bearerJWT bool

	// locate parses the URLs of a repository and of the API. The latter may be nil.
	locate func(clone, api *url.URL) (address, error)
	// connect returns the API of a repository.
	connect func(session) (api, error)
	// web returns the https URL of a repository with an ssh URL. Default: without scheme, user and port.
	web func(ssh *url.URL) string
	// hook returns the request that sets a status.
	hook     func(at address, r StatusReport) Hook
	statuses statusRules
	// repository returns the path segments of a repository below the root of the API.
	repository func(at address) []string
	// commits and pulls are the paths of commits and pull requests below that. Kinds with an SDK need no pulls.
	commits, pulls string
	// query is added to every request.
	query url.Values
	// sign adds the credentials, and headers that every request needs.
	sign func(Credentials, *http.Request)
	// reason reads fields of an error response that only this kind has: more text, and the kind of the error. It may be
	// nil.
	reason func(body []byte) (more []string, kindWord string)
}

// Kinds returns all kinds of Git hosts, in the order in which texts list them.
func Kinds() []GitHostKind {
	return []GitHostKind{giteaKind(), forgejoKind(), githubKind(), gitlabKind(), azureKind(), bitbucketKind(), bitbucketDataCenterKind()}
}

// Names returns the names of all kinds in settings.
func Names() []string {
	var names []string
	for _, kind := range Kinds() {
		names = append(names, string(kind.Forge))
	}
	return names
}

// Listed returns the names for a sentence, each with a mark around it: `gitea`, `github` or `gitlab`.
func Listed(mark string) string { return wording.Either(Names(), mark) }

// ReviewersText lists the accepted names of reviewers for each kind of Git host.
func ReviewersText() string {
	var forms []string
	titles := map[string][]string{}
	for _, kind := range Kinds() {
		if titles[kind.Reviewers] == nil {
			forms = append(forms, kind.Reviewers)
		}
		titles[kind.Reviewers] = append(titles[kind.Reviewers], kind.Title)
	}
	for i, form := range forms {
		forms[i] = form + " on " + strings.Join(titles[form], ", ")
	}
	return strings.Join(forms, "; ")
}

// TitlesWithout lists the kinds of Git hosts that lack a capability.
func TitlesWithout(has func(GitHostKind) bool) string {
	var titles []string
	for _, kind := range Kinds() {
		if !has(kind) {
			titles = append(titles, kind.Title)
		}
	}
	return strings.Join(titles, ", ")
}

// CreatorsText lists the kinds of Git hosts that report who set a commit status, and those that do not.
func CreatorsText() string {
	var reported, silent []string
	for _, kind := range Kinds() {
		if kind.Creator == "" {
			silent = append(silent, kind.Title)
		} else {
			reported = append(reported, kind.Title+" ("+kind.Creator+")")
		}
	}
	return "These Git hosts report who set a status: " + strings.Join(reported, ", ") +
		". These do not: " + strings.Join(silent, ", ") + "."
}

// Kind returns the kind with this name, or the zero GitHostKind if there is none.
func (f Forge) Kind() GitHostKind {
	for _, kind := range Kinds() {
		if kind.Forge == f {
			return kind
		}
	}
	return GitHostKind{}
}

// KindOf returns the kind of a public server, or "" if its name does not determine the kind.
func KindOf(server string) Forge {
	for _, kind := range Kinds() {
		if kind.serves(server) {
			return kind.Forge
		}
	}
	return ""
}

func (k GitHostKind) serves(server string) bool {
	server = strings.TrimSuffix(strings.ToLower(server), ".")
	return slices.ContainsFunc(k.Servers, func(name string) bool {
		suffix, isSuffix := strings.CutPrefix(name, "*")
		return server == name || isSuffix && strings.HasSuffix(server, suffix)
	})
}

// WebURL returns the https URL of a repository. The address may be an ssh URL.
func WebURL(kind Forge, address string) string {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Scheme != "ssh" {
		return strings.TrimSuffix(address, ".git")
	}
	if kind == "" {
		kind = KindOf(parsed.Hostname())
	}
	if web := kind.Kind().web; web != nil {
		return web(parsed)
	}
	return "https://" + parsed.Hostname() + strings.TrimSuffix(parsed.Path, ".git")
}
