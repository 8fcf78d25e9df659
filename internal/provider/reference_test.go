package provider_test

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/troubleshooting"
	"github.com/flotilla/terraform-provider-flotilla/internal/reference"
	"github.com/flotilla/terraform-provider-flotilla/internal/wire"
)

// validating is a provider whose function fleet fails where the JSON Schema that is published finds a mistake in a fleet that is one:
// so each fleet in tests, and of each example, is checked by it.
type validating struct{ troubleshooting.Server }

var fleetSchema = jsonschema.MustCompileString("fleet.json", string(reference.Schemas()["fleet.json"]))

func (s validating) CallFunction(ctx context.Context, req *tfprotov6.CallFunctionRequest) (*tfprotov6.CallFunctionResponse, error) {
	resp, err := s.Server.CallFunction(ctx, req)
	if req.Name != "fleet" || err != nil || resp.Error != nil || len(req.Arguments) != 1 {
		return resp, err
	}
	argument, err := wire.Plain(req.Arguments[0].MsgPack)
	if err != nil || !fleet.IsKnown(argument) { // a fleet that is not known as a whole has no type
		return resp, nil //nolint:nilerr // the provider has read it in another way
	}
	if err := fleetSchema.Validate(argument); err != nil {
		return nil, fmt.Errorf("the schema refuses what is a fleet: %w", err)
	}
	return resp, nil
}
