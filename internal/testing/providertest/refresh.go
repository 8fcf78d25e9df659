package providertest

import (
	"context"
	"errors"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

func (p *process) current(ctx context.Context, address string, object *Object, skipRefresh bool) (found, Diagnostics) {
	now := found{object: object}
	var said Diagnostics
	now.value, said = p.decodeObject(ctx, address, object)
	if said.Err() != nil || object == nil {
		return now, said
	}
	now.private = object.Private
	if !skipRefresh {
		var more Diagnostics
		now.value, now.private, more = p.refresh(ctx, address, now.value, now.private)
		if said = append(said, more...); said.Err() != nil {
			return now, said
		}
	}
	now.object, said = p.encoded(address, now.value, now.private, object, said)
	return now, said
}

func (p *process) encoded(address string, value tftypes.Value, private []byte, like *Object, said Diagnostics) (*Object, Diagnostics) {
	object, err := p.encodeObject(address, value, private, like)
	if err != nil {
		return like, append(said, core(address, "Provider produced invalid object", err.Error())...)
	}
	return object, said
}

func (p *process) refresh(ctx context.Context, address string, value tftypes.Value, private []byte) (tftypes.Value, []byte, Diagnostics) {
	schema := p.schema.ResourceSchemas[typeOf(address)]
	prior, err := tfprotov6.NewDynamicValue(schema.ValueType(), value)
	if err != nil {
		return value, private, broken(address, err)
	}
	response, err := p.server.ReadResource(ctx, &tfprotov6.ReadResourceRequest{
		TypeName: typeOf(address), CurrentState: &prior, Private: private,
	})
	if err != nil {
		return value, private, broken(address, err)
	}
	said := fromProtocol(address, response.Diagnostics)
	if said.Err() != nil {
		return value, private, said
	}
	read, err := response.NewState.Unmarshal(schema.ValueType())
	if err != nil {
		return value, private, broken(address, err)
	}
	var problems []error
	if !read.IsFullyKnown() {
		problems = append(problems, errors.New("the state that was read has unknown values"))
	}
	problems = append(problems, checkWriteOnly(schema.Block, read)...)
	if !read.IsNull() {
		said = append(said, p.identified(address, response.NewIdentity)...)
	}
	return read, response.Private, append(said, bugs(address, "Provider produced invalid object", problems)...)
}
