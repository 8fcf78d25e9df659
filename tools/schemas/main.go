// Command schemas writes the files of internal/engine/kinds/published: the schemas of Kubernetes' kinds, and the definitions
// of agents and secret services. The modules below have their versions.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// releases are the versions of k8s.io/kubernetes, one of each minor version, from the oldest one.
var releases = []string{
	"v1.29.6", "v1.30.14", "v1.31.14", "v1.32.13", "v1.33.13", "v1.34.4", "v1.35.4", "v1.36.3", "v1.37.2",
}

// definitions are the modules with definitions of kinds, and where in them. The module proxy has no version 2 of External Secrets
// Operator, whose module path lacks the major version.
var definitions = []struct{ module, pattern string }{
	{"github.com/fluxcd/source-controller@v1.9.5", "config/crd/bases/*.yaml"},
	{"github.com/fluxcd/kustomize-controller@v1.9.5", "config/crd/bases/*.yaml"},
	{"github.com/fluxcd/helm-controller@v1.6.0", "config/crd/bases/*.yaml"},
	{"github.com/argoproj/argo-cd/v3@v3.2.11", "manifests/crds/*-crd.yaml"},
	{"github.com/rancher/fleet@v0.15.0", "charts/fleet-crd/templates/crds.yaml"},
	{"github.com/external-secrets/external-secrets@v1.3.2", "config/crds/bases/external-secrets.io_*externalsecrets.yaml"},
	{"github.com/external-secrets/external-secrets@v1.3.2", "config/crds/bases/external-secrets.io_*secretstores.yaml"},
	{"sigs.k8s.io/secrets-store-csi-driver@v1.6.0", "config/crd/bases/*_secretproviderclasses.yaml"},
	{"github.com/bitnami-labs/sealed-secrets@v0.40.0", "helm/sealed-secrets/crds/*.yaml"},
}

// copied are folders with definitions that no module of the module proxy has, and their sources.
var copied = []struct{ folder, source string }{
	{"configsync", "Config Sync@v1.20.0"},
	{"notificationcontroller", "github.com/fluxcd/notification-controller@v1.9.3"},
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: schemas <folder>")
	}
	if err := write(os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func write(folder string) error {
	if err := writeKubernetes(filepath.Join(folder, "kubernetes.json.gz")); err != nil {
		return err
	}
	sources := map[string]string{} // of groups
	for _, of := range definitions {
		root, err := download(of.module)
		if err != nil {
			return err
		}
		if err := writeDefinitions(folder, filepath.Join(root, of.pattern), of.module, sources); err != nil {
			return err
		}
	}
	for _, of := range copied {
		if err := writeDefinitions(folder, filepath.Join(of.folder, "*.yaml"), of.source, sources); err != nil {
			return err
		}
	}
	text, err := json.MarshalIndent(sources, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "sources.json"), append(text, '\n'), 0o600)
}

// download returns the folder of a module in the module cache.
func download(module string) (string, error) {
	cmd := exec.Command("go", "mod", "download", "-json", module)
	cmd.Dir = os.TempDir() // outside of this module
	output, err := cmd.Output()
	var downloaded struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(output, &downloaded); jsonErr != nil || downloaded.Dir == "" {
		return "", fmt.Errorf("%s: %w: %s", module, errors.Join(err, jsonErr), downloaded.Error)
	}
	return downloaded.Dir, nil
}

// writeDefinitions writes each definition into <folder>/<group>/<kind>.json.gz.
func writeDefinitions(folder, pattern, module string, sources map[string]string) error {
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		return fmt.Errorf("no definitions at %s: %w", pattern, err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, document := range regexp.MustCompile(`(?m)^---$`).Split(string(text), -1) {
			var definition map[string]any
			if err := yaml.Unmarshal([]byte(document), &definition); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			if definition["kind"] != "CustomResourceDefinition" {
				continue
			}
			spec := definition["spec"].(map[string]any)
			group, kind := spec["group"].(string), spec["names"].(map[string]any)["kind"].(string)
			sources[group] = module
			delete(definition, "status")
			withoutDescriptions(definition)
			if err := writeCompressed(filepath.Join(folder, group, kind+".json.gz"), definition); err != nil {
				return err
			}
		}
	}
	return nil
}

// withoutDescriptions removes the descriptions of schemas. A property called "description" is an object.
func withoutDescriptions(value any) {
	switch value := value.(type) {
	case map[string]any:
		if _, isText := value["description"].(string); isText {
			delete(value, "description")
		}
		for _, below := range value {
			withoutDescriptions(below)
		}
	case []any:
		for _, below := range value {
			withoutDescriptions(below)
		}
	}
}

// period is a schema in the minor versions of Kubernetes from one until another; 0 is no end.
type period struct {
	From   int            `json:"from"`
	Until  int            `json:"until,omitempty"`
	Schema map[string]any `json:"schema"`
}

