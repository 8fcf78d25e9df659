package provider

import (
	"context"
	"encoding/json"

	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/flotilla/terraform-provider-flotilla/internal/provider/functions"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/troubleshooting"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/wire"
)

// Server serves a provider by the plugin framework. Package wire reads and writes the large values: the argument of
// provider::flotilla::fleet, and the assignments of flotilla_scheduling and flotilla_inventory. The framework gets a small
// value in their place, and does everything else.
//
// In a plan of 20,000 assignments without changes, the framework took 2.3 s of processor time for the first two.
func Server(p provider.Provider) tfprotov6.ProviderServer {
	var metadata provider.MetadataResponse
	p.Metadata(context.Background(), provider.MetadataRequest{}, &metadata)
	return &server{troubleshooting.Explain(providerserver.NewProtocol6(p)(), metadata.Version)}
}

type server struct{ troubleshooting.Server }

// CallFunction reads the argument of fleet. If it cannot, the framework reads it and reports the error.
func (s *server) CallFunction(ctx context.Context, req *tfprotov6.CallFunctionRequest) (*tfprotov6.CallFunctionResponse, error) {
	if req.Name != functions.Fleet.Name || len(req.Arguments) != 1 || req.Arguments[0] == nil {
		return s.Server.CallFunction(ctx, req)
	}
	argument, err := wire.Plain(req.Arguments[0].MsgPack)
	if err != nil {
		return s.Server.CallFunction(ctx, req)
	}
	seen, err := tfprotov6.NewDynamicValue(tftypes.DynamicPseudoType, tftypes.NewValue(tftypes.String, "read already"))
	if err != nil {
		return nil, err
	}
	return s.Server.CallFunction(wire.WithArgument(ctx, argument),
		&tfprotov6.CallFunctionRequest{Name: req.Name, Arguments: []*tfprotov6.DynamicValue{&seen}})
}

// ReadDataSource adds the attribute that the data source has set aside.
func (s *server) ReadDataSource(ctx context.Context, req *tfprotov6.ReadDataSourceRequest) (*tfprotov6.ReadDataSourceResponse, error) {
	ctx, aside := wire.WithAside(ctx)
	resp, err := s.Server.ReadDataSource(ctx, req)
	if err != nil || aside.Value == nil {
		return resp, err
	}
	resp.State.MsgPack, err = wire.Replace(resp.State.MsgPack, aside.Name, aside.Value)
	return resp, err
}

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
