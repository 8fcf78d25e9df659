package git

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"

	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/access"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/secret"
)

// Credentials are the logins for servers. The zero value is anonymous. Package access decides which of them a URL gets.
type Credentials struct {
	// Login has the plain credentials, which belong to the origin of the GitOps repository.
	Login
	// ByURL has those of single servers, groups or repositories. The longest prefix wins.
	ByURL []URLCredentials
}

// URLCredentials are those of all repositories whose URLs begin with a prefix.
type URLCredentials struct {
	// URL is the prefix: https://git.example.com/platform is for
	// https://git.example.com/platform/gitops.git, and not for
	// https://git.example.com/platform-evil. A .git at the end of both does not matter. A prefix of http:// is for http, one of
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
	var seen []access.Location
	for _, by := range c.ByURL {
		if err := CheckCredentialsURL(by.URL); err != nil {
			return fmt.Errorf("credentials: %w", err)
		}
		at, _ := access.Parse(by.URL)
		if slices.ContainsFunc(seen, at.Equal) {
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
	at, err := access.Parse(raw)
	switch {
	case err != nil:
		return err
	case at.IsLocal():
		return errors.New("the URL is of a local repository, which needs no credentials; use https://, http:// or ssh://")
	}
	return nil
}

// Permit is what a request that may be sent gets.
type Permit struct {
	access.Grant
	Login Login
}

// Decide asks [access.Decide] about a URL, and returns the login that the request gets.
func (c Credentials) Decide(request access.Request) (Permit, error) {
	grant, err := access.Decide(request, c.prefixes())
	permit := Permit{Grant: grant}
	switch {
	case err != nil:
		return permit, err
	case grant.Login == access.Plain:
		permit.Login = c.Login
	case grant.Login >= 0:
		permit.Login = c.ByURL[grant.Login].Login
		// Which keys hosts have is no secret, and one list is enough.
		if ssh := &permit.Login.SSH; ssh.KnownHosts == "" && ssh.KnownHostsFile == "" {
			ssh.KnownHosts, ssh.KnownHostsFile = c.SSH.KnownHosts, c.SSH.KnownHostsFile
		}
	case c.Login.Web() == forge.Credentials{}:
		permit.Withheld = ""
	}
	if app := permit.Login.App; app != nil && grant.Scope.IsWeb() && !app.Serves(request.URL) {
		permit.Login.App, permit.Withheld = nil, "those of the GitHub App are for "+app.Server()+": set url of github_app"
	}
	return permit, nil
}

// Web returns what is sent by http to a repository, and to the API of its Git host. plainFor is the URL of the GitOps
// repository, if the repository is that one.
func (c Credentials) Web(repository, plainFor string) forge.Credentials {
	permit, err := c.Decide(access.Request{URL: repository, PlainFor: plainFor})
	if err != nil {
		return forge.Credentials{}
	}
	return permit.Login.Web()
}

func (c Credentials) prefixes() []string {
	prefixes := make([]string, len(c.ByURL))
	for i, by := range c.ByURL {
		prefixes[i] = by.URL
	}
	return prefixes
}

// Spelling is equal for URLs that name one repository in different ways: by http, https or ssh, with and without a user, the
// default port, and a .git at the end; for local ones, by whatever path. Two repositories may be the same in spite of it.
func Spelling(repository string) string {
	if at, err := access.Parse(repository); err == nil && !at.IsLocal() {
		return at.Server() + "/" + strings.TrimSuffix(at.Path(), ".git")
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

// Scrub replaces the credentials in text.
func (c Credentials) Scrub(text string) string {
	logins := []Login{c.Login}
	for _, by := range c.ByURL {
		logins = append(logins, by.Login)
	}
	for _, login := range logins {
		secrets := slices.Concat(login.App.Secrets(), secret.KeyForms(login.SSH.Key), []string{login.Password, login.Token, login.SSH.Passphrase})
		text = secret.NewScrubber(secrets, append(forge.TokenUsers(), login.Username)...).Scrub(text)
	}
	return text
}
