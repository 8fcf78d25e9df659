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
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// operation is one plan or one apply of a claim.
//
// The planned clusters follow from configuration and state, never from the branch: Terraform plans again when it applies, and
// pushes in between would change that plan. So the clusters that the claim keeps come first and are known, and new ones are
// unknown. The plan reads the branch only to find errors of the apply.
type operation struct {
	connection  *connection.Connection
	model       *clusterClaimModel // the plan, whose computed attributes are set
	prior       *clusterClaimModel // from state; nil if the claim is new
	private     *claimPrivate      // from private state; nil likewise
	replaced    []string           // holders of a replaced object
	diagnostics *diag.Diagnostics

	at       delivery.Claim
	complete bool // all inputs are known
	fleet    *fleet.Fleet
	clusters []string // of the fleet
	pool     []string // selected by the pool

	after *claimPrivate
}

func (o *operation) decode() {
	m, diagnostics := o.model, o.diagnostics
	location, locationKnown := repository.DecodeLocation(m.GitopsRepo, diagnostics)
	o.at = delivery.Claim{Location: location, Name: m.Name.ValueString()}
	checkClaimName(m.Name, diagnostics)
	if value := m.Number.ValueBigFloat(); value != nil && (!value.IsInt() || m.number() < 0 || m.number() > gitops.MaxClaimed) {
		diagnostics.AddAttributeError(
			path.Root("number"),
			"Invalid number",
			fmt.Sprintf("The number must be a whole number from 0 to %d.", gitops.MaxClaimed),
		)
	}
	selector, poolKnown, findings := fleet.DecodeSelector(tfvalue.Plain(m.Pool))
	for i := range findings {
		findings[i] = fleet.Finding{Message: strings.TrimPrefix(findings[i].String(), "selector.")}
	}
	if tfvalue.AddFindings(diagnostics, path.Root("pool"), "Invalid selector", findings); poolKnown && selector == nil && len(findings) == 0 &&
		!m.Pool.IsNull() {
		diagnostics.AddAttributeError(path.Root("pool"), "Invalid selector", "An absent selector is not a selector: {} selects all clusters.")
	}
	poolKnown = poolKnown && selector != nil
	value, _ := fleetvalue.Decode(m.Fleet, diagnostics)
	o.complete = locationKnown && poolKnown && value.Known() && !m.Name.IsUnknown() && !m.Number.IsUnknown()
	if !value.Known() || diagnostics.HasError() {
		return
	}
	var err error
	if o.fleet, _, err = value.Fleet(); err != nil {
		diagnostics.AddAttributeError(fleetvalue.Path, "Invalid fleet", tfvalue.Sentence(err.Error()))
		return
	}
	for i := range o.fleet.Clusters {
		o.clusters = append(o.clusters, o.fleet.Clusters[i].Name)
	}
	if poolKnown {
		requirements, _ := selector.Compile() // DecodeSelector reports the findings
		o.pool = schedule.SelectClusters(o.fleet, requirements)
	}
}

// number returns how many clusters are wanted. The schema takes any number and decode reports fractions, because the framework
// reports one for an integer as an error of the provider.
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

func (o *operation) situation(held []string, elsewhere map[string]string) claim.Situation {
	return claim.Situation{Number: o.model.number(), Fleet: o.clusters, Pool: o.pool, Held: held, Elsewhere: elsewhere}
}

