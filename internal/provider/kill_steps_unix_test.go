//go:build unix

package provider_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/reliabilitytest"
)

type killedSteps []killedStep

type killedStep struct {
	name          string
	isAfterCommit bool
}

func (found *killedSteps) add(name string, after bool) {
	*found = append(*found, killedStep{name, after})
}

func (found killedSteps) report(t *testing.T, order int, server string) {
	t.Helper()
	before, namesBefore := found.summary(false)
	after, namesAfter := found.summary(true)
	reliabilitytest.Report(t, fmt.Sprintf("51-killed-at-every-step-%d", order), "`kill -9` of the provider at each step", server,
		fmt.Sprint(before+after), fmt.Sprintf("%d before and %d after the commit, none between; the next apply converged. Before: %s. After: %s",
			before, after, namesBefore, namesAfter))
}

// summary counts and names the steps before or after the commit, by request.
func (found killedSteps) summary(after bool) (count int, names string) {
	var text strings.Builder
	last := ""
	for _, step := range found {
		if step.isAfterCommit != after {
			continue
		}
		count++
		request, when, _ := strings.Cut(step.name, ": ")
		switch {
		case last == "":
			text.WriteString(request + " " + when)
		case request == last:
			text.WriteString(", " + when)
		default:
			text.WriteString("; " + request + " " + when)
		}
		last = request
	}
	return count, cmp.Or(text.String(), "none")
}

// In `make test`, testKilledProcess plays one kill.
func TestReliabilityKilledAtEveryStep(t *testing.T) {
	t.Parallel()
	acceptancetest.Only(t)
	for order, server := range []struct {
		name string
		kill func(*testing.T, *killedSteps)
		long bool // only with all steps
	}{
		{name: "http-backend", kill: func(t *testing.T, found *killedSteps) {
			w := &webWatcher{}
			p := newBackendRepository(t, w.wrap)
			killAtEachStep(t, found, w, func(*testing.T) *killRepository { return p })
		}},
		{name: "Gitea", long: true, kill: func(t *testing.T, found *killedSteps) {
			w := &webWatcher{}
			p := newGiteaRepository(t, w.wrap)
			killAtEachStep(t, found, w, func(*testing.T) *killRepository { return p })
		}},
		{name: "local path", kill: func(t *testing.T, found *killedSteps) {
			p := newLocalRepository(t)
			killAtEachStep(t, found, newGitWatcher(t), func(*testing.T) *killRepository { return p })
		}},
		{name: "local path (created)", kill: func(t *testing.T, found *killedSteps) {
			trees := contentsOfCreated(t, newMissingRepository)
			killAtEachStep(t, found, newGitWatcher(t), func(t *testing.T) *killRepository {
				p := newMissingRepository(t)
				p.contents = trees
				return p
			})
		}},
		{name: "Gitea (pull request merged)", long: true, kill: func(t *testing.T, found *killedSteps) {
			killDuringProposal(t, found, proposal{merge: "now", variant: 2, movesBranch: true})
		}},
		{name: "Gitea (pull request opened)", long: true, kill: func(t *testing.T, found *killedSteps) {
			killDuringProposal(t, found, proposal{merge: "none", variant: 2, openRequests: 1})
		}},
		{name: "Gitea (pull request closed)", long: true, kill: func(t *testing.T, found *killedSteps) {
			killDuringProposal(t, found, proposal{merge: "none", variant: 0})
		}},
	} {
		if server.long && reliabilitytest.Count(0, 1) == 0 {
			continue
		}
		t.Run(server.name, func(t *testing.T) {
			t.Parallel()
			var found killedSteps
			server.kill(t, &found)
			found.report(t, order, server.name)
		})
	}
}

// proposal describes a pull request on Gitea and its expected outcome.
type proposal struct {
	merge        string
	variant      int
	movesBranch  bool // by a merge
	openRequests int  // after the apply
}

