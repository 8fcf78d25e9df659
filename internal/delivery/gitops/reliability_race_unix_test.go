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

// TestReliabilityRaces lets processes that know nothing of each other commit to
// one branch.
func TestReliabilityRaces(t *testing.T) {
	atOnce(t)
	for i, serving := range raceServers() {
		t.Run(serving.name, func(t *testing.T) {
			atOnce(t)
			processes, commits := reliabilitytest.Count(4, 32), reliabilitytest.Count(2, 100)
			if serving.mirror { // Gitea does much more for a push
				processes, commits = reliabilitytest.Count(3, 32), reliabilitytest.Count(2, 10)
			}
			r := newRepository(t, serving)
			start := time.Now()
			came := raceApart(t, r, "team", processes, commits)
			t.Logf("%s for %d commits", time.Since(start).Round(time.Millisecond), len(came))
			checkRace(t, r, processes, commits, came)
			pushes, each := 0, make([]int, 0, len(came))
			for _, c := range came {
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

// TestReliabilityRounds lets processes make one commit each at the same moment, and compares that with as many processes one
// after the other. The starts of the processes count for both. `make test` leaves it out: but for the figures, TestReliabilityRaces
// sees the same.
func TestReliabilityRounds(t *testing.T) {
	acceptancetest.Only(t)
	atOnce(t)
	for i, serving := range reliabilityServers {
		t.Run(serving.name, func(t *testing.T) {
			atOnce(t)
			processes, rounds := reliabilitytest.Count(4, 8), reliabilitytest.Count(1, 10)
			var alone, together []time.Duration
			pushes := 0
			for range rounds {
				r := newRepository(t, serving)
				start := time.Now()
				for i := range processes {
					raceApart(t, r, fmt.Sprintf("owner-%d", i), 1, 1)
				}
				alone = append(alone, time.Since(start))
				r = newRepository(t, serving)
				start = time.Now()
				for _, came := range raceApart(t, r, "team", processes, 1) {
					pushes += came.Pushes
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

// atOnce lets a test run beside others, unless its figures are reported.
func atOnce(t *testing.T) {
	t.Helper()
	if reliabilitytest.Count(0, 1) == 0 {
		t.Parallel()
	}
}

// raceApart starts processes of owners with names that begin with this one, lets them go at once and returns what came of each
// commit.
func raceApart(t *testing.T, r *repository, name string, processes, commits int) []applied {
	t.Helper()
	var came []applied
	for i, output := range runApart(t, "apply", processes, func(i int) any {
		return applyOrder{Remote: r.remote, Name: fmt.Sprintf("%s-%d", name, i), Commits: commits}
	}) {
		for _, c := range decodeAll[applied](t, output) {
			if c.Error != "" {
				t.Fatalf("process %d: %+v", i, c)
			}
			came = append(came, c)
		}
	}
	return came
}

// runApart starts processes that do what the name says, lets them go at once when all of them are ready, with an order each,
// and returns what each has said.
func runApart(t *testing.T, name string, processes int, order func(i int) any) []*bytes.Buffer {
	t.Helper()
	inputs, outputs := make([]io.Closer, processes), make([]*bytes.Buffer, processes)
	var ready, ended sync.WaitGroup
	for i := range processes {
		outputs[i] = &bytes.Buffer{}
		command := apart(t, name)
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

// checkRace looks for each commit in the branch's history, and for each folder
// at its tip.
func checkRace(t *testing.T, r *repository, processes, commits int, came []applied) {
	t.Helper()
	if len(came) != processes*commits {
		t.Errorf("%d commits were made, want %d", len(came), processes*commits)
	}
	history := strings.Fields(r.git("rev-list", "main"))
	inHistory := map[string]bool{}
	for _, id := range history {
		inHistory[id] = true
	}
	for _, c := range came {
		if !inHistory[c.Commit] {
			t.Errorf("commit %s is not in the history", c.Commit)
		}
	}
	if len(history) != len(came) {
		t.Errorf("%d commits on the branch, %d were made", len(history), len(came))
	}
	files := r.files()
	for i := range processes {
		for j := range commits {
			if got, want := files[fmt.Sprintf("dev/team-%d/app-%d/a", i, j)], fmt.Sprintf("team-%d %d", i, j); got != want {
				t.Errorf("process %d, commit %d: %q", i, j, got)
			}
		}
	}
	r.fsck()
}
