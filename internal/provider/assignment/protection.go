package assignment

import (
	"math"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
)

// decodeProtection reads the attribute protection, strictly.
func decodeProtection(value types.Dynamic, diagnostics *diag.Diagnostics) (limits rollout.Protection) {
	tfvalue.ReadStrictly("protection", value, diagnostics, func(o *fleet.Object) {
		limits = rollout.Protection{
			MaxRemoved:        limit(o, "max_removed", math.MaxInt32),
			MaxRemovedPercent: limit(o, "max_removed_percent", 100),
			AllowEmpty:        o.Bool("allow_empty"),
			EmptiedHosts:      o.Texts("emptied_hosts"),
		}
	})
	return limits
}

// limit reads a whole number; nil where there is none.
func limit(o *fleet.Object, name string, most int) *int64 {
	if !o.Known(name) {
		return nil
	}
	number := int64(o.Int(name, 0, 0, most))
	return &number
}
