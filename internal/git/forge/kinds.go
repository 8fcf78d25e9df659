package forge

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/secret"
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
	if web := cmp.Or(kind, KindOf(parsed.Hostname())).Kind().web; web != nil {
		return web(parsed)
	}
	return "https://" + parsed.Hostname() + strings.TrimSuffix(parsed.Path, ".git")
}

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
	name := cmp.Or(r.Forge, KindOf(clone.Hostname()))
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

// anyTokenUser is GitHub's for Apps. GitHub, GitLab, Gitea, Forgejo and Azure Repos accept a token with any username.
const anyTokenUser = "x-access-token"

// GitLogin returns the credentials for Git over https. If bearer is true, the password is a bearer token.
func GitLogin(server string, c Credentials) (username, password string, bearer bool) {
	username, password = c.Username, c.asToken()
	switch {
	case KindOf(server).Kind().bearerJWT && secret.IsJWT(password):
		return "", password, true
	case username != "" || c.Token != "":
		username = TokenUser(server, username, anyTokenUser)
	}
	return username, password, false
}

// SignGit adds the credentials for Git to a request.
func (c Credentials) SignGit(request *http.Request) {
	username, password, bearer := GitLogin(request.URL.Hostname(), c)
	switch {
	case bearer:
		request.Header.Set("Authorization", "Bearer "+password)
	case username != "" || password != "":
		request.SetBasicAuth(username, password)
	}
}

// TokenUser returns the username beside a token: the server's, the given one or fallback.
func TokenUser(server, given, fallback string) string {
	kind := KindOf(server).Kind()
	if given == "" {
		return cmp.Or(kind.tokenUser, fallback)
	}
	if kind.mailUser != "" && strings.Contains(given, "@") {
		return kind.mailUser
	}
	return given
}

// TokenUsers returns all usernames beside tokens, which answers may encode.
func TokenUsers() []string {
	users := []string{anyTokenUser}
	for _, kind := range Kinds() {
		users = append(users, kind.tokenUser, kind.mailUser)
	}
	return slices.DeleteFunc(users, func(user string) bool { return user == "" })
}

// asBearer works on GitLab for personal, project, group and OAuth tokens.
func (c Credentials) asBearer(request *http.Request) {
	if token := c.asToken(); token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
}

func (c Credentials) asTokenOrBasic(request *http.Request, scheme string) {
	switch {
	case c.Token != "":
		request.Header.Set("Authorization", scheme+" "+c.Token)
	case c.Username != "":
		request.SetBasicAuth(c.Username, c.Password)
	}
}

func (c Credentials) asToken() string { return cmp.Or(c.Token, c.Password) }
