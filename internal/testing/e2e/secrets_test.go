package e2e_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	agents "github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
)

// rotationConfiguration has config containers with a reference to a secret. The file `version` has the version of the secret.
const rotationConfiguration = `
provider "flotilla" {
  clusters = { for cluster in local.clusters : cluster.name => { kubeconfig = file("kubeconfig") } }
}

locals {
  clusters = [for ring in ["canary", "rest"] : {
    name = "%[1]s-secret-${ring}", cluster_type = "%[1]s-rotated", labels = { ring = ring }
  }]
  fleet = provider::flotilla::fleet({
    environment   = "dev"
    workspaces    = [{ name = "shop" }]
    cluster_types = [{
      name = "%[1]s-rotated", reconciler = "%[1]s"
      secret_service = "external-secrets", secret_stores = { vault = { name = "team-vault" } }
    }]
    clusters  = local.clusters
    workloads = [{
      name = "web", workspace = "shop"
      deployment_targets = { live = { environment = "dev", manifests = { repo = "%[2]s", branch = "main", path = "./deploy" } } }
    }]
    target_policies   = [{ name = "everywhere", deployment_target_selector = {}, cluster_selector = {} }]
    config_containers = [{
      name    = "all"
      secrets = { PASSWORD = { store = "vault", key = "prod/db", property = "password", version = trimspace(file("version")) } }
    }]
  })
}

data "flotilla_compliance" "dev" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = { url = "%[3]s", branch = "dev" }
  feedback    = { clusters = true }
}

resource "flotilla_assignment" "dev" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = { url = "%[3]s", branch = "dev" }
  evidence    = data.flotilla_compliance.dev.evidence
  rollout = {
    stages = [{ name = "canary", cluster_selector = { match_labels = { ring = "canary" } }, soak = "2s" }]
  }
}

output "assignments" {
  value = data.flotilla_compliance.dev.assignments
}
output "rolling_out" {
  value = { for target, progress in flotilla_assignment.dev.rolling_out : target => progress.summary }
}
output "rolled_out" {
  value = flotilla_assignment.dev.rolled_out
}
`

// rotationStatus has the outputs of an apply.
type rotationStatus struct {
	rollingOut  map[string]string
	rolledOut   bool
	assignments map[string]struct{ Verdict, Message string }
}

// checkSummary checks that the rollout's summary contains every word.
func (r *rotationStatus) checkSummary(words ...string) error {
	for _, word := range words {
		if text := r.rollingOut["web-live"]; !strings.Contains(text, word) {
			return fmt.Errorf("the summary of the rollout is %q, want %q", text, word)
		}
	}
	return nil
}

// canarySecret begins every secret. No file, plan or state may contain it.
const canarySecret = "correct-horse-"

