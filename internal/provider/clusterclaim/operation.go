package clusterclaim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/claim"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/fleetvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/frame"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// claimRequest is a claim that the configuration asks for.
type claimRequest struct {
	at          delivery.Claim
	number      int
	environment string   // of the fleet
	clusters    []string // of the fleet
	pool        []string // selected by the pool
}

// decode reads the configuration. complete is false while an input is unknown.
func decode(m *clusterClaimModel, diagnostics *diag.Diagnostics) (r claimRequest, complete bool) {
	location, locationKnown := repository.DecodeLocation(m.GitopsRepo, diagnostics)
	r = claimRequest{at: delivery.Claim{Location: location, Name: m.Name.ValueString()}, number: m.number()}
	checkClaimName(m.Name, diagnostics)
	if value := m.Number.ValueBigFloat(); value != nil && (!value.IsInt() || r.number < 0 || r.number > gitops.MaxClaimed) {
		tfvalue.AddErrorf(diagnostics, path.Root("number"), "Invalid number",
			"The number must be a whole number from 0 to %d.", gitops.MaxClaimed)
	}
	selector, poolKnown, findings := fleet.DecodeSelector(tfvalue.Plain(m.Pool))
	for i := range findings {
		findings[i] = fleet.Finding{Message: strings.TrimPrefix(findings[i].String(), "selector.")}
	}
	if tfvalue.AddFindings(diagnostics, path.Root("pool"), "Invalid selector", findings); poolKnown && selector == nil && len(findings) == 0 &&
		!m.Pool.IsNull() {
		diagnostics.AddAttributeError(path.Root("pool"), "Invalid selector", "An absent selector is not a selector: {} selects all clusters.")
	}
	value, _ := fleetvalue.Decode(m.Fleet, diagnostics)
	if !value.Known() || diagnostics.HasError() {
		return r, false
	}
	of, _, err := value.Fleet()
	if err != nil {
		diagnostics.AddAttributeError(fleetvalue.Path, "Invalid fleet", tfvalue.Sentence(err.Error()))
		return r, false
	}
	if !locationKnown || !poolKnown || selector == nil || m.Name.IsUnknown() || m.Number.IsUnknown() {
		return r, false
	}
	r.environment = of.Environment
	for i := range of.Clusters {
		r.clusters = append(r.clusters, of.Clusters[i].Name)
	}
	requirements, _ := selector.Compile() // DecodeSelector reports the findings
	r.pool = schedule.SelectClusters(of, requirements)
	return r, true
}

// number returns the wanted number. The schema takes any number, because the framework reports a fraction for an
// integer as an error of the provider.
func (m *clusterClaimModel) number() int {
	value := m.Number.ValueBigFloat()
	if value == nil {
		return 0
	}
	number, _ := value.Int64()
	return int(number)
}

func checkClaimName(name types.String, diagnostics *diag.Diagnostics) {
	if name.IsNull() || name.IsUnknown() {
		return
	}
	if repository.CheckOwnerName(name, diagnostics); fleet.CheckLabelName(name.ValueString()) != "" {
		return
	}
	if err := gitops.CheckClaim(name.ValueString()); err != nil {
		diagnostics.AddAttributeError(path.Root("name"), "Invalid name", tfvalue.Sentence(err.Error()))
	}
}

func (r *claimRequest) situation(held []string, elsewhere map[string]string) claim.Situation {
	return claim.Situation{Number: r.number, Fleet: r.clusters, Pool: r.pool, Held: held, Elsewhere: elsewhere}
}

// formerClaim is a claim before a plan or apply.
type formerClaim struct {
	claimPrivate
	exists     bool     // a new claim has holders alone
	holders    []string // whose record the claim may take over
	at         delivery.Claim
	gitopsRepo types.Dynamic
	commit     types.String
}

func newFormerClaim(prior *clusterClaimModel, private *claimPrivate) formerClaim {
	if prior == nil || private == nil {
		return formerClaim{}
	}
	var ignored diag.Diagnostics
	location, ok := repository.DecodeLocation(prior.GitopsRepo, &ignored)
	if !ok {
		return formerClaim{}
	}
	return formerClaim{
		claimPrivate: *private, exists: true, holders: []string{private.Holder, ""},
		at:         delivery.Claim{Location: location, Name: prior.Name.ValueString()},
		gitopsRepo: prior.GitopsRepo, commit: prior.Commit,
	}
}

// isMoved reports whether a claim has another location than before.
func (f *formerClaim) isMoved(ctx context.Context, c *connection.Connection, at delivery.Claim) bool {
	return f.exists && f.at.Location != at.Location &&
		(!c.CanAsk() || !c.Delivery.IsSameLocation(ctx, f.at.Location, at.Location))
}

