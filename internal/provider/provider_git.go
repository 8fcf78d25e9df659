package provider

import (
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
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
			"* `ssh_private_key`, `ssh_passphrase`: PEM text of the private key for ssh, and its passphrase. Default: " +
			"`FLOTILLA_SSH_PRIVATE_KEY`, else the agent, and `FLOTILLA_SSH_PASSPHRASE`.\n" +
			"* `ssh_known_hosts`: host keys, as in a known_hosts file; unset: those of the user and the machine. A host key is always checked.\n" +
			"* `credentials`: `[{url, token, username, password, ssh_private_key, ssh_passphrase, ssh_known_hosts}]`: credentials for repositories " +
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
	login := o.login("FLOTILLA_GIT_")
	settings.credentials = git.Credentials{
		Token: login.Token, Username: login.Username, Password: login.Password,
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
		origin.Finish()
		if origin.Has("url") && !origin.Known("url") {
			continue
		}
		if problem := checkOrigin(text); problem != "" {
			o.reader.Report(origin.Path(), "%s", problem)
			continue
		}
		s.credentials.ByURL = append(s.credentials.ByURL, git.URLCredentials{URL: text["url"], Login: git.Login{
			Token: text["token"], Username: text["username"], Password: text["password"],
			SSH: git.SSHCredentials{Key: text["ssh_private_key"], Passphrase: text["ssh_passphrase"], KnownHosts: text["ssh_known_hosts"]},
		}})
	}
	if err := s.credentials.Check(); err != nil {
		o.reader.Report(nil, "%s", err)
	}
}

// checkOrigin says what is wrong with one entry, or "". It never repeats the URL: there may be a password in it.
func checkOrigin(text map[string]string) string {
	address := text["url"]
	if address == "" {
		return "url is missing: the beginning of the URLs of repositories, such as \"https://git.example.com/platform\""
	}
	if err := git.CheckCredentialsURL(address); err != nil {
		return err.Error()
	}
	scheme, _, hasScheme := strings.Cut(strings.ToLower(address), "://")
	isSSH := !hasScheme || scheme == "ssh"
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
