package clusterclaim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/claim"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/fleetvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/wording"
)

// claimTask is one plan or one apply of a claim: the configuration, what is known, and what is computed.
//
// The clusters in a plan follow from the configuration and the state, and never from the branch: Terraform plans again
// when it applies, and pushes of others in between would change that plan. So the clusters that the claim keeps are
// known at plan, and new ones are not. The plan reads the branch only to find what would make the apply fail.
type claimTask struct {
	connection  *connection.Connection
	model       *model        // what the plan wants; its computed attributes are set
	prior       *model        // from state; nil where the claim is created
	private     *claimPrivate // from private state; nil likewise
	replaced    []string      // holders of the object that this one replaces
	holder      string        // of a claim that is created
	diagnostics *diag.Diagnostics

	at       delivery.Claim
	complete bool // all inputs are known
	fleet    *fleet.Fleet
	clusters []string // of the fleet
	pool     []string // those that the selector selects

	after *claimPrivate
}

// decode reads the configuration, strictly.
func (t *claimTask) decode() {
	m, diagnostics := t.model, t.diagnostics
	location, locationKnown := repository.DecodeLocation(m.GitopsRepo, diagnostics)
	t.at = delivery.Claim{Location: location, Name: m.Name.ValueString()}
	checkClaimName(m.Name, diagnostics)
	if value := m.Number.ValueBigFloat(); value != nil && (!value.IsInt() || m.number() < 0 || m.number() > gitops.MaxClaimed) {
		diagnostics.AddAttributeError(path.Root("number"), "Invalid number", fmt.Sprintf("The number must be a whole number from 0 to %d.", gitops.MaxClaimed))
	}
	selector, poolKnown, findings := fleet.DecodeSelector(tfvalue.Plain(m.Pool))
	for i := range findings {
		findings[i] = fleet.Finding{Message: strings.TrimPrefix(findings[i].String(), "selector.")}
	}
	if tfvalue.AddFindings(diagnostics, path.Root("pool"), "Invalid selector", findings); poolKnown && selector == nil && len(findings) == 0 && !m.Pool.IsNull() {
		diagnostics.AddAttributeError(path.Root("pool"), "Invalid selector", "An absent selector is not a selector: {} selects all clusters.")
	}
	poolKnown = poolKnown && selector != nil
	value, _ := fleetvalue.Decode(m.Fleet, diagnostics)
	t.complete = locationKnown && poolKnown && value.Known() && !m.Name.IsUnknown() && !m.Number.IsUnknown()
	if !value.Known() || diagnostics.HasError() {
		return
	}
	var err error
	if t.fleet, _, err = value.Fleet(); err != nil {
		diagnostics.AddAttributeError(fleetvalue.Path, "Invalid fleet", tfvalue.Sentence(err.Error()))
		return
	}
	for i := range t.fleet.Clusters {
		t.clusters = append(t.clusters, t.fleet.Clusters[i].Name)
	}
	if poolKnown {
		requirements, _ := selector.Compile() // its findings are those of DecodeSelector
		t.pool = schedule.SelectClusters(t.fleet, requirements)
	}
}

