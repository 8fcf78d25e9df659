package adopt

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"dario.cat/mergo"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/deep"
)

const maxNested = 2

// generate returns the parameters from a generator, one object for each Application.
func (m *maker) generate(generator any, depth int) (all []map[string]any, err error) {
	fields, _ := generator.(map[string]any)
	var kinds []string
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if key != "selector" && fields[key] != nil {
			kinds = append(kinds, key)
		}
	}
	if len(kinds) != 1 {
		return nil, errors.New("one of its generators must have one kind")
	}
	body, _ := fields[kinds[0]].(map[string]any)
	if depth == 0 && !isEmpty(body["template"]) {
		return nil, errors.New("a generator has a template of its own")
	}
	if depth > maxNested {
		return nil, fmt.Errorf("its generators are in each other more than %d levels deep", maxNested)
	}
	switch kinds[0] {
	case "list":
		all, err = m.listParams(body)
	case "clusters":
		all, err = m.clustersParams(body)
	case "git":
		all, err = m.gitParams(body)
	case "matrix":
		all, err = m.matrixParams(body, depth)
	case "merge":
		all, err = m.mergeParams(body, depth)
	default:
		return nil, fmt.Errorf("its generator %s asks others than the documents", kinds[0])
	}
	if err != nil || fields["selector"] == nil {
		return all, err
	}
	selector, err := selectorFrom(fields["selector"])
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(params map[string]any) bool {
		flat := labels.Set{}
		flatten(flat, "", params)
		return !selector.Matches(flat)
	}), nil
}

func selectorFrom(value any) (labels.Selector, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	selector := &metav1.LabelSelector{}
	if err := json.Unmarshal(text, selector); err != nil {
		return nil, errors.New("a selector of its generators is none of labels")
	}
	return metav1.LabelSelectorAsSelector(selector)
}

// flatten collects scalars by path.
func flatten(flat map[string]string, at string, value any) {
	add := func(key string, value any) { flatten(flat, strings.TrimPrefix(at+"."+key, "."), value) }
	switch value := value.(type) {
	case map[string]any:
		for key, element := range value {
			add(key, element)
		}
	case map[string]string:
		for key, element := range value {
			add(key, element)
		}
	case []any:
		for i, element := range value {
			add(strconv.Itoa(i), element)
		}
	case []string:
		for i, element := range value {
			add(strconv.Itoa(i), element)
		}
	default:
		flat[at] = fmt.Sprint(value)
	}
}

func (m *maker) listParams(body map[string]any) (all []map[string]any, err error) {
	elements, _ := body["elements"].([]any)
	if text, _ := body["elementsYaml"].(string); text != "" {
		value, err := fleet.ParseLooseYAML(text)
		more, isList := value.([]any)
		if err != nil || !isList {
			return nil, errors.New("elementsYaml of its generator is no list")
		}
		elements = slices.Concat(elements, more)
	}
	for _, element := range elements {
		fields, isObject := withFloats(element).(map[string]any)
		if !isObject {
			return nil, errors.New("an element of its list is no object")
		}
		if err := checkNumbers(fields); err != nil {
			return nil, err
		}
		if params := fields; !m.isGo {
			fields = map[string]any{}
			values, _ := params["values"].(map[string]any)
			for key, value := range values {
				fields["values."+key] = value
			}
			for key, value := range params {
				if key != "values" || values == nil {
					fields[key] = value
				}
			}
			for _, key := range slices.Sorted(maps.Keys(fields)) {
				if _, isText := fields[key].(string); !isText {
					return nil, fmt.Errorf("%q of an element of its list is no text, which Argo CD refuses without goTemplate", key)
				}
			}
		}
		if all = append(all, fields); len(all) > maxMade {
			return nil, errTooMany
		}
	}
	return all, nil
}

// checkNumbers refuses numbers that Argo CD's templates format differently.
func checkNumbers(params map[string]any) error {
	flat := map[string]string{}
	flatten(flat, "", params)
	for _, key := range slices.Sorted(maps.Keys(flat)) {
		text := flat[key]
		if number, err := strconv.ParseFloat(text, 64); err == nil && strings.ContainsAny(text, "e") && text == fmt.Sprint(number) {
			return fmt.Errorf("the number %s is written in another form by Argo CD: write it as a text", text)
		}
	}
	return nil
}

// clustersParams returns parameters of the selected clusters; without a selector, the hub is one.
func (m *maker) clustersParams(body map[string]any) (all []map[string]any, err error) {
	if len(m.a.placer.clusters) == 0 {
		return nil, errors.New(
			"its generator clusters needs the clusters of Argo CD: " +
				"add their Secrets to the documents, with labels, data.name and data.server, and without data.config",
		)
	}
	if isFlat, _ := body["flatList"].(bool); isFlat {
		return nil, errors.New("its generator clusters has flatList")
	}
	selector := labels.Everything()
	isSelected := !isEmpty(at(body, "selector.matchLabels")) || !isEmpty(at(body, "selector.matchExpressions"))
	if isSelected {
		if selector, err = selectorFrom(body["selector"]); err != nil {
			return nil, err
		}
		requirements, _ := selector.Requirements()
		for _, requirement := range requirements {
			m.a.selectorLabels[requirement.Key()] = true
		}
	}
	hasHub := false
	for _, one := range m.a.placer.clusters {
		if !selector.Matches(labels.Set(one.labels)) {
			continue
		}
		hasHub = hasHub || one.server == reconciler.HubServer
		params, metadata := clusterParams(one), map[string]any{}
		for kind, texts := range map[string]map[string]string{"labels": one.labels, "annotations": one.annotations} {
			if len(texts) > 0 {
				metadata[kind] = texts
			}
			for key, value := range texts {
				if !m.isGo {
					params["metadata."+kind+"."+key] = value
				}
			}
		}
		if m.isGo {
			params["metadata"] = metadata
		}
		all = append(all, params)
	}
	if !isSelected && !hasHub {
		all = append(all, clusterParams(&cluster{name: reconciler.HubName, server: reconciler.HubServer}))
	}
	return all, m.addValues(body, all)
}

