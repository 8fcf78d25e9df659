package git

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/secret"
)

// Credentials are what servers are shown. The zero value is anonymous. Each URL
// has its own: those of the longest prefix in ByURL that it begins with, and of
// nothing else; without such a prefix the plain ones, which go to https and ssh,
// and by http no further than this machine.
type Credentials struct {
	// Username, Password and Token are for http basic authentication. A Token wins
	// over a Password.
	Username string
	Password string
	Token    string
	// SSH is for ssh only, and nothing else is.
	SSH SSHCredentials
	// ByURL are those of single servers, groups or repositories.
	ByURL []URLCredentials
}

// URLCredentials are those of all repositories whose URLs begin with a prefix.
type URLCredentials struct {
	// URL is the prefix: https://git.example.com/platform is for
	// https://git.example.com/platform/gitops.git, and not for
	// https://git.example.com/platform-evil. A .git at its end does not matter. A prefix of http:// is for http, one of
	// ssh:// or host:path for both forms of ssh. The user of ssh does not matter,
	// unless the prefix has one.
	URL string
	Login
}

// Login is what one server is shown.
type Login struct {
	Username string
	Password string
	Token    string
	SSH      SSHCredentials
}

// tokenUsername goes with a token when no username is given. GitHub's app
// tokens are documented with it; GitHub, GitLab, Gitea, Forgejo and Azure Repos
// take a personal or project token as the password of any username that is not
// empty. Bitbucket wants names of its own.
const tokenUsername = "x-access-token"

// basic returns username and password for basic authentication, both empty for
// anonymous access.
func (l Login) basic() (username, password string) {
	switch {
	case l.Token != "" && l.Username == "":
		return tokenUsername, l.Token
	case l.Token != "":
		return l.Username, l.Token
	default:
		return l.Username, l.Password
	}
}

// String keeps credentials out of anything that prints a Remote.
func (c Credentials) String() string { return "(credentials)" }

// GoString does the same for %#v.
func (c Credentials) GoString() string { return "git.Credentials{}" }

// String keeps credentials out of anything that prints them.
func (c URLCredentials) String() string { return "(credentials)" }

// GoString does the same for %#v.
func (c URLCredentials) GoString() string { return "git.URLCredentials{}" }

// String keeps credentials out of anything that prints them.
func (l Login) String() string { return "(credentials)" }

// GoString does the same for %#v.
func (l Login) GoString() string { return "git.Login{}" }

// Check tells what is wrong with the prefixes: one that is none, or is there
// twice. Its errors have no credentials in them.
func (c Credentials) Check() error {
	var seen []place
	for _, by := range c.ByURL {
		if err := CheckCredentialsURL(by.URL); err != nil {
			return fmt.Errorf("credentials: %w", err)
		}
		at, _ := parsePlace(by.URL)
		if slices.ContainsFunc(seen, at.equal) {
			return fmt.Errorf("credentials: there are two for %q", by.URL)
		}
		seen = append(seen, at)
	}
	return nil
}

// CheckCredentialsURL tells what is wrong with a prefix that credentials are for:
// it is a URL of a repository, of a group of them, or of a server. Its errors
// never repeat the URL, which may hold a secret.
func CheckCredentialsURL(raw string) error {
	trimmed := strings.TrimRight(raw, "/")
	if _, rest, ok := strings.Cut(trimmed, "://"); ok && !strings.Contains(rest, "/") {
		trimmed += "/any" // a server
	}
	if err := CheckURL(trimmed); err != nil {
		return err
	}
	if _, ok := parsePlace(raw); !ok {
		return errors.New("the URL is of a local repository, which needs no credentials; use https://, http:// or ssh://")
	}
	return nil
}

// For returns what the server of a repository's URL is shown.
func (c Credentials) For(repository string) Login { return c.choose(repository).login }

// choice is what is shown for one URL.
type choice struct {
	login    Login
	scope    place // where it may go
	withheld bool  // there are plain credentials, and they are not for this URL
}

