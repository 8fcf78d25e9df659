package forge

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// GitHostKind describes a kind of Git host. Nothing else distinguishes kinds.
type GitHostKind struct {
	Forge Forge  // in settings
	Title string // in texts
	// Servers are public: "github.com", or "*.ghe.com" for a suffix.
	Servers []string
	// Flux is the type of Provider for commit statuses of Flux' notification controller.
	Flux string
	// FluxLogin means that it takes username:password.
	FluxLogin bool
	// GitHubApps means that agents can authenticate as one.
	GitHubApps bool

	Labels    bool
	AutoMerge bool
	// Reviewers describes accepted names, such as "a username".
	Reviewers  string
	isReviewer func(string) bool
	// MaxBody is in bytes, without the mark.
	MaxBody int
	// Creator describes the account of a status; "" if not reported.
	Creator string

	// tokenUser is the username beside a token.
	tokenUser string
	// mailUser replaces an email address as the username.
	mailUser string
	// bearerJWT sends a JSON Web Token as a bearer token.
	bearerJWT bool

	// locate parses the URLs of a repository and the API, which may be nil.
	locate  func(clone, api *url.URL) (address, error)
	connect func(session) (api, error)
	// web returns the https URL for an ssh URL. Default: without user and port.
	web func(ssh *url.URL) string
	// hook returns the request that sets a status.
	hook     func(at address, r StatusReport) Hook
	statuses statusRules
	// repository returns the path below the root of the API.
	repository func(at address) []string
	// commits and pulls are below that. Kinds with an SDK need no pulls.
	commits, pulls string
	// query is added to every request.
	query url.Values
	// sign adds the credentials and required headers.
	sign func(Credentials, *http.Request)
	// reason reads more text, and the kind of an error. It may be nil.
	reason func(body []byte) (more []string, kindWord string)
}

// Kinds returns all kinds in the order of texts.
func Kinds() []GitHostKind {
	return []GitHostKind{giteaKind(), forgejoKind(), githubKind(), gitlabKind(), azureKind(), bitbucketKind(), bitbucketDataCenterKind()}
}

// Names returns all names in settings.
func Names() []string {
	var names []string
	for _, kind := range Kinds() {
		names = append(names, string(kind.Forge))
	}
	return names
}

// Listed returns `gitea`, `github` or `gitlab`.
func Listed(mark string) string { return wording.Either(Names(), mark) }

// ReviewersText lists accepted names by kind.
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

// TitlesWithout lists the kinds that lack a capability.
func TitlesWithout(has func(GitHostKind) bool) string {
	var titles []string
	for _, kind := range Kinds() {
		if !has(kind) {
			titles = append(titles, kind.Title)
		}
	}
	return strings.Join(titles, ", ")
}

// CreatorsText lists the kinds that report creators of statuses, and the others.
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

// Kind returns the kind, or the zero value.
func (f Forge) Kind() GitHostKind {
	for _, kind := range Kinds() {
		if kind.Forge == f {
			return kind
		}
	}
	return GitHostKind{}
}

// KindOf returns the kind of a public server, or "".
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

// WebURL returns the https URL, also for an ssh URL.
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
