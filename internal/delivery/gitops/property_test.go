package gitops_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/gittest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/reliabilitytest"
)

// TestRandomEditsAndForeignChanges plays sequences of applies, destroys, losses
// of state and changes by hand against git, and compares the branch with a model
// after each step.
func TestRandomEditsAndForeignChanges(t *testing.T) {
	t.Parallel()
	for i, serving := range someServings(t) {
		t.Run(serving.name, func(t *testing.T) {
			t.Parallel()
			r := newRepository(t, serving)
			m := newModel(t, gitBranch{r}, r.remote, newClient(gitops.BranchOptions{}), uint64(i))
			m.playSequence(reliabilitytest.Count(15, 25))
			r.fsck()
		})
	}
}

// TestReliabilityRandomSequences plays many more sequences against a repository
// in memory. All objects that come of it go through git's strict checks, and of
// the files after each step git makes trees of its own. Sequence n is that of
// seed n.
func TestReliabilityRandomSequences(t *testing.T) {
	t.Parallel()
	const batch = 25
	sequences := uint64(reliabilitytest.Count(acceptancetest.Count(batch, 2*batch), 10000))
	var applied, refused, tips atomic.Int64
	t.Run("seeds", func(t *testing.T) {
		for first := uint64(0); first < sequences; first += batch {
			t.Run(fmt.Sprintf("%d-%d", first, first+batch-1), func(t *testing.T) {
				t.Parallel()
				var repositories []*gittest.MemoryRepository
				var files bytes.Buffer // for git fast-import
				var trees []string     // what it has to come to
				for seed := first; seed < first+batch; seed++ {
					r := gittest.NewRepository(seed%2 == 0)
					repositories = append(repositories, r)
					client := gitops.NewBranchClient(gitops.BranchOptions{Git: git.NewConnector(git.ConnectorOptions{Over: r})})
					m := newModel(t, memoryBranch{r}, git.Remote{IsGitOps: true, URL: "http://memory/r", Branch: "main"}, client, seed)
					m.goesBack = seed%2 == 0
					m.after = func() {
						if tree := r.Tree("main"); !tree.IsZero() {
							r.Import(&files, "main")
							trees = append(trees, tree.String())
						}
					}
					m.playSequence(10)
					applied.Add(int64(m.applied))
					refused.Add(int64(m.refused))
				}
				directory := t.TempDir()
				run(t, directory, "git", "init", "--quiet", "--bare")
				feed(t, directory, gittest.Pack(repositories...), "index-pack", "--strict", "--stdin")
				feed(t, directory, files.Bytes(), "fast-import", "--quiet")
				made := strings.Fields(run(t, directory, "git", "log", "--reverse", "--format=%T", "check"))
				if !slices.Equal(made, trees) {
					t.Error("git makes other trees of the same files")
				}
				tips.Add(int64(len(trees)))
			})
		}
	})
	reliabilitytest.Report(
		t,
		"55-sequences",
		"random sequences of 10 edits, prunes and foreign changes",
		"in memory, checked by git",
		fmt.Sprint(sequences),
		fmt.Sprintf(
			"%d applies, %d of them refused as conflicts; foreign files byte-identical, owned folders as wanted; the trees of %d tips are git's own",
			applied.Load(),
			refused.Load(),
			tips.Load(),
		),
	)
}
