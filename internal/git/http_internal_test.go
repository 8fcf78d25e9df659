package git

import (
	"context"
	"errors"
	"net"
	"os"
	"testing"
	"time"
)

// late has a deadline that has passed, and does not know it yet.
type late struct{ context.Context }

func (late) Deadline() (time.Time, bool) { return time.Now().Add(-time.Millisecond), true }

func TestATimeoutIsTheContextsOwnWhenItsDeadlineHasPassed(t *testing.T) {
	t.Parallel()
	timeout := &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}
	if err := asSlowError(late{t.Context()}, timeout); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("after the deadline: %v", err)
	}
	if err := asSlowError(t.Context(), timeout); errors.Is(err, context.DeadlineExceeded) || !errors.As(err, new(*slowError)) {
		t.Errorf("without a deadline: %v", err)
	}
	other := errors.New("other")
	if err := asSlowError(late{t.Context()}, other); !errors.Is(err, other) {
		t.Errorf("another error: %v", err)
	}
}
