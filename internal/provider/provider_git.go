package provider

import (
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
)

// gitSettings is the provider's attribute git: how repositories are reached, and who commits.
type gitSettings struct {
	credentials  git.Credentials
	certificates string
	signingKey   string
	passphrase   string        // of the signing key
	signers      *git.Verifier // nil: every record is believed
	author       git.Signature
	complete     bool // false while some of it is not known yet, so that no request can be sent
}

var secretAttributes = []string{"token", "username", "password", "ssh_private_key", "ssh_passphrase", "ssh_known_hosts"}

// gitAttribute is dynamic, since Terraform drops misspelt keys of nested attributes without an error.
func gitAttribute() schema.Attribute {
	return schema.DynamicAttribute{
		Optional: true, Sensitive: true,
		MarkdownDescription: "How to reach GitOps repositories, and who commits. Local repositories need none of it. Secrets that come " +
			"from the environment, or from ephemeral values, are in no plan and no state. Keys:\n\n" +
			"* `token`: access token; wins over a password. Default: `FLOTILLA_GIT_TOKEN`, unless `password` is set here.\n" +
			"* `username`, `password`: user name for a password, or for a token where the Git host requires a certain one. Default: " +
			"`FLOTILLA_GIT_USERNAME` and `FLOTILLA_GIT_PASSWORD`.\n" +
			"* `github_app`: `{id, installation_id, private_key, url}`: a GitHub App in place of a token: the provider gets tokens of an hour with its " +
			"private key, PEM text, and renews them. `installation_id` is the App's installation on the account that has the repositories, " +
			"`url` the API of a GitHub Enterprise Server, needed only where it is not `https://<server>/api/v3`. Default: " +
			"`FLOTILLA_GITHUB_APP_ID`, `FLOTILLA_GITHUB_APP_INSTALLATION_ID` and `FLOTILLA_GITHUB_APP_PRIVATE_KEY`, unless there is a token or a password.\n" +
			"* `ssh_private_key`, `ssh_passphrase`: PEM text of the private key for ssh, and its passphrase. Default: " +
			"`FLOTILLA_SSH_PRIVATE_KEY`, else the agent, and `FLOTILLA_SSH_PASSPHRASE`.\n" +
			"* `ssh_known_hosts`: host keys, as in a known_hosts file; unset: those of the user and the machine. A host key is always checked.\n" +
			"* `credentials`: `[{url, token, username, password, github_app, ssh_private_key, ssh_passphrase, ssh_known_hosts}]`: credentials for repositories " +
			"whose URL begins with `url`, such as `https://git.example.com/platform`; the longest `url` wins. The keys above are not used for them.\n" +
			"* `ca_certificates`: PEM text of certificates that are trusted beside the machine's.\n" +
			"* `signing_key`, `signing_passphrase`: private key that signs commits: OpenPGP, armored, or ssh. Default: " +
			"`FLOTILLA_SIGNING_KEY` and `FLOTILLA_SIGNING_PASSPHRASE`.\n" +
			"* `allowed_signers`: list of public keys, OpenPGP, armored, or ssh, the line of a `.pub` file. With it, a record that the state does not know is " +
			"believed only where one of these keys has signed the commit that changed it last: any other is drift, which the next apply " +
			"repairs, and no folder is removed because such a record lists it. It needs a `signing_key`, of which it has the public key.\n" +
			"* `author_name`, `author_email`: author and committer. Default: `Flotilla`.",
	}
}

