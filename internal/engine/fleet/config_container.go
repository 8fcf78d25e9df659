package fleet

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"
)

// ConfigContainer is a labelled set of configuration values, which are in [Config].
type ConfigContainer struct {
	Name     string      `json:"name"`
	Labels   Labels      `json:"labels,omitempty"`
	Priority json.Number `json:"priority,omitempty"` // empty is 0
	// FromConfigMap reports that all values are texts.
	FromConfigMap bool `json:"from_config_map,omitempty"`
}

var containerKind = defineKind(Table{
	Name: "config container",
	Meaning: "Labelled configuration values of the platform. A container reaches every assignment that has all of its " +
		"labels, on the host or on the deployment target; the labels `environment`, `workspace`, `workload`, `deployment-target`, " +
		"`cluster-type` and `cluster` are labels of every assignment.",
	Some: []string{"data", "secrets", "encrypted"},
}, func(c *ConfigContainer) []row {
	return []row{
		namedAttribute(&c.Name, subdomainForm, "Name of the container, a DNS subdomain."),
		unstoredAttribute(environmentAttribute),
		labelsAttribute(&c.Labels),
		unstoredAttribute(Attribute{
			Name: "data", Type: AnyObjectType,
			Meaning: "An object of any shape. Types are kept; `null` removes a key that another container gives. Required unless `secrets` or " +
				"`encrypted` is given.",
		}),
		unstoredAttribute(Attribute{
			Name: "secrets", Type: ObjectMapType, Of: &secretReferenceKind.Table, NullElements: true,
			Meaning: "References to secrets in stores, by key: " +
				"`{DB_PASSWORD = {store = \"vault\", key = \"prod/db\", property = \"password\", version = \"3\"}}`. References merge as " +
				"`data` do and share its keys: a key is either a value or a secret. `null` removes a key that another container gives. " +
				"The secret itself is not read, so it is in no plan and no state.",
		}),
		unstoredAttribute(Attribute{
			Name: "encrypted", Type: TextsType,
			Meaning: "Encrypted files, such as `[file(\"db.sops.yaml\")]`: each is one YAML document, a Secret that SOPS has encrypted or a " +
				"SealedSecret, of 1 MiB at most. They are copied as they are to the folders of the assignments that the container reaches.",
		}),
		unstoredAttribute(Attribute{
			Name: "allow_plain", Type: TextsType,
			Meaning: "Names of values in `data` that may look like a credential, as the error about them gives them: `KEY`, or `DB.PASSWORD` for " +
				"a member of an object. Without it such a value is an error, since values are committed as they are.",
		}),
		storedAttribute(&c.Priority, Attribute{
			Type: NumberType, Default: 0,
			Meaning: "Where containers disagree, the higher priority wins. The guide \"How Flotilla works\" has the whole order.",
		}, readNumber),
		unstoredAttribute(Attribute{Name: "json", Computed: true, Meaning: "Canonical JSON of `data`; `{}` without."}),
	}
}).checkedBy(func(o *ObjectReader, c *ConfigContainer) { checkEnvironmentLabel(o, "labels", c.Labels) })

