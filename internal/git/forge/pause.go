package forge

import (
	"context"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wait"
)

// pause waits longer each time, up to a limit.
type pause struct {
	next, left time.Duration
}

func newPause(limit time.Duration) *pause {
	return &pause{next: 200 * time.Millisecond, left: limit}
}

func (p *pause) wait(ctx context.Context) bool {
	if p.left < p.next || wait.For(ctx, p.next) != nil {
		return false
	}
	p.left -= p.next
	p.next = min(p.next*3/2, 3*time.Second)
	return true
}