func (c Credentials) choose(repository string) choice {
	at, ok := parsePlace(repository)
	if !ok {
		return choice{}
	}
	if at.scheme == "ssh" && at.user == "" {
		at.user = defaultSSHUser
	}
	plain := Login{Username: c.Username, Password: c.Password, Token: c.Token, SSH: c.SSH}
	var chosen *URLCredentials
	var scope place
	for i, by := range c.ByURL {
		prefix, ok := parsePlace(by.URL)
		if !ok || !prefix.holds(at) {
			continue
		}
		if chosen == nil || prefix.longer(scope) {
			chosen, scope = &c.ByURL[i], prefix
		}
	}
	switch {
	case chosen != nil:
		login := chosen.Login
		// Which keys hosts have is no secret, and one list is enough.
		if login.SSH.KnownHosts == "" && login.SSH.KnownHostsFile == "" {
			login.SSH.KnownHosts, login.SSH.KnownHostsFile = c.SSH.KnownHosts, c.SSH.KnownHostsFile
		}
		return choice{login: login, scope: scope}
	case at.scheme == "http" && !isLoopback(at.host):
		username, password := plain.basic()
		return choice{login: Login{SSH: plain.SSH}, withheld: username != "" || password != ""}
	}
	return choice{login: plain, scope: place{scheme: at.scheme, host: at.host, port: at.port}}
}

// place is a URL, or a prefix of URLs, in a form that can be compared.
type place struct {
	scheme, user, host, port string
	segments                 []string
}

var defaultPorts = map[string]string{"http": "80", "https": "443", "ssh": "22"}

// parsePlace reads a URL; ok is false for a local repository, and for what cannot
// be parsed.
func parsePlace(raw string) (at place, ok bool) {
	if schemePattern.MatchString(raw) {
		parsed, err := url.Parse(raw)
		if err != nil {
			return place{}, false
		}
		at = placeOf(parsed)
		_, ok = defaultPorts[at.scheme]
		return at, ok && at.host != ""
	}
	if helperPattern.MatchString(raw) || !scpPattern.MatchString(raw) || isDrive(raw) {
		return place{}, false
	}
	there := splitSCP(raw)
	at = place{scheme: "ssh", user: there.user, host: strings.ToLower(there.host), port: defaultPorts["ssh"], segments: segmentsOf(there.path)}
	return at, at.host != ""
}

func placeOf(u *url.URL) place {
	at := place{
		scheme: strings.ToLower(u.Scheme), user: u.User.Username(), host: strings.TrimSuffix(strings.ToLower(u.Hostname()), "."), port: u.Port(),
		segments: segmentsOf(u.EscapedPath()),
	}
	if at.port == "" {
		at.port = defaultPorts[at.scheme]
	}
	return at
}

// segmentsOf splits an escaped path, without slashes around it.
func segmentsOf(path string) []string {
	path = strings.Trim(path, "/")
	if path == "" {
		return nil
	}
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		if plain, err := url.PathUnescape(segment); err == nil {
			segments[i] = plain
		}
	}
	return segments
}

// holds reports whether the place, as a prefix, is one of the other.
func (p place) holds(other place) bool {
	if p.scheme != other.scheme || p.host != other.host || p.port != other.port || p.user != "" && p.user != other.user {
		return false
	}
	n := len(p.segments)
	if n > len(other.segments) {
		return false
	}
	for i, segment := range p.segments {
		at := other.segments[i]
		if i == n-1 { // servers redirect from the one form to the other
			segment, at = strings.TrimSuffix(segment, ".git"), strings.TrimSuffix(at, ".git")
		}
		if segment != at {
			return false
		}
	}
	return true
}

func (p place) equal(other place) bool {
	return p.scheme == other.scheme && p.user == other.user && p.host == other.host && p.port == other.port && slices.Equal(p.segments, other.segments)
}

// longer reports whether the prefix says more than another that holds the same.
func (p place) longer(other place) bool {
	if len(p.segments) != len(other.segments) {
		return len(p.segments) > len(other.segments)
	}
	return p.user != "" && other.user == ""
}

// isAzure reports whether a host is one of Azure DevOps Services. There a token
// of Microsoft Entra ID, which is a JSON Web Token, goes as a bearer's, and a
// personal access token as a password.
func isAzure(host string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	return host == "dev.azure.com" || strings.HasSuffix(host, ".visualstudio.com")
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.Unmap().IsLoopback()
}

// scrub replaces the credentials in text.
func (c Credentials) scrub(text string) string {
	logins := []Login{{Username: c.Username, Password: c.Password, Token: c.Token, SSH: c.SSH}}
	for _, by := range c.ByURL {
		logins = append(logins, by.Login)
	}
	for _, login := range logins {
		username, _ := login.basic()
		secrets := []string{login.Password, login.Token, login.SSH.Key, login.SSH.Passphrase}
		for line := range strings.Lines(login.SSH.Key) {
			if line = strings.TrimSpace(line); len(line) > 16 && !strings.HasPrefix(line, "-----") {
				secrets = append(secrets, line)
			}
		}
		text = secret.NewScrubber(secrets, username).Scrub(text)
	}
	return text
}
