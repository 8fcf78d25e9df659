package repository

import (
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
)

// CheckAbout refuses evidence of another assignment than the owner or, unless nil, than the owner before.
func CheckAbout(evidence *observe.Evidence, owner delivery.Owner, before *delivery.Owner, at path.Path, diagnostics *diag.Diagnostics) {
	is := about(owner)
	if evidence == nil || evidence.About == is {
		return
	}
	if before != nil {
		was := about(*before)
		was.Environment = is.Environment
		if evidence.About == was ||
			evidence.About == (observe.About{Owner: was.Owner, Environment: is.Environment, Branch: is.Branch, Path: is.Path}) {
			return
		}
	}
	tfvalue.AddErrorf(diagnostics, at, "Evidence of another assignment",
		"The evidence is about %s. This is %s. Set evidence to that of a flotilla_compliance with the same name, fleet and gitops_repo.",
		evidence.About, is)
}

func about(owner delivery.Owner) observe.About {
	return observe.About{Owner: owner.Name, Environment: owner.Environment, Branch: owner.Location.Branch, Path: owner.Location.Path}
}

// CheckClusters refuses evidence whose clusters are all unknown to the fleet.
func CheckClusters(evidence *observe.Evidence, of *fleet.Fleet, at path.Path, diagnostics *diag.Diagnostics) {
	known := slices.ContainsFunc(of.Clusters, func(cluster fleet.Cluster) bool {
		_, ok := evidence.Clusters[cluster.Name]
		return ok
	})
	if len(evidence.Clusters) > 0 && len(of.Clusters) > 0 && !known {
		diagnostics.AddAttributeError(at, "Evidence of another fleet",
			"None of the clusters in the evidence is a cluster of this fleet: set evidence to that of a flotilla_compliance with the same fleet.")
	}
}

// CheckTip refuses evidence gathered at a commit that the branch lacks: it belongs to another repository.
func CheckTip(found gitops.ReportedCommit, branch string, at path.Path, diagnostics *diag.Diagnostics) bool {
	if found.ID == "" {
		tfvalue.AddErrorf(diagnostics, at, "Evidence of another repository",
			"The evidence was gathered at a commit that branch %q of this repository does not have: %s. Set evidence to that of a "+
				"flotilla_compliance with the same gitops_repo, or read it again if the branch was rewritten.", branch, found.Reason)
	}
	return found.ID != ""
}
