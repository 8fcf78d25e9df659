// Package pods finds the pods in Kubernetes objects of any kind, and compares them with Kubernetes' Pod Security Standards.
// It recognizes a pod by its fields, not by the kind of the object: a CronJob has its template elsewhere than a Deployment,
// and operators define kinds of their own.
package pods

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Pod is a pod, or a template of pods, in an object.
type Pod struct {
	// Path is where the object has the pod's spec: "spec.template.spec".
	Path string
	// Metadata is that of the pod or the template; nil if it has none.
	Metadata map[string]any
	// Spec is the pod's spec. As in Kubernetes, a field that is null is absent.
	Spec map[string]any
	// Containers are all containers of the spec, whatever list they are in.
	Containers []map[string]any
}

// lists are the fields with the containers of a Kubernetes pod.
var lists = []string{"containers", "initContainers", "ephemeralContainers"}

// Fields in which other kinds, such as those of Argo Workflows and Tekton, have containers: lists of them, or one container.
// They count only if they have an image.
var (
	otherLists = []string{"sidecars", "steps"}
	single     = []string{"container", "script"}
)

// words has one text for each way to recognize a pod: without any of them, an object has none.
var words = []string{"ontainers", "image", "hostNetwork", "hostPID", "hostIPC", "hostPath"}

// MayBeIn reports whether an object may have pods, from its text in YAML or JSON. It is much faster than [Find], and errs
// only by reporting true.
func MayBeIn(text string) bool {
	// A key can also be written with escapes, with a tag, or in another encoding.
	if strings.ContainsAny(text, "\\!\x00") {
		return true
	}
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(text, word) })
}

// Find returns the pods of an object, or of a list of objects, in the order of their paths.
func Find(object map[string]any) []Pod {
	var found []Pod
	find(object, nil, nil, &found)
	return found
}

// find adds the pods in a value to found. at is the path of the value, and metadata that of the object around it.
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

// containersIn returns the containers of a pod's spec; none if the value has no list of containers.
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

// sharesHost reports whether a spec has a field with which only a pod reaches the machine. Some kinds have no containers,
// which their operator adds.
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

// Images returns the images that pods pull, for their containers and as volumes, sorted.
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

// withoutNulls returns a copy of a value without fields that are null.
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

// containerName identifies a container in messages.
func containerName(container map[string]any) string {
	name, _ := container["name"].(string)
	return cmp.Or(name, "unnamed")
}
