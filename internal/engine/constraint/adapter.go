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

type adapter struct {
	*expression.Adapter
	vocabulary *vocabulary
}

// FindStructType implements [types.Provider].
func (a *adapter) FindStructType(name string) (*types.Type, bool) {
	if class, ok := a.vocabulary.all[name]; ok {
		return types.NewTypeTypeWithParam(class.kind), true
	}
	return a.Registry.FindStructType(name)
}

// FindStructFieldNames implements [types.Provider], for suggestions.
func (a *adapter) FindStructFieldNames(name string) ([]string, bool) {
	if class, ok := a.vocabulary.all[name]; ok {
		return class.names(), true
	}
	return a.Registry.FindStructFieldNames(name)
}

// FindStructFieldType implements [types.Provider]. Objects read their own fields, so unknown values stay unknown.
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

// NewValue always fails: rules cannot create objects.
func (a *adapter) NewValue(name string, fields map[string]ref.Val) ref.Val {
	if _, ok := a.vocabulary.all[name]; ok {
		return types.NewErr("objects of type %s cannot be made", name)
	}
	return a.Registry.NewValue(name, fields)
}

type classObject struct {
	class   *class
	adapter *adapter
	subject any
	fields  []ref.Val // nil if computed on access
}

func (o *classObject) field(index int) ref.Val {
	if o.fields != nil {
		return o.fields[index]
	}
	return o.adapter.NativeToValue(o.class.fields[index].of(o.subject))
}

// isSet reports whether a field is not empty. Unknown fields are set.
func (o *classObject) isSet(index int) bool {
	switch value := o.field(index).(type) {
	case types.String:
		return value != ""
	case traits.Sizer:
		return value.Size() != types.IntZero
	}
	return true
}

// Get reads a field of an object with dynamic type.
func (o *classObject) Get(name ref.Val) ref.Val {
	index, problem := o.indexOf(name)
	if problem != nil {
		return problem
	}
	return o.field(index)
}

// IsSet implements has().
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

// Equal compares identities first, then all fields.
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

// ConvertToNative always fails.
func (o *classObject) ConvertToNative(wanted reflect.Type) (any, error) {
	return nil, fmt.Errorf("%s cannot be converted to %v", o.class.name, wanted)
}

// ConvertToType accepts only the object's type.
func (o *classObject) ConvertToType(wanted ref.Type) ref.Val {
	switch wanted {
	case types.TypeType:
		return o.class.kind
	case o.class.kind:
		return o
	}
	return types.NewErr("type conversion error from '%s' to '%s'", o.class.name, wanted.TypeName())
}

// Type implements [ref.Val].
func (o *classObject) Type() ref.Type { return o.class.kind }

// Value implements [ref.Val].
func (o *classObject) Value() any { return o }

var _ interface {
	ref.Val
	traits.Indexer
	traits.FieldTester
} = (*classObject)(nil)

func newUnknown(waitsFor string) ref.Val {
	return types.NewUnknown(0, types.NewAttributeTrail(waitsFor))
}

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
