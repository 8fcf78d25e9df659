package constraint

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/expression"
)

// adapter converts objects of our classes and JSON values to values of CEL.
type adapter struct {
	*expression.Adapter
	vocabulary *vocabulary
}

// FindStructType is one half of [types.Provider] for our classes.
func (a *adapter) FindStructType(name string) (*types.Type, bool) {
	if class, ok := a.vocabulary.all[name]; ok {
		return types.NewTypeTypeWithParam(class.kind), true
	}
	return a.Registry.FindStructType(name)
}

// FindStructFieldNames is for the compiler's suggestions.
func (a *adapter) FindStructFieldNames(name string) ([]string, bool) {
	if class, ok := a.vocabulary.all[name]; ok {
		return class.names(), true
	}
	return a.Registry.FindStructFieldNames(name)
}

// FindStructFieldType is the other half of [types.Provider]. The object itself reads its fields, so that a value that is
// not known yet remains unknown.
func (a *adapter) FindStructFieldType(name, fieldName string) (*types.FieldType, bool) {
	class, ok := a.vocabulary.all[name]
	if !ok {
		return a.Registry.FindStructFieldType(name, fieldName)
	}
	index, ok := class.index[fieldName]
	if !ok {
		return nil, false
	}
	return &types.FieldType{Type: class.fields[index].kind}, true
}

// NewValue always fails: a rule that creates objects does not compile.
func (a *adapter) NewValue(name string, fields map[string]ref.Val) ref.Val {
	if _, ok := a.vocabulary.all[name]; ok {
		return types.NewErr("objects of type %s cannot be made", name)
	}
	return a.Registry.NewValue(name, fields)
}

// classObject is a value of a class.
type classObject struct {
	class   *class
	adapter *adapter
	subject any
	fields  []ref.Val // made once; nil where they are made when they are read
}

func (o *classObject) field(index int) ref.Val {
	if o.fields != nil {
		return o.fields[index]
	}
	return o.adapter.NativeToValue(o.class.fields[index].of(o.subject))
}

// isSet is false for an empty field, and true for one that is not known.
func (o *classObject) isSet(index int) bool {
	switch value := o.field(index).(type) {
	case types.String:
		return value != ""
	case traits.Sizer:
		return value.Size() != types.IntZero
	}
	return true
}

// Get reads a field of an object whose type the compiler does not know.
func (o *classObject) Get(name ref.Val) ref.Val {
	index, problem := o.indexOf(name)
	if problem != nil {
		return problem
	}
	return o.field(index)
}

// IsSet is has() for an object whose type the compiler does not know.
func (o *classObject) IsSet(name ref.Val) ref.Val {
	index, problem := o.indexOf(name)
	if problem != nil {
		return problem
	}
	return types.Bool(o.isSet(index))
}

func (o *classObject) indexOf(name ref.Val) (int, ref.Val) {
	text, ok := name.(types.String)
	if !ok {
		return 0, types.MaybeNoSuchOverloadErr(name)
	}
	index, ok := o.class.index[string(text)]
	if !ok {
		return 0, types.NewErr("no such field '%s'", string(text))
	}
	return index, nil
}

// Equal compares identities: there is one object for each object of the fleet.
func (o *classObject) Equal(other ref.Val) ref.Val {
	same, ok := other.(*classObject)
	if !ok || o.class != same.class {
		return types.False
	}
	if o == same {
		return types.True
	}
	for i := range o.class.fields {
		if equal := types.Equal(o.field(i), same.field(i)); equal != types.True {
			return equal
		}
	}
	return types.True
}

// ConvertToNative always fails. The interpreter does not call it.
func (o *classObject) ConvertToNative(wanted reflect.Type) (any, error) {
	return nil, fmt.Errorf("%s cannot be converted to %v", o.class.name, wanted)
}

// ConvertToType accepts only the type of the object.
func (o *classObject) ConvertToType(wanted ref.Type) ref.Val {
	switch wanted {
	case types.TypeType:
		return o.class.kind
	case o.class.kind:
		return o
	}
	return types.NewErr("type conversion error from '%s' to '%s'", o.class.name, wanted.TypeName())
}

// Type of the object.
func (o *classObject) Type() ref.Type { return o.class.kind }

// Value is the object itself: it has no other form.
func (o *classObject) Value() any { return o }

var _ interface {
	ref.Val
	traits.Indexer
	traits.FieldTester
} = (*classObject)(nil)

// unknown is a value that is not known yet. The evaluation passes on what it waits for.
func unknown(waitsFor string) ref.Val {
	return types.NewUnknown(0, types.NewAttributeTrail(waitsFor))
}

// waitsFor returns what an unknown value waits for.
func waitsFor(value *types.Unknown) string {
	var all []string
	for _, id := range value.IDs() {
		trails, _ := value.GetAttributeTrails(id)
		for _, trail := range trails {
			all = append(all, trail.Variable())
		}
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), ", ")
}