// testSecretRotation rolls out a reference to a secret, and then other versions of the secret, stage by stage.
func (bed *testbed) testSecretRotation(t *testing.T, agent agent) {
	user := bed.git.User(t)
	team := newRepository(t, bed.git, user, "team")
	team.push(map[string]string{"deploy/all.yaml": fmt.Sprintf(workload, "v1", 0)})
	gitops := newRepository(t, bed.git, user, "gitops")
	name := agent.reconciler()
	namespace := func(ring string) string { return "dev-" + name + "-secret-" + ring + "-web-live" }
	operator := startOperator(
		t,
		bed.cluster,
		map[string]string{"prod/db password 1": canarySecret + "1", "prod/db password 2": canarySecret + "2"},
	)
	operator.setSuspended(true)

	tf := newTerraform(t, user)
	tf.writeFile("kubeconfig", bed.cluster.Kubeconfig())
	tf.writeFile("main.tf", requiredProviders+fmt.Sprintf(rotationConfiguration, name, team.url, gitops.url))
	var roots []string
	applyOnce := func() rotationStatus {
		tf.run("apply", "-auto-approve", "-no-color")
		if roots == nil { // the first apply creates the branch
			for _, ring := range []string{"canary", "rest"} {
				_, own := applyRoots(t, bed.cluster, agents.Settings{
					Cluster: name + "-secret-" + ring, ClusterType: name + "-rotated", Reconciler: name, Repository: folder.Location{URL: gitops.url, Branch: "dev"},
				})
				roots = append(roots, own)
			}
		}
		for _, root := range roots {
			agent.triggerReconcile(t, root)
		}
		var status rotationStatus
		tf.readOutputs(map[string]any{"rolling_out": &status.rollingOut, "rolled_out": &status.rolledOut, "assignments": &status.assignments})
		return status
	}
	applyUntil := func(title string, check func(rotationStatus) error) {
		t.Helper()
		runs := 0
		bed.step(t, name, title, func() {
			eventually(t, func() error {
				if runs++; runs > 1 {
					time.Sleep(time.Second) // leave processor time to the agents
				}
				status := applyOnce()
				if err := check(status); err != nil {
					return fmt.Errorf("%w: the summary of the rollout is %v, the verdicts are %v", err, status.rollingOut, status.assignments)
				}
				return nil
			})
		})
	}
	// checkCanary checks the verdict of the first stage.
	checkCanary := func(status rotationStatus, verdict, message string) error {
		got := status.assignments["clusters/"+name+"-secret-canary/web-live"]
		if got.Verdict != verdict || !strings.Contains(got.Message, message) {
			return fmt.Errorf("the verdict of the canary is %s: %s, want %s: %s", got.Verdict, got.Message, verdict, message)
		}
		return nil
	}
	// checkSecrets checks the Secrets of both stages. An empty value means no Secret.
	checkSecrets := func(checkCanary, rest string) {
		t.Helper()
		for ring, want := range map[string]string{"canary": checkCanary, "rest": rest} {
			if got := readSecret(t, bed.cluster, namespace(ring), "PASSWORD"); got != want {
				t.Errorf("the Secret of %s has %q, want %q", ring, got, want)
			}
		}
	}
	checkRolledOut := func(status rotationStatus) error {
		if !status.rolledOut {
			return errors.New("not rolled out")
		}
		return nil
	}
	object := "ExternalSecret " + namespace("canary") + "/platform-secrets"

	tf.writeFile("version", "1")
	applyUntil(
		"a reference is not ready without its Secret",
		func(status rotationStatus) error {
			return checkCanary(status, "progressing", object+" has no status yet")
		},
	)
	checkSecrets("", "")
	operator.setSuspended(false)
	applyUntil("version 1 passes two stages", checkRolledOut)
	checkSecrets(canarySecret+"1", canarySecret+"1")

	operator.setSuspended(true)
	tf.writeFile("version", "2")
	applyUntil("version 2 is assigned, version 1 is still on the cluster", func(status rotationStatus) error {
		return checkCanary(status, "progressing", object+" was changed after its Secret was written")
	})
	checkSecrets(canarySecret+"1", canarySecret+"1")
	operator.setSuspended(false)
	applyUntil("version 2 passes two stages", checkRolledOut)
	checkSecrets(canarySecret+"2", canarySecret+"2")

	tf.writeFile("version", "9")
	applyUntil("version 9, missing from the store, halts at the canary", func(status rotationStatus) error {
		if status.rolledOut {
			t.Error("version 9 is rolled out")
		}
		return errors.Join(checkCanary(status, "failed", object+" is not ready: could not get secret data from provider"),
			status.checkSummary(`stage 1 of 2 "canary"`, "failed"))
	})
	checkSecrets(canarySecret+"2", canarySecret+"2")
	tf.writeFile("version", "2")
	applyUntil("version 2 is assigned again", checkRolledOut)
	checkSecrets(canarySecret+"2", canarySecret+"2")
	if err := tf.checkEmptyPlan(); err != nil {
		t.Error(err)
	}

	if got, want := listVersions(gitops, name), []string{"canary 1", "rest 1", "canary 2", "rest 2", "canary 9", "canary 2"}; !slices.Equal(
		got,
		want,
	) {
		t.Errorf("the commits of dev assign %v, want %v", got, want)
	}
	if state := tf.run("state", "pull"); strings.Contains(state, canarySecret) {
		t.Error("the state has a secret")
	}
}

// readSecret returns a value of the Secret in a namespace, or "".
func readSecret(t *testing.T, cluster *kubetest.Server, namespace, key string) string {
	t.Helper()
	text, _ := field(cluster.Get(t, "v1", "Secret", namespace, "platform-secrets"), "data", key).(string)
	decoded, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(decoded)
}

// listVersions lists, by commit of dev, each ring and the version of the secret assigned to it.
func listVersions(gitops *repository, agent string) []string {
	var versions []string
	gitops.git("fetch", "--quiet", gitops.pushURL, "dev")
	for commit := range strings.FieldsSeq(gitops.git("log", "--reverse", "--format=%H", "FETCH_HEAD")) {
		for _, ring := range []string{"canary", "rest"} {
			changed := gitops.git("show", "--format=", commit, "--", "clusters/"+agent+"-secret-"+ring+"/web-live/platform-secrets.yaml")
			for line := range strings.Lines(changed) {
				if version, isVersion := strings.CutPrefix(strings.TrimSpace(strings.TrimPrefix(line, "+")),
					"version: "); isVersion && strings.HasPrefix(line, "+") {
					versions = append(versions, ring+" "+strings.Trim(version, `"`))
				}
			}
		}
	}
	return versions
}
