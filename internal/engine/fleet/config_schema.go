package fleet

// ConfigSchema is a JSON Schema for assignments with its labels.
type ConfigSchema struct {
	Name   string `json:"name"`
	Labels Labels `json:"labels,omitempty"`
	Schema string `json:"schema"`
}

var configSchemaKind = defineKind(Table{
	Name:    "config schema",
	Meaning: "A JSON Schema that the values of every assignment with its labels must satisfy.",
}, func(s *ConfigSchema) []row {
	return []row{
		namedAttribute(&s.Name, subdomainForm, "Name of the schema, a DNS subdomain."),
		unstoredAttribute(environmentAttribute),
		labelsAttribute(&s.Labels),
		storedAttribute(&s.Schema, Attribute{
			Type: SchemaType, Required: true,
			Meaning: "Text of the JSON Schema, of draft 4 to 2020-12; in a fleet written by hand also the object. Nothing is fetched for it: " +
				"a remote `$ref` is an error. It may have up to 4,000 objects and booleans.",
		}, readSchema),
	}
}).checkedBy(func(o *ObjectReader, s *ConfigSchema) {
	checkEnvironmentLabel(o, "labels", s.Labels)
	if given := o.fields["schema"]; given == nil || given == "" {
		o.Report("schema", "is required")
	}
})

func decodeConfigSchema(d *decoder, o *ObjectReader) belonging {
	schema := configSchemaKind.decode(o)
	belongs, _ := keep(d, o, "config_schemas", &d.Fleet.ConfigSchemas, schema, schema.Name)
	return belongs
}

func readSchema(o *ObjectReader, attribute string) string {
	switch value := o.value(attribute, SchemaType).(type) {
	case nil:
		return ""
	case string:
		if value == "" {
			return ""
		}
		if _, err := ParseJSON(value); err != nil {
			o.Report(attribute, "is not JSON: %s", err)
		}
		return value
	case map[string]any:
		if !IsKnown(value) {
			o.noteUnknown()
			return ""
		}
		text, err := CanonicalJSON(value)
		if err != nil {
			o.Report(attribute, "%s", err)
		}
		return text
	default:
		o.Report(attribute, "must be a JSON Schema, not %s", kindOf(value))
		return ""
	}
}
