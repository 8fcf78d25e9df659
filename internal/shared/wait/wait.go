// Package wait is the one way to let time pass: no longer than a context lasts.
package wait

import (
	"context"
	"time"
)

// For waits that long, or returns the error of the context when that ends first.
func For(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
