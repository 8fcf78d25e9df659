package render

import (
	"embed"
	"path"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/reconciler"
)

// Built-in templates are files: templates/<type>/<name>.<extension of the content type>, one manifest
// each. Those of reconcilers are where all is that is known of them.
//
//go:embed templates
var builtinFiles embed.FS

// builtins reads the built-in templates.
func builtins() map[templateKey]*fleet.Template {
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
		entries, err := builtinFiles.ReadDir(path.Join("templates", kind))
		if err != nil {
			panic(err) // the files are part of the binary
		}
		for _, entry := range entries {
			content, err := builtinFiles.ReadFile(path.Join("templates", kind, entry.Name()))
			if err != nil {
				panic(err)
			}
			extension := path.Ext(entry.Name())
			name := strings.TrimSuffix(entry.Name(), extension)
			templates[templateKey{kind, name}] = &fleet.Template{
				Name: name, Type: kind, ContentType: contentTypes[extension],
				Manifests: []string{string(content)},
			}
		}
	}
	return templates
}

// wrappedConfig is the folder of the templates that put a file of configuration into a ConfigMap.
const wrappedConfig = "configmap"

// wrappers reads them: texts by config type.
func wrappers() map[string]string {
	entries, err := builtinFiles.ReadDir(path.Join("templates", wrappedConfig))
	if err != nil {
		panic(err) // the files are part of the binary
	}
	texts := map[string]string{}
	for _, entry := range entries {
		content, err := builtinFiles.ReadFile(path.Join("templates", wrappedConfig, entry.Name()))
		if err != nil {
			panic(err)
		}
		texts[strings.TrimSuffix(entry.Name(), path.Ext(entry.Name()))] = string(content)
	}
	return texts
}
