package provider

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
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

var (
	secretAttributes = []string{"token", "username", "password", "ssh_private_key", "ssh_passphrase", "ssh_known_hosts"}
	originAttributes = append([]string{"url"}, secretAttributes...)
	gitAttributes    = append([]string{
		"credentials", "ca_certificates", "signing_key", "signing_passphrase", "allowed_signers", "author_name", "author_email",
	}, secretAttributes...)
)

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
	settings := gitSettings{complete: true}
	given := tfvalue.Plain(value)
	object, isObject := given.(map[string]any)
	switch {
	case given == nil:
	case !fleet.IsKnown(given) && !isObject:
		settings.complete = false
	case !isObject:
		reportGit(diagnostics, "Must be an object: {%s}", strings.Join(gitAttributes, ", "))
	}
	text := settings.texts("git.", object, gitAttributes, diagnostics)
	or := func(key, variable string) string {
		if object[key] == nil {
			return os.Getenv(variable)
		}
		return text[key]
	}
	token := or("token", "FLOTILLA_GIT_TOKEN")
	if object["password"] != nil {
		token = text["token"] // a token of the environment must not win over a password of the configuration
	}
	settings.credentials = git.Credentials{
		Token:    token,
		Username: or("username", "FLOTILLA_GIT_USERNAME"),
		Password: or("password", "FLOTILLA_GIT_PASSWORD"),
		SSH: git.SSHCredentials{
			Key:        or("ssh_private_key", "FLOTILLA_SSH_PRIVATE_KEY"),
			Passphrase: or("ssh_passphrase", "FLOTILLA_SSH_PASSPHRASE"),
			KnownHosts: text["ssh_known_hosts"],
		},
	}
	settings.certificates = text["ca_certificates"]
	settings.signingKey = or("signing_key", "FLOTILLA_SIGNING_KEY")
	settings.passphrase = or("signing_passphrase", "FLOTILLA_SIGNING_PASSPHRASE")
	settings.author = git.Signature{Name: text["author_name"], Email: text["author_email"]}
	settings.decodeSigners(object["allowed_signers"], diagnostics)
	settings.decodeOrigins(object["credentials"], diagnostics)
	return settings
}

func reportGit(diagnostics *diag.Diagnostics, format string, arguments ...any) {
	diagnostics.AddAttributeError(path.Root("git"), "Invalid git", tfvalue.Sentence(fmt.Sprintf(format, arguments...)))
}

// texts reads the attributes of an object that are texts. What is not known makes the settings incomplete.
func (s *gitSettings) texts(at string, object map[string]any, attributes []string, diagnostics *diag.Diagnostics) map[string]string {
	texts := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		switch value := object[key].(type) {
		case nil:
		case string:
			texts[key] = value
		case fleet.Unknown:
			s.complete = false
		default:
			if slices.Contains(attributes, key) && key != "credentials" && key != "allowed_signers" {
				reportGit(diagnostics, "%s%s must be a text", at, key)
			}
		}
		if !slices.Contains(attributes, key) {
			reportGit(diagnostics, "%sunknown attribute %q%s", strings.TrimPrefix(at, "git."), key, fleet.DidYouMean(key, attributes))
		}
	}
	return texts
}

// decodeSigners reads the attribute allowed_signers of git.
func (s *gitSettings) decodeSigners(value any, diagnostics *diag.Diagnostics) {
	list, ok := value.([]any)
	if value == nil || !fleet.IsKnown(value) && !ok {
		return // what is not known has been seen
	}
	if !ok {
		reportGit(diagnostics, "git.allowed_signers must be a list of public keys")
		return
	}
	s.signers = &git.Verifier{}
	for i, element := range list {
		if !fleet.IsKnown(element) {
			s.complete = false
			continue
		}
		key, ok := element.(string)
		if !ok {
			reportGit(diagnostics, "allowed_signers[%d] must be a text", i)
		} else if err := s.signers.Add(key); err != nil {
			reportGit(diagnostics, "allowed_signers[%d]: %s", i, err)
		}
	}
}

// decodeOrigins reads the attribute credentials of git.
func (s *gitSettings) decodeOrigins(value any, diagnostics *diag.Diagnostics) {
	list, ok := value.([]any)
	if value == nil || !fleet.IsKnown(value) && !ok {
		return // what is not known has been seen
	}
	if !ok {
		reportGit(diagnostics, "git.credentials must be a list of objects: [{%s}]", strings.Join(originAttributes, ", "))
	}
	for i, element := range list {
		at := fmt.Sprintf("credentials[%d]", i)
		object, ok := element.(map[string]any)
		if !ok {
			if fleet.IsKnown(element) {
				reportGit(diagnostics, "%s must be an object: {%s}", at, strings.Join(originAttributes, ", "))
			}
			s.complete = s.complete && fleet.IsKnown(element)
			continue
		}
		address, _ := object["url"].(string)
		if git.CheckCredentialsURL(address) == nil {
			at = fmt.Sprintf("credentials[%q]", address)
		}
		text := s.texts(at+": ", object, originAttributes, diagnostics)
		if !fleet.IsKnown(object["url"]) {
			continue
		}
		if problem := checkOrigin(text); problem != "" {
			reportGit(diagnostics, "%s: %s", at, problem)
			continue
		}
		s.credentials.ByURL = append(s.credentials.ByURL, git.URLCredentials{URL: address, Login: git.Login{
			Token: text["token"], Username: text["username"], Password: text["password"],
			SSH: git.SSHCredentials{Key: text["ssh_private_key"], Passphrase: text["ssh_passphrase"], KnownHosts: text["ssh_known_hosts"]},
		}})
	}
	if err := s.credentials.Check(); err != nil {
		reportGit(diagnostics, "%s", err)
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