// plan sets the computed attributes.
func (o *operation) plan(ctx context.Context) {
	o.model.Clusters, o.model.Commit = types.ListUnknown(types.StringType), types.StringUnknown()
	if o.decode(); o.diagnostics.HasError() {
		return
	}
	o.keepSpelling()
	if o.checkTwice(); o.diagnostics.HasError() || !o.complete {
		return
	}
	moved := o.isMoved(ctx)
	held, lost := o.private.held(), map[string]string{}
	if o.private != nil {
		for _, cluster := range o.private.Seen.Lost {
			lost[cluster] = "another"
		}
	}
	kept := claim.KeepClusters(o.situation(held, lost))
	o.warn(kept)
	taking := o.model.number() - len(kept.Clusters)
	if (len(kept.Clusters) > 0 || taking == 0) && !moved && (o.private == nil || !o.private.Seen.Foreign) {
		o.model.Clusters = withUnknown(kept.Clusters, taking)
		if taking == 0 && o.isRecorded(kept.Clusters) {
			o.model.Commit = o.prior.Commit
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

// keepSpelling keeps the state's spelling of an equal location.
func (o *operation) keepSpelling() {
	if was, ok := o.formerClaim(); ok && o.complete && was.Location == o.at.Location {
		o.model.GitopsRepo = o.prior.GitopsRepo
	}
}

// checkTwice refuses a second claim of the name, and finds the holders whose record a new object may take over.
func (o *operation) checkTwice() {
	if o.connection == nil || !o.complete {
		return
	}
	if len(o.replaced) > 0 {
		return // the same resource, already planned with its state
	}
	if err := o.connection.Delivery.RegisterClaim(o.at); err != nil {
		o.diagnostics.AddAttributeError(path.Root("name"), "Two claims have the same name", tfvalue.Sentence(err.Error()))
		return
	}
	if o.prior == nil {
		o.replaced = o.connection.Delivery.KnownClaimHolders(o.at) // a tainted object
	}
}

// isMoved reports whether the claim has another location than before.
func (o *operation) isMoved(ctx context.Context) bool {
	was, ok := o.formerClaim()
	return ok && was.Location != o.at.Location &&
		(!o.connection.CanAsk() || !o.connection.Delivery.IsSameLocation(ctx, was.Location, o.at.Location))
}

func (o *operation) formerClaim() (delivery.Claim, bool) {
	if o.prior == nil {
		return delivery.Claim{}, false
	}
	var ignored diag.Diagnostics
	at, ok := repository.DecodeLocation(o.prior.GitopsRepo, &ignored)
	return delivery.Claim{Location: at, Name: o.prior.Name.ValueString()}, ok
}

func (o *operation) isRecorded(clusters []string) bool {
	return o.private != nil && !o.private.Seen.Touched && slices.Equal(clusters, o.private.Clusters) &&
		o.private.Environment == o.fleet.Environment &&
		o.prior.Name.Equal(o.model.Name)
}

// warn reports lost clusters with the reasons.
func (o *operation) warn(kept claim.Decision) {
	if o.private != nil && o.private.Seen.Touched && !o.private.Seen.Foreign && !o.private.Seen.Gone {
		at, _ := o.formerClaim()
		detail := fmt.Sprintf("The record %s is not what this claim wrote: it was changed or removed by others. This apply writes it again.",
			gitops.ClaimRecordPath(at.Location.Path, at.Name))
		if o.private.Seen.Unsigned != "" {
			detail += " This claim does not believe its list: " + o.private.Seen.Unsigned + "."
		}
		o.diagnostics.AddAttributeWarning(path.Root("clusters"), "Record of the claim was changed", detail)
	}
	if len(kept.Gone) > 0 {
		o.diagnostics.AddAttributeWarning(fleetvalue.Path, "Clusters of the claim have left the fleet", fmt.Sprintf(
			"The claim %q releases %s, which the fleet does not have any more, and takes other clusters of the pool instead.",
			o.at.Name, wording.List(kept.Gone, wording.Named)))
	}
	if len(kept.Lost) > 0 {
		o.diagnostics.AddAttributeWarning(path.Root("clusters"), "Clusters belong to another claim", fmt.Sprintf(
			"According to the records, another claim has %s, too: the claim %q releases them, and takes other clusters of the pool.",
			wording.List(kept.Lost, wording.Named), o.at.Name))
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
			repository.AddError(ctx, o.diagnostics, err, o.private == nil || o.private.Seen.Gone)
			return
		}
	}
	was, _ := o.formerClaim()
	elsewhere := map[string]string{}
	for _, other := range found.Claims {
		switch {
		case other.Name == o.at.Name:
			o.checkHolder(other)
			if o.private == nil {
				held = other.Names()
			}
		case o.private != nil && other.Name == was.Name && other.Holder == o.private.Holder: // renamed
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
		return o.private != nil && at == o.recordPath()
	})
	if len(claim.KeepClusters(s).Clusters) < s.Number && len(unreadable) > 0 {
		o.diagnostics.AddAttributeError(path.Root("gitops_repo"), "Record of a claim cannot be read", fmt.Sprintf(
			"It is not known which clusters are free: %s. The next apply of their claims writes the records again.",
			wording.List(unreadable, wording.Named),
		))
	}
}

// warnUnsigned names clusters that the claim cannot take, because an unsigned record of another claim lists them.
// Anybody with push rights can have written it.
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
		o.diagnostics.AddAttributeWarning(
			path.Root("pool"),
			"Clusters of the pool are taken by a record that no known key has signed",
			fmt.Sprintf(
				"Claim %q has %s, which this claim does not take: %s. If that claim is not wanted, remove its record; if it is, add the key that "+
					"signed the commit to allowed_signers.",
				name,
				wording.List(by[name], wording.Named),
				unsigned[name],
			),
		)
	}
}

