package git

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
)

// Tip is a commit with its fetched objects. It is not safe for concurrent use.
type Tip struct {
	// Commit and Root are zero if the branch does not exist.
	Commit Hash
	Root   Hash
	// Missing means a local path at which Connector.Create can create the repository.
	Missing bool
	// Conflict is an existing branch that prevents a missing one: Git cannot have env and env/dev.
	Conflict string

	from  Hash      // the tip of the branch, which leads to the commit
	depth int       // of the commits that Need fetches from there if the server gives no objects by id
	next  fetchStep // of Need
	*fetcher
}

// Open reads a commit and the upper levels of its trees, counted from 1, the root. A missing branch or local repository is a
// Tip without a commit. The caller closes the Tip.
func (c *Connector) Open(ctx context.Context, remote Remote, levels int) (*Tip, error) {
	directory, local, err := remote.local()
	if err != nil {
		return nil, err
	}
	if local && missingLocal(directory) {
		return &Tip{Missing: true, fetcher: newFetcher(nil, nil, c.logAbout(remote))}, nil
	}
	w, err := c.dial(remote)
	if err != nil {
		return nil, err
	}
	return openTip(ctx, w, remote.Branch, levels, c.logAbout(remote))
}

// OpenPatiently is Open with retries for a busy server.
func (c *Connector) OpenPatiently(ctx context.Context, remote Remote, levels int) (*Tip, error) {
	return retryTransient(ctx, c, remote, func() (*Tip, error) { return c.Open(ctx, remote, levels) })
}

func retryTransient[T any](ctx context.Context, c *Connector, remote Remote, ask func() (T, error)) (T, error) {
	for try := 1; ; try++ {
		answer, err := ask()
		if err == nil || !Transient(err) || try == maxTries {
			return answer, err
		}
		c.Log(ctx, remote, "the repository did not answer; asking again", map[string]any{"try": try, "error": err})
		if err := waitToTry(ctx, try); err != nil {
			return answer, err
		}
	}
}

// openTip closes the wire after an error.
func openTip(ctx context.Context, w wire, branch string, levels int, log Logger) (t *Tip, err error) {
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	began := time.Now()
	commit, advertised, err := branchTip(ctx, w, branch)
	if err != nil {
		return nil, err
	}
	log(ctx, "looked at the branch", map[string]any{"commit": commit.String(), "took": time.Since(began)})
	if advertised == nil {
		if err := checkEmpty(ctx, w); err != nil {
			return nil, err
		}
	}
	if advertised == nil || commit.IsZero() {
		w.close()
		f := newFetcher(w, advertised, log)
		return &Tip{Conflict: f.ConflictOf(branch), fetcher: f}, nil
	}
	if t, err = openCommit(ctx, w, commit, advertised, levels, log); err != nil {
		return nil, fmt.Errorf("branch %q cannot be fetched: %w", branch, err)
	}
	return t, nil
}

// conflictOf returns the first branch that is a folder of the other's name, or the reverse.
func conflictOf(branch string, references map[string]Hash) string {
	var conflicts []string
	for ref := range references {
		other, isBranch := strings.CutPrefix(ref, refName("").String())
		if isBranch && (strings.HasPrefix(other, branch+"/") || strings.HasPrefix(branch, other+"/")) {
			conflicts = append(conflicts, other)
		}
	}
	if len(conflicts) == 0 {
		return ""
	}
	return slices.Min(conflicts)
}

// checkEmpty returns an error if an empty repository has another hash. A push reports other problems.
func checkEmpty(ctx context.Context, w wire) error {
	_, err := w.push(ctx, nil, func(*packp.AdvRefs) (*packp.ReferenceUpdateRequest, error) { return nil, errMoved })
	if errors.Is(err, errOtherHash) {
		return err
	}
	return ctx.Err()
}

func openCommit(ctx context.Context, w wire, commit Hash, advertised *packp.AdvRefs, levels int, log Logger) (*Tip, error) {
	t := &Tip{Commit: commit, from: commit, depth: 1, fetcher: newFetcher(w, advertised, log)}
	if err := t.inSteps(ctx, func() error { return t.fetchCommit(ctx, levels) }); err != nil {
		return nil, err
	}
	return t, t.readRoot()
}

// Close closes the connection. The fetched objects remain usable.
func (f *fetcher) Close() {
	if f.wire != nil {
		f.wire.close()
	}
}

// Reference returns the tip of another branch, at the time of opening.
func (f *fetcher) Reference(branch string) Hash { return f.references[refName(branch).String()] }

// ConflictOf is Conflict for another branch.
func (f *fetcher) ConflictOf(branch string) string { return conflictOf(branch, f.references) }

// At returns another commit, which shares the objects.
func (t *Tip) At(commit, root Hash) *Tip {
	return &Tip{Commit: commit, Root: root, from: commit, depth: 1, fetcher: t.fetcher}
}

func (t *Tip) readRoot() error {
	commit := t.objectStore[t.Commit]
	if commit.Kind != plumbing.CommitObject {
		return errors.New("its tip is not a commit")
	}
	head, err := ParseCommitHead(commit.Content)
	if err != nil {
		return fmt.Errorf("its tip %w", err)
	}
	t.Root = head.Tree
	return nil
}
