package pods_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/pods"
)

// Kubernetes publishes pods that satisfy each standard and pods that violate it. The object around a pod must not matter.
func TestStandardsEqualThoseOfKubernetes(t *testing.T) {
	t.Parallel()
	folder, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/pod-security-admission").Output()
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, standard := range []pods.Standard{pods.Baseline, pods.Restricted} {
		for _, result := range []string{"pass", "fail"} {
			pattern := filepath.Join(strings.TrimSpace(string(folder)), "test", "testdata", string(standard), "v1.37", result, "*.yaml")
			files, err := filepath.Glob(pattern)
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range files {
				pod := readPod(t, file)
				for kind, object := range map[string]map[string]any{
					"Pod":     pod,
					"CronJob": {"spec": map[string]any{"jobTemplate": map[string]any{"spec": map[string]any{"template": pod}}}},
				} {
					found := pods.Find(object)
					if len(found) != 1 {
						t.Fatalf("%s: %d pods", file, len(found))
					}
					violations := found[0].Violations(standard, "1.37")
					if (len(violations) > 0) != (result == "fail") {
						t.Errorf("%s in a %s: %q", file, kind, violations)
					}
					checked++
				}
			}
		}
	}
	if checked < 200 {
		t.Errorf("%d pods were checked, want at least 200", checked)
	}
}

func readPod(t *testing.T, file string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var pod map[string]any
	if err := yaml.Unmarshal(text, &pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

// FuzzFind finds pods in any object. MayBeIn is true for each text with pods, and each pod can be checked.
func FuzzFind(f *testing.F) {
	for _, object := range []string{
		`{spec: {containers: [{image: a, name: b}]}}`, `{spec: {"conta\x69ners": [{image: a}]}}`, `{a: {!!binary aG9zdFBJRA==: true}}`,
		`{spec: {template: {metadata: {annotations: {a: 1}}, spec: {initContainers: [{ports: [{hostPort: 1}]}]}}}}`,
		`{spec: {steps: [{image: a}], volumes: [{hostPath: {path: /}}, {image: {reference: b}}]}}`, `{items: [{spec: {hostNetwork: true}}]}`,
		`{spec: {containers: [{resources: {limits: {cpu: x}}}, 1, null]}}`, `{spec: {script: {image: a}, containers: {a: b}}}`,
	} {
		f.Add(object)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var object map[string]any
		if yaml.Unmarshal([]byte(text), &object) != nil {
			t.Skip()
		}
		found := pods.Find(object)
		if len(found) > 0 && !pods.MayBeIn(text) {
			t.Errorf("%q has pods, but MayBeIn is false", text)
		}
		for _, pod := range found {
			baseline, restricted := pod.Violations(pods.Baseline, ""), pod.Violations(pods.Restricted, "")
			if len(baseline) > 0 && len(restricted) == 0 {
				t.Errorf("%q: restricted allows what baseline forbids: %q", text, baseline)
			}
		}
		pods.Images(found)
	})
}
