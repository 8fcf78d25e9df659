package provider

import (
	"context"
	"encoding/json"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/flotilla/terraform-provider-flotilla/internal/provider/wire"
)

// sayChanges are the resources with an attribute changes.
var sayChanges = map[string]bool{"flotilla_assignment": true, "flotilla_agent": true, "flotilla_rollout": true}

// UpgradeResourceState reads the attribute changes as empty. A state has what the last apply changed, and the next plan
// must not show those lines, nor leave out lines that are the same again. A refresh could empty it, too, but then
// Terraform would report a change outside of Terraform after every apply. What this call changes is no change for it.
func (s *server) UpgradeResourceState(
	ctx context.Context, req *tfprotov6.UpgradeResourceStateRequest,
) (*tfprotov6.UpgradeResourceStateResponse, error) {
	if sayChanges[req.TypeName] && req.RawState != nil {
		var attributes map[string]json.RawMessage
		if json.Unmarshal(req.RawState.JSON, &attributes) == nil && attributes["changes"] != nil {
			attributes["changes"] = json.RawMessage("[]")
			if text, err := json.Marshal(attributes); err == nil {
				without := *req
				without.RawState = &tfprotov6.RawState{JSON: text}
				req = &without
			}
		}
	}
	return s.Server.UpgradeResourceState(ctx, req)
}

// ReadResource writes numbers as text. Terraform compares a refreshed object with that of the state by how it has read
// their numbers, and finds 1 from a provider and 1 from a state different: each `plan -refresh-only -detailed-exitcode`
// would be 2, without a change that it could show (github.com/hashicorp/terraform/issues/36403).
func (s *server) ReadResource(ctx context.Context, req *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	resp, err := s.Server.ReadResource(ctx, req)
	if err == nil && resp.NewState != nil {
		if message, err := wire.NumbersAsText(resp.NewState.MsgPack); err == nil {
			resp.NewState = &tfprotov6.DynamicValue{MsgPack: message}
		}
	}
	return resp, err
}
