package evidence_test

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// In each run, a change reaches the canaries of a fleet at one moment. With a regression, the share of failed requests on the canaries at
// least doubles, and grows by at least 0.5 percentage points.
const (
	runsOfAKind         = 1000 // with a regression, and as many without
	clustersOfARun      = 8
	canariesOfARun      = 2
	minutesBefore       = 35
	minutesAfter        = lastRun + 2
	lastRegressionStart = 20 // the latest start of a regression
)

// changedAt is the time of the changes.
var changedAt = time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)

// syntheticRun has the requests and errors of each cluster in each minute.
type syntheticRun struct {
	name      string
	regresses bool
	clusters  []syntheticCluster
}

type syntheticCluster struct {
	requests, errors [minutesBefore + minutesAfter]int
	restarts         int // the minute of the reset of its counters, or -1
}

// makeSeries writes synthetic series to a file and returns a change for each run.
func makeSeries(t *testing.T) (file string, changes []change) {
	t.Helper()
	runs := makeRuns(rand.New(rand.NewPCG(22, 1)))
	for _, run := range runs {
		one := change{name: run.name, regresses: run.regresses, at: changedAt}
		for c := range run.clusters {
			one.clusters = append(one.clusters, fmt.Sprintf("%s-%d", run.name, c))
		}
		changes = append(changes, one)
	}
	return writeSeries(t, runs), changes
}

// readRecordedSeries unpacks series that Prometheus recorded of services under load (testdata/recorded.md), and draws changes from them.
// The canaries of a good change are two good services; the canaries of a bad change are two services with a regression.
func readRecordedSeries(t *testing.T) (file string, changes []change) {
	t.Helper()
	packed, err := os.Open(filepath.Join("testdata", "recorded.txt.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = packed.Close() }()
	text, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "recorded.txt")
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, text); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(22, 2))
	for i := range 2 * runsOfAKind {
		one := change{
			name:      fmt.Sprintf("run-%04d", i),
			regresses: i%2 == 1,
			at:        recordedAt.Add(time.Duration(11+random.IntN(recordedMinutes-lastRun-11)) * time.Minute),
		}
		good, bad := random.Perm(recordedGood), random.Perm(recordedBad)
		for c := range clustersOfARun {
			name := fmt.Sprintf("good-%02d", good[c])
			if one.regresses && c < canariesOfARun {
				name = fmt.Sprintf("bad-%02d", bad[c])
			}
			one.clusters = append(one.clusters, name)
		}
		changes = append(changes, one)
	}
	return file, changes
}

// The numbers of recorded services and minutes.
const (
	recordedGood, recordedBad = 16, 12
	recordedMinutes           = 75
)

var recordedAt = time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)

// makeRuns returns runs of different fleets. Some have ten times the traffic of others, and each cluster has its own share of errors.
// Clusters have short bursts of errors, an incident may hit all clusters, traffic rises and falls, and processes restart.
func makeRuns(random *rand.Rand) []syntheticRun {
	var runs []syntheticRun
	for i := range 2 * runsOfAKind {
		run := syntheticRun{name: fmt.Sprintf("run-%04d", i), regresses: i%2 == 1}
		traffic := math.Exp(random.NormFloat64()*0.8) * 1200 // requests a minute
		usual := math.Exp(random.NormFloat64()*0.8) * 0.001  // share of errors
		incident, begins := -1, random.IntN(lastRegressionStart)
		if random.IntN(10) == 0 {
			incident = minutesBefore + random.IntN(minutesAfter)
		}
		if random.IntN(5) > 0 {
			begins = 0
		}
		worse, more := 2+random.Float64()*5, 0.005+random.ExpFloat64()*0.02
		phase := random.Float64() * 2 * math.Pi
		for c := range clustersOfARun {
			var cluster syntheticCluster
			own, share := traffic*math.Exp(random.NormFloat64()*0.5), usual*math.Exp(random.NormFloat64()*0.3)
			if cluster.restarts = -1; random.IntN(4) == 0 || c < canariesOfARun {
				cluster.restarts = minutesBefore + random.IntN(5) // a change restarts processes
			}
			burst := 0
			for m := range cluster.requests {
				if burst--; random.IntN(120) == 0 {
					burst = 1 + random.IntN(2)
				}
				fails := share
				if burst > 0 {
					fails = 10*fails + 0.01
				}
				if incident >= 0 && m >= incident && m < incident+15 {
					fails = 10*fails + 0.01
				}
				if run.regresses && c < canariesOfARun && m >= minutesBefore+begins {
					fails = worse*fails + more
				}
				mean := max(own, 300) * (1 + 0.3*math.Sin(phase+float64(m)/40))
				cluster.requests[m] = poisson(random, mean)
				cluster.errors[m] = min(poisson(random, mean*fails), cluster.requests[m])
			}
			run.clusters = append(run.clusters, cluster)
		}
		runs = append(runs, run)
	}
	return runs
}

// poisson draws a number of events. Above a mean of 50 it draws from the normal distribution, a close approximation.
func poisson(random *rand.Rand, mean float64) int {
	if mean > 50 {
		return max(0, int(math.Round(mean+math.Sqrt(mean)*random.NormFloat64())))
	}
	limit, product, n := math.Exp(-mean), random.Float64(), 0
	for product > limit {
		product *= random.Float64()
		n++
	}
	return n
}

// writeSeries writes the counters of runs in the text format. As in real services, a series of errors begins with the first error.
func writeSeries(t *testing.T, runs []syntheticRun) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "series.txt")
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	text := bufio.NewWriterSize(out, 1<<20)
	fmt.Fprintln(text, "# TYPE http_requests counter")
	for i := range runs {
		for c := range runs[i].clusters {
			cluster := &runs[i].clusters[c]
			for _, code := range []string{"200", "500"} {
				total, seen := 0, code == "200"
				for m := range cluster.requests {
					if m == cluster.restarts {
						total, seen = 0, code == "200"
					}
					if total += cluster.errors[m]; code == "200" {
						total += cluster.requests[m] - 2*cluster.errors[m]
					}
					if seen = seen || total > 0; seen && m%2 == 0 {
						fmt.Fprintf(text, "http_requests_total{cluster=\"%s-%d\",code=\"%s\"} %d %d\n", runs[i].name, c, code, total,
							changedAt.Add(time.Duration(m-minutesBefore)*time.Minute).Unix())
					}
				}
			}
		}
	}
	fmt.Fprintln(text, "# EOF")
	if err := text.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return file
}
