package provider_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/garbage"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/fleettest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/gittest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/objectstest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/processtest"
)

// BenchmarkTerraform plans and applies fleets with the real tool. It also reports the time of the provider's calls, and the processor
// time of provider and tool, which hardly depends on other load.
func BenchmarkTerraform(b *testing.B) {
	for _, size := range []struct{ assignments, constraints int }{{1000, 0}, {20000, 0}, {20000, 50}} {
		name := fmt.Sprint(size.assignments)
		if size.constraints > 0 {
			name += fmt.Sprintf("-with-%d-constraints", size.constraints)
		}
		b.Run(name, func(b *testing.B) {
			input := fleettest.Input(fleettest.Reference(size.assignments, 1))
			input["constraints"] = manyConstraints(size.constraints)
			t := newTimedTerraform(b, input, `
locals {
  fleet = provider::flotilla::fleet(local.input)
}

data "flotilla_scheduling" "all" {
  fleet = local.fleet
}
`)
			t.steps(b)
		})
	}
}

var sizings = []int{1_000, 10_000, 100_000}

// BenchmarkSizing is BenchmarkTerraform without data sources. `make sizing` writes its figures into a guide.
func BenchmarkSizing(b *testing.B) {
	for _, assignments := range sizings {
		b.Run(strconv.Itoa(assignments), func(b *testing.B) {
			newTimedTerraform(b, fleettest.Input(fleettest.Reference(assignments, 1)), `
locals {
  fleet = provider::flotilla::fleet(local.input)
}
`).steps(b)
		})
	}
}

// BenchmarkTerraformWithFinalObjects plans and applies fleets with one chart for each workload: with pointers to charts, and with
// previews of final objects. The first plan starts with an empty cache, and the second with its content.
func BenchmarkTerraformWithFinalObjects(b *testing.B) {
	for _, size := range []int{1000, 20000} {
		for _, render := range []string{"pointers", "preview"} {
			b.Run(fmt.Sprintf("%d-%s", size, render), func(b *testing.B) {
				b.Setenv("FLOTILLA_CACHE_DIR", filepath.Join(b.TempDir(), "cache"))
				input := fleettest.Input(fleettest.Reference(size, 1))
				addCharts(b, input, render)
				t := newTimedTerraform(b, input, `
data "flotilla_artifacts" "all" {
  workloads   = local.input.workloads
  environment = local.input.environment
}

locals {
  fleet = provider::flotilla::fleet(merge(local.input, { artifacts = data.flotilla_artifacts.all.artifacts }))
}
`)
				t.step(b, "plan-create-cold", "plan", "-out=plan.out")
				t.step(b, "plan-create-warm", "plan", "-out=plan.out")
				t.step(b, "apply-create", "apply", "plan.out")
				t.step(b, "plan-no-op", "plan", "-detailed-exitcode")
			})
		}
	}
}

// addCharts gives each workload of a fleet a chart in a chart repository, with the attribute render of cluster types.
func addCharts(b *testing.B, input map[string]any, render string) {
	b.Helper()
	archives, index := map[string][]byte{}, "entries:\n"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(archives[r.URL.Path])
	}))
	b.Cleanup(server.Close)
	for _, clusterType := range input["cluster_types"].([]any) {
		clusterType.(map[string]any)["render"] = render
	}
	for _, one := range input["workloads"].([]any) {
		workload := one.(map[string]any)
		name := workload["name"].(string)
		archive := chartArchive(b, name, objectstest.App(b, name, ""))
		archives["/"+name+".tgz"] = archive
		index += fmt.Sprintf("  %s:\n    - {version: 1.2.3, digest: %x, urls: [%[1]s.tgz]}\n", name, sha256.Sum256(archive))
		for _, target := range workload["deployment_targets"].(map[string]any) {
			target.(map[string]any)["manifests"] = map[string]any{"storage": "helm", "repo": server.URL, "chart": name, "version": "1.2.3"}
			target.(map[string]any)["config_as"] = []any{"values"}
		}
	}
	archives["/index.yaml"] = []byte(index)
}

type timedTerraform struct {
	program, folder string
	server          *timedServer
	tool            time.Duration // processor time
	toolPeak        int           // KiB
}

