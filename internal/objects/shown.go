package objects

import (
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/yaml"
)

// hidden stands for what may be secret.
const hidden = "(hidden)"

// Shown is an object as it may be shown, in YAML with its fields sorted, and the images that it runs, sorted. Of a Secret it
// has the keys and no value.
func (o *Object) Shown() (text string, images []string, err error) {
	var value map[string]any
	if err := yaml.Unmarshal(o.YAML, &value); err != nil {
		return "", nil, fmt.Errorf("%s %s: %w", o.Kind, o.Name, err)
	}
	found := map[string]bool{}
	addImages(found, value)
	images = slices.Sorted(maps.Keys(found))
	if o.Group != "" || o.Kind != "Secret" {
		return string(o.YAML), images, nil
	}
	for _, field := range []string{"data", "stringData"} {
		values, _ := value[field].(map[string]any)
		for key := range values {
			values[key] = hidden
		}
	}
	if metadata, _ := value["metadata"].(map[string]any); metadata != nil {
		annotations, _ := metadata["annotations"].(map[string]any)
		for key := range annotations { // such as what was last applied
			annotations[key] = hidden
		}
	}
	shown, err := yaml.Marshal(value)
	return string(shown), images, err
}

// addImages adds the images of containers, wherever a pod or its template is.
func addImages(to map[string]bool, value any) {
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			addImages(to, element)
		}
	case map[string]any:
		for key, field := range value {
			if key == "containers" || key == "initContainers" || key == "ephemeralContainers" {
				containers, _ := field.([]any)
				for _, one := range containers {
					container, _ := one.(map[string]any)
					if image, _ := container["image"].(string); image != "" {
						to[image] = true
					}
				}
			}
			addImages(to, field)
		}
	}
}
