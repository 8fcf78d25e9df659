package objects

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/flotilla/terraform-provider-flotilla/internal/deep"
)

// hidden stands for what may be secret, and hiddenChange for what is another than in a former object.
const (
	hidden       = "(hidden)"
	hiddenChange = "(hidden, changed)"
)

// Shown is an object as it may be shown, in YAML with its fields sorted, and the images that it runs, sorted. Of a Secret it
// has the keys and no value.
func (o *Object) Shown() (text string, images []string, err error) {
	value, err := o.value()
	if err != nil {
		return "", nil, err
	}
	images = imagesIn(value) // of the value before anything is hidden in it
	text, err = o.shown(value, nil)
	return text, images, err
}

// ShownAfter is the text of Shown, in which values of a Secret that a former object has, too, and that are others now, say so.
func (o *Object) ShownAfter(former *Object) (string, error) {
	value, err := o.value()
	if err != nil {
		return "", err
	}
	old, err := former.value()
	if err != nil {
		return "", err
	}
	return o.shown(value, old)
}

func (o *Object) value() (value map[string]any, err error) {
	if err := yaml.Unmarshal(o.YAML, &value); err != nil {
		return nil, fmt.Errorf("%s %s: %w", o.Kind, o.Name, err)
	}
	return value, nil
}

// shown hides what may be secret in the value of an object, whose former value may be nil.
func (o *Object) shown(value, former map[string]any) (string, error) {
	if o.Group != "" || o.Kind != "Secret" {
		return string(o.YAML), nil
	}
	hide := func(in, before map[string]any) {
		for key := range in {
			if old, had := before[key]; had && !reflect.DeepEqual(old, in[key]) {
				in[key] = hiddenChange
			} else {
				in[key] = hidden
			}
		}
	}
	at := func(value map[string]any, field string) map[string]any {
		below, _ := value[field].(map[string]any)
		return below
	}
	for _, field := range []string{"data", "stringData"} {
		hide(at(value, field), at(former, field))
	}
	// Annotations may have what was last applied.
	hide(at(at(value, "metadata"), "annotations"), at(at(former, "metadata"), "annotations"))
	shown, err := yaml.Marshal(value)
	return string(shown), err
}

// imagesIn are the images of containers, wherever a pod or its template is, sorted.
func imagesIn(value any) []string {
	found := map[string]bool{}
	deep.Holds(value, func(part any) bool {
		fields, _ := part.(map[string]any)
		for _, field := range []string{"containers", "initContainers", "ephemeralContainers"} {
			containers, _ := fields[field].([]any)
			for _, one := range containers {
				container, _ := one.(map[string]any)
				if image, _ := container["image"].(string); image != "" {
					found[image] = true
				}
			}
		}
		return false
	})
	return slices.Sorted(maps.Keys(found))
}
