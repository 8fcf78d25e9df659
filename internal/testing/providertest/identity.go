package providertest

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// ImportIdentity applies a block `import { to, identity }` alone.
func (w *Workspace) ImportIdentity(ctx context.Context, configuration Configuration, address string, identity map[string]any) Diagnostics {
	return w.importBy(ctx, configuration, address, func(p *process, request *tfprotov6.ImportResourceStateRequest) Diagnostics {
		schema := p.answers.ids.IdentitySchemas[typeOf(address)]
		if schema == nil {
			return core(address, "Resource type does not support identity", "The provider has no identity for it.")
		}
		for _, attribute := range schema.IdentityAttributes {
			if identity[attribute.Name] == nil && attribute.RequiredForImport {
				return core(address, "Invalid import identity argument", "The identity has no "+attribute.Name+".")
			}
		}
		full := map[string]any{}
		for name := range schema.ValueType().(tftypes.Object).AttributeTypes {
			full[name] = identity[name]
		}
		value, err := toValue(schema.ValueType(), full)
		if err != nil {
			return protocolError(address, err)
		}
		data, err := tfprotov6.NewDynamicValue(schema.ValueType(), value)
		if err != nil {
			return protocolError(address, err)
		}
		request.Identity = &tfprotov6.ResourceIdentityData{IdentityData: &data}
		return nil
	})
}

// Identity returns the last identity of an object.
func (w *Workspace) Identity(address string) map[string]any {
	w.answers.mu.Lock()
	defer w.answers.mu.Unlock()
	return maps.Clone(w.answers.now[address])
}

// keepIdentity keeps the identity of an object, and finds bugs.
func (p *process) keepIdentity(address string, data *tfprotov6.ResourceIdentityData) Diagnostics {
	schema := p.answers.ids.IdentitySchemas[typeOf(address)]
	if schema == nil {
		return nil
	}
	if data == nil || data.IdentityData == nil {
		return bugs(address, "Provider produced invalid identity", []error{errors.New("there is none")})
	}
	value, err := data.IdentityData.Unmarshal(schema.ValueType())
	if err != nil {
		return bugs(address, "Provider produced an identity that doesn't match the schema", []error{err})
	}
	identity, _ := FromValue(value).(map[string]any)
	if !value.IsFullyKnown() || !slices.ContainsFunc(slices.Collect(maps.Values(identity)), func(value any) bool { return value != nil }) {
		return bugs(address, "Provider produced invalid identity", []error{errors.New("it is null, or not known")})
	}
	p.answers.mu.Lock()
	defer p.answers.mu.Unlock()
	p.answers.now[address] = identity
	return nil
}
