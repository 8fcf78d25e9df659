package providertest_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// recorder records the requests to a provider.
type recorder struct {
	tfprotov6.ProviderServer
	mu    *sync.Mutex
	calls *[]string
	typ   tftypes.Type
}

// typeNames matches the types in the text of a value, which make it long.
var typeNames = regexp.MustCompile(`tftypes\.(Object|Map|List|Set|Tuple)(\[[^<]*\])?`)

func (r recorder) record(call string, values map[string]*tfprotov6.DynamicValue, private []byte) {
	line := call
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for name := range values {
			if !yield(name) {
				return
			}
		}
	}) {
		value, err := values[name].Unmarshal(r.typ)
		if err != nil {
			panic(err)
		}
		line += fmt.Sprintf("\n  %s: %s", name, typeNames.ReplaceAllString(value.String(), ""))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	*r.calls = append(*r.calls, line+fmt.Sprintf("\n  private: %s", private))
}

func (r recorder) ReadResource(ctx context.Context, req *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	r.record("read", map[string]*tfprotov6.DynamicValue{"current": req.CurrentState}, req.Private)
	return r.ProviderServer.ReadResource(ctx, req)
}

func (r recorder) PlanResourceChange(
	ctx context.Context,
	req *tfprotov6.PlanResourceChangeRequest,
) (*tfprotov6.PlanResourceChangeResponse, error) {
	r.record(
		"plan",
		map[string]*tfprotov6.DynamicValue{"prior": req.PriorState, "config": req.Config, "proposed": req.ProposedNewState},
		req.PriorPrivate,
	)
	return r.ProviderServer.PlanResourceChange(ctx, req)
}

func (r recorder) ApplyResourceChange(
	ctx context.Context,
	req *tfprotov6.ApplyResourceChangeRequest,
) (*tfprotov6.ApplyResourceChangeResponse, error) {
	r.record(
		"apply",
		map[string]*tfprotov6.DynamicValue{"prior": req.PriorState, "config": req.Config, "planned": req.PlannedState},
		req.PlannedPrivate,
	)
	return r.ProviderServer.ApplyResourceChange(ctx, req)
}

func (r recorder) ImportResourceState(
	ctx context.Context,
	req *tfprotov6.ImportResourceStateRequest,
) (*tfprotov6.ImportResourceStateResponse, error) {
	r.record("import "+req.ID, nil, nil)
	return r.ProviderServer.ImportResourceState(ctx, req)
}

func (r recorder) ConfigureProvider(
	ctx context.Context,
	req *tfprotov6.ConfigureProviderRequest,
) (*tfprotov6.ConfigureProviderResponse, error) {
	r.mu.Lock()
	*r.calls = append(*r.calls, "configure")
	r.mu.Unlock()
	return r.ProviderServer.ConfigureProvider(ctx, req)
}

// toyWorkspace is a workspace of the stand-in or of Terraform, with toys and the recorded requests.
type toyWorkspace struct {
	providertest.Runner
	toyBox *toyBox
	calls  []string
}

