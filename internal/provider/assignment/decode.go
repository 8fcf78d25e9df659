package assignment

import (
	"cmp"
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/frame"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// A plan of an assignment is a chain of steps. Each step takes the value of the previous step and returns a new one:
//
//	decode    configuration and state                      request
//	want      folders that the owner should have           wanted
//	decide    folders that may change now, constraints     decision
//	compare   effect on the location, protection           comparison
//	describe  lines of the attribute changes               description
//
// An apply runs the same steps with the same input. It describes only changes that the plan could not know, and then writes
// the decision.

// request is one plan or one apply.
type request struct {
	connection  *connection.Connection
	diagnostics *diag.Diagnostics
	model       *assignmentModel // plan and apply set its computed attributes
	prior       assignmentModel  // of the state; all null if the assignment is new
	before      deployment
	owner       delivery.Owner
	isLocated   bool // name and gitops_repo are known
	settings    delivery.Settings
	protection  rollout.Protection
	isApply     bool
	// isReplacement reports that the plan replaces an object. Terraform plans a replacement twice: first with the prior
	// state, then without.
	isReplacement bool
}

// deployment is the present assignment, as the last apply wrote it and the last refresh found it. It is empty for a new
// one.
type deployment struct {
	isNew bool
	// saved is the state as Terraform has it. recorded also has the new name of a renamed branch or repository, and state
	// the present names of hosts and the present places of folders.
	saved, recorded, state *delivery.OwnerState
	private                *assignmentPrivate // empty if there is none
	trees                  folder.Trees       // of the owner
	isRelocated            bool               // the branch or the repository was renamed
}

func decode(ctx context.Context, c *frame.Call[assignmentModel], private *assignmentPrivate) request {
	location, isLocated := repository.DecodeLocation(c.Model.GitopsRepo, c.Diagnostics)
	r := request{
		connection: c.Connection, diagnostics: c.Diagnostics, model: c.Model,
		owner:      delivery.Owner{Location: location, Name: c.Model.Name.ValueString()},
		isLocated:  isLocated && !c.Model.Name.IsUnknown(),
		settings:   decodeDelivery(c.Model.Delivery, c.Diagnostics),
		protection: decodeProtection(c.Model.Protection, c.Diagnostics),
	}
	if c.Prior == nil {
		empty := &delivery.OwnerState{Owner: r.owner}
		r.before = deployment{
			isNew: true, saved: empty, recorded: empty, state: empty, private: &assignmentPrivate{}, trees: folder.Trees{},
		}
		return r
	}
	r.prior = *c.Prior
	saved, _ := decodeState(c, c.Prior, private)
	r.before = deployment{saved: saved, recorded: saved, private: private}
	if r.isLocated && c.Connection.CanAsk() {
		if relocated := c.Connection.Delivery.FindRelocated(ctx, saved, r.owner.Location); relocated != nil {
			r.before.recorded, r.before.private, r.before.isRelocated = relocated, private.refreshed(relocated), true
			r.prior.Content = contentValue(relocated.Current())
		}
	}
	if r.before.private == nil {
		r.before.private = &assignmentPrivate{}
	}
	r.before.state, r.before.trees = r.before.recorded, r.before.recorded.Current()
	return r
}

// decodeState returns the assignment in the state; false if its location cannot be read.
func decodeState(c *frame.Call[assignmentModel], state *assignmentModel, private *assignmentPrivate) (*delivery.OwnerState, bool) {
	location, ok := repository.DecodeLocation(state.GitopsRepo, c.Diagnostics)
	known := &delivery.OwnerState{
		Owner:       delivery.Owner{Location: location, Name: state.Name.ValueString()},
		Settings:    decodeDelivery(state.Delivery, c.Diagnostics),
		PullRequest: state.PullRequest.ValueString(),
	}
	if private != nil {
		known.Owner.Environment, known.SavedState = private.Environment, private.SavedState
	}
	return known, ok
}

func (r *request) formerOwner() delivery.Owner {
	owner := r.owner
	owner.Name = r.before.state.Owner.Name
	return owner
}

func (d *deployment) isProposed() bool { return d.private.Proposed }

// known returns the recorded state; nil for a new assignment.
func (d *deployment) known() *delivery.OwnerState {
	if d.isNew {
		return nil
	}
	return d.recorded
}

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
