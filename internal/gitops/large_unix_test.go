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

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/processtest"
	"github.com/flotilla/terraform-provider-flotilla/internal/reliabilitytest"
)

// largeOrder tells a process to change one folder of a bigEdit.
type largeOrder struct {
	Remote  git.Remote
	Hosts   int
	Version int
}

// spent is what an apply, or a process, took.
type spent struct {
	Processor  time.Duration // of the apply alone
	PeakMemory int           // of the whole process, in KiB; 0 when the system does not tell
}

func init() { processes["large"] = largeProcess }

func largeProcess(in io.Reader, out io.Writer) error {
	var order largeOrder
	if err := json.NewDecoder(in).Decode(&order); err != nil {
		return err
	}
	edit := bigEdit(noTest{}, order.Hosts)
	edit.Hosts["type-000"].Folders["workload-20-main"] = bigFolder(noTest{}, 0, 20, order.Version)
	before, err := processor()
	if err != nil {
		return err
	}
	result, err := gitops.NewClient().Apply(context.Background(), order.Remote, edit)
	if err != nil || len(result.Changed) != 1 {
		return fmt.Errorf("%d folders changed, %w", len(result.Changed), err)
	}
	after, err := processor()
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(spent{Processor: after - before, PeakMemory: processtest.PeakMemory()})
}

func processor() (time.Duration, error) {
	var usage syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), err
}

// TestReliabilityOneFolderAmongManyFiles measures side by side, in processes of
// their own, what it costs to change one folder, and what git's fast path costs.
// It fails for memory only: processor time depends on what else runs.
func TestReliabilityOneFolderAmongManyFiles(t *testing.T) {
	const limit = 64 << 10 // KiB
	hosts, rounds := reliabilitytest.Count(10, 500), reliabilitytest.Count(1, 10)
	r := newRepository(t, serving{name: "http", config: anyObject, remote: overHTTP})
	if _, err := gitops.NewClient().Apply(context.Background(), git.Remote{URL: r.directory, Branch: "main"}, bigEdit(t, hosts)); err != nil {
		t.Fatal(err)
	}
	r.git("repack", "-adq")
	remote := servedApart(t, r)
	var ours, gits time.Duration
	peak := 0
	for round := range rounds {
		gits += changeByGit(t, remote.URL, 0, 20, 2*round+1)
		order, err := json.Marshal(largeOrder{Remote: remote, Hosts: hosts, Version: 2*round + 2})
		if err != nil {
			t.Fatal(err)
		}
		command := apart(t, "large")
		command.Stdin = bytes.NewReader(order)
		output, err := command.Output()
		if err != nil {
			t.Fatal(err)
		}
		var s spent
		if err := json.Unmarshal(output, &s); err != nil {
			t.Fatal(err)
		}
		ours += s.Processor
		peak = max(peak, s.PeakMemory)
	}
	if peak > limit {
		t.Errorf("a process took %d MiB", peak>>10)
	}
	memory := "not told by this system"
	if peak > 0 {
		memory = fmt.Sprintf("%d MiB", (peak+1023)>>10)
	}
	reliabilitytest.Report(t, "60-large",
		fmt.Sprintf("one folder changed among %d files, beside a partial clone, fast-import and push by git", hosts*200), "git http-backend", fmt.Sprint(rounds),
		fmt.Sprintf("%.2f of git's processor time; peak memory of the process %s", float64(ours)/float64(gits), memory))
}
