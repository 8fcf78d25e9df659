package providertest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"
)

// Runner is a workspace with the stand-in, or with Terraform itself.
type Runner interface {
	Plan(ctx context.Context, configuration Configuration, options ...Option) (*Plan, Diagnostics)
	ApplyPlan(ctx context.Context, plan *Plan) Diagnostics
	Apply(ctx context.Context, configuration Configuration, options ...Option) (*Plan, Diagnostics)
	Import(ctx context.Context, configuration Configuration, address, id string) Diagnostics
	Lose(addresses ...string)
	Taint(address string)
	Now() State
}

var (
	_ Runner = &Workspace{}
	_ Runner = &Terraform{}
)

// Now returns the state.
func (w *Workspace) Now() State { return w.State.Clone() }

// Terraform is a workspace with a real Terraform or OpenTofu. The provider runs in the test's process, to record its requests and
// compare them with the stand-in's.
type Terraform struct {
	tool, folder, source string
	environment          []string
	ready                bool
	plans                int // number of plans
}

// NewInstalled returns a workspace with a tool that installs the provider, by additional environment variables, and starts a
// process for each plan and apply.
func NewInstalled(t *testing.T, tool, source string, environment ...string) *Terraform {
	return &Terraform{
		tool: tool, folder: t.TempDir(), source: source,
		environment: append(append(os.Environ(), "TF_IN_AUTOMATION=1", "CHECKPOINT_DISABLE=1"), environment...),
	}
}

// NewTerraform serves a provider for a tool until the test ends. source is like "flotilla/flotilla".
func NewTerraform(t *testing.T, tool, source string, start Start) *Terraform {
	t.Helper()
	return &Terraform{
		tool: tool, folder: t.TempDir(), source: source,
		environment: append(os.Environ(), Serve(t, tool, source, start), "TF_IN_AUTOMATION=1", "CHECKPOINT_DISABLE=1"),
	}
}

// Serve serves a provider for a tool until the test ends. It returns the tool's variable "NAME=value".
func Serve(t *testing.T, tool, source string, start Start) string {
	t.Helper()
	server, err := start()
	if err != nil {
		t.Fatal(err)
	}
	host := "registry.terraform.io"
	if strings.Contains(filepath.Base(tool), "tofu") {
		host = "registry.opentofu.org"
	}
	address := host + "/" + source
	reattach, closed, failed := make(chan *plugin.ReattachConfig), make(chan struct{}), make(chan error, 1)
	go func() {
		failed <- tf6server.Serve(address, func() tfprotov6.ProviderServer { return server },
			tf6server.WithDebug(t.Context(), reattach, closed), tf6server.WithoutLogStderrOverride(),
			tf6server.WithGoPluginLogger(hclog.NewNullLogger()), tf6server.WithLoggingSink(t))
	}()
	select {
	case err := <-failed:
		t.Fatal(err)
		return ""
	case config := <-reattach:
		text, err := json.Marshal(map[string]any{address: map[string]any{
			"Protocol": config.Protocol, "ProtocolVersion": config.ProtocolVersion, "Pid": config.Pid, "Test": config.Test,
			"Addr": map[string]any{"Network": config.Addr.Network(), "String": config.Addr.String()},
		}})
		if err != nil {
			t.Fatal(err)
		}
		return "TF_REATTACH_PROVIDERS=" + string(text)
	}
}

// Plan refreshes the state and plans.
func (t *Terraform) Plan(ctx context.Context, configuration Configuration, choices ...Option) (*Plan, Diagnostics) {
	opts := newOptions(choices)
	if diags := t.configure(ctx, configuration, opts); diags != nil {
		return nil, diags
	}
	t.plans++
	file := fmt.Sprintf("plan-%d.out", t.plans)
	arguments := []string{"plan", "-json", "-input=false", "-detailed-exitcode", "-out=" + file}
	if opts.destroy {
		arguments = append(arguments, "-destroy")
	}
	if opts.skipRefresh {
		arguments = append(arguments, "-refresh=false")
	}
	if opts.refreshOnly {
		arguments = append(arguments, "-refresh-only")
	}
	for _, address := range opts.replace {
		arguments = append(arguments, "-replace="+address)
	}
	for _, address := range opts.targets {
		arguments = append(arguments, "-target="+address)
	}
	diags, code := t.runJSON(ctx, arguments...)
	if diags.Err() != nil {
		return nil, diags
	}
	plan := &Plan{}
	if code != 0 {
		output, err := t.run(ctx, "show", "-json", file)
		if err == nil {
			plan, err = parsePlan(output)
		}
		if err != nil {
			return nil, protocolError("", err)
		}
	}
	plan.ExitCode, plan.file = code, file
	return plan, diags
}

// ApplyPlan implements Runner.
func (t *Terraform) ApplyPlan(ctx context.Context, plan *Plan) Diagnostics {
	diags, _ := t.runJSON(ctx, "apply", "-json", "-input=false", plan.file)
	return diags
}

