package assignment

import (
	"math"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
)

// ProtectionTable is that of the attribute protection.
var ProtectionTable = &fleet.Table{
	Name: "protection",
	Meaning: "The attribute `protection` of `flotilla_assignment`: the removals that are allowed, in whatever way a folder goes: by an update, a move to another location, a " +
		"replacement, a destroy, a lost state. With neither `max_removed` nor `max_removed_percent`, half of all assignments may be removed.",
	Attributes: []fleet.Attribute{
		{Name: "max_removed", Type: fleet.WholeType, Most: math.MaxInt32, Meaning: "How many assignments may be removed."},
		{Name: "max_removed_percent", Type: fleet.WholeType, Most: 100, Meaning: "Which share of all assignments may be removed. Unless it is 0, up to 10 may always be removed."},
		{Name: "allow_empty", Type: fleet.BoolType, Default: false, Meaning: "Whether a fleet may assign nothing where something is deployed."},
		{Name: "emptied_hosts", Type: fleet.TextsType, EmptyElements: true, Meaning: "Hosts that stay in the fleet and may lose all of five or more assignments."},
	},
}

// decodeProtection reads the attribute protection, strictly.
func decodeProtection(value types.Dynamic, diagnostics *diag.Diagnostics) (limits rollout.Protection) {
	tfvalue.ReadStrictly("protection", ProtectionTable, value, diagnostics, func(o *fleet.Object) {
		limits = rollout.Protection{
			MaxRemoved:        limit(o, "max_removed"),
			MaxRemovedPercent: limit(o, "max_removed_percent"),
			AllowEmpty:        o.Bool("allow_empty"),
			EmptiedHosts:      o.Texts("emptied_hosts"),
		}
	})
	return limits
}

// limit reads a whole number; nil where there is none.
func limit(o *fleet.Object, name string) *int64 {
	if !o.Known(name) {
		return nil
	}
	number := int64(o.Int(name))
	return &number
}
