package gitops

import (
	"cmp"
	"context"
	"path"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wait"
)

// Branch is the tip of a branch, read once for all owners. It is safe for concurrent use, with one request at a time.
type Branch struct {
	remote git.Remote
	git    *git.Connector
	lock   wait.Locks // held while the tip is in use
	tip    *git.Tip
	levels int
	opened *layout
	past   *lineage

	signers *git.Verifier // nil believes every record
}

// ReadBranch reads the tip of a branch, with the trees of the owners. A missing branch or local repository is an empty
// Branch.
//
// Errors: errors of package git, or an error about the remote or the owners.
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
		opened:  newLayout(t),
		past:    newLineage(t),
		signers: c.options.AllowedSigners,
	}, nil
}

// Tip returns the commit in hex; "" if there is no branch.
func (l *Branch) Tip() string { return hexOrEmpty(l.tip.Commit) }

// IsMissing reports that the local repository does not exist.
func (l *Branch) IsMissing() bool { return l.tip.Missing }

// Conflict returns an existing branch beside which Git cannot create this one; "" if there is none.
func (l *Branch) Conflict() string { return l.tip.Conflict }

// ConflictOf is Conflict for another branch.
func (l *Branch) ConflictOf(branch string) string { return l.tip.ConflictOf(branch) }

// ReadOwner reads the trees of an owner's path, hosts and records, and no file. It fetches them for all owners on the way,
// whose views then need no request.
//
// Errors: see ReadBranch.
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
		// Malformed trees of others are no error.
		if err := l.fetchOwners(ctx, owner.Path); err != nil && (ctx.Err() != nil || git.Classify(err) != nil) {
			return nil, err
		}
		view = &OwnerView{Branch: l, owner: owner, work: newLayout(l.tip)}
		view.records, err = view.work.openOwner(ctx, owner, nil)
		return view, err
	})
}

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

const recordLevels = 3

func (l *Branch) fetchOwners(ctx context.Context, at string) error {
	if err := l.opened.Open(ctx, []string{at}); err != nil {
		return err
	}
	depth := 0
	if at != "" {
		depth = strings.Count(at, "/") + 1
	}
	owners, paths, err := l.findOwners(ctx, "", depth, false)
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
		for host := range l.opened.recordEntries(owner.recordsPath()) {
			if e, ok := l.opened.Lookup(path.Join(owner.Path, host)); ok && e.IsTree() {
				hosts = append(hosts, e.ID)
			}
		}
	}
	return l.tip.Need(ctx, hosts)
}
