package wait_test

import (
	"context"
	"errors"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wait"
)

func TestAnAnswerIsAskedForOnceUnlessWhoAskedHasGone(t *testing.T) {
	t.Parallel()
	var all wait.Answers[int]
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := all.Get(gone, "one", func() (int, error) { return 0, gone.Err() }); !errors.Is(err, context.Canceled) {
		t.Errorf("who has gone gets %v", err)
	}
	over, stop := context.WithTimeoutCause(t.Context(), 0, errors.New("the operation took too long"))
	defer stop()
	<-over.Done()
	if _, err := all.Get(over, "one", func() (int, error) { return 0, over.Err() }); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a caller whose operation is over gets %v", err)
	}
	asking, answered := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(answered)
		if value, err := all.Get(t.Context(), "one", func() (int, error) { <-asking; return 1, nil }); value != 1 || err != nil {
			t.Errorf("the first caller gets %d, %v", value, err)
		}
	}()
	if value, err := all.Get(t.Context(), "other", func() (int, error) { return 2, nil }); value != 2 || err != nil {
		t.Errorf("another question waits, and gets %d, %v", value, err)
	}
	close(asking)
	<-answered
	if value, err := all.Get(t.Context(), "one", func() (int, error) { return 3, nil }); value != 1 || err != nil {
		t.Errorf("what was asked before gets %d, %v", value, err)
	}
	bound, end := context.WithTimeout(t.Context(), 0)
	defer end()
	<-bound.Done()
	for range 2 {
		if _, err := all.Get(bound, "slow", func() (int, error) { return 0, bound.Err() }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a bound on the answer is %v", err)
		}
		bound = t.Context() // nobody asks again
	}
	refused := errors.New("refused")
	for range 2 {
		if _, err := all.Get(t.Context(), "refused", func() (int, error) { defer func() { refused = nil }(); return 0, refused }); err == nil {
			t.Error("an error is not kept")
		}
	}
}
