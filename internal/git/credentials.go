package git

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"

	"github.com/flotilla/terraform-provider-flotilla/internal/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/secret"
)

// Credentials are what is sent to servers. The zero value is anonymous. A URL
// gets those of the longest prefix in ByURL that it begins with, and no others.
// Without such a prefix it gets the plain ones, which are sent by https and ssh,
// and by http to this machine only.
type Credentials struct {
	Login
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

// Login is what is sent to one server.
type Login struct {
	// Username, Password and Token are for http basic authentication. A Token wins
	// over a Password.
	Username string
	Password string
	Token    string
	// App gets tokens for http, in place of the three above. It is for GitHub: servers that are known to be others get nothing of it.
	App *forge.GitHubApp
	// SSH is for ssh only, and ssh uses nothing else.
	SSH SSHCredentials
}

// Web is what is sent by http, and to the APIs of Git hosts.
func (l Login) Web() forge.Credentials {
	return forge.Credentials{Username: l.Username, Password: l.Password, Token: l.Token, App: l.App}
}

// auth is what is sent to a server by https; nil for anonymous access.
func (l Login) auth(server string) transport.AuthMethod {
	username, password, bearer := forge.GitLogin(server, l.Web())
	switch {
	case bearer:
		return &githttp.TokenAuth{Token: password}
	case username != "" || password != "":
		return &githttp.BasicAuth{Username: username, Password: password}
	}
	return nil
}

// String keeps credentials out of anything that prints a Remote.
func (c Credentials) String() string { return "(credentials)" }

// GoString does the same for %#v.
func (c Credentials) GoString() string { return "git.Credentials{}" }

// String keeps credentials out of anything that prints them.
func (l Login) String() string { return "(credentials)" }

// GoString does the same for %#v.
func (l Login) GoString() string { return "git.Login{}" }

// Check reports what is wrong with the prefixes: one that is not a URL, or that
// is there twice. Its errors have no credentials in them.
func (c Credentials) Check() error {
	var seen []urlPrefix
	for _, by := range c.ByURL {
		if err := CheckCredentialsURL(by.URL); err != nil {
			return fmt.Errorf("credentials: %w", err)
		}
		at, _ := parseURLPrefix(by.URL)
		if slices.ContainsFunc(seen, at.equal) {
			return fmt.Errorf("credentials: there are two for %q", by.URL)
		}
		seen = append(seen, at)
	}
	return nil
}

// CheckCredentialsURL reports what is wrong with a prefix that credentials are for:
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
	if _, ok := parseURLPrefix(raw); !ok {
		return errors.New("the URL is of a local repository, which needs no credentials; use https://, http:// or ssh://")
	}
	return nil
}

// For returns what is sent to the server of a repository's URL.
func (c Credentials) For(repository string) Login { return c.choose(repository).login }

// choice is what is sent for one URL.
type choice struct {
	login    Login
	scope    urlPrefix // where it may go
	withheld string    // why the plain credentials are not for this URL; "" where they are, or there are none
}

func (c Credentials) choose(repository string) choice {
	at, ok := parseURLPrefix(repository)
	if !ok {
		return choice{}
	}
	if at.scheme == "ssh" && at.user == "" {
		at.user = defaultSSHUser
	}
	plain := c.Login
	index, scope := longestPrefix(at, len(c.ByURL), func(i int) string { return c.ByURL[i].URL })
	switch {
	case index >= 0:
		login := c.ByURL[index].Login
		// Which keys hosts have is no secret, and one list is enough.
		if login.SSH.KnownHosts == "" && login.SSH.KnownHostsFile == "" {
			login.SSH.KnownHosts, login.SSH.KnownHostsFile = c.SSH.KnownHosts, c.SSH.KnownHostsFile
		}
		return choice{login: login, scope: scope}
	case plain.Web() == forge.Credentials{}:
	case at.scheme == "http" && !isLoopback(at.host):
		return choice{login: Login{SSH: plain.SSH}, withheld: "credentials without a URL are sent by https and to this machine only"}
	case plain.App != nil && at.scheme != "ssh" && forge.OtherThanGitHub(at.host) != "":
		return choice{login: Login{SSH: plain.SSH}, withheld: "those of the provider's git.github_app are for GitHub"}
	}
	return choice{login: plain, scope: urlPrefix{scheme: at.scheme, host: at.host, port: at.port}}
}

