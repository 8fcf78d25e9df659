package assignment

import (
	"cmp"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/folder"
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

// decodeSource reads the attribute source, strictly: "" while some of it is not known.
func decodeSource(value types.Dynamic, diagnostics *diag.Diagnostics) (source folder.Source) {
	tfvalue.ReadStrictly("source", value, diagnostics, func(o *fleet.Object) {
		url, commit := o.Required("url"), o.Required("commit")
		if !fleet.IsKnown(tfvalue.Plain(value)) {
			return
		}
		source = folder.Source(url + "@" + commit)
		if err := cmp.Or(git.CheckURL(url), folder.CheckText(string(source))); err != nil && url != "" {
			o.Report("url", "%s", err)
		}
		if !folder.IsCommit(commit) && commit != "" {
			o.Report("commit", "must be the full id of a commit, 40 or 64 digits in lower-case hex")
		}
	})
	return source
}
