//go:build unix

package gitops_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/reliabilitytest"
)

// TestReliabilityRaces lets independent processes commit to one branch.
func TestReliabilityRaces(t *testing.T) {
	runParallel(t)
	for i, serving := range raceServers() {
		t.Run(serving.name, func(t *testing.T) {
			runParallel(t)
			processes, commits := reliabilitytest.Count(4, 32), reliabilitytest.Count(2, 100)
			if serving.mirror { // a push to Gitea is slow
				processes, commits = reliabilitytest.Count(3, 32), reliabilitytest.Count(2, 10)
			}
			r := newRepository(t, serving)
			start := time.Now()
			reports := raceProcesses(t, r, "team", processes, commits)
			t.Logf("%s for %d commits", time.Since(start).Round(time.Millisecond), len(reports))
			checkRace(t, r, processes, commits, reports)
			pushes, each := 0, make([]int, 0, len(reports))
			for _, c := range reports {
				pushes += c.Pushes
				each = append(each, c.Pushes)
			}
			slices.Sort(each)
			reliabilitytest.Report(t, fmt.Sprintf("10-races-%d", i),
				"processes commit to one branch at once", serving.name, fmt.Sprintf("%d × %d", processes, commits),
				fmt.Sprintf("0 lost; pushes per commit: %.2f on average, 99th percentile %d, at most %d",
					float64(pushes)/float64(len(each)), each[len(each)*99/100], each[len(each)-1]))
			if pushes > 3*len(each) {
				t.Errorf("%d pushes for %d commits", pushes, len(each))
			}
		})
	}
}

// TestReliabilityRounds compares the time of processes that commit at the same moment with the time of sequential processes. Both
// include the starts of the processes. `make test` omits it, because TestReliabilityRaces finds the same errors.
func TestReliabilityRounds(t *testing.T) {
	acceptancetest.Only(t)
	runParallel(t)
	for i, serving := range reliabilityServers {
		t.Run(serving.name, func(t *testing.T) {
			runParallel(t)
			processes, rounds := reliabilitytest.Count(4, 8), reliabilitytest.Count(1, 10)
			var alone, together []time.Duration
			pushes := 0
			for range rounds {
				r := newRepository(t, serving)
				start := time.Now()
				for i := range processes {
					raceProcesses(t, r, fmt.Sprintf("owner-%d", i), 1, 1)
				}
				alone = append(alone, time.Since(start))
				r = newRepository(t, serving)
				start = time.Now()
				for _, reports := range raceProcesses(t, r, "team", processes, 1) {
					pushes += reports.Pushes
				}
				together = append(together, time.Since(start))
			}
			slices.Sort(alone)
			slices.Sort(together)
			seconds := func(times []time.Duration) string {
				return fmt.Sprintf("%.1f s (median), %.1f s at most", times[len(times)/2].Seconds(), times[len(times)-1].Seconds())
			}
			reliabilitytest.Report(
				t,
				fmt.Sprintf("15-rounds-%d", i),
				fmt.Sprintf("%d processes commit once each, at the same moment", processes),
				serving.name,
				fmt.Sprint(rounds),
				fmt.Sprintf(
					"%s; one after the other %s; pushes per commit: %.2f",
					seconds(together),
					seconds(alone),
					float64(pushes)/float64(rounds*processes),
				),
			)
			if reliabilitytest.Count(0, 1) == 1 && together[rounds/2] > alone[rounds/2]*2 {
				t.Errorf("at once %s, one after the other %s", together, alone)
			}
		})
	}
}

// runParallel makes a test parallel unless its figures are reported.
func runParallel(t *testing.T) {
	t.Helper()
	if reliabilitytest.Count(0, 1) == 0 {
		t.Parallel()
	}
}

// raceProcesses runs processes of owners named "<name>-<number>" at once and returns a report for each commit.
func raceProcesses(t *testing.T, r *repository, name string, processes, commits int) []applyReport {
	t.Helper()
	var reports []applyReport
	for i, output := range runProcesses(t, "apply", processes, func(i int) any {
		return applyOrder{Remote: r.remote, Name: fmt.Sprintf("%s-%d", name, i), Commits: commits}
	}) {
		for _, c := range decodeAll[applyReport](t, output) {
			if c.Error != "" {
				t.Fatalf("process %d: %+v", i, c)
			}
			reports = append(reports, c)
		}
	}
	return reports
}

// runProcesses starts processes of the named function with an order each. It lets them begin when all are ready, and returns their
// outputs.
func runProcesses(t *testing.T, name string, processes int, order func(i int) any) []*bytes.Buffer {
	t.Helper()
	inputs, outputs := make([]io.Closer, processes), make([]*bytes.Buffer, processes)
	var ready, ended sync.WaitGroup
	for i := range processes {
		outputs[i] = &bytes.Buffer{}
		command := newProcess(t, name)
		input, err := command.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		output, err := command.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		if err := json.NewEncoder(input).Encode(order(i)); err != nil {
			t.Fatal(err)
		}
		inputs[i] = input
		ready.Add(1)
		ended.Go(func() {
			_, _ = io.CopyN(outputs[i], output, 1)
			ready.Done()
			_, _ = io.Copy(outputs[i], output)
			if err := command.Wait(); err != nil {
				t.Errorf("process %d: %v", i, err)
			}
		})
	}
	ready.Wait()
	for _, input := range inputs {
		_ = input.Close()
	}
	ended.Wait()
	return outputs
}

func decodeAll[T any](t *testing.T, from io.Reader) []T {
	t.Helper()
	var all []T
	for decoder := json.NewDecoder(from); ; {
		var one T
		err := decoder.Decode(&one)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
}

// checkRace expects each commit in the history of the branch, and each folder at its tip.
func checkRace(t *testing.T, r *repository, processes, commits int, reports []applyReport) {
	t.Helper()
	if len(reports) != processes*commits {
		t.Errorf("got %d reported commits, want %d", len(reports), processes*commits)
	}
	history := strings.Fields(r.git("rev-list", "main"))
	inHistory := map[string]bool{}
	for _, id := range history {
		inHistory[id] = true
	}
	for _, c := range reports {
		if !inHistory[c.Commit] {
			t.Errorf("commit %s is not in the history", c.Commit)
		}
	}
	if len(history) != len(reports) {
		t.Errorf("got %d commits on the branch, want %d", len(history), len(reports))
	}
	files := r.files()
	for i := range processes {
		for j := range commits {
			if got, want := files[fmt.Sprintf("dev/team-%d/app-%d/a", i, j)], fmt.Sprintf("team-%d %d", i, j); got != want {
				t.Errorf("process %d, commit %d: got %q, want %q", i, j, got, want)
			}
		}
	}
	r.fsck()
}
