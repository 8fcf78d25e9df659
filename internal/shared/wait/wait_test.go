package wait_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wait"
)

func TestAWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	if err := wait.For(ctx, time.Millisecond); err != nil {
		t.Error(err)
	}
	cancel()
	if err := wait.For(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("after its context has ended: %v", err)
	}
}
