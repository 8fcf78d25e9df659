package forge

import (
	"cmp"
	"context"
	"crypto/rsa"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-github/v89/github"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/access"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/armor"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/secret"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wait"
)

// ErrGitHubApp means that GitHub issues no token for the App.
var ErrGitHubApp = errors.New("no token for the GitHub App")

// GitHubApp is an installation of a GitHub App. Its private key gets tokens, valid for an hour, for the repositories of an
// account. It reuses them, and is safe for concurrent use.
type GitHubApp struct {
	app, installation int64
	key               *rsa.PrivateKey
	pem               string
	api               *url.URL // the root, with a slash at its end

	turn  wait.Locks // one request at a time
	token appToken
}

type appToken struct {
	text string
	ends time.Time
}

// renewal leaves a push time before a token expires.
const renewal = 5 * time.Minute

// NewGitHubApp takes the numbers of the App and its installation, the private key as PEM, and the URL of the API, by default
// https://api.github.com. wrong has the mistakes by setting (id, installation_id, private_key, url), without secrets.
func NewGitHubApp(id, installation, pem, api string) (app *GitHubApp, wrong map[string]string) {
	app, wrong = &GitHubApp{pem: pem}, map[string]string{}
	number := func(name, text string) int64 {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n <= 0 {
			wrong[name] = "must be a number, in quotes"
		}
		return n
	}
	app.app, app.installation = number("id", id), number("installation_id", installation)
	var err error
	if app.key, err = jwt.ParseRSAPrivateKeyFromPEM([]byte(armor.Normalize(pem))); err != nil { // the error may repeat parts of the key
		wrong["private_key"] = "must be the PEM text of the RSA private key that GitHub made for the App, " +
			`from "-----BEGIN RSA PRIVATE KEY-----"`
	}
	root, err := parseURL("url", cmp.Or(api, "https://api.github.com"))
	if err != nil || root.Scheme != "https" && !isThisMachine(root.Hostname()) {
		wrong["url"] = "must be the https URL of the API of GitHub Enterprise, such as \"https://github.example.com/api/v3\""
		return app, wrong
	}
	app.api = githubRoot(nil, root)
	return app, wrong
}

func isThisMachine(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}

// Server returns the origin of the App's API.
func (a *GitHubApp) Server() string { return access.OriginOf(a.api) }

// Serves reports whether the tokens are for this repository or API. The API of github.com and below ghe.com is at "api.".
func (a *GitHubApp) Serves(repository string) bool {
	at, err := url.Parse(repository)
	if err != nil || at.Scheme != a.api.Scheme {
		return false
	}
	if at.Host = strings.ToLower(at.Host); at.Host == strings.ToLower(a.api.Host) {
		return true
	}
	return strings.ToLower(a.api.Host) == "api."+strings.TrimSuffix(at.Host, ":443")
}

// OtherThanGitHub returns the title of a server's kind without GitHub Apps, or "".
func OtherThanGitHub(server string) string {
	if kind := KindOf(server).Kind(); kind.Forge != "" && !kind.GitHubApps {
		return kind.Title
	}
	return ""
}

// Format hides the secrets from every verb.
func (*GitHubApp) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "(GitHub App)") }

// Secrets returns forms of the private key.
func (a *GitHubApp) Secrets() []string {
	if a == nil {
		return nil
	}
	return secret.KeyForms(a.pem)
}

// Token returns a valid token, also a password for Git, requested through over if necessary. Another server's repository and a
// refusal by GitHub are ErrGitHubApp. Errors have no secrets.
func (a *GitHubApp) Token(ctx context.Context, repository *url.URL, over http.RoundTripper) (string, error) {
	if !a.Serves(repository.String()) {
		return "", failf(
			ErrGitHubApp,
			"the App is for %s, and the repository is on %s; set url of github_app to the API of that server",
			a.Server(),
			access.OriginOf(repository),
		)
	}
	release, err := a.turn.Take(ctx, "")
	if err != nil {
		return "", err
	}
	defer release()
	if time.Until(a.token.ends) > renewal {
		return a.token.text, nil
	}
	made, err := a.createToken(ctx, over)
	if err != nil {
		return "", err
	}
	a.token = made
	return made.text, nil
}

// createToken sends a JSON Web Token of at most ten minutes, issued a minute in the past, because clocks differ ("Generating a
// JSON Web Token (JWT) for a GitHub App").
func (a *GitHubApp) createToken(ctx context.Context, over http.RoundTripper) (appToken, error) {
	now := time.Now()
	signed, err := jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.RegisteredClaims{
		Issuer:   strconv.FormatInt(a.app, 10),
		IssuedAt: jwt.NewNumericDate(now.Add(-time.Minute)), ExpiresAt: jwt.NewNumericDate(now.Add(9 * time.Minute)),
	}).SignedString(a.key)
	if err != nil {
		return appToken{}, fmt.Errorf("the private key of GitHub App %d signs nothing: %w", a.app, err)
	}
	secrets := secret.NewScrubber(append(a.Secrets(), signed))
	client := &http.Client{Transport: &transport{
		next: over, origins: []string{access.OriginOf(a.api)}, secrets: secrets, patience: defaultPatience, userAgent: defaultUserAgent,
	}}
	base := a.api.String()
	sdk, err := github.NewClient(
		github.WithHTTPClient(client),
		github.WithURLs(&base, &base),
		github.WithDisableRateLimitCheck(),
		github.WithAuthToken(signed),
	)
	if err != nil {
		return appToken{}, err
	}
	token, _, err := sdk.Apps.CreateInstallationToken(ctx, a.installation, nil)
	if err == nil && token.GetToken() == "" {
		err = failf(ErrUnreachable, "the answer has no token in it")
	}
	if err != nil {
		return appToken{}, a.describe(secrets, err)
	}
	return appToken{token.GetToken(), token.GetExpiresAt().Time}, nil
}

// describe distinguishes a missing installation from a missing repository.
func (a *GitHubApp) describe(secrets secret.Scrubber, err error) error {
	text := err.Error()
	if request := (*url.Error)(nil); errors.As(err, &request) {
		text = request.Err.Error()
	}
	kind, advice := classify(err), ""
	switch {
	case errors.Is(kind, context.Canceled), errors.Is(kind, context.DeadlineExceeded):
		return kind
	case hasStatus(err, http.StatusNotFound):
		kind, advice = ErrGitHubApp, fmt.Sprintf(
			": the App or its installation does not exist there; the number of the installation is the last part of the URL at which "+
				"the account's settings show the App, .../installations/%d",
			a.installation,
		)
	case hasStatus(err, http.StatusUnauthorized):
		kind, advice = ErrGitHubApp, ": is the private key one of this App, and does the clock of this machine go right?"
	case errors.Is(kind, ErrUnauthorized), errors.Is(kind, ErrRefused):
		kind = ErrGitHubApp
	}
	text = fmt.Sprintf("%s gives installation %d of GitHub App %d no token: %s%s", a.api.Host, a.installation, a.app, text, advice)
	return failf(kind, "%s", secrets.Scrub(text))
}
