package adopt

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	texttemplate "text/template"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/deep"
)

const (
	maxMade     = 1000      // Applications per ApplicationSet
	maxMadeText = 8 << 20   // bytes of all Applications
	maxMadeWork = 256 << 20 // bytes of interpolated texts in all ApplicationSets
)

// unsaid lists ApplicationSet fields that an Application cannot express.
var unsaid = []string{"templatePatch", "strategy", "ignoreApplicationDifferences", "syncPolicy.applicationsSync"}

// expandSets replaces ApplicationSets by their Applications, if the documents suffice.
func (a *applier) expandSets() (expanded bool) {
	for _, set := range slices.Clone(a.objects) {
		if set.kind.Template == "" || set.tried || set.own || set.outside || len(a.owners.ownersOf(set)) > 0 {
			continue
		}
		namespace, problem, _ := a.kustomized(set)
		if problem != "" {
			continue
		}
		set.tried = true
		made, params, err := a.madeBy(set, cmp.Or(namespace, set.namespace))
		if err != nil {
			set.why = err.Error()
			continue
		}
		a.placer.learnClusters(made, params)
		for _, o := range made {
			a.placer.placeObject(o, set.file)
			o.outside = false
		}
		a.addObjects(made)
		a.objects = slices.DeleteFunc(a.objects, func(o *manifestObject) bool { return o == set })
		const format = "makes %d Applications, which are adopted in its place: remove it without them, as the guide to adopting says"
		a.listed.add(set, false, fmt.Sprintf(format, len(made)))
		expanded = true
	}
	return expanded
}

func (a *applier) madeBy(set *manifestObject, namespace string) (made []*manifestObject, params []map[string]any, err error) {
	for _, field := range unsaid {
		if value := at(set.spec(), field); !isEmpty(value) {
			return nil, nil, fmt.Errorf("Applications cannot say its %s", field)
		}
	}
	m, err := a.maker(set)
	if err != nil {
		return nil, nil, err
	}
	generators, _ := set.spec()["generators"].([]any)
	for _, generator := range generators {
		more, err := m.generate(generator, 0)
		if err != nil {
			return nil, nil, err
		}
		if params = append(params, more...); len(params) > maxMade {
			return nil, nil, errTooMany
		}
	}
	names := map[string]bool{}
	for _, one := range params {
		o, err := m.application(set, namespace, one)
		if err != nil {
			return nil, nil, err
		}
		if names[o.name] {
			return nil, nil, fmt.Errorf("it makes two Applications with the name %q", o.name)
		}
		names[o.name] = true
		made = append(made, o)
	}
	if len(made) == 0 {
		return nil, nil, errors.New("it makes no Application from the documents")
	}
	return made, params, nil
}

var errTooMany = fmt.Errorf("it makes more than %d Applications", maxMade)

// maker interpolates the texts of an ApplicationSet as its controller does.
type maker struct {
	a    *applier
	isGo bool
}

func (a *applier) maker(set *manifestObject) (*maker, error) {
	isGo, _ := set.spec()["goTemplate"].(bool)
	options, _ := set.spec()["goTemplateOptions"].([]any)
	return &maker{a, isGo}, a.templates.BeginObject(slices.Contains(options, any("missingkey=error")))
}

// argoFunctions are Argo CD's additions to sprig.
var argoFunctions = texttemplate.FuncMap{
	"normalize": normalized,
	"toYaml": func(value any) (string, error) {
		text, err := yaml.Marshal(value)
		return strings.TrimSuffix(string(text), "\n"), err
	},
	"fromYamlArray": func(text string) ([]any, error) {
		value, err := fleet.ParseLooseYAML(text)
		if err != nil {
			return nil, err
		}
		list, isList := withFloats(value).([]any)
		if !isList {
			return nil, errors.New("fromYamlArray: the text is no list")
		}
		return list, nil
	},
}

var notInNames = regexp.MustCompile(`[^-a-z0-9.]`)

func normalized(name string) string {
	name = notInNames.ReplaceAllString(strings.ToLower(name), "-")
	return strings.Trim(name[:min(len(name), 253)], "-.")
}

