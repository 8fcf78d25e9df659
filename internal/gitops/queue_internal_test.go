package gitops

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
)

// Blobs is how many blobs were fetched for a view.
func (v *View) Blobs() (n int) {
	release, err := v.look.hold(context.Background())
	if err != nil {
		panic(err)
	}
	defer release()
	for _, o := range v.work.Fetched() {
		if o.Kind == plumbing.BlobObject {
			n++
		}
	}
	return n
}

func TestSeveralEditsShareACommitAndAPush(t *testing.T) {
	t.Parallel()
	remote := git.Remote{URL: filepath.Join(t.TempDir(), "r.git"), Branch: "main"}
	folder := func(content string) Folder {
		files := []git.File{{Name: "a", Content: []byte(content)}}
		id, _ := git.TreeID(files)
		return Folder{Tree: id, Files: func() ([]git.File, error) { return files, nil }}
	}
	edit := func(name, host string) Edit {
		return Edit{Owner: Owner{Name: name, Environment: name, Path: "p"}, Hosts: map[string]Host{host: {Folders: map[string]Folder{"app": folder(name)}}}}
	}
	// The third wants what the first has.
	var edits []*waiting
	for _, e := range []Edit{edit("one", "h1"), edit("two", "h2"), edit("three", "h1"), edit("four", "h4")} {
		edits = append(edits, newWaiting(context.Background(), e))
	}
	a := &application{client: NewClient(), remote: remote, edits: edits}
	a.run(func() bool { return len(a.open()) > 0 })
	for i, o := range edits {
		switch i {
		case 2:
			if !errors.Is(o.err, ErrConflict) || !strings.Contains(o.err.Error(), `"one"`) {
				t.Errorf("edit %d: %v", i, o.err)
			}
		default:
			if o.err != nil || !o.result.Committed || o.result.Pushes != 1 || len(o.result.Added) != 1 || o.result.Commit != edits[0].result.Commit {
				t.Errorf("edit %d: %+v", i, o)
			}
		}
	}
	output, err := exec.CommandContext(t.Context(), "git", "-C", remote.URL, "log", "--format=%B", "main").Output()
	want := "one, two, four\n\none: 1 added\n\nAdded:\n- h1/app\n\ntwo: 1 added\n\nAdded:\n- h2/app\n\nfour: 1 added\n\nAdded:\n- h4/app\n\n" +
		"Flotilla-Assignment: one\nFlotilla-Environment: one\nFlotilla-Assignment: two\nFlotilla-Environment: two\n" +
		"Flotilla-Assignment: four\nFlotilla-Environment: four\n\n"
	if err != nil || string(output) != want {
		t.Errorf("message = %q, %v\nwant %q", output, err, want)
	}
	if _, err := os.Stat(remote.URL); err != nil {
		t.Error(err)
	}
}
