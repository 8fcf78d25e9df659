package fleet

import "encoding/json"

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
