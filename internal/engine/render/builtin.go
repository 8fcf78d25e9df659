package render

import (
	"embed"
	"path"
	"strings"
	"sync"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
)

// builtinFiles has the built-in templates: templates/<type>/<name>.<extension of the content type>, one manifest each.
// Templates of reconcilers are in package reconciler.
//
//go:embed templates
var builtinFiles embed.FS

var builtins = sync.OnceValue(func() map[templateKey]*fleet.Template {
	contentTypes := map[string]string{}
	for contentType, extension := range extensions {
		contentTypes[extension] = contentType
	}
	templates := map[templateKey]*fleet.Template{}
	for _, name := range reconciler.Names() {
		templates[templateKey{"reconciler", name}] = &fleet.Template{
			Name: name, Type: "reconciler", ContentType: "yaml", Manifests: []string{reconciler.Named(name).Template()},
		}
	}
	for _, kind := range []string{"namespace", "config", "policy", "secret"} {
		for name, text := range builtinTexts(kind) {
			extension := path.Ext(name)
			name = strings.TrimSuffix(name, extension)
			templates[templateKey{kind, name}] = &fleet.Template{
				Name:        name,
				Type:        kind,
				ContentType: contentTypes[extension],
				Manifests:   []string{text},
			}
		}
	}
	return templates
})

// compiledBuiltins has compiled templates of builtins, for all fleets, by source.
var compiledBuiltins sync.Map

func compileBuiltin(source *fleet.Template) *compiledTemplate {
	if compiled, isCompiled := compiledBuiltins.Load(source); isCompiled {
		return compiled.(*compiledTemplate)
	}
	template, findings := compileTemplate(source)
	if findings != nil {
		panic(findings)
	}
	template.isBuiltin = true
	compiledBuiltins.Store(source, template)
	return template
}

func builtinTexts(folder string) map[string]string {
	entries, err := builtinFiles.ReadDir(path.Join("templates", folder))
	if err != nil {
		panic(err) // embedded
	}
	texts := map[string]string{}
	for _, entry := range entries {
		content, err := builtinFiles.ReadFile(path.Join("templates", folder, entry.Name()))
		if err != nil {
			panic(err)
		}
		texts[entry.Name()] = string(content)
	}
	return texts
}

// wrappedConfig is the folder of templates that put configuration into a ConfigMap.
const wrappedConfig = "configmap"
