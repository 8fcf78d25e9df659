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
	// Sleep returns after d or when the context ends.
	Sleep(ctx context.Context, d time.Duration)
}

// Goal is the condition that [Wait] waits for.
type Goal struct {
	ReadyPercent int
	Timeout      time.Duration
}

const (
	firstPause = 2 * time.Second
	longPause  = 30 * time.Second
)

// Wait repeats query with growing pauses until enough clusters are ready. On timeout, it returns the last answer with
// an error. report gets each summary.
func Wait(
	ctx context.Context,
	clock Clock,
	goal Goal,
	query func(ctx context.Context, now time.Time) (*Answer, error),
	report func(observe.Summary),
) (*Answer, error) {
	until := clock.Now().Add(goal.Timeout)
	for pause := firstPause; ; pause = min(longPause, pause*3/2) {
		now := clock.Now()
		answer, err := query(ctx, now)
		if err != nil {
			return nil, err
		}
		summary := answer.Result.Summary()
		report(summary)
		left := until.Sub(clock.Now())
		switch {
		case summary.ReadyPercent >= goal.ReadyPercent:
			return answer, nil
		case left <= 0:
			return answer, unreadyError(answer.Result, summary, goal)
		}
		clock.Sleep(ctx, min(pause, left))
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
}

func unreadyError(result *observe.Observation, summary observe.Summary, goal Goal) error {
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
		wording.Count(summary.Clusters, "cluster is", "clusters are"),
		summary.ReadyPercent,
		goal.ReadyPercent,
		wording.Lines(lines, wording.Named),
	)
}
