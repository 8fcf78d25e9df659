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

// recorder writes down what a provider is asked.
type recorder struct {
	tfprotov6.ProviderServer
	mu    *sync.Mutex
	calls *[]string
	typ   tftypes.Type
}

// typeNames are what makes the text of a value long.
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

// side is a world with toys, used through the stand-in or through Terraform.
type side struct {
	providertest.Runner
	world *world
	calls []string
}

func (s *side) start() (tfprotov6.ProviderServer, error) {
	server, err := s.world.start()
	if err != nil {
		return nil, err
	}
	schema, err := server.GetProviderSchema(context.Background(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		return nil, err
	}
	return recorder{server, &s.world.mu, &s.calls, schema.ResourceSchemas["toy_toy"].ValueType()}, nil
}

// move is one thing that a user does.
type move struct {
	does     string
	hand     func(*world) // what somebody does behind Terraform's back
	attempt  map[string]any
	first    bool // create_before_destroy
	none     bool // nothing is configured
	planOnly bool
	options  []providertest.Option
	loses    bool
	taints   bool
	imports  string
	parallel bool // whether Terraform does what it does with several objects at once
}

// verbs are each verb once: the scenario of `make test`.
const verbs = "each verb"

// scenarios are what the stand-in must do as Terraform does.
var scenarios = map[string][]move{
	verbs: {
		{does: "create", attempt: map[string]any{"name": "a", "size": "s"}},
		{does: "drift and update", hand: func(w *world) { w.toys["a"] = "by hand" }, attempt: map[string]any{"name": "a", "size": "m"}},
		{does: "replace", attempt: map[string]any{"name": "b", "size": providertest.Unknown{Then: "m"}}},
		{does: "lose", loses: true, attempt: map[string]any{"name": "b", "size": "m"}, planOnly: true},
		{does: "import", imports: "b", attempt: map[string]any{"name": "b", "size": "m"}},
		{does: "destroy", attempt: map[string]any{"name": "b", "size": "m"}, options: []providertest.Option{providertest.Destroy()}},
	},
	"life": {
		{does: "create", attempt: map[string]any{"name": "a", "size": "s", "secret": map[string]any{"x": "y", "list": []any{1, "two", true}}}},
		{does: "nothing", attempt: map[string]any{"name": "a", "size": "s", "secret": map[string]any{"x": "y"}}},
		{does: "update", attempt: map[string]any{"name": "a", "size": "m", "secret": map[string]any{"x": "z"}}},
		{does: "drift", hand: func(w *world) { w.toys["a"] = "by hand" }, attempt: map[string]any{"name": "a", "size": "m"}},
		{does: "gone", hand: func(w *world) { delete(w.toys, "a") }, attempt: map[string]any{"name": "a", "size": "m"}},
		{does: "destroy", attempt: map[string]any{"name": "a", "size": "m"}, options: []providertest.Option{providertest.Destroy()}},
	},
	"removal from the configuration": {
		{does: "create", attempt: map[string]any{"name": "a"}},
		{does: "remove", none: true},
	},
	"dynamic attributes": {
		{does: "create", attempt: map[string]any{
			"name": "a", "options": map[string]any{"a": 1, "b": []any{}, "c": nil},
		}},
		{does: "change inside", attempt: map[string]any{
			"name": "a", "options": map[string]any{"a": 1.5, "b": []any{"x"}},
		}},
		{does: "another type", attempt: map[string]any{"name": "a", "options": "text", "size": 5}},
		{does: "no options", attempt: map[string]any{"name": "a"}},
	},
	"replacement": {
		{does: "create", attempt: map[string]any{"name": "a", "size": "s"}},
		{does: "rename", attempt: map[string]any{"name": "b", "size": "m"}},
		{
			does:    "by request",
			attempt: map[string]any{"name": "b", "size": "m"},
			options: []providertest.Option{providertest.Replace("toy_toy.one")},
		},
		{does: "tainted", taints: true, attempt: map[string]any{"name": "b", "size": "m"}},
	},
	"replacement, created first": {
		{does: "create", attempt: map[string]any{"name": "a", "size": "s"}, first: true},
		{does: "rename", attempt: map[string]any{"name": "b", "size": "s"}, first: true},
		{
			does:    "by request",
			attempt: map[string]any{"name": "b", "size": "s"},
			first:   true,
			options: []providertest.Option{providertest.Replace("toy_toy.one")},
		},
		{does: "again", attempt: map[string]any{"name": "b", "size": "s"}, first: true},
	},
	"a deposed object": {
		{does: "create", attempt: map[string]any{"name": "a", "wrong": "fail delete"}, first: true},
		{does: "rename", attempt: map[string]any{"name": "b"}, first: true},
		{does: "again", attempt: map[string]any{"name": "b"}, first: true, parallel: true},
		{does: "update", attempt: map[string]any{"name": "b", "size": "m"}, first: true, parallel: true},
		{
			does:     "gone",
			hand:     func(w *world) { delete(w.toys, "a") },
			attempt:  map[string]any{"name": "b", "size": "m"},
			first:    true,
			parallel: true,
		},
	},
	"a deposed object that the plan refuses to destroy": {
		{does: "create", attempt: map[string]any{"name": "a", "wrong": "refuse destroy"}, first: true},
		{does: "rename", attempt: map[string]any{"name": "b"}, first: true},
		{does: "again", attempt: map[string]any{"name": "b"}, first: true, parallel: true},
		{does: "destroy", attempt: map[string]any{"name": "b"}, options: []providertest.Option{providertest.Destroy()}, parallel: true},
	},
	"failures": {
		{does: "create", attempt: map[string]any{"name": "a", "wrong": "fail create"}},
		{does: "create half", attempt: map[string]any{"name": "a", "wrong": "half create"}},
		{does: "replace the half", attempt: map[string]any{"name": "a"}},
		{does: "update", attempt: map[string]any{"name": "a", "wrong": "fail update"}},
		{does: "rename, created first, fails", attempt: map[string]any{"name": "b", "wrong": "fail create"}, first: true},
		{does: "rename, half", attempt: map[string]any{"name": "c", "wrong": "half create"}, first: true},
		{does: "well again", attempt: map[string]any{"name": "c", "wrong": "fail delete"}, first: true, parallel: true},
		{does: "delete", none: true, parallel: true},
		{does: "rename, not destroyed", attempt: map[string]any{"name": "d"}},
		{does: "refuse", attempt: map[string]any{"name": "c", "wrong": "refuse destroy"}},
		{
			does:    "destroy",
			attempt: map[string]any{"name": "c", "wrong": "refuse destroy"},
			options: []providertest.Option{providertest.Destroy()},
		},
	},
	"bugs": {
		{does: "plan size", attempt: map[string]any{"name": "a", "size": "s", "wrong": "plan size"}},
		{does: "plan differs", attempt: map[string]any{"name": "a", "wrong": "plan differs"}},
		{does: "apply size", attempt: map[string]any{"name": "a", "size": "s", "wrong": "apply size"}},
		{does: "unknown serial", attempt: map[string]any{"name": "b", "wrong": "unknown serial"}},
		{does: "plan secret", attempt: map[string]any{"name": "c", "secret": "x", "wrong": "plan secret"}},
	},
	"unknown values": {
		{does: "plan", planOnly: true, attempt: map[string]any{"name": "a", "size": providertest.Unknown{Then: "s"}}},
		{does: "create", attempt: map[string]any{
			"name": "a", "size": providertest.Unknown{Then: "s"}, "options": map[string]any{"in": providertest.Unknown{Then: true}},
			"secret": providertest.Call{Function: "wrap", Arguments: []any{providertest.Unknown{Then: "later"}}},
		}},
		{does: "known", attempt: map[string]any{"name": "a", "size": "s", "options": map[string]any{"in": true}}},
		{does: "an update that changes nothing in the end", attempt: map[string]any{
			"name": "a", "size": providertest.Unknown{Then: "m"}, "options": map[string]any{"in": true},
		}},
		{does: "an unknown name", attempt: map[string]any{"name": providertest.Unknown{Then: "z"}}},
	},
	"states": {
		{does: "create", attempt: map[string]any{"name": "a", "size": "s"}},
		{does: "lose", loses: true, attempt: map[string]any{"name": "a", "size": "s"}, planOnly: true},
		{does: "import", imports: "a", attempt: map[string]any{"name": "a", "size": "s"}},
		{does: "import again", imports: "a", attempt: map[string]any{"name": "a", "size": "s"}},
		{does: "lose again", loses: true, attempt: map[string]any{"name": "a", "size": "s"}, planOnly: true},
		{
			does:    "import in the plan",
			attempt: map[string]any{"name": "a", "size": "t"},
			options: []providertest.Option{providertest.ImportBlock("toy_toy.one", "a")},
		},
		{
			does:    "destroy",
			attempt: map[string]any{"name": "a"},
			options: []providertest.Option{providertest.Destroy(), providertest.SkipRefresh()},
		},
	},
	"wrong configurations": {
		{does: "no name", attempt: map[string]any{}},
		{does: "an attribute that is not there", attempt: map[string]any{"name": "a", "sise": "s"}},
		{does: "a computed one", attempt: map[string]any{"name": "a", "id": "s"}},
		{does: "a wrong type", attempt: map[string]any{"name": "a", "size": []any{"s"}}},
	},
}

func (s *side) make(ctx context.Context, m move) (outcome []string) {
	address := "toy_toy.one"
	if m.hand != nil {
		m.hand(s.world)
	}
	if m.loses {
		s.Lose(address)
	}
	if m.taints {
		s.Taint(address)
	}
	s.calls, s.world.events = nil, nil
	configuration := thing(m.attempt)
	if m.none {
		configuration.Resources = nil
	} else if m.first {
		configuration.Resources[address] = providertest.Resource{Attributes: m.attempt, CreateBeforeDestroy: true}
	}
	var plan *providertest.Plan
	var said providertest.Diagnostics
	switch {
	case m.imports != "":
		said = s.Import(ctx, configuration, address, m.imports)
	case m.planOnly:
		plan, said = s.Plan(ctx, configuration, m.options...)
	default:
		plan, said = s.Apply(ctx, configuration, m.options...)
	}
	if plan != nil {
		for _, change := range plan.Changes {
			if change.Action == "no-op" { // which the plan of a tool does not always list
				continue
			}
			outcome = append(
				outcome,
				fmt.Sprintf("%s %s, deposed %t: %v -> %v", change.Action, change.Address, change.Deposed, change.Before, change.After),
			)
		}
	}
	for _, d := range said {
		summary := d.Summary
		if m.imports != "" {
			summary = "Import failed"
		}
		outcome = append(outcome, fmt.Sprintf("said: %t %s", d.Error, summary))
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

// The stand-in asks a provider the same questions as Terraform and OpenTofu, in the same order and with the
// same values, and keeps the same state. `make test` asks one of them, for each verb once.
func TestDoesAsTerraformDoes(t *testing.T) {
	t.Parallel()
	if os.Getenv("TF_ACC") == "" {
		t.Skip("acceptance tests run with TF_ACC=1")
	}
	found := tools()
	for name, tool := range found {
		for title, moves := range scenarios {
			if !acceptancetest.All() && (title != verbs || name == "tofu" && found["terraform"] != "") {
				continue
			}
			t.Run(name+"/"+title, func(t *testing.T) {
				t.Parallel()
				ctx := t.Context()
				original, simulated := &side{world: newWorld()}, &side{world: newWorld()}
				original.Runner = providertest.NewTerraform(t, tool, "flotilla/toy", original.start)
				standIn := providertest.New(simulated.start)
				standIn.RefreshesOrphans = name == "tofu"
				simulated.Runner = standIn
				for _, move := range moves {
					want, got := original.make(ctx, move), simulated.make(ctx, move)
					want, got = normalized(want, move.parallel), normalized(got, move.parallel)
					if !slices.Equal(got, want) {
						t.Fatalf("%s: the stand-in\n%s\n\nand %s\n%s", move.does, strings.Join(got, "\n"), name, strings.Join(want, "\n"))
					}
				}
			})
		}
	}
}

// normalized puts into order what means nothing by its order, and leaves out what differs between tools: the
// words of errors, and whether an apply of nothing configures the provider.
func normalized(outcome []string, parallel bool) []string {
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
	if parallel {
		outcome = slices.DeleteFunc(outcome, func(line string) bool { return line == "configure" })
		slices.Sort(outcome)
	}
	return outcome
}

func tools() map[string]string {
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
