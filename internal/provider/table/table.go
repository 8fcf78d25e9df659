// Package table describes objects that data sources return. Name, documentation and value of an attribute are in one
// place; schema, type and value follow.
package table

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/wire"
)

// Definition defines objects from a T.
type Definition[T any] []Attribute[T]

// Attribute is an attribute of a Definition.
type Attribute[T any] struct {
	name  string
	what  schema.Attribute
	value func(T) attr.Value
}

// Text defines a text.
func Text[T any](name, what string, of func(T) string) Attribute[T] {
	return Attribute[T]{name, schema.StringAttribute{Computed: true, MarkdownDescription: what}, func(row T) attr.Value {
		return types.StringValue(of(row))
	}}
}

// TextOrNull defines a text; null if empty.
func TextOrNull[T any](name, what string, of func(T) string) Attribute[T] {
	return Text(name, what, of).OrNull(func(row T) bool { return of(row) == "" })
}

// Number defines an integer.
func Number[T any](name, what string, of func(T) int) Attribute[T] {
	return Attribute[T]{name, schema.Int64Attribute{Computed: true, MarkdownDescription: what}, func(row T) attr.Value {
		return types.Int64Value(int64(of(row)))
	}}
}

// Bool defines a bool; null if of returns nil.
func Bool[T any](name, what string, of func(T) *bool) Attribute[T] {
	return Attribute[T]{name, schema.BoolAttribute{Computed: true, MarkdownDescription: what}, func(row T) attr.Value {
		return types.BoolPointerValue(of(row))
	}}
}

// Texts defines a list of texts.
func Texts[T any](name, what string, of func(T) []string) Attribute[T] {
	attribute := schema.ListAttribute{Computed: true, ElementType: types.StringType, MarkdownDescription: what}
	return Attribute[T]{name, attribute, func(row T) attr.Value { return tfvalue.Texts(of(row)) }}
}

// TextsByName defines a map of texts; null if of returns nil.
func TextsByName[T any](name, what string, of func(T) map[string]string) Attribute[T] {
	return mapOf(name, what, types.StringType, of, func(text string) attr.Value { return types.StringValue(text) })
}

// NumbersByName is [TextsByName] for numbers.
func NumbersByName[T any](name, what string, of func(T) map[string]float64) Attribute[T] {
	return mapOf(name, what, types.Float64Type, of, func(number float64) attr.Value { return types.Float64Value(number) })
}

func mapOf[T, V any](name, what string, element attr.Type, of func(T) map[string]V, value func(V) attr.Value) Attribute[T] {
	attribute := schema.MapAttribute{Computed: true, ElementType: element, MarkdownDescription: what}
	return Attribute[T]{name, attribute, func(row T) attr.Value {
		found := of(row)
		if found == nil {
			return types.MapNull(element)
		}
		values := make(map[string]attr.Value, len(found))
		for name := range found {
			values[name] = value(found[name])
		}
		return types.MapValueMust(element, values)
	}}
}

// Objects defines a list of objects.
func Objects[T, U any](name, what string, object Definition[U], of func(T) []U) Attribute[T] {
	return Attribute[T]{name, object.ListAttribute(what), func(row T) attr.Value { return object.List(of(row)) }}
}

// ObjectsByName defines a map of objects.
func ObjectsByName[T, U any](name, what string, object Definition[U], of func(T) map[string]U) Attribute[T] {
	return Attribute[T]{name, object.MapAttribute(what), func(row T) attr.Value { return object.MapOf(of(row)) }}
}

// ObjectOrNull is null for the zero value.
func ObjectOrNull[T any, U comparable](name, what string, object Definition[U], of func(T) U) Attribute[T] {
	attribute := Attribute[T]{name, object.Attribute(what), func(row T) attr.Value { return object.Value(of(row)) }}
	return attribute.OrNull(func(row T) bool { return of(row) == *new(U) })
}

// OrNull makes the attribute null for some rows.
func (a Attribute[T]) OrNull(isNull func(T) bool) Attribute[T] {
	ctx := context.Background() // types ignore it
	typ, of := a.what.GetType(), a.value
	null, _ := typ.ValueFromTerraform(ctx, tftypes.NewValue(typ.TerraformType(ctx), nil))
	a.value = func(row T) attr.Value {
		if isNull(row) {
			return null
		}
		return of(row)
	}
	return a
}

