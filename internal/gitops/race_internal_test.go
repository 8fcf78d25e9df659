package gitops

import (
	"testing"
	"time"
)

// Eight writers at the same moment took 6 to 94 seconds: the waits grew by sixteen with each lost push, up to half a minute.
func TestWaitsStayWithinSomeAttempts(t *testing.T) {
	t.Parallel()
	for _, took := range []time.Duration{0, 10 * time.Millisecond, 300 * time.Millisecond, 3 * time.Second, time.Minute} {
		attempt := max(took, firstWait)
		var before time.Duration
		for n := 1; n < maxMoves; n++ {
			for _, r := range []race{{moved: n}, {lost: n}, {lost: n / 2, moved: n - n/2}, {unanswered: n}} {
				wait := r.wait(took)
				if wait <= 0 || wait > 8*attempt || wait > 5*time.Second {
					t.Fatalf("after %+v, attempts of %s: %s", r, took, wait)
				}
				if r.unanswered == 0 && wait < min(2*attempt, lastWait) {
					t.Fatalf("after %+v, attempts of %s: only %s", r, took, wait)
				}
			}
			now := (&race{lost: n}).wait(took)
			if now < before || before > 0 && now > 2*before {
				t.Fatalf("after %d lost pushes, attempts of %s: %s follows %s", n, took, now, before)
			}
			before = now
			least, more := (&race{lost: n, pushed: time.Hour}).silence(took)
			if n < listenAfter && least+more != 0 || n >= listenAfter && (least <= 0 || least+more > min(2*(attempt+longestPush), 2*lastWait)) {
				t.Fatalf("after %d lost pushes, attempts of %s: %s and %s of silence", n, took, least, more)
			}
		}
	}
	if wait := (&race{}).wait(time.Second); wait > 2*time.Second {
		t.Errorf("the first wait is %s", wait)
	}
}
