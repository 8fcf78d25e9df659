package agent

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
)

// template is one document of [reconciler.Reconciler.AgentTemplate]: an object with placeholders such as ${name}, and
// conditions in its field `flotilla`.
type template struct {
	If string `json:"if"` // the object is omitted if it expands to nothing
	// Unless lists objects such as "Deployment argocd-server". If the agent's own manifests have one, this object is omitted.
	Unless []string `json:"unless"`
	// Folder is the folder of the values: "cluster-type" or "cluster", or "both" for an object of each.
	Folder  string `json:"folder"`
	Sets    string `json:"sets"`   // value that becomes the name of the object from here on
	Part    Part   `json:"part"`   // default: by kind
	Shared  string `json:"shared"` // the object is not shared if it expands to nothing
	Partial bool   `json:"partial"`

	object map[string]any
}

var templates = sync.OnceValue(func() map[string][]template {
	all := map[string][]template{}
	for _, name := range reconciler.Agents() {
		for _, document := range readDocuments(reconciler.Named(name).AgentTemplate()) {
			object, isObject := document.value.(map[string]any)
			if document.err != nil || !isObject {
				panic(fmt.Sprintf("template of the agent of %s, line %d: %v", name, document.line, document.err)) // it is part of the binary
			}
			one := template{object: object}
			if header, err := json.Marshal(object["flotilla"]); err != nil || json.Unmarshal(header, &one) != nil {
				panic(fmt.Sprintf("template of the agent of %s, line %d: field flotilla", name, document.line))
			}
			delete(object, "flotilla")
			all[name] = append(all[name], one)
		}
	}
	return all
})

func (r *renderer) render() {
	values, both := r.settings.values(), r.settings.folders()
	folders := map[string][]map[string]string{"": {nil}, "both": both, "cluster-type": both[:1], "cluster": both[1:]}
	for _, one := range templates()[r.settings.Reconciler] {
		for _, folder := range folders[one.Folder] {
			for name, text := range folder {
				values["folder."+name] = text
			}
			f := filler{values: values}
			if one.If == "" || f.text(one.If) != nil {
				r.add(&one, &f)
			}
		}
	}
}

// add adds an object, labelled as Flotilla's unless others may have created it.
func (r *renderer) add(one *template, f *filler) {
	replaces := func(o *StagedObject) bool { return slices.Contains(one.Unless, o.GetKind()+" "+o.GetName()) }
	if len(one.Unless) > 0 && (len(r.settings.Install) == 0 || slices.ContainsFunc(r.objects, replaces)) {
		return
	}
	object, _ := f.fill(one.object, nil).(map[string]any)
	o := &StagedObject{
		Unstructured: &unstructured.Unstructured{Object: object},
		Handling:     Handling{Part: one.Part, Partial: one.Partial, Shared: one.Shared != "" && f.text(one.Shared) != nil},
	}
	o.Stage = stageOf(o.Unstructured)
	labels := o.GetLabels()
	if o.Stage == Rest && !o.Partial {
		if labels == nil {
			labels = map[string]string{}
		}
		if _, given := labels[reconciler.ManagedLabel]; !given {
			labels[reconciler.ManagedLabel] = reconciler.ManagedBy
		}
		o.SetLabels(labels)
	}
	if o.Shared && labels[reconciler.TypeLabel] != "" {
		o.Environment, _ = f.values["environment_label"].(string)
	}
	kind := reconciler.KindOf(o.GroupVersionKind().Group, o.GetKind())
	o.Reports = kind != nil && kind.Role != 0
	switch {
	case o.Part != "":
	case o.GetKind() == "Secret":
		o.Part = Credential
	case kind.Is(reconciler.Follows | reconciler.Maker):
		o.Part = Root
	default:
		o.Part = Source
	}
	if o.Part != Credential {
		o.FromCredentials = f.fromCredentials
	}
	if one.Sets != "" {
		f.values[one.Sets] = o.GetName()
	}
	isSame := func(other *StagedObject) bool { return o.Partial && other.Partial && other.ID() == o.ID() }
	if at := slices.IndexFunc(r.objects, isSame); at >= 0 {
		r.mergeFields(o, r.objects[at])
		return
	}
	r.objects = append(r.objects, o)
}

type filler struct {
	values          map[string]any
	fromCredentials [][]string
	hasCredential   bool // of the current field
}

// fill replaces placeholders, and omits a value whose placeholders are all empty. A whole placeholder becomes its value
// of any type; as a key, its entries. In data of a Secret or ConfigMap, values become text: JSON in stringData, YAML in
// data.
func (f *filler) fill(value any, at []string) any {
	switch value := value.(type) {
	case string:
		f.hasCredential = false
		filled := f.text(value)
		if f.hasCredential && filled != nil {
			f.fromCredentials = append(f.fromCredentials, slices.Clone(at))
		}
		return filled
	case map[string]any:
		object := map[string]any{}
		for name, element := range value {
			switch key := f.text(name).(type) {
			case string:
				if inner := f.fill(element, append(at, key)); inner != nil {
					object[key] = f.asText(inner, at, key)
				}
			case map[string]string:
				for key, text := range key {
					object[key] = text
				}
			}
		}
		if len(object) > 0 || len(value) == 0 {
			return object
		}
		return nil
	case []any:
		list := []any{}
		for _, element := range value {
			if inner := f.fill(element, at); inner != nil {
				list = append(list, inner)
			}
		}
		if len(list) > 0 || len(value) == 0 {
			return list
		}
		return nil
	}
	return value
}

func (f *filler) asText(value any, at []string, key string) any {
	_, isText := value.(string)
	if isText || len(at) != 1 || at[0] != "data" && at[0] != "stringData" {
		return value
	}
	for i, path := range f.fromCredentials { // paths of fields of the value
		if len(path) > 2 && path[0] == at[0] && path[1] == key {
			f.fromCredentials[i] = path[:2]
		}
	}
	f.fromCredentials = slices.CompactFunc(f.fromCredentials, slices.Equal)
	if at[0] == "stringData" {
		text, err := json.Marshal(value) // sorts the keys
		if err != nil {
			return nil
		}
		return string(text)
	}
	text, err := yaml.Marshal(value)
	if err != nil {
		return nil
	}
	return string(text)
}

// text replaces the placeholders of a text; nil if there are some and all are empty.
func (f *filler) text(text string) any {
	names := placeholder.FindAllStringSubmatch(text, -1)
	if names == nil {
		return text
	}
	if value := f.value(names[0][1]); names[0][0] == text && value != "" {
		return value
	}
	isEmpty := true
	filled := placeholder.ReplaceAllStringFunc(text, func(found string) string {
		given, _ := f.value(placeholder.FindStringSubmatch(found)[1]).(string)
		isEmpty = isEmpty && given == ""
		return given
	})
	if isEmpty {
		return nil
	}
	return filled
}

func (f *filler) value(name string) any {
	value, isKnown := f.values[name]
	if !isKnown {
		panic(fmt.Sprintf("template of an agent: ${%s} is no value", name)) // it is part of the binary
	}
	f.hasCredential = f.hasCredential || strings.HasPrefix(name, "credentials.")
	return value
}
