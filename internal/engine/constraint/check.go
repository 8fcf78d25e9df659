package constraint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/interpreter"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/expression"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/hydrate"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/parallel"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Check evaluates all rules on all processors. The error is the context's.
func (p *Program) Check(ctx context.Context, subjects Subjects) (*Results, error) {
	if len(p.rules) == 0 {
		return &Results{}, ctx.Err()
	}
	c := &check{subjectValues: newValues(p.language, subjects), ctx: ctx, runs: make([]*run, len(p.rules))}
	for i, rule := range p.rules {
		c.runs[i] = &run{rule: rule, number: i, maxFleetCost: p.maxFleetCost}
		c.runs[i].chooseSubjects(c.subjectValues)
	}
	c.evaluateSets(OverFleet, 1, nil, func(*variables, int) Subject { return Subject{} })
	c.evaluateSets(OverWorkspaces, len(c.workspaces), func(r *run) []bool { return r.workspaces }, func(v *variables, i int) Subject {
		v.workspace = c.workspaces[i]
		return Subject{Workspace: subjects.Fleet.Workspaces[i].Name}
	})
	c.evaluateSets(OverHosts, len(c.hosts), func(r *run) []bool { return r.hosts }, func(v *variables, i int) Subject {
		v.host = c.hosts[i]
		return Subject{Host: subjects.Schedule.Hosts[i].Name}
	})
	c.evaluateSets(OverDeploymentTargets, len(c.targets), func(r *run) []bool { return r.targets }, func(v *variables, i int) Subject {
		v.target, v.workspace = c.targets[i], c.workspaceOf[i]
		target := subjects.Schedule.Targets[i]
		return Subject{DeploymentTarget: target.Name, Workspace: target.Workload.Workspace}
	})
	c.evaluateAssignments()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	results := &Results{Rules: make([]RuleResult, len(c.runs))}
	for i, run := range c.runs {
		results.Rules[i] = run.result()
	}
	return results, nil
}

type check struct {
	*subjectValues
	ctx  context.Context
	runs []*run
}

func (r *run) chooseSubjects(v *subjectValues) {
	match := &r.Match
	if match.ClusterTypeSelector != nil || match.ClusterSelector != nil {
		r.hosts = make([]bool, len(v.hosts))
		for i, host := range v.subjects.Schedule.Hosts {
			r.hosts[i] = (match.ClusterSelector == nil || host.Cluster != nil) && host.Meets(r.clusterType) && host.Meets(r.cluster)
		}
	}
	if match.Workspace != "" || match.WorkloadSelector != nil || match.DeploymentTargetSelector != nil {
		r.targets = make([]bool, len(v.targets))
		for i, target := range v.subjects.Schedule.Targets {
			r.targets[i] = (match.Workspace == "" || match.Workspace == target.Workload.Workspace) && target.Meets(r.workload, r.target)
		}
	}
	if match.Workspace != "" {
		r.workspaces = make([]bool, len(v.workspaces))
		for i := range v.subjects.Fleet.Workspaces {
			r.workspaces[i] = match.Workspace == v.subjects.Fleet.Workspaces[i].Name
		}
	}
}

// evaluateSets evaluates rules over anything but assignments and objects.
func (c *check) evaluateSets(over Over, count int, chosen func(*run) []bool, set func(*variables, int) Subject) {
	var runs []*run
	for _, run := range c.runs {
		if run.over == over {
			runs = append(runs, run)
		}
	}
	if len(runs) == 0 {
		return
	}
	c.withWorkers(count, func(w *worker, i int) {
		subject := set(&w.variables, i)
		for _, run := range runs {
			if chosen == nil || chosen(run) == nil || chosen(run)[i] {
				w.evaluate(run, position{i, 0}, func() Subject { return subject })
			}
		}
	})
}

type worker struct {
	variables variables
	counts    [][outcomes]int
}

func (c *check) withWorkers(count int, work func(*worker, int)) {
	var mu sync.Mutex
	var workers []*worker
	parallel.EachWith(count, func() func(int) {
		w := &worker{variables: variables{subjectValues: c.subjectValues}, counts: make([][outcomes]int, len(c.runs))}
		mu.Lock()
		workers = append(workers, w)
		mu.Unlock()
		return func(i int) {
			if c.ctx.Err() == nil {
				work(w, i)
			}
		}
	})
	for _, w := range workers {
		for i, counts := range w.counts {
			for outcome, count := range counts {
				c.runs[i].counts[outcome] += count
			}
		}
	}
}

