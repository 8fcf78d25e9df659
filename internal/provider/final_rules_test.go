package provider_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// Earlier rules examined the containers of a few kinds only.
func TestRulesAboutPodsApplyToEveryKind(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ manifests, want string }{
		"a privileged init container": {
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: ` +
				`{containers: [{name: a, image: a}], initContainers: [{name: i, image: a, securityContext: {privileged: true}}]}}}}`,
			`Deployment team/a (by its chart): privileged (container "i" must not set securityContext.privileged=true)`,
		},
		"a bare pod with hostPID": {
			`{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {hostPID: true, containers: [{name: a, image: a}]}}`,
			"Pod team/a (by its chart): host namespaces (hostPID=true)",
		},
		"a CronJob with hostNetwork": {
			`{apiVersion: batch/v1, kind: CronJob, metadata: {name: a}, spec: {schedule: "* * * * *", jobTemplate: {spec: {template: {spec: ` +
				`{hostNetwork: true, containers: [{name: a, image: a}]}}}}}}`,
			"CronJob team/a (by its chart): host namespaces (hostNetwork=true)",
		},
		"an unknown kind": {
			`{apiVersion: example.com/v1, kind: Fleet, metadata: {name: a}, spec: {parts: [{template: {spec: {containers: [{name: a, image: a, ports: [{hostPort: 80}]}]}}}]}}`,
			`Fleet team/a (by its chart): hostPort (container "a" uses hostPort 80)`,
		},
		"a pod among the items of a ConfigMap": {
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, items: [{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {hostIPC: true, containers: [{name: a, image: a}]}}]}`,
			"Pod team/a (by its chart): host namespaces (hostIPC=true)",
		},
		"a Kustomization with further objects": {
			`{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: a}, spec: {path: ./, prune: true, interval: 1m, sourceRef: {kind: GitRepository, name: a}}}`,
			"Kustomization team/a (by its chart): it brings more",
		},
		"a good pod": {`{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {hostNetwork: null, containers: [{name: a, image: a}]}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			charts := newChartServer(t)
			pin := charts.publish(t, "1.0.0", map[string]string{"templates/all.yaml": test.manifests})
			input := renderedFleet(pin, tillManifests(charts), map[string]any{"namespace": "team"}, map[string]any{"render": "preview"})
			input["constraints"] = []any{
				map[string]any{
					"name": "pod-security", "expression": "pods.all(p, size(p.baseline) == 0)", "message_expression": "pods.map(p, p.baseline).flatten().join('; ')",
				},
				map[string]any{
					"name": "pointers", "match": map[string]any{"kinds": []any{"kustomize.toolkit.fluxcd.io/Kustomization"}},
					"expression": "made_by == 'flotilla'", "message": "it brings more",
				},
			}
			_, diags := providertest.New(startProvider).Plan(t.Context(), assigned(bare(t), fleetOf(input), nil))
			switch err := diags.Err(); {
			case test.want == "" && err != nil:
				t.Error(err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got error %v", err)
			}
		})
	}
}

// Each rule reports its own violations; a newer Kubernetes reports removed APIs.
func TestTheLibraryOfRulesFindsBadFinalObjects(t *testing.T) {
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
	container := func(name, image string) string {
		return fmt.Sprintf(deployment, name, `{containers: [{name: till, image: `+image+`}]}`)
	}
	withPodField := func(name, image string) string {
		return fmt.Sprintf(deployment, name, `{containers: [{name: till, image: "registry.example.com/till:v1"}], `+image+`}`)
	}
	for name, tool := range tools(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			charts := newChartServer(t)
			charts.publish(t, "1.2.1", map[string]string{"templates/all.yaml": good + schema})
			repository := filepath.ToSlash(filepath.Join(t.TempDir(), "gitops.git"))
			text := func(kubernetes string) string {
				return strings.NewReplacer("https://charts.example.com", charts.url, `"gitops.git"`, fmt.Sprintf("%q", repository), `"1.33"`, fmt.Sprintf("%q", kubernetes)).
					Replace(string(example))
			}
			w := newWorkdir(t, tool, map[string]string{"main.tf": text("1.31")})
			w.run("plan", "-input=false")
			// planError returns the error of a plan in one line.
			planError := func(kubernetes string) string {
				writeFile(t, filepath.Join(w.path, "main.tf"), text(kubernetes))
				_, stderr, err := w.try("plan", "-input=false", "-no-color")
				if err == nil {
					t.Fatalf("a plan for Kubernetes %s succeeds", kubernetes)
				}
				return strings.Join(strings.Fields(strings.ReplaceAll(stderr, "│", "")), " ")
			}
			if upgrade := planError("1.32"); !strings.Contains(
				upgrade,
				"flowcontrol.apiserver.k8s.io/v1beta3 is not in Kubernetes 1.32: FlowSchema till",
			) ||
				strings.Contains(upgrade, "registries") {
				t.Errorf("the error of the upgrade is %s", upgrade)
			}
			charts.publish(
				t,
				"1.3.0",
				map[string]string{
					"templates/all.yaml": container(
						"untagged",
						"registry.example.com/till",
					) + container(
						"latest",
						`"registry.example.com:443/till:latest"`,
					) +
						container(
							"stranger",
							`"docker.io/till:v1"`,
						) + container(
						"mighty",
						`"registry.example.com/till:v1", securityContext: {privileged: true}`,
					) +
						withPodField(
							"near",
							"hostNetwork: true",
						) + withPodField(
						"mounting",
						"volumes: [{name: root, hostPath: {path: /}}]",
					) + good,
				},
			)
			broken := planError("1.31")
			for rule, want := range map[string][]string{
				"pinned-images": {"untagged", "latest"}, "registries": {"stranger", "latest", "its chart has images of another registry: docker.io/till:v1"},
				"pod-security": {"mighty", "privileged (container", "near", "hostNetwork=true", "mounting", "hostPath volumes"},
			} {
				_, ruleError, _ := strings.Cut(broken, fmt.Sprintf("%q", rule))
				ruleError, _, _ = strings.Cut(ruleError, "Error:")
				for _, part := range want {
					if !strings.Contains(ruleError, part) {
						t.Errorf("the error of rule %s lacks %q: %s", rule, part, broken)
					}
				}
				if strings.Contains(ruleError, "good") {
					t.Errorf("rule %s refuses a valid object: %s", rule, ruleError)
				}
			}
		})
	}
}
