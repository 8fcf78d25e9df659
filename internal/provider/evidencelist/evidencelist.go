// Package evidencelist reads the attribute evidence of what is rolled out: one document, or a list of them.
package evidencelist

import (
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/evidence"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
)

// Given is what the attribute evidence has.
type Given struct {
	evidence.List
	// At is where each of the documents is.
	At []path.Path
	// Known says that nothing of the attribute is unknown, or wrong. Else the list has no documents.
	Known bool
}

// Decode reads the attribute: one text, or a list of texts. An element that is null stands for none. Whatever is wrong is an
// error at its element; then the list has no documents, as where something is not known yet.
func Decode(value types.Dynamic, diagnostics *diag.Diagnostics) Given {
	attribute := path.Root("evidence")
	plain := tfvalue.Plain(value)
	given := Given{Known: fleet.IsKnown(plain)}
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

// CheckFleet refuses evidence of another fleet: measurements of another environment, and documents that know clusters, and
// none of the fleet. Facts of several documents may each be of some of its clusters, or of none, where another one has some.
func (g Given) CheckFleet(of *fleet.Fleet, diagnostics *diag.Diagnostics) {
	var facts path.Path
	know, known := false, len(of.Clusters) == 0
	for i, d := range g.List {
		switch {
		case d.Measurements != nil && d.Measurements.Environment != of.Environment:
			diagnostics.AddAttributeError(g.At[i], "Evidence of another environment", fmt.Sprintf(
				"The measurements are of environment %q, and this fleet is of %q. Set evidence to that of a flotilla_measurements with the same fleet.",
				d.Measurements.Environment, of.Environment))
		case d.Compliance != nil:
			repository.CheckClusters(d.Compliance, of, g.At[i], diagnostics)
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
		diagnostics.AddAttributeError(
			facts,
			"Evidence of another fleet",
			"None of the clusters in the facts is a cluster of this fleet: a cluster has the same name in the fleet and in the provider's clusters, or on the hub, that flotilla_cluster_facts asks.",
		)
	}
}
