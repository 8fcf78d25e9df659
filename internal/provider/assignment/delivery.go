package assignment

import (
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
)

// decodeDelivery reads the attribute delivery, strictly. Unknown values are ignored.
func decodeDelivery(value types.Dynamic, diagnostics *diag.Diagnostics) (how delivery.Settings) {
	tfvalue.ReadStrictly("delivery", value, diagnostics, func(o *fleet.Object) {
		mode := o.OneOf("mode", "", "push", "pull_request")
		how = delivery.Settings{
			PullRequest: mode == "pull_request",
			Forge:       forge.Forge(o.OneOf("forge", "", forge.Names()...)),
			APIURL:      o.Text("api_url"), Head: o.Text("branch"), Title: o.Text("title"),
			Labels: o.Texts("labels"), Reviewers: o.Texts("reviewers"),
		}
		if merge := o.OneOf("merge", "none", "none", "when_checks_succeed", "now"); merge != "none" {
			how.Merge = forge.MergeMode(merge)
		}
		if how.Head != "" {
			if err := git.CheckBranch(how.Head); err != nil {
				o.Report("branch", "%s", err)
			}
		}
		for _, name := range []string{"forge", "api_url", "branch", "title", "labels", "reviewers", "merge"} {
			if mode == "push" && o.Has(name) {
				o.Report(name, "mode = \"push\" has no other settings; remove them, or set mode = \"pull_request\"")
			}
		}
	})
	return how
}