// checkClaimedTwice refuses clusters in another claim's record. Neither claim gives way: anybody with push rights can
// have written either.
func (o *operation) checkClaimedTwice(found gitops.Claims) {
	names := []string{o.at.Name}
	if was, ok := o.formerClaim(); ok && was.Location == o.at.Location {
		names = append(names, was.Name)
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

func (o *operation) recordPath() string { return gitops.ClaimRecordPath(o.at.Location.Path, o.at.Name) }

// checkHolder refuses a record that belongs to another claim.
func (o *operation) checkHolder(found gitops.Claim) {
	own := slices.Contains(o.replaced, found.Holder) && o.private == nil
	if o.private != nil {
		own = found.Holder == o.private.Holder || found.Holder == ""
	}
	has := "no cluster"
	if len(found.Clusters) > 0 {
		has = wording.List(found.Names(), wording.Named)
	}
	switch {
	case own, o.model.Adopt.IsUnknown():
	case o.model.Adopt.ValueBool():
		o.diagnostics.AddAttributeWarning(path.Root("adopt"), "A claim is taken over", fmt.Sprintf(
			"The record of the claim %q has %s. A state that had the claim before loses it.", o.at.Name, has))
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

// apply writes the record, and sets the computed attributes and the private state.
func (o *operation) apply(ctx context.Context) error {
	if o.connection == nil {
		o.diagnostics.AddError("Provider is not configured", "The provider must be configured before anything is written.")
		return nil
	}
	if o.decode(); o.diagnostics.HasError() {
		return nil
	}
	if !o.complete {
		o.diagnostics.AddError("Claim is not known", "The name, number, pool, fleet and gitops_repo of a claim must be known when it is applied.")
		return nil
	}
	edit := gitops.ClaimEdit{
		Environment: o.fleet.Environment, Holder: delivery.NewHolder(), Holders: o.replaced,
		Adopt: o.model.Adopt.ValueBool(), Choose: o.choose, Subject: o.model.CommitMessage.ValueString(),
	}
	was, exists := o.formerClaim()
	moved := o.isMoved(ctx)
	switch {
	case moved && o.private != nil: // a new holder, so that a mirror of this location does not lose it with the old one
		edit.Holders = []string{o.private.Holder}
	case exists && o.private != nil:
		edit.Holder, edit.Holders = cmp.Or(o.private.Holder, edit.Holder), []string{o.private.Holder, ""}
		if was.Name != o.at.Name {
			edit.FormerName = was.Name
		}
	}
	o.after = &claimPrivate{Holder: edit.Holder, Environment: o.fleet.Environment}
	result, err := o.connection.Delivery.WriteClaim(ctx, o.at, edit)
	if err != nil {
		addClaimError(ctx, o.diagnostics, err)
		return err
	}
	o.after.Record, o.after.Clusters = result.Record, result.Clusters
	o.model.Clusters, o.model.Commit = tfvalue.Texts(result.Clusters), types.StringValue(result.Commit)
	if moved && o.private != nil {
		if _, err := o.connection.Delivery.ReleaseClaim(ctx, was, []string{o.private.Holder}, edit.Subject); err != nil {
			o.diagnostics.AddAttributeWarning(path.Root("gitops_repo"), "Clusters are claimed at the former location", tfvalue.Sentence(fmt.Sprintf(
				"the claim is made at its new location, but the old one could not be released: %s", err)))
		}
	}
	return nil
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
	if !o.model.Clusters.IsUnknown() && len(promised) == o.model.number() {
		return promised, nil
	}
	s := o.situation(slices.Concat(promised, o.private.held(), tip.Held), tip.Elsewhere)
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
		diagnostics.AddAttributeError(
			path.Root("clusters"),
			"Repository has changed since the plan",
			tfvalue.Sentence(err.Error())+" Nothing was written: plan again.",
		)
	case errors.Is(err, gitops.ErrClaimHeld):
		addHeld(diagnostics, err.Error())
	case errors.Is(err, gitops.ErrClaimTwice):
		addClaimedTwice(diagnostics, err.Error())
	case errors.Is(err, gitops.ErrClaimUnreadable):
		diagnostics.AddAttributeError(
			path.Root("gitops_repo"),
			"Record of a claim cannot be read",
			tfvalue.Sentence(err.Error())+" The next apply of their claims writes the records again.",
		)
	default:
		repository.AddError(ctx, diagnostics, err, false)
	}
}
