package provider_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// A change by hand stays in a folder with a hold or of a later stage. The first plan counts it, and the next plan is empty.
func TestChangesByHandToWaitingFoldersAreCountedAtOnce(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{"changed": "by hand\n", "removed": ""} {
		for host, hosts := range map[string]string{canary: "0 of 5", "rest-1": "1 of 5"} {
			for suffix, disturb := range map[string]func(l *life){
				"": func(*life) {}, ", and renamed": func(l *life) { l.wanted.name = names[1] },
				", and lost": func(l *life) { l.runner.Lose(assignment); l.wanted.adopt = true },
			} {
				t.Run(name+" on "+host+suffix, func(t *testing.T) {
					playAlways(t, name+" on "+host+suffix, "changed on canary-1, and renamed", "removed on rest-1, and lost")
					t.Parallel()
					l := newLifeWithRollout(t, host == canary)
					for file := range l.branchFiles() {
						if strings.HasPrefix(file, lifePath+"/"+host+"/w0-live/") {
							l.commitFile(file, content)
						}
					}
					disturb(l)
					l.apply()
					got := fmt.Sprint(l.runner.Now().Values(assignment)["rolling_out"])
					if !strings.Contains(got, "w0-live") || !strings.Contains(got, `summary:stage 1 of 3 "canary", `+hosts+" hosts") {
						t.Errorf("got rolling_out %s, want w0-live in stage 1 with %s hosts", got, hosts)
					}
				})
			}
		}
	}
}

// newLifeWithRollout returns a life with a new version on the canary, and optionally a hold there.
func newLifeWithRollout(t *testing.T, held bool) *life {
	t.Helper()
	world, clock := newMemoryWorld(t, true), &stoppedClock{now: time.Now().UTC().Truncate(time.Second)}
	l := newLife(t, 1, "halt", world, providertest.New(world.startAt(clock)), clock, &lifeTally{})
	for range 4 {
		l.apply()
		l.advanceClock(time.Hour)
		l.syncClusters(1)
	}
	l.wanted.versions["w0"] = "v1"
	l.apply()
	if held {
		l.wanted.hold = map[string]any{"reason": "an audit", "hosts": []any{canary}}
		l.apply()
	}
	return l
}