// operation is a plan or apply of a claim.
//
// The planned clusters follow from configuration and state, never from the branch: Terraform plans again when it applies, and
// pushes in between would change that plan. So the clusters that the claim keeps come first and are known, and new ones are
// unknown. The plan reads the branch only to find errors of the apply.
type operation struct {
	claimRequest
	connection  *connection.Connection
	model       *clusterClaimModel
	former      formerClaim
	diagnostics *diag.Diagnostics
}

func newOperation(c *frame.Call[clusterClaimModel], former formerClaim) (o *operation, complete bool) {
	request, complete := decode(c.Model, c.Diagnostics)
	return &operation{request, c.Connection, c.Model, former, c.Diagnostics}, complete && !c.Diagnostics.HasError()
}

// plan sets the computed attributes.
func (o *operation) plan(ctx context.Context) {
	if o.former.exists && o.former.at.Location == o.at.Location {
		o.model.GitopsRepo = o.former.gitopsRepo // its spelling may differ
	}
	if o.checkTwice(); o.diagnostics.HasError() {
		return
	}
	held, lost := o.former.held(), map[string]string{}
	for _, cluster := range o.former.Seen.Lost {
		lost[cluster] = "another"
	}
	kept := claim.KeepClusters(o.situation(held, lost))
	o.warn(kept)
	taking := o.number - len(kept.Clusters)
	isMoved := o.former.isMoved(ctx, o.connection, o.at)
	if (len(kept.Clusters) > 0 || taking == 0) && !isMoved && !o.former.Seen.Foreign {
		o.model.Clusters = withUnknown(kept.Clusters, taking)
		if taking == 0 && o.isRecorded(kept.Clusters) {
			o.model.Commit = o.former.commit
		}
	}
	o.lookAhead(ctx, held)
}

func withUnknown(kept []string, taking int) types.List {
	var elements []attr.Value
	for _, name := range kept {
		elements = append(elements, types.StringValue(name))
	}
	for range taking {
		elements = append(elements, types.StringUnknown())
	}
	return types.ListValueMust(types.StringType, elements)
}

// checkTwice refuses a second claim of the name, and finds the holders whose record a new object may take over.
func (o *operation) checkTwice() {
	if !o.former.exists && len(o.former.holders) > 0 {
		return // the same resource, already planned with its state
	}
	if err := o.connection.Delivery.RegisterClaim(o.at); err != nil {
		o.diagnostics.AddAttributeError(path.Root("name"), "Two claims have the same name", tfvalue.Sentence(err.Error()))
		return
	}
	if !o.former.exists {
		o.former.holders = o.connection.Delivery.KnownClaimHolders(o.at) // a tainted object
	}
}

func (o *operation) isRecorded(clusters []string) bool {
	return o.former.exists && !o.former.Seen.Touched && slices.Equal(clusters, o.former.Clusters) &&
		o.former.Environment == o.environment && o.former.at.Name == o.at.Name
}

// warn reports lost clusters with the reasons.
func (o *operation) warn(kept claim.Decision) {
	if seen := &o.former.Seen; seen.Touched && !seen.Foreign && !seen.Gone {
		detail := fmt.Sprintf("The record %s is not what this claim wrote: it was changed or removed by others. This apply writes it again.",
			gitops.ClaimRecordPath(o.former.at.Location.Path, o.former.at.Name))
		if seen.Unsigned != "" {
			detail += " This claim does not believe its list: " + seen.Unsigned + "."
		}
		o.diagnostics.AddAttributeWarning(path.Root("clusters"), "Record of the claim was changed", detail)
	}
	if len(kept.Gone) > 0 {
		tfvalue.AddWarningf(o.diagnostics, fleetvalue.Path, "Clusters of the claim have left the fleet",
			"The claim %q releases %s, which the fleet does not have any more, and takes other clusters of the pool instead.",
			o.at.Name, wording.List(kept.Gone, wording.Named))
	}
	if len(kept.Lost) > 0 {
		tfvalue.AddWarningf(o.diagnostics, path.Root("clusters"), "Clusters belong to another claim",
			"According to the records, another claim has %s, too: the claim %q releases them, and takes other clusters of the pool.",
			wording.List(kept.Lost, wording.Named), o.at.Name)
	}
}

