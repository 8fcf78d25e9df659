package git_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/gittest"
)

func TestTreeIDEqualsGitWriteTree(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for i := 0; i < 30; i += acceptancetest.Count(6, 1) {
		directory := t.TempDir()
		gittest.Run(t, directory, "git", "init", "--quiet")
		var files []git.File
		for j := range 1 + i*2 {
			content := make([]byte, random.IntN(3000)*(j%3))
			for k := range content {
				content[k] = byte(random.Uint32())
			}
			name := fmt.Sprintf("%c-file.%d%s", 'A'+random.IntN(26), j, strings.Repeat("x", random.IntN(3)))
			// Some folders sort between files, and one is nested.
			name = []string{"", "", "objects/", "objects-2/", "objects.d/", "objects/deep/", "objects0/"}[random.IntN(7)] + name
			if err := os.MkdirAll(filepath.Dir(filepath.Join(directory, name)), 0o755); err != nil {
				t.Fatal(err)
			}
			files = append(files, git.File{Name: name, Content: content})
			if err := os.WriteFile(filepath.Join(directory, name), content, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		random.Shuffle(len(files), func(a, b int) { files[a], files[b] = files[b], files[a] })
		gittest.Run(t, directory, "git", "-c", "core.autocrlf=false", "add", ".")
		want := strings.TrimSpace(gittest.Run(t, directory, "git", "write-tree"))
		first := files[0].Name
		if got, err := git.TreeID(files); err != nil || got != want {
			t.Errorf("%d files: TreeID = %s, %v; git write-tree = %s", len(files), got, err, want)
		}
		if files[0].Name != first {
			t.Error("the files given were reordered")
		}
	}
}

func TestTreeIDRefusesUnsafeFolders(t *testing.T) {
	t.Parallel()
	many := make([]git.File, 0, 40)
	for i := range 39 {
		many = append(many, git.File{Name: fmt.Sprintf("file-%d", i)})
	}
	for name, files := range map[string][]git.File{
		"no files":                   nil,
		"a slash at the beginning":   {{Name: "/a"}},
		"a slash at the end":         {{Name: "a/"}},
		"two slashes":                {{Name: "a//b"}},
		"a way up":                   {{Name: "a/../b"}},
		".git below":                 {{Name: "a/.git"}},
		"a file and a folder":        {{Name: "a"}, {Name: "a-b"}, {Name: "a/b"}},
		"folders equal but for case": {{Name: "a/b"}, {Name: "A/c"}},
		"files below, but for case":  {{Name: "a/b"}, {Name: "a/B"}},
		"a folder and a file, case":  {{Name: "A/b"}, {Name: "a"}},
		"too many folders":           {{Name: strings.Repeat("a/", git.MaxDepth) + "b"}},
		"no name":                    {{Name: ""}},
		".git":                       {{Name: ".git"}},
		"two of a name":              {{Name: "a"}, {Name: "b"}, {Name: "a"}},
		"two equal but for case":     {{Name: "a.yaml"}, {Name: "b"}, {Name: "A.yaml"}},
		"two equal among many":       append(many, git.File{Name: "FILE-3"}),
		"a device":                   {{Name: "nul.yaml"}},
		"what is not [A-Za-z0-9._-]": {{Name: "a b"}},
	} {
		if id, err := git.TreeID(files); err == nil {
			t.Errorf("%s: TreeID = %s", name, id)
		}
	}
}

func BenchmarkTreeID(b *testing.B) {
	files := []git.File{
		{Name: "namespace.yaml", Content: []byte(strings.Repeat("kind: Namespace\n", 10))},
		{Name: "platform-config.yaml", Content: []byte(strings.Repeat("REGION: west-us\n", 60))},
		{Name: "policy.yaml", Content: []byte(strings.Repeat("kind: RoleBinding\n", 40))},
		{Name: "reconciler.yaml", Content: []byte(strings.Repeat("kind: Kustomization\n", 50))},
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := git.TreeID(files); err != nil {
			b.Fatal(err)
		}
	}
}