func (c *check) evaluateAssignments() {
	var overAssignments, overObjects []*run
	var snapshots map[*hydrate.Snapshot]int32
	for _, run := range c.runs {
		switch run.over {
		case OverAssignments:
			overAssignments = append(overAssignments, run)
			if run.dependsOnConfigOnly() && c.subjects.Snapshots != nil {
				if snapshots == nil {
					snapshots = numberSnapshots(c.subjects.Snapshots)
				}
				run.shared = make([]shared, len(snapshots))
			}
		case OverObjects:
			overObjects = append(overObjects, run)
		}
	}
	if len(overAssignments)+len(overObjects) == 0 {
		return
	}
	c.withWorkers(len(c.hostOf), func(w *worker, i int) {
		w.variables.assign(i)
		subject := func() Subject { return c.subjectOf(i) }
		for _, run := range overAssignments {
			switch {
			case !run.matches(c.hostOf[i], c.targetOf[i]):
			case run.shared != nil:
				w.evaluateShared(run, &run.shared[snapshots[w.variables.snapshot]], position{i, 0}, subject)
			default:
				w.evaluate(run, position{i, 0}, subject)
			}
		}
		var matching []*run
		for _, run := range overObjects {
			if run.matches(c.hostOf[i], c.targetOf[i]) && !run.isTooCostly() {
				matching = append(matching, run)
			}
		}
		if len(matching) > 0 {
			c.evaluateObjects(w, i, matching)
		}
	})
}

func numberSnapshots(snapshots []*hydrate.Snapshot) map[*hydrate.Snapshot]int32 {
	numbers := map[*hydrate.Snapshot]int32{}
	for _, snapshot := range snapshots {
		if _, ok := numbers[snapshot]; !ok {
			numbers[snapshot] = int32(len(numbers))
		}
	}
	return numbers
}

func (r *run) matches(host, target int32) bool {
	return (r.hosts == nil || r.hosts[host]) && (r.targets == nil || r.targets[target])
}

// dependsOnConfigOnly reports whether equal values imply equal outcomes.
func (r *run) dependsOnConfigOnly() bool {
	for name := range r.names {
		if name != "config" && name != "secrets" && name != "environment" {
			return false
		}
	}
	return r.over == OverAssignments
}

func (c *check) subjectOf(i int) Subject {
	assignment := c.subjects.Schedule.Assignments[i]
	return Subject{
		Workspace: assignment.Target.Workload.Workspace, Host: assignment.Host.Name,
		DeploymentTarget: assignment.Target.Name, Assignment: assignment.Key(),
	}
}

func (c *check) evaluateObjects(w *worker, i int, runs []*run) {
	subject := func() Subject { return c.subjectOf(i) }
	var files []render.AssignmentFile
	var final []folderObject
	waits, err := "what is rendered", error(nil)
	if c.subjects.Files != nil {
		files, waits, err = c.subjects.Files(i)
	}
	mayPass := func(kind, text string) bool {
		return !slices.ContainsFunc(runs, func(run *run) bool { return run.mayBeAbout(kind, text) })
	}
	if c.subjects.Final != nil && waits == "" && err == nil {
		var rendered []objects.FinalObject
		if rendered, waits, err = c.subjects.Final(i); err == nil {
			final, err = readFinalObjects(rendered, mayPass)
		}
	}
	for _, run := range runs {
		switch {
		case err != nil:
			w.record(run, failed, position{i, 0}, subject, func() string { return "cannot be rendered: " + wording.OneLine(err.Error()) })
		case waits != "":
			w.record(run, undecided, position{i, 0}, subject, func() string { return waits })
		}
	}
	if err != nil || waits != "" {
		return
	}
	found, unreadable := readObjects(files, mayPass)
	found = append(found, final...)
	for _, run := range runs {
		ordinal := 0
		for k := range found {
			object := &found[k]
			if !run.isAbout(object) {
				continue
			}
			w.variables.object, w.variables.pods = object, nil
			w.evaluate(run, position{i, ordinal}, func() Subject {
				of := subject()
				of.File, of.Object, of.MadeBy = object.file, object.String(), string(object.madeBy)
				return of
			})
			ordinal++
		}
		if unreadable != "" {
			w.record(run, failed, position{i, ordinal}, subject, func() string { return fmt.Sprintf("%s cannot be read", unreadable) })
		}
	}
}

type outcome uint8

const (
	passed outcome = iota
	violated
	failed
	undecided
	outcomes
)

type position struct{ subject, object int }

func (p position) compare(other position) int {
	return cmp.Or(cmp.Compare(p.subject, other.subject), cmp.Compare(p.object, other.object))
}

type run struct {
	*rule
	number                     int
	hosts, targets, workspaces []bool   // matched; nil matches all
	shared                     []shared // by snapshot; nil if equal values may differ in outcome

	maxFleetCost uint64

	cost    atomic.Uint64
	tooLong atomic.Bool // an evaluation exceeded MaxCost
	counts  [outcomes]int

	violations listed[RuleViolation]
	waits      listed[string]
}

type shared struct {
	once    sync.Once
	outcome outcome
	text    string
}