func (m *maker) addValues(body map[string]any, all []map[string]any) error {
	values, _ := body["values"].(map[string]any)
	for _, params := range all {
		made := map[string]any{}
		for _, key := range slices.Sorted(maps.Keys(values)) {
			text, isText := values[key].(string)
			if !isText {
				return fmt.Errorf("values.%s of its generator is no text", key)
			}
			value, err := m.interpolateText(text, params)
			if err != nil {
				return err
			}
			made[key] = value
		}
		if m.isGo && len(made) > 0 {
			params["values"] = made
			continue
		}
		for key, value := range made {
			params["values."+key] = value
		}
	}
	return nil
}

func clusterParams(c *cluster) map[string]any {
	return map[string]any{"name": c.name, "nameNormalized": normalized(c.name), "server": c.server, "project": c.project}
}

// matrixParams combines two generators. The second may contain parameters of the first.
func (m *maker) matrixParams(body map[string]any, depth int) (all []map[string]any, err error) {
	generators, _ := body["generators"].([]any)
	if len(generators) != 2 {
		return nil, errors.New("its generator matrix must have two generators")
	}
	first, err := m.generate(generators[0], depth+1)
	if err != nil {
		return nil, err
	}
	for _, a := range first {
		second, err := m.interpolateGenerator(generators[1], a)
		if err != nil {
			return nil, err
		}
		others, err := m.generate(second, depth+1)
		if err != nil {
			return nil, err
		}
		for _, b := range others {
			both, _ := deep.Copy(b).(map[string]any)
			if err := overrideParams(both, a); err != nil {
				return nil, err
			}
			if !m.isGo {
				for key, value := range b {
					if fmt.Sprint(both[key]) != fmt.Sprint(value) {
						return nil, fmt.Errorf("both generators of its matrix give %q", key)
					}
				}
			}
			if all = append(all, both); len(all) > maxMade {
				return nil, errTooMany
			}
		}
	}
	return all, nil
}

// interpolateGenerator replaces parameters, except in values, which may need the generator's own.
func (m *maker) interpolateGenerator(generator any, params map[string]any) (any, error) {
	fields, _ := generator.(map[string]any)
	fields = maps.Clone(fields)
	for key, value := range fields {
		body, isObject := value.(map[string]any)
		values, hasValues := body["values"].(map[string]any)
		if !isObject {
			continue
		}
		body = maps.Clone(body)
		delete(body, "values")
		made, err := m.interpolateValue(body, params)
		if err != nil {
			return nil, err
		}
		body, _ = made.(map[string]any)
		if hasValues {
			values = maps.Clone(values)
			for name, value := range values {
				if text, err := m.interpolateValue(value, params); err == nil {
					values[name] = text
				}
			}
			body["values"] = values
		}
		fields[key] = body
	}
	return fields, nil
}

// overrideParams merges objects as Argo CD does: false, 0 and "" override, and objects merge by key.
func overrideParams(into, from map[string]any) error {
	from, _ = deep.Copy(from).(map[string]any) // mergo writes into objects of from later
	return mergo.Merge(&into, from, mergo.WithOverride)
}

// mergeParams merges further generators into equal keys of the first.
func (m *maker) mergeParams(body map[string]any, depth int) (all []map[string]any, err error) {
	generators, _ := body["generators"].([]any)
	keys, _ := body["mergeKeys"].([]any)
	if len(generators) < 2 || len(keys) == 0 {
		return nil, errors.New("its generator merge must have mergeKeys and two generators")
	}
	for i, generator := range generators {
		params, err := m.generate(generator, depth+1)
		if err != nil {
			return nil, err
		}
		byKeys := map[string]map[string]any{}
		keysOf := func(params map[string]any) string {
			values := make([]any, len(keys))
			for i, key := range keys {
				name, _ := key.(string)
				values[i] = params[name]
			}
			text, _ := json.Marshal(values)
			return string(text)
		}
		for _, one := range params {
			if byKeys[keysOf(one)] != nil {
				return nil, errors.New("a generator of its merge gives the same mergeKeys twice")
			}
			byKeys[keysOf(one)] = one
		}
		if i == 0 {
			all = params
			continue
		}
		for _, one := range all {
			over := byKeys[keysOf(one)]
			if !m.isGo {
				maps.Copy(one, over)
			} else if err := overrideParams(one, over); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}
