package git

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
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
	w, err := c.dialExisting(remote)
	if errors.Is(err, ErrNotFound) {
		return &Tip{Missing: true, fetcher: newFetcher(nil, nil, c.logAbout(remote))}, nil
	}
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

// ConflictOf is Conflict for another branch: the first one that is a folder of the other's name, or the reverse.
func (f *fetcher) ConflictOf(branch string) string {
	var conflicts []string
	for ref := range f.references {
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

// RefError means that a name has no branch, tag or commit, or several.
type RefError struct {
	Why string // a sentence without its full stop
}

func (e *RefError) Error() string { return e.Why }

const (
	branchPrefix = "refs/heads/"
	tagPrefix    = "refs/tags/"
)

var shortPattern = regexp.MustCompile(`^[0-9a-f]{4,39}$`)

// CheckRef accepts a branch or tag, with or without refs/heads/ or refs/tags/, a commit's full id, and "", the default branch.
func CheckRef(ref string) error {
	if ref == "" || CheckCommit(ref) == nil {
		return nil
	}
	name, isBranch := strings.CutPrefix(ref, branchPrefix)
	if !isBranch {
		name = strings.TrimPrefix(ref, tagPrefix)
	}
	switch {
	case len(ref) > maxRef:
		return fmt.Errorf("the ref is longer than %d bytes", maxRef)
	case strings.HasPrefix(name, "refs/"):
		return fmt.Errorf("ref %q is neither a branch (refs/heads/) nor a tag (refs/tags/)", ref)
	case name == "" || name[0] == '-' || strings.Contains(name, "..") || strings.ContainsAny(name, " ~^:?*[\\\x7f") ||
		strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == '\ufffd' }):
		return fmt.Errorf("ref %q is not the name of a branch or tag, nor the full id of a commit", ref)
	}
	return nil
}

const maxRef = 1024

// OpenRef opens a ref as in CheckRef, or HEAD, in place of the remote's branch, with retries for a busy server. A missing ref
// is a *RefError, a missing repository ErrNotFound.
func (c *Connector) OpenRef(ctx context.Context, remote Remote, ref string, levels int) (*Tip, error) {
	remote.Branch = ref // for logs
	return retryTransient(ctx, c, remote, func() (*Tip, error) {
		w, err := c.dialExisting(remote)
		if err != nil {
			return nil, err
		}
		t, err := openRef(ctx, w, ref, levels, c.logAbout(remote))
		if err != nil {
			w.close()
		}
		return t, err
	})
}

// Refs are the branches and tags at the time of the request.
type Refs struct{ advertised *packp.AdvRefs }

// Refs requests the branches and tags, with retries for a busy server. A missing repository is ErrNotFound.
func (c *Connector) Refs(ctx context.Context, remote Remote) (*Refs, error) {
	return retryTransient(ctx, c, remote, func() (*Refs, error) {
		w, err := c.dialExisting(remote)
		if err != nil {
			return nil, err
		}
		defer w.close()
		advertised, err := advertisedBy(ctx, w)
		return &Refs{advertised}, err
	})
}

