package compliance

import (
	"context"
	"fmt"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Clock is the clock for Wait.
type Clock interface {
	Now() time.Time
	// Sleep returns after a time, or when the context has ended.
	Sleep(ctx context.Context, d time.Duration)
}

// Goal is what is waited for.
type Goal struct {
	ReadyPercent int
	Timeout      time.Duration
}

// The pauses between two questions: the first, by how much they grow, and the longest.
const (
	firstPause = 2 * time.Second
	longPause  = 30 * time.Second
)

// Wait repeats ask until enough clusters are ready, with growing pauses. When the time has run out, it returns
// the last answer with an error that names what is not ready. said gets the summary after each call of ask.
func Wait(
	ctx context.Context,
	clock Clock,
	goal Goal,
	ask func(ctx context.Context, now time.Time) (*Answer, error),
	said func(observe.Summary),
) (*Answer, error) {
	until := clock.Now().Add(goal.Timeout)
	for pause := firstPause; ; pause = min(longPause, pause*3/2) {
		now := clock.Now()
		answer, err := ask(ctx, now)
		if err != nil {
			return nil, err
		}
		summary := answer.Result.Summary()
		said(summary)
		left := until.Sub(clock.Now())
		switch {
		case summary.ReadyPercent >= goal.ReadyPercent:
			return answer, nil
		case left <= 0:
			return answer, notReady(answer.Result, summary, goal)
		}
		clock.Sleep(ctx, min(pause, left))
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
}

// notReady names what is not ready.
func notReady(result *observe.Observation, summary observe.Summary, goal Goal) error {
	var lines []string
	for i := range result.Clusters {
		if c := &result.Clusters[i]; c.Verdict != verdict.Ready {
			lines = append(lines, fmt.Sprintf("%s: %s: %s", c.Name, c.Verdict, c.Message))
		}
	}
	return fmt.Errorf(
		"after %s, %d of %s ready (%d %%), but ready_percent is %d %%:\n%s",
		goal.Timeout,
		summary.ByVerdict[verdict.Ready],
		wording.Count(
			summary.Clusters,
			"cluster is",
			"clusters are",
		),
		summary.ReadyPercent,
		goal.ReadyPercent,
		wording.Lines(lines, wording.Named),
	)
}
