package assignment

import (
	"cmp"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// The values of mode and merge.
const (
	push        = "push"
	pullRequest = "pull_request"
	noMerge     = "none"
)

// DeliveryTable describes the attribute delivery.
var DeliveryTable = &fleet.Table{
	Name:    "delivery",
	Meaning: "The attribute `delivery` of `flotilla_assignment`: how to write. All but `mode` is for pull requests.",
	Attributes: []fleet.Attribute{
		{
			Name:    "mode",
			Default: push,
			Allowed: []string{push, pullRequest},
			Meaning: "`push` commits to the branch; `pull_request` keeps one pull request of this assignment up to date.",
		},
		{Name: "forge", Allowed: forge.Names(), Meaning: "The kind of the Git host. Unset: by the Git host's name."},
		{Name: "api_url", Meaning: "The Git host's API, where that does not follow from the URL of the repository."},
		{Name: "branch", Meaning: "The branch that is proposed. Unset: `flotilla/<branch>/<path>/<name>`."},
		{Name: "title", Meaning: "Title of the pull request. Unset: the first line of the message of its commit."},
		{Name: "labels", Type: fleet.TextsType, EmptyElements: true, Meaning: "Labels of the pull request."},
		{Name: "reviewers", Type: fleet.TextsType, EmptyElements: true, Meaning: "Users who are asked for a review."},
		{
			Name:    "merge",
			Default: noMerge,
			Allowed: []string{noMerge, string(forge.WhenChecksSucceed), string(forge.Now)},
			Meaning: "Whether the pull request is merged: by people, once the Git host's " +
				"checks succeed, or at once. The merge is pinned to the commit that was pushed.",
		},
	},
}

// SourceTable describes the attribute source.
var SourceTable = &fleet.Table{
	Name:    "source",
	Meaning: "The attribute `source` of `flotilla_assignment`: where the configuration of Terraform is, which CI knows.",
	Attributes: []fleet.Attribute{
		{Name: "url", Required: true, Meaning: "URL of its repository, without credentials."},
		{Name: "commit", Required: true, Meaning: "Full id of the commit that is applied."},
	},
}

// decodeDelivery reads the attribute delivery, strictly. Unknown values are ignored.
func decodeDelivery(value types.Dynamic, diagnostics *diag.Diagnostics) (how delivery.Settings) {
	tfvalue.ReadStrictly("delivery", DeliveryTable, value, diagnostics, func(o *fleet.ObjectReader) {
		how = delivery.Settings{
			PullRequest: o.OneOf("mode") == pullRequest,
			Forge:       forge.Forge(o.OneOf("forge")),
			APIURL:      o.Text("api_url"), Head: o.Text("branch"), Title: fleet.ReadOpenText(o, "title"),
			Labels: o.Texts("labels"), Reviewers: o.Texts("reviewers"),
		}
		if merge := o.OneOf("merge"); merge != noMerge {
			how.Merge = forge.MergeMode(merge)
		}
		if how.Head != "" {
			if err := git.CheckBranch(how.Head); err != nil {
				o.Report("branch", "%s", err)
			}
		}
		mode, _ := o.Value("mode")
		for _, name := range []string{"forge", "api_url", "branch", "title", "labels", "reviewers", "merge"} {
			if mode == "push" && o.Has(name) {
				o.Report(name, "mode = \"push\" has no other settings; remove them, or set mode = \"pull_request\"")
			}
		}
	})
	return how
}

// decodeSource reads the attribute source, strictly. It returns "" while a part is unknown.
func decodeSource(value types.Dynamic, diagnostics *diag.Diagnostics) (source folder.Source) {
	tfvalue.ReadStrictly("source", SourceTable, value, diagnostics, func(o *fleet.ObjectReader) {
		url, commit := o.Required("url"), o.Required("commit")
		if !fleet.IsKnown(tfvalue.Plain(value)) {
			return
		}
		source = folder.Source(url + "@" + commit)
		if err := cmp.Or(git.CheckURL(url), folder.CheckText(string(source))); err != nil && url != "" {
			o.Report("url", "%s", err)
		} else {
			fleet.ReadOpenText(o, "url")
		}
		if !folder.IsCommit(commit) && commit != "" {
			o.Report("commit", "must be the full id of a commit, 40 or 64 digits in lower-case hex")
		}
	})
	return source
}
