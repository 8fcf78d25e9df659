package git

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
)

// Tip is one commit of a branch, with those of its objects that were fetched.
// It is not safe for concurrent use.
type Tip struct {
	// Commit is zero when the branch does not exist.
	Commit Hash
	// Root is the commit's tree; zero when the branch does not exist.
	Root Hash
	// Missing says that the repository itself does not exist: a local path that
	// Client.Create makes one of.
	Missing bool
	// Conflict is a branch beside which the branch, which does not exist, cannot be created: Git has no env beside env/dev. "" for none.
	Conflict string

	whole bool // all objects of the commit were fetched
	*fetcher
}

// Open reads where the remote's branch is, and the upper levels of its trees.
// levels counts from 1, the root tree. A branch, or a local repository, that
// does not exist is a Tip without a commit. The caller closes the Tip.
func (c *Client) Open(ctx context.Context, remote Remote, levels int) (*Tip, error) {
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

// OpenPatiently is Open for callers that wait when the server is busy: it asks
// several times.
func (c *Client) OpenPatiently(ctx context.Context, remote Remote, levels int) (*Tip, error) {
	return patiently(ctx, c, remote, func() (*Tip, error) { return c.Open(ctx, remote, levels) })
}

func patiently[T any](ctx context.Context, c *Client, remote Remote, ask func() (T, error)) (T, error) {
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

// openTip opens the tip of a branch. After an error the wire is closed.
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
		return &Tip{Conflict: conflictOf(branch, advertised), fetcher: newFetcher(w, advertised, log)}, nil
	}
	if t, err = openCommit(ctx, w, commit, advertised, levels, log); err != nil {
		return nil, fmt.Errorf("branch %q cannot be fetched: %w", branch, err)
	}
	return t, nil
}

// conflictOf returns the first branch whose name is a folder of another one's name, or the other way round; "" for none.
func conflictOf(branch string, advertised *packp.AdvRefs) string {
	if advertised == nil {
		return ""
	}
	var conflicts []string
	for ref := range advertised.References {
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

// checkEmpty says whether an empty repository takes the objects of this client. How it names objects it says only to who
// pushes; whatever else is wrong with that is for a push to say.
func checkEmpty(ctx context.Context, w wire) error {
	_, err := w.push(ctx, func(*packp.AdvRefs) (*packp.ReferenceUpdateRequest, error) { return nil, errMoved })
	if errors.Is(err, errOtherHash) {
		return err
	}
	return ctx.Err()
}

// openCommit fetches a commit that the server may be asked for.
func openCommit(ctx context.Context, w wire, commit Hash, advertised *packp.AdvRefs, levels int, log Logger) (*Tip, error) {
	t := &Tip{Commit: commit, fetcher: newFetcher(w, advertised, log)}
	if err := t.inSteps(ctx, func() error { return t.fetchCommit(ctx, levels) }); err != nil {
		return nil, err
	}
	return t, t.readRoot()
}

// Close ends what may still be open. The Tip can be used on.
func (f *fetcher) Close() {
	if f.wire != nil {
		f.wire.close()
	}
}

// Reference is the tip of another branch, as of when this one was opened; zero
// when there is none.
func (f *fetcher) Reference(branch string) Hash { return f.references[refName(branch).String()] }

// At is another commit of the repository, whose root tree is known. What is
// fetched for the one is there for the other.
func (t *Tip) At(commit, root Hash) *Tip {
	return &Tip{Commit: commit, Root: root, fetcher: t.fetcher}
}

// apart is the same repository for a request that may fail: an error does not
// change how the tip is fetched.
func (t *Tip) apart() *Tip {
	same := *t.fetcher
	return &Tip{Commit: t.Commit, Root: t.Root, fetcher: &same}
}

func (t *Tip) readRoot() error {
	commit := t.objects[t.Commit]
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

// Has reports whether an object is here.
func (f *fetcher) Has(id Hash) bool {
	_, ok := f.objects[id]
	return ok || id == EmptyTree
}

// Fetched are the objects that are here, in no order.
func (f *fetcher) Fetched() iter.Seq2[Hash, Object] { return maps.All(f.objects) }

// Entries reads a tree that is here.
func (f *fetcher) Entries(id Hash) ([]Entry, error) {
	if id == EmptyTree {
		return nil, nil
	}
	o, ok := f.objects[id]
	if !ok {
		return nil, fmt.Errorf("tree %s was not fetched", id)
	}
	if o.Kind != plumbing.TreeObject {
		return nil, errMalformedTree
	}
	return ParseTree(o.Content)
}

// Blob reads a file that is here.
func (f *fetcher) Blob(id Hash) ([]byte, error) {
	o, ok := f.objects[id]
	if !ok || o.Kind != plumbing.BlobObject {
		return nil, fmt.Errorf("blob %s was not fetched", id)
	}
	return o.Content, nil
}
