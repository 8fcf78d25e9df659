package provider_test

import (
	"bytes"
	"encoding/json"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	tfjson "github.com/hashicorp/terraform-json"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// allTools returns Terraform and OpenTofu from the environment or PATH.
func allTools(t *testing.T) map[string]string {
	t.Helper()
	requireAcceptance(t)
	found := map[string]string{}
	for name, variable := range map[string]string{"terraform": "TF_ACC_TERRAFORM_PATH", "tofu": "FLOTILLA_TOFU"} {
		path := os.Getenv(variable)
		if path == "" {
			path, _ = exec.LookPath(name)
		}
		if path != "" {
			found[name] = path
		}
	}
	if found["tofu"] == found["terraform"] { // `make matrix` sets both variables to one tool
		delete(found, "tofu")
	}
	return found
}

// tools returns all tools. In `make lives` it returns one of them, chosen by the name of the test: half of the tests use Terraform, and
// half OpenTofu.
func tools(t *testing.T) map[string]string {
	t.Helper()
	found := allTools(t)
	if len(found) > 1 && acceptancetest.Either() {
		delete(found, []string{"terraform", "tofu"}[crc32.ChecksumIEEE([]byte(t.Name()))%2])
	}
	return found
}

// acceptanceTools returns the tools in `make acceptance` and `make lives`. Elsewhere it skips the rest of the test: the stand-in finds
// defects of the provider. TestHelloWorld and TestListingsApply use Terraform in each `make test`.
func acceptanceTools(t *testing.T) map[string]string {
	t.Helper()
	acceptancetest.Only(t)
	return tools(t)
}

// mirror builds a mirror of the provider for both tools. It is outside of the module, because Go does not cache results of tests that
// read new files in the module.
var mirror = sync.OnceValues(func() (folder string, err error) {
	if folder, err = os.MkdirTemp("", "flotilla-mirror-"); err != nil {
		return "", err
	}
	removeMirror = func() { os.RemoveAll(folder) }
	name := "terraform-provider-flotilla_v0.0.1"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	built := filepath.Join(folder, name)
	if output, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", built, "../..").CombinedOutput(); err != nil {
		return "", &exec.Error{Name: string(output), Err: err}
	}
	for _, host := range []string{"registry.terraform.io", "registry.opentofu.org"} {
		target := filepath.Join(folder, host, "flotilla", "flotilla", "0.0.1", runtime.GOOS+"_"+runtime.GOARCH, name)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return "", err
		}
		if err := os.Link(built, target); err != nil {
			return "", err
		}
	}
	settings := "provider_installation {\n  filesystem_mirror {\n    path = \"" + filepath.ToSlash(folder) + "\"\n  }\n}\n"
	return folder, os.WriteFile(filepath.Join(folder, "cli.tfrc"), []byte(settings), 0o600)
})

var removeMirror = func() {}

type workdir struct {
	t    *testing.T
	tool string
	path string
	// environment extends the environment of the test.
	environment []string
}

func newWorkdir(t *testing.T, tool string, configuration map[string]string) workdir {
	t.Helper()
	folder, err := mirror()
	if err != nil {
		t.Fatal(err)
	}
	return initWorkdir(t, tool, configuration, "TF_CLI_CONFIG_FILE="+filepath.Join(folder, "cli.tfrc"))
}

// newServedWorkdir is newWorkdir with the provider in this process, without a build.
func newServedWorkdir(t *testing.T, tool string, configuration map[string]string) workdir {
	t.Helper()
	return initWorkdir(t, tool, configuration, providertest.Serve(t, tool, "flotilla/flotilla", startProvider))
}

func initWorkdir(t *testing.T, tool string, configuration map[string]string, environment ...string) workdir {
	t.Helper()
	w := workdir{t: t, tool: tool, path: t.TempDir(), environment: environment}
	for name, content := range configuration {
		if slices.Contains([]string{".tf", ".yaml", ".json"}, filepath.Ext(name)) {
			writeFile(t, filepath.Join(w.path, name), content)
		}
	}
	w.run("init", "-input=false")
	return w
}

func (w workdir) try(arguments ...string) (stdout, stderr string, err error) {
	command := exec.CommandContext(w.t.Context(), w.tool, arguments...)
	command.Dir = w.path
	command.Env = append(append(os.Environ(), "TF_IN_AUTOMATION=1", "CHECKPOINT_DISABLE=1"), w.environment...)
	var out, problems bytes.Buffer
	command.Stdout, command.Stderr = &out, &problems
	err = command.Run()
	return out.String(), problems.String(), err
}

func (w workdir) run(arguments ...string) string {
	w.t.Helper()
	stdout, stderr, err := w.try(arguments...)
	if err != nil {
		w.t.Fatalf("%s: %s\n%s%s", strings.Join(arguments, " "), err, stdout, stderr)
	}
	return stdout
}

func (w workdir) plan(arguments ...string) *tfjson.Plan {
	w.t.Helper()
	w.run(append([]string{"plan", "-input=false", "-out=plan.out"}, arguments...)...)
	plan := &tfjson.Plan{}
	if err := json.Unmarshal([]byte(w.run("show", "-json", "plan.out")), plan); err != nil {
		w.t.Fatal(err)
	}
	return plan
}