// lookAhead finds errors of the apply and changes no planned value.
func (o *operation) lookAhead(ctx context.Context, held []string) {
	var found gitops.Claims
	if o.connection.CanAsk() {
		var err error
		if conflict, err := o.connection.Delivery.FindBranchConflict(ctx, o.at.Location); err == nil && conflict != "" {
			o.diagnostics.AddAttributeError(path.Root("gitops_repo"), "Branch cannot be created", conflict)
			return
		}
		if found, err = o.connection.Delivery.ReadClaims(ctx, o.at.Location); err != nil {
			repository.AddError(ctx, o.diagnostics, err, !o.former.exists || o.former.Seen.Gone)
			return
		}
	}
	elsewhere := map[string]string{}
	for _, other := range found.Claims {
		switch {
		case other.Name == o.at.Name:
			o.checkHolder(other)
			if !o.former.exists {
				held = other.Names()
			}
		case o.former.exists && other.Name == o.former.at.Name && other.Holder == o.former.Holder: // renamed
		default:
			for _, cluster := range other.Names() {
				elsewhere[cluster] = other.Name
			}
		}
	}
	o.checkClaimedTwice(found)
	if o.diagnostics.HasError() {
		return
	}
	s := o.situation(held, elsewhere)
	o.warnUnsigned(ctx, s)
	if _, err := claim.Decide(s); err != nil {
		addClaimError(ctx, o.diagnostics, err)
		return
	}
	unreadable := slices.DeleteFunc(slices.Clone(found.Unreadable), func(at string) bool {
		return o.former.exists && at == gitops.ClaimRecordPath(o.at.Location.Path, o.at.Name)
	})
	if len(claim.KeepClusters(s).Clusters) < s.Number && len(unreadable) > 0 {
		tfvalue.AddErrorf(o.diagnostics, path.Root("gitops_repo"), "Record of a claim cannot be read",
			"It is not known which clusters are free: %s. The next apply of their claims writes the records again.",
			wording.List(unreadable, wording.Named))
	}
}

// warnUnsigned names clusters in an unsigned record of another claim, which anybody with push rights can have written.
func (o *operation) warnUnsigned(ctx context.Context, s claim.Situation) {
	if !o.connection.CanAsk() || len(claim.KeepClusters(s).Clusters) >= s.Number {
		return
	}
	by := claim.ClaimedElsewhere(s)
	others := slices.Sorted(maps.Keys(by))
	unsigned, err := o.connection.Delivery.FindUnsignedClaims(ctx, o.at.Location, others...)
	if err != nil {
		repository.AddError(ctx, o.diagnostics, err, false)
		return
	}
	others = slices.DeleteFunc(others, func(name string) bool { return unsigned[name] == "" })
	for _, name := range others[:min(len(others), fleetvalue.MaxDiagnostics)] {
		tfvalue.AddWarningf(o.diagnostics, path.Root("pool"), "Clusters of the pool are taken by a record that no known key has signed",
			"Claim %q has %s, which this claim does not take: %s. If that claim is not wanted, remove its record; if it is, add the key that "+
				"signed the commit to allowed_signers.", name, wording.List(by[name], wording.Named), unsigned[name])
	}
}

// checkClaimedTwice refuses clusters in another claim's record. Neither gives way: either may be forged.
func (o *operation) checkClaimedTwice(found gitops.Claims) {
	names := []string{o.at.Name}
	if o.former.exists && o.former.at.Location == o.at.Location {
		names = append(names, o.former.at.Name)
	}
	var twice []string
	for _, cluster := range gitops.FindClaimedTwice(found.Claims) {
		if slices.ContainsFunc(cluster.Claims, func(name string) bool { return slices.Contains(names, name) }) {
			twice = append(twice, cluster.String())
		}
	}
	if len(twice) > 0 {
		addClaimedTwice(o.diagnostics, strings.Join(twice[:min(len(twice), fleetvalue.MaxDiagnostics)], "; "))
	}
}

func addClaimedTwice(diagnostics *diag.Diagnostics, detail string) {
	diagnostics.AddAttributeError(path.Root("clusters"), "Cluster belongs to two claims", tfvalue.Sentence(detail)+
		" One of the records was not written by Flotilla, which never gives a cluster to two claims. Find the commit that added the "+
		"cluster to the wrong record, and revert it, or remove the cluster from that record; a claim that is not wanted can be destroyed, too.")
}

// checkHolder refuses a record that belongs to another claim.
func (o *operation) checkHolder(found gitops.Claim) {
	has := "no cluster"
	if len(found.Clusters) > 0 {
		has = wording.List(found.Names(), wording.Named)
	}
	switch {
	case slices.Contains(o.former.holders, found.Holder), o.model.Adopt.IsUnknown():
	case o.model.Adopt.ValueBool():
		tfvalue.AddWarningf(o.diagnostics, path.Root("adopt"), "A claim is taken over",
			"The record of the claim %q has %s. A state that had the claim before loses it.", o.at.Name, has)
	default:
		addHeld(o.diagnostics, fmt.Sprintf("there is already a record of a claim %q that is not in this state; it has %s", o.at.Name, has))
	}
}

