// Package pods finds pods in Kubernetes objects of any kind, and checks them by the Pod Security Standards. It
// recognizes a pod by its fields, since kinds differ in the place of the template, and operators define new kinds.
package pods

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Pod is a pod or pod template in an object.
type Pod struct {
	// Path locates the pod's spec in the object: "spec.template.spec".
	Path string
	// Metadata belongs to the pod or template; nil if absent.
	Metadata map[string]any
	// Spec has no null fields: Kubernetes treats them as absent.
	Spec map[string]any
	// Containers come from all lists of the spec.
	Containers []map[string]any
}

// lists are the container fields of a Kubernetes pod.
var lists = []string{"containers", "initContainers", "ephemeralContainers"}

// Container fields of other kinds, such as those of Argo Workflows and Tekton. They count only with an image.
var (
	otherLists = []string{"sidecars", "steps"}
	single     = []string{"container", "script"}
)

// words has a text for each way to recognize a pod.
var words = []string{"ontainers", "image", "hostNetwork", "hostPID", "hostIPC", "hostPath"}

// MayBeIn reports whether a YAML or JSON text may have pods. It is much faster than [Find], and errs only by reporting
// true.
func MayBeIn(text string) bool {
	// Escapes, tags and other encodings can hide a key.
	if strings.ContainsAny(text, "\\!\x00") {
		return true
	}
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(text, word) })
}

// Find returns the pods of an object or list, in path order.
func Find(object map[string]any) []Pod {
	var found []Pod
	find(object, nil, nil, &found)
	return found
}

// find appends pods to found. metadata belongs to the object around value.
func find(value any, at []string, metadata map[string]any, found *[]Pod) {
	switch value := value.(type) {
	case []any:
		for i, element := range value {
			find(element, append(at, "["+strconv.Itoa(i)+"]"), nil, found)
		}
	case map[string]any:
		if containers := containersIn(value); len(containers) > 0 || sharesHost(value) {
			*found = append(*found, newPod(value, at, metadata))
		}
		for _, key := range slices.Sorted(maps.Keys(value)) {
			var beside map[string]any
			if key == "spec" {
				beside, _ = value["metadata"].(map[string]any)
			}
			find(value[key], append(at, key), beside, found)
		}
	}
}

func newPod(spec map[string]any, at []string, metadata map[string]any) Pod {
	p := Pod{Path: strings.ReplaceAll(strings.Join(at, "."), ".[", "["), Spec: withoutNulls(spec).(map[string]any)}
	if metadata != nil {
		p.Metadata = withoutNulls(metadata).(map[string]any)
	}
	p.Containers = containersIn(p.Spec)
	return p
}

// containersIn returns the containers of a spec.
func containersIn(spec map[string]any) []map[string]any {
	var all []map[string]any
	add := func(value any, needsImage bool) {
		container, isObject := value.(map[string]any)
		if _, hasImage := container["image"].(string); isObject && (hasImage || !needsImage) {
			all = append(all, container)
		}
	}
	for _, field := range slices.Concat(lists, otherLists) {
		elements, _ := spec[field].([]any)
		for _, element := range elements {
			add(element, slices.Contains(otherLists, field))
		}
	}
	for _, field := range single {
		add(spec[field], true)
	}
	return all
}

// sharesHost reports whether a spec reaches the machine. Some kinds get their containers from an operator.
func sharesHost(spec map[string]any) bool {
	for _, field := range []string{"hostNetwork", "hostPID", "hostIPC"} {
		if spec[field] == true {
			return true
		}
	}
	return slices.ContainsFunc(volumes(spec), func(volume map[string]any) bool { return volume["hostPath"] != nil })
}

func volumes(spec map[string]any) []map[string]any {
	var all []map[string]any
	elements, _ := spec["volumes"].([]any)
	for _, element := range elements {
		if volume, isObject := element.(map[string]any); isObject {
			all = append(all, volume)
		}
	}
	return all
}

// Images returns the images of containers and volumes, sorted.
func Images(pods []Pod) []string {
	found := map[string]bool{}
	for _, pod := range pods {
		for _, container := range pod.Containers {
			image, _ := container["image"].(string)
			found[image] = true
		}
		for _, volume := range volumes(pod.Spec) {
			source, _ := volume["image"].(map[string]any)
			image, _ := source["reference"].(string)
			found[image] = true
		}
	}
	delete(found, "")
	return slices.Sorted(maps.Keys(found))
}

// withoutNulls returns a deep copy without null fields.
func withoutNulls(value any) any {
	switch value := value.(type) {
	case []any:
		list := make([]any, len(value))
		for i, element := range value {
			list[i] = withoutNulls(element)
		}
		return list
	case map[string]any:
		object := make(map[string]any, len(value))
		for key, element := range value {
			if element != nil {
				object[key] = withoutNulls(element)
			}
		}
		return object
	}
	return value
}

func containerName(container map[string]any) string {
	name, _ := container["name"].(string)
	return cmp.Or(name, "unnamed")
}
