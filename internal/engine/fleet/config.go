package fleet

import "cmp"

func decodeConfigContainer(d *decoder, o *ObjectReader) belonging {
	container := ConfigContainer{Name: readName(o, formCheck(o, "name")), Labels: readLabels(o, "labels")}
	checkEnvironmentLabel(o, "labels", container.Labels)
	container.Priority = readNumber(o, "priority")
	data, path := o.Value("data")
	secrets, secretsKnown := readContainerSecrets(o)
	allowed, allowedKnown := readAllowPlain(o, "allow_plain")
	belongs, _ := keep(d, o, "config_containers", &d.Fleet.ConfigContainers, container, container.Name)
	if belongs == notInEnvironment {
		return belongs
	}
	if data == nil && (o.fields["secrets"] != nil || o.fields["encrypted"] != nil) {
		data = map[string]any{}
	}
	storeData(d, path, container.Name, data)
	storeSecrets(d, o, &container, secrets, secretsKnown)
	if allowedKnown {
		d.checkPlain(path, data, allowed, valueAdvice+toAllowPlain)
	}
	return belongs
}

func storeSecrets(d *decoder, o *ObjectReader, container *ConfigContainer, secrets ContainerSecrets, known bool) {
	switch {
	case container.Name == unknownText:
	case !known:
		d.Config[SecretsEntry(container.Name)] = UnknownEntry
		d.Pending = append(d.Pending, SecretsEntry(container.Name))
	default:
		if err := d.Config.SetSecrets(container, secrets); err != nil {
			d.Report(o.path, "%s", err)
		}
	}
}

func storeData(d *decoder, path *Path, name string, data any) {
	_, isObject := data.(map[string]any)
	switch {
	case name == unknownText:
	case !IsKnown(data):
		d.Pending = append(d.Pending, name)
	case data == nil:
		d.Report(path, "is required: an object of configuration values, unless secrets or encrypted is given")
	case !isObject:
		d.Report(path, "must be an object, not %s", kindOf(data))
	default:
		text, err := CanonicalJSON(data)
		if err != nil {
			d.Report(path, "%s", err)
		}
		d.Config[name] = text
	}
}

func decodeConfigSchema(d *decoder, o *ObjectReader) belonging {
	schema := ConfigSchema{
		Name: readName(o, formCheck(o, "name")), Labels: readLabels(o, "labels"), Schema: readSchema(o, "schema"),
	}
	checkEnvironmentLabel(o, "labels", schema.Labels)
	if given := o.fields["schema"]; given == nil || given == "" {
		o.Report("schema", "is required")
	}
	belongs, _ := keep(d, o, "config_schemas", &d.Fleet.ConfigSchemas, schema, schema.Name)
	return belongs
}

// readSchema reads a JSON Schema as text or as an object.
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

func decodeTemplate(d *decoder, o *ObjectReader) belonging {
	template := Template{
		Name:        readName(o, formCheck(o, "name")),
		Type:        readOneOf(o, "type"),
		ContentType: readOneOf(o, "content_type"),
		Manifests:   readTexts(o, "manifests"),
	}
	if template.ContentType == "yaml" {
		template.ContentType = ""
	}
	if template.Type == "" {
		o.Report("type", "is required")
	}
	o.Require("manifests", "is required")
	o.Finish()
	addTemplate(d, template, o.path, o.path.Attribute("name"))
	return inEnvironment
}

func addTemplate(d *decoder, template Template, path, name *Path) {
	d.Fleet.Templates = append(d.Fleet.Templates, template)
	if template.Type == unknownText {
		d.incomplete["templates"] = true
		return
	}
	d.registerAt(objectKey{"templates/" + template.Type, template.Name}, path, name)
}

func readHydration(d *decoder, root *ObjectReader) {
	given := ReadObject(root, "hydration", func(o *ObjectReader) *Hydration {
		return &Hydration{
			Precedence: readOneOfOrNone(o, "precedence"),
			OnConflict: readOneOfOrNone(o, "on_conflict"),
			Lists:      readOneOfOrNone(o, "lists"),
			ListKey:    readText(o, "list_key"),
		}
	})
	d.Fleet.Hydration = cmp.Or(given, d.Fleet.Hydration)
}
