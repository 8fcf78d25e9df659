package repository

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/evidence"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// GivenEvidence is the attribute evidence of a rollout: one document, or a list of them.
type GivenEvidence struct {
	evidence.List
	// At has the paths of the documents.
	At []path.Path
	// Known reports that the whole attribute is known and valid. Otherwise the list is empty.
	Known bool
}

// DecodeEvidence reads the attribute. It reports errors at their elements.
func DecodeEvidence(value types.Dynamic, diagnostics *diag.Diagnostics) GivenEvidence {
	attribute := path.Root("evidence")
	plain := tfvalue.Plain(value)
	given := GivenEvidence{Known: fleet.IsKnown(plain)}
	texts, isList := plain.([]any)
	if !isList {
		texts = []any{plain}
	}
	for i, text := range texts {
		at, name := attribute, ""
		if isList {
			at, name = attribute.AtListIndex(i), fmt.Sprintf("evidence[%d]: ", i)
		}
		switch text := text.(type) {
		case nil, fleet.Unknown:
		case string:
			document, err := evidence.ParseDocument([]byte(text))
			if err != nil {
				given.Known = false
				diagnostics.AddAttributeError(at, "Invalid evidence", tfvalue.Sentence(name+err.Error()))
				continue
			}
			given.List, given.At = append(given.List, document), append(given.At, at)
		default:
			given.Known = false
			diagnostics.AddAttributeError(at, "Invalid evidence", tfvalue.Sentence(name+
				"the evidence is a text, as data.flotilla_compliance.….evidence, or a list of such texts"))
		}
	}
	if !given.Known {
		given.List, given.At = nil, nil
	}
	return given
}

// CheckFleet refuses evidence of another fleet: measurements of another environment, and documents whose clusters are all
// unknown to the fleet. Documents with facts count together, as each may have other clusters.
func (g GivenEvidence) CheckFleet(of *fleet.Fleet, diagnostics *diag.Diagnostics) {
	var facts path.Path
	know, known := false, len(of.Clusters) == 0
	for i, d := range g.List {
		switch {
		case d.Measurements != nil && d.Measurements.Environment != of.Environment:
			tfvalue.AddErrorf(diagnostics, g.At[i], "Evidence of another environment",
				"The measurements are of environment %q, and this fleet is of %q. Set evidence to that of a flotilla_measurements with the same fleet.",
				d.Measurements.Environment, of.Environment)
		case d.Compliance != nil:
			CheckClusters(d.Compliance, of, g.At[i], diagnostics)
		case d.Facts != nil:
			if !know {
				facts = g.At[i]
			}
			know = know || len(d.Facts.Clusters) > 0
			known = known || slices.ContainsFunc(of.Clusters, func(cluster fleet.Cluster) bool {
				_, ok := d.Facts.Clusters[cluster.Name]
				return ok
			})
		}
	}
	if know && !known {
		diagnostics.AddAttributeError(facts, "Evidence of another fleet",
			"None of the clusters in the facts is a cluster of this fleet: a cluster has the same name in the fleet and in the provider's "+
				"clusters, or on the hub, that flotilla_cluster_facts asks.")
	}
}

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
