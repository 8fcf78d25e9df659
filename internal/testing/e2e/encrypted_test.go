package e2e_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/giteatest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
)

// encryptedConfiguration has a cluster whose agent decrypts the files of a config container.
const encryptedConfiguration = requiredProviders + `
provider "flotilla" {
  clusters = { "edge-1" = { kubeconfig = file("kubeconfig") } }
}

variable "token" {
  type      = string
  sensitive = true
}
variable "files" {
  type = list(string)
}
variable "keys" {
  type = string
}

resource "flotilla_cluster_type" "edge" {
  environment = "dev"
  name        = "edge"
  reconciler  = "flux"
  decryption  = { secret = var.keys }
}

locals {
  fleet = provider::flotilla::fleet({
    environment   = "dev"
    workspaces    = [{ name = "shop" }]
    cluster_types = [flotilla_cluster_type.edge]
    clusters      = [{ name = "edge-1", cluster_type = "edge" }]
    workloads = [{
      name = "web", workspace = "shop"
      deployment_targets = {
        live = { environment = "dev", namespace = "shop", manifests = { repo = "%[1]s", branch = "main", path = "./live" } }
      }
    }]
    target_policies   = [{ name = "all", cluster_type_selector = {} }]
    config_containers = [{ name = "db", labels = { workload = "web" }, data = { DB_USER = "shop" }, encrypted = [for name in var.files : file(name)] }]
  })
  gitops_repo = { url = "%[2]s", branch = "dev" }
}

resource "flotilla_assignment" "dev" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = local.gitops_repo
}

resource "flotilla_agent" "edge" {
  cluster                = "edge-1"
  cluster_type           = "edge"
  gitops_repo            = local.gitops_repo
  credentials_wo         = { username = "%[3]s", password = var.token }
  credentials_wo_version = 1
  interval               = "5s"
  install                = { definitions = file("definitions.yaml") }
  decryption             = flotilla_cluster_type.edge.decryption
  wait                   = true
  timeouts               = { create = "4m", update = "4m" }
  depends_on             = [flotilla_assignment.dev]
}
`

