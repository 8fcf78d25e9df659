package git

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/access"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/secret"
)

// Credentials are the logins for servers, between which package access chooses.
type Credentials struct {
	// Login is for the origin of the GitOps repository.
	Login
	// ByURL is for servers, groups or repositories. The longest prefix wins.
	ByURL []URLCredentials
}

// URLCredentials are for the repositories below a URL.
type URLCredentials struct {
	// URL is the prefix: https://git.example.com/platform matches https://git.example.com/platform/gitops.git, but not
	// https://git.example.com/platform-evil. ssh:// and host:path are equal, and match any user unless the prefix has one.
	URL string
	Login
}

// Login authenticates to one server.
type Login struct {
	// A Token wins over a Password.
	Username string
	Password string
	Token    string
	// App gets tokens for http, which only GitHub receives.
	App *forge.GitHubApp
	SSH SSHCredentials
}

// Web returns the credentials for http and for APIs of Git hosts.
func (l Login) Web() forge.Credentials {
	return forge.Credentials{Username: l.Username, Password: l.Password, Token: l.Token, App: l.App}
}

// Format hides the secrets from every verb.
func (Credentials) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "(credentials)") }

// Format hides the secrets from every verb.
func (Login) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "(credentials)") }

// Check returns an error for an invalid or duplicate prefix. The error contains no credentials.
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

// CheckCredentialsURL returns an error unless the prefix is a repository, a group or a server. It does not repeat the URL,
// which may contain a secret.
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

// Permit allows a request.
type Permit struct {
	access.Grant
	Login Login
}

// Decide adds the login to [access.Decide].
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
		// Host keys are no secret, so one list is enough.
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

// Web returns the credentials for http to a repository and its Git host's API. plainFor is the URL if it is the GitOps
// repository.
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

// Spelling normalizes scheme, user, default port, .git and local paths. Different spellings may still name one repository.
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

// Scrub replaces the credentials in a text.
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
