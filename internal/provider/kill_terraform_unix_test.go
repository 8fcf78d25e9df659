//go:build unix

package provider_test

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/reliabilitytest"
)

// TestReliabilityPluginKilledUnderTerraform kills the plugin during an apply. Terraform reports it, its state stays valid, and
// the next apply converges.
func TestReliabilityPluginKilledUnderTerraform(t *testing.T) {
	t.Parallel()
	acceptancetest.Only(t)
	tool := allTools(t)["terraform"]
	if tool == "" {
		t.Skip("terraform is not on this machine")
	}
	for i, server := range []struct {
		name          string
		newRepository func(*testing.T) *killRepository
	}{
		{"local path", newMissingRepository},
		{"http, git's http-backend", func(t *testing.T) *killRepository {
			return newForeignBackendRepository(t, func(next http.Handler) http.Handler { return next })
		}},
	}[:reliabilitytest.Count(1, 2)] {
		t.Run(server.name, func(t *testing.T) {
			t.Parallel()
			kills := reliabilitytest.Count(1, 20)
			p := server.newRepository(t)
			defer p.finish()
			terraform := newTerraformFolder(t, tool)
			terraform.apply(p, 0)
			terraform.apply(p, 1) // measures the duration of an undisturbed apply
			var before, after, late int
			for run := 0; before+after < kills; run++ {
				fraction := 1.1 * (float64(run%kills) + rand.Float64()) / float64(kills)
				was, is, killed := terraform.applyAndKill(p, run+2, time.Duration(fraction*float64(terraform.length)))
				switch {
				case !killed:
					late++
				case is == was:
					before++
				default:
					after++
				}
			}
			reliabilitytest.Report(t, fmt.Sprintf("52-plugin-killed-under-terraform-%d", i),
				"`kill -9` of the plugin process while `terraform apply` runs", server.name, fmt.Sprint(before+after), fmt.Sprintf(
					"%d before and %d after the commit; Terraform said so, its state was valid, and the next apply converged; %d more had ended before",
					before, after, late))
		})
	}
}

// terraformFolder is a working folder of Terraform, whose provider reports its process id.
type terraformFolder struct {
	t          *testing.T
	tool       string
	folder     string
	processIDs *os.File
	starts     chan pluginStart

	plugins int           // number that an apply starts
	length  time.Duration // of an apply since the start of the last plugin
}

type pluginStart struct {
	id int // process id; 0 marks the end of a run
	at time.Time
}

func newTerraformFolder(t *testing.T, tool string) *terraformFolder {
	t.Helper()
	built, err := mirror()
	if err != nil {
		t.Fatal(err)
	}
	p := &terraformFolder{t: t, tool: tool, folder: t.TempDir(), starts: make(chan pluginStart)}
	ids, plugins := filepath.Join(p.folder, "ids"), filepath.Join(p.folder, "plugins")
	provider := filepath.Join(built, "registry.terraform.io", "flotilla", "flotilla", "0.0.1",
		runtime.GOOS+"_"+runtime.GOARCH, "terraform-provider-flotilla_v0.0.1")
	plugin := filepath.Join(plugins, "terraform-provider-flotilla")
	writeFile(t, plugin, fmt.Sprintf("#!/bin/sh\necho $$ >'%s'\nexec '%s' \"$@\"\n", ids, provider))
	if err := os.Chmod(plugin, 0o755); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(p.folder, "cli.tfrc"),
		fmt.Sprintf("provider_installation {\n  dev_overrides {\n    \"flotilla/flotilla\" = %q\n  }\n}\n", plugins))
	if err := syscall.Mkfifo(ids, 0o600); err != nil {
		t.Fatal(err)
	}
	if p.processIDs, err = os.OpenFile(ids, os.O_RDWR, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.processIDs.Close()
		for range p.starts { // until the reader closes it
		}
	})
	go func() {
		defer close(p.starts)
		for lines := bufio.NewScanner(p.processIDs); lines.Scan(); {
			id, _ := strconv.Atoi(lines.Text())
			p.starts <- pluginStart{id, time.Now()}
		}
	}()
	return p
}