func addHeld(diagnostics *diag.Diagnostics, detail string) {
	diagnostics.AddAttributeError(path.Root("name"), "Claim belongs to another state", tfvalue.Sentence(detail)+
		" If another state has the claim, choose another name. If its state was lost, or another state took the claim over by mistake, "+
		"import it or set adopt = true.")
}

// promisedError reports planned clusters that others have taken since.
type promisedError struct{ cluster, other string }

func (e *promisedError) Error() string {
	return fmt.Sprintf("the plan promised cluster %q, and claim %q has taken it since", e.cluster, e.other)
}

// apply writes the record and returns the private state. It adds the returned error to the diagnostics.
func (o *operation) apply(ctx context.Context) (*claimPrivate, error) {
	edit := gitops.ClaimEdit{
		Environment: o.environment, Holder: delivery.NewHolder(), Holders: o.former.holders,
		Adopt: o.model.Adopt.ValueBool(), Choose: o.choose, Subject: o.model.CommitMessage.ValueString(),
	}
	isMoved := o.former.isMoved(ctx, o.connection, o.at)
	switch {
	case isMoved: // a new holder, so that a mirror of this location does not lose it with the old one
		edit.Holders = []string{o.former.Holder}
	case o.former.exists:
		edit.Holder = cmp.Or(o.former.Holder, edit.Holder)
		if o.former.at.Name != o.at.Name {
			edit.FormerName = o.former.at.Name
		}
	}
	after := &claimPrivate{Holder: edit.Holder, Environment: o.environment}
	result, err := o.connection.Delivery.WriteClaim(ctx, o.at, edit)
	if err != nil {
		addClaimError(ctx, o.diagnostics, err)
		return after, err
	}
	after.Record, after.Clusters = result.Record, result.Clusters
	o.model.Clusters, o.model.Commit = tfvalue.Texts(result.Clusters), types.StringValue(result.Commit)
	if isMoved {
		if _, err := o.connection.Delivery.ReleaseClaim(ctx, o.former.at, []string{o.former.Holder}, edit.Subject); err != nil {
			tfvalue.AddWarningf(o.diagnostics, path.Root("gitops_repo"), "Clusters are claimed at the former location",
				"the claim is made at its new location, but the old one could not be released: %s", err)
		}
	}
	return after, nil
}

// choose decides at the tip below the commit.
func (o *operation) choose(tip gitops.ClaimTip) ([]string, error) {
	var promised []string
	for _, element := range o.model.Clusters.Elements() {
		if name := element.(types.String); !name.IsUnknown() {
			promised = append(promised, name.ValueString())
		}
	}
	for _, name := range promised {
		if other, taken := tip.Elsewhere[name]; taken {
			return nil, &promisedError{name, other}
		}
	}
	if !o.model.Clusters.IsUnknown() && len(promised) == o.number {
		return promised, nil
	}
	s := o.situation(slices.Concat(promised, o.former.held(), tip.Held), tip.Elsewhere)
	s.Fleet = slices.Concat(s.Fleet, promised)
	decision, err := claim.Decide(s)
	return decision.Clusters, err
}

func addClaimError(ctx context.Context, diagnostics *diag.Diagnostics, err error) {
	short, promised := (*claim.ShortError)(nil), (*promisedError)(nil)
	switch {
	case errors.As(err, &short) && short.Pool == 0:
		diagnostics.AddAttributeError(path.Root("pool"), "The pool is empty", tfvalue.Sentence(err.Error()))
	case errors.As(err, &short):
		diagnostics.AddAttributeError(path.Root("number"), "The pool has too few clusters", tfvalue.Sentence(err.Error())+
			" If another claim shall release clusters, apply that first.")
	case errors.As(err, &promised):
		diagnostics.AddAttributeError(path.Root("clusters"), "Repository has changed since the plan",
			tfvalue.Sentence(err.Error())+" Nothing was written: plan again.")
	case errors.Is(err, gitops.ErrClaimHeld):
		addHeld(diagnostics, err.Error())
	case errors.Is(err, gitops.ErrClaimTwice):
		addClaimedTwice(diagnostics, err.Error())
	case errors.Is(err, gitops.ErrClaimUnreadable):
		diagnostics.AddAttributeError(path.Root("gitops_repo"), "Record of a claim cannot be read",
			tfvalue.Sentence(err.Error())+" The next apply of their claims writes the records again.")
	default:
		repository.AddError(ctx, diagnostics, err, false)
	}
}
