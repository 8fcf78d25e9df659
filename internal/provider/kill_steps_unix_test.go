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

// foundSteps are the steps of one server at which providers were killed, in their order.
type foundSteps []foundStep

type foundStep struct {
	name  string
	after bool // the branch has the commit
}

func (found *foundSteps) add(name string, after bool) {
	*found = append(*found, foundStep{name, after})
}

// report writes the server's row.
func (found foundSteps) report(t *testing.T, order int, server string) {
	t.Helper()
	before, namesBefore := found.named(false)
	after, namesAfter := found.named(true)
	reliabilitytest.Report(t, fmt.Sprintf("51-killed-at-every-step-%d", order), "`kill -9` of the provider at each step", server,
		fmt.Sprint(before+after), fmt.Sprintf("%d before and %d after the commit, none between; the next apply converged. Before: %s. After: %s",
			before, after, namesBefore, namesAfter))
}

// named counts the steps before or after the commit, and names them, each request's together.
func (found foundSteps) named(after bool) (count int, names string) {
	var text strings.Builder
	last := ""
	for _, step := range found {
		if step.after != after {
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

// TestReliabilityKilledAtEveryStep kills providers at every step of an apply. In `make test`, aKilledProcess plays one kill.
func TestReliabilityKilledAtEveryStep(t *testing.T) {
	t.Parallel()
	acceptancetest.Only(t)
	for order, server := range []struct {
		name string
		kill func(*testing.T, *foundSteps)
		long bool // only when all is asked for
	}{
		{name: "http-backend", kill: func(t *testing.T, found *foundSteps) {
			w := &webWatcher{}
			p := backendPlace(t, w.before)
			killAtEachStep(t, found, w, func(*testing.T) *place { return p })
		}},
		{name: "Gitea", long: true, kill: func(t *testing.T, found *foundSteps) {
			w := &webWatcher{}
			p := giteaPlace(t, w.before)
			killAtEachStep(t, found, w, func(*testing.T) *place { return p })
		}},
		{name: "local path", kill: func(t *testing.T, found *foundSteps) {
			p := localPlace(t)
			killAtEachStep(t, found, newGitWatcher(t), func(*testing.T) *place { return p })
		}},
		{name: "local path (created)", kill: func(t *testing.T, found *foundSteps) {
			trees := learnCreated(t, missingPlace)
			killAtEachStep(t, found, newGitWatcher(t), func(t *testing.T) *place {
				p := missingPlace(t)
				p.trees = trees
				return p
			})
		}},
		{name: "Gitea (pull request merged)", long: true, kill: func(t *testing.T, found *foundSteps) {
			killWhileProposed(t, found, proposal{merge: "now", to: 2, moves: true})
		}},
		{name: "Gitea (pull request opened)", long: true, kill: func(t *testing.T, found *foundSteps) {
			killWhileProposed(t, found, proposal{merge: "none", to: 2, open: 1})
		}},
		{name: "Gitea (pull request closed)", long: true, kill: func(t *testing.T, found *foundSteps) {
			killWhileProposed(t, found, proposal{merge: "none", to: 0})
		}},
	} {
		if server.long && reliabilitytest.Count(0, 1) == 0 {
			continue
		}
		t.Run(server.name, func(t *testing.T) {
			t.Parallel()
			var found foundSteps
			server.kill(t, &found)
			found.report(t, order, server.name)
		})
	}
}

// proposal is what an apply proposes on Gitea, and what comes of it.
type proposal struct {
	merge string
	to    int  // variant
	moves bool // the branch, in the end
	open  int  // requests, in the end
}

// killWhileProposed kills at every step of an apply that proposes.
func killWhileProposed(t *testing.T, found *foundSteps, how proposal) {
	t.Helper()
	w := &webWatcher{}
	p := giteaPlace(t, w.before)
	p.delivery = map[string]string{"mode": "pull_request", "forge": "gitea", "merge": how.merge}
	from := 2 - how.to
	for _, n := range []int{how.to, from} { // a first request is looked for in other ways
		p.apply(n)
	}
	eachStep(t, p.wish(how.to), w, func(at step) {
		p.apply(from)
		before, tree := tip(t, p.look(), branch)
		if how.moves {
			tree = p.trees[how.to]
		}
		killed := killAt(t, p.wish(how.to), w, at)
		commit, is := tip(t, p.look(), branch)
		if commit != before && (is != tree || !how.moves) {
			t.Errorf("the branch is between: at commit %s with tree %s", commit, is)
		}
		if killed {
			found.add(at.Name, commit != before)
		}
		p.proposes(how.to, tree, how.open)
	})
}

// proposes applies what a killed provider was to propose: in the end the branch has this tree, as many
// requests are open, the variant is what they ask for, and one more apply changes nothing.
func (p *place) proposes(n int, tree string, open int) {
	p.t.Helper()
	p.apply(n)
	look := func() (string, []giteaPullRequest) {
		p.t.Helper()
		directory := p.look()
		commit, is := tip(p.t, directory, branch)
		if is != tree {
			p.t.Errorf("the branch has tree %s, want %s", is, tree)
		}
		all, found := p.requests(), 0
		for _, one := range all {
			if one.State != "open" {
				continue
			}
			found++
			if is := content(p.t, directory, one.Head.SHA); is != p.trees[n] {
				p.t.Errorf("the open request asks for tree %s, want %s", is, p.trees[n])
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
		p.t.Errorf("one more apply changed something: the branch is at %s, was at %s; the requests are %+v, were %+v", again, commit, now, all)
	}
}

// killAtEachStep kills at every step of what brings the branch from the first variant to another.
func killAtEachStep(t *testing.T, found *foundSteps, w watcher, newPlace func(*testing.T) *place) {
	t.Helper()
	const n = 2
	p := newPlace(t)
	defer p.end()
	eachStep(t, p.wish(n), w, func(at step) {
		p := newPlace(t)
		if p.state != nil {
			p.apply(0)
		}
		before, _ := tip(t, p.look(), branch)
		if killAt(t, p.wish(n), w, at) {
			found.add(at.Name, p.judge(before, n))
		}
		p.converges(before, n)
		if p.alone() {
			p.clean()
		}
	})
}

// eachStep lets a provider apply undisturbed, and calls do with all steps that there were; with some
// of them unless all are asked for.
func eachStep(t *testing.T, w wish, watcher watcher, do func(step)) {
	t.Helper()
	provider := newDoomed(t, w, watcher.environment()...)
	watcher.watch(never, nil)
	provider.proceed()
	if !provider.ends() {
		t.Fatal("an undisturbed apply failed")
	}
	provider.settles()
	steps := watcher.steps()
	if len(steps) == 0 {
		t.Fatal("no steps were seen")
	}
	watcher.watch(never, nil)
	for i := 0; i < len(steps); i += reliabilitytest.Count(6, 1) {
		do(steps[i])
		if t.Failed() {
			t.Fatalf("killed at the step %s", steps[i].Name)
		}
	}
}

// killAt lets a provider apply until it is killed at a step, and all that it started ends. It tells
// whether the provider came to that step.
func killAt(t *testing.T, w wish, watcher watcher, at step) (killed bool) {
	t.Helper()
	provider := newDoomed(t, w, watcher.environment()...)
	watcher.watch(at, provider.kill)
	provider.last = func() { watcher.watch(never, nil) } // the last answer comes before the kill
	provider.proceed()
	provider.ends()
	provider.settles()
	watcher.watch(never, nil)
	status, ok := provider.command.ProcessState.Sys().(syscall.WaitStatus)
	killed = ok && status.Signal() == syscall.SIGKILL
	if !killed && !strings.HasPrefix(at.Name, "GET") { // how often it asks whether the host is ready differs
		t.Errorf("the provider did not come to the step %s", at.Name)
	}
	return killed
}
