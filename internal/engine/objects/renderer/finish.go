package renderer

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/fluxcd/pkg/envsubst"
	"sigs.k8s.io/yaml"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
)

var variableName = regexp.MustCompile(`^[_[:alpha:]][_[:alpha:][:digit:]]*$`)

// substituteKey is a label or annotation.
const substituteKey = "kustomize.toolkit.fluxcd.io/substitute"

// finish replaces variables and then adds metadata, as Flux does after a build.
func (c *collector) finish(request *objects.Request) error {
	variables := map[string]string{}
	for name, value := range request.Substitute {
		if !variableName.MatchString(name) {
			return fmt.Errorf("%q is no name of a variable: it may have letters, digits and underscores, and begins with no digit", name)
		}
		variables[name] = strings.ReplaceAll(value, "\n", "")
	}
	var labels, annotations map[string]string
	if k := request.Kustomize; k != nil {
		labels, annotations = k.Labels, k.Annotations
	}
	if h := request.Helm; h != nil && h.After != nil {
		labels, annotations = h.After.Labels, h.After.Annotations
	}
	if len(variables) == 0 && len(labels) == 0 && len(annotations) == 0 {
		return nil
	}
	finished := collector{missing: c.missing, remote: c.remote}
	for _, o := range c.objects {
		text := o.YAML
		if len(variables) > 0 {
			replaced, err := substitute(text, variables)
			if err != nil {
				return fmt.Errorf("%s: %w", describeObject(&o.FinalObject), err)
			}
			text = replaced
		}
		text, err := withMetadata(text, labels, annotations)
		if err != nil {
			return fmt.Errorf("%s: %w", describeObject(&o.FinalObject), err)
		}
		if err := finished.add(text, o.file, o.Hook, o.From); err != nil {
			return err
		}
		if n := len(finished.objects); n > 0 {
			finished.objects[n-1].IsCRD, finished.objects[n-1].On = o.IsCRD, o.On
		}
	}
	*c = finished
	return nil
}

func substitute(text []byte, variables map[string]string) ([]byte, error) {
	var h head
	if err := yaml.Unmarshal(text, &h); err != nil {
		return nil, err
	}
	if h.Metadata.Labels[substituteKey] == "disabled" || h.Metadata.Annotations[substituteKey] == "disabled" {
		return text, nil
	}
	replaced, err := envsubst.Eval(string(text), func(name string) (string, bool) { return variables[name], true })
	if err != nil {
		return nil, fmt.Errorf("its variables cannot be replaced: %w", err)
	}
	return []byte(replaced), nil
}

func withMetadata(text []byte, labels, annotations map[string]string) ([]byte, error) {
	if len(labels) == 0 && len(annotations) == 0 {
		return text, nil
	}
	text, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil, err
	}
	var object, metadata map[string]json.RawMessage
	if err := json.Unmarshal(text, &object); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(object["metadata"], &metadata); err != nil {
		return nil, err
	}
	for field, added := range map[string]map[string]string{"labels": labels, "annotations": annotations} {
		if len(added) == 0 {
			continue
		}
		var has map[string]string
		if metadata[field] != nil {
			if err := json.Unmarshal(metadata[field], &has); err != nil {
				return nil, err
			}
		}
		if metadata[field], err = json.Marshal(mergeMaps(has, added)); err != nil {
			return nil, err
		}
	}
	if object["metadata"], err = json.Marshal(metadata); err != nil {
		return nil, err
	}
	return json.Marshal(object)
}
