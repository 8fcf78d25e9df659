package delivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wait"
)

// Reader reads GitOps repositories. It fetches each branch once for all owners, until something is written there.
type Reader struct {
	git         *gitops.BranchClient
	credentials git.Credentials
	branches    branchCache
}

func (r *Reader) remote(at folder.Location) git.Remote {
	return git.Remote{URL: at.URL, Branch: at.Branch, Credentials: r.credentials, IsGitOps: true}
}

// branch returns the branch of a location. Naming an owner fetches its trees in the same request.
func (r *Reader) branch(ctx context.Context, at folder.Location, owner ...gitops.Owner) (*gitops.Branch, error) {
	return r.branches.read(ctx, r.git, r.remote(at), owner...)
}

func (r *Reader) forget(at folder.Location) { r.branches.forget(r.remote(at)) }

func (r *Reader) view(ctx context.Context, owner Owner) (*gitops.OwnerView, error) {
	branch, err := r.branch(ctx, owner.Location, owner.repositoryOwner())
	if err != nil {
		return nil, err
	}
	return branch.ReadOwner(ctx, owner.repositoryOwner())
}

func (r *Reader) tip(ctx context.Context, at folder.Location) (string, error) {
	branch, err := r.branch(ctx, at)
	if err != nil {
		return "", err
	}
	return branch.Tip(), nil
}

// ReadTip fetches the branch of a location again and returns its commit; "" if there is none.
func (r *Reader) ReadTip(ctx context.Context, at folder.Location) (string, error) {
	r.forget(at)
	return r.tip(ctx, at)
}

// ReadHistory returns the commits that changed folders of an owner, or of all owners if it has no name.
func (r *Reader) ReadHistory(ctx context.Context, owner Owner, filter gitops.HistoryFilter) (gitops.History, error) {
	branch, err := r.branch(ctx, owner.Location)
	if err != nil {
		return gitops.History{}, err
	}
	return branch.ReadHistory(ctx, owner.repositoryOwner(), filter)
}

// ReadInventory lists the folders of all owners on a location's branch, at its path and below.
func (r *Reader) ReadInventory(ctx context.Context, at folder.Location, filter gitops.InventoryFilter) (gitops.Inventory, error) {
	branch, err := r.branch(ctx, at)
	if err != nil {
		return gitops.Inventory{}, err
	}
	filter.Path = at.Path
	return branch.ReadInventory(ctx, filter)
}

// ReadFoldersAt is gitops.OwnerView.ReadFoldersAt.
func (r *Reader) ReadFoldersAt(ctx context.Context, owner Owner, commit string, names ...string) (gitops.FolderEdits, error) {
	view, err := r.view(ctx, owner)
	if err != nil {
		return nil, err
	}
	return view.ReadFoldersAt(ctx, commit, names...)
}

// FindCommits is gitops.OwnerView.FindCommits.
func (r *Reader) FindCommits(
	ctx context.Context, owner Owner, ids []string, want folder.Trees,
) (map[string]gitops.ReportedCommit, error) {
	view, err := r.view(ctx, owner)
	if err != nil {
		return nil, err
	}
	return view.FindCommits(ctx, ids, want)
}

// ReadFiles reads the files of folders by their trees. It does not fetch content that wanted has.
func (r *Reader) ReadFiles(
	ctx context.Context, owner Owner, folders folder.Trees, wanted map[folder.Key][]git.File,
) (map[folder.Key][]git.File, error) {
	view, err := r.view(ctx, owner)
	if err != nil {
		return nil, err
	}
	contents := map[git.Hash][]byte{}
	for _, files := range wanted {
		for _, file := range files {
			contents[git.BlobID(file.Content)] = file.Content
		}
	}
	return view.ReadFiles(ctx, folders, nil, func(id git.Hash) ([]byte, bool) {
		content, ok := contents[id]
		return content, ok
	})
}

// ReadFilesNamed reads the files of folders whose names are wanted.
func (r *Reader) ReadFilesNamed(
	ctx context.Context, owner Owner, folders folder.Trees, wanted func(name string) bool,
) (map[folder.Key][]git.File, error) {
	view, err := r.view(ctx, owner)
	if err != nil {
		return nil, err
	}
	return view.ReadFiles(ctx, folders, wanted, nil)
}

// ListOwners returns the owners at a location's path.
func (r *Reader) ListOwners(ctx context.Context, owner Owner) ([]string, error) {
	view, err := r.view(ctx, owner)
	if err != nil {
		return nil, err
	}
	return view.OwnerNames(), nil
}

// ReadOwner reads the folders in an owner's records, and the wanted ones. Without records, it reads the records of the
// owner before a rename.
func (r *Reader) ReadOwner(ctx context.Context, owner Owner, wanted folder.Trees) (gitops.OwnerSnapshot, error) {
	view, err := r.view(ctx, owner)
	if err != nil {
		return gitops.OwnerSnapshot{}, err
	}
	snapshot, err := view.ReadRecords(ctx, "")
	if err == nil && len(snapshot.Trees) == 0 && len(wanted) > 0 {
		snapshot, err = readFormerRecords(ctx, r, view, owner, wanted)
	}
	if err != nil {
		return gitops.OwnerSnapshot{}, err
	}
	more, err := view.ReadTrees(ctx, wanted)
	snapshot.Tip, snapshot.Trees = view.Tip(), mergeTrees(snapshot.Trees, more)
	return snapshot, err
}