func (r *run) isTooCostly() bool { return r.tooLong.Load() || r.cost.Load() > r.maxFleetCost }

func (w *worker) evaluate(run *run, at position, subject func() Subject) {
	if run.isTooCostly() {
		return
	}
	outcome, text := run.evaluate(&w.variables)
	w.record(run, outcome, at, subject, func() string { return text })
}

func (w *worker) evaluateShared(run *run, known *shared, at position, subject func() Subject) {
	if run.isTooCostly() {
		return
	}
	known.once.Do(func() { known.outcome, known.text = run.evaluate(&w.variables) })
	w.record(run, known.outcome, at, subject, func() string { return known.text })
}

// evaluate evaluates the rule once. The text is the error or the unknown input.
func (r *run) evaluate(v *variables) (outcome, string) {
	value, details, err := r.expression.program.Eval(v)
	if cost := details.ActualCost(); cost != nil { // light expressions are not counted
		r.cost.Add(*cost)
	}
	var cancelled interpreter.EvalCancelledError
	switch {
	case errors.As(err, &cancelled):
		r.tooLong.Store(true)
		return failed, ""
	case err != nil:
		return failed, expression.Failure(r.expression.ast, r.expression.source, err)
	}
	switch value := value.(type) {
	case types.Bool:
		if value {
			return passed, ""
		}
		return violated, ""
	case *types.Unknown:
		return undecided, waitsFor(value)
	}
	return failed, "cannot be evaluated: it gives no bool"
}

func (w *worker) record(run *run, o outcome, at position, subject func() Subject, text func() string) {
	w.counts[run.number][o]++
	switch o {
	case violated:
		run.violations.add(at, func() RuleViolation { return RuleViolation{Subject: subject(), Message: run.messageOf(&w.variables)} })
	case failed:
		run.violations.add(at, func() RuleViolation { return RuleViolation{Subject: subject(), Message: text(), Failed: true} })
	case undecided:
		run.waits.add(at, text)
	}
}

// listed keeps the [MaxListed] entries with the lowest positions, added concurrently in any order.
type listed[T any] struct {
	mu      sync.Mutex
	entries []orderedItem[T]
	last    *position // upper bound; nil is none
}

type orderedItem[T any] struct {
	at    position
	value T
}

func (l *listed[T]) add(at position, made func() T) {
	l.mu.Lock()
	wanted := l.last == nil || at.compare(*l.last) < 0
	l.mu.Unlock()
	if !wanted {
		return
	}
	value := made()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = append(l.entries, orderedItem[T]{at, value})
	if len(l.entries) >= 2*MaxListed {
		l.trim()
	}
}

func (l *listed[T]) trim() {
	slices.SortFunc(l.entries, func(a, b orderedItem[T]) int { return a.at.compare(b.at) })
	if len(l.entries) > MaxListed {
		clear(l.entries[MaxListed:])
		l.entries = l.entries[:MaxListed]
		last := l.entries[MaxListed-1].at
		l.last = &last
	}
}

func (l *listed[T]) values() []T {
	l.trim()
	values := make([]T, len(l.entries))
	for i, entry := range l.entries {
		values[i] = entry.value
	}
	return values
}

func (r *run) messageOf(v *variables) string {
	if r.message != nil {
		if value, _, err := r.message.program.Eval(v); err == nil {
			if text, ok := value.(types.String); ok {
				if message := strings.TrimSpace(string(text)); isShown(message) {
					return message
				}
			}
		}
	}
	if r.Message != "" {
		return strings.Join(strings.Fields(r.Message), " ")
	}
	return "failed expression: " + wording.OneLine(r.Expression)
}

func isShown(message string) bool {
	return message != "" && len(message) <= MaxMessage && utf8.ValidString(message) && !strings.ContainsFunc(message, func(c rune) bool {
		return unicode.IsControl(c) || unicode.In(c, unicode.Zl, unicode.Zp, unicode.Bidi_Control)
	})
}

func (r *run) result() RuleResult {
	result := RuleResult{Name: r.Name, Mode: cmp.Or(r.Mode, fleet.Enforce), Over: r.over}
	switch {
	case r.tooLong.Load():
		result.Error = fmt.Sprintf("takes too long: one evaluation costs more than %d, the most; look at less in one evaluation", MaxCost)
	case r.cost.Load() > r.maxFleetCost:
		result.Error = fmt.Sprintf(
			"takes too long: over the whole fleet it costs more than %d, the most; let match select less, or look at less in one evaluation",
			r.maxFleetCost,
		)
	default:
		result.Passed, result.Violated = r.counts[passed], r.counts[violated]
		result.Failed, result.Undecided = r.counts[failed], r.counts[undecided]
		result.Looked = result.Passed + result.Violated + result.Failed + result.Undecided
		result.Violations, result.WaitsFor = r.violations.values(), r.waits.values()
	}
	return result
}
