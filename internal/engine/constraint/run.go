package constraint

import (
	"cmp"
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
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

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
		return result
	case r.cost.Load() > r.maxFleetCost:
		result.Error = fmt.Sprintf(
			"takes too long: over the whole fleet it costs more than %d, the most; let match select less, or look at less in one evaluation",
			r.maxFleetCost,
		)
		return result
	}
	result.Passed, result.Violated = r.counts[passed], r.counts[violated]
	result.Failed, result.Undecided = r.counts[failed], r.counts[undecided]
	result.Looked = result.Passed + result.Violated + result.Failed + result.Undecided
	result.Violations, result.WaitsFor = r.violations.values(), r.waits.values()
	return result
}