// dialExisting returns ErrNotFound for a missing local repository alone, because dial makes no request.
func (c *Connector) dialExisting(remote Remote) (wire, error) {
	directory, local, err := remote.local()
	if err == nil && local && missingLocal(directory) {
		err = fmt.Errorf("%w: there is nothing at this path", ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	return c.dial(remote)
}

// Commit reads a ref like OpenRef.
func (r *Refs) Commit(ref string) (Hash, error) {
	if r.advertised == nil {
		return Hash{}, &RefError{"the repository is empty"}
	}
	return resolveRef(r.advertised, ref)
}

// Tags returns the names of all tags, sorted.
func (r *Refs) Tags() []string {
	if r.advertised == nil {
		return nil
	}
	var tags []string
	for name := range r.advertised.References {
		if tag, ok := strings.CutPrefix(name, tagPrefix); ok {
			tags = append(tags, tag)
		}
	}
	slices.Sort(tags)
	return tags
}

func openRef(ctx context.Context, w wire, ref string, levels int, log Logger) (*Tip, error) {
	began := time.Now()
	advertised, err := advertisedBy(ctx, w)
	if err != nil {
		return nil, err
	}
	commit, err := (&Refs{advertised}).Commit(ref)
	if err != nil {
		return nil, err
	}
	log(ctx, "looked at the ref", map[string]any{"commit": commit.String(), "took": time.Since(began)})
	t, err := openCommit(ctx, w, commit, advertised, levels, log)
	// Servers that give no commits by id have their own words for that.
	refused := err != nil && (strings.Contains(err.Error(), "not our ref") ||
		!advertised.Capabilities.Supports(capability.AllowReachableSHA1InWant) && ctx.Err() == nil && Classify(err) == nil)
	if refused && CheckCommit(ref) == nil {
		return nil, &RefError{fmt.Sprintf("there is no commit %s, or its server does not give it", ref)}
	}
	if err != nil && ref == "" {
		return nil, fmt.Errorf("the default branch cannot be fetched: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("ref %q cannot be fetched: %w", ref, err)
	}
	return t, nil
}

func resolveRef(advertised *packp.AdvRefs, ref string) (Hash, error) {
	if ref == "" || ref == "HEAD" {
		if advertised.Head == nil {
			return Hash{}, &RefError{"the repository has no default branch: its HEAD refers to a branch that does not exist; give a branch"}
		}
		return *advertised.Head, nil
	}
	if id, err := ParseID(ref); err == nil {
		return id, mayAskFor(advertised, id)
	}
	at := func(name string) (Hash, bool) {
		if id, ok := advertised.Peeled[name]; ok { // an annotated tag
			return id, true
		}
		id, ok := advertised.References[name]
		return id, ok
	}
	if strings.HasPrefix(ref, branchPrefix) || strings.HasPrefix(ref, tagPrefix) {
		if id, ok := at(ref); ok {
			return id, nil
		}
		return Hash{}, missingRef(advertised, ref)
	}
	branch, isBranch := at(branchPrefix + ref)
	tag, isTag := at(tagPrefix + ref)
	switch {
	case isBranch && isTag && branch != tag:
		return Hash{}, &RefError{
			fmt.Sprintf("%q is a branch and a tag, at different commits: write %s%s or %s%s", ref, branchPrefix, ref, tagPrefix, ref),
		}
	case isBranch:
		return branch, nil
	case isTag:
		return tag, nil
	}
	return Hash{}, missingRef(advertised, ref)
}

// mayAskFor returns an error if a server gives no commits by id. Azure Repos does without advertising it; see mayTakeIDs.
func mayAskFor(advertised *packp.AdvRefs, id Hash) error {
	if advertised.Capabilities.Supports(capability.AllowReachableSHA1InWant) ||
		(&fetcher{capabilities: advertised.Capabilities}).mayTakeIDs() {
		return nil
	}
	for name, tip := range advertised.References {
		if peeled, ok := advertised.Peeled[name]; ok {
			tip = peeled
		}
		if tip == id {
			return nil
		}
	}
	return &RefError{fmt.Sprintf("no branch or tag is at commit %s, and its server gives no other commits "+
		"(git's uploadpack.allowReachableSHA1InWant is off): make a tag for the commit", id)}
}

func missingRef(advertised *packp.AdvRefs, ref string) error {
	if shortPattern.MatchString(ref) {
		return &RefError{fmt.Sprintf("there is no branch or tag %q; the id of a commit has to be whole, 40 hexadecimal digits", ref)}
	}
	var names []string
	kind, prefixes := "branch or tag", []string{branchPrefix, tagPrefix}
	for _, known := range []struct{ kind, prefix string }{{"branch", branchPrefix}, {"tag", tagPrefix}} {
		if strings.HasPrefix(ref, known.prefix) {
			kind, prefixes = known.kind, []string{known.prefix}
		}
	}
	for name := range advertised.References {
		for _, prefix := range prefixes {
			if short, ok := strings.CutPrefix(name, prefix); ok {
				names = append(names, short)
			}
		}
	}
	short := strings.TrimPrefix(strings.TrimPrefix(ref, branchPrefix), tagPrefix)
	return &RefError{fmt.Sprintf("there is no %s %q%s", kind, short, wording.DidYouMean(short, slices.Sorted(slices.Values(names))))}
}
