package provider

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/gitops"
)

// claimMemory is the private state of a claim: what it wrote, and what the last refresh found of that.
type claimMemory struct {
	Holder      string   `json:"holder"`
	Record      string   `json:"record"`
	Clusters    []string `json:"clusters"`
	Environment string   `json:"environment,omitempty"`

	Touched  bool     `json:"touched,omitempty"`
	Foreign  bool     `json:"foreign,omitempty"`
	Gone     bool     `json:"gone,omitempty"`
	Unsigned string   `json:"unsigned,omitempty"` // by which commit a record was changed that no allowed key has signed
	Recorded []string `json:"recorded,omitempty"` // what a record that was touched lists
	Lost     []string `json:"lost,omitempty"`     // to other claims
}

const (
	claimKey = "claim"
	// replacedKey has the holders of an object that is being replaced. It is in the private state of a plan that creates.
	replacedKey = "replaced"
)

// recallClaim reads the memory; nil where there is none.
func recallClaim(ctx context.Context, private privateState, diagnostics *diag.Diagnostics) *claimMemory {
	text, diags := private.GetKey(ctx, claimKey)
	if diagnostics.Append(diags...); text == nil || diags.HasError() {
		return nil
	}
	m := &claimMemory{}
	if err := json.Unmarshal(text, m); err != nil {
		diagnostics.AddError("Private state cannot be read", sentence("what the claim has written is not known; import it again: "+err.Error()))
		return nil
	}
	return m
}

func (m *claimMemory) keep(ctx context.Context, private privateState, diagnostics *diag.Diagnostics) {
	keepJSON(ctx, claimKey, m, private, diagnostics)
}

func keepJSON(ctx context.Context, key string, value any, private privateState, diagnostics *diag.Diagnostics) {
	text, err := json.Marshal(value)
	if err != nil {
		diagnostics.AddError("Private state cannot be written", err.Error())
		return
	}
	diagnostics.Append(private.SetKey(ctx, key, text)...)
}

// keepReplaced notes the holders whose record the new object takes over.
func keepReplaced(ctx context.Context, holders []string, private privateState, diagnostics *diag.Diagnostics) {
	keepJSON(ctx, replacedKey, holders, private, diagnostics)
}

// takeReplaced reads the note, and removes it.
func takeReplaced(ctx context.Context, private privateState, diagnostics *diag.Diagnostics) []string {
	text, diags := private.GetKey(ctx, replacedKey)
	diagnostics.Append(diags...)
	if text == nil {
		return nil
	}
	diagnostics.Append(private.SetKey(ctx, replacedKey, nil)...)
	var holders []string
	_ = json.Unmarshal(text, &holders) // none, then
	return holders
}

// known is what the memory has of a claim.
func (m *claimMemory) known(claim delivery.Claim) delivery.KnownClaim {
	return delivery.KnownClaim{Claim: claim, Holder: m.Holder, Record: m.Record, Clusters: m.Clusters}
}

// see notes what a refresh has found.
func (m *claimMemory) see(seen delivery.SeenClaim) {
	m.Touched, m.Foreign, m.Gone, m.Lost, m.Recorded, m.Unsigned = seen.Touched, seen.Foreign, seen.Gone, seen.Lost, nil, seen.Unsigned
	if seen.Touched {
		m.Recorded = seen.Clusters
	}
}

// held are the clusters that the claim has: those that it wrote, and those that were added to its record by hand.
func (m *claimMemory) held() []string { return slices.Concat(m.Clusters, m.Recorded) }

// rememberClaimed is the memory after an apply.
func rememberClaimed(holder, environment string, result gitops.ClaimResult) *claimMemory {
	return &claimMemory{Holder: holder, Record: result.Record, Clusters: result.Clusters, Environment: environment}
}