// decodeGit reads the attribute git, strictly. Environment variables are used for attributes that are not set.
func decodeGit(value types.Dynamic, diagnostics *diag.Diagnostics) gitSettings {
	settings, o := gitSettings{}, readLogin(value)
	login := o.gitLogin()
	settings.credentials = git.Credentials{
		Token: login.Token, Username: login.Username, Password: login.Password, App: login.App,
		SSH: git.SSHCredentials{
			Key:        o.textOr("ssh_private_key", "FLOTILLA_SSH_PRIVATE_KEY"),
			Passphrase: o.textOr("ssh_passphrase", "FLOTILLA_SSH_PASSPHRASE"),
			KnownHosts: o.Text("ssh_known_hosts"),
		},
	}
	settings.certificates = o.Text("ca_certificates")
	settings.signingKey = o.textOr("signing_key", "FLOTILLA_SIGNING_KEY")
	settings.passphrase = o.textOr("signing_passphrase", "FLOTILLA_SIGNING_PASSPHRASE")
	settings.author = git.Signature{Name: o.Text("author_name"), Email: o.Text("author_email")}
	settings.decodeSigners(o)
	settings.decodeOrigins(o)
	settings.complete = o.finish("git", diagnostics)
	return settings
}

// decodeSigners reads the attribute allowed_signers of git.
func (s *gitSettings) decodeSigners(o loginReader) {
	o.Texts("allowed_signers")
	list, _ := o.Value("allowed_signers")
	if _, isList := list.([]any); !isList {
		return
	}
	s.signers = &git.Verifier{}
	o.EachText("allowed_signers", func(path *fleet.Path, key string) {
		if err := s.signers.Add(key); err != nil {
			o.reader.Report(path, "%s", err)
		}
	})
}

// decodeOrigins reads the attribute credentials of git.
func (s *gitSettings) decodeOrigins(o loginReader) {
	for _, origin := range o.List("credentials") {
		text := map[string]string{}
		for _, key := range append([]string{"url"}, secretAttributes...) {
			text[key] = origin.Text(key)
		}
		app := decodeApp(origin)
		origin.Finish()
		if origin.Has("url") && !origin.Known("url") {
			continue
		}
		if problem := checkOrigin(text, app != nil); problem != "" {
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

// checkOrigin says what is wrong with one entry, or "". It never repeats the URL: there may be a password in it.
func checkOrigin(text map[string]string, app bool) string {
	address := text["url"]
	if address == "" {
		return "url is missing: the beginning of the URLs of repositories, such as \"https://git.example.com/platform\""
	}
	if err := git.CheckCredentialsURL(address); err != nil {
		return err.Error()
	}
	scheme, _, hasScheme := strings.Cut(strings.ToLower(address), "://")
	isSSH := !hasScheme || scheme == "ssh"
	if app {
		if isSSH {
			return "github_app is for http and https, but this url is for ssh"
		}
		if title := forge.OtherThanGitHub(serverOf(address)); title != "" {
			return "github_app is for GitHub, but this url is of " + title
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

// appVariables are the environment variables in place of github_app.
var appVariables = map[string]string{
	"id": "FLOTILLA_GITHUB_APP_ID", "installation_id": "FLOTILLA_GITHUB_APP_INSTALLATION_ID", "private_key": "FLOTILLA_GITHUB_APP_PRIVATE_KEY",
}

// gitLogin reads token, username and password, or github_app. What the configuration has wins over the environment, where a token
// or a password wins over an App.
func (r loginReader) gitLogin() git.Login {
	if r.Has("github_app") {
		for _, key := range []string{"token", "username", "password"} {
			if r.Has(key) {
				r.Report("github_app", "cannot be set together with %s: remove one of the two", key)
			}
		}
		return git.Login{App: decodeApp(r.Object)}
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
	app, wrong := forge.NewGitHubApp(text["id"], text["installation_id"], text["private_key"], "")
	for _, key := range slices.Sorted(maps.Keys(wrong)) {
		r.reader.Report(nil, "%s %s", appVariables[key], wrong[key])
	}
	return git.Login{App: app}
}

// decodeApp reads the attribute github_app of an object; nil where it has none, or some of it is not known yet.
func decodeApp(o *fleet.Object) *forge.GitHubApp {
	settings := o.Object("github_app")
	if settings == nil {
		return nil
	}
	defer settings.Finish()
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
		if text[key] != "" { // else that is said already
			settings.Report(key, "%s", wrong[key])
		}
	}
	if !known {
		return nil
	}
	return app
}
