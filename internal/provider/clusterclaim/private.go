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
