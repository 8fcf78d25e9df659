package provider

import (
	"context"
	"encoding/json"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/flotilla/terraform-provider-flotilla/internal/provider/wire"
)

// sayChanges lists the resources with an attribute changes.
var sayChanges = map[string]bool{"flotilla_assignment": true, "flotilla_agent": true, "flotilla_rollout": true}

// UpgradeResourceState reads the attribute changes as empty. The state has the changes of the last apply; the next plan
// must neither show those lines nor omit equal new ones. If a refresh emptied it, Terraform would report a change outside
// of Terraform after every apply.
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

// ReadResource writes numbers as text. Terraform finds a 1 from a provider different from a 1 in the state: each `plan
// -refresh-only -detailed-exitcode` would return 2 without showing a change (github.com/hashicorp/terraform/issues/36403).
func (s *server) ReadResource(ctx context.Context, req *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	resp, err := s.Server.ReadResource(ctx, req)
	if err == nil && resp.NewState != nil {
		if message, err := wire.NumbersAsText(resp.NewState.MsgPack); err == nil {
			resp.NewState = &tfprotov6.DynamicValue{MsgPack: message}
		}
	}
	return resp, err
}
