package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/giteatest"
)

// requiredProviders begins every configuration.
const requiredProviders = `
terraform {
  required_providers {
    flotilla = {
      source = "flotilla/flotilla"
    }
  }
}
`

// policiesByLabel assigns deployment targets with the label on = "type" to all cluster types, and those labelled on = "cluster"
// to all clusters.
const policiesByLabel = `[
      { name = "types", deployment_target_selector = { match_labels = { on = "type" } }, cluster_type_selector = {} },
      { name = "clusters", deployment_target_selector = { match_labels = { on = "cluster" } }, cluster_selector = {} },
    ]`

// fleetConfiguration reads the fleet from a file.
const fleetConfiguration = requiredProviders + `
locals {
  fleet = provider::flotilla::fleet(jsondecode(file("fleet.json")))
}
%s
`

const assignmentConfiguration = `
resource "flotilla_assignment" "dev" {
  name        = %q
  fleet       = local.fleet
  gitops_repo = { url = %q, branch = "dev" }
  protection  = { max_removed_percent = 100, allow_empty = true }
}
`

// terraform is a folder with a configuration, and Terraform with the provider built by `make e2e`.
type terraform struct {
	t      *testing.T
	tool   string
	folder string
	env    []string
}

func newTerraform(t *testing.T, user giteatest.User) *terraform {
	t.Helper()
	return newTerraformWith(t, user, "FLOTILLA_TERRAFORM")
}

// newTerraformWith uses the Terraform or OpenTofu of an environment variable.
func newTerraformWith(t *testing.T, user giteatest.User, variable string) *terraform {
	t.Helper()
	tf := &terraform{t: t, tool: os.Getenv(variable), folder: t.TempDir()}
	provider := os.Getenv("FLOTILLA_PROVIDER")
	if tf.tool == "" || provider == "" {
		t.Skip("needs Terraform and the provider's binary, which `make e2e` names")
	}
	cli := filepath.Join(tf.folder, "cli.tfrc")
	tf.writeFile("cli.tfrc", fmt.Sprintf("provider_installation {\n  dev_overrides {\n    \"flotilla/flotilla\" = %q\n  }\n}\n", provider))
	tf.env = append(os.Environ(), "TF_CLI_CONFIG_FILE="+cli, "TF_IN_AUTOMATION=1", "TF_INPUT=0", "CHECKPOINT_DISABLE=1",
		"FLOTILLA_GIT_USERNAME="+user.Name, "FLOTILLA_GIT_TOKEN="+user.Token)
	return tf
}

func (tf *terraform) writeFile(name, text string) {
	tf.t.Helper()
	if err := os.WriteFile(filepath.Join(tf.folder, name), []byte(text), 0o600); err != nil {
		tf.t.Fatal(err)
	}
}

// apply applies the configuration with this fleet.
func (tf *terraform) apply(fleet map[string]any) {
	tf.t.Helper()
	text, err := json.MarshalIndent(fleet, "", "  ")
	if err != nil {
		tf.t.Fatal(err)
	}
	tf.writeFile("fleet.json", string(text))
	tf.run("apply", "-auto-approve", "-no-color")
}

// run runs Terraform and returns its output.
func (tf *terraform) run(args ...string) string {
	tf.t.Helper()
	printed, err := tf.tryRun(args...)
	if err != nil {
		tf.t.Fatal(err)
	}
	return printed
}

// tryRun is run with an error instead of a failed test. It may be called in any goroutine.
func (tf *terraform) tryRun(args ...string) (string, error) {
	var printed, stderr bytes.Buffer
	cmd := exec.CommandContext(tf.t.Context(), tf.tool, args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = tf.folder, tf.env, &printed, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s%s", filepath.Base(tf.tool), strings.Join(args, " "), err, printed.String(), stderr.String())
	}
	return printed.String(), nil
}

// readOutputs decodes outputs, by name, and skips null.
func (tf *terraform) readOutputs(into map[string]any) {
	tf.t.Helper()
	var printed map[string]struct{ Value json.RawMessage }
	if err := json.Unmarshal([]byte(tf.run("output", "-json")), &printed); err != nil {
		tf.t.Fatal(err)
	}
	for name, value := range into {
		if printed[name].Value == nil {
			continue // null
		}
		if err := json.Unmarshal(printed[name].Value, value); err != nil {
			tf.t.Fatalf("output %s: %v", name, err)
		}
	}
}

func (tf *terraform) checkEmptyPlan() error {
	if _, err := tf.tryRun("plan", "-detailed-exitcode", "-no-color"); err != nil {
		return fmt.Errorf("the plan is not empty: %w", err)
	}
	return nil
}
