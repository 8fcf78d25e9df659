package provider

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
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

// This file decodes the provider's attributes cache, verification and custom_resource_definitions, and reads logins.

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
				report("%s: %s %s", element.Path, nameOf(object), err)
				continue
			}
			defined.All = append(defined.All, definition)
		}
	}
	defined.Sum = hex.EncodeToString(sum.Sum(nil))
	return defined
}

func nameOf(object map[string]any) string {
	metadata, _ := object["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	return fmt.Sprintf("%q", name)
}
