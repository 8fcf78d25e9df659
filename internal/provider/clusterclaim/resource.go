// Package clusterclaim implements flotilla_cluster_claim, which takes clusters of a pool and records them in a GitOps repository.
package clusterclaim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/frame"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/privatestate"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/timeouts"
)

// New returns the resource.
func New() resource.Resource {
	return frame.Resource[clusterClaimModel]{
		Name: "cluster_claim", Schema: definition, Validate: validate, Plan: plan,
		Create: create, Read: read, Update: update, Delete: remove, Import: importState,
		Identity:  repository.Identity,
		Identify:  func(m *clusterClaimModel) map[string]types.String { return repository.Identify(m.Name, m.GitopsRepo) },
		WriteOnly: func(m *clusterClaimModel) map[string]any { return map[string]any{"pool": &m.Pool, "fleet": &m.Fleet} },
	}.New()
}

// definition makes pool and fleet write-only: a change of them alone changes nothing.
var definition = schema.Schema{
	MarkdownDescription: "Takes free clusters of a pool. It records them in the GitOps repository by a commit that is pushed as a " +
		"compare-and-swap: two claims at one location (repository, branch and path) never have the same cluster, not even from different " +
		"states. A destroy releases them. `flotilla_inventory` lists all claims.\n\nA claim keeps its clusters even if the pool does not " +
		"select them any more. To grow, it takes the first free clusters by name; to shrink, it releases the last ones that it took. A " +
		"cluster that leaves the fleet is released and replaced, which the plan shows.",
	Attributes: map[string]schema.Attribute{
		"name": schemas.RequiredText("Name of the claim at its location, a DNS label. A new name hands the clusters over in one commit."),
		"pool": schemas.RequiredWriteOnly(schemas.Described(&fleet.Attribute{
			Meaning: "The clusters of the fleet that may be taken, by their labels, the labels of their cluster types, and `environment`, " +
				"`cluster-type` and `cluster`; `{}` selects all. It is write-only: a change takes nothing from a claim that has enough clusters.",
			Type: fleet.ObjectType, Of: fleet.SelectorTable(),
		}, "reference-fleet")),
		"number": schema.NumberAttribute{
			Required:            true,
			MarkdownDescription: "The number of clusters. 0 keeps the claim and releases its clusters.",
		},
		"fleet": schemas.RequiredWriteOnly("The fleet with the clusters of the pool, from `provider::flotilla::fleet` or `control_plane`, " +
			"through a `local`. It is write-only. It must not depend on `clusters` of this claim, which would be a cycle: see the example."),
		"gitops_repo": schemas.RequiredDynamic(
			schemas.Location("The location of the records. All claims of a pool must be at one location, because claims do not see other " +
				"locations. Commits are pushed to the branch, never proposed, because a pull request cannot be a compare-and-swap: if the " +
				"branch is protected, use another branch for claims. At a new location, the claim is made again, and the former one is released."),
		),
		"adopt": schemas.OptionalBool("Whether to take over a record of this name that the state does not know. Otherwise such a record is " +
			"an error. It may belong to a lost state or, by mistake, to another state, whose next plan then reports it. A replacement with " +
			"`create_before_destroy` needs it, too."),
		"commit_message": schemas.OptionalText("First line of commit messages. Default: the numbers of taken and released clusters."),
		"timeouts": schemas.OptionalDynamic(
			schemas.Setting("Time limits of operations, including connecting.", fleet.ObjectType, timeouts.Table),
		),
		"clusters": schemas.ComputedTexts("Names of the clusters, oldest first. A plan knows only the kept clusters, which come first. The " +
			"push decides on new ones, so that a plan never promises clusters that others take in the meantime."),
		"commit": schemas.ComputedText("The last commit of this claim, or the commit that already had its record."),
	},
}

type clusterClaimModel struct {
	Name          types.String  `tfsdk:"name"`
	Pool          types.Dynamic `tfsdk:"pool"`
	Number        types.Number  `tfsdk:"number"`
	Fleet         types.Dynamic `tfsdk:"fleet"`
	GitopsRepo    types.Dynamic `tfsdk:"gitops_repo"`
	Adopt         types.Bool    `tfsdk:"adopt"`
	CommitMessage types.String  `tfsdk:"commit_message"`
	Timeouts      types.Dynamic `tfsdk:"timeouts"`
	Clusters      types.List    `tfsdk:"clusters"`
	Commit        types.String  `tfsdk:"commit"`
}

