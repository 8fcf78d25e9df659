package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact/origin"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

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
	o := readLogin(verificationTable, value)
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