func (s *toyWorkspace) start() (tfprotov6.ProviderServer, error) {
	server, err := s.toyBox.start()
	if err != nil {
		return nil, err
	}
	schema, err := server.GetProviderSchema(context.Background(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		return nil, err
	}
	return recorder{server, &s.toyBox.mu, &s.calls, schema.ResourceSchemas["toy_toy"].ValueType()}, nil
}

// step is one step of a user.
type step struct {
	label        string
	byHand       func(*toyBox) // change outside of Terraform
	attributes   map[string]any
	createsFirst bool // create_before_destroy
	isEmpty      bool // empty configuration
	planOnly     bool
	options      []providertest.Option
	loses        bool
	taints       bool
	imports      string
	isParallel   bool // Terraform handles several objects concurrently, in any order
}

// verbs is the scenario of `make test`: each verb once.
const verbs = "each verb"

// scenarios are the sequences of steps that the stand-in and Terraform must handle alike.
var scenarios = map[string][]step{
	verbs: {
		{label: "create", attributes: map[string]any{"name": "a", "size": "s"}},
		{label: "drift and update", byHand: func(w *toyBox) { w.toys["a"] = "by hand" }, attributes: map[string]any{"name": "a", "size": "m"}},
		{label: "replace", attributes: map[string]any{"name": "b", "size": providertest.Unknown{Then: "m"}}},
		{label: "lose", loses: true, attributes: map[string]any{"name": "b", "size": "m"}, planOnly: true},
		{label: "import", imports: "b", attributes: map[string]any{"name": "b", "size": "m"}},
		{label: "destroy", attributes: map[string]any{"name": "b", "size": "m"}, options: []providertest.Option{providertest.Destroy()}},
	},
	"life": {
		{label: "create", attributes: map[string]any{"name": "a", "size": "s", "secret": map[string]any{"x": "y", "list": []any{1, "two", true}}}},
		{label: "nothing", attributes: map[string]any{"name": "a", "size": "s", "secret": map[string]any{"x": "y"}}},
		{label: "update", attributes: map[string]any{"name": "a", "size": "m", "secret": map[string]any{"x": "z"}}},
		{label: "drift", byHand: func(w *toyBox) { w.toys["a"] = "by hand" }, attributes: map[string]any{"name": "a", "size": "m"}},
		{label: "gone", byHand: func(w *toyBox) { delete(w.toys, "a") }, attributes: map[string]any{"name": "a", "size": "m"}},
		{label: "destroy", attributes: map[string]any{"name": "a", "size": "m"}, options: []providertest.Option{providertest.Destroy()}},
	},
	"removal from the configuration": {
		{label: "create", attributes: map[string]any{"name": "a"}},
		{label: "remove", isEmpty: true},
	},
	"dynamic attributes": {
		{label: "create", attributes: map[string]any{
			"name": "a", "options": map[string]any{"a": 1, "b": []any{}, "c": nil},
		}},
		{label: "change inside", attributes: map[string]any{
			"name": "a", "options": map[string]any{"a": 1.5, "b": []any{"x"}},
		}},
		{label: "another type", attributes: map[string]any{"name": "a", "options": "text", "size": 5}},
		{label: "no options", attributes: map[string]any{"name": "a"}},
	},
	"replacement": {
		{label: "create", attributes: map[string]any{"name": "a", "size": "s"}},
		{label: "rename", attributes: map[string]any{"name": "b", "size": "m"}},
		{
			label:      "by request",
			attributes: map[string]any{"name": "b", "size": "m"},
			options:    []providertest.Option{providertest.Replace("toy_toy.one")},
		},
		{label: "tainted", taints: true, attributes: map[string]any{"name": "b", "size": "m"}},
	},
	"replacement, created first": {
		{label: "create", attributes: map[string]any{"name": "a", "size": "s"}, createsFirst: true},
		{label: "rename", attributes: map[string]any{"name": "b", "size": "s"}, createsFirst: true},
		{
			label:        "by request",
			attributes:   map[string]any{"name": "b", "size": "s"},
			createsFirst: true,
			options:      []providertest.Option{providertest.Replace("toy_toy.one")},
		},
		{label: "again", attributes: map[string]any{"name": "b", "size": "s"}, createsFirst: true},
	},
	"a deposed object": {
		{label: "create", attributes: map[string]any{"name": "a", "wrong": "fail delete"}, createsFirst: true},
		{label: "rename", attributes: map[string]any{"name": "b"}, createsFirst: true},
		{label: "again", attributes: map[string]any{"name": "b"}, createsFirst: true, isParallel: true},
		{label: "update", attributes: map[string]any{"name": "b", "size": "m"}, createsFirst: true, isParallel: true},
		{
			label:        "gone",
			byHand:       func(w *toyBox) { delete(w.toys, "a") },
			attributes:   map[string]any{"name": "b", "size": "m"},
			createsFirst: true,
			isParallel:   true,
		},
	},
	"a deposed object that the plan refuses to destroy": {
		{label: "create", attributes: map[string]any{"name": "a", "wrong": "refuse destroy"}, createsFirst: true},
		{label: "rename", attributes: map[string]any{"name": "b"}, createsFirst: true},
		{label: "again", attributes: map[string]any{"name": "b"}, createsFirst: true, isParallel: true},
		{label: "destroy", attributes: map[string]any{"name": "b"}, options: []providertest.Option{providertest.Destroy()}, isParallel: true},
	},
	"failures": {
		{label: "create", attributes: map[string]any{"name": "a", "wrong": "fail create"}},
		{label: "create half", attributes: map[string]any{"name": "a", "wrong": "half create"}},
		{label: "replace the half", attributes: map[string]any{"name": "a"}},
		{label: "update", attributes: map[string]any{"name": "a", "wrong": "fail update"}},
		{label: "rename, created first, fails", attributes: map[string]any{"name": "b", "wrong": "fail create"}, createsFirst: true},
		{label: "rename, half", attributes: map[string]any{"name": "c", "wrong": "half create"}, createsFirst: true},
		{label: "well again", attributes: map[string]any{"name": "c", "wrong": "fail delete"}, createsFirst: true, isParallel: true},
		{label: "delete", isEmpty: true, isParallel: true},
		{label: "rename, not destroyed", attributes: map[string]any{"name": "d"}},
		{label: "refuse", attributes: map[string]any{"name": "c", "wrong": "refuse destroy"}},
		{
			label:      "destroy",
			attributes: map[string]any{"name": "c", "wrong": "refuse destroy"},
			options:    []providertest.Option{providertest.Destroy()},
		},
	},
	"bugs": {
		{label: "plan size", attributes: map[string]any{"name": "a", "size": "s", "wrong": "plan size"}},
		{label: "plan differs", attributes: map[string]any{"name": "a", "wrong": "plan differs"}},
		{label: "apply size", attributes: map[string]any{"name": "a", "size": "s", "wrong": "apply size"}},
		{label: "unknown serial", attributes: map[string]any{"name": "b", "wrong": "unknown serial"}},
		{label: "plan secret", attributes: map[string]any{"name": "c", "secret": "x", "wrong": "plan secret"}},
	},
	"unknown values": {
		{label: "plan", planOnly: true, attributes: map[string]any{"name": "a", "size": providertest.Unknown{Then: "s"}}},
		{label: "create", attributes: map[string]any{
			"name": "a", "size": providertest.Unknown{Then: "s"}, "options": map[string]any{"in": providertest.Unknown{Then: true}},
			"secret": providertest.Call{Function: "wrap", Arguments: []any{providertest.Unknown{Then: "later"}}},
		}},
		{label: "known", attributes: map[string]any{"name": "a", "size": "s", "options": map[string]any{"in": true}}},
		{label: "an update that changes nothing in the end", attributes: map[string]any{
			"name": "a", "size": providertest.Unknown{Then: "m"}, "options": map[string]any{"in": true},
		}},
		{label: "an unknown name", attributes: map[string]any{"name": providertest.Unknown{Then: "z"}}},
	},
	"states": {
		{label: "create", attributes: map[string]any{"name": "a", "size": "s"}},
		{label: "lose", loses: true, attributes: map[string]any{"name": "a", "size": "s"}, planOnly: true},
		{label: "import", imports: "a", attributes: map[string]any{"name": "a", "size": "s"}},
		{label: "import again", imports: "a", attributes: map[string]any{"name": "a", "size": "s"}},
		{label: "lose again", loses: true, attributes: map[string]any{"name": "a", "size": "s"}, planOnly: true},
		{
			label:      "import in the plan",
			attributes: map[string]any{"name": "a", "size": "t"},
			options:    []providertest.Option{providertest.ImportBlock("toy_toy.one", "a")},
		},
		{
			label:      "destroy",
			attributes: map[string]any{"name": "a"},
			options:    []providertest.Option{providertest.Destroy(), providertest.SkipRefresh()},
		},
	},
	"wrong configurations": {
		{label: "no name", attributes: map[string]any{}},
		{label: "an attribute that is not there", attributes: map[string]any{"name": "a", "sise": "s"}},
		{label: "a computed one", attributes: map[string]any{"name": "a", "id": "s"}},
		{label: "a wrong type", attributes: map[string]any{"name": "a", "size": []any{"s"}}},
	},
}

func (s *toyWorkspace) run(ctx context.Context, step step) (outcome []string) {
	address := "toy_toy.one"
	if step.byHand != nil {
		step.byHand(s.toyBox)
	}
	if step.loses {
		s.Lose(address)
	}
	if step.taints {
		s.Taint(address)
	}
	s.calls, s.toyBox.events = nil, nil
	configuration := toyConfiguration(step.attributes)
	if step.isEmpty {
		configuration.Resources = nil
	} else if step.createsFirst {
		configuration.Resources[address] = providertest.Resource{Attributes: step.attributes, CreateBeforeDestroy: true}
	}
	var plan *providertest.Plan
	var diags providertest.Diagnostics
	switch {
	case step.imports != "":
		diags = s.Import(ctx, configuration, address, step.imports)
	case step.planOnly:
		plan, diags = s.Plan(ctx, configuration, step.options...)
	default:
		plan, diags = s.Apply(ctx, configuration, step.options...)
	}
	if plan != nil {
		for _, change := range plan.Changes {
			if change.Action == "no-op" { // plans of a tool do not always list it
				continue
			}
			outcome = append(
				outcome,
				fmt.Sprintf("%s %s, deposed %t: %v -> %v", change.Action, change.Address, change.Deposed, change.Before, change.After),
			)
		}
	}
	for _, d := range diags {
		summary := d.Summary
		if step.imports != "" {
			summary = "Import failed"
		}
		outcome = append(outcome, fmt.Sprintf("diagnostic: %t %s", d.Error, summary))
	}
	state := s.Now()[address]
	if state.Current != nil {
		outcome = append(
			outcome,
			fmt.Sprintf("state: %v, tainted %t, private %s", s.Now().Values(address), state.Current.Tainted, state.Current.Private),
		)
	}
	outcome = append(outcome, fmt.Sprintf("deposed: %d", len(state.Deposed)))
	return append(outcome, s.calls...)
}

// The stand-in sends a provider the same requests as Terraform and OpenTofu, in the same order and with the same values, and
// keeps the same state. `make test` compares it with one of the tools, for each verb once.
func TestStandInMatchesTerraform(t *testing.T) {
	t.Parallel()
	if os.Getenv("TF_ACC") == "" {
		t.Skip("acceptance tests run with TF_ACC=1")
	}
	found := findTools()
	for name, tool := range found {
		for title, steps := range scenarios {
			if !acceptancetest.All() && (title != verbs || name == "tofu" && found["terraform"] != "") {
				continue
			}
			t.Run(name+"/"+title, func(t *testing.T) {
				t.Parallel()
				ctx := t.Context()
				original, simulated := &toyWorkspace{toyBox: newToyBox()}, &toyWorkspace{toyBox: newToyBox()}
				original.Runner = providertest.NewTerraform(t, tool, "flotilla/toy", original.start)
				standIn := providertest.New(simulated.start)
				standIn.RefreshesOrphans = name == "tofu"
				simulated.Runner = standIn
				for _, step := range steps {
					want, got := original.run(ctx, step), simulated.run(ctx, step)
					want, got = normalize(want, step.isParallel), normalize(got, step.isParallel)
					if !slices.Equal(got, want) {
						t.Fatalf("%s: the stand-in gives\n%s\n\nand %s gives\n%s", step.label, strings.Join(got, "\n"), name, strings.Join(want, "\n"))
					}
				}
			})
		}
	}
}

// normalize sorts lines whose order has no meaning, and removes differences between tools: the texts of errors, and whether an
// empty apply configures the provider.
func normalize(outcome []string, isParallel bool) []string {
	planned := 0
	for planned < len(outcome) && strings.Contains(outcome[planned], ", deposed ") {
		planned++
	}
	slices.Sort(outcome[:planned])
	for i, line := range outcome {
		line = strings.ReplaceAll(line, "Invalid provider response", "Provider produced invalid plan")
		outcome[i] = strings.ReplaceAll(line, "Extraneous JSON object property", "Unsupported argument")
	}
	if last := len(outcome) - 1; outcome[last] == "configure" {
		outcome = outcome[:last]
	}
	if isParallel {
		outcome = slices.DeleteFunc(outcome, func(line string) bool { return line == "configure" })
		slices.Sort(outcome)
	}
	return outcome
}

func findTools() map[string]string {
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
	return found
}