// Apply implements Runner.
func (t *Terraform) Apply(ctx context.Context, configuration Configuration, options ...Option) (*Plan, Diagnostics) {
	if opts := newOptions(options); opts.inOneCommand {
		diags := t.configure(ctx, configuration, opts)
		if diags == nil {
			diags, _ = t.runJSON(ctx, "apply", "-json", "-input=false", "-auto-approve")
		}
		return &Plan{}, diags
	}
	plan, diags := t.Plan(ctx, configuration, options...)
	if diags.Err() != nil {
		return nil, diags
	}
	return plan, append(diags, t.ApplyPlan(ctx, plan)...)
}

// Import is `terraform import`.
func (t *Terraform) Import(ctx context.Context, configuration Configuration, address, id string) Diagnostics {
	if diags := t.configure(ctx, configuration, options{}); diags != nil {
		return diags
	}
	if _, err := t.run(ctx, "import", "-input=false", "-no-color", address, id); err != nil {
		return Diagnostics{{Error: true, Address: address, Summary: "Import failed", Detail: err.Error()}}
	}
	return nil
}

// Lose implements Runner.
func (t *Terraform) Lose(addresses ...string) {
	_, _ = t.run(context.Background(), append([]string{"state", "rm"}, addresses...)...)
}

// Taint implements Runner.
func (t *Terraform) Taint(address string) { _, _ = t.run(context.Background(), "taint", address) }

// Now implements Runner.
func (t *Terraform) Now() State {
	file, err := os.ReadFile(filepath.Join(t.folder, "terraform.tfstate"))
	if os.IsNotExist(err) {
		return State{}
	}
	must(err)
	state, err := ParseState(file)
	must(err)
	for address := range state {
		if strings.HasPrefix(address, "terraform_data.") {
			delete(state, address)
		}
	}
	return state
}

func (t *Terraform) configure(ctx context.Context, configuration Configuration, opts options) Diagnostics {
	text, err := configuration.json(t.source, opts)
	if err == nil {
		err = os.WriteFile(filepath.Join(t.folder, "main.tf.json"), text, 0o600)
	}
	if err == nil && !t.ready {
		_, err = t.run(ctx, "init", "-input=false", "-no-color")
	}
	if err != nil {
		return protocolError("", err)
	}
	t.ready = true
	return nil
}

func (t *Terraform) run(ctx context.Context, arguments ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, t.tool, arguments...)
	command.Dir, command.Env = t.folder, t.environment
	var problems bytes.Buffer
	command.Stderr = &problems
	output, err := command.Output()
	if err != nil {
		err = fmt.Errorf("%s %s: %w: %s", t.tool, arguments[0], err, problems.Bytes())
	}
	return output, err
}

// runJSON runs the tool, and returns its diagnostics and the exit code of -detailed-exitcode.
func (t *Terraform) runJSON(ctx context.Context, arguments ...string) (diags Diagnostics, code int) {
	output, failed := t.run(ctx, arguments...)
	if exit := new(exec.ExitError); errors.As(failed, &exit) && exit.ExitCode() == 2 {
		failed, code = nil, 2
	}
	lines := bufio.NewScanner(bytes.NewReader(output))
	lines.Buffer(nil, 1<<26)
	for lines.Scan() {
		var line struct {
			Type       string
			Diagnostic struct{ Severity, Summary, Detail, Address string }
		}
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Type == "diagnostic" {
			d := line.Diagnostic
			diags = append(diags, Diagnostic{
				Error: d.Severity == "error", Core: strings.HasPrefix(d.Summary, "Provider produced ") || strings.HasPrefix(d.Summary, "Provider returned "),
				Address: d.Address, Summary: d.Summary, Detail: d.Detail,
			})
		}
	}
	if failed != nil && diags.Err() == nil {
		diags = append(diags, protocolError("", failed)...)
	}
	return diags, code
}

func parsePlan(text []byte) (*Plan, error) {
	var parsed struct {
		ResourceChanges []struct {
			Address, Deposed string
			Change           struct {
				Actions       []string
				Before, After any
				AfterUnknown  any `json:"after_unknown"`
			}
		} `json:"resource_changes"`
		ResourceDrift []struct{ Address string } `json:"resource_drift"`
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&parsed); err != nil {
		return nil, err
	}
	plan := &Plan{}
	for _, resource := range parsed.ResourceDrift {
		plan.Drifted = append(plan.Drifted, resource.Address)
	}
	for _, resource := range parsed.ResourceChanges {
		if strings.HasPrefix(resource.Address, "terraform_data.") {
			continue
		}
		change := &Change{Address: resource.Address, Action: Action(strings.Join(resource.Change.Actions, ", ")), Deposed: resource.Deposed != ""}
		change.Before, _ = resource.Change.Before.(map[string]any)
		change.After, _ = withUnknown(resource.Change.After, resource.Change.AfterUnknown).(map[string]any)
		plan.Changes = append(plan.Changes, change)
	}
	slices.SortFunc(plan.Changes, func(a, b *Change) int { return strings.Compare(a.Address, b.Address) })
	return plan, nil
}

