package assignment

import (
	"math"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
)

// ProtectionTable describes the attribute protection.
var ProtectionTable = &fleet.Table{
	Name: "protection",
	Meaning: "The attribute `protection` of `flotilla_assignment`: limits on removals, by an update, a move to another location, a " +
		"replacement, a destroy or a lost state. With neither `max_removed` nor `max_removed_percent`, up to half of all assignments may " +
		"be removed, and always ten; and up to half of the workloads of a host, and of the hosts of a workload, that has five or more.",
	Attributes: []fleet.Attribute{
		{Name: "max_removed", Type: fleet.WholeType, Most: math.MaxInt32, Meaning: "The number of assignments that may be removed."},
		{Name: "max_removed_percent", Type: fleet.WholeType, Most: 100, Meaning: "The share that may be removed: of all " +
			"assignments, of the workloads of each host in the fleet, and of the hosts of each workload in the fleet. Unless it " +
			"is 0, one of several may always be removed. Below 100, a host or a workload in the fleet does not lose all."},
		{Name: "allow_empty", Type: fleet.BoolType, Default: false, Meaning: "Whether a fleet may remove all assignments."},
		{Name: "emptied_hosts", Type: fleet.TextsType, EmptyElements: true, Meaning: "Hosts in the fleet that may lose all their " +
			"assignments. Without limits, it matters for hosts with five or more assignments."},
	},
}

func decodeProtection(value types.Dynamic, diagnostics *diag.Diagnostics) (limits rollout.Protection) {
	tfvalue.ReadStrictly("protection", ProtectionTable, value, diagnostics, func(o *fleet.ObjectReader) {
		limits = rollout.Protection{
			MaxRemoved:        limit(o, "max_removed"),
			MaxRemovedPercent: limit(o, "max_removed_percent"),
			AllowEmpty:        o.Bool("allow_empty"),
			EmptiedHosts:      o.Texts("emptied_hosts"),
		}
	})
	return limits
}

func limit(o *fleet.ObjectReader, name string) *int64 {
	if !o.Known(name) {
		return nil
	}
	number := int64(o.Int(name))
	return &number
}
