package e2e_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	agents "github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// renderConfiguration has two cluster types in successive stages. A variable sets their attribute render.
const renderConfiguration = requiredProviders + `
provider "flotilla" {
  clusters = { for ring in local.rings : "%[1]s-${ring}-1" => { kubeconfig = file("kubeconfig") } }
}

variable "render" { type = string }
variable "commit" { type = string }
variable "targets" { type = set(string) }
variable "rollback_to" {
  type    = string
  default = null
}

locals {
  rings = ["first", "rest"]
  fleet = provider::flotilla::fleet({
    environment   = "dev"
    workspaces    = [{ name = "shop" }]
    cluster_types = [for ring in local.rings : {
      name = "%[1]s-${ring}", labels = { ring = ring }, reconciler = "%[2]s", render = var.render
      parameters = { gitops_repository = "%[2]s" == "flux" ? "flotilla-%[1]s-${ring}-1" : "%[4]s" }
    }]
    clusters  = [for ring in local.rings : { name = "%[1]s-${ring}-1", cluster_type = "%[1]s-${ring}" }]
    workloads = [{
      name = "web", workspace = "shop"
      deployment_targets = { for target in var.targets : target => {
        environment = "dev"
        manifests   = { repo = "%[3]s", branch = "main", commit = var.commit, path = "./${target}", type = target == "chart" ? "helm" : null }
        config_as   = target == "chart" ? ["values"] : null
      } }
    }]
    target_policies   = [{ name = "all", deployment_target_selector = {}, cluster_type_selector = {} }]
    config_containers = [{ name = "all", data = { GREETING = "configured" } }]
  })
  gitops_repo = { url = "%[4]s", branch = "dev" }
}

data "flotilla_compliance" "dev" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = local.gitops_repo
  feedback    = { clusters = true }
}

data "flotilla_manifests" "dev" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = local.gitops_repo
}

resource "flotilla_assignment" "dev" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = local.gitops_repo
  evidence    = data.flotilla_compliance.dev.evidence
  rollback_to = var.rollback_to
  protection  = { max_removed_percent = 100 }
  rollout     = { stages = [{ name = "first", cluster_type_selector = { match_labels = { ring = "first" } } }] }
}

output "objects" {
  value = data.flotilla_manifests.dev.objects
}
output "rolled_out" {
  value = flotilla_assignment.dev.rolled_out
}
output "rolling_out" {
  value = { for target, progress in flotilla_assignment.dev.rolling_out : target => progress.summary }
}
`

// newManifestFiles returns three folders in a version: plain manifests, a kustomization of a base with a patch, and a chart.
func newManifestFiles(version string) map[string]string {
	return map[string]string{
		"plain/all.yaml":       fmt.Sprintf(workload, version, 0),
		"kustomized/base.yaml": fmt.Sprintf(workload, version, 0),
		"kustomized/kustomization.yaml": `resources: [base.yaml]
namePrefix: my-
labels: [{pairs: {team: shop}, includeSelectors: false}]
configMapGenerator: [{name: made, literals: [a=b]}]
patches:
  - target: {kind: Deployment}
    patch: '[{"op": "add", "path": "/spec/revisionHistoryLimit", "value": 3}]'
`,
		"chart/Chart.yaml":  "{apiVersion: v2, name: greeter, version: 1.0.0}\n",
		"chart/values.yaml": "GREETING: none\n",
		"chart/templates/all.yaml": strings.ReplaceAll(
			fmt.Sprintf(workload, version, 0),
			"metadata: {name: server}",
			"metadata: {name: server, labels: {release: {{ .Release.Name | quote }}}}",
		) +
			"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: values}\ndata: {greeting: {{ .Values.GREETING | quote }}}\n",
	}
}