// ReadOwnerAt reads the folders in an owner's records at a commit, or returns git.ErrCommit.
func (r *Reader) ReadOwnerAt(ctx context.Context, owner Owner, commit string) (gitops.OwnerSnapshot, error) {
	view, err := r.view(ctx, owner)
	if err != nil {
		return gitops.OwnerSnapshot{}, err
	}
	return view.ReadRecords(ctx, commit)
}

// ReadSeenRecords reads an owner's records at the commit of the last refresh, or returns git.ErrCommit. All plans get the
// same.
func (r *Reader) ReadSeenRecords(ctx context.Context, owner Owner, known *OwnerState) (map[folder.Key]gitops.FolderRecord, error) {
	at := known.seenCommit()
	if at == "" {
		return nil, nil
	}
	snapshot, err := r.ReadOwnerAt(ctx, owner, at)
	return snapshot.Records, err
}

// readFormerRecords reads the records of the only other owner of the wanted folders, with its name as their label.
func readFormerRecords(
	ctx context.Context, r *Reader, view *gitops.OwnerView, owner Owner, wanted folder.Trees,
) (gitops.OwnerSnapshot, error) {
	conflicts, err := view.FindConflicts(ctx, wanted, nil, "")
	if errors.As(err, new(*git.BlockedError)) {
		return gitops.OwnerSnapshot{}, nil
	}
	former := owner
	former.Name = ""
	for _, conflict := range conflicts {
		if conflict.Owner == "" || conflict.OwnerPath != owner.Location.Path || former.Name != "" && conflict.Owner != former.Name {
			return gitops.OwnerSnapshot{}, err
		}
		former.Name = conflict.Owner
	}
	if err != nil || former.Name == "" {
		return gitops.OwnerSnapshot{}, err
	}
	if view, err = r.view(ctx, former); err != nil {
		return gitops.OwnerSnapshot{}, err
	}
	snapshot, err := view.ReadRecords(ctx, "")
	for key, record := range snapshot.Records {
		record.OwnerLabel = cmp.Or(record.OwnerLabel, former.Name)
		snapshot.Records[key] = record
	}
	return snapshot, err
}

func (r *Reader) hasCommit(ctx context.Context, owner Owner, tip, commit string) (bool, error) {
	if tip == "" || commit == "" {
		return false, nil
	}
	found, err := r.FindCommits(ctx, owner, []string{commit}, nil)
	return found[commit].ID != "", err
}

// IsSameLocation reports whether two locations are the same or mirrors. If a repository cannot be reached, their URLs
// decide.
func (r *Reader) IsSameLocation(ctx context.Context, one, other folder.Location) bool {
	if one.Path != other.Path || one.Branch != other.Branch {
		return false
	}
	if git.Spelling(one.URL) == git.Spelling(other.URL) {
		return true
	}
	here, err := r.tip(ctx, one)
	if err != nil || here == "" {
		return false
	}
	there, err := r.tip(ctx, other)
	return err == nil && here == there
}

// FindBranchConflict explains why the missing branch of a location cannot be created; "" if it can.
func (r *Reader) FindBranchConflict(ctx context.Context, at folder.Location) (string, error) {
	branch, err := r.branch(ctx, at)
	if err != nil || branch.Conflict() == "" {
		return "", err
	}
	return fmt.Sprintf("The repository has a branch %q, and Git allows no branch %q beside it: the one is a folder of the other's name. "+
		"Name another branch in gitops_repo, or rename the other.", branch.Conflict(), at.Branch), nil
}

// findHeadConflict explains why a new branch of a pull request cannot be created; "" if it can.
func (r *Reader) findHeadConflict(ctx context.Context, desired Desired) (string, error) {
	if !desired.Settings.PullRequest {
		return "", nil
	}
	head := desired.Settings.selector(desired.Owner).Head
	if s := desired.State; s != nil && s.Settings.PullRequest && s.Settings.selector(s.Owner).Head == head {
		return "", nil
	}
	branch, err := r.branch(ctx, desired.Owner.Location)
	if err != nil {
		return "", err
	}
	conflict := branch.ConflictOf(head)
	if conflict == "" {
		return "", nil
	}
	return fmt.Sprintf("The repository has a branch %q, and Git allows no branch %q for the pull request beside it: the one is a "+
		"folder of the other's name. Set branch of delivery to another name.", conflict, head), nil
}

// branchCache fetches each branch once for all owners. Writers do not rely on it.
type branchCache struct {
	locks    wait.Locks
	branches sync.Map // branchKey to *cachedBranch
}

type cachedBranch struct {
	branch *gitops.Branch // nil until a fetch succeeds
	// refused is the error of a server that refuses the credentials. Some servers lock the account after several tries.
	refused error
}

func branchKey(remote git.Remote) string { return remote.URL + " " + remote.Branch }

func (c *branchCache) read(
	ctx context.Context, client *gitops.BranchClient, remote git.Remote, owner ...gitops.Owner,
) (*gitops.Branch, error) {
	found, _ := c.branches.LoadOrStore(branchKey(remote), &cachedBranch{})
	release, err := c.locks.Take(ctx, branchKey(remote))
	if err != nil {
		return nil, err
	}
	defer release()
	cached := found.(*cachedBranch)
	if cached.branch != nil || cached.refused != nil {
		return cached.branch, cached.refused
	}
	branch, err := client.ReadBranch(ctx, remote, owner...)
	if errors.Is(err, git.ErrUnauthorized) {
		cached.refused = err
	}
	if err != nil {
		return nil, err
	}
	cached.branch = branch
	return branch, nil
}

func (c *branchCache) forget(remote git.Remote) { c.branches.Delete(branchKey(remote)) }
