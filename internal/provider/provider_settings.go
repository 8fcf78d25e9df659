package provider

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"os"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact/origin"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/kinds"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/pipeline"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/diskcache"
)

// This file decodes the provider's attributes cache, verification and custom_resource_definitions, and reads logins. It
// describes all attributes but clusters, which package connection describes.

// loginReader reads a provider attribute with credentials, strictly.
type loginReader struct {
	*fleet.ObjectReader
	reader *fleet.Reader
}

func readLogin(table *fleet.Table, value types.Dynamic) loginReader {
	reader := &fleet.Reader{}
	if given := tfvalue.Plain(value); given != nil {
		if object := reader.Object(table, nil, given); object != nil {
			return loginReader{object, reader}
		}
	}
	return loginReader{reader.Object(table, nil, map[string]any{}), reader}
}

// textOr returns the text of a key, or of an environment variable if the key is absent.
func (r loginReader) textOr(key, variable string) string {
	if !r.Has(key) {
		return os.Getenv(variable)
	}
	return r.Text(key)
}

// login reads token, username and password. A token in the environment must not override a configured password.
func (r loginReader) login(prefix string) git.Login {
	login := git.Login{Username: r.textOr("username", prefix+"USERNAME"), Password: r.textOr("password", prefix+"PASSWORD")}
	if r.Has("password") {
		login.Token = r.Text("token")
	} else {
		login.Token = r.textOr("token", prefix+"TOKEN")
	}
	return login
}

// finish reports the mistakes of the attribute, and whether it is known.
func (r loginReader) finish(attribute string, diagnostics *diag.Diagnostics) bool {
	r.Finish()
	for _, finding := range r.reader.Findings {
		reportInvalid(diagnostics, attribute, finding.String())
	}
	return !r.reader.Unknown
}

func reportInvalid(diagnostics *diag.Diagnostics, attribute, message string) {
	diagnostics.AddAttributeError(path.Root(attribute), "Invalid "+attribute, tfvalue.Sentence(message))
}

type cacheSettings struct {
	folder   *diskcache.Folder
	isNamed  bool // by the configuration
	complete bool // false while a part is unknown
}

// The limits in MiB. An artifact of 128 MiB and its rendered objects must fit.
const (
	defaultCacheMiB = diskcache.DefaultMaxSize >> 20
	leastCacheMiB   = 256
	mostCacheMiB    = 1 << 20
)

func cacheAttribute() schema.DynamicAttribute {
	attribute := schemas.OfProvider("Where artifacts and final objects are kept on the machine of the run, and how much of them.",
		fleet.ObjectType, CacheTable)
	attribute.Sensitive = false // it has no credentials
	return attribute
}

func decodeCache(value types.Dynamic, diagnostics *diag.Diagnostics) cacheSettings {
	o := readLogin(CacheTable, value)
	path := o.Text("path")
	folder := diskcache.New(cmp.Or(path, diskcache.DefaultPath()), int64(o.Int("max_mib"))<<20)
	return cacheSettings{folder, path != "", o.finish("cache", diagnostics)}
}

// check reports a configured folder that cannot be trusted. Code that needs a default folder reports that itself.
func (s *cacheSettings) check(diagnostics *diag.Diagnostics) {
	if !s.isNamed {
		return
	}
	if err := s.folder.Check(); err != nil {
		reportInvalid(diagnostics, "cache", "path: "+err.Error())
	}
}

// verificationSettings is the provider's attribute verification.
type verificationSettings struct {
	sources  []origin.TrustedSource
	complete bool // false while a part is unknown
}

func decodeVerification(value types.Dynamic, diagnostics *diag.Diagnostics) (settings verificationSettings) {
	switch {
	case value.IsNull(), value.IsUnderlyingValueNull():
		return verificationSettings{complete: true}
	case value.IsUnknown(), value.IsUnderlyingValueUnknown():
		return settings
	}
	o := readLogin(VerificationTable, value)
	o.Require("sources", "is required: a list of objects {url, keys}")
	for _, source := range o.List("sources") {
		settings.decodeSource(o, source)
	}
	if o.Has("sources") && len(settings.sources) == 0 && len(o.reader.Findings) == 0 && !o.reader.Unknown {
		o.Report("sources", "is empty: list where content may come from, or leave verification out")
	}
	if err := origin.CheckTrusted(settings.sources); err != nil {
		o.Report("sources", "%s", err)
	}
	settings.complete = o.finish("verification", diagnostics)
	return settings
}

