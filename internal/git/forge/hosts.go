package forge

import (
	"cmp"
	"crypto/sha1"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/secret"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Kind is all that is known of a kind of Git host: what differs between them is asked here, and
// nowhere else is one compared with another.
type Kind struct {
	Forge Forge  // as settings name it
	Title string // as people name it
	// Servers are the names by which it is known: "github.com", or "*.ghe.com" for any name that ends so.
	Servers []string
	// Flux is the type of the Provider by which Flux' notification controller sets commit statuses.
	Flux string
	// FluxLogin says that it takes no token, but username:password in its place.
	FluxLogin bool
	// GitHubApps says that agents can sign in as a GitHub App.
	GitHubApps bool

	// What Git sends over https beside a token: the username where none is given, and the one in place of an
	// address of mail; "" for x-access-token, and for the address itself.
	tokenUser, mailUser string
	// Git sends a JSON Web Token as a bearer's.
	bearerJWT bool

	// Creator describes the name by which it reports who set a status; "" if it does not report that.
	Creator string

	bounds bounds
	// locate reads the URLs of a repository and, unless it is nil, of the API.
	locate func(clone, api *url.URL) (address, error)
	// connect makes what calls the API.
	connect func(session) (api, error)
	// web is the https URL of a repository with this ssh URL; nil where only the scheme, the user and the port go.
	web func(ssh *url.URL) string
	// hook is how a status is set.
	hook     func(at address, r Report) Hook
	statuses statusRules
	// repository is where the API has a repository, in segments below its root; commits is where it has commits below that,
	// pulls where it has pull requests, of kinds without an SDK, and query what every request needs.
	repository     func(at address) []string
	commits, pulls string
	query          url.Values
	// sign adds the credentials, and headers that every request has.
	sign func(Credentials, *http.Request)
	// reason adds to the text of an answer other than success what only this kind of Git host writes there, and
	// returns its name for the kind of the error; nil where there is none.
	reason func(body []byte) (more []string, kindWord string)
}

// Kinds are the kinds of Git hosts, in the order in which texts list them.
func Kinds() []Kind {
	return []Kind{giteaKind(), forgejoKind(), githubKind(), gitlabKind(), azureKind(), bitbucketKind(), bitbucketDataCenterKind()}
}

// Names are the kinds as settings name them.
func Names() []string {
	var names []string
	for _, kind := range Kinds() {
		names = append(names, string(kind.Forge))
	}
	return names
}

// Listed are the names in a sentence, each with a mark around it: `gitea`, `github` or `gitlab`.
func Listed(mark string) string { return wording.Either(Names(), mark) }

// CreatorsText says by which names Git hosts report who set a commit status, and which of them do not.
func CreatorsText() string {
	var reported, silent []string
	for _, kind := range Kinds() {
		if kind.Creator == "" {
			silent = append(silent, kind.Title)
		} else {
			reported = append(reported, kind.Title+" ("+kind.Creator+")")
		}
	}
	return "These Git hosts report who set a status: " + strings.Join(reported, ", ") + ". These do not: " + strings.Join(silent, ", ") + "."
}

// Kind is what is known of a kind; the zero Kind where there is none of that name.
func (f Forge) Kind() Kind {
	for _, kind := range Kinds() {
		if kind.Forge == f {
			return kind
		}
	}
	return Kind{}
}

// KindOf is the kind of the Git host with this name; "" where it does not follow from the name.
func KindOf(server string) Forge {
	for _, kind := range Kinds() {
		if kind.serves(server) {
			return kind.Forge
		}
	}
	return ""
}

func (k Kind) serves(server string) bool {
	server = strings.TrimSuffix(strings.ToLower(server), ".")
	return slices.ContainsFunc(k.Servers, func(name string) bool {
		suffix, ends := strings.CutPrefix(name, "*")
		return server == name || ends && strings.HasSuffix(server, suffix)
	})
}

// anyTokenUser goes with a token when nothing else is said. GitHub's app tokens are documented with it; GitHub,
// GitLab, Gitea, Forgejo and Azure Repos take a personal or project token as the password of any username that
// is not empty.
const anyTokenUser = "x-access-token"

// GitLogin is what Git sends to a server over https: username and password, both empty for anonymous access, or the
// password alone as a bearer's.
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

// TokenUser is the username that Git sends to a server over https beside a token: the given one, which may be "", but
// where the server wants a certain one; anyone where none is given, and the server takes any.
func TokenUser(server, given, anyone string) string {
	kind := KindOf(server).Kind()
	if given == "" {
		return cmp.Or(kind.tokenUser, anyone)
	}
	if kind.mailUser != "" && strings.Contains(given, "@") {
		return kind.mailUser
	}
	return given
}

// TokenUsers are the usernames that go with tokens: with one of them a token may come back encoded.
func TokenUsers() []string {
	users := []string{anyTokenUser}
	for _, kind := range Kinds() {
		users = append(users, kind.tokenUser, kind.mailUser)
	}
	return slices.DeleteFunc(users, func(user string) bool { return user == "" })
}

// WebURL is the https URL of a repository with this URL, which may be one of ssh.
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

// Report is a commit status that is to be set.
type Report struct {
	// Commit, Context and Description may have what an agent fills in.
	Commit, Context, Description string
	Key                          string // StatusKey of the context
	State                        StatusState
	Token                        string // of an agent
	Link                         string // a URL for people; "" for none
	Page                         string // what stands for the link where a Git host must have one

	word  string // the state, as the Git host calls it
	genre string // of Azure Repos; "" for what is before the first slash of the context
}

// link is the field of a status with its link, where there is one.
func (r Report) link(field string, fields map[string]any) map[string]any {
	if r.Link != "" {
		fields[field] = r.Link
	}
	return fields
}

// StatusKey is a name for a context of the forty characters that every Git host takes. Flux' notification controller
// makes the same, where a Git host takes no more.
func StatusKey(context string) string {
	sum := sha1.Sum([]byte(context))
	return hex.EncodeToString(sum[:])
}

// Hook is the request that sets a commit status.
type Hook struct {
	API      string // its root, without a slash at its end
	Path     string // below the root, with a query
	Headers  [][2]string
	Username string // of basic authentication by the token; "" where a header has the token
	Fields   map[string]any
}

// StatusHook is how an agent sets a status on a repository's Git host, whose Credentials are not needed.
func StatusHook(repository Repository, r Report) (Hook, error) {
	at, err := locate(repository)
	if err != nil {
		return Hook{}, err
	}
	r.word, r.genre = at.kind.statuses.words[r.State], agentGenre
	hook := at.kind.hook(at, r)
	hook.API = strings.TrimSuffix(at.api.String(), "/") + hook.API
	hook.Headers = append([][2]string{{"Content-Type", "application/json"}}, hook.Headers...)
	return hook, nil
}