func decodeConfigContainer(d *decoder, o *ObjectReader) belonging {
	container := containerKind.decode(o)
	data, path := o.Value("data")
	var secrets ContainerSecrets
	secretsKnown := readAside(o, func() {
		secrets = ContainerSecrets{References: readSecretReferences(o, "secrets"), Encrypted: readEncryptedFiles(o, "encrypted")}
	})
	allowed, allowedKnown := readAllowPlain(o, "allow_plain")
	belongs := keep(d, o, "config_containers", &d.Fleet.ConfigContainers, container, container.Name)
	if belongs == notInEnvironment {
		return belongs
	}
	if data == nil && (o.fields["secrets"] != nil || o.fields["encrypted"] != nil) {
		data = map[string]any{}
	}
	storeData(d, path, container.Name, data)
	storeSecrets(d, o, &container, secrets, secretsKnown)
	if allowedKnown {
		d.checkPlain(path, "", data, allowed, valueAdvice+toAllowPlain)
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
	return keep(d, o, "config_schemas", &d.Fleet.ConfigSchemas, schema, schema.Name)
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

// Hydration configures how config containers merge. Empty fields have defaults.
type Hydration struct {
	Precedence string `json:"precedence,omitempty"`
	OnConflict string `json:"on_conflict,omitempty"`
	Lists      string `json:"lists,omitempty"`
	ListKey    string `json:"list_key,omitempty"`
}

var hydrationKind = defineKind(Table{
	Name:    "hydration",
	Meaning: "How config containers merge.",
}, func(h *Hydration) []row {
	return []row{
		choiceAttribute(&h.Precedence, Attribute{
			Default: "specificity", Allowed: []string{"specificity", "name"},
			Meaning: "It decides between containers of equal priority. `specificity`: the number of labels, then the name; `name`: the name alone.",
		}),
		choiceAttribute(&h.OnConflict, Attribute{
			Default: "error", Allowed: []string{"error", "warn", "override"},
			Meaning: "It applies where nothing but the name decides between containers that disagree: an error, a warning, or with `override` " +
				"neither, and the name decides.",
		}),
		choiceAttribute(&h.Lists, Attribute{
			Default: "replace", Allowed: []string{"replace", "append", "merge"},
			Meaning: "`replace`: the later list takes the place of the earlier; `append`: it is added to it; `merge`: objects with the same " +
				"`list_key` are merged, and all else is added.",
		}),
		storedAttribute(&h.ListKey, Attribute{
			Default: "name", Meaning: "The key that tells objects in lists apart, for `merge`.",
		}, readText),
	}
})

// HydrationOrDefault fills in the defaults.
func (f *Fleet) HydrationOrDefault() Hydration {
	hydration := Hydration{}
	if f.Hydration != nil {
		hydration = *f.Hydration
	}
	hydration.Precedence = cmp.Or(hydration.Precedence, hydrationKind.defaultText("precedence"))
	hydration.OnConflict = cmp.Or(hydration.OnConflict, hydrationKind.defaultText("on_conflict"))
	hydration.Lists = cmp.Or(hydration.Lists, hydrationKind.defaultText("lists"))
	hydration.ListKey = cmp.Or(hydration.ListKey, hydrationKind.defaultText("list_key"))
	return hydration
}

// ReadConfigMapValue reads one value of a ConfigMap as Kalypso does: a YAML map or list is decoded, all else stays text.
// Single quotes, and white space around them, are removed and keep it text.
//
// Several YAML documents stay text (Kalypso drops all but the first). The only error is a [*BoundError].
func ReadConfigMapValue(text string) (any, error) {
	if len(text) > maxExpanded {
		return nil, newBoundError("is larger than %s, which is the most that a ConfigMap can hold", sizeText(maxExpanded))
	}
	if trimmed := strings.TrimSpace(text); strings.HasPrefix(trimmed, "'") && strings.HasSuffix(trimmed, "'") {
		return strings.Trim(trimmed, "'"), nil
	}
	if !mayBeCollection(text) || len(SplitYAML(text)) > 1 {
		return text, nil
	}
	parsed, err := ParseLooseYAML(text)
	if _, isBound := errors.AsType[*BoundError](err); isBound {
		return nil, err
	}
	switch parsed.(type) { // nil if the text is not YAML
	case map[string]any, []any:
		if value, err := Canonical(parsed); err == nil {
			return value, nil
		}
	}
	return text, nil
}

// checkConfigMapValue reads only values that can fail.
func checkConfigMapValue(text string) error {
	if len(text) > maxExpanded || mayBeCollection(text) && (valuesAtMost(text) > maxValues || mayHaveAliases(text)) {
		_, err := ReadConfigMapValue(text)
		return err
	}
	return nil
}

// mayBeCollection is a thousand times faster than the parser.
func mayBeCollection(text string) bool {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '[', '{':
			return true
		case ':', '-', '?':
			if i+1 == len(text) || strings.IndexByte(" \t\r\n\x00", text[i+1]) >= 0 || text[i+1] >= utf8.RuneSelf {
				return true
			}
		}
	}
	return false
}
