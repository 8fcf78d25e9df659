package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/flotilla/terraform-provider-flotilla/internal/provider/functions"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/largevalue"
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
	return s.Server.CallFunction(largevalue.WithArgument(ctx, argument),
		&tfprotov6.CallFunctionRequest{Name: req.Name, Arguments: []*tfprotov6.DynamicValue{&seen}})
}

// ReadDataSource adds the attribute that the data source has set aside.
func (s *server) ReadDataSource(ctx context.Context, req *tfprotov6.ReadDataSourceRequest) (*tfprotov6.ReadDataSourceResponse, error) {
	ctx, aside := largevalue.WithAside(ctx)
	resp, err := s.Server.ReadDataSource(ctx, req)
	if err != nil || aside.Value == nil {
		return resp, err
	}
	resp.State.MsgPack, err = wire.Replace(resp.State.MsgPack, aside.Name, aside.Value)
	return resp, err
}
