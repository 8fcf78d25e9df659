package objects

import (
	"fmt"
	"reflect"

	"sigs.k8s.io/yaml"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/credential"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/pods"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/secret"
)

const (
	hidden       = "(hidden)"
	hiddenChange = "(hidden, changed)"
)

// Shown returns YAML without secrets, and sorted images. Secrets keep identity, type and keys. Texts that contain a Secret or
// look like a credential are hidden.
func (o *FinalObject) Shown() (text string, images []string, err error) {
	value, err := o.value()
	if err != nil {
		return "", nil, err
	}
	images = pods.Images(pods.Find(value)) // before values are hidden
	text, err = o.hideSecrets(value, value)
	return text, images, err
}

// ShownAfter is the text of Shown with marks at hidden values that differ from the former object.
func (o *FinalObject) ShownAfter(former *FinalObject) (string, error) {
	value, err := o.value()
	if err != nil {
		return "", err
	}
	old, err := former.value()
	if err != nil {
		return "", err
	}
	return o.hideSecrets(value, old)
}

func (o *FinalObject) value() (value map[string]any, err error) {
	if err := yaml.Unmarshal(o.YAML, &value); err != nil {
		return nil, fmt.Errorf("%s %s cannot be read", o.Kind, o.Name)
	}
	return value, nil
}

func (o *FinalObject) hideSecrets(value, former map[string]any) (string, error) {
	v := hider{}
	var shown any
	if secret.IsSecret(value) {
		shown = v.overSecret(value, former)
	} else {
		shown = v.hideCredentials(v.hideValue(value, former), former)
	}
	if !v.hides {
		return string(o.YAML), nil
	}
	text, err := yaml.Marshal(shown)
	return string(text), err
}

// SealedSecret is a kind with encrypted values.
const SealedSecret = "SealedSecret"

type hider struct{ hides bool }

func (v *hider) hideValue(value, former any) any {
	switch value := value.(type) {
	case string:
		if secret.IsManifest(value) {
			return v.hide(value, former, former != nil)
		}
	case []any:
		old, _ := former.([]any)
		shown := make([]any, len(value))
		for i, element := range value {
			var before any
			if i < len(old) {
				before = old[i]
			}
			shown[i] = v.hideValue(element, before)
		}
		return shown
	case map[string]any:
		old, _ := former.(map[string]any)
		if secret.IsEmbedded(value) {
			return v.overSecret(value, old)
		}
		shown := make(map[string]any, len(value))
		for name, member := range value {
			shown[name] = v.hideValue(member, old[name])
		}
		return shown
	}
	return value
}

// hideCredentials hides texts that look like a credential, except encrypted ones.
func (v *hider) hideCredentials(value any, former map[string]any) any {
	if object, _ := value.(map[string]any); object["kind"] == SealedSecret {
		return value
	}
	old := map[string]string{}
	credential.Masked(former, func(path, text string) string {
		old[path] = text
		return text
	})
	return credential.Masked(value, func(path, text string) string {
		if text == hidden || text == hiddenChange { // hidden in an embedded Secret
			return text
		}
		before, had := old[path]
		return v.hide(text, before, had)
	})
}

func (v *hider) overSecret(value, former map[string]any) map[string]any {
	return secret.Masked(value, func(value any, path ...string) any {
		before, had := memberAt(former, path)
		return v.hide(value, before, had)
	})
}

func (v *hider) hide(value, former any, had bool) string {
	v.hides = true
	if had && !reflect.DeepEqual(value, former) {
		return hiddenChange
	}
	return hidden
}

func memberAt(object map[string]any, path []string) (value any, has bool) {
	value = object
	for _, name := range path {
		members, _ := value.(map[string]any)
		if value, has = members[name]; !has {
			return nil, false
		}
	}
	return value, true
}
