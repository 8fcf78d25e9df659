package provider_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/fleet/fleettest"
)

// BenchmarkTerraform plans and applies fleets through the real tool. How long the provider's calls take is
// reported apart, and what provider and tool had of processors, which hardly depends on how busy the machine is.
func BenchmarkTerraform(b *testing.B) {
	terraform := os.Getenv("TF_ACC_TERRAFORM_PATH")
	if terraform == "" {
		terraform, _ = exec.LookPath("terraform")
	}
	if terraform == "" {
		b.Skip("terraform is not on this machine")
	}
	// In a process of its own the provider logs only when it is told to.
	for _, variable := range []string{"TF_LOG_SDK", "TF_LOG_SDK_FRAMEWORK", "TF_LOG_SDK_PROTO", "TF_LOG_PROVIDER"} {
		b.Setenv(variable, "off")
	}
	for _, size := range []struct{ assignments, constraints int }{{1000, 0}, {20000, 0}, {20000, 50}} {
		name := fmt.Sprint(size.assignments)
		if size.constraints > 0 {
			name += fmt.Sprintf("-with-%d-constraints", size.constraints)
		}
		b.Run(name, func(b *testing.B) {
			server := newTimedServer(b)
			folder := b.TempDir()
			input := fleettest.Input(fleettest.Reference(size.assignments, 1))
			input["constraints"] = manyConstraints(size.constraints)
			text, err := fleet.CanonicalJSON(input)
			if err != nil {
				b.Fatal(err)
			}
			for name, content := range map[string]string{
				"fleet.yaml": text,
				"main.tf": requiredProviders + `
locals {
  fleet = provider::flotilla::fleet(yamldecode(file("fleet.yaml")))
}

data "flotilla_scheduling" "all" {
  fleet = local.fleet
}

resource "flotilla_assignment" "all" {
  name        = "all"
  fleet       = local.fleet
  gitops_repo = { url = "` + filepath.ToSlash(filepath.Join(folder, "gitops.git")) + `", branch = "main" }
}
`,
			} {
				if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
					b.Fatal(err)
				}
			}
			var tool time.Duration
			run := func(b *testing.B, arguments ...string) {
				b.Helper()
				command := exec.CommandContext(b.Context(), terraform, arguments...)
				command.Dir = folder
				command.Env = append(os.Environ(), "TF_REATTACH_PROVIDERS="+server.reattach, "TF_CLI_CONFIG_FILE="+os.DevNull, "CHECKPOINT_DISABLE=1")
				output, err := command.CombinedOutput()
				if err != nil {
					b.Fatalf("%s: %s", err, output[max(0, len(output)-4000):])
				}
				tool += command.ProcessState.UserTime() + command.ProcessState.SystemTime()
			}
			run(b, "init")
			for _, step := range []struct {
				name      string
				arguments []string
			}{
				{"plan-create", []string{"plan", "-out=plan.out"}},
				{"apply-create", []string{"apply", "plan.out"}},
				{"plan-no-op", []string{"plan", "-detailed-exitcode"}},
			} {
				b.Run(step.name, func(b *testing.B) {
					if step.name == "apply-create" && b.N > 1 {
						b.Skip("a plan is applied once: run with -benchtime 1x")
					}
					server.spent.Store(0)
					tool = 0
					before := fleettest.ProcessorTime()
					for b.Loop() {
						run(b, step.arguments...)
					}
					b.ReportMetric(time.Duration(server.spent.Load()).Seconds()/float64(b.N), "provider-s/op")
					b.ReportMetric((fleettest.ProcessorTime()-before).Seconds()/float64(b.N), "provider-processor-s/op")
					b.ReportMetric(tool.Seconds()/float64(b.N), "tool-processor-s/op")
					if state, err := os.Stat(filepath.Join(folder, "terraform.tfstate")); err == nil {
						b.ReportMetric(float64(state.Size())/(1<<20), "state-MiB")
					}
				})
			}
		})
	}
}

// manyConstraints are rules that the reference fleet keeps: a tenth of them are about rendered documents.
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

// timedServer serves the provider in this process and adds up how long its calls take.
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

func (s *timedServer) ValidateResourceConfig(ctx context.Context, req *tfprotov6.ValidateResourceConfigRequest) (*tfprotov6.ValidateResourceConfigResponse, error) {
	defer s.time(time.Now())
	return s.ProviderServer.ValidateResourceConfig(ctx, req)
}

func (s *timedServer) PlanResourceChange(ctx context.Context, req *tfprotov6.PlanResourceChangeRequest) (*tfprotov6.PlanResourceChangeResponse, error) {
	defer s.time(time.Now())
	return s.ProviderServer.PlanResourceChange(ctx, req)
}

func (s *timedServer) ApplyResourceChange(ctx context.Context, req *tfprotov6.ApplyResourceChangeRequest) (*tfprotov6.ApplyResourceChangeResponse, error) {
	defer s.time(time.Now())
	return s.ProviderServer.ApplyResourceChange(ctx, req)
}

func (s *timedServer) ReadResource(ctx context.Context, req *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	defer s.time(time.Now())
	return s.ProviderServer.ReadResource(ctx, req)
}

func (s *timedServer) UpgradeResourceState(ctx context.Context, req *tfprotov6.UpgradeResourceStateRequest) (*tfprotov6.UpgradeResourceStateResponse, error) {
	defer s.time(time.Now())
	return s.ProviderServer.UpgradeResourceState(ctx, req)
}
