package gitops

import (
	"testing"
	"time"
)

// Eight concurrent writers took 6 to 94 seconds when waits grew sixteenfold with each lost push, up to half a minute.
func TestWaitsAreBoundedByTheTimeOfAttempts(t *testing.T) {
	t.Parallel()
	for _, took := range []time.Duration{10 * time.Millisecond, 300 * time.Millisecond, 3 * time.Second, time.Minute} {
		for n := 1; n < maxMoves; n++ {
			for _, r := range []race{{moved: n}, {lost: n}, {lost: n / 2, moved: n - n/2}} {
				if wait := r.waitLimit(took); wait != min(took*3/2, lastWait) {
					t.Fatalf("after %+v, attempts of %s: got a wait of %s", r, took, wait)
				}
			}
			least, more := (&race{lost: n, pushed: time.Hour}).silenceLimits(took)
			if n < listenAfter && least+more != 0 ||
				n >= listenAfter && (least <= 0 || more <= least || least+more > min(took+longestPush, lastWait)) {
				t.Fatalf("after %d lost pushes, attempts of %s: got %s and %s of silence", n, took, least, more)
			}
		}
		for n := 1; n < maxUnanswered; n++ {
			if wait := (&race{unanswered: n}).waitLimit(took); wait < min(took, lastWait) || wait > min(8*max(took, firstWait), lastWait) {
				t.Errorf("after %d requests without a valid answer, attempts of %s: got a wait of %s", n, took, wait)
			}
		}
	}
	if wait := (&race{unanswered: 1}).waitLimit(0); wait != firstWait {
		t.Errorf("after a request that failed at once: got a wait of %s", wait)
	}
}
