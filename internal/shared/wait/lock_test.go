package wait_test

import (
	"context"
	"errors"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wait"
)

func TestALockHasOneHolderAndNoCallerWaitsLongerThanItsContext(t *testing.T) {
	t.Parallel()
	var all wait.Locks
	ended, cancel := context.WithCancel(t.Context())
	release, err := all.Take(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	other, err := all.Take(t.Context(), "other")
	if err != nil {
		t.Fatal(err)
	}
	other()
	cancel()
	if _, err := all.Take(ended, "one"); !errors.Is(err, context.Canceled) {
		t.Errorf("what is taken was taken again: %v", err)
	}
	taken := make(chan error)
	go func() {
		release, err := all.Take(t.Context(), "one")
		if err == nil {
			release()
		}
		taken <- err
	}()
	release()
	if err := <-taken; err != nil {
		t.Errorf("what was released cannot be taken: %v", err)
	}
}
