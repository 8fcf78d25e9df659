package e2e_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/giteatest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
)

func TestMain(m *testing.M) {
	os.Exit(inOwnNetwork(func() int {
		return kubetest.Main(func() int {
			code := giteatest.Main(m)
			if err := stepTimes.write(os.Getenv("FLOTILLA_E2E")); err != nil {
				fmt.Fprintln(os.Stderr, "e2e:", err)
			}
			return code
		})
	}))
}

// pollTimeout is generous: agents take seconds, but minutes on a busy machine. Only a failing test waits that long.
const pollTimeout = 10 * time.Minute

// testbed is the cluster and the Git host shared by the tests of one cluster.
type testbed struct {
	scenario string // empty: the name of the test
	cluster  *kubetest.Server
	git      *giteatest.Gitea
}

// stepTimes has the times of all tests' steps. It is package state because [TestMain] writes one table of them.
var stepTimes timings

type timings struct {
	mu      sync.Mutex
	entries []timing
}

type timing struct {
	agent, scenario, title string
	duration               time.Duration
}

func (t timing) String() string {
	return fmt.Sprintf("%-7s %-21s %5.1f s  %s", t.agent, t.scenario, t.duration.Seconds(), t.title)
}

// step runs one step of a test and records its time.
func (bed *testbed) step(t *testing.T, agent, title string, do func()) {
	t.Helper()
	began := time.Now()
	do()
	entry := timing{agent: agent, scenario: bed.scenario, title: title, duration: time.Since(began)}
	if test := path.Base(t.Name()); entry.scenario == "" && test != t.Name() && test != agent {
		entry.scenario = test
	}
	t.Log(entry)
	stepTimes.mu.Lock()
	defer stepTimes.mu.Unlock()
	stepTimes.entries = append(stepTimes.entries, entry)
}

// write writes the times, grouped by test, to the file that `make e2e` prints.
func (t *timings) write(file string) error {
	if len(t.entries) == 0 {
		return nil
	}
	entries := slices.Clone(t.entries)
	slices.SortStableFunc(entries, func(a, b timing) int {
		return cmp.Or(cmp.Compare(a.agent, b.agent), cmp.Compare(a.scenario, b.scenario))
	})
	var text strings.Builder
	for i, l := range entries {
		if i > 0 && (l.agent != entries[i-1].agent || l.scenario != entries[i-1].scenario) {
			fmt.Fprintln(&text)
		}
		fmt.Fprintln(&text, l)
	}
	return os.WriteFile(file, []byte(text.String()), 0o600)
}

// eventually repeats the check until it succeeds. After pollTimeout it fails the test with the last error.
func eventually(t *testing.T, check func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), pollTimeout)
	defer cancel()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("after %s: %v", pollTimeout, err)
		case <-time.After(250 * time.Millisecond):
		}
	}
}

func joinErrors(checks ...error) error { return errors.Join(checks...) }
