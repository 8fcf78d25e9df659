package repository

import (
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
)

// DecodeRollingOut reads the attribute rolling_out: what an assignment says of the deployment targets that are under way. They
// are in the order of their names. What is not known yet is left out.
func DecodeRollingOut(value types.Map, diagnostics *diag.Diagnostics) []rollout.Progress {
	var all []rollout.Progress
	said := tfvalue.PlainMap(value.Elements())
	for _, name := range slices.Sorted(maps.Keys(said)) {
		if !fleet.IsKnown(said[name]) {
			continue
		}
		text, _ := said[name].(string)
		progress, err := rollout.ParseProgress(name, text)
		if err != nil {
			diagnostics.AddAttributeError(path.Root("rolling_out").AtMapKey(name), "Invalid rolling_out",
				tfvalue.Sentence(err.Error())+" Set it to rolling_out of the assignment.")
		}
		all = append(all, progress)
	}
	return all
}
