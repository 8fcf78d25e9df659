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
			if err := took.write(os.Getenv("FLOTILLA_E2E")); err != nil {
				fmt.Fprintln(os.Stderr, "e2e:", err)
			}
			return code
		})
	}))
}

// patience is generous: agents take seconds, on a busy machine minutes. Only a
// test that fails waits for so long.
const patience = 10 * time.Minute

// world is what the tests of one cluster share: the cluster, and a Git host.
type world struct {
	test    string // what it is about, where the name of the test does not say that
	cluster *kubetest.Server
	git     *giteatest.Gitea
}

// took is how long the steps of all tests took, which [TestMain] writes: it is
// package state because one table is printed for all of them.
var took times

type times struct {
	mu    sync.Mutex
	lines []line
}

type line struct {
	agent, test, what string
	took              time.Duration
}

func (l line) String() string {
	return fmt.Sprintf("%-7s %-21s %5.1f s  %s", l.agent, l.test, l.took.Seconds(), l.what)
}

// step does one thing, and notes how long it took.
func (w *world) step(t *testing.T, agent, what string, do func()) {
	t.Helper()
	began := time.Now()
	do()
	line := line{agent: agent, test: w.test, what: what, took: time.Since(began)}
	if test := path.Base(t.Name()); line.test == "" && test != t.Name() && test != agent {
		line.test = test
	}
	t.Log(line)
	took.mu.Lock()
	defer took.mu.Unlock()
	took.lines = append(took.lines, line)
}

// write leaves the times where `make e2e` prints them, those of a test
// together.
func (t *times) write(file string) error {
	if len(t.lines) == 0 {
		return nil
	}
	lines := slices.Clone(t.lines)
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Or(cmp.Compare(a.agent, b.agent), cmp.Compare(a.test, b.test)) })
	var text strings.Builder
	for i, l := range lines {
		if i > 0 && (l.agent != lines[i-1].agent || l.test != lines[i-1].test) {
			fmt.Fprintln(&text)
		}
		fmt.Fprintln(&text, l)
	}
	return os.WriteFile(file, []byte(text.String()), 0o600)
}

// eventually asks until there is no error, and fails the test with the last one
// when that takes too long.
func eventually(t *testing.T, check func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("after %s: %v", patience, err)
		case <-time.After(250 * time.Millisecond):
		}
	}
}

// all checks everything, and says everything that is not so.
func all(checks ...error) error { return errors.Join(checks...) }