// decodeSource reads one source. Its errors never repeat a key, which may be a private one by mistake.
func (s *verificationSettings) decodeSource(o loginReader, source *fleet.ObjectReader) {
	url, isUnsigned := source.Required("url"), source.Bool("unsigned")
	source.Texts("keys")
	var keys []string
	var paths []*fleet.Path
	fleet.EachText(source, "keys", func(path *fleet.Path, key string) {
		keys, paths = append(keys, key), append(paths, path)
	})
	source.Finish()
	switch {
	case url == "", o.reader.Unknown:
		return
	case isUnsigned && len(keys) > 0:
		source.Report("unsigned", "cannot be set together with keys: remove one of the two")
		return
	case !isUnsigned && len(keys) == 0:
		source.Report("keys", "has no key: list the public keys that sign, or set unsigned = true")
		return
	}
	if err := origin.CheckTrustedURL(url); err != nil {
		source.Report("url", "%s", err)
		return
	}
	trusted, wrong := origin.NewTrustedSource(url, keys)
	for i, path := range paths {
		if err := wrong[i]; err != nil {
			o.reader.Report(path, "%s", err)
		}
	}
	s.sources = append(s.sources, trusted)
}

const definitionsAttribute = "custom_resource_definitions"

// decodeDefinitions reads CustomResourceDefinitions. Unknown texts define nothing.
func decodeDefinitions(value types.Dynamic, diagnostics *diag.Diagnostics) (defined pipeline.Definitions) {
	at := path.Root(definitionsAttribute)
	report := func(format string, arguments ...any) {
		tfvalue.AddErrorf(diagnostics, at, "Invalid definitions", format, arguments...)
	}
	read := tfvalue.Plain(value)
	elements, areMany := fleet.Elements((*fleet.Path)(nil).Attribute(definitionsAttribute), read)
	if !areMany && read != nil {
		elements = []fleet.Element{{Path: (*fleet.Path)(nil).Attribute(definitionsAttribute), Value: read}}
	}
	sum := sha256.New()
	for _, element := range elements {
		if _, isUnknown := element.Value.(fleet.Unknown); isUnknown {
			continue
		}
		text, isText := element.Value.(string)
		if !isText {
			report("%s must be a text of YAML documents, or a list or map of such texts", element.Path)
			continue
		}
		objects, err := fleet.ReadObjects(text)
		if err != nil {
			report("%s cannot be read: %s", element.Path, err)
			continue
		}
		if len(objects) == 0 {
			report("%s has no CustomResourceDefinition", element.Path)
		}
		sum.Write([]byte(text))
		for _, object := range objects {
			if !kinds.IsDefinition(object) {
				continue // files of projects also have Namespaces and the like
			}
			definition, err := kinds.ReadDefinition(object)
			if err != nil {
				metadata, _ := object["metadata"].(map[string]any)
				name, _ := metadata["name"].(string)
				report("%s: %q %s", element.Path, name, err)
				continue
			}
			defined.All = append(defined.All, definition)
		}
	}
	defined.Sum = hex.EncodeToString(sum.Sum(nil))
	return defined
}

