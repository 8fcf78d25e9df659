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

// TestReliabilityKilledAtRandomMoments spreads kills evenly over the duration of an apply. The branch is always before or after
// the apply, and the next apply converges.
func TestReliabilityKilledAtRandomMoments(t *testing.T) {
	acceptancetest.Only(t)
	t.Parallel()
	same := func(next http.Handler) http.Handler { return next }
	for i, server := range []struct {
		name          string
		kills         int
		newRepository func(*testing.T) *killRepository
	}{
		{"local path", reliabilitytest.Count(4, 450), newLocalRepository},
		{"local path, repository created", reliabilitytest.Count(3, 250), newMissingRepository},
		{"http, git's http-backend", reliabilitytest.Count(2, 250), func(t *testing.T) *killRepository { return newBackendRepository(t, same) }},
		{"http, Gitea", reliabilitytest.Count(1, 50), func(t *testing.T) *killRepository { return newGiteaRepository(t, same) }},
	} {
		t.Run(server.name, func(t *testing.T) {
			t.Parallel()
			moments := &killMoments{t: t, kills: server.kills}
			for moments.count() < server.kills {
				moments.killSeries(server.newRepository)
			}
			reliabilitytest.Report(t, fmt.Sprintf("50-killed-at-random-moments-%d", i),
				"`kill -9` of the provider at random moments of an apply", server.name, fmt.Sprint(moments.count()), moments.String())
		})
	}
}

// killMoments counts kills by tenth of the duration of an apply. The last tenth is open.
type killMoments struct {
	t             *testing.T
	kills         int
	before, after [10]int
	ended         int // applies that ended before the kill
}

func (m *killMoments) count() int {
	sum := 0
	for i := range m.before {
		sum += m.before[i] + m.after[i]
	}
	return sum
}

func (m *killMoments) String() string {
	before, kills := 0, make([]string, len(m.before))
	for i := range m.before {
		before += m.before[i]
		kills[i] = fmt.Sprint(m.before[i] + m.after[i])
	}
	return fmt.Sprintf(
		"%d before and %d after the commit, none between; the next apply converged. Kills by tenth of the apply: %s; %d more had ended before",
		before,
		m.count()-before,
		strings.Join(kills, " "),
		m.ended,
	)
}

// perSeries is the number of kills on one repository, and with one measured duration.
const perSeries = 50

// killSeries uses one repository, or a new one per kill if applies create it.
func (m *killMoments) killSeries(newRepository func(*testing.T) *killRepository) {
	m.t.Helper()
	p := newRepository(m.t)
	defer p.finish()
	creates := !p.exists()
	contents, length, samples := p.contents, time.Duration(0), reliabilitytest.Count(1, 3)
	if creates {
		contents = contentsOfCreated(m.t, newRepository)
		for n := range samples {
			length += measureUndisturbedApply(m.t, newRepository(m.t).inputFor(n)) / time.Duration(samples)
		}
	} else {
		for n := range samples { // the first is large: from variant 0 to 2
			n = (n + 2) % variants
			length += measureUndisturbedApply(m.t, p.inputFor(n)) / time.Duration(samples)
			p.apply(n)
		}
	}
	for i := 0; i < perSeries && m.count() < m.kills; i++ {
		if creates {
			p = newRepository(m.t)
			p.contents = contents
		}
		tenth := m.rarestTenth()
		at := float64(tenth) + rand.Float64()
		if tenth == len(m.before)-1 {
			at = float64(tenth) + 2*rand.Float64() // for slow applies
		}
		m.kill(p, time.Duration(at/float64(len(m.before))*float64(length)), tenth, i%2 == 0)
	}
}

func (m *killMoments) rarestTenth() int {
	order := rand.Perm(len(m.before))
	return slices.MinFunc(order, func(a, b int) int { return (m.before[a] + m.after[a]) - (m.before[b] + m.after[b]) })
}

func contentsOfCreated(t *testing.T, newRepository func(*testing.T) *killRepository) (contents [variants]string) {
	t.Helper()
	for n := range variants {
		p := newRepository(t)
		p.apply(n)
		_, contents[n] = branchTip(t, p.cloneAndCheck(), branch)
	}
	return contents
}

// kill kills a provider after a delay. If settled, its children end before the next apply.
func (m *killMoments) kill(p *killRepository, delay time.Duration, tenth int, settled bool) {
	m.t.Helper()
	n := rand.IntN(variants)
	if p.state != nil && n == p.current {
		n = (n + 1) % variants
	}
	before, _ := branchTip(m.t, p.cloneAndCheck(), branch)
	creates := !p.exists()
	provider := startProviderProcess(m.t, p.inputFor(n))
	provider.proceed()
	time.Sleep(delay)
	provider.kill()
	applied := provider.wait()
	after := p.checkAfterKill(before, n)
	if settled {
		provider.waitForChildren()
	}
	p.checkConvergence(before, n)
	if !settled {
		provider.waitForChildren()
	}
	if p.hasOnlyProviders() && (settled || !creates) { // otherwise a child may still create it
		p.checkClean()
	}
	switch {
	case applied:
		m.ended++
		if !after {
			m.t.Error("a provider reported success, but the branch lacks its commit")
		}
	case after:
		m.after[tenth]++
	default:
		m.before[tenth]++
	}
}
