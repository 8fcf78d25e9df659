package provider_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/gittest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/reliabilitytest"
)

type bareWorld struct {
	t      *testing.T
	folder string
}

func newBareWorld(t *testing.T) *bareWorld {
	w := &bareWorld{t: t, folder: t.TempDir()}
	for _, name := range w.repositories() {
		gittest.Run(t, w.folder, "git", "init", "--quiet", "--bare", name+".git")
		if err := os.Symlink(name+".git", filepath.Join(w.folder, name+"-link")); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func (w *bareWorld) repositories() []string { return []string{"one", "two"} }

func (w *bareWorld) spell(repository string, spelling int) string {
	path := filepath.ToSlash(filepath.Join(w.folder, repository+".git"))
	switch spelling {
	case 1:
		return "file://" + path
	case 2:
		return path + "/"
	case 3:
		return filepath.ToSlash(filepath.Join(w.folder, repository+"-link"))
	case 4:
		return filepath.ToSlash(w.folder) + "/./" + repository + ".git"
	}
	return path
}

func (w *bareWorld) git(repository string, input []byte, arguments ...string) (string, error) {
	if input != nil {
		gittest.Feed(w.t, filepath.Join(w.folder, repository+".git"), input, arguments...)
		return "", nil
	}
	if output, ok := gittest.Answer(filepath.Join(w.folder, repository+".git"), arguments...); ok {
		return output, nil
	}
	return gittest.TryRun(w.t, filepath.Join(w.folder, repository+".git"), "git", arguments...)
}

func (w *bareWorld) files(repository, branch string) map[string]string {
	return gittest.Files(w.t, filepath.Join(w.folder, repository+".git"), branch)
}

func (w *bareWorld) commit(repository, branch string, files map[string]string) {
	var stream bytes.Buffer
	fmt.Fprintf(&stream, "commit refs/heads/%s\ncommitter A <a@example.com> 0 +0000\ndata 7\nby hand\n", branch)
	if w.commits(repository, branch) > 0 {
		fmt.Fprintf(&stream, "from refs/heads/%s^0\n", branch)
	}
	stream.WriteString("deleteall\n")
	for name, content := range files {
		fmt.Fprintf(&stream, "M 100644 inline %s\ndata %d\n%s\n", name, len(content), content)
	}
	_, _ = w.git(repository, stream.Bytes(), "fast-import", "--quiet")
}

func (w *bareWorld) commits(repository, branch string) int {
	count, err := w.git(repository, nil, "rev-list", "--count", "refs/heads/"+branch)
	if err != nil {
		return 0 // no such branch
	}
	number, _ := strconv.Atoi(strings.TrimSpace(count))
	return number
}

func (w *bareWorld) tip(repository, branch string) string {
	tip, err := w.git(repository, nil, "rev-parse", "--verify", "--quiet", "refs/heads/"+branch)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(tip)
}

func (w *bareWorld) check() {
	for _, repository := range w.repositories() {
		if output, err := w.git(repository, nil, "fsck", "--strict", "--no-dangling"); err != nil {
			w.t.Errorf("git fsck: %s", output)
		}
	}
}

// Paths of local repositories have another spelling: symbolic links.
func TestSequencesOfAssignmentsInLocalRepositories(t *testing.T) {
	t.Parallel()
	for seed := range uint64(acceptancetest.Count(1, 3)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			newSequence(t, 1000+seed, newBareWorld(t), providertest.New(startProvider), providertest.New(startProvider)).play(25)
		})
	}
}

func TestReliabilitySequencesWithTerraform(t *testing.T) {
	t.Parallel()
	const steps = 20
	for name, tool := range acceptanceTools(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sequences := reliabilitytest.Count(4, 24)
			for seed := range uint64(sequences) {
				t.Run(fmt.Sprint(seed), func(t *testing.T) {
					t.Parallel()
					runners := make([]providertest.Runner, 2)
					for i := range runners {
						runners[i] = providertest.NewTerraform(t, tool, "flotilla/flotilla", startProvider)
					}
					newSequence(t, 2000+seed, newBareWorld(t), runners...).play(steps)
				})
			}
		})
	}
}