// newTimedTerraform writes a configuration with one assignment. The text further defines local.fleet by local.input.
func newTimedTerraform(b *testing.B, input map[string]any, further string) *timedTerraform {
	b.Helper()
	t := &timedTerraform{program: os.Getenv("TF_ACC_TERRAFORM_PATH"), folder: b.TempDir()}
	if t.program == "" {
		t.program, _ = exec.LookPath("terraform")
	}
	if t.program == "" {
		b.Skip("needs terraform, which is not on PATH")
	}
	// A provider in its own process logs only on demand.
	for _, variable := range []string{"TF_LOG_SDK", "TF_LOG_SDK_FRAMEWORK", "TF_LOG_SDK_PROTO", "TF_LOG_PROVIDER"} {
		b.Setenv(variable, "off")
	}
	garbage.Bound() // as in the provider's own process
	debug.SetMemoryLimit(math.MaxInt64)
	// A Git server in this process would count as the provider.
	before := gittest.GitServes
	b.Cleanup(func() { gittest.GitServes = before })
	gittest.GitServes = true
	t.server = newTimedServer(b)
	text, err := fleet.CanonicalJSON(input)
	if err != nil {
		b.Fatal(err)
	}
	for name, content := range map[string]string{
		"fleet.yaml": text,
		"main.tf": requiredProviders + `
locals {
  input = yamldecode(file("fleet.yaml"))
}
` + further + `
resource "flotilla_assignment" "all" {
  name        = "all"
  fleet       = local.fleet
  gitops_repo = { url = "` + filepath.ToSlash(filepath.Join(t.folder, "gitops.git")) + `", branch = "main" }
}
`,
	} {
		if err := os.WriteFile(filepath.Join(t.folder, name), []byte(content), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	t.run(b, "init")
	return t
}

func (t *timedTerraform) run(b *testing.B, arguments ...string) {
	b.Helper()
	command := exec.CommandContext(b.Context(), t.program, arguments...)
	command.Dir = t.folder
	command.Env = append(os.Environ(), "TF_REATTACH_PROVIDERS="+t.server.reattach, "TF_CLI_CONFIG_FILE="+os.DevNull, "CHECKPOINT_DISABLE=1")
	output, err := command.CombinedOutput()
	if err != nil {
		b.Fatalf("%s: %s", err, output[max(0, len(output)-4000):])
	}
	t.tool += command.ProcessState.UserTime() + command.ProcessState.SystemTime()
	t.toolPeak = max(t.toolPeak, processtest.PeakOf(command.ProcessState))
}

func (t *timedTerraform) steps(b *testing.B) {
	b.Helper()
	t.step(b, "plan-create", "plan", "-out=plan.out")
	t.step(b, "apply-create", "apply", "plan.out")
	t.step(b, "plan-no-op", "plan", "-detailed-exitcode")
}

// step benchmarks one command. Later steps use the files of earlier ones.
func (t *timedTerraform) step(b *testing.B, name string, arguments ...string) {
	b.Helper()
	b.Run(name, func(b *testing.B) {
		if (arguments[0] == "apply" || strings.HasSuffix(name, "-cold")) && b.N > 1 {
			b.Skip("this step runs once: set -benchtime 1x")
		}
		t.server.spent.Store(0)
		t.tool, t.toolPeak = 0, 0
		debug.FreeOSMemory()
		processtest.ForgetPeakMemory()
		before, workers := fleettest.ProcessorTime(), processtest.Children()
		for b.Loop() {
			t.run(b, arguments...)
		}
		after := processtest.Children()
		b.ReportMetric(time.Duration(t.server.spent.Load()).Seconds()/float64(b.N), "provider-s/op")
		b.ReportMetric((fleettest.ProcessorTime()-before+after.Processors-workers.Processors).Seconds()/float64(b.N), "provider-processor-s/op")
		b.ReportMetric(t.tool.Seconds()/float64(b.N), "tool-processor-s/op")
		processtest.ReportPeakMemory(b)
		if t.toolPeak > 0 {
			b.ReportMetric(float64(t.toolPeak)/1024, "tool-peak-MiB")
		}
		if after.Peak > workers.Peak {
			b.ReportMetric(float64(after.Peak-workers.Peak)/1024, "workers-peak-MiB")
		}
		if state, err := os.Stat(filepath.Join(t.folder, "terraform.tfstate")); err == nil {
			b.ReportMetric(float64(state.Size())/(1<<20), "state-MiB")
		}
	})
}

// manyConstraints returns rules that the reference fleet satisfies. A tenth of them check rendered documents.
func manyConstraints(number int) []any {
	expressions := []string{
		"host.name != 'nowhere-%d'",
		"target.name != 'nothing-%d' && target.manifests.repo != ''",
		"size(workspace.name) > 0 && workspace.name != 'nobody-%d'",
		"assignment.namespace.matches('^[a-z0-9-]{1,63}$') && assignment.key != '%d'",
		"config.all(key, key != 'SECRET_%d')",
		"host.labels.all(key, host.labels[key] != 'no-%d') && target.namespace != 'default'",
		"size(assignment.policies) > 0 && host.cluster_type != 'none-%d'",
		"!target.manifests.tag.startsWith('latest-%d')",
		"environment != 'nowhere-%d'",
		"object.kind != 'Secret%d' && has(object.metadata)",
	}
	rules := make([]any, number)
	for i := range rules {
		rules[i] = map[string]any{"name": fmt.Sprintf("rule-%d", i), "expression": fmt.Sprintf(expressions[i%len(expressions)], i)}
	}
	return rules
}

// timedServer serves the provider in this process and sums the durations of its calls.
type timedServer struct {
	tfprotov6.ProviderServer
	spent    atomic.Int64
	reattach string
}

func newTimedServer(b *testing.B) *timedServer {
	b.Helper()
	inner, err := factories()["flotilla"]()
	if err != nil {
		b.Fatal(err)
	}
	server := &timedServer{ProviderServer: inner}
	ctx, stop := context.WithCancel(context.Background())
	reattach, closed := make(chan *plugin.ReattachConfig), make(chan struct{})
	go func() {
		_ = tf6server.Serve("registry.terraform.io/flotilla/flotilla", func() tfprotov6.ProviderServer { return server },
			tf6server.WithDebug(ctx, reattach, closed),
			tf6server.WithGoPluginLogger(hclog.New(&hclog.LoggerOptions{Output: io.Discard})))
	}()
	config := <-reattach
	b.Cleanup(func() {
		stop()
		<-closed
	})
	text, err := json.Marshal(map[string]any{"registry.terraform.io/flotilla/flotilla": map[string]any{
		"Protocol": string(config.Protocol), "ProtocolVersion": 6, "Pid": config.Pid, "Test": true,
		"Addr": map[string]any{"Network": config.Addr.Network(), "String": config.Addr.String()},
	}})
	if err != nil {
		b.Fatal(err)
	}
	server.reattach = string(text)
	return server
}

func (s *timedServer) time(start time.Time) { s.spent.Add(int64(time.Since(start))) }

func (s *timedServer) ReadDataSource(ctx context.Context, req *tfprotov6.ReadDataSourceRequest) (*tfprotov6.ReadDataSourceResponse, error) {
	defer s.time(time.Now())
	return s.ProviderServer.ReadDataSource(ctx, req)
}

func (s *timedServer) CallFunction(ctx context.Context, req *tfprotov6.CallFunctionRequest) (*tfprotov6.CallFunctionResponse, error) {
	defer s.time(time.Now())
	return s.ProviderServer.CallFunction(ctx, req)
}

func (s *timedServer) ValidateResourceConfig(
	ctx context.Context,
	req *tfprotov6.ValidateResourceConfigRequest,
) (*tfprotov6.ValidateResourceConfigResponse, error) {
	defer s.time(time.Now())
	return s.ProviderServer.ValidateResourceConfig(ctx, req)
}

func (s *timedServer) PlanResourceChange(
	ctx context.Context,
	req *tfprotov6.PlanResourceChangeRequest,
) (*tfprotov6.PlanResourceChangeResponse, error) {
	defer s.time(time.Now())
	return s.ProviderServer.PlanResourceChange(ctx, req)
}

func (s *timedServer) ApplyResourceChange(
	ctx context.Context,
	req *tfprotov6.ApplyResourceChangeRequest,
) (*tfprotov6.ApplyResourceChangeResponse, error) {
	defer s.time(time.Now())
	return s.ProviderServer.ApplyResourceChange(ctx, req)
}

func (s *timedServer) ReadResource(ctx context.Context, req *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	defer s.time(time.Now())
	return s.ProviderServer.ReadResource(ctx, req)
}

func (s *timedServer) UpgradeResourceState(
	ctx context.Context,
	req *tfprotov6.UpgradeResourceStateRequest,
) (*tfprotov6.UpgradeResourceStateResponse, error) {
	defer s.time(time.Now())
	return s.ProviderServer.UpgradeResourceState(ctx, req)
}
