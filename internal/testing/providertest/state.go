package providertest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// Object is the current object of a resource, or a deposed one, left by a replacement with create_before_destroy.
type Object struct {
	SchemaVersion       int64
	Attributes          json.RawMessage
	Private             []byte
	Tainted             bool
	CreateBeforeDestroy bool
}

// Instance is a resource in the state.
type Instance struct {
	Current *Object
	Deposed []*Object
}

// State has the instances by address.
type State map[string]Instance

// Clone copies the state.
func (s State) Clone() State {
	clone := State{}
	for address, instance := range s {
		instance.Deposed = slices.Clone(instance.Deposed)
		clone[address] = instance
	}
	return clone
}

func (s State) move(to map[string]string) State {
	moved := State{}
	for address, instance := range s {
		if other, ok := to[address]; ok {
			address = other
		}
		moved[address] = instance
	}
	return moved
}

func (s State) setCurrent(address string, object *Object) {
	instance := s[address]
	instance.Current = object
	s.set(address, instance)
}

func (s State) set(address string, instance Instance) {
	if instance.Current == nil && len(instance.Deposed) == 0 {
		delete(s, address)
		return
	}
	s[address] = instance
}

func (s State) setDeposed(address string, former, object *Object) {
	instance := s[address]
	instance.Deposed = slices.Clone(instance.Deposed)
	i := slices.Index(instance.Deposed, former)
	if object == nil {
		instance.Deposed = slices.Delete(instance.Deposed, i, i+1)
	} else {
		instance.Deposed[i] = object
	}
	s.set(address, instance)
}

func (s State) depose(address string) *Object {
	instance := s[address]
	deposed := instance.Current
	instance.Deposed = append(slices.Clone(instance.Deposed), deposed)
	instance.Current = nil
	s.set(address, instance)
	return deposed
}

// restore makes a deposed object current, if there is no other.
func (s State) restore(address string, deposed *Object) {
	instance := s[address]
	if i := slices.Index(instance.Deposed, deposed); i >= 0 && instance.Current == nil {
		instance.Deposed = slices.Delete(slices.Clone(instance.Deposed), i, i+1)
		instance.Current = deposed
		s.set(address, instance)
	}
}

// Values returns the attributes of a current object, or nil.
func (s State) Values(address string) map[string]any {
	current := s[address].Current
	if current == nil {
		return nil
	}
	values := map[string]any{}
	if err := json.Unmarshal(current.Attributes, &values); err != nil {
		panic(err)
	}
	return values
}

// ParseState reads the file terraform.tfstate of a root module.
func ParseState(file []byte) (State, error) {
	var parsed struct {
		Resources []struct {
			Mode, Type, Name string
			Instances        []struct {
				IndexKey            any             `json:"index_key"`
				SchemaVersion       int64           `json:"schema_version"`
				Attributes          json.RawMessage `json:"attributes"`
				Private             []byte          `json:"private"`
				Status              string          `json:"status"`
				Deposed             string          `json:"deposed"`
				CreateBeforeDestroy bool            `json:"create_before_destroy"`
			}
		}
	}
	if err := json.Unmarshal(file, &parsed); err != nil {
		return nil, err
	}
	state := State{}
	for _, resource := range parsed.Resources {
		for _, instance := range resource.Instances {
			address := resource.Type + "." + resource.Name
			switch key := instance.IndexKey.(type) {
			case string:
				address += fmt.Sprintf("[%q]", key)
			case float64:
				address += fmt.Sprintf("[%d]", int(key))
			}
			object := &Object{
				SchemaVersion: instance.SchemaVersion, Attributes: instance.Attributes, Private: instance.Private,
				Tainted: instance.Status == "tainted", CreateBeforeDestroy: instance.CreateBeforeDestroy,
			}
			switch known := state[address]; {
			case resource.Mode != "managed":
			case instance.Deposed != "":
				state[address] = Instance{Current: known.Current, Deposed: append(known.Deposed, object)}
			default:
				state[address] = Instance{Current: object, Deposed: known.Deposed}
			}
		}
	}
	return state, nil
}

// decodedObject is the value of an object of the state.
type decodedObject struct {
	version    int64
	attributes string
	value      tftypes.Value
	diags      []*tfprotov6.Diagnostic
}

// decodeObject lets the provider upgrade an object. Core upgrades on every read; decodeObject does it once for each object.
func (p *process) decodeObject(ctx context.Context, address string, object *Object) (tftypes.Value, Diagnostics) {
	schema, problems := p.resource(address)
	if problems != nil {
		return tftypes.Value{}, problems
	}
	if object == nil {
		return tftypes.NewValue(schema.ValueType(), nil), nil
	}
	if object.SchemaVersion > schema.Version {
		return tftypes.Value{}, core(address, "Resource instance managed by newer provider version",
			fmt.Sprintf("The state has schema version %d, and the provider has %d.", object.SchemaVersion, schema.Version))
	}
	decoded, err := p.answers.upgrade(address, object, func() (decodedObject, error) {
		upgraded, err := p.server.UpgradeResourceState(ctx, &tfprotov6.UpgradeResourceStateRequest{
			TypeName: typeOf(address), Version: object.SchemaVersion, RawState: &tfprotov6.RawState{JSON: object.Attributes},
		})
		if err != nil {
			return decodedObject{}, err
		}
		decoded := decodedObject{version: object.SchemaVersion, attributes: string(object.Attributes), diags: upgraded.Diagnostics}
		if fromProtocol(address, upgraded.Diagnostics).Err() == nil {
			decoded.value, err = upgraded.UpgradedState.Unmarshal(schema.ValueType())
		}
		return decoded, err
	})
	if err != nil {
		return tftypes.Value{}, protocolError(address, err)
	}
	return decoded.value, fromProtocol(address, decoded.diags)
}

// upgrade returns the last answer for an address if the object is the same. The address contains the type.
func (a *answers) upgrade(address string, object *Object, ask func() (decodedObject, error)) (decodedObject, error) {
	a.mu.Lock()
	decoded, isKnown := a.decoded[address]
	a.mu.Unlock()
	if isKnown && decoded.version == object.SchemaVersion && decoded.attributes == string(object.Attributes) {
		return decoded, nil
	}
	decoded, err := ask()
	if err != nil {
		return decoded, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.decoded[address] = decoded
	return decoded, nil
}

func (p *process) encodeObject(address string, value tftypes.Value, private []byte, like *Object) (*Object, error) {
	if value.IsNull() {
		return nil, nil
	}
	schema := p.schema.ResourceSchemas[typeOf(address)]
	plain, err := toJSON(schema.ValueType(), value)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(plain)
	if err != nil {
		return nil, err
	}
	object := &Object{}
	if like != nil {
		*object = *like
	}
	object.SchemaVersion, object.Attributes, object.Private = schema.Version, text, private
	return object, nil
}

func union[A, B any](a map[string]A, b map[string]B) []string {
	all := map[string]bool{}
	for address := range a {
		all[address] = true
	}
	for address := range b {
		all[address] = true
	}
	return slices.Sorted(maps.Keys(all))
}
