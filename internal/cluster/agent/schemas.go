package agent

import (
	"fmt"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/kinds"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
)

// violation is what the schema of an object's kind does not allow in the object.
type violation struct {
	text      string // a sentence without the line
	isUnknown bool   // of a field that the schema does not have
}

// checkDocuments finds the violations in a text's documents. Definitions in the text are those of its objects.
func checkDocuments(documents []document) {
	catalog := latest()
	for i := range documents {
		for _, object := range objectsOf(documents[i].value) {
			if !kinds.IsDefinition(object) {
				continue
			}
			if definition, err := kinds.ReadDefinition(object); err == nil { // else its own schema says what is wrong
				catalog = catalog.With(definition)
			}
		}
	}
	for i := range documents {
		for _, object := range objectsOf(documents[i].value) {
			for _, found := range catalog.Check(object) {
				if found.IsMissing { // the agent's own release is complete, and the API says what a patch has removed
					continue
				}
				text := strings.TrimSpace(fmt.Sprintf("%s: %s %s", nameOf(object), found.Path(), found.Message))
				documents[i].violations = append(documents[i].violations, violation{text, found.IsUnknown})
			}
		}
	}
}

// latest returns the published schemas, since the version of a cluster is not among the settings of its agent.
func latest() *kinds.Catalog {
	catalog, err := kinds.For("")
	if err != nil {
		panic(err) // no version has no mistake
	}
	return catalog
}

// objectsOf returns the object of a document, or those of a list.
func objectsOf(value any) []map[string]any {
	object, isObject := value.(map[string]any)
	if !isObject {
		return nil
	}
	items, isList := objects.Items(object)
	if !isList {
		return []map[string]any{object}
	}
	var all []map[string]any
	for _, item := range items {
		all = append(all, objectsOf(item)...)
	}
	return all
}

func nameOf(object map[string]any) string {
	metadata, _ := object["metadata"].(map[string]any)
	return textOf(object["kind"]) + " " + textOf(metadata["name"])
}

// addViolations reports the violations in a document of the agent's own manifests. A field that the schema does not have is a warning:
// the cluster may be newer than the schema.
func (r *renderer) addViolations(path string, of *document) {
	for _, found := range of.violations {
		r.problem(path, "line %d: %s", of.line, found.text)
		r.problems[len(r.problems)-1].Warning = found.isUnknown
	}
}

// checkSchemas reports the violations in the objects that Flotilla renders, at the settings that their values are from.
func (r *renderer) checkSchemas() {
	catalog := latest()
	for _, o := range r.objects {
		if o.Part == Install || o.Partial {
			continue
		}
		for _, found := range catalog.Check(o.Object) {
			r.problem(settingOf(found.Steps), "%s: %s %s (schema of %s)", o.ID(), found.Path(), found.Message, catalog.Source(o.Object))
		}
	}
}

// settingOf returns the setting that a field of an object is from, or "".
func settingOf(steps []string) string {
	settings := map[string]string{
		"url": "gitops_repo.url", "repo": "gitops_repo.url", "repoURL": "gitops_repo.url", "branch": "gitops_repo.branch", "path": "gitops_repo.path",
		"interval": "interval", "timeout": "timeout",
	}
	for _, step := range slices.Backward(steps) {
		if settings[step] != "" {
			return settings[step]
		}
	}
	return ""
}