// LongestPrefix is the index of the longest prefix that a URL begins with, as in [Credentials]; -1 where there is none.
func LongestPrefix(address string, prefixes []string) int {
	at, ok := parseURLPrefix(address)
	if !ok {
		return -1
	}
	index, _ := longestPrefix(at, len(prefixes), func(i int) string { return prefixes[i] })
	return index
}

func longestPrefix(at urlPrefix, count int, address func(int) string) (index int, scope urlPrefix) {
	index = -1
	for i := range count {
		prefix, ok := parseURLPrefix(address(i))
		if ok && prefix.holds(at) && (index < 0 || prefix.longer(scope)) {
			index, scope = i, prefix
		}
	}
	return index, scope
}

// urlPrefix is a URL, or a prefix of URLs, in a form that can be compared.
type urlPrefix struct {
	scheme, user, host, port string
	segments                 []string
}

var defaultPorts = map[string]string{"http": "80", "https": "443", "ssh": "22"}

// Spelling is equal for URLs that name one repository in different ways: by http, https or ssh, with and without a user, the
// default port, and a .git at the end; for local ones, by whatever path. Two repositories may be the same in spite of it.
func Spelling(repository string) string {
	if at, ok := parseURLPrefix(repository); ok {
		if at.port != defaultPorts[at.scheme] {
			at.host += ":" + at.port
		}
		return at.host + "/" + strings.TrimSuffix(strings.Join(at.segments, "/"), ".git")
	}
	directory, isLocal, err := Remote{URL: repository}.local()
	if err != nil || !isLocal {
		return repository
	}
	if resolved, err := filepath.EvalSymlinks(directory); err == nil {
		directory = resolved
	}
	return "file:" + filepath.ToSlash(directory)
}

// parseURLPrefix reads a URL; ok is false for a local repository, and for what cannot
// be parsed.
func parseURLPrefix(raw string) (at urlPrefix, ok bool) {
	if schemePattern.MatchString(raw) {
		parsed, err := url.Parse(raw)
		if err != nil {
			return urlPrefix{}, false
		}
		at = urlPrefixOf(parsed)
		_, ok = defaultPorts[at.scheme]
		return at, ok && at.host != ""
	}
	if helperPattern.MatchString(raw) || !scpPattern.MatchString(raw) || isDrive(raw) {
		return urlPrefix{}, false
	}
	there := splitSCP(raw)
	at = urlPrefix{scheme: "ssh", user: there.user, host: strings.ToLower(there.host), port: defaultPorts["ssh"], segments: segmentsOf(there.path)}
	return at, at.host != ""
}

func urlPrefixOf(u *url.URL) urlPrefix {
	at := urlPrefix{
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

// holds reports whether other begins with this prefix.
func (p urlPrefix) holds(other urlPrefix) bool {
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

func (p urlPrefix) equal(other urlPrefix) bool {
	return p.scheme == other.scheme && p.user == other.user && p.host == other.host && p.port == other.port && slices.Equal(p.segments, other.segments)
}

// longer reports whether the prefix is more specific than another one that holds
// the same URL.
func (p urlPrefix) longer(other urlPrefix) bool {
	if len(p.segments) != len(other.segments) {
		return len(p.segments) > len(other.segments)
	}
	return p.user != "" && other.user == ""
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.Unmap().IsLoopback()
}

// Scrub replaces the credentials in text.
func (c Credentials) Scrub(text string) string {
	logins := []Login{c.Login}
	for _, by := range c.ByURL {
		logins = append(logins, by.Login)
	}
	for _, login := range logins {
		secrets := slices.Concat(login.App.Secrets(), secret.KeyLines(login.SSH.Key), []string{login.Password, login.Token, login.SSH.Key, login.SSH.Passphrase})
		text = secret.NewScrubber(secrets, append(forge.TokenUsers(), login.Username)...).Scrub(text)
	}
	return text
}
