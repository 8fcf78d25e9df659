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

// Values of mode and merge.
const (
	push        = "push"
	pullRequest = "pull_request"
	noMerge     = "none"
)

// DeliveryTable describes the attribute delivery.
var DeliveryTable = &fleet.Table{
	Name:    "delivery",
	Meaning: "The attribute `delivery` of `flotilla_assignment`: how to write. All other settings than `mode` are for pull requests.",
	Attributes: []fleet.Attribute{
		{Name: "mode", Default: push, Allowed: []string{push, pullRequest}, Meaning: "`push` commits to the branch; " +
			"`pull_request` keeps one pull request of this assignment up to date."},
		{Name: "forge", Allowed: forge.Names(), Meaning: "The kind of the Git host. Default: by its host name."},
		{Name: "api_url", Meaning: "URL of the Git host's API, if it does not follow from the URL of the repository."},
		{Name: "branch", Meaning: "The proposed branch. Default: `flotilla/<branch>/<path>/<name>`."},
		{Name: "title", Meaning: "Title of the pull request. Default: the first line of its commit message."},
		{Name: "labels", Type: fleet.TextsType, EmptyElements: true, Meaning: "Labels of the pull request. None on " +
			forge.TitlesWithout(func(k forge.GitHostKind) bool { return k.Labels }) + "."},
		{Name: "reviewers", Type: fleet.TextsType, EmptyElements: true, Meaning: "Requested reviewers: " + forge.ReviewersText() + "."},
		{
			Name:    "merge",
			Default: noMerge,
			Allowed: []string{noMerge, string(forge.WhenChecksSucceed), string(forge.Now)},
			Meaning: "Who merges the pull request: people, or Flotilla once the Git host's " +
				"checks succeed or at once. The merge is pinned to the pushed commit. `when_checks_succeed` is not available on " +
				forge.TitlesWithout(func(k forge.GitHostKind) bool { return k.AutoMerge }) + ".",
		},
	},
}

// SourceTable describes the attribute source.
var SourceTable = &fleet.Table{
	Name:    "source",
	Meaning: "The attribute `source` of `flotilla_assignment`: the commit of the Terraform configuration, which CI knows.",
	Attributes: []fleet.Attribute{
		{Name: "url", Required: true, Meaning: "URL of the repository, without credentials."},
		{Name: "commit", Required: true, Meaning: "Full id of the applied commit."},
	},
}

// decodeDelivery reads the attribute delivery. Unknown values are ignored.
func decodeDelivery(value types.Dynamic, diagnostics *diag.Diagnostics) (how delivery.Settings) {
	tfvalue.ReadStrictly("delivery", DeliveryTable, value, diagnostics, func(o *fleet.ObjectReader) {
		how = delivery.Settings{
			PullRequest: o.OneOf("mode") == pullRequest,
			Forge:       forge.Forge(o.OneOf("forge")),
			APIURL:      o.Text("api_url"), Head: o.Text("branch"),
			Request: readRequestOptions(o),
		}
		if how.Head != "" {
			if err := git.CheckBranch(how.Head); err != nil {
				o.Report("branch", "%s", err)
			}
		}
		mode, _ := o.Value("mode")
		for _, attribute := range DeliveryTable.Attributes {
			if name := attribute.Name; mode == push && name != "mode" && o.Has(name) {
				o.Report(name, "mode = \"push\" has no other settings; remove them, or set mode = \"pull_request\"")
			}
		}
	})
	return how
}

func readRequestOptions(o *fleet.ObjectReader) forge.RequestOptions {
	options := forge.RequestOptions{
		Title:  fleet.ReadOpenText(o, "title"),
		Labels: o.Texts("labels"), Reviewers: o.Texts("reviewers"),
	}
	if merge := o.OneOf("merge"); merge != noMerge {
		options.Merge = forge.MergeMode(merge)
	}
	return options
}

// decodeSource reads the attribute source; "" while a part is unknown.
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
