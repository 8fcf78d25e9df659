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

// TestRandomEditsAndForeignChanges plays sequences of applies, destroys, lost states and changes by hand in git repositories. It
// compares the branch with a model after each step.
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

// TestReliabilityRandomSequences plays many more sequences in memory. Git checks all resulting objects strictly, and computes the
// trees from the files after each step. Sequence n has seed n.
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
				var trees []string     // the expected trees
				for seed := first; seed < first+batch; seed++ {
					r := gittest.NewRepository(seed%2 == 0)
					repositories = append(repositories, r)
					client := gitops.NewBranchClient(gitops.BranchOptions{Git: git.NewConnector(git.ConnectorOptions{Over: r})})
					m := newModel(t, memoryBranch{r}, git.Remote{IsGitOps: true, URL: "http://memory/r", Branch: "main"}, client, seed)
					m.canRollBack = seed%2 == 0
					m.afterStep = func() {
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
				computed := strings.Fields(run(t, directory, "git", "log", "--reverse", "--format=%T", "check"))
				if !slices.Equal(computed, trees) {
					t.Error("git computes other trees from the same files")
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
