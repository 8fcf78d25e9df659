package providertest

import (
	"context"
	"errors"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

func (p *process) current(ctx context.Context, address string, object *Object, skipRefresh bool) (refreshedObject, Diagnostics) {
	now := refreshedObject{object: object}
	var diags Diagnostics
	now.value, diags = p.decodeObject(ctx, address, object)
	if diags.Err() != nil || object == nil {
		return now, diags
	}
	now.private = object.Private
	if !skipRefresh {
		var more Diagnostics
		now.value, now.private, more = p.refresh(ctx, address, now.value, now.private)
		if diags = append(diags, more...); diags.Err() != nil {
			return now, diags
		}
	}
	now.object, diags = p.encoded(address, now.value, now.private, object, diags)
	return now, diags
}

func (p *process) encoded(address string, value tftypes.Value, private []byte, like *Object, diags Diagnostics) (*Object, Diagnostics) {
	object, err := p.encodeObject(address, value, private, like)
	if err != nil {
		return like, append(diags, core(address, "Provider produced invalid object", err.Error())...)
	}
	return object, diags
}

func (p *process) refresh(ctx context.Context, address string, value tftypes.Value, private []byte) (tftypes.Value, []byte, Diagnostics) {
	schema := p.schema.ResourceSchemas[typeOf(address)]
	prior, err := tfprotov6.NewDynamicValue(schema.ValueType(), value)
	if err != nil {
		return value, private, protocolError(address, err)
	}
	response, err := p.server.ReadResource(ctx, &tfprotov6.ReadResourceRequest{
		TypeName: typeOf(address), CurrentState: &prior, Private: private,
	})
	if err != nil {
		return value, private, protocolError(address, err)
	}
	diags := fromProtocol(address, response.Diagnostics)
	if diags.Err() != nil {
		return value, private, diags
	}
	read, err := response.NewState.Unmarshal(schema.ValueType())
	if err != nil {
		return value, private, protocolError(address, err)
	}
	var problems []error
	if !read.IsFullyKnown() {
		problems = append(problems, errors.New("the state that was read has unknown values"))
	}
	problems = append(problems, checkWriteOnly(schema.Block, read)...)
	if !read.IsNull() {
		diags = append(diags, p.keepIdentity(address, response.NewIdentity)...)
	}
	return read, response.Private, append(diags, bugs(address, "Provider produced invalid object", problems)...)
}