func killDuringProposal(t *testing.T, found *killedSteps, expected proposal) {
	t.Helper()
	w := &webWatcher{}
	p := newGiteaRepository(t, w.wrap)
	p.delivery = map[string]string{"mode": "pull_request", "forge": "gitea", "merge": expected.merge}
	from := 2 - expected.variant
	for _, n := range []int{expected.variant, from} { // the lookup of a first request differs
		p.apply(n)
	}
	forEachStep(t, p.inputFor(expected.variant), w, func(at step) {
		p.apply(from)
		before, wantHash := branchTip(t, p.cloneAndCheck(), branch)
		if expected.movesBranch {
			wantHash = p.contents[expected.variant]
		}
		killed := killAt(t, p.inputFor(expected.variant), w, at)
		commit, hash := branchTip(t, p.cloneAndCheck(), branch)
		if commit != before && (hash != wantHash || !expected.movesBranch) {
			t.Errorf("the branch is at commit %s with tree %s, neither before nor after the apply", commit, hash)
		}
		if killed {
			found.add(at.Name, commit != before)
		}
		p.checkProposal(expected.variant, wantHash, expected.openRequests)
	})
}

// checkProposal applies the proposal again. The branch then has this tree, and as many open requests for the variant. One more
// apply changes nothing.
func (p *killRepository) checkProposal(n int, wantHash string, open int) {
	p.t.Helper()
	p.apply(n)
	look := func() (string, []giteaPullRequest) {
		p.t.Helper()
		directory := p.cloneAndCheck()
		commit, hash := branchTip(p.t, directory, branch)
		if hash != wantHash {
			p.t.Errorf("the branch has tree %s, want %s", hash, wantHash)
		}
		all, found := p.requests(), 0
		for _, one := range all {
			if one.State != "open" {
				continue
			}
			found++
			if hash := contentHash(p.t, directory, one.Head.SHA); hash != p.contents[n] {
				p.t.Errorf("the open request proposes tree %s, want %s", hash, p.contents[n])
			}
		}
		if found != open {
			p.t.Errorf("%d requests are open, want %d", found, open)
		}
		return commit, all
	}
	commit, all := look()
	p.apply(n)
	if again, now := look(); again != commit || !slices.Equal(now, all) {
		p.t.Errorf("one more apply was not empty: the branch is at %s, was at %s; the requests are %+v, were %+v", again, commit, now, all)
	}
}

// killAtEachStep kills while the branch goes from the first variant to another.
func killAtEachStep(t *testing.T, killed *killedSteps, w watcher, newRepository func(*testing.T) *killRepository) {
	t.Helper()
	const n = 2
	p := newRepository(t)
	defer p.finish()
	forEachStep(t, p.inputFor(n), w, func(at step) {
		p := newRepository(t)
		if p.state != nil {
			p.apply(0)
		}
		before, _ := branchTip(t, p.cloneAndCheck(), branch)
		if killAt(t, p.inputFor(n), w, at) {
			killed.add(at.Name, p.checkAfterKill(before, n))
		}
		p.checkConvergence(before, n)
		if p.hasOnlyProviders() {
			p.checkClean()
		}
	})
}

// forEachStep records the steps of an undisturbed apply, and calls do for each, or for a sample.
func forEachStep(t *testing.T, w applyInput, watcher watcher, do func(step)) {
	t.Helper()
	provider := startProviderProcess(t, w, watcher.environment()...)
	watcher.watch(noStep, nil)
	provider.proceed()
	if !provider.wait() {
		t.Fatal("an undisturbed apply failed")
	}
	provider.waitForChildren()
	steps := watcher.steps()
	if len(steps) == 0 {
		t.Fatal("got no steps")
	}
	watcher.watch(noStep, nil)
	for i := 0; i < len(steps); i += reliabilitytest.Count(6, 1) {
		do(steps[i])
		if t.Failed() {
			t.Fatalf("the kill at step %s has errors", steps[i].Name)
		}
	}
}

// killAt kills a provider at a step, waits for its children, and reports whether it reached the step.
func killAt(t *testing.T, w applyInput, watcher watcher, at step) (killed bool) {
	t.Helper()
	provider := startProviderProcess(t, w, watcher.environment()...)
	watcher.watch(at, provider.kill)
	provider.onApplied = func() { watcher.watch(noStep, nil) } // no kill after the last response
	provider.proceed()
	provider.wait()
	provider.waitForChildren()
	watcher.watch(noStep, nil)
	status, ok := provider.command.ProcessState.Sys().(syscall.WaitStatus)
	killed = ok && status.Signal() == syscall.SIGKILL
	if !killed && !strings.HasPrefix(at.Name, "GET") { // the number of polls for readiness varies
		t.Errorf("the provider did not reach step %s", at.Name)
	}
	return killed
}
