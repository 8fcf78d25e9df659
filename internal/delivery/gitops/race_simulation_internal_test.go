package gitops

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

const ms = time.Millisecond

// simulated says how long a writer takes for a commit when it is alone, part by part, and what slows down several. The figures
// are those of the tests' servers, rounded.
type simulated struct {
	name       string
	processors int           // that writers and server share
	start      time.Duration // of the writer's process
	look       time.Duration // at its end the tip is known
	fetch      time.Duration
	advertise  time.Duration // at its end a push that is too late is given up
	update     time.Duration // at its end the branch moves, if it has not moved since the look
	finish     time.Duration // of a push that moved the branch
	refuse     time.Duration // of one that did not
}

var simulatedServers = []simulated{
	{"a local path", 2, 20 * ms, 2 * ms, 8 * ms, 3 * ms, 13 * ms, 6 * ms, 5 * ms},
	{"git's http-backend on the writers' machine", 2, 20 * ms, 4 * ms, 15 * ms, 5 * ms, 22 * ms, 14 * ms, 10 * ms},
	{"Gitea on the writers' machine", 2, 20 * ms, 15 * ms, 25 * ms, 15 * ms, 600 * ms, 400 * ms, 50 * ms},
	{"a server that pushes do not slow down", 1000, 20 * ms, 100 * ms, 200 * ms, 100 * ms, 300 * ms, 100 * ms, 100 * ms},
}

func (s simulated) alone(commits int) time.Duration {
	return s.start + time.Duration(commits)*(s.look+s.fetch+s.advertise+s.update+s.finish)
}

func TestSimulatedWritersTakeAtMostHalfAsLongAgainAsOneAfterTheOther(t *testing.T) {
	t.Parallel()
	const seeds = 100
	for _, server := range simulatedServers {
		for _, order := range []struct{ writers, commits, seeds, pushes int }{{1, 1, 1, 1}, {2, 1, seeds, 2}, {4, 1, seeds, 3}, {8, 1, seeds, 3}, {8, 10, 10, 3}} {
			var ratios []float64
			pushes := 0
			for seed := range order.seeds {
				took, sent := server.run(order.writers, order.commits, rand.New(rand.NewPCG(uint64(seed), 0)))
				ratios = append(ratios, took.Seconds()/server.alone(order.commits).Seconds()/float64(order.writers))
				pushes += sent
			}
			slices.Sort(ratios)
			median, worst, each := ratios[order.seeds/2], ratios[order.seeds-1], float64(pushes)/float64(order.seeds*order.writers*order.commits)
			t.Logf("%s, %d writers, %d commits each: %.2f of one after the other (median), %.2f at most, %.2f pushes per commit",
				server.name, order.writers, order.commits, median, worst, each)
			if median > 1.5 || worst > 2.5 || each > float64(order.pushes) {
				t.Error("that is too much")
			}
		}
	}
}

// part is what a writer does.
type part int

const (
	starts part = iota
	waits
	looks
	fetches
	listens
	advertises
	updates
	finishes
	refused
	done
)

type simulatedWriter struct {
	race
	part          part
	left          time.Duration // of the part
	attempt, push time.Duration // when they began
	tip           int           // that it looked at
	made          int           // commits
}

func (w *simulatedWriter) next(p part, left time.Duration) { w.part, w.left = p, w.left+left }

// run is how long writers take that begin at the same moment, and how many packs they send.
func (s simulated) run(writers, commits int, random *rand.Rand) (now time.Duration, pushes int) {
	all := make([]simulatedWriter, writers)
	for i := range all {
		all[i].left = s.start
	}
	jitter := func(limit time.Duration) time.Duration { return time.Duration(random.Int64N(int64(limit) + 1)) }
	tip, step := 0, s.alone(1)/200
	for ended := 0; ended < writers; {
		busy := 0
		for _, w := range all {
			if w.part != waits && w.part != listens && w.part != done {
				busy++
			}
		}
		now += step
		for _, i := range random.Perm(writers) {
			w := &all[i]
			switch w.part {
			case waits, listens:
				w.left -= step
			default: // no two run equally fast
				w.left -= step * time.Duration(min(s.processors, busy)) / time.Duration(max(1, busy)) * time.Duration(70+random.IntN(61)) / 100
			}
			for w.left <= 0 && w.part != done {
				switch w.part {
				case starts, waits:
					w.attempt = now
					w.next(looks, s.look)
				case looks:
					w.tip = tip
					w.next(fetches, s.fetch)
				case fetches:
					least, more := w.silenceLimits(now - w.attempt)
					w.next(listens, least+jitter(more))
				case listens:
					w.push = now
					w.next(advertises, s.advertise)
				case advertises:
					if w.tip == tip {
						w.next(updates, s.update)
						continue
					}
					w.moved++
					w.next(waits, jitter(w.waitLimit(now-w.attempt)))
				case updates:
					if pushes++; w.tip == tip {
						tip++
						w.next(finishes, s.finish)
						continue
					}
					w.next(refused, s.refuse)
				case refused:
					w.lost, w.pushed = w.lost+1, now-w.push
					w.next(waits, jitter(w.waitLimit(now-w.attempt)))
				case finishes:
					w.race, w.made = race{}, w.made+1
					if w.next(waits, 0); w.made == commits {
						w.part = done
						ended++
					}
				}
			}
		}
	}
	return now, pushes
}
