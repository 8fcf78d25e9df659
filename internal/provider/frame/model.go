package frame

import (
	"context"
	"reflect"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// readModel is from.Get, which compiles a regular expression for each field: 2 ms of a plan.
func readModel(ctx context.Context, from data, model any) diag.Diagnostics {
	var object types.Object
	if diags := from.Get(ctx, &object); len(diags) == 0 && copyAttributes(object.Attributes(), reflect.ValueOf(model).Elem()) {
		return nil
	}
	return from.Get(ctx, model)
}

// writeModel is to.Set.
func writeModel(ctx context.Context, to interface {
	Set(ctx context.Context, value any) diag.Diagnostics
}, kind attr.Type, model any) diag.Diagnostics {
	if kind, isObject := kind.(attr.TypeWithAttributeTypes); isObject {
		attributes := map[string]attr.Value{}
		for name, index := range fieldsOf(reflect.TypeOf(model).Elem()) {
			attributes[name], _ = reflect.ValueOf(model).Elem().FieldByIndex(index).Interface().(attr.Value)
			if attributes[name] == nil {
				return to.Set(ctx, model)
			}
		}
		if object, diags := types.ObjectValue(kind.AttributeTypes(), attributes); len(diags) == 0 {
			return to.Set(ctx, object)
		}
	}
	return to.Set(ctx, model)
}

func copyAttributes(attributes map[string]attr.Value, model reflect.Value) bool {
	fields := fieldsOf(model.Type())
	if len(attributes) != len(fields) {
		return false
	}
	for name, attribute := range attributes {
		index, isField := fields[name]
		if !isField || model.FieldByIndex(index).Type() != reflect.TypeOf(attribute) {
			return false
		}
		model.FieldByIndex(index).Set(reflect.ValueOf(attribute))
	}
	return true
}

var knownFields sync.Map // by reflect.Type

const tag = "tfsdk"

func fieldsOf(model reflect.Type) map[string][]int {
	if known, isKnown := knownFields.Load(model); isKnown {
		return known.(map[string][]int) //nolint:forcetypeassert // only this function stores
	}
	fields := map[string][]int{}
	for _, field := range reflect.VisibleFields(model) {
		if name := field.Tag.Get(tag); field.IsExported() && name != "" && name != "-" {
			fields[name] = field.Index
		}
	}
	knownFields.Store(model, fields)
	return fields
}
