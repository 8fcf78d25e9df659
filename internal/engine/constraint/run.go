package constraint

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"github.com/google/cel-go/common/types"

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

type run struct {
	*rule
	number                     int
	hosts, targets, workspaces []bool // matched; nil matches all

	maxFleetCost uint64

	cost    atomic.Uint64
	tooLong atomic.Bool // an evaluation exceeded MaxCost
	found   findings
}

// findings counts the outcomes of a rule, and lists the first [MaxListed].
type findings struct {
	counts     [outcomes]int
	violations []positioned[RuleViolation]
	waits      []positioned[string]
}

type positioned[T any] struct {
	position
	value T
}

func (r *run) isTooCostly() bool { return r.tooLong.Load() || r.cost.Load() > r.maxFleetCost }

func (w *worker) evaluate(run *run, at position, subject func() Subject) {
	if run.isTooCostly() {
		return
	}
	outcome, text := run.evaluate(&w.variables)
	w.record(run, outcome, at, subject, func() string { return text })
}

// evaluate evaluates the rule once. The text is the error or the unknown input.
func (r *run) evaluate(v *variables) (outcome, string) {
	value, cost, err := r.expression.Evaluate(v)
	r.cost.Add(cost) // 0 for light expressions
	switch {
	case errors.Is(err, expression.ErrTooCostly):
		r.tooLong.Store(true)
		return failed, ""
	case err != nil:
		return failed, err.Error()
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
	found := &w.found[run.number]
	found.counts[o]++
	switch isListed := len(found.violations) < MaxListed; {
	case o == violated && isListed:
		violation := RuleViolation{Subject: subject(), Message: run.messageOf(&w.variables)}
		found.violations = append(found.violations, positioned[RuleViolation]{at, violation})
	case o == failed && isListed:
		found.violations = append(found.violations, positioned[RuleViolation]{at, RuleViolation{subject(), text(), true}})
	case o == undecided && len(found.waits) < MaxListed:
		found.waits = append(found.waits, positioned[string]{at, text()})
	}
}

// add adds the findings of a worker, whose positions ascend.
func (f *findings) add(more findings) {
	for outcome, count := range more.counts {
		f.counts[outcome] += count
	}
	f.violations, f.waits = append(f.violations, more.violations...), append(f.waits, more.waits...)
}

func firstListed[T any](all []positioned[T]) []T {
	slices.SortFunc(all, func(a, b positioned[T]) int {
		return cmp.Or(cmp.Compare(a.subject, b.subject), cmp.Compare(a.object, b.object))
	})
	values := make([]T, min(len(all), MaxListed))
	for i := range values {
		values[i] = all[i].value
	}
	return values
}

func (r *run) messageOf(v *variables) string {
	if r.message != nil {
		if value, _, err := r.message.Evaluate(v); err == nil {
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
	counts := r.found.counts
	result.Passed, result.Violated, result.Failed, result.Undecided = counts[passed], counts[violated], counts[failed], counts[undecided]
	result.Looked = result.Passed + result.Violated + result.Failed + result.Undecided
	result.Violations, result.WaitsFor = firstListed(r.found.violations), firstListed(r.found.waits)
	return result
}