// withUnknown merges a value with its unknown values, which Terraform's JSON has separately.
func withUnknown(value, unknown any) any {
	switch unknown := unknown.(type) {
	case bool:
		if unknown {
			return Unknown{}
		}
	case map[string]any:
		object, _ := value.(map[string]any)
		merged := map[string]any{}
		for _, name := range union(object, unknown) {
			merged[name] = withUnknown(object[name], unknown[name])
		}
		if value != nil {
			return merged
		}
	case []any:
		list, _ := value.([]any)
		merged := make([]any, max(len(list), len(unknown)))
		for i := range merged {
			var element, isUnknown any
			if i < len(list) {
				element = list[i]
			}
			if i < len(unknown) {
				isUnknown = unknown[i]
			}
			merged[i] = withUnknown(element, isUnknown)
		}
		if value != nil {
			return merged
		}
	}
	return value
}

// json writes a configuration for Terraform. A value that is unknown in the plan becomes an output of a resource.
func (c Configuration) json(source string, opts options) ([]byte, error) {
	_, name, _ := strings.Cut(source, "/")
	e := &encoder{provider: name, later: map[string]any{}, locals: map[string]any{}, data: map[string]map[string]any{}}
	resources := map[string]map[string]any{}
	for _, address := range names(c.Resources) {
		resource := c.Resources[address]
		block, _ := e.encode(resource.Attributes).(map[string]any)
		if block == nil {
			block = map[string]any{}
		}
		if resource.CreateBeforeDestroy {
			block["lifecycle"] = map[string]any{"create_before_destroy": true}
		}
		typeName, label, _ := strings.Cut(address, ".")
		if resources[typeName] == nil {
			resources[typeName] = map[string]any{}
		}
		resources[typeName][label] = block
	}
	root := map[string]any{
		"terraform": map[string]any{"required_providers": map[string]any{name: map[string]any{"source": source}}},
		"provider":  map[string]any{name: e.encode(c.Provider)},
	}
	if len(e.later) > 0 {
		resources["terraform_data"] = e.later
	}
	if len(resources) > 0 {
		root["resource"] = resources
	}
	if len(e.data) > 0 {
		root["data"] = e.data
	}
	if len(e.locals) > 0 {
		root["locals"] = e.locals
	}
	blocks := map[string][]any{}
	for _, address := range names(opts.imports) {
		blocks["import"] = append(blocks["import"], map[string]any{"to": address, "id": e.encode(opts.imports[address])})
	}
	for _, from := range names(opts.moved) {
		blocks["moved"] = append(blocks["moved"], map[string]any{"from": from, "to": opts.moved[from]})
	}
	for _, address := range opts.removed {
		blocks["removed"] = append(blocks["removed"], map[string]any{"from": address, "lifecycle": map[string]any{"destroy": false}})
	}
	for name, list := range blocks {
		root[name] = list
	}
	return json.MarshalIndent(root, "", "  ")
}

type encoder struct {
	provider      string
	later, locals map[string]any
	data          map[string]map[string]any
}

func (e *encoder) encode(value any) any {
	switch value := value.(type) {
	case string:
		return strings.NewReplacer("${", "$${", "%{", "%%{").Replace(value)
	case Unknown:
		name := "later" + strconv.Itoa(len(e.later))
		e.later[name] = nil // used
		e.later[name] = map[string]any{"input": e.encode(value.Then)}
		return "${terraform_data." + name + ".output}"
	case Call:
		arguments := make([]string, len(value.Arguments))
		for i, argument := range value.Arguments {
			name := "argument" + strconv.Itoa(len(e.locals))
			e.locals[name] = nil // used
			e.locals[name] = e.encode(argument)
			arguments[i] = "local." + name
		}
		return "${provider::" + e.provider + "::" + value.Function + "(" + strings.Join(arguments, ", ") + ")}"
	case Reading:
		if e.data[value.DataSource] == nil {
			e.data[value.DataSource] = map[string]any{}
		}
		label := "read" + strconv.Itoa(len(e.data[value.DataSource]))
		e.data[value.DataSource][label] = e.encode(value.Attributes)
		return "${data." + value.DataSource + "." + label + "." + value.Attribute + "}"
	case []any:
		list := make([]any, len(value))
		for i, element := range value {
			list[i] = e.encode(element)
		}
		return list
	case map[string]any:
		object := map[string]any{}
		for name, element := range value {
			object[name] = e.encode(element)
		}
		return object
	}
	return value
}
