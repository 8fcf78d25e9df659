package provider_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/compliance"
	gitclient "github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/gittest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/reliabilitytest"
)

type memoryWorld struct {
	t      *testing.T
	host   *gittest.Host
	byName map[string]*gittest.MemoryRepository
}

func newMemoryWorld(t *testing.T, filters bool) *memoryWorld {
	w := &memoryWorld{t: t, host: gittest.NewHost(), byName: map[string]*gittest.MemoryRepository{}}
	for _, name := range w.repositories() {
		w.byName[name] = w.host.Create("team/"+name, filters)
		w.host.Alias("mirrors/"+name, w.byName[name])
	}
	return w
}

func (w *memoryWorld) start() (tfprotov6.ProviderServer, error) {
	return provider.StartWith(nil, gitclient.ConnectorOptions{Over: w.host})()
}

func (w *memoryWorld) startAt(clock compliance.Clock) providertest.Start {
	return provider.StartWith(clock, gitclient.ConnectorOptions{Over: w.host})
}

func (w *memoryWorld) repositories() []string { return []string{"one", "two"} }

func (w *memoryWorld) spell(repository string, spelling int) string {
	return fmt.Sprintf([]string{
		"https://git.example.com/team/%s.git", "https://git.example.com/team/%s", "https://git.example.com/team/%s/",
		"https://GIT.example.com/team/%s.git", "https://mirror.example.com/mirrors/%s",
	}[spelling], repository)
}

func (w *memoryWorld) files(repository, branch string) map[string]string {
	if w.byName[repository].Tip(branch).IsZero() {
		return nil
	}
	return w.byName[repository].Files(branch)
}

func (w *memoryWorld) commit(repository, branch string, files map[string]string) {
	w.byName[repository].Write(branch, files)
}

func (w *memoryWorld) commits(repository, branch string) int {
	return w.byName[repository].Commits(branch, gitclient.Hash{})
}

func (w *memoryWorld) tip(repository, branch string) string {
	if tip := w.byName[repository].Tip(branch); !tip.IsZero() {
		return tip.String()
	}
	return ""
}

func (w *memoryWorld) check() {
	for _, repository := range w.byName {
		directory := w.t.TempDir()
		gittest.Run(w.t, directory, "git", "init", "--quiet", "--bare")
		gittest.Feed(w.t, directory, gittest.Pack(repository), "index-pack", "--strict", "--stdin")
	}
}

// TestReliabilitySequencesOfAssignments checks random sequences of renames, moves, other spellings of URLs, replacements, lost states,
// imports, changes by hand and two owners with one name. A folder leaves a branch only if a plan showed it and protection allowed it.
// No state gets stuck.
func TestReliabilitySequencesOfAssignments(t *testing.T) {
	t.Parallel()
	const steps, batch = 50, 5
	sequences := reliabilitytest.Count(acceptancetest.Count(2, 8*batch), 400*batch)
	var all struct{ steps, applied, refused, removed, renamed atomic.Int64 }
	t.Run("seeds", func(t *testing.T) {
		for first := 0; first < sequences; first += batch {
			t.Run(fmt.Sprintf("%d-%d", first, first+batch-1), func(t *testing.T) {
				t.Parallel()
				for seed := uint64(first); seed < uint64(min(first+batch, sequences)); seed++ {
					world := newMemoryWorld(t, seed%2 == 0)
					runners := make([]providertest.Runner, 2)
					for i := range runners {
						workspace := providertest.New(world.start)
						workspace.RefreshesOrphans = seed%3 == 0
						runners[i] = workspace
					}
					s := newSequence(t, seed, world, runners...)
					s.logf("seed %d", seed)
					s.play(steps)
					all.steps.Add(int64(s.tally.steps))
					all.applied.Add(int64(s.tally.applied))
					all.refused.Add(int64(s.tally.refused))
					all.removed.Add(int64(s.tally.removed))
					all.renamed.Add(int64(s.tally.renamed))
				}
			})
		}
	})
	reliabilitytest.Report(t, "57-assignments",
		"random sequences of 50 renames, moves, respellings, replacements, lost states, imports and changes by hand",
		"in memory, through the provider", fmt.Sprint(sequences),
		fmt.Sprintf("%d steps, %d applies and %d refusals; %d folders removed, each shown by a plan and let by protection; %d renames and "+
			"respellings that changed no folder; foreign files byte-identical, no state stuck",
			all.steps.Load(), all.applied.Load(), all.refused.Load(), all.removed.Load(), all.renamed.Load()))
}