// number is how many clusters are wanted. A fraction is reported where it is decoded: the schema takes any number, since
// the framework reports one for an integer as an error of the provider.
func (m *model) number() int {
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

// situation is the input of the decision about clusters: what the claim holds, and what other claims have.
func (t *claimTask) situation(held []string, elsewhere map[string]string) claim.Situation {
	return claim.Situation{Number: t.model.number(), Fleet: t.clusters, Pool: t.pool, Held: held, Elsewhere: elsewhere}
}

// plan sets the computed attributes.
func (t *claimTask) plan(ctx context.Context) {
	t.model.Clusters, t.model.Commit = types.ListUnknown(types.StringType), types.StringUnknown()
	if t.decode(); t.diagnostics.HasError() {
		return
	}
	t.keepSpelling()
	if t.checkTwice(); t.diagnostics.HasError() || !t.complete {
		return
	}
	moved := t.isMoved(ctx)
	var held []string
	lost := map[string]string{}
	if t.private != nil {
		held = t.private.held()
		for _, cluster := range t.private.Lost {
			lost[cluster] = "another"
		}
	}
	kept := claim.Keep(t.situation(held, lost))
	t.warn(kept)
	if len(kept.Clusters) == t.model.number() && !moved && (t.private == nil || !t.private.Foreign) {
		t.model.Clusters = tfvalue.Texts(kept.Clusters)
		if t.isRecorded(kept.Clusters) {
			t.model.Commit = t.prior.Commit
		}
	}
	t.lookAhead(ctx, held)
}

// keepSpelling keeps the location of the state where the configuration has another spelling of the same location.
func (t *claimTask) keepSpelling() {
	if t.prior == nil || !t.complete {
		return
	}
	var ignored diag.Diagnostics
	if was, ok := repository.DecodeLocation(t.prior.GitopsRepo, &ignored); ok && was == t.at.Location {
		t.model.GitopsRepo = t.prior.GitopsRepo
	}
}

// checkTwice finds a second claim of the name in this configuration, and the holders whose record a new object may take over.
func (t *claimTask) checkTwice() {
	if t.connection == nil || !t.complete {
		return
	}
	if len(t.replaced) > 0 {
		return // the same resource, planned before with its state
	}
	if err := t.connection.Delivery.PlannedClaim(t.at); err != nil {
		t.diagnostics.AddAttributeError(path.Root("name"), "Two claims have the same name", tfvalue.Sentence(err.Error()))
		return
	}
	if t.prior == nil {
		t.replaced = t.connection.Delivery.ReadHolders(t.at) // of an object that is tainted
	}
}

// isMoved says whether the claim is really at another location than before.
func (t *claimTask) isMoved(ctx context.Context) bool {
	was, ok := t.formerClaim()
	return ok && was.Location != t.at.Location && (!t.connection.CanAsk() || !t.connection.Delivery.IsSameLocation(ctx, was.Location, t.at.Location))
}

// formerClaim is the claim in the state.
func (t *claimTask) formerClaim() (delivery.Claim, bool) {
	if t.prior == nil {
		return delivery.Claim{}, false
	}
	var ignored diag.Diagnostics
	at, ok := repository.DecodeLocation(t.prior.GitopsRepo, &ignored)
	return delivery.Claim{Location: at, Name: t.prior.Name.ValueString()}, ok
}

// isRecorded says whether the record is up to date.
func (t *claimTask) isRecorded(clusters []string) bool {
	return t.private != nil && !t.private.Touched && slices.Equal(clusters, t.private.Clusters) && t.private.Environment == t.fleet.Environment &&
		t.prior.Name.Equal(t.model.Name)
}

// warn reports clusters that the claim does not have any more, and why.
func (t *claimTask) warn(kept claim.Decision) {
	if t.private != nil && t.private.Touched && !t.private.Foreign && !t.private.Gone {
		at, _ := t.formerClaim()
		detail := fmt.Sprintf("The record %s is not what this claim wrote: it was changed or removed by others. This apply writes it again.",
			gitops.ClaimRecordPath(at.Location.Path, at.Name))
		if t.private.Unsigned != "" {
			detail += " What it lists is not believed: " + t.private.Unsigned + "."
		}
		t.diagnostics.AddAttributeWarning(path.Root("clusters"), "Record of the claim was changed", detail)
	}
	if len(kept.Gone) > 0 {
		t.diagnostics.AddAttributeWarning(fleetvalue.Path, "Clusters of the claim have left the fleet", fmt.Sprintf(
			"The claim %q releases %s, which the fleet does not have any more, and takes other clusters of the pool instead.",
			t.at.Name, wording.List(kept.Gone, wording.Named)))
	}
	if len(kept.Lost) > 0 {
		t.diagnostics.AddAttributeWarning(path.Root("clusters"), "Clusters belong to another claim", fmt.Sprintf(
			"According to the records, another claim has %s, too: the claim %q releases them, and takes other clusters of the pool.",
			wording.List(kept.Lost, wording.Named), t.at.Name))
	}
}

// lookAhead finds at plan what would make the apply fail. What it reads does not change the planned values.
func (t *claimTask) lookAhead(ctx context.Context, held []string) {
	var found gitops.Claims
	if t.connection.CanAsk() {
		var err error
		if found, err = t.connection.Delivery.Claims(ctx, t.at.Location); err != nil {
			repository.AddError(ctx, t.diagnostics, err, t.private == nil || t.private.Gone)
			return
		}
	}
	was, _ := t.formerClaim()
	elsewhere := map[string]string{}
	for _, other := range found.Claims {
		switch {
		case other.Name == t.at.Name:
			t.checkHolder(other)
			if t.private == nil {
				held = other.Names()
			}
		case t.private != nil && other.Name == was.Name && other.Holder == t.private.Holder: // it is renamed
		default:
			for _, cluster := range other.Names() {
				elsewhere[cluster] = other.Name
			}
		}
	}
	t.checkClaimedTwice(found)
	if t.diagnostics.HasError() {
		return
	}
	s := t.situation(held, elsewhere)
	t.warnUnsigned(ctx, s)
	if _, err := claim.Decide(s); err != nil {
		addClaimError(ctx, t.diagnostics, err)
		return
	}
	unreadable := slices.DeleteFunc(slices.Clone(found.Unreadable), func(at string) bool {
		return t.private != nil && at == t.recordPath()
	})
	if len(claim.Keep(s).Clusters) < s.Number && len(unreadable) > 0 {
		t.diagnostics.AddAttributeError(path.Root("gitops_repo"), "Record of a claim cannot be read", fmt.Sprintf(
			"It is not known which clusters are free: %s. The next apply of their claims writes the records again.", wording.List(unreadable, wording.Named)))
	}
}

// warnUnsigned names clusters of the pool that a claim which wants more does not take, since the record of another claim
// lists them that no allowed key has signed. Whoever may push can have written it.
func (t *claimTask) warnUnsigned(ctx context.Context, s claim.Situation) {
	if !t.connection.CanAsk() || len(claim.Keep(s).Clusters) >= s.Number {
		return
	}
	by := claim.Elsewhere(s)
	others := slices.Sorted(maps.Keys(by))
	unsigned, err := t.connection.Delivery.UnsignedClaims(ctx, t.at.Location, others...)
	if err != nil {
		repository.AddError(ctx, t.diagnostics, err, false)
		return
	}
	others = slices.DeleteFunc(others, func(name string) bool { return unsigned[name] == "" })
	for _, name := range others[:min(len(others), fleetvalue.MaxDiagnostics)] {
		t.diagnostics.AddAttributeWarning(path.Root("pool"), "Clusters of the pool are taken by a record that no known key has signed", fmt.Sprintf(
			"Claim %q has %s, which this claim does not take: %s. If that claim is not wanted, remove its record; if it is, add the key that signed the commit to allowed_signers.",
			name, wording.List(by[name], wording.Named), unsigned[name]))
	}
}

// checkClaimedTwice finds clusters of this claim that the record of another claim lists, too. None of the two gives way:
// somebody who may push can have written either.
func (t *claimTask) checkClaimedTwice(found gitops.Claims) {
	names := []string{t.at.Name}
	if was, ok := t.formerClaim(); ok && was.Location == t.at.Location {
		names = append(names, was.Name)
	}
	var twice []string
	for _, cluster := range gitops.TwiceIn(found.Claims) {
		if slices.ContainsFunc(cluster.Claims, func(name string) bool { return slices.Contains(names, name) }) {
			twice = append(twice, cluster.String())
		}
	}
	if len(twice) > 0 {
		addClaimedTwice(t.diagnostics, strings.Join(twice[:min(len(twice), fleetvalue.MaxDiagnostics)], "; "))
	}
}

func addClaimedTwice(diagnostics *diag.Diagnostics, detail string) {
	diagnostics.AddAttributeError(path.Root("clusters"), "Cluster belongs to two claims", tfvalue.Sentence(detail)+
		" One of the records was not written by Flotilla, which never gives a cluster to two claims. Find the commit that added the "+
		"cluster to the wrong record, and revert it, or remove the cluster from that record; a claim that is not wanted can be destroyed, too.")
}

// recordPath is where the claim's record is in the repository.
func (t *claimTask) recordPath() string { return gitops.ClaimRecordPath(t.at.Location.Path, t.at.Name) }

// checkHolder checks that the record with the claim's name belongs to this claim.
func (t *claimTask) checkHolder(found gitops.Claim) {
	own := slices.Contains(t.replaced, found.Holder) && t.private == nil
	if t.private != nil {
		own = found.Holder == t.private.Holder || found.Holder == ""
	}
	has := "no cluster"
	if len(found.Clusters) > 0 {
		has = wording.List(found.Names(), wording.Named)
	}
	switch {
	case own, t.model.Adopt.IsUnknown():
	case t.model.Adopt.ValueBool():
		t.diagnostics.AddAttributeWarning(path.Root("adopt"), "A claim is taken over", fmt.Sprintf(
			"The record of the claim %q has %s. A state that had the claim before loses it.", t.at.Name, has))
	default:
		addHeld(t.diagnostics, fmt.Sprintf("there is already a record of a claim %q that is not in this state; it has %s", t.at.Name, has))
	}
}

func addHeld(diagnostics *diag.Diagnostics, detail string) {
	diagnostics.AddAttributeError(path.Root("name"), "Claim belongs to another state", tfvalue.Sentence(detail)+
		" If another state has the claim, choose another name. If its state was lost, or another state took the claim over by mistake, import it or set adopt = true.")
}

// promisedError is the error of an apply whose plan promised clusters that others have taken since.
type promisedError struct{ cluster, other string }

func (e *promisedError) Error() string {
	return fmt.Sprintf("the plan promised cluster %q, and claim %q has taken it since", e.cluster, e.other)
}

// apply writes the record, and sets the computed attributes and the private state. The error is among the diagnostics, too.
func (t *claimTask) apply(ctx context.Context) error {
	if t.connection == nil {
		t.diagnostics.AddError("Provider is not configured", "The provider must be configured before anything is written.")
		return nil
	}
	if t.decode(); t.diagnostics.HasError() {
		return nil
	}
	if !t.complete {
		t.diagnostics.AddError("Claim is not known", "The name, number, pool, fleet and gitops_repo of a claim must be known when it is applied.")
		return nil
	}
	edit := gitops.ClaimEdit{
		Environment: t.fleet.Environment, Holder: t.holder, Holders: t.replaced,
		Adopt: t.model.Adopt.ValueBool(), Choose: t.choose, Subject: t.model.CommitMessage.ValueString(),
	}
	was, exists := t.formerClaim()
	moved := t.isMoved(ctx)
	switch {
	case moved && t.private != nil: // another holder, so that a mirror of this location does not lose it with the old one
		edit.Holder, edit.Holders = delivery.NewHolder(), []string{t.private.Holder}
	case exists && t.private != nil:
		edit.Holder, edit.Holders = t.private.Holder, []string{t.private.Holder, ""}
		if was.Name != t.at.Name {
			edit.Formerly = was.Name
		}
	}
	if edit.Holder == "" {
		edit.Holder = delivery.NewHolder()
	}
	t.after = &claimPrivate{Holder: edit.Holder, Environment: t.fleet.Environment}
	result, err := t.connection.Delivery.Claim(ctx, t.at, edit)
	if err != nil {
		addClaimError(ctx, t.diagnostics, err)
		return err
	}
	t.after.Record, t.after.Clusters = result.Record, result.Clusters
	t.model.Clusters, t.model.Commit = tfvalue.Texts(result.Clusters), types.StringValue(result.Commit)
	if moved && t.private != nil {
		if _, err := t.connection.Delivery.ReleaseClaim(ctx, was, []string{t.private.Holder}, edit.Subject); err != nil {
			t.diagnostics.AddAttributeWarning(path.Root("gitops_repo"), "Clusters are claimed at the former location", tfvalue.Sentence(fmt.Sprintf(
				"the claim is made at its new location, but the old one could not be released: %s", err)))
		}
	}
	return nil
}

// choose decides about clusters at the tip that the commit is made on.
func (t *claimTask) choose(tip gitops.ClaimTip) ([]string, error) {
	if !t.model.Clusters.IsUnknown() {
		var names []string
		for _, element := range t.model.Clusters.Elements() {
			names = append(names, element.(types.String).ValueString())
		}
		for _, name := range names {
			if other, taken := tip.Elsewhere[name]; taken {
				return nil, &promisedError{name, other}
			}
		}
		return names, nil
	}
	var held []string
	if t.private != nil {
		held = t.private.held()
	}
	decision, err := claim.Decide(t.situation(slices.Concat(held, tip.Held), tip.Elsewhere))
	return decision.Clusters, err
}

// addClaimError reports why a claim cannot have the clusters, at the attribute.
func addClaimError(ctx context.Context, diagnostics *diag.Diagnostics, err error) {
	short, promised := (*claim.ShortError)(nil), (*promisedError)(nil)
	switch {
	case errors.As(err, &short) && short.Pool == 0:
		diagnostics.AddAttributeError(path.Root("pool"), "The pool is empty", tfvalue.Sentence(err.Error()))
	case errors.As(err, &short):
		diagnostics.AddAttributeError(path.Root("number"), "The pool has too few clusters", tfvalue.Sentence(err.Error())+
			" If another claim shall release clusters, apply that first.")
	case errors.As(err, &promised):
		diagnostics.AddAttributeError(path.Root("clusters"), "Repository has changed since the plan", tfvalue.Sentence(err.Error())+" Nothing was written: plan again.")
	case errors.Is(err, gitops.ErrClaimHeld):
		addHeld(diagnostics, err.Error())
	case errors.Is(err, gitops.ErrClaimTwice):
		addClaimedTwice(diagnostics, err.Error())
	case errors.Is(err, gitops.ErrClaimUnreadable):
		diagnostics.AddAttributeError(path.Root("gitops_repo"), "Record of a claim cannot be read", tfvalue.Sentence(err.Error())+" The next apply of their claims writes the records again.")
	default:
		repository.AddError(ctx, diagnostics, err, false)
	}
}