// testRendering goes from pointers with a preview to rendered objects and back. The cluster has exactly the previewed objects,
// and no object is deleted. Like pointers, objects go through stages, are rolled back, and are pruned.
func (bed *testbed) testRendering(t *testing.T, agent agent) {
	user := bed.git.User(t)
	team, gitops := newRepository(t, bed.git, user, "team"), newRepository(t, bed.git, user, "gitops")
	name := agent.reconciler() + "-final"
	targets := []string{"kustomized", "plain"}
	if _, ok := agent.(argoCD); ok { // the Go module proxy has no helm-controller for Flux
		programPath(t, "helm")
		targets = append(targets, "chart")
	}
	namespace := func(ring, target string) string { return "dev-" + name + "-" + ring + "-web-" + target } // also the name of the Application or Kustomization
	greeting := map[string]string{"kustomized": "my-greeting", "plain": "greeting", "chart": "greeting"}
	pushVersion := func(version string) string {
		team.push(newManifestFiles(version))
		return team.head()
	}
	step := func(title string, do func()) {
		t.Helper()
		bed.step(t, agent.reconciler(), title, do)
	}
	getFollower := func(ring, target string) *unstructured.Unstructured {
		if agent.reconciler() == "flux" {
			return bed.cluster.Get(t, "kustomize.toolkit.fluxcd.io/v1", "Kustomization", "flux-system", namespace(ring, target))
		}
		return bed.cluster.Get(t, "argoproj.io/v1alpha1", "Application", "argocd", namespace(ring, target))
	}

	tf := newTerraform(t, user)
	tf.env = append(tf.env, "FLOTILLA_CACHE_DIR="+filepath.Join(t.TempDir(), "cache"))
	tf.writeFile("kubeconfig", bed.cluster.Kubeconfig())
	tf.writeFile("main.tf", fmt.Sprintf(renderConfiguration, name, agent.reconciler(), team.url, gitops.url))
	variables := map[string]any{"render": "preview", "commit": pushVersion("v1"), "targets": targets}
	var roots []string
	apply := func() (rolledOut bool, summary any) {
		t.Helper()
		text, err := json.Marshal(variables)
		if err != nil {
			t.Fatal(err)
		}
		tf.writeFile("terraform.tfvars.json", string(text))
		tf.run("apply", "-auto-approve", "-no-color")
		for _, ring := range []string{"first", "rest"} {
			if len(roots) < 4 { // the first apply creates the branch
				ofType, own := applyRoots(t, bed.cluster, agents.Settings{
					Cluster: name + "-" + ring + "-1", ClusterType: name + "-" + ring, Reconciler: agent.reconciler(),
					Repository: folder.Location{URL: gitops.url, Branch: "dev"},
				})
				roots = append(roots, ofType, own)
			}
		}
		for _, root := range roots {
			agent.triggerReconcile(t, root)
		}
		tf.readOutputs(map[string]any{"rolled_out": &rolledOut, "rolling_out": &summary})
		return rolledOut, summary
	}
	// checkRing checks that a ring has a version and that its followers have settled.
	checkRing := func(ring, version string) error {
		for _, target := range targets {
			if err := checkConfigMap(t, bed.cluster, namespace(ring, target), greeting[target], "hello", version); err != nil {
				return err
			}
			followedPath := fmt.Sprint(field(getFollower(ring, target), "spec", "path"), field(getFollower(ring, target), "spec", "source", "path"))
			if is := strings.Contains(followedPath, "/objects"); is != (variables["render"] == "objects") || !isSettled(getFollower(ring, target)) {
				return fmt.Errorf("%s follows %s, and has settled: %t", namespace(ring, target), followedPath, isSettled(getFollower(ring, target)))
			}
		}
		return nil
	}
	waitFor := func(check func() error) {
		t.Helper()
		eventually(t, func() error {
			if err := check(); err != nil {
				return fmt.Errorf(
					"%w\n%s",
					err,
					agent.describeStatus(t, append(slices.Clone(roots), namespace("first", targets[0]), namespace("first", targets[len(targets)-1]))...),
				)
			}
			return nil
		})
	}
	// rollOut applies until the rollout is complete and both rings have the version.
	rollOut := func(version string) {
		t.Helper()
		waitFor(func() error {
			if rolledOut, summary := apply(); !rolledOut {
				time.Sleep(time.Second) // leave processor time to the agents
				return fmt.Errorf("the rollout is incomplete: %v", summary)
			}
			return nil
		})
		waitFor(func() error { return joinErrors(checkRing("first", version), checkRing("rest", version)) })
	}
	listUIDs := func() map[objectReference]string {
		uids := map[objectReference]string{}
		for _, ring := range []string{"first", "rest"} {
			for _, target := range targets {
				follower := getFollower(ring, target)
				uids[objectReference{follower.GetAPIVersion(), follower.GetKind(), follower.GetNamespace(), follower.GetName()}] = string(follower.GetUID())
				maps.Copy(uids, bed.listApplied(t, follower))
			}
		}
		return uids
	}
	// checkPreview checks that the cluster has the previewed objects and no others.
	checkPreview := func() {
		t.Helper()
		var previewed []struct {
			Assignment, Kind, Namespace, Name, YAML string
			APIVersion                              string `json:"api_version"`
		}
		tf.readOutputs(map[string]any{"objects": &previewed})
		has := map[string]map[objectReference]string{}
		for _, ring := range []string{"first", "rest"} {
			for _, target := range targets {
				has[name+"-"+ring+"/web-"+target] = bed.listApplied(t, getFollower(ring, target))
			}
		}
		for _, object := range previewed {
			is := objectReference{object.APIVersion, object.Kind, object.Namespace, object.Name}
			if has[object.Assignment][is] == "" {
				t.Errorf("%s previews %v, but the cluster has %v", object.Assignment, is, slices.Collect(maps.Keys(has[object.Assignment])))
				continue
			}
			delete(has[object.Assignment], is)
			var want map[string]any
			if err := yaml.Unmarshal([]byte(object.YAML), &want); err != nil {
				t.Fatal(err)
			}
			if difference := firstDifference(want, any(bed.cluster.Get(t, is.apiVersion, is.kind, is.namespace, is.name).Object),
				""); difference != "" {
				t.Errorf("%s previews %v with another %s", object.Assignment, is, difference)
			}
		}
		for assignment, extra := range has {
			if len(extra) > 0 {
				t.Errorf("%s has %v, which the preview lacks", assignment, slices.Collect(maps.Keys(extra)))
			}
		}
		if want := len(targets) * 2; len(previewed) < 2*want {
			t.Errorf("the preview of %d assignments has only %d objects", want, len(previewed))
		}
	}

	step("pointers are applied, with a preview", func() { rollOut("v1") })
	checkPreview()
	wantUIDs := listUIDs()
	checkUIDs := func() {
		t.Helper()
		if got := listUIDs(); !maps.Equal(got, wantUIDs) {
			t.Errorf("the UIDs are %v, want %v", got, wantUIDs)
		}
	}
	step("objects are applied", func() {
		variables["render"] = "objects"
		rollOut("v1")
	})
	checkUIDs()
	checkPreview()
	firstCommit := gitops.tip("dev")
	step("changed objects are applied in the first stage", func() {
		variables["commit"] = pushVersion("v2")
		if rolledOut, summary := apply(); rolledOut {
			t.Errorf("the rollout completed at once: %v", summary)
		}
		waitFor(func() error { return joinErrors(checkRing("first", "v2"), checkRing("rest", "v1")) })
	})
	step("changed objects are applied in the second stage", func() { rollOut("v2") })
	checkUIDs()
	checkPreview()
	step("objects are rolled back", func() {
		variables["rollback_to"] = firstCommit
		apply()
		waitFor(func() error { return joinErrors(checkRing("first", "v1"), checkRing("rest", "v1")) })
	})
	checkUIDs()
	step("the rollback ends", func() {
		delete(variables, "rollback_to")
		rollOut("v2")
	})
	step("a change by hand on the cluster is reverted", func() {
		setData(t, bed.cluster, namespace("rest", "plain"), "greeting", "hello", "by hand")
		if agent.reconciler() == "flux" {
			agent.triggerReconcile(t, namespace("rest", "plain"))
		}
		waitFor(func() error { return checkRing("rest", "v2") })
	})
	step("a change by hand in the folder is reverted", func() {
		gitops.git("checkout", "--quiet", "-B", "dev", gitops.tip("dev"))
		path := name + "-rest/web-plain/objects/objects.yaml"
		text, err := os.ReadFile(filepath.Join(gitops.clone, filepath.FromSlash(path)))
		if err != nil {
			t.Fatal(err)
		}
		gitops.pushTo("dev", map[string]string{path: strings.Replace(string(text), "hello: v2", "hello: by hand", 1)})
		rollOut("v2")
		checkUIDs()
	})
	step("the state is lost", func() {
		if err := os.Remove(filepath.Join(tf.folder, "terraform.tfstate")); err != nil {
			t.Fatal(err)
		}
		before := gitops.git("rev-parse", gitops.tip("dev")+":"+name+"-rest")
		rollOut("v2")
		if after := gitops.git("rev-parse", gitops.tip("dev")+":"+name+"-rest"); after != before {
			t.Error("the folder changed after the loss of the state")
		}
		checkUIDs()
	})
	step("pointers are applied again", func() {
		variables["render"] = "pointers"
		rollOut("v2")
	})
	checkUIDs()
	step("objects of a removed target are pruned", func() {
		variables["render"] = "objects"
		rollOut("v2")
		checkUIDs()
		targets = slices.DeleteFunc(targets, func(target string) bool { return target == "plain" })
		variables["targets"] = targets
		rollOut("v2") // removals go through stages, too
		waitFor(func() error {
			return joinErrors(checkNamespaceGone(t, bed.cluster, namespace("first", "plain")), checkNamespaceGone(t, bed.cluster,
				namespace("rest", "plain")))
		})
		maps.DeleteFunc(wantUIDs, func(object objectReference, _ string) bool {
			return strings.HasSuffix(object.namespace+object.name, "-web-plain") || strings.Contains(object.namespace, "-web-plain")
		})
		checkUIDs()
	})
}

// firstDifference returns the first field of want with another value in got, or "". Fields missing from want do not count.
func firstDifference(want, got any, path string) string {
	switch want := want.(type) {
	case map[string]any:
		gotWithin, _ := got.(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(want)) {
			if difference := firstDifference(want[key], gotWithin[key], path+"."+key); difference != "" {
				return difference
			}
		}
		return ""
	case []any:
		gotWithin, _ := got.([]any)
		if len(gotWithin) != len(want) {
			return path
		}
		for i := range want {
			if difference := firstDifference(want[i], gotWithin[i], fmt.Sprintf("%s[%d]", path, i)); difference != "" {
				return difference
			}
		}
		return ""
	case float64: // YAML decodes to float64, the cluster's objects have int64
		if number, isWhole := got.(int64); isWhole {
			got = float64(number)
		}
	}
	if want == nil || reflect.DeepEqual(want, got) {
		return ""
	}
	return fmt.Sprintf("%s: got %v, want %v", path, got, want)
}
