package budget_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/budget"
)

var errOver = errors.New("over")

func TestAllOperationsOfAProcessShareTheLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ledger := &budget.Ledger{}
		first, cancel := budget.With(t.Context(), ledger, 10*time.Second, errOver)
		defer cancel()
		a, b := budget.Begin(first, "a"), budget.Begin(first, "b") // simultaneous operations count once
		time.Sleep(2 * time.Second)
		a()
		time.Sleep(2 * time.Second)
		b()
		time.Sleep(time.Hour) // without an operation
		if first.Err() != nil {
			t.Fatal("the first operation has ended early")
		}
		second, cancel := budget.With(t.Context(), ledger, 10*time.Second, errOver)
		defer cancel()
		began := time.Now()
		end := budget.Begin(second, "c")
		<-second.Done()
		if took := time.Since(began); took != 6*time.Second || !errors.Is(context.Cause(second), errOver) {
			t.Errorf("after 4 seconds of the first, the second may take %s: %v", took, context.Cause(second))
		}
		end()
		third, cancel := budget.With(t.Context(), ledger, 10*time.Second, errOver)
		defer cancel()
		budget.Begin(third, "d")()
		if !errors.Is(context.Cause(third), errOver) {
			t.Error("the third operation goes on")
		}
		longer, cancel := budget.With(t.Context(), ledger, time.Minute, errOver)
		defer cancel()
		budget.Begin(longer, "d")()
		if longer.Err() != nil {
			t.Error("an operation with a longer limit ends")
		}
		if got, want := budget.Longest(longer), "c (6s), b (4s), a (2s), d (0s)"; got != want {
			t.Errorf("listed is %q, want %q", got, want)
		}
	})
}

func TestOnlyTheLongestAreListed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := budget.With(t.Context(), &budget.Ledger{}, time.Hour, errOver)
		defer cancel()
		for i := range 40 {
			end := budget.Begin(ctx, string(rune('a'+i)))
			time.Sleep(time.Duration(i) * time.Second)
			end()
		}
		if got, want := budget.Longest(ctx), "\u0088 (39s), \u0087 (38s), \u0086 (37s), \u0085 (36s), \u0084 (35s) and 35 more"; got != want {
			t.Errorf("listed is %q, want %q", got, want)
		}
	})
}

func TestWithoutALedgerNothingIsRecorded(t *testing.T) {
	t.Parallel()
	budget.Begin(t.Context(), "a")()
	if got := budget.Longest(t.Context()); got != "" {
		t.Errorf("listed is %q", got)
	}
}