// start runs Terraform. output is complete once ended has its error.
func (p *terraformFolder) start(output *bytes.Buffer, arguments ...string) (ended chan error) {
	p.t.Helper()
	command := exec.CommandContext(p.t.Context(), p.tool, arguments...)
	command.Dir = p.folder
	command.Env = append(os.Environ(), "TF_CLI_CONFIG_FILE="+filepath.Join(p.folder, "cli.tfrc"), "TF_IN_AUTOMATION=1", "CHECKPOINT_DISABLE=1")
	command.Stdout, command.Stderr = output, output
	if err := command.Start(); err != nil {
		p.t.Fatal(err)
	}
	ended = make(chan error, 1)
	go func() {
		ended <- command.Wait()
		_, _ = p.processIDs.WriteString("0\n")
	}()
	return ended
}

// run returns the plugins that Terraform started, and its output.
func (p *terraformFolder) run(arguments ...string) (plugins []pluginStart, printed string) {
	p.t.Helper()
	var output bytes.Buffer
	ended := p.start(&output, arguments...)
	for start := range p.starts {
		if start.id == 0 {
			break
		}
		plugins = append(plugins, start)
	}
	if err := <-ended; err != nil {
		p.t.Fatalf("terraform %s: %s\n%s", strings.Join(arguments, " "), err, output.String())
	}
	return plugins, output.String()
}

// plan plans a change to a value that is unique to the number.
func (p *terraformFolder) plan(repository *killRepository, number int) {
	p.t.Helper()
	writeFile(
		p.t,
		filepath.Join(p.folder, "main.tf"),
		requiredProviders+small{database: fmt.Sprintf("\"mysql://%d\"", number)}.config(repository.repository),
	)
	p.run("plan", "-input=false", "-out=plan.out")
}

// apply measures the duration of an undisturbed apply.
func (p *terraformFolder) apply(repository *killRepository, number int) {
	p.t.Helper()
	p.plan(repository, number)
	plugins, _ := p.run("apply", "-input=false", "plan.out")
	if p.plugins = len(plugins); p.plugins == 0 {
		p.t.Fatal("Terraform started no plugin")
	}
	p.length = time.Since(plugins[p.plugins-1].at)
}

// applyAndKill kills the plugins after a delay. It returns the commits of the branch before and after, and whether the kill
// came in time.
func (p *terraformFolder) applyAndKill(repository *killRepository, number int, delay time.Duration) (before, after string, killed bool) {
	p.t.Helper()
	p.plan(repository, number)
	before, _ = branchTip(p.t, repository.cloneAndCheck(), branch)
	var output bytes.Buffer
	ended := p.start(&output, "apply", "-input=false", "plan.out")
	var plugins []*os.Process
	for start := range p.starts {
		if start.id == 0 {
			break
		}
		plugin, err := os.FindProcess(start.id)
		if err != nil {
			p.t.Fatal(err)
		}
		if plugins = append(plugins, plugin); len(plugins) == p.plugins {
			time.Sleep(delay)
			for _, plugin := range plugins { // plugins for functions and resources; some have ended
				_ = plugin.Kill()
			}
		}
	}
	err := <-ended
	after, _ = branchTip(p.t, repository.cloneAndCheck(), branch)
	killed = err != nil
	if killed && !strings.Contains(output.String(), "lugin") {
		p.t.Errorf("Terraform does not report the end of the plugin:\n%s", output.String())
	}
	p.run("show", "-json")
	p.run("apply", "-input=false", "-auto-approve")
	p.run("plan", "-input=false", "-detailed-exitcode")
	directory := repository.cloneAndCheck()
	final, _ := branchTip(p.t, directory, branch)
	if after != before && after != final {
		p.t.Errorf("the branch was at %s after the kill, want %s as before or %s as in the end", after, before, final)
	}
	if !killed && after == before {
		p.t.Errorf("Terraform reported success without a commit:\n%s", output.String())
	}
	if commits := git(p.t, directory, "rev-list", "--count", before+".."+final); commits != "1" {
		p.t.Errorf("got %s commits, want one", commits)
	}
	return before, after, killed
}