// validate checks the configuration on its own, without servers.
func validate(_ context.Context, m *clusterClaimModel, diagnostics *diag.Diagnostics) {
	decode(m, diagnostics)
	tfvalue.CheckOpenText("commit_message", m.CommitMessage, diagnostics)
}

// plan decides which clusters stay, and finds errors of the apply.
func plan(ctx context.Context, c *frame.Call[clusterClaimModel]) {
	private := loadClaim(ctx, c.Private, c.Diagnostics)
	if c.Diagnostics.HasError() {
		return
	}
	former := newFormerClaim(c.Prior, private)
	if c.Prior == nil && private != nil {
		former.holders = []string{private.Holder} // only the private state of the first plan has it
	}
	c.Model.Clusters, c.Model.Commit = types.ListUnknown(types.StringType), types.StringUnknown()
	o, complete := newOperation(c, former)
	if !complete {
		return
	}
	if o.plan(ctx); !c.Diagnostics.HasError() && !o.former.exists && len(o.former.holders) > 0 {
		privatestate.Save(ctx, replacedKey, o.former.holders, c.Private, c.Diagnostics)
	}
}

func writable(c *frame.Call[clusterClaimModel], former formerClaim) (o *operation, ok bool) {
	if o, ok = newOperation(c, former); !ok && !c.Diagnostics.HasError() {
		c.Diagnostics.AddError("Claim is not known", "The name, number, pool, fleet and gitops_repo of a claim must be known when it is applied.")
	}
	return o, ok
}

func create(ctx context.Context, c *frame.Call[clusterClaimModel]) {
	o, ok := writable(c, formerClaim{holders: takeReplaced(ctx, c.Private, c.Diagnostics)})
	if !ok {
		return
	}
	after, err := o.apply(ctx)
	if errors.Is(err, git.ErrUnknown) {
		// The record of a tainted object may exist.
		c.Model.Clusters, c.Model.Commit, c.Store = tfvalue.Texts(nil), types.StringNull(), true
	} else if c.Diagnostics.HasError() {
		return
	}
	after.save(ctx, c.Private, c.Diagnostics)
}

// read compares the record at the tip with the written one.
func read(ctx context.Context, c *frame.Call[clusterClaimModel]) {
	state, private := c.Model, loadClaim(ctx, c.Private, c.Diagnostics)
	at, ok := repository.DecodeLocation(state.GitopsRepo, c.Diagnostics)
	if c.Diagnostics.HasError() || !ok || private == nil || !c.Connection.CanAsk() {
		return
	}
	seen, err := c.Connection.Delivery.RefreshClaim(ctx, private.known(delivery.Claim{Location: at, Name: state.Name.ValueString()}))
	if err != nil {
		repository.AddError(ctx, c.Diagnostics, err, false)
		return
	}
	if seen.Gone {
		tfvalue.AddWarningf(c.Diagnostics, path.Root("gitops_repo"), "Repository is gone",
			"There is no repository at %q any more. The next apply records the claim again, if the repository exists by then.", at.URL)
	}
	state.Clusters = tfvalue.Texts(seen.Clusters)
	if private.Seen = seen; !seen.Touched {
		private.Seen.Clusters = nil
	}
	private.save(ctx, c.Private, c.Diagnostics)
}

// update writes the record. Other attributes write nothing.
func update(ctx context.Context, c *frame.Call[clusterClaimModel]) {
	private := loadClaim(ctx, c.Private, c.Diagnostics)
	if c.Diagnostics.HasError() || !c.Model.Commit.IsUnknown() {
		return
	}
	o, ok := writable(c, newFormerClaim(c.Prior, private))
	if !ok {
		return
	}
	if after, _ := o.apply(ctx); !c.Diagnostics.HasError() { // its error is among the diagnostics
		after.save(ctx, c.Private, c.Diagnostics)
	}
}

