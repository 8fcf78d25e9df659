package provider

import (
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/measure"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/access"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/secret"
)

// gitSettings is the provider's attribute git.
type gitSettings struct {
	credentials  git.Credentials
	certificates string
	signingKey   string
	passphrase   string        // of the signing key
	signers      *git.Verifier // nil: all records are trusted
	author       git.Signature
	complete     bool // false while a part is unknown
}

var secretAttributes = []string{"token", "username", "password", "ssh_private_key", "ssh_passphrase", "ssh_known_hosts"}

// decodeGit reads the attribute git. Environment variables replace absent attributes.
func decodeGit(value types.Dynamic, diagnostics *diag.Diagnostics) gitSettings {
	settings, o := gitSettings{}, readLogin(GitTable, value)
	login := o.gitLogin()
	login.SSH = git.SSHCredentials{
		Key:        o.textOr("ssh_private_key", "FLOTILLA_SSH_PRIVATE_KEY"),
		Passphrase: o.textOr("ssh_passphrase", "FLOTILLA_SSH_PASSPHRASE"),
		KnownHosts: o.Text("ssh_known_hosts"),
	}
	settings.credentials = git.Credentials{Login: login}
	settings.certificates = o.Text("ca_certificates")
	settings.signingKey = o.textOr("signing_key", "FLOTILLA_SIGNING_KEY")
	settings.passphrase = o.textOr("signing_passphrase", "FLOTILLA_SIGNING_PASSPHRASE")
	settings.author = git.Signature{Name: o.Text("author_name"), Email: o.Text("author_email")}
	settings.decodeSigners(o)
	settings.decodeOrigins(o)
	settings.complete = o.finish("git", diagnostics)
	return settings
}

func (s *gitSettings) decodeSigners(o loginReader) {
	o.Texts("allowed_signers")
	list, _ := o.Value("allowed_signers")
	if _, isList := list.([]any); !isList {
		return
	}
	s.signers = &git.Verifier{}
	fleet.EachText(o.ObjectReader, "allowed_signers", func(path *fleet.Path, key string) {
		if err := s.signers.Add(key); err != nil {
			o.reader.Report(path, "%s", err)
		}
	})
}

func (s *gitSettings) decodeOrigins(o loginReader) {
	for _, origin := range o.List("credentials") {
		text := map[string]string{}
		for _, key := range append([]string{"url"}, secretAttributes...) {
			text[key] = origin.Text(key)
		}
		app := fleet.ReadObject(origin, "github_app", decodeApp)
		origin.Finish()
		if origin.Has("url") && !origin.Known("url") {
			continue
		}
		if problem := checkOrigin(text, app); problem != "" {
			o.reader.Report(origin.Path(), "%s", problem)
			continue
		}
		s.credentials.ByURL = append(s.credentials.ByURL, git.URLCredentials{URL: text["url"], Login: git.Login{
			Token: text["token"], Username: text["username"], Password: text["password"], App: app,
			SSH: git.SSHCredentials{Key: text["ssh_private_key"], Passphrase: text["ssh_passphrase"], KnownHosts: text["ssh_known_hosts"]},
		}})
	}
	if err := s.credentials.Check(); err != nil {
		o.reader.Report(nil, "%s", err)
	}
}

// checkOrigin returns the mistake of one entry. It never repeats the URL, which may have a password.
func checkOrigin(text map[string]string, app *forge.GitHubApp) string {
	address := text["url"]
	if address == "" {
		return "url is missing: the beginning of the URLs of repositories, such as \"https://git.example.com/platform\""
	}
	if err := git.CheckCredentialsURL(address); err != nil {
		return err.Error()
	}
	scheme, _, hasScheme := strings.Cut(strings.ToLower(address), "://")
	isSSH := !hasScheme || scheme == "ssh"
	if app != nil {
		if isSSH {
			return "github_app is for http and https, but this url is for ssh"
		}
		if title := forge.OtherThanGitHub(serverOf(address)); title != "" {
			return "github_app is for GitHub, but this url is of " + title
		}
		if !app.Serves(address) {
			return "github_app is for " + app.Server() + ", but this url is of another server: set url of github_app to the API of that server"
		}
	}
	for _, key := range secretAttributes {
		switch {
		case text[key] == "" || isSSH == strings.HasPrefix(key, "ssh_"):
		case isSSH:
			return key + " is for http and https, but this url is for ssh"
		default:
			return key + " is for ssh, but this url is not"
		}
	}
	return ""
}

func serverOf(address string) string {
	parsed, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return parsed.Hostname()
}

var appVariables = map[string]string{
	"id": "FLOTILLA_GITHUB_APP_ID", "installation_id": "FLOTILLA_GITHUB_APP_INSTALLATION_ID", "private_key": "FLOTILLA_GITHUB_APP_PRIVATE_KEY",
	"url": "FLOTILLA_GITHUB_APP_URL",
}

