// Package gitops reads and writes folders of rendered manifests on a branch of a Git repository. It knows neither Terraform
// nor the fleet.
//
//   - An [Owner] is one flotilla_assignment.
//   - A host is a cluster type or a cluster. It has a folder for each deployment target.
//   - A record is a file that lists an owner's folders on a host.
//   - A marker is a file that keeps a host's folder from being empty.
//
// A [Branch] is a tip as it was read, and an [OwnerView] is the part of one owner. An [Edit] is the target state of an
// owner. A [BranchClient] edits the trees of a tip in memory, and pushes one commit as a compare-and-swap. Content of
// others is carried over by id and never read.
//
// Layout, below the owner's path:
//
//	<host>/<owner>.md                  the marker
//	<host>/<deployment target>/...     a folder, flat
//	.flotilla/<owner>/<host>.json      the record
//	.flotilla/.claims/<claim>.json     the record of a [Claim]
//
// A host is "<cluster type>" or "clusters/<cluster>".
package gitops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wait"
)

// BranchClient reads and writes branches. It is safe for concurrent use. Edits of one branch wait for each other.
type BranchClient struct {
	options  BranchOptions
	branches wait.Locks
}

// BranchOptions are settings. The zero value has the defaults.
type BranchOptions struct {
	// Git reaches repositories. Default: without options.
	Git *git.Connector
	// Now is the clock. Default: time.Now.
	Now func() time.Time
	// Signer signs commits. Default: none does.
	Signer *git.Signer
	// AllowedSigners verify records. Default: all records are believed.
	AllowedSigners *git.Verifier
}

// NewBranchClient returns a BranchClient.
func NewBranchClient(options BranchOptions) *BranchClient {
	if options.Git == nil {
		options.Git = git.NewConnector(git.ConnectorOptions{})
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	return &BranchClient{options: options}
}

const (
	maxRecordDepth = 32
	// leastObject and leastValue are the smallest sizes in bytes that Flotilla writes. Records with smaller values take
	// many times their size in memory.
	leastObject, leastValue = 16, 4
)

const (
	// maxRecords bounds the bytes of assignment records in one read: enough for 600,000 folders.
	maxRecords = 256 << 20
	// maxClaims bounds the bytes of claim records at a path: enough for 300,000 clusters.
	maxClaims = 32 << 20
	// maxVisited bounds one inventory: enough for ten fleets of 3,000 clusters.
	maxVisited = 500_000
)

// budget bounds the cost of one read. Git stores equal content once, so a push of a few kilobytes can contain billions of
// files.
type budget struct {
	left    int
	problem string
}

func recordBudget() *budget {
	return &budget{maxRecords, fmt.Sprintf("the records of assignments have more than %d MiB together", maxRecords>>20)}
}

func claimBudget(at string) *budget {
	return &budget{maxClaims, fmt.Sprintf("the records of claims in %q have more than %d MiB together", claimsPath(at), maxClaims>>20)}
}

func visitBudget(begin string) *budget {
	return &budget{
		maxVisited,
		fmt.Sprintf("%q has more than %d folders and records up to %d levels below it", begin, maxVisited, InventoryLevels),
	}
}

func (b *budget) spend(amount int) error {
	if b.left -= amount; b.left < 0 {
		return newCompleteError(errors.New(b.problem + ", which Flotilla does not write: find the commit that added them, and revert it"))
	}
	return nil
}

// checkBounds rejects content that Flotilla never writes, before it is parsed. It allocates nothing.
func checkBounds(content []byte, limit int) error {
	if len(content) > limit {
		return fmt.Errorf("the record is longer than %d MiB", limit>>20)
	}
	if !utf8.Valid(content) {
		return errors.New("the record is not valid UTF-8")
	}
	depth, objects, values, inText := 0, 0, 0, false
	for i := 0; i < len(content); i++ {
		switch c := content[i]; {
		case inText && c == '\\':
			i++
		case c == '"':
			inText = !inText
		case inText:
		case c == '{' || c == '[':
			if depth++; depth > maxRecordDepth {
				return fmt.Errorf("the record has more than %d levels", maxRecordDepth)
			}
			objects++
		case c == '}' || c == ']':
			depth--
		case c == ',':
			values++
		}
	}
	if objects > 32+len(content)/leastObject || values > 32+len(content)/leastValue {
		return errors.New("the record has more values than any that Flotilla writes")
	}
	return nil
}

func (f folderRecord) listTexts() []string {
	texts := append([]string{f.Workload, f.Workspace, f.DeploymentTarget, f.ClusterType, f.ConfigVersion, f.OwnerLabel}, f.Policies...)
	for _, object := range f.Objects {
		texts = append(texts, object.Kind, object.Namespace, object.Name)
	}
	return append(append(texts, f.Manifests.Texts()...), string(f.Source))
}

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
		for host := range l.opened.recordEntries(owner.recordsPath()) {
			if e, ok := l.opened.Lookup(path.Join(owner.Path, host)); ok && e.IsTree() {
				hosts = append(hosts, e.ID)
			}
		}
	}
	return l.tip.Need(ctx, hosts)
}

func (l *Branch) pathsOfOwners(at string) []string {
	var paths []string
	var walk func(p string, left int)
	walk = func(p string, left int) {
		if !l.opened.OpenFetched(p) {
			return
		}
		d := l.opened.Directory(p)
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
