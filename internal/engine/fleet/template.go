package fleet

import "github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"

// Template turns an assignment into one file.
type Template struct {
	Name        string   `json:"name"`
	Type        string   `json:"type"`                   // one of [TemplateTypes]
	ContentType string   `json:"content_type,omitempty"` // empty is "yaml"
	Manifests   []string `json:"manifests"`
}

// TemplateTypes is in the order of the documentation.
var TemplateTypes = []string{"reconciler", "namespace", "config", "policy", "secret"}

var contentTypes = []string{"yaml", "json", "env", "properties", "sh", "text"}

// BuiltinTemplates is by type.
var BuiltinTemplates = map[string][]string{
	"reconciler": reconciler.Names(),
	"namespace":  {"default"},
	"config":     {"configmap", "env", "json", "properties", "symphony"},
	"policy":     {"default"},
	"secret":     {"external-secrets", "secrets-store-csi"},
}

// Defaults of cluster types.
const (
	DefaultReconciler       = reconciler.DefaultAgent
	DefaultNamespaceService = "default"
	DefaultConfigType       = "configmap"
)

var templateKind = defineKind(Table{
	Name: "template",
	Meaning: "Go templates that turn an assignment into a file: `reconciler.yaml`, `namespace.yaml`, `platform-config.yaml`, " +
		"`platform-secrets.yaml` or `policy.yaml`. One of the same type and name as a built-in template replaces it.",
}, func(t *Template) []row {
	return []row{
		namedAttribute(&t.Name, subdomainForm, "Name of the template, a DNS subdomain."),
		textAttribute(&t.Type, Attribute{Required: true, Allowed: TemplateTypes, Meaning: "Which file it makes."}),
		textAttribute(&t.ContentType, Attribute{
			Default: contentTypes[0], Allowed: contentTypes, Meaning: "Decides the file's name and how it is checked.",
		}),
		storedAttribute(&t.Manifests, Attribute{
			Type: TextsType, Ordered: true, Required: true,
			Meaning: "Texts of Go templates with sprig's functions, joined as YAML documents.",
		}, readTexts),
	}
}).checkedBy(func(o *ObjectReader, t *Template) {
	if t.ContentType == "yaml" {
		t.ContentType = ""
	}
	o.Require("manifests", "is required")
})

func decodeTemplate(d *decoder, o *ObjectReader) belonging {
	template := templateKind.decode(o)
	o.Finish()
	addTemplate(d, template, o.path, o.At("name"))
	return inEnvironment
}

func addTemplate(d *decoder, template Template, path, name *Path) {
	d.Fleet.Templates = append(d.Fleet.Templates, template)
	if template.Type == unknownText {
		d.incomplete["templates"] = true
		return
	}
	d.registerAt(objectKey{templatesOf(template.Type), template.Name}, path, name)
}