func withFloats(value any) any {
	return deep.Mapped(value, func(value any) any {
		if number, isNumber := value.(json.Number); isNumber {
			if float, err := number.Float64(); err == nil {
				return float
			}
		}
		return value
	})
}

func isEmpty(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case string:
		return value == ""
	case []any:
		return len(value) == 0
	case map[string]any:
		for _, element := range value {
			if !isEmpty(element) {
				return false
			}
		}
		return true
	}
	return false
}

func (m *maker) application(set *manifestObject, namespace string, params map[string]any) (*manifestObject, error) {
	within, err := m.interpolateValue(map[string]any{"template": set.spec()["template"]}, params)
	if err != nil {
		return nil, err
	}
	metadata, _ := at(within, "template.metadata").(map[string]any)
	metadata = maps.Clone(metadata)
	if metadata == nil {
		return nil, errors.New("its template has no metadata")
	}
	delete(metadata, "namespace")
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	keeps, _ := at(set.spec(), "syncPolicy.preserveResourcesOnDeletion").(bool)
	if !keeps && len(params) > 0 && isEmpty(metadata["finalizers"]) {
		metadata["finalizers"] = []any{reconciler.ArgoFinalizer}
	}
	made, problem := objectsOf(set.file, map[string]any{
		"apiVersion": set.fields["apiVersion"], "kind": set.kind.Makes[0], "metadata": metadata, "spec": at(within, "template.spec"),
	})
	if problem != "" || len(made) != 1 {
		return nil, fmt.Errorf("the Application %q that it makes %s", textAt(metadata, "name"), problem)
	}
	text, err := json.Marshal(made[0].fields)
	if m.a.madeText += len(text); m.a.madeText > maxMadeText {
		return nil, fmt.Errorf("all Applications that are made have more than %d MiB", maxMadeText>>20)
	}
	made[0].made, made[0].set, made[0].depth = true, set, set.depth+1
	return made[0], err
}

func (m *maker) interpolateValue(value any, params map[string]any) (any, error) {
	switch value := value.(type) {
	case string:
		return m.interpolateText(value, params)
	case []any:
		list := make([]any, len(value))
		for i, element := range value {
			made, err := m.interpolateValue(element, params)
			if err != nil {
				return nil, err
			}
			list[i] = made
		}
		return list, nil
	case map[string]any:
		object := make(map[string]any, len(value))
		for _, key := range slices.Sorted(maps.Keys(value)) {
			made, err := m.interpolateValue(value[key], params)
			if err != nil {
				return nil, err
			}
			key, err = m.interpolateText(key, params)
			if err != nil {
				return nil, err
			}
			object[key] = made
		}
		return object, nil
	}
	return runtime.DeepCopyJSONValue(value), nil
}

func (m *maker) interpolateText(text string, params map[string]any) (string, error) {
	if err := m.spend(len(text)); err != nil {
		return "", err
	}
	if len(params) == 0 || !strings.Contains(text, "{{") {
		return text, nil
	}
	if m.isGo {
		made, err := m.a.templates.Render(text, params)
		if err != nil {
			return "", fmt.Errorf("its template cannot be rendered: %w", err)
		}
		return made, m.spend(len(made))
	}
	var made strings.Builder
	for rest := text; ; {
		before, after, opened := strings.Cut(rest, "{{")
		made.WriteString(before)
		if !opened {
			break
		}
		tag, after, closed := strings.Cut(after, "}}")
		if !closed {
			return "", fmt.Errorf("its template has %q without }}", shortened(text, 80))
		}
		if value, isText := params[strings.TrimSpace(tag)].(string); isText && strings.TrimSpace(tag) != "" {
			made.WriteString(value)
		} else {
			made.WriteString("{{" + tag + "}}")
		}
		if rest = after; made.Len() > maxMadeText {
			return "", fmt.Errorf("a text that it makes has more than %d MiB", maxMadeText>>20)
		}
	}
	return made.String(), m.spend(made.Len())
}

func (m *maker) spend(bytes int) error {
	const least = 50 // minimum per step
	if m.a.madeWork += bytes + least; m.a.madeWork > maxMadeWork {
		return errors.New("all ApplicationSets together take too much work")
	}
	return nil
}

func shortened(text string, characters int) string {
	runes := []rune(text)
	return string(runes[:min(len(runes), characters)])
}
