package gitops

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

// Waiting is how many edits are in queues.
func (c *Client) Waiting() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, queue := range c.queues {
		n += len(queue)
	}
	return n
}

// late has a deadline that has passed, and does not know it yet.
type late struct{ context.Context }

func (late) Deadline() (time.Time, bool) { return time.Now().Add(-time.Millisecond), true }

func TestEachEditHasItsOwnContextsError(t *testing.T) {
	t.Parallel()
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	passed, stop := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer stop()
	refused := fmt.Errorf("%w: no", git.ErrRefused)
	unknown := fmt.Errorf("the push %w: %w", git.ErrUnknown, context.Canceled)
	for name, test := range map[string]struct {
		contexts []context.Context
		err      error   // of the attempt
		want     []error // nil: goes on
		whole    error   // for all that go on
	}{
		"a deadline that shows as a cancellation": {
			[]context.Context{passed, t.Context()}, context.Canceled, []error{context.DeadlineExceeded, nil}, nil,
		},
		"a deadline of which the context does not know": {
			[]context.Context{late{t.Context()}, t.Context()}, context.Canceled, []error{context.DeadlineExceeded, nil}, nil,
		},
		"a deadline that only a connection has seen": {
			[]context.Context{late{t.Context()}, t.Context()}, context.DeadlineExceeded, []error{context.DeadlineExceeded, nil}, nil,
		},
		"a cancellation and a deadline": {
			[]context.Context{cancelled, passed, t.Context()}, context.DeadlineExceeded, []error{context.Canceled, context.DeadlineExceeded, nil}, nil,
		},
		"a push of which nobody knows": {
			[]context.Context{passed, t.Context()}, unknown, []error{context.DeadlineExceeded, nil}, nil,
		},
		"a refusal of all": {
			[]context.Context{t.Context(), t.Context()}, refused, []error{nil, nil}, git.ErrRefused,
		},
		"a timeout that is nobody's": {
			[]context.Context{t.Context(), t.Context()}, context.DeadlineExceeded, []error{nil, nil}, context.DeadlineExceeded,
		},
	} {
		a := &application{client: NewClient()}
		for _, ctx := range test.contexts {
			a.edits = append(a.edits, newWaiting(ctx, Edit{}))
		}
		again, err := a.together(func(context.Context) (bool, error) { return false, test.err })
		if !errors.Is(err, test.whole) || again != (test.whole == nil) {
			t.Errorf("%s: %t, %v", name, again, err)
		}
		for i, w := range a.edits {
			if w.isDone() != (test.want[i] != nil) || !errors.Is(w.err, test.want[i]) {
				t.Errorf("%s: edit %d: done %t, %v", name, i, w.isDone(), w.err)
			}
			if errors.Is(test.err, git.ErrUnknown) && w.isDone() && !errors.Is(w.err, git.ErrUnknown) {
				t.Errorf("%s: edit %d: %v", name, i, w.err)
			}
		}
	}
}

func TestADeadlineOfOneEditIsADeadlineOfTheAttempt(t *testing.T) {
	t.Parallel()
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	a := &application{client: NewClient(), edits: []*waiting{newWaiting(t.Context(), Edit{}), newWaiting(short, Edit{})}}
	var seen error
	again, err := a.together(func(ctx context.Context) (bool, error) {
		<-ctx.Done()
		seen = ctx.Err()
		return false, seen
	})
	if !errors.Is(seen, context.DeadlineExceeded) || err != nil || !again || !errors.Is(a.edits[1].err, context.DeadlineExceeded) || a.edits[0].isDone() {
		t.Errorf("the attempt saw %v; %t, %v; %v", seen, again, err, a.edits[1].err)
	}
}
