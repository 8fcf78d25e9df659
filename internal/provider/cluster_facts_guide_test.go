package provider_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
)

// TestPoliciesSelectByFactsOfClusters selects by labels that clusters report. A silent cluster keeps its labels and workloads.
// Without its last labels, the plan is an error and removes nothing.
func TestPoliciesSelectByFactsOfClusters(t *testing.T) {
	t.Parallel()
	example := guideExample(t, "reference-observing.md.tmpl", "examples/observing/facts/main.tf")
	for name, tool := range acceptanceTools(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := &factClusters{region: map[string]string{"edge-1": "eu-1", "edge-2": "us-1"}, ready: true}
			clusters := servers.start(t)("edge-1", "edge-2")
			url := bare(t)
			text := strings.ReplaceAll(example, `"gitops.git"`, strconv.Quote(url))
			for name, cluster := range clusters {
				connection := cluster.(map[string]any)
				text = strings.ReplaceAll(text, fmt.Sprintf("kubeconfig = file(%q)", name+".kubeconfig"),
					fmt.Sprintf("host = %q, token = %q, cluster_ca_certificate = %q", connection["host"], connection["token"], connection["cluster_ca_certificate"]))
			}
			w := newWorkdir(t, tool, map[string]string{"main.tf": text})
			plannedChanges := func() string {
				t.Helper()
				for _, change := range w.plan().ResourceChanges {
					if change.Address == "flotilla_assignment.prod" && !change.Change.Actions.NoOp() {
						return fmt.Sprint(change.Change.After.(map[string]any)["changes"])
					}
				}
				return "none"
			}
			expectFailure := func(want string) {
				t.Helper()
				stdout, stderr, err := w.try("plan", "-input=false", "-no-color")
				if err == nil || !words(want).MatchString(stdout+stderr) {
					t.Errorf("want %q, got %s%s", want, stdout, stderr)
				}
			}
			w.run("apply", "-input=false", "-auto-approve")
			if got := plannedChanges(); got != "none" {
				t.Errorf("after the apply the plan changes %s", got)
			}
			labels := w.run("output", "-json", "labels")
			if got := strings.TrimSpace(labels); got != `{"edge-1":{"example.com/gpu":"true","region":"eu-1"},"edge-2":{"example.com/gpu":"true","region":"us-1"}}` {
				t.Errorf("labels are %s", got)
			}

			servers.setRegion("edge-1", "")
			expectFailure("Labels of clusters are not known")
			writeFile(t, filepath.Join(w.path, "labels.json"), labels)
			if got := plannedChanges(); got != "none" {
				t.Errorf("the plan of a silent cluster changes %s", got)
			}
			w.run("apply", "-input=false", "-auto-approve")
			if again := w.run("output", "-json", "labels"); again != labels {
				t.Errorf("the labels of a silent cluster are %s", again)
			}

			servers.setRegion("edge-1", "eu-1")
			servers.setRegion("edge-2", "eu-1") // a changed fact moves the workloads
			if got := plannedChanges(); !strings.Contains(got, "detector-live") || !strings.Contains(got, "edge-2") {
				t.Errorf("after a cluster moved, the plan changes %s", got)
			}

			servers.setRegion("edge-1", "")
			if err := os.Remove(filepath.Join(w.path, "labels.json")); err != nil {
				t.Fatal(err)
			}
			if stdout, stderr, err := w.try("destroy", "-input=false", "-auto-approve", "-no-color"); err == nil ||
				!words("Labels of clusters are not known").MatchString(stdout+stderr) {
				t.Errorf("the destroy succeeds: %s%s", stdout, stderr)
			}
			writeFile(t, filepath.Join(w.path, "labels.json"), `{"*": {}}`)
			w.run("destroy", "-input=false", "-auto-approve")
		})
	}
}

func TestTheRoleOfTheGuideIsEnoughForFacts(t *testing.T) {
	acceptancetest.Only(t)
	t.Parallel()
	_, role, _ := strings.Cut(guideText(t, "reference-observing.md.tmpl"), "```yaml\napiVersion: rbac")
	role, _, _ = strings.Cut("apiVersion: rbac"+role, "```")
	server := kubetest.Start(t, kubetest.Options{})
	server.Apply(t, role+`---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: flotilla-facts}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: flotilla-facts}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: asks-facts}]
`)
	connect := func(user string) map[string]any {
		certificate, key := server.ClientCertificate(t, user)
		return map[string]any{"host": server.Host, "cluster_ca_certificate": server.CA, "client_certificate": certificate, "client_key": key}
	}
	read, diags := readFacts(
		t,
		map[string]any{"a": connect("asks-facts"), "b": connect("has-no-rights")},
		map[string]any{"requested": true, "sources": map[string]any{"clusters": map[string]any{"deadline": "1m"}}},
	)
	if diags.Err() != nil {
		t.Fatal(diags)
	}
	for name, want := range map[string]string{"a": "[]", "b": `["list nodes","list pods"]`} {
		cluster := read["clusters"].(map[string]any)[name].(map[string]any)
		if got := asJSON(t, cluster["missing_rights"]); got != want || cluster["facts"].(map[string]any)["kubernetes_version"] == nil {
			t.Errorf("%s lacks %s: %v", name, got, cluster)
		}
	}
}