// gitLogin reads token, username and password, or github_app. The configuration overrides the environment, where a token or
// a password overrides an App.
func (r loginReader) gitLogin() git.Login {
	if r.Has("github_app") {
		for _, key := range []string{"token", "username", "password"} {
			if r.Has(key) {
				r.Report("github_app", "cannot be set together with %s: remove one of the two", key)
			}
		}
		return git.Login{App: fleet.ReadObject(r.ObjectReader, "github_app", decodeApp)}
	}
	login := r.login("FLOTILLA_GIT_")
	if login.Token != "" || login.Password != "" || r.Has("token") || r.Has("password") {
		return login
	}
	text := map[string]string{}
	for key, variable := range appVariables {
		text[key] = os.Getenv(variable)
	}
	if text["id"]+text["installation_id"]+text["private_key"] == "" {
		return login
	}
	app, wrong := forge.NewGitHubApp(text["id"], text["installation_id"], text["private_key"], text["url"])
	for _, key := range slices.Sorted(maps.Keys(wrong)) {
		r.reader.Report(nil, "%s %s", appVariables[key], wrong[key])
	}
	return git.Login{App: app}
}

// decodeApp reads an object github_app; nil while a part is unknown.
func decodeApp(settings *fleet.ObjectReader) *forge.GitHubApp {
	text, known := map[string]string{}, true
	for _, key := range []string{"id", "installation_id", "private_key"} {
		text[key] = settings.Required(key)
	}
	text["url"] = settings.Text("url")
	for key := range text {
		known = known && (!settings.Has(key) || settings.Known(key))
	}
	app, wrong := forge.NewGitHubApp(text["id"], text["installation_id"], text["private_key"], text["url"])
	for _, key := range slices.Sorted(maps.Keys(wrong)) {
		if text[key] != "" { // else it is reported already
			settings.Report(key, "%s", wrong[key])
		}
	}
	if !known {
		return nil
	}
	return app
}

// measurementsSettings is the provider's attribute measurements.
type measurementsSettings struct {
	credentials  git.Credentials     // not in plain text
	headers      []map[string]string // of credentials.ByURL
	certificates string
	complete     bool // false while a part is unknown
}

// decodeMeasurements reads the attribute measurements. Environment variables replace absent attributes. Credentials without
// an entry of their own belong to url.
func decodeMeasurements(value types.Dynamic, diagnostics *diag.Diagnostics) measurementsSettings {
	settings, o := measurementsSettings{}, readLogin(MeasurementsTable, value)
	login := o.login("FLOTILLA_MEASUREMENTS_")
	address := o.textOr("url", "FLOTILLA_MEASUREMENTS_URL")
	switch {
	case address != "":
		settings.add(o.ObjectReader, address, login, nil)
	case login.Token+login.Username+login.Password != "" && !o.Has("url"):
		o.Report("url",
			"is required with token, username and password, which are sent to no other server; or set FLOTILLA_MEASUREMENTS_URL beside the "+
				"other variables")
	}
	settings.certificates = o.Text("ca_certificates")
	for _, origin := range o.List("credentials") {
		settings.decodeOrigin(origin)
	}
	if err := settings.credentials.Check(); err != nil {
		o.reader.Report(nil, "%s", err)
	}
	settings.complete = o.finish("measurements", diagnostics)
	return settings
}

func (s *measurementsSettings) decodeOrigin(origin *fleet.ObjectReader) {
	address := origin.Required("url")
	login := git.Login{Token: origin.Text("token"), Username: origin.Text("username"), Password: origin.Text("password")}
	headers := origin.TextMap("headers")
	for _, problem := range measure.CheckHeaders(headers, true) {
		origin.Report("headers", "%s", problem)
	}
	origin.Finish()
	if address != "" {
		s.add(origin, address, login, headers)
	}
}

// add adds credentials for URLs that begin with an address. Its errors never repeat the address, which may have a password.
func (s *measurementsSettings) add(o *fleet.ObjectReader, address string, login git.Login, headers map[string]string) {
	if problem := measure.CheckURL(address); problem != "" {
		o.Report("url", "%s", strings.Replace(problem, "set them in measurements.credentials of the provider", "set them beside it", 1))
		return
	}
	s.credentials.ByURL = append(s.credentials.ByURL, git.URLCredentials{URL: address, Login: login})
	s.headers = append(s.headers, headers)
}

func (s *measurementsSettings) client(userAgent string) (*measure.Measurer, error) {
	over, err := git.NewHTTPTransport(s.certificates)
	if err != nil || !s.complete {
		return nil, err
	}
	return &measure.Measurer{Over: over, Login: s.login, Scrub: s.scrubber(), UserAgent: userAgent}, nil
}

func (s *measurementsSettings) scrubber() secret.Scrubber {
	var all, usernames []string
	for i, by := range s.credentials.ByURL {
		all, usernames = append(all, by.Token, by.Password), append(usernames, by.Username)
		all = slices.AppendSeq(all, maps.Values(s.headers[i]))
	}
	return secret.NewScrubber(all, usernames...)
}

func (s *measurementsSettings) login(address string) (measure.Login, error) {
	address, _, _ = strings.Cut(address, "?")
	permit, err := s.credentials.Decide(access.Request{URL: address})
	if err != nil {
		return measure.Login{}, err
	}
	login := measure.Login{Token: permit.Login.Token, Username: permit.Login.Username, Password: permit.Login.Password}
	if index := int(permit.Grant.Login); index >= 0 {
		login.Headers = maps.Clone(s.headers[index])
	}
	return login, nil
}
