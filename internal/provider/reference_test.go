package provider_test

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/troubleshooting"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/wire"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/reference"
)

// validatingServer validates each fleet, and each object that a resource describes, with the published JSON Schema.
type validatingServer struct{ troubleshooting.Server }

// fleetSchema is compiled on first use, because each process of the renderer starts this program.
var fleetSchema = sync.OnceValue(func() *jsonschema.Schema {
	return jsonschema.MustCompileString("fleet.json", string(reference.Schemas()["fleet.json"]))
})

// objectSchemas are JSON Schemas by type of resource.
var objectSchemas = sync.OnceValue(func() map[string]*jsonschema.Schema {
	schemas := map[string]*jsonschema.Schema{}
	for name, text := range reference.Schemas() {
		kind := strings.TrimSuffix(name, ".json")
		if kind != "assignment" { // not an object of a fleet
			schemas["flotilla_"+kind] = jsonschema.MustCompileString(name, string(text))
		}
	}
	return schemas
})

// resourceTypes has the Terraform type of each resource.
var resourceTypes = sync.OnceValues(func() (map[string]tftypes.Type, error) {
	schemas, err := provider.Server(provider.ForTest()).GetProviderSchema(context.Background(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		return nil, err
	}
	types := map[string]tftypes.Type{}
	for name, schema := range schemas.ResourceSchemas {
		types[name] = schema.ValueType()
	}
	return types, nil
})

func (s validatingServer) PlanResourceChange(
	ctx context.Context,
	req *tfprotov6.PlanResourceChangeRequest,
) (*tfprotov6.PlanResourceChangeResponse, error) {
	resp, err := s.Server.PlanResourceChange(ctx, req)
	schema := objectSchemas()[req.TypeName]
	if err != nil || schema == nil || len(resp.Diagnostics) > 0 {
		return resp, err
	}
	types, err := resourceTypes()
	if err != nil {
		return nil, err
	}
	config, err := req.Config.Unmarshal(types[req.TypeName])
	if err != nil {
		return nil, err
	}
	if config.IsNull() || !config.IsFullyKnown() {
		return resp, nil
	}
	if err := schema.Validate(providertest.FromValue(config)); err != nil {
		return nil, fmt.Errorf("the schema refuses a valid %s: %w", req.TypeName, err)
	}
	return resp, nil
}

func (s validatingServer) CallFunction(ctx context.Context, req *tfprotov6.CallFunctionRequest) (*tfprotov6.CallFunctionResponse, error) {
	resp, err := s.Server.CallFunction(ctx, req)
	if req.Name != "fleet" || err != nil || resp.Error != nil || len(req.Arguments) != 1 {
		return resp, err
	}
	argument, err := wire.Plain(req.Arguments[0].MsgPack)
	if err != nil || !fleet.IsKnown(argument) { // a partly unknown fleet has no type
		return resp, nil //nolint:nilerr // the provider has read it in another way
	}
	if err := fleetSchema().Validate(argument); err != nil {
		return nil, fmt.Errorf("the schema refuses a valid fleet: %w", err)
	}
	return resp, nil
}
