package pods

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	kjson "sigs.k8s.io/json"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

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
	spec := maps.Clone(p.Spec)
	var regular []any
	for _, container := range p.regularContainers() {
		named := maps.Clone(container)
		named["name"] = containerName(container)
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

func (p *Pod) regularContainers() []map[string]any {
	spec := maps.Clone(p.Spec)
	delete(spec, "initContainers")
	delete(spec, "ephemeralContainers")
	return containersIn(spec)
}

func decodeStrictly(value map[string]any, into any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(text, into)
}
