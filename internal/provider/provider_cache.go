package provider

import (
	"cmp"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/diskcache"
)

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

var cacheTable = &fleet.Table{
	Name: "cache",
	Meaning: "The attribute `cache` of the provider: where artifacts and final objects are kept on the machine of the run. " +
		"[Rendering](rendering.md#the-cache) lists its content.",
	Attributes: []fleet.Attribute{
		{Name: "path", Meaning: "Folder, which only the user of the run may own and write to. It is created if it does not exist. " +
			"Unset: `FLOTILLA_CACHE_DIR`, else `flotilla` in the user's folder for caches."},
		{
			Name:    "max_mib",
			Type:    fleet.WholeType,
			Default: defaultCacheMiB,
			Least:   leastCacheMiB,
			Most:    mostCacheMiB,
			Meaning: "Size in MiB above which the entries that were used longest ago are removed.",
		},
	},
}

func cacheAttribute() schema.DynamicAttribute {
	attribute := schemas.OfProvider("Where artifacts and final objects are kept on the machine of the run, and how much of them.",
		fleet.ObjectType, cacheTable)
	attribute.Sensitive = false // it has no credentials
	return attribute
}

func decodeCache(value types.Dynamic, diagnostics *diag.Diagnostics) cacheSettings {
	o := readLogin(cacheTable, value)
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
