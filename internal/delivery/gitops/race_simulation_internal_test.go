package gitops

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

const ms = time.Millisecond

// simulatedServer has the times of a single writer for each part of a commit. The figures are rounded measurements of the tests'
// servers.
type simulatedServer struct {
	name       string
	processors int           // shared by writers and server
	start      time.Duration // of the writer's process
	look       time.Duration // ends with the read of the tip
	fetch      time.Duration
	advertise  time.Duration // ends a push that comes too late
	update     time.Duration // ends with the move of the branch, unless it has moved since the look
	finish     time.Duration // after a successful push
	refuse     time.Duration // after a lost push
}

var simulatedServers = []simulatedServer{
	{"a local path", 2, 20 * ms, 2 * ms, 8 * ms, 3 * ms, 13 * ms, 6 * ms, 5 * ms},
	{"git's http-backend on the writers' machine", 2, 20 * ms, 4 * ms, 15 * ms, 5 * ms, 22 * ms, 14 * ms, 10 * ms},
	{"Gitea on the writers' machine", 2, 20 * ms, 15 * ms, 25 * ms, 15 * ms, 600 * ms, 400 * ms, 50 * ms},
	{"a server that pushes do not slow down", 1000, 20 * ms, 100 * ms, 200 * ms, 100 * ms, 300 * ms, 100 * ms, 100 * ms},
}

// timeAlone returns the time of a single writer.
func (s simulatedServer) timeAlone(commits int) time.Duration {
	return s.start + time.Duration(commits)*(s.look+s.fetch+s.advertise+s.update+s.finish)
}

func TestSimulatedWritersTakeAtMostOneAndAHalfTimesTheSequentialTime(t *testing.T) {
	t.Parallel()
	const seeds = 100
	for _, server := range simulatedServers {
		for _, order := range []struct{ writers, commits, seeds, pushes int }{{1, 1, 1, 1}, {2, 1, seeds, 2}, {4, 1, seeds, 3}, {8, 1, seeds, 3}, {8, 10, 10, 3}} {
			var ratios []float64
			pushes := 0
			for seed := range order.seeds {
				took, sent := server.run(order.writers, order.commits, rand.New(rand.NewPCG(uint64(seed), 0)))
				ratios = append(ratios, took.Seconds()/server.timeAlone(order.commits).Seconds()/float64(order.writers))
				pushes += sent
			}
			slices.Sort(ratios)
			median, worst, each := ratios[order.seeds/2], ratios[order.seeds-1], float64(pushes)/float64(order.seeds*order.writers*order.commits)
			t.Logf("%s, %d writers, %d commits each: %.2f of one after the other (median), %.2f at most, %.2f pushes per commit",
				server.name, order.writers, order.commits, median, worst, each)
			if median > 1.5 || worst > 2.5 || each > float64(order.pushes) {
				t.Errorf("got more than 1.5 (median), 2.5 or %d pushes per commit", order.pushes)
			}
		}
	}
}

// part is a part of a writer's commit.
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
	remaining     time.Duration // time of the part
	attempt, push time.Duration // start times
	tip           int           // at the last look
	commits       int
}

func (w *simulatedWriter) next(p part, duration time.Duration) {
	w.part, w.remaining = p, w.remaining+duration
}

// run simulates writers that begin at the same moment. It returns their time and the number of pushed packs.
func (s simulatedServer) run(writers, commits int, random *rand.Rand) (now time.Duration, pushes int) {
	all := make([]simulatedWriter, writers)
	for i := range all {
		all[i].remaining = s.start
	}
	jitter := func(limit time.Duration) time.Duration { return time.Duration(random.Int64N(int64(limit) + 1)) }
	tip, step := 0, s.timeAlone(1)/200
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
				w.remaining -= step
			default: // writers differ in speed
				w.remaining -= step * time.Duration(min(s.processors, busy)) / time.Duration(max(1, busy)) * time.Duration(70+random.IntN(61)) / 100
			}
			for w.remaining <= 0 && w.part != done {
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
					w.race, w.commits = race{}, w.commits+1
					if w.next(waits, 0); w.commits == commits {
						w.part = done
						ended++
					}
				}
			}
		}
	}
	return now, pushes
}
