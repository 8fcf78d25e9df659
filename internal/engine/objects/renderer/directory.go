package renderer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/gobwas/glob"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
)

// skipMarker makes Argo CD skip a file.
const skipMarker = "+argocd:skip-file-rendering"

// renderDirectory follows findManifests in Argo CD's reposerver/repository.
func renderDirectory(t *tree, folder string, d *objects.Directory, into *collector) error {
	include, err := compileGlob("include", d.Include)
	if err != nil {
		return err
	}
	exclude, err := compileGlob("exclude", d.Exclude)
	if err != nil {
		return err
	}
	for _, name := range t.filesBelow(folder) {
		full := path.Join(folder, name)
		switch path.Ext(name) {
		case ".yaml", ".yml", ".json", ".jsonnet":
		default:
			continue
		}
		if !d.Recurse && strings.Contains(name, "/") || passesLink(t.links, path.Dir(full)) ||
			exclude != nil && exclude.Match(name) || include != nil && !include.Match(name) {
			continue
		}
		content, err := t.read(full)
		if err != nil {
			return err
		}
		if bytes.Contains(content, []byte(skipMarker)) {
			continue
		}
		if path.Ext(name) == ".jsonnet" {
			return fmt.Errorf("%s is Jsonnet, which cannot be rendered: exclude it"+orLeave, full)
		}
		if err := addFile(full, trimByteOrderMark(content), into); err != nil {
			return err
		}
	}
	return nil
}

// compileGlob compiles as Argo CD does: "*" matches slashes.
func compileGlob(field, pattern string) (glob.Glob, error) {
	if pattern == "" {
		return nil, nil
	}
	compiled, err := glob.Compile(pattern)
	if err != nil {
		return nil, fmt.Errorf("%s %q is not a pattern: %w", field, pattern, err)
	}
	return compiled, nil
}

// addFile ignores unreadable YAML that does not look like a manifest, as Argo CD does.
func addFile(name string, content []byte, into *collector) error {
	documents, err := splitDocuments(content)
	if path.Ext(name) == ".json" && err == nil && len(documents) > 1 {
		return fmt.Errorf("%s has several objects, which a JSON file cannot have", name)
	}
	if err != nil {
		looksLikeManifest := !slices.ContainsFunc([]string{"apiVersion:", "kind:", "metadata:"}, func(field string) bool {
			return !bytes.Contains(content, []byte(field))
		})
		if len(documents) == 0 && !looksLikeManifest && path.Ext(name) != ".json" {
			return nil
		}
		return fmt.Errorf("%s cannot be read: %w", name, err)
	}
	for _, document := range documents {
		if err := into.addJSON(document, name, "", objects.FromManifest); err != nil {
			return err
		}
	}
	return nil
}

// splitDocuments returns objects as JSON, with an error those before the mistake.
func splitDocuments(content []byte) ([][]byte, error) {
	var documents [][]byte
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	for {
		var document json.RawMessage
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err != nil {
			return documents, err
		}
		if len(document) == 0 || bytes.Equal(document, []byte("null")) {
			continue
		}
		var object struct{ Kind string }
		if err := json.Unmarshal(document, &object); err != nil || object.Kind == "" {
			return documents, errors.New("it has a document that is no Kubernetes object, as it has no kind")
		}
		documents = append(documents, slices.Clone(document))
	}
}