// writeKubernetes writes the schemas of all releases. It writes a schema once for the releases that share it.
func writeKubernetes(path string) error {
	all := struct {
		Oldest      int                 `json:"oldest"`
		Newest      int                 `json:"newest"`
		Kinds       map[string]string   `json:"kinds"` // names of definitions, by "<group>/<version>/<kind>"
		Definitions map[string][]period `json:"definitions"`
	}{Kinds: map[string]string{}, Definitions: map[string][]period{}}
	for _, release := range releases {
		minor, err := strconv.Atoi(strings.Split(release, ".")[1])
		if err != nil {
			return err
		}
		if all.Oldest == 0 {
			all.Oldest = minor
		}
		all.Newest = minor
		root, err := download("k8s.io/kubernetes@" + release)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(filepath.Join(root, "api", "openapi-spec", "swagger.json"))
		if err != nil {
			return err
		}
		var swagger struct{ Definitions map[string]map[string]any }
		if err := json.Unmarshal(text, &swagger); err != nil {
			return err
		}
		for name, periods := range all.Definitions { // a definition that is gone ends
			if last := &periods[len(periods)-1]; last.Until == 0 && swagger.Definitions[name] == nil {
				last.Until = minor
			}
		}
		for _, name := range slices.Sorted(maps.Keys(swagger.Definitions)) {
			definition := swagger.Definitions[name]
			for _, kind := range kindsOf(definition) {
				all.Kinds[kind] = name
			}
			schema := reduced(name, definition)
			periods := all.Definitions[name]
			if last := len(periods) - 1; last >= 0 && periods[last].Until == 0 {
				if reflect.DeepEqual(periods[last].Schema, schema) {
					continue
				}
				periods[last].Until = minor
			}
			all.Definitions[name] = append(periods, period{From: minor, Schema: schema})
		}
	}
	return writeCompressed(path, all)
}

// kindsOf returns the kinds of objects that a definition describes.
func kindsOf(definition map[string]any) (kinds []string) {
	properties, _ := definition["properties"].(map[string]any)
	metadata, _ := properties["metadata"].(map[string]any)
	if ref, _ := metadata["$ref"].(string); !strings.HasSuffix(ref, ".ObjectMeta") {
		return nil
	}
	of, _ := definition["x-kubernetes-group-version-kind"].([]any)
	for _, one := range of {
		kind := one.(map[string]any)
		kinds = append(kinds, strings.TrimPrefix(fmt.Sprintf("%s/%s/%s", kind["group"], kind["version"], kind["kind"]), "/"))
	}
	return kinds
}

// Types of Kubernetes that its description does not describe as they are read.
var (
	anything = map[string]any{"x-kubernetes-preserve-unknown-fields": true}
	quantity = map[string]any{ // as controller-gen describes it
		"anyOf":   []any{map[string]any{"type": "number"}, map[string]any{"type": "string"}},
		"pattern": `^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$`,
	}
	intOrString = map[string]any{"anyOf": []any{map[string]any{"type": "integer"}, map[string]any{"type": "string"}}}
)

// kept lists the keywords of validation.
var kept = []string{
	"$ref",
	"additionalProperties",
	"format",
	"items",
	"properties",
	"required",
	"type",
	"x-kubernetes-preserve-unknown-fields",
}

// reduced returns a definition with its keywords of validation only.
func reduced(name string, definition map[string]any) map[string]any {
	switch {
	case strings.HasSuffix(name, ".api.resource.Quantity"):
		return quantity
	case strings.HasSuffix(name, ".util.intstr.IntOrString"):
		return intOrString
	case strings.HasSuffix(name, ".runtime.RawExtension"), strings.HasSuffix(name, ".v1.FieldsV1"), strings.HasSuffix(name, ".v1.JSON"):
		return anything
	}
	small := map[string]any{}
	for _, keyword := range kept {
		value, has := definition[keyword]
		if !has {
			continue
		}
		switch keyword {
		case "properties":
			properties := map[string]any{}
			for property, below := range value.(map[string]any) {
				properties[property] = reduced("", below.(map[string]any))
			}
			value = properties
		case "items", "additionalProperties":
			if below, isSchema := value.(map[string]any); isSchema {
				value = reduced("", below)
			}
		case "$ref":
			value = strings.TrimPrefix(value.(string), "#/definitions/")
		}
		small[keyword] = value
	}
	if small["format"] == "byte" { // the library knows no base64 with line breaks, and the API does
		delete(small, "format")
		small["pattern"] = `^[A-Za-z0-9+/\r\n]*={0,2}[\r\n]*$`
	}
	return small
}

func writeCompressed(path string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	var compressed bytes.Buffer
	writer, err := gzip.NewWriterLevel(&compressed, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := writer.Write(text); err != nil {
		return err
	}
	if err := writer.Close(); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	return os.WriteFile(path, compressed.Bytes(), 0o600)
}