// Attributes returns the attributes for a schema.
func (o Definition[T]) Attributes() map[string]schema.Attribute {
	attributes := make(map[string]schema.Attribute, len(o))
	for i := range o {
		attributes[o[i].name] = o[i].what
	}
	return attributes
}

// ListAttribute returns a list of objects.
func (o Definition[T]) ListAttribute(what string) schema.ListNestedAttribute {
	return schema.ListNestedAttribute{
		Computed:            true,
		MarkdownDescription: what,
		NestedObject:        schema.NestedAttributeObject{Attributes: o.Attributes()},
	}
}

// MapAttribute returns a map of objects.
func (o Definition[T]) MapAttribute(what string) schema.MapNestedAttribute {
	return schema.MapNestedAttribute{
		Computed:            true,
		MarkdownDescription: what,
		NestedObject:        schema.NestedAttributeObject{Attributes: o.Attributes()},
	}
}

// PlainList describes attributes in text, because mocks in Terraform's tests support no nested ones.
func (o Definition[T]) PlainList(what string) schema.ListAttribute {
	return schema.ListAttribute{Computed: true, ElementType: o.Type(), MarkdownDescription: what + o.Meanings()}
}

// PlainMap is [Definition.PlainList] for a map.
func (o Definition[T]) PlainMap(what string) schema.MapAttribute {
	return schema.MapAttribute{Computed: true, ElementType: o.Type(), MarkdownDescription: what + o.Meanings()}
}

// Meanings lists the attributes in Markdown.
func (o Definition[T]) Meanings() string {
	list := "\n"
	for i := range o {
		list += fmt.Sprintf("\n* `%s`: %s", o[i].name, o[i].what.GetMarkdownDescription())
	}
	return list
}

// Attribute returns a single object.
func (o Definition[T]) Attribute(what string) schema.SingleNestedAttribute {
	return schema.SingleNestedAttribute{Computed: true, MarkdownDescription: what, Attributes: o.Attributes()}
}

// Type returns the type of the objects.
func (o Definition[T]) Type() types.ObjectType {
	attributes := make(map[string]attr.Type, len(o))
	for i := range o {
		attributes[o[i].name] = o[i].what.GetType()
	}
	return types.ObjectType{AttrTypes: attributes}
}

// Value converts a row.
func (o Definition[T]) Value(row T) types.Object {
	return o.valueOf(o.Type(), row)
}

func (o Definition[T]) valueOf(typ types.ObjectType, row T) types.Object {
	values := make(map[string]attr.Value, len(o))
	for i := range o {
		values[o[i].name] = o[i].value(row)
	}
	return types.ObjectValueMust(typ.AttrTypes, values)
}

// List converts rows.
func (o Definition[T]) List(rows []T) types.List {
	typ, values := o.Type(), make([]attr.Value, len(rows))
	for i, row := range rows {
		values[i] = o.valueOf(typ, row)
	}
	return types.ListValueMust(typ, values)
}

// MapOf converts named rows.
func (o Definition[T]) MapOf(rows map[string]T) types.Map {
	typ, values := o.Type(), make(map[string]attr.Value, len(rows))
	for name, row := range rows {
		values[name] = o.valueOf(typ, row)
	}
	return types.MapValueMust(typ, values)
}

// WriteList writes [Definition.List] without making it.
func (o Definition[T]) WriteList(w *wire.Writer, rows []T) {
	w.List(len(rows))
	for _, row := range rows {
		o.write(w, row)
	}
}

// WriteMap writes [Definition.MapOf] without making it.
func (o Definition[T]) WriteMap(w *wire.Writer, rows map[string]T) {
	w.Map(len(rows))
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		w.Text(name)
		o.write(w, rows[name])
	}
}

func (o Definition[T]) write(w *wire.Writer, row T) {
	w.Map(len(o))
	for i := range o {
		w.Text(o[i].name)
		w.Value(o[i].value(row))
	}
}

// Pointers returns a pointer to each row, for a Definition of pointers.
func Pointers[T any](rows []T) []*T {
	all := make([]*T, len(rows))
	for i := range rows {
		all[i] = &rows[i]
	}
	return all
}
