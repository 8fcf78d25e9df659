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

// final is the configuration of two cluster types, one after the other, whose manifests are rendered as far as a variable says.
const final = required + `
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

// finalFiles are a folder of plain manifests, a kustomization of a base with a patch, and a chart, in a version.
func finalFiles(version string) map[string]string {
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

// rendering goes from pointers, whose final objects a plan shows, to objects in the folder and back: the cluster has what was
// shown, and nothing is deleted. The objects go through stages, back, and away as pointers do.
func (w *world) rendering(t *testing.T, agent agent) {
	user := w.git.User(t)
	team, gitops := newRepository(t, w.git, user, "team"), newRepository(t, w.git, user, "gitops")
	name := agent.reconciler() + "-final"
	targets := []string{"kustomized", "plain"}
	if _, ok := agent.(argoCD); ok { // the Go module proxy has no helm-controller for Flux
		program(t, "helm")
		targets = append(targets, "chart")
	}
	namespace := func(ring, target string) string { return "dev-" + name + "-" + ring + "-web-" + target } // and the name of what follows the manifests
	greeting := map[string]string{"kustomized": "my-greeting", "plain": "greeting", "chart": "greeting"}
	pushed := func(version string) string {
		team.push(finalFiles(version))
		return team.head()
	}
	step := func(what string, do func()) {
		t.Helper()
		w.step(t, agent.reconciler(), what, do)
	}
	child := func(ring, target string) *unstructured.Unstructured {
		if agent.reconciler() == "flux" {
			return w.cluster.Get(t, "kustomize.toolkit.fluxcd.io/v1", "Kustomization", "flux-system", namespace(ring, target))
		}
		return w.cluster.Get(t, "argoproj.io/v1alpha1", "Application", "argocd", namespace(ring, target))
	}

	tf := newTerraform(t, user)
	tf.env = append(tf.env, "FLOTILLA_CACHE_DIR="+filepath.Join(t.TempDir(), "cache"))
	tf.write("kubeconfig", w.cluster.Kubeconfig())
	tf.write("main.tf", fmt.Sprintf(final, name, agent.reconciler(), team.url, gitops.url))
	variables := map[string]any{"render": "preview", "commit": pushed("v1"), "targets": targets}
	var roots []string
	apply := func() (rolledOut bool, says any) {
		t.Helper()
		text, err := json.Marshal(variables)
		if err != nil {
			t.Fatal(err)
		}
		tf.write("terraform.tfvars.json", string(text))
		tf.run("apply", "-auto-approve", "-no-color")
		for _, ring := range []string{"first", "rest"} {
			if len(roots) < 4 { // the branch is there now
				ofType, own := follow(t, w.cluster, agents.Settings{
					Cluster: name + "-" + ring + "-1", ClusterType: name + "-" + ring, Reconciler: agent.reconciler(),
					Repository: folder.Location{URL: gitops.url, Branch: "dev"},
				})
				roots = append(roots, ofType, own)
			}
		}
		for _, root := range roots {
			agent.nudge(t, root)
		}
		tf.outputs(map[string]any{"rolled_out": &rolledOut, "rolling_out": &says})
		return rolledOut, says
	}
	// arrived checks that a ring has a version, and that its agent is content.
	arrived := func(ring, version string) error {
		for _, target := range targets {
			if err := configMapSays(t, w.cluster, namespace(ring, target), greeting[target], "hello", version); err != nil {
				return err
			}
			follows := fmt.Sprint(field(child(ring, target), "spec", "path"), field(child(ring, target), "spec", "source", "path"))
			if is := strings.Contains(follows, "/objects"); is != (variables["render"] == "objects") || !settled(child(ring, target)) {
				return fmt.Errorf("%s follows %s, and has settled: %t", namespace(ring, target), follows, settled(child(ring, target)))
			}
		}
		return nil
	}
	until := func(check func() error) {
		t.Helper()
		eventually(t, func() error {
			if err := check(); err != nil {
				return fmt.Errorf(
					"%w\n%s",
					err,
					agent.says(t, append(slices.Clone(roots), namespace("first", targets[0]), namespace("first", targets[len(targets)-1]))...),
				)
			}
			return nil
		})
	}
	// goes applies again and again until both rings have a version.
	goes := func(version string) {
		t.Helper()
		until(func() error {
			if rolledOut, says := apply(); !rolledOut {
				time.Sleep(time.Second) // agents need the processors, too
				return fmt.Errorf("the rollout says %v", says)
			}
			return nil
		})
		until(func() error { return all(arrived("first", version), arrived("rest", version)) })
	}
	uids := func() map[reference]string {
		had := map[reference]string{}
		for _, ring := range []string{"first", "rest"} {
			for _, target := range targets {
				one := child(ring, target)
				had[reference{one.GetAPIVersion(), one.GetKind(), one.GetNamespace(), one.GetName()}] = string(one.GetUID())
				maps.Copy(had, w.brought(t, one))
			}
		}
		return had
	}
	// asShown checks that the cluster has the objects that the plan showed, and no others.
	asShown := func() {
		t.Helper()
		var shown []struct {
			Assignment, Kind, Namespace, Name, YAML string
			APIVersion                              string `json:"api_version"`
		}
		tf.outputs(map[string]any{"objects": &shown})
		has := map[string]map[reference]string{}
		for _, ring := range []string{"first", "rest"} {
			for _, target := range targets {
				has[name+"-"+ring+"/web-"+target] = w.brought(t, child(ring, target))
			}
		}
		for _, object := range shown {
			is := reference{object.APIVersion, object.Kind, object.Namespace, object.Name}
			if has[object.Assignment][is] == "" {
				t.Errorf("%s shows %v, and the cluster has %v", object.Assignment, is, slices.Collect(maps.Keys(has[object.Assignment])))
				continue
			}
			delete(has[object.Assignment], is)
			var want map[string]any
			if err := yaml.Unmarshal([]byte(object.YAML), &want); err != nil {
				t.Fatal(err)
			}
			if at := differs(want, any(w.cluster.Get(t, is.apiVersion, is.kind, is.namespace, is.name).Object), ""); at != "" {
				t.Errorf("%s shows of %v another %s than the cluster has", object.Assignment, is, at)
			}
		}
		for assignment, more := range has {
			if len(more) > 0 {
				t.Errorf("%s has %v, which is not shown", assignment, slices.Collect(maps.Keys(more)))
			}
		}
		if want := len(targets) * 2; len(shown) < 2*want {
			t.Errorf("only %d objects are shown of %d assignments", len(shown), want)
		}
	}

	step("a preview arrives", func() { goes("v1") })
	asShown()
	had := uids()
	same := func() {
		t.Helper()
		if got := uids(); !maps.Equal(got, had) {
			t.Errorf("there was %v, and is %v", had, got)
		}
	}
	step("objects arrive", func() {
		variables["render"] = "objects"
		goes("v1")
	})
	same()
	asShown()
	atFirst := gitops.tip("dev")
	step("changed objects arrive at the first stage", func() {
		variables["commit"] = pushed("v2")
		if rolledOut, says := apply(); rolledOut {
			t.Errorf("the rollout is over at once: %v", says)
		}
		until(func() error { return all(arrived("first", "v2"), arrived("rest", "v1")) })
	})
	step("and at the second", func() { goes("v2") })
	same()
	asShown()
	step("rolled back", func() {
		variables["rollback_to"] = atFirst
		apply()
		until(func() error { return all(arrived("first", "v1"), arrived("rest", "v1")) })
	})
	same()
	step("and on again", func() {
		delete(variables, "rollback_to")
		goes("v2")
	})
	step("a change by hand on the cluster is put right", func() {
		setData(t, w.cluster, namespace("rest", "plain"), "greeting", "hello", "by hand")
		if agent.reconciler() == "flux" {
			agent.nudge(t, namespace("rest", "plain"))
		}
		until(func() error { return arrived("rest", "v2") })
	})
	step("a change by hand in the folder is put right", func() {
		gitops.git("checkout", "--quiet", "-B", "dev", gitops.tip("dev"))
		path := name + "-rest/web-plain/objects/objects.yaml"
		text, err := os.ReadFile(filepath.Join(gitops.clone, filepath.FromSlash(path)))
		if err != nil {
			t.Fatal(err)
		}
		gitops.pushTo("dev", map[string]string{path: strings.Replace(string(text), "hello: v2", "hello: by hand", 1)})
		goes("v2")
		same()
	})
	step("the state is lost", func() {
		if err := os.Remove(filepath.Join(tf.folder, "terraform.tfstate")); err != nil {
			t.Fatal(err)
		}
		before := gitops.git("rev-parse", gitops.tip("dev")+":"+name+"-rest")
		goes("v2")
		if after := gitops.git("rev-parse", gitops.tip("dev")+":"+name+"-rest"); after != before {
			t.Error("the folder is another one")
		}
		same()
	})
	step("pointers arrive again", func() {
		variables["render"] = "pointers"
		goes("v2")
	})
	same()
	step("objects, one of which is removed, are pruned", func() {
		variables["render"] = "objects"
		goes("v2")
		same()
		targets = slices.DeleteFunc(targets, func(target string) bool { return target == "plain" })
		variables["targets"] = targets
		goes("v2") // removals go through stages, too
		until(func() error {
			return all(gone(t, w.cluster, namespace("first", "plain")), gone(t, w.cluster, namespace("rest", "plain")))
		})
		maps.DeleteFunc(had, func(object reference, _ string) bool {
			return strings.HasSuffix(object.namespace+object.name, "-web-plain") || strings.Contains(object.namespace, "-web-plain")
		})
		same()
	})
}

// differs is the field of an object in which another one lacks what it has; "" where there is none.
func differs(want, has any, at string) string {
	switch want := want.(type) {
	case map[string]any:
		within, _ := has.(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(want)) {
			if found := differs(want[key], within[key], at+"."+key); found != "" {
				return found
			}
		}
		return ""
	case []any:
		within, _ := has.([]any)
		if len(within) != len(want) {
			return at
		}
		for i := range want {
			if found := differs(want[i], within[i], fmt.Sprintf("%s[%d]", at, i)); found != "" {
				return found
			}
		}
		return ""
	case float64: // of YAML, while the cluster has whole numbers
		if number, isWhole := has.(int64); isWhole {
			has = float64(number)
		}
	}
	if want == nil || reflect.DeepEqual(want, has) {
		return ""
	}
	return fmt.Sprintf("%s: %v, not %v", at, want, has)
}
