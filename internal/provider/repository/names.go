package repository

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// Names are the names to find on a branch, if given.
type Names struct{ Assignment, Host, DeploymentTarget string }

// WarnOfNames warns of names without a record at a location: a misspelt name and one that is not written yet both give an
// empty result without an error.
func WarnOfNames(ctx context.Context, from *delivery.Service, at folder.Location, given Names, diagnostics *diag.Diagnostics) {
	if given == (Names{}) {
		return
	}
	found, err := from.ReadInventory(ctx, at, gitops.InventoryFilter{})
	if err != nil {
		return
	}
	names, hosts, targets := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, owner := range found.Owners {
		names[owner.Name] = true
	}
	for i := range found.Assignments {
		hosts[found.Assignments[i].Host], targets[found.Assignments[i].DeploymentTarget] = true, true
	}
	for _, one := range []struct {
		attribute, kind, name string
		known                 map[string]bool
	}{
		{"name", "assignment", given.Assignment, names}, {"host", "host", given.Host, hosts},
		{"deployment_target", "deployment target", given.DeploymentTarget, targets},
	} {
		if one.name == "" || one.known[one.name] {
			continue
		}
		diagnostics.AddAttributeWarning(path.Root(one.attribute), "Branch has no such name", tfvalue.Sentence(fmt.Sprintf(
			"branch %q has no %s %q%s", at.Branch, one.kind, one.name, fleet.DidYouMean(one.name, slices.Sorted(maps.Keys(one.known)))))+
			" It may not be written yet.")
	}
}
