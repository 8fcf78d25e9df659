package provider_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/acceptancetest"
)

// Each rule of the library for final objects finds what it is for, and an upgrade of Kubernetes what stands in its way.
func TestTheLibraryOfRulesFindsFinalObjects(t *testing.T) {
	t.Parallel()
	acceptancetest.Only(t)
	example, err := os.ReadFile(filepath.Join("..", "..", "examples", "constraints", "final-objects", "main.tf"))
	if err != nil {
		t.Fatal(err)
	}
	const schema = `
apiVersion: flowcontrol.apiserver.k8s.io/v1beta3
kind: FlowSchema
metadata: {name: till}
`
	const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: %s}
spec:
  selector: {matchLabels: {app: till}}
  template:
    metadata: {labels: {app: till}}
    spec: %s
---`
	good := fmt.Sprintf(deployment, "good", `{containers: [{name: till, image: "registry.example.com/till@sha256:`+strings.Repeat("0", 64)+
		`", resources: {requests: {cpu: 1}, limits: {memory: 1Gi}}}]}`)
	container := func(name, more string) string {
		return fmt.Sprintf(deployment, name, `{containers: [{name: till, image: `+more+`}]}`)
	}
	of := func(name, more string) string {
		return fmt.Sprintf(deployment, name, `{containers: [{name: till, image: "registry.example.com/till:v1"}], `+more+`}`)
	}
	for name, tool := range tools(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			charts := newPublished(t)
			charts.publish(t, "1.2.1", map[string]string{"templates/all.yaml": good + schema})
			repository := filepath.ToSlash(filepath.Join(t.TempDir(), "gitops.git"))
			text := func(kubernetes string) string {
				return strings.NewReplacer("https://charts.example.com", charts.url, `"gitops.git"`, fmt.Sprintf("%q", repository), `"1.33"`, fmt.Sprintf("%q", kubernetes)).Replace(string(example))
			}
			w := newWorkdir(t, tool, map[string]string{"main.tf": text("1.31")})
			w.run("plan", "-input=false")
			// said is what a plan refuses, in one line.
			said := func(kubernetes string) string {
				writeFile(t, filepath.Join(w.path, "main.tf"), text(kubernetes))
				_, stderr, err := w.try("plan", "-input=false", "-no-color")
				if err == nil {
					t.Fatalf("a plan for Kubernetes %s succeeds", kubernetes)
				}
				return strings.Join(strings.Fields(strings.ReplaceAll(stderr, "│", "")), " ")
			}
			if upgrade := said("1.32"); !strings.Contains(upgrade, "flowcontrol.apiserver.k8s.io/v1beta3 is not in Kubernetes 1.32: FlowSchema till") || strings.Contains(upgrade, "registries") {
				t.Errorf("an upgrade says %s", upgrade)
			}
			charts.publish(t, "1.3.0", map[string]string{"templates/all.yaml": container("untagged", "registry.example.com/till") + container("latest", `"registry.example.com:443/till:latest"`) +
				container("stranger", `"docker.io/till:v1"`) + container("mighty", `"registry.example.com/till:v1", securityContext: {privileged: true}`) +
				of("near", "hostNetwork: true") + of("mounting", "volumes: [{name: root, hostPath: {path: /}}]") + good})
			broken := said("1.31")
			for rule, want := range map[string][]string{
				"pinned-images": {"untagged", "latest"}, "registries": {"stranger", "latest", "its chart has images of another registry: docker.io/till:v1"},
				"unprivileged": {"mighty", "A privileged container owns the machine"}, "apart-from-the-machine": {"near", "mounting"},
			} {
				_, of, _ := strings.Cut(broken, fmt.Sprintf("%q", rule))
				of, _, _ = strings.Cut(of, "Error:")
				for _, part := range want {
					if !strings.Contains(of, part) {
						t.Errorf("rule %s does not say %q: %s", rule, part, broken)
					}
				}
				if strings.Contains(of, "good") {
					t.Errorf("rule %s refuses what is good: %s", rule, of)
				}
			}
		})
	}
}