// remove releases the clusters unless another claim has the record.
func remove(ctx context.Context, c *frame.Call[clusterClaimModel]) {
	state := c.Model
	at, ok := repository.DecodeLocation(state.GitopsRepo, c.Diagnostics)
	private := loadClaim(ctx, c.Private, c.Diagnostics)
	// Terraform destroys a replaced object with its successor's private state.
	holders := append(takeReplaced(ctx, c.Private, c.Diagnostics), "")
	if c.Diagnostics.HasError() || !ok {
		return
	}
	if private != nil {
		holders = append(holders, private.Holder)
	}
	foreign, err := c.Connection.Delivery.ReleaseClaim(ctx, delivery.Claim{Location: at, Name: state.Name.ValueString()}, holders,
		state.CommitMessage.ValueString())
	switch {
	case err != nil:
		addClaimError(ctx, c.Diagnostics, err)
	case foreign:
		tfvalue.AddWarningf(c.Diagnostics, path.Root("name"), "Claim belongs to another holder",
			"The record of the claim %q belongs to another object now, and is not changed.", state.Name.ValueString())
	}
}

// importState reads the record of an identity or of "<url>#<branch>:<path>:<name>".
func importState(ctx context.Context, c *connection.Connection, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	repo, at, given, ok := repository.Imported(ctx, req, &resp.Diagnostics)
	if !ok {
		return
	}
	imported, name := clusterClaimModel{Name: given, GitopsRepo: repo}, given.ValueString()
	checkClaimName(imported.Name, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := timeouts.Default.During(ctx, timeouts.Read, &c.Budget)
	defer cancel()
	found, err := c.Delivery.ReadClaims(ctx, at)
	if err != nil {
		repository.AddError(ctx, &resp.Diagnostics, err, false)
		return
	}
	unsigned, err := c.Delivery.FindUnsignedClaims(ctx, at, name)
	if err != nil {
		repository.AddError(ctx, &resp.Diagnostics, err, false)
		return
	}
	if commit := unsigned[name]; commit != "" {
		resp.Diagnostics.AddError("Record is not signed by a known key",
			tfvalue.Sentence(commit)+" Revert that commit, or add the key to allowed_signers.")
		return
	}
	for _, claim := range found.Claims {
		if claim.Name != name {
			continue
		}
		imported.Number = types.NumberValue(new(big.Float).SetInt64(int64(len(claim.Clusters))))
		imported.Clusters, imported.Commit = tfvalue.Texts(claim.Names()), types.StringValue(found.Commit)
		private := claimPrivate{Holder: claim.Holder, Record: claim.Record, Clusters: claim.Names(), Environment: claim.Environment}
		private.save(ctx, resp.Private, &resp.Diagnostics)
		resp.Diagnostics.Append(resp.State.Set(ctx, &imported)...)
		return
	}
	resp.Diagnostics.AddError("Nothing to import", tfvalue.Sentence(fmt.Sprintf(
		"the repository has no record of a claim %q at path %q of branch %q that can be read", name, at.Path, at.Branch)))
}

// claimPrivate is the written record, and the result of the last refresh.
type claimPrivate struct {
	Holder      string   `json:"holder"`
	Record      string   `json:"record"`
	Clusters    []string `json:"clusters"`
	Environment string   `json:"environment,omitempty"`

	Seen delivery.SeenClaim `json:"seen,omitzero"` // without clusters unless touched
}

const (
	claimKey = "claim"
	// replacedKey has the holders of a replaced object.
	replacedKey = "replaced"
)

func loadClaim(ctx context.Context, private privatestate.State, diagnostics *diag.Diagnostics) *claimPrivate {
	text, diags := private.GetKey(ctx, claimKey)
	if diagnostics.Append(diags...); text == nil || diags.HasError() {
		return nil
	}
	m := &claimPrivate{}
	if err := json.Unmarshal(text, m); err != nil {
		diagnostics.AddError("Private state cannot be read",
			tfvalue.Sentence("the files of the claim are not known; import it again: "+err.Error()))
		return nil
	}
	return m
}

func (m *claimPrivate) save(ctx context.Context, private privatestate.State, diagnostics *diag.Diagnostics) {
	privatestate.Save(ctx, claimKey, m, private, diagnostics)
}

func takeReplaced(ctx context.Context, private privatestate.State, diagnostics *diag.Diagnostics) (holders []string) {
	privatestate.Take(ctx, replacedKey, &holders, private, diagnostics)
	return holders
}

func (m *claimPrivate) known(claim delivery.Claim) delivery.ClaimState {
	return delivery.ClaimState{Claim: claim, Holder: m.Holder, Record: m.Record, Clusters: m.Clusters}
}

// held returns the written clusters, and those added to the record by hand.
func (m *claimPrivate) held() []string {
	return slices.Concat(m.Clusters, m.Seen.Clusters)
}