// GitTable describes the attribute git.
var GitTable = &fleet.Table{
	Name: "git",
	Meaning: "The attribute `git` of the provider: how to reach GitOps repositories, and who commits. Secrets that come from the " +
		"environment, or from ephemeral values, are in no plan and no state.",
	Attributes: []fleet.Attribute{
		{Name: "token", Meaning: "Access token; it wins over a password. It is sent to the server of the GitOps repository alone, " +
			"and so are the other credentials here; any other repository needs an entry of `credentials`. Unset: " +
			"`FLOTILLA_GIT_TOKEN`, unless `password` is set here."},
		{Name: "username", Meaning: "User name for a password, or for a token where the Git host requires a certain one. Unset: " +
			"`FLOTILLA_GIT_USERNAME`."},
		{Name: "password", Meaning: "Password. Unset: `FLOTILLA_GIT_PASSWORD`."},
		appAttribute("A GitHub App in place of a token. Unset: `FLOTILLA_GITHUB_APP_ID`, `FLOTILLA_GITHUB_APP_INSTALLATION_ID`, " +
			"`FLOTILLA_GITHUB_APP_PRIVATE_KEY` and `FLOTILLA_GITHUB_APP_URL`, unless there is a token or a password."),
		{Name: "ssh_private_key", Meaning: "PEM text of the private key for ssh. Unset: `FLOTILLA_SSH_PRIVATE_KEY`, else the agent."},
		{Name: "ssh_passphrase", Meaning: "Its passphrase. Unset: `FLOTILLA_SSH_PASSPHRASE`."},
		{Name: "ssh_known_hosts", Meaning: "Host keys, as in a known_hosts file. Default: the files of the user and the machine. " +
			"A host key is always checked."},
		{Name: "credentials", Type: fleet.ObjectsType, Of: credentialsTable, Meaning: "Credentials for repositories whose URL " +
			"begins with `url`, also for repositories other than the GitOps repository: of manifests, files, registrations and " +
			"commit statuses. The attributes above are not used for them."},
		{Name: "ca_certificates", Meaning: "PEM text of certificates that are trusted beside the machine's."},
		{Name: "signing_key", Meaning: "Private key that signs commits: armored OpenPGP, or ssh. Unset: `FLOTILLA_SIGNING_KEY`."},
		{Name: "signing_passphrase", Meaning: "Its passphrase. Unset: `FLOTILLA_SIGNING_PASSPHRASE`."},
		{Name: "allowed_signers", Type: fleet.TextsType, EmptyElements: true, Meaning: "Public keys: armored OpenPGP, or ssh, " +
			"as in a `.pub` file. With it, Flotilla believes a record that the state does not know only if one of these " +
			"keys signed the commit that last changed it. Any other such record is drift: the next apply repairs it, and a folder that " +
			"only this record lists is not removed. It needs a `signing_key`, and must contain its public key."},
		{Name: "author_name", Meaning: "Name of author and committer. Unset: `Flotilla`."},
		{Name: "author_email", Meaning: "Their address."},
	},
}

func appAttribute(meaning string) fleet.Attribute {
	return fleet.Attribute{Name: "github_app", Type: fleet.ObjectType, Of: appTable, Meaning: meaning}
}

var credentialsTable = &fleet.Table{
	Name: "credentials by URL",
	Meaning: "Credentials for repositories whose URL begins with `url`: with its scheme, host, port and each segment of its path. The " +
		"longest `url` wins. If such a repository refers to another server, that server gets none of " +
		"them. An entry with `url` alone allows such references to its server, also to a private address.",
	Attributes: []fleet.Attribute{
		{Name: "url", Required: true, Meaning: "The beginning of URLs of repositories, such as `https://git.example.com/platform`."},
		{Name: "token", Meaning: "Access token; it wins over a password."},
		{Name: "username", Meaning: "User name for a password, or for a token where the Git host requires a certain one."},
		{Name: "password", Meaning: "Password."},
		appAttribute("A GitHub App in place of a token."),
		{Name: "ssh_private_key", Meaning: "PEM text of the private key for ssh."},
		{Name: "ssh_passphrase", Meaning: "Its passphrase."},
		{Name: "ssh_known_hosts", Meaning: "Host keys, as in a known_hosts file. Default: the files of the user and the machine."},
	},
}

var appTable = &fleet.Table{
	Name:    "GitHub App",
	Meaning: "A GitHub App. The provider gets tokens of an hour with its private key, and renews them.",
	Attributes: []fleet.Attribute{
		{Name: "id", Required: true, Meaning: "Id of the App."},
		{Name: "installation_id", Required: true, Meaning: "Id of the App's installation on the account that has the repositories."},
		{Name: "private_key", Required: true, Meaning: "PEM text of its private key."},
		{Name: "url", Meaning: "The API of GitHub Enterprise, such as `https://github.example.com/api/v3`, or " +
			"`https://api.team.ghe.com`. Default: `https://api.github.com`. Only this server gets the App's tokens, and requests " +
			"for them."},
	},
}

