package clusterclaim

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/privatestate"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
)

// claimPrivate is the private state of a claim: its written record, and the result of the last refresh.
type claimPrivate struct {
	Holder      string   `json:"holder"`
	Record      string   `json:"record"`
	Clusters    []string `json:"clusters"`
	Environment string   `json:"environment,omitempty"`

	Seen delivery.SeenClaim `json:"seen,omitzero"` // has clusters only if the record was touched
}

const (
	claimKey = "claim"
	// replacedKey has the holders of a replaced object, in the private state of a plan that creates.
	replacedKey = "replaced"
)

// loadClaim reads the private state; nil if there is none.
func loadClaim(ctx context.Context, private privatestate.State, diagnostics *diag.Diagnostics) *claimPrivate {
	text, diags := private.GetKey(ctx, claimKey)
	if diagnostics.Append(diags...); text == nil || diags.HasError() {
		return nil
	}
	m := &claimPrivate{}
	if err := json.Unmarshal(text, m); err != nil {
		diagnostics.AddError(
			"Private state cannot be read",
			tfvalue.Sentence("what the claim has written is not known; import it again: "+err.Error()),
		)
		return nil
	}
	return m
}

func (m *claimPrivate) save(ctx context.Context, private privatestate.State, diagnostics *diag.Diagnostics) {
	privatestate.Save(ctx, claimKey, m, private, diagnostics)
}

// takeReplaced removes and returns the holders of a replaced object.
func takeReplaced(ctx context.Context, private privatestate.State, diagnostics *diag.Diagnostics) (holders []string) {
	privatestate.Take(ctx, replacedKey, &holders, private, diagnostics)
	return holders
}

// known returns the claim in the private state.
func (m *claimPrivate) known(claim delivery.Claim) delivery.ClaimState {
	return delivery.ClaimState{Claim: claim, Holder: m.Holder, Record: m.Record, Clusters: m.Clusters}
}

// held returns the clusters of the claim: written ones, and those added to its record by hand. m may be nil.
func (m *claimPrivate) held() []string {
	if m == nil {
		return nil
	}
	return slices.Concat(m.Clusters, m.Seen.Clusters)
}
