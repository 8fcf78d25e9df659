package frame

import (
	"context"
	"reflect"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
)

// untype replaces typed nulls in the dynamic attributes of a model by untyped ones. A string variable with the value null
// makes a typed null, whose IsNull is false in the framework. retype restores the types of attributes that are still null,
// because Terraform compares them with the configuration.
func untype(model any) (retype func()) {
	var changed []func()
	untypeFields(reflect.ValueOf(model).Elem(), &changed)
	return func() {
		for _, restore := range changed {
			restore()
		}
	}
}

func untypeFields(model reflect.Value, changed *[]func()) {
	switch value := model.Addr().Interface().(type) {
	case *types.Dynamic:
		if given := *value; given.IsUnderlyingValueNull() {
			*value = types.DynamicNull()
			*changed = append(*changed, func() {
				if value.IsNull() {
					*value = given
				}
			})
		}
		return
	case *types.Object:
		untypeObject(value, changed)
		return
	}
	if _, isValue := model.Interface().(attr.Value); isValue || model.Kind() != reflect.Struct {
		return
	}
	for i := range model.NumField() {
		if model.Type().Field(i).IsExported() {
			untypeFields(model.Field(i), changed)
		}
	}
}

func untypeObject(model *types.Object, changed *[]func()) {
	given, attributes := map[string]attr.Value{}, model.Attributes()
	for name, attribute := range attributes {
		if value, ok := attribute.(basetypes.DynamicValue); ok && value.IsUnderlyingValueNull() {
			given[name], attributes[name] = value, types.DynamicNull()
		}
	}
	if len(given) == 0 {
		return
	}
	kinds := model.AttributeTypes(context.Background())
	*model = types.ObjectValueMust(kinds, attributes)
	*changed = append(*changed, func() {
		now := model.Attributes()
		for name, value := range given {
			if now[name].IsNull() {
				now[name] = value
			}
		}
		*model = types.ObjectValueMust(kinds, now)
	})
}
