//go:build unix

package provider_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/gittest"
)

// init runs one of the test processes if the binary has its name.
func init() {
	var run func() error
	switch filepath.Base(os.Args[0]) {
	case providerProcessName:
		gittest.GitServes = true
		run = runProviderProcess
	case "git":
		run = runWatchedGit
	default:
		return
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

type applyInput struct {
	Provider   json.RawMessage
	Assignment json.RawMessage
	State      []byte // MessagePack; empty for none
	Private    []byte // private state
}

// apply refreshes, plans and applies like Terraform. It calls begin before the apply.
func (w applyInput) apply(ctx context.Context, begin func()) (state, private []byte, err error) {
	const name = "flotilla_assignment"
	server, err := factories()["flotilla"]()
	if err != nil {
		return nil, nil, err
	}
	configured, err := server.ConfigureProvider(ctx, &tfprotov6.ConfigureProviderRequest{Config: &tfprotov6.DynamicValue{JSON: w.Provider}})
	if err != nil || failure(configured.Diagnostics) != nil {
		return nil, nil, cmp.Or(err, failure(configured.Diagnostics))
	}
	config, prior, kept := &tfprotov6.DynamicValue{JSON: w.Assignment}, &tfprotov6.DynamicValue{MsgPack: w.State}, w.Private
	if len(w.State) > 0 {
		read, err := server.ReadResource(ctx, &tfprotov6.ReadResourceRequest{TypeName: name, CurrentState: prior, Private: kept})
		if err != nil || failure(read.Diagnostics) != nil {
			return nil, nil, cmp.Or(err, failure(read.Diagnostics))
		}
		prior, kept = read.NewState, read.Private
	} else {
		prior.MsgPack = []byte{0xc0} // null
	}
	// The provider plans every computed attribute, so the proposed state needs none.
	proposedState, err := w.proposedState()
	if err != nil {
		return nil, nil, err
	}
	planned, err := server.PlanResourceChange(ctx, &tfprotov6.PlanResourceChangeRequest{
		TypeName: name, PriorState: prior, ProposedNewState: proposedState, Config: config, PriorPrivate: kept,
	})
	if err != nil || failure(planned.Diagnostics) != nil {
		return nil, nil, cmp.Or(err, failure(planned.Diagnostics))
	}
	begin()
	applied, err := server.ApplyResourceChange(ctx, &tfprotov6.ApplyResourceChangeRequest{
		TypeName: name, PriorState: prior, PlannedState: planned.PlannedState, Config: config, PlannedPrivate: planned.PlannedPrivate,
	})
	if err != nil || failure(applied.Diagnostics) != nil {
		return nil, nil, cmp.Or(err, failure(applied.Diagnostics))
	}
	return applied.NewState.MsgPack, applied.Private, nil
}

// proposedState omits the write-only fleet.
func (w applyInput) proposedState() (*tfprotov6.DynamicValue, error) {
	var attributes map[string]json.RawMessage
	if err := json.Unmarshal(w.Assignment, &attributes); err != nil {
		return nil, err
	}
	delete(attributes, "fleet")
	text, err := json.Marshal(attributes)
	return &tfprotov6.DynamicValue{JSON: text}, err
}

func failure(diagnostics []*tfprotov6.Diagnostic) error {
	var all []error
	for _, diagnostic := range diagnostics {
		if diagnostic.Severity == tfprotov6.DiagnosticSeverityError {
			all = append(all, errors.New(diagnostic.Summary+": "+diagnostic.Detail))
		}
	}
	return errors.Join(all...)
}

// A provider process reads its applyInput, prints ready, waits for input, applies, prints done, and ends with its input like a
// plugin.
const (
	providerProcessName = "doomed-provider"
	ready               = "ready"
	done                = "done"
)

func runProviderProcess() error {
	in := json.NewDecoder(os.Stdin)
	var w applyInput
	if err := in.Decode(&w); err != nil {
		return err
	}
	if folder := os.Getenv(watchFolder); folder != "" {
		if err := os.WriteFile(filepath.Join(folder, providerProcessID), []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
			return err
		}
	}
	printLine := func(line string) { _, _ = fmt.Fprintln(os.Stdout, line) }
	_, _, err := w.apply(context.Background(), func() {
		printLine(ready)
		var proceed bool
		_ = in.Decode(&proceed)
	})
	if err == nil {
		printLine(done)
		_, _ = io.Copy(io.Discard, os.Stdin)
	}
	return err
}

// providerProcess is a provider in a process of its own, so that a test can kill it.
type providerProcess struct {
	t           *testing.T
	command     *exec.Cmd
	in          io.WriteCloser
	out         *bufio.Scanner
	stderr      bytes.Buffer
	descendants *os.File // ends after the process and its children
	onApplied   func()   // called after the apply, before the process ends
}

// startProviderProcess returns once the process is ready to apply.
func startProviderProcess(t *testing.T, w applyInput, environment ...string) *providerProcess {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	d := &providerProcess{t: t, command: exec.CommandContext(t.Context(), self), onApplied: func() {}}
	d.command.Args = []string{providerProcessName}
	d.command.Env = append(os.Environ(), environment...)
	d.command.Stderr = &d.stderr
	reader, inherited, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	d.descendants, d.command.ExtraFiles = reader, []*os.File{inherited}
	if d.in, err = d.command.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := d.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	d.out = bufio.NewScanner(out)
	if err := d.command.Start(); err != nil {
		t.Fatal(err)
	}
	_ = inherited.Close()
	text, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.in.Write(text); err != nil {
		t.Fatal(err)
	}
	if !d.out.Scan() || d.out.Text() != ready {
		d.wait()
		t.Fatalf("the provider did not become ready to apply: %s", d.stderr.String())
	}
	return d
}

func (d *providerProcess) proceed() {
	d.t.Helper()
	if _, err := io.WriteString(d.in, "true\n"); err != nil {
		d.t.Fatal(err)
	}
}

func (d *providerProcess) kill() { _ = d.command.Process.Kill() }

// wait reports whether the apply succeeded.
func (d *providerProcess) wait() (applied bool) {
	if applied = d.out.Scan() && d.out.Text() == done; applied {
		d.onApplied()
	}
	_ = d.in.Close()
	err := d.command.Wait()
	if exit := new(exec.ExitError); errors.As(err, &exit) && exit.Exited() {
		d.t.Errorf("the provider failed before the kill: %s", d.stderr.String())
	}
	return applied
}

func (d *providerProcess) waitForChildren() {
	_, _ = io.Copy(io.Discard, d.descendants)
	_ = d.descendants.Close()
}

func measureUndisturbedApply(t *testing.T, w applyInput) time.Duration {
	t.Helper()
	d := startProviderProcess(t, w)
	start := time.Now()
	d.proceed()
	var took time.Duration
	d.onApplied = func() { took = time.Since(start) }
	if !d.wait() {
		t.Error("an undisturbed apply failed")
	}
	d.waitForChildren()
	return took
}
