//go:build unix

package provider_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/reliabilitytest"
)

// TestReliabilityKilledAtRandomMoments kills providers with SIGKILL while they apply, at moments that
// are spread evenly over the length of an undisturbed apply. The branch is always either before or
// after, and the next apply converges.
func TestReliabilityKilledAtRandomMoments(t *testing.T) {
	acceptancetest.Only(t)
	t.Parallel()
	asItIs := func(next http.Handler) http.Handler { return next }
	for i, server := range []struct {
		name  string
		kills int
		place func(*testing.T) *place
	}{
		{"local path", reliabilitytest.Count(4, 450), localPlace},
		{"local path, repository created", reliabilitytest.Count(3, 250), missingPlace},
		{"http, git's http-backend", reliabilitytest.Count(2, 250), func(t *testing.T) *place { return backendPlace(t, asItIs) }},
		{"http, Gitea", reliabilitytest.Count(1, 50), func(t *testing.T) *place { return giteaPlace(t, asItIs) }},
	} {
		t.Run(server.name, func(t *testing.T) {
			t.Parallel()
			moments := &moments{t: t, kills: server.kills}
			for moments.killed() < server.kills {
				moments.series(server.place)
			}
			reliabilitytest.Report(t, fmt.Sprintf("50-killed-at-random-moments-%d", i),
				"`kill -9` of the provider at random moments of an apply", server.name, fmt.Sprint(moments.killed()), moments.String())
		})
	}
}

// moments counts when providers were killed, by tenth of the length of an apply, the last going on
// to its end, and what was found.
type moments struct {
	t             *testing.T
	kills         int
	before, after [10]int
	late          int // applies that ended before they were killed
}

func (m *moments) killed() int {
	sum := 0
	for i := range m.before {
		sum += m.before[i] + m.after[i]
	}
	return sum
}

func (m *moments) String() string {
	before, kills := 0, make([]string, len(m.before))
	for i := range m.before {
		before += m.before[i]
		kills[i] = fmt.Sprint(m.before[i] + m.after[i])
	}
	return fmt.Sprintf(
		"%d before and %d after the commit, none between; the next apply converged. Kills by tenth of the apply: %s; %d more had ended before",
		before,
		m.killed()-before,
		strings.Join(kills, " "),
		m.late,
	)
}

// perSeries is how many providers one repository sees. The next series measures anew how long an apply
// takes.
const perSeries = 50

// series kills over one repository, or over as many as are created.
func (m *moments) series(newPlace func(*testing.T) *place) {
	m.t.Helper()
	p := newPlace(m.t)
	defer p.end()
	creates := !p.exists()
	trees, length, samples := p.trees, time.Duration(0), reliabilitytest.Count(1, 3)
	if creates {
		trees = learnCreated(m.t, newPlace)
		for n := range samples {
			length += undisturbed(m.t, newPlace(m.t).wish(n)) / time.Duration(samples)
		}
	} else {
		for n := range samples { // from 0, of which the first is large
			n = (n + 2) % variants
			length += undisturbed(m.t, p.wish(n)) / time.Duration(samples)
			p.apply(n)
		}
	}
	for i := 0; i < perSeries && m.killed() < m.kills; i++ {
		if creates {
			p = newPlace(m.t)
			p.trees = trees
		}
		tenth := m.rarest()
		at := float64(tenth) + rand.Float64()
		if tenth == len(m.before)-1 {
			at = float64(tenth) + 2*rand.Float64() // some applies take longer
		}
		m.kill(p, time.Duration(at/float64(len(m.before))*float64(length)), tenth, i%2 == 0)
	}
}

// rarest is one of the tenths in which the fewest were killed.
func (m *moments) rarest() int {
	order := rand.Perm(len(m.before))
	return slices.MinFunc(order, func(a, b int) int { return (m.before[a] + m.after[a]) - (m.before[b] + m.after[b]) })
}

// learnCreated is what undisturbed applies make of repositories that they create.
func learnCreated(t *testing.T, newPlace func(*testing.T) *place) (trees [variants]string) {
	t.Helper()
	for n := range variants {
		p := newPlace(t)
		p.apply(n)
		_, trees[n] = tip(t, p.look(), branch)
	}
	return trees
}

// kill kills one provider after a delay. Whatever it had started ends before the next apply begins, or
// goes on beside it.
func (m *moments) kill(p *place, delay time.Duration, tenth int, settled bool) {
	m.t.Helper()
	n := rand.IntN(variants)
	if p.state != nil && n == p.current {
		n = (n + 1) % variants
	}
	before, _ := tip(m.t, p.look(), branch)
	creates := !p.exists()
	provider := newDoomed(m.t, p.wish(n))
	provider.proceed()
	time.Sleep(delay)
	provider.kill()
	applied := provider.ends()
	after := p.judge(before, n)
	if settled {
		provider.settles()
	}
	p.converges(before, n)
	if !settled {
		provider.settles()
	}
	if p.alone() && (settled || !creates) { // else git may have gone on creating
		p.clean()
	}
	switch {
	case applied:
		m.late++
		if !after {
			m.t.Error("a provider said that it had applied, and the branch did not have it")
		}
	case after:
		m.after[tenth]++
	default:
		m.before[tenth]++
	}
}