// TestEncryptedFiles delivers a Secret, encrypted by the real sops, to a kustomize-controller that decrypts it. It then changes
// the agent's keys and the Secret, and removes the Secret.
func TestEncryptedFiles(t *testing.T) {
	if os.Getenv("FLOTILLA_E2E") == "" {
		t.Skip("starts a real agent: `make e2e` builds it and runs it")
	}
	t.Parallel()
	bed := &testbed{scenario: "encrypted files", git: giteatest.Start(t)}
	bed.step(t, "flux", "Kubernetes API started", func() {
		bed.cluster = kubetest.StartAnother(t, kubetest.Options{Controllers: true})
	})
	user, agent := bed.git.User(t), flux{bed.cluster}
	team, gitops := newRepository(t, bed.git, user, "team"), newPrivateRepository(t, bed.git, user, "gitops")
	team.push(map[string]string{"live/all.yaml": fmt.Sprintf(workload, "world", 0)})

	tf := newTerraform(t, user)
	setVariables := func(files, keys string) {
		tf.env = append(tf.env, "TF_VAR_token="+user.Token, "TF_VAR_files="+files, "TF_VAR_keys="+keys)
	}
	tf.writeFile("kubeconfig", bed.cluster.Kubeconfig())
	tf.writeFile("definitions.yaml", readDefinitions(t, "flux"))
	tf.writeFile("main.tf", fmt.Sprintf(encryptedConfiguration, team.url, gitops.url, user.Name))

	// Users create the keys and encrypt the file without Flotilla.
	first, firstRecipient := newAgeKey(t)
	second, secondRecipient := newAgeKey(t)
	bed.cluster.Apply(t, agent.settings())
	keys := func(name, text string) {
		bed.cluster.Apply(t, fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: %s, namespace: flux-system}, data: {age.agekey: %s}}",
			name, base64.StdEncoding.EncodeToString([]byte(text))))
	}
	keys("sops-age", first)
	keys("sops-age-2", first+second)
	passwords := []string{"canary-correct-horse", "canary-battery-staple"}
	encrypt := func(password, recipient string) {
		tf.writeFile("db.yaml", sopsEncrypt(t, recipient, fmt.Sprintf(
			"apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\n  namespace: shop\nstringData:\n  PASSWORD: %s\n", password)))
	}
	checkPassword := func(password string) error {
		data, _ := field(bed.cluster.Get(t, "v1", "Secret", "shop", "db"), "data").(map[string]any)
		if got, _ := data["PASSWORD"].(string); got != base64.StdEncoding.EncodeToString([]byte(password)) {
			return fmt.Errorf("the Secret does not have the new password")
		}
		return nil
	}
	apply := func() {
		t.Helper()
		if _, err := tf.tryRun("apply", "-auto-approve", "-no-color"); err != nil {
			t.Fatalf("%v\nstatus of Flux: %s", err, agent.describeStatus(t, "flotilla-cluster-type", "flotilla-cluster"))
		}
		if err := tf.checkEmptyPlan(); err != nil {
			t.Error(err)
		}
	}

	encrypt(passwords[0], firstRecipient)
	setVariables(`["db.yaml"]`, "sops-age")
	bed.step(t, "flux", "a file encrypted by sops becomes a decrypted Secret", func() {
		applyDone := make(chan error)
		go func() {
			_, err := tf.tryRun("apply", "-auto-approve", "-no-color")
			applyDone <- err
		}()
		bed.waitWhileApplying(t, applyDone, func() bool {
			return bed.cluster.Get(t, "apiextensions.k8s.io/v1", "CustomResourceDefinition", "", rootDefinition["flux"]) != nil &&
				bed.cluster.Get(t, "kustomize.toolkit.fluxcd.io/v1", "Kustomization", "flux-system", "flotilla-cluster") != nil
		})
		agent.start(t)
		if err := <-applyDone; err != nil {
			t.Fatalf("%v\nstatus of Flux: %s", err, agent.describeStatus(t, "flotilla-cluster-type", "flotilla-cluster"))
		}
		if err := joinErrors(checkPassword(passwords[0]), tf.checkEmptyPlan()); err != nil { // no polling: the apply waits
			t.Error(err)
		}
	})
	bed.step(t, "flux", "the agent gets other keys", func() {
		setVariables(`["db.yaml"]`, "sops-age-2")
		apply()
		live := bed.cluster.Get(t, "kustomize.toolkit.fluxcd.io/v1", "Kustomization", "flux-system", "flotilla-cluster-type")
		if got := field(live, "spec", "decryption", "secretRef", "name"); got != "sops-age-2" {
			t.Errorf("the Secret with the keys is %v, want sops-age-2", got)
		}
	})
	bed.step(t, "flux", "a file changed and encrypted for another key becomes a Secret", func() {
		encrypt(passwords[1], secondRecipient)
		if plan := tf.run("plan", "-no-color"); !strings.Contains(plan, "encrypted-db.yaml") || strings.Contains(plan, "ENC[") {
			t.Errorf("the plan has encrypted values, or lacks encrypted-db.yaml:\n%s", plan)
		}
		apply()
		eventually(t, func() error { return checkPassword(passwords[1]) })
	})
	// Only the cluster decrypts.
	for _, name := range []string{"terraform.tfstate", "terraform.tfstate.backup"} {
		for _, password := range passwords {
			if strings.Contains(tf.readFile(name), password) {
				t.Errorf("%s has a password", name)
			}
		}
	}
	bed.step(t, "flux", "the Secret of a removed file is deleted", func() {
		setVariables(`[]`, "sops-age-2")
		apply()
		eventually(t, func() error {
			if bed.cluster.Get(t, "v1", "Secret", "shop", "db") != nil {
				return fmt.Errorf("the Secret still exists")
			}
			return checkConfigMap(t, bed.cluster, "shop", "platform-config", "DB_USER", "shop")
		})
	})
}

func newAgeKey(t *testing.T) (key, recipient string) {
	t.Helper()
	key = runOutput(t, exec.CommandContext(t.Context(), programPath(t, "age-keygen")))
	command := exec.CommandContext(t.Context(), programPath(t, "age-keygen"), "-y")
	command.Stdin = strings.NewReader(key)
	return key, strings.TrimSpace(runOutput(t, command))
}

// sopsEncrypt encrypts a Secret with the command of the guide.
func sopsEncrypt(t *testing.T, recipient, secret string) string {
	t.Helper()
	plain := filepath.Join(t.TempDir(), "secret.yaml")
	if err := os.WriteFile(plain, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	return runOutput(
		t,
		exec.CommandContext(t.Context(), programPath(t, "sops"), "encrypt", "--age", recipient, "--encrypted-regex", "^(data|stringData)$",
			plain),
	)
}

func runOutput(t *testing.T, command *exec.Cmd) string {
	t.Helper()
	var stderr bytes.Buffer
	command.Stderr = &stderr
	printed, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", filepath.Base(command.Path), err, stderr.String())
	}
	return string(printed)
}