// VerificationTable describes the attribute verification.
var VerificationTable = &fleet.Table{
	Name: "verification",
	Meaning: "The attribute `verification` of the provider: the keys that must have signed content before it is rendered into final " +
		"objects. With it, content from any other source than `sources` is an error: see [Signatures](rendering.md#signatures).",
	Attributes: []fleet.Attribute{
		{Name: "sources", Type: fleet.ObjectsType, Required: true, Of: trustedTable, Meaning: "Sources of content, and the keys " +
			"that must have signed it."},
	},
}

var trustedTable = &fleet.Table{
	Name:    "trusted source",
	Meaning: "The keys that must have signed content whose URL begins with `url`. The longest `url` wins.",
	Attributes: []fleet.Attribute{
		{Name: "url", Required: true, Meaning: "The beginning of URLs of repositories of Git, or of registries: " +
			"`https://git.example.com/shop`, `oci://registry.example.com/shop`."},
		{Name: "keys", Type: fleet.TextsType, EmptyElements: true, Meaning: "Public keys. One must have signed. For Git: armored " +
			"OpenPGP, or ssh, as in a `.pub` file. For registries: keys of cosign, in PEM. Required, unless `unsigned` is " +
			"true."},
		{Name: "unsigned", Type: fleet.BoolType, Default: false, Meaning: "Content needs no signature. A `verify` in the " +
			"parameters of a cluster type then is an error."},
	},
}

// MeasurementsTable describes the attribute measurements.
var MeasurementsTable = &fleet.Table{
	Name:    "measurements",
	Meaning: "The attribute `measurements` of the provider: credentials for the servers that `flotilla_measurements` asks.",
	Attributes: []fleet.Attribute{
		{Name: "url", Meaning: "The beginning of the URLs that get `token`, or `username` and `password`: no other server does. " +
			"It is required with them. Unset: `FLOTILLA_MEASUREMENTS_URL`."},
		{Name: "token", Meaning: "Bearer token for servers at `url`; it wins over a password. Unset: " +
			"`FLOTILLA_MEASUREMENTS_TOKEN`, unless `password` is set here."},
		{Name: "username", Meaning: "User name, for basic authentication. Unset: `FLOTILLA_MEASUREMENTS_USERNAME`."},
		{Name: "password", Meaning: "Password, for basic authentication. Unset: `FLOTILLA_MEASUREMENTS_PASSWORD`."},
		{Name: "credentials", Type: fleet.ObjectsType, Of: serverTable, Meaning: "Credentials for further servers. The entry with " +
			"the longest `url` wins, also over the attributes above."},
		{Name: "ca_certificates", Meaning: "PEM text of certificates that are trusted beside the machine's."},
	},
}

var serverTable = &fleet.Table{
	Name:    "credentials of a server",
	Meaning: "Credentials for servers whose URL begins with `url`. The longest `url` wins.",
	Attributes: []fleet.Attribute{
		{Name: "url", Required: true, Meaning: "The beginning of URLs, such as `https://mimir.example.com`."},
		{Name: "token", Meaning: "Bearer token; it wins over a password."},
		{Name: "username", Meaning: "User name, for basic authentication."},
		{Name: "password", Meaning: "Password, for basic authentication."},
		{Name: "headers", Type: fleet.TextMapType, NullElements: true, Meaning: "Secret headers."},
	},
}

// CacheTable describes the attribute cache.
var CacheTable = &fleet.Table{
	Name: "cache",
	Meaning: "The attribute `cache` of the provider: where artifacts and final objects are kept on the machine of the run. " +
		"[Rendering](rendering.md#the-cache) lists its content.",
	Attributes: []fleet.Attribute{
		{Name: "path", Meaning: "Folder, which only the user of the run may own and write to. It is created if it does not exist. " +
			"Unset: `FLOTILLA_CACHE_DIR`, else `flotilla` in the user's folder for caches."},
		{Name: "max_mib", Type: fleet.WholeType, Default: defaultCacheMiB, Least: leastCacheMiB, Most: mostCacheMiB,
			Meaning: "Size in MiB above which the entries that were used longest ago are removed."},
	},
}
