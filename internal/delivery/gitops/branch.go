package gitops

import (
	"cmp"
	"context"
	"path"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wait"
)

// Branch is the tip of a branch, read once for all owners that are there. It does
// not change when the branch moves on. It is safe for concurrent use: requests
// are made one after the other, and waiting ends with the caller's context.
type Branch struct {
	remote git.Remote
	git    *git.Client
	lock   wait.Locks // one, while the tip is in use
	tip    *git.Tip
	levels int      // of trees that are here everywhere
	seen   *layout  // what was opened to find owners; its directories are never edited
	past   *lineage // the history of the tip, or of a later one

	signers *git.Verifier // nil: every record is believed
}

// ReadBranch reads the tip of a branch. owners may name some whose views will be asked
// for: their trees then come with the first request. A branch that does not
// exist, and a local repository that does not, is an empty Branch.
//
// Errors: git.ErrNotFound, git.ErrUnauthorized, git.ErrUnreachable,
// git.ErrTooLarge, or what is wrong with the remote.
func (c *BranchClient) ReadBranch(ctx context.Context, remote git.Remote, owners ...Owner) (*Branch, error) {
	levels, err := 1, remote.Check()
	for _, owner := range owners {
		levels, err = max(levels, owner.treeLevels()), cmp.Or(err, owner.check())
	}
	if err != nil {
		return nil, describeError(remote, err)
	}
	t, err := c.options.Git.OpenPatiently(ctx, remote, levels)
	if err != nil {
		return nil, describeError(remote, err)
	}
	t.Close()
	return &Branch{
		remote:  remote,
		git:     c.options.Git,
		tip:     t,
		levels:  levels,
		seen:    newLayout(t),
		past:    newLineage(t),
		signers: c.options.AllowedSigners,
	}, nil
}

// Tip is the branch's commit, in hex; "" when the branch does not exist.
func (l *Branch) Tip() string { return hexOrEmpty(l.tip.Commit) }

// Missing says that the repository itself does not exist: a local path that the
// first Apply creates.
func (l *Branch) Missing() bool { return l.tip.Missing }

// Conflict is a branch beside which this one, which does not exist, cannot be created; "" for none.
func (l *Branch) Conflict() string { return l.tip.Conflict }

// ReadOwner reads the trees on the way to an owner's path, its hosts and its records,
// and no file. What one owner's view fetches is fetched for all owners that are
// found on the way, so that their views need no request.
//
// Errors: as of Branch, *git.BlockedError, or what is wrong with the owner.
func (l *Branch) ReadOwner(ctx context.Context, owner Owner) (*OwnerView, error) {
	if err := owner.check(); err != nil {
		return nil, describeError(l.remote, err)
	}
	return withTip(ctx, l, func() (view *OwnerView, err error) {
		if levels := owner.treeLevels(); levels > l.levels {
			if err := l.tip.Deepen(ctx, levels); err != nil {
				return nil, err
			}
			l.levels = levels
		}
		// What is wrong with others' trees is no error.
		if err := l.fetchOwners(ctx, owner.Path); err != nil && (ctx.Err() != nil || git.Classify(err) != nil) {
			return nil, err
		}
		view = &OwnerView{Branch: l, owner: owner, work: newLayout(l.tip)}
		view.records, err = view.work.openOwner(ctx, owner, nil)
		return view, err
	})
}

// using does what needs the tip, when it is not in use.
func withTip[T any](ctx context.Context, l *Branch, do func() (T, error)) (result T, err error) {
	release, err := l.lock.Take(ctx, "")
	if err != nil {
		return result, describeError(l.remote, err)
	}
	defer release()
	defer l.tip.Close()
	result, err = do()
	return result, describeError(l.remote, err)
}

// recordLevels are the levels of trees of a records folder: its own, its owners',
// and their clusters'.
const recordLevels = 3

// fetchOwners brings the records folders and the hosts of all owners whose paths
// are no deeper than this one, as far as the directories on the way show them.
func (l *Branch) fetchOwners(ctx context.Context, at string) error {
	if err := l.seen.Open(ctx, []string{at}); err != nil {
		return err
	}
	paths := l.pathsOfOwners(at)
	owners, err := l.openOwners(ctx, paths)
	if err != nil {
		return err
	}
	clusters := make([]string, len(paths))
	for i, p := range paths {
		clusters[i] = path.Join(p, clustersHost)
	}
	if err := l.openFolders(ctx, clusters); err != nil {
		return err
	}
	var hosts []git.Hash
	for _, owner := range owners {
		for host := range l.seen.recordEntries(owner.recordsPath()) {
			if e, ok := l.seen.Lookup(path.Join(owner.Path, host)); ok && e.IsTree() {
				hosts = append(hosts, e.ID)
			}
		}
	}
	return l.tip.Need(ctx, hosts)
}

// pathsOfOwners finds directories with a records folder, among those that are
// here: on the way to a path, and beside it.
func (l *Branch) pathsOfOwners(at string) []string {
	var paths []string
	var walk func(p string, left int)
	walk = func(p string, left int) {
		if !l.seen.OpenFetched(p) {
			return
		}
		d := l.seen.Directory(p)
		if e, ok := d.Find(recordsFolder); ok && e.IsTree() {
			paths = append(paths, p)
		}
		if left == 0 {
			return
		}
		d.Each(func(e git.Entry) {
			if e.IsTree() && git.CheckSegment(e.Name) == nil {
				walk(path.Join(p, e.Name), left-1)
			}
		})
	}
	depth := 0
	if at != "" {
		depth = strings.Count(at, "/") + 1
	}
	walk("", depth)
	return paths
}
