//go:build unix

package gitops_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"syscall"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/processtest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/reliabilitytest"
)

// largeOrder tells a process to change one folder of a bigEdit. Records are the ids in the state, none after its loss.
type largeOrder struct {
	Remote  git.Remote
	Hosts   int
	Version int
	Records map[string]string
}

// resourceUsage is the cost of an apply.
type resourceUsage struct {
	Processor  time.Duration // of the apply alone
	PeakMemory int           // of the whole process, in KiB; 0 if unknown
}

func init() { processes["large"] = largeProcess }

func largeProcess(in io.Reader, out io.Writer) error {
	var order largeOrder
	if err := json.NewDecoder(in).Decode(&order); err != nil {
		return err
	}
	edit := bigEdit(noTest{}, order.Hosts)
	edit.Written, edit.Records = edit.Wanted(), order.Records // existing folders count as written even after the loss of the state
	edit.Hosts["type-000"]["workload-20-main"] = bigFolder(noTest{}, 0, 20, order.Version)
	before, err := readProcessorTime()
	if err != nil {
		return err
	}
	result, err := gitops.NewBranchClient(gitops.BranchOptions{}).Apply(context.Background(), order.Remote, edit)
	if err != nil || len(changedKeys(result, "changed")) != 1 {
		return fmt.Errorf("%d folders changed, %w", len(changedKeys(result, "changed")), err)
	}
	after, err := readProcessorTime()
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(resourceUsage{Processor: after - before, PeakMemory: processtest.PeakMemory()})
}

func readProcessorTime() (time.Duration, error) {
	var usage syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), err
}

// TestReliabilityOneFolderAmongManyFiles measures the cost of a changed folder in separate processes: with the ids of the records,
// without them, and by git's fast path. It fails only for memory, because processor time depends on other processes.
func TestReliabilityOneFolderAmongManyFiles(t *testing.T) {
	const limit = 48 << 10 // KiB
	hosts, rounds := reliabilitytest.Count(10, 500), reliabilitytest.Count(1, 10)
	r := newRepository(t, serving{name: "http", config: anyObject, remote: overHTTP})
	first, err := gitops.NewBranchClient(gitops.BranchOptions{}).
		Apply(context.Background(), git.Remote{IsGitOps: true, URL: r.directory, Branch: "main"}, bigEdit(t, hosts))
	if err != nil {
		t.Fatal(err)
	}
	delete(first.Records, "type-000") // its record changes in each round
	r.git("repack", "-adq")
	remote := serveInProcess(t, r)
	var gits time.Duration
	var ours, peak [2]float64 // with records, and without
	for round := range rounds {
		gits += changeByGit(t, remote.URL, 0, 20, 3*round+1)
		for i, records := range []map[string]string{first.Records, nil} {
			s := changeInProcess(t, largeOrder{Remote: remote, Hosts: hosts, Version: 3*round + 2 + i, Records: records})
			ours[i] += float64(s.Processor)
			peak[i] = max(peak[i], float64(s.PeakMemory))
			if s.PeakMemory > limit && !testing.Short() { // short tests run with the race detector, which needs more memory
				t.Errorf("a process took %d KiB", s.PeakMemory)
			}
		}
	}
	memory := "not told by this system"
	if peak[0] > 0 {
		memory = fmt.Sprintf("%.0f MiB, and %.0f MiB", peak[0]/1024, peak[1]/1024)
	}
	reliabilitytest.Report(
		t,
		"60-large",
		fmt.Sprintf(
			"one folder changed among %d files, beside a partial clone, fast-import and push by git",
			hosts*200,
		),
		"git http-backend",
		fmt.Sprint(rounds),
		fmt.Sprintf("%.2f of git's processor time, and %.2f where the state was lost; peak memory of the process %s",
			ours[0]/float64(gits), ours[1]/float64(gits), memory),
	)
}

func changeInProcess(t *testing.T, order largeOrder) resourceUsage {
	t.Helper()
	text, err := json.Marshal(order)
	if err != nil {
		t.Fatal(err)
	}
	command := newProcess(t, "large")
	command.Stdin = bytes.NewReader(text)
	output, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	var s resourceUsage
	if err := json.Unmarshal(output, &s); err != nil {
		t.Fatal(err)
	}
	return s
}
