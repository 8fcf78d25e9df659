// Package reference generates guides and JSON Schemas from tables of attributes.
package reference

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

// SchemasURL is the URL of the published schemas.
const SchemasURL = "https://raw.githubusercontent.com/flotilla/terraform-provider-flotilla/main/docs/schemas/"

type schema map[string]any

// definitions is by table name.
type definitions map[string]schema

func (d definitions) refer(table *fleet.Table) schema {
	name := strings.ReplaceAll(table.Name, " ", "_")
	if _, has := d[name]; !has {
		d[name] = d.object(table)
	}
	return schema{"$ref": "#/definitions/" + name}
}

// Schemas returns JSON Schemas of draft 7 by file name: for each kind of object, for lists of each, and for a fleet.
func Schemas() map[string][]byte {
	root := fleet.RootTable()
	files := map[string][]byte{}
	add := func(name, title string, build func(definitions) schema) {
		parts := definitions{}
		made := build(parts)
		made["$schema"], made["$id"], made["title"] = "http://json-schema.org/draft-07/schema#", SchemasURL+name, title
		if len(parts) > 0 {
			made["definitions"] = parts
		}
		files[name] = encode(made)
	}
	one := func(table *fleet.Table) func(definitions) schema {
		return func(parts definitions) schema { return parts.object(table) }
	}
	add("fleet.json", "A fleet, as Flotilla takes it", one(root))
	for i := range root.Attributes {
		attribute := &root.Attributes[i]
		if attribute.Type != fleet.CollectionType && attribute.Type != fleet.NamesOrObjectsType {
			continue
		}
		add(fileOf(attribute.Of.Name), "One "+attribute.Of.Name+" of a fleet of Flotilla", one(attribute.Of))
		add(
			attribute.Name+".json",
			"The "+strings.ReplaceAll(attribute.Name, "_", " ")+" of a fleet of Flotilla",
			func(parts definitions) schema {
				list := parts.attribute(attribute)
				list["type"] = []string{"array", "object"}
				return list
			},
		)
	}
	return files
}

func fileOf(name string) string { return strings.ReplaceAll(name, " ", "_") + ".json" }

func encode(value any) []byte {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		panic(err) // a schema is made of maps, lists and texts
	}
	return buffer.Bytes()
}

func (d definitions) object(table *fleet.Table) schema {
	properties, required := schema{}, []string{}
	for i := range table.Attributes {
		attribute := &table.Attributes[i]
		properties[attribute.Name] = d.attribute(attribute)
		if attribute.Required {
			required = append(required, attribute.Name)
		}
	}
	made := schema{"type": "object", "description": table.Meaning, "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		made["required"] = required
	}
	if len(table.Some) > 0 {
		var some []schema
		for _, name := range table.Some {
			some = append(some, schema{"required": []string{name}, "properties": schema{name: schema{"not": schema{"enum": []any{nil, ""}}}}})
		}
		made[map[bool]string{false: "anyOf", true: "oneOf"}[table.One]] = some
	}
	var apart []schema
	for _, pair := range table.Apart {
		isSet := schema{"not": schema{"enum": []any{nil, ""}}}
		apart = append(apart, schema{"not": schema{"required": pair[:], "properties": schema{pair[0]: isSet, pair[1]: isSet}}})
	}
	if apart != nil {
		made["allOf"] = apart
	}
	return made
}

// addForm allows an empty text if it is optional.
func addForm(text schema, form *fleet.Form, required bool) {
	if form == nil {
		return
	}
	text["pattern"] = form.Pattern
	if !required {
		text["pattern"] = "^$|" + form.Pattern
	}
	if form.Longest > 0 {
		text["maxLength"] = form.Longest
	}
}

// attribute allows null, which means absent.
func (d definitions) attribute(attribute *fleet.Attribute) schema {
	if attribute.Computed {
		return schema{"description": attribute.Meaning, "readOnly": true}
	}
	made := d.typed(attribute)
	made["description"] = attribute.Meaning
	switch attribute.Type {
	case fleet.TextType, fleet.TextOrObjectType:
		addForm(made, attribute.Form, attribute.Required)
	}
	if attribute.Default != nil {
		made["default"] = attribute.Default
	}
	if attribute.Allowed != nil {
		allowed := []any{}
		for _, text := range attribute.Allowed {
			allowed = append(allowed, text)
		}
		if !attribute.Required {
			allowed = append(allowed, nil)
		}
		made["enum"] = allowed
	}
	if attribute.Required {
		if isText := made["type"] == "string"; isText && attribute.Allowed == nil {
			made["minLength"] = 1
		}
		return made
	}
	switch types := made["type"].(type) {
	case string:
		made["type"] = []string{types, "null"}
	case []string:
		made["type"] = append(types, "null")
	}
	return made
}

func (d definitions) typed(attribute *fleet.Attribute) schema {
	mapOf := func(element schema) schema {
		made := schema{"type": "object", "additionalProperties": element}
		if attribute.Keys != nil {
			keys := schema{}
			addForm(keys, attribute.Keys, true)
			made["propertyNames"] = keys
		}
		return made
	}
	element := func(types ...string) schema {
		if attribute.NullElements {
			types = append(types, "null")
		}
		one := schema{"type": types}
		addForm(one, attribute.Form, true)
		return one
	}
	switch attribute.Type {
	case fleet.BoolType:
		return schema{"type": "boolean"}
	case fleet.WholeType:
		return schema{"type": "integer", "minimum": attribute.Least, "maximum": attribute.Most}
	case fleet.NumberType:
		return schema{"type": "number"}
	case fleet.TextsType:
		text := schema{"type": "string"}
		if !attribute.EmptyElements {
			text["minLength"] = 1
		}
		addForm(text, attribute.Form, true)
		return schema{"type": "array", "items": text}
	case fleet.TextMapType:
		return mapOf(element("string"))
	case fleet.QuantitiesType:
		return mapOf(element("string", "number"))
	case fleet.SchemaType:
		return schema{"type": []string{"string", "object"}}
	case fleet.AnyObjectType:
		return schema{"type": "object"}
	case fleet.ObjectType:
		return d.object(attribute.Of)
	case fleet.ObjectsType:
		return schema{"type": "array", "items": d.refer(attribute.Of)}
	case fleet.ObjectMapType:
		inner := d.refer(attribute.Of)
		if attribute.NullElements {
			inner = schema{"anyOf": []schema{{"type": "null"}, inner}}
		}
		return mapOf(inner)
	case fleet.TextOrObjectType, fleet.BoolOrObjectType:
		inner := d.object(attribute.Of)
		inner["type"] = []string{
			map[fleet.Type]string{fleet.TextOrObjectType: "string", fleet.BoolOrObjectType: "boolean"}[attribute.Type],
			"object",
		}
		return inner
	case fleet.CollectionType, fleet.NamesOrObjectsType:
		inner := d.refer(attribute.Of)
		if attribute.Type == fleet.NamesOrObjectsType {
			inner = schema{"anyOf": []schema{{"type": "string"}, inner}}
		}
		return schema{"type": []string{"array", "object"}, "items": inner, "additionalProperties": inner}
	}
	return schema{"type": "string"} // texts of all kinds
}
