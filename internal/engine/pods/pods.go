// Package pods finds pods in objects of any kind, and checks them by the Pod Security Standards. It recognizes a pod by its
// fields, since operators define new kinds.
package pods

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	kjson "sigs.k8s.io/json"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/deep"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Pod is a pod or pod template in an object.
type Pod struct {
	// Path locates the spec: "spec.template.spec".
	Path string
	// Metadata is nil if absent.
	Metadata map[string]any
	// Spec has no null fields, which Kubernetes ignores.
	Spec map[string]any
	// Containers are of all lists.
	Containers []map[string]any
}

var lists = []string{"containers", "initContainers", "ephemeralContainers"}

// Fields of Argo Workflows, Tekton and others. They count only with an image.
var (
	otherLists = []string{"sidecars", "steps"}
	single     = []string{"container", "script"}
)

var words = []string{"ontainers", "image", "hostNetwork", "hostPID", "hostIPC", "hostPath"}

// MayBeIn reports whether a text may have pods, much faster than [Find].
func MayBeIn(text string) bool {
	// Escapes, tags and encodings can hide a key.
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

// find appends pods. metadata belongs to the object around value.
func find(value any, at []string, metadata map[string]any, found *[]Pod) {
	switch value := value.(type) {
	case []any:
		for i, element := range value {
			find(element, append(at, "["+strconv.Itoa(i)+"]"), nil, found)
		}
	case map[string]any:
		if containers := containersIn(value); len(containers) > 0 || sharesHost(value) {
			p := Pod{Path: strings.ReplaceAll(strings.Join(at, "."), ".[", "["), Spec: withoutNulls(value)}
			if metadata != nil {
				p.Metadata = withoutNulls(metadata)
			}
			p.Containers = containersIn(p.Spec)
			*found = append(*found, p)
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

// sharesHost reports whether a spec reaches the machine, perhaps without containers.
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

// Images returns images, sorted.
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

func withoutNulls(object map[string]any) map[string]any {
	return deep.Without(object, func(_ string, member any) bool { return member == nil }).(map[string]any)
}

// Standard is a Pod Security Standard. https://kubernetes.io/docs/concepts/security/pod-security-standards/
type Standard string

// The standards with rules.
const (
	Baseline   Standard = "baseline"
	Restricted Standard = "restricted"
)

// evaluator is the API server's.
var evaluator = sync.OnceValues(func() (policy.Evaluator, error) { return policy.NewEvaluator(policy.DefaultChecks(), nil) })

// Violations returns violations in Kubernetes' words: `host namespaces (hostNetwork=true)`. The standard is of the version,
// such as "1.34"; "" is the newest. An unreadable pod violates every standard.
func (p *Pod) Violations(standard Standard, kubernetesVersion string) []string {
	checks, err := evaluator()
	if err != nil {
		return []string{wording.OneLine(err.Error())}
	}
	metadata, spec, err := p.decode()
	if err != nil {
		return []string{"cannot be read as a pod: " + wording.OneLine(err.Error())}
	}
	results := checks.EvaluatePod(api.LevelVersion{Level: api.Level(standard), Version: versionOf(kubernetesVersion)}, metadata, spec)
	var violations []string
	for _, result := range results {
		if result.Allowed {
			continue
		}
		violation := result.ForbiddenReason
		if result.ForbiddenDetail != "" {
			violation += fmt.Sprintf(" (%s)", result.ForbiddenDetail)
		}
		violations = append(violations, wording.OneLine(violation))
	}
	return violations
}

func versionOf(kubernetesVersion string) api.Version {
	parsed, err := version.ParseGeneric(strings.TrimSpace(kubernetesVersion))
	if err != nil || parsed.Major() != 1 {
		return api.LatestVersion()
	}
	return api.MajorMinorVersion(1, int(parsed.Minor()))
}

// decode respects case as the API server does: "Privileged" must not hide "privileged".
func (p *Pod) decode() (*metav1.ObjectMeta, *corev1.PodSpec, error) {
	spec, withoutInit := maps.Clone(p.Spec), maps.Clone(p.Spec)
	delete(withoutInit, "initContainers")
	delete(withoutInit, "ephemeralContainers")
	var regular []any
	for _, container := range containersIn(withoutInit) {
		named := maps.Clone(container)
		name, _ := container["name"].(string)
		named["name"] = cmp.Or(name, "unnamed")
		regular = append(regular, named)
	}
	spec["containers"] = regular
	annotations, _ := p.Metadata["annotations"].(map[string]any)
	metadata, decoded := &metav1.ObjectMeta{}, &corev1.PodSpec{}
	if err := decodeStrictly(map[string]any{"annotations": annotations}, metadata); err != nil {
		return nil, nil, err
	}
	if err := decodeStrictly(spec, decoded); err != nil {
		return nil, nil, err
	}
	for i := range decoded.Volumes {
		if source := &decoded.Volumes[i].VolumeSource; *source == (corev1.VolumeSource{}) {
			source.EmptyDir = &corev1.EmptyDirVolumeSource{} // the default
		}
	}
	return metadata, decoded, nil
}

func decodeStrictly(value map[string]any, into any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(text, into)
}
