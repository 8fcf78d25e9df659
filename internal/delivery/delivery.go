// Package delivery writes what one owner wants to its location in a GitOps repository. It finds out whether
// the location is a new one, what is written and removed, what protection holds, and which folders belong to
// others. Then it writes, by push or by pull request. It knows neither Terraform nor the fleet.
//
// [Desired] is what an owner wants, a [Plan] is what applying it would do, an [ApplyRequest] is
// what is applied, and [Done] is its outcome. [State] is what the Terraform state knows of the last apply.
package delivery

import (
	"context"
	"net/http"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wait"
)

// Owner is one flotilla_assignment and its location.
type Owner struct {
	Location folder.Location
	Name     string
	// Environment is written into records and commits; it decides nothing.
	Environment string
}

func (o Owner) gitops() gitops.Owner {
	return gitops.Owner{Name: o.Name, Environment: o.Environment, Path: o.Location.Path}
}

// OwnerState is what the state knows of an owner since it was written last.
type OwnerState struct {
	Owner       Owner
	Settings    Settings
	PullRequest string // URL; "" where there is none
	SavedState
}

// SavedState is the part of State that is not for people.
type SavedState struct {
	// Label is the owner's name in the labels of what is rendered, where the records have another one than
	// the present name. Refresh reads it where it reads the records.
	Label string `json:"label,omitempty"`
	// Former are the names that hosts and the owner had before. Refresh reads them where it reads the records.
	Former folder.Former `json:"former,omitzero"`
	// Trees are the folders as they were written.
	Trees folder.Trees `json:"trees,omitempty"`
	// Records are the ids of the owner's records by host.
	Records map[string]string `json:"records,omitempty"`
	// Holder is the random text in the owner's records that says that they are of this state.
	Holder string `json:"holder,omitempty"`
	// Imported names the commit that wrote the records from which the state was read, while this state has written nothing
	// itself; "" for a state that has. Its next write gives the records a new holder, since another state may have them.
	Imported string `json:"imported,omitempty"`
	// Drift is what Refresh has found.
	Drift Drift `json:"drift,omitzero"`
	// Replaced are the folders that the pull request changes, with the trees that they had on the branch that it goes
	// into; "" where there was none.
	Replaced map[folder.Key]string `json:"replaced,omitempty"`
	// Proposed says that what was written was in a pull request that was open when Refresh looked.
	Proposed bool `json:"proposed,omitempty"`
	// Incomplete says that the last apply opened or updated the pull request, and failed then: what it proposes is not pending.
	Incomplete bool `json:"incomplete,omitempty"`
	// Tip is a commit of the branch that has Current, the one at which Refresh looked; "" where it has not, or there is none.
	Tip string `json:"tip,omitempty"`
}

// seenAt is the commit of the location's branch that the state has seen, by which a plan says the same again when it is
// applied; "" where it has seen none.
func (k *OwnerState) seenAt() string {
	if k.Proposed {
		return ""
	}
	return k.Tip
}

// Current are the trees that the folders have in the repository.
func (k *OwnerState) Current() folder.Trees {
	current := k.Trees.Clone()
	for key, tree := range k.Drift.Trees {
		if tree == "" {
			delete(current[key.Host], key.DeploymentTarget)
			continue
		}
		current[key.Host][key.DeploymentTarget] = tree
	}
	return current
}

// Service reaches repositories and Git hosts for all owners of one provider. It is safe for concurrent
// use.
type Service struct {
	options ServiceOptions

	looks looks
	heads wait.Locks // by repository and branch that is proposed
	names wait.Locks // by branch, path and name of an owner, since two URLs may be one repository
	plans plans
}

// ServiceOptions are the settings of a Client.
type ServiceOptions struct {
	Git         *gitops.BranchClient
	Credentials git.Credentials
	// Over is what requests to the APIs of Git hosts go through.
	Over http.RoundTripper
	// Author of commits; the zero value is the default.
	Author git.Signature
	// Release is the version of the provider, for the trailer of commits.
	Release string
	// Run identifies the run of a pipeline, for the trailer of commits; "" if there is none.
	Run string
	// UserAgent is what requests to the APIs of Git hosts say of who asks.
	UserAgent string
}

// New returns a Client. It makes no request.
func New(options ServiceOptions) *Service {
	return &Service{
		options: options,
		plans:   plans{owners: map[ownerKey]folder.Location{}, holders: map[ownerKey][]string{}, replaced: map[ownerKey]bool{}},
	}
}

func (c *Service) remote(at folder.Location) git.Remote {
	return git.Remote{URL: at.URL, Branch: at.Branch, Credentials: c.options.Credentials, IsGitOps: true}
}

// view reads what an owner has at its location. A branch is read once for all owners.
func (c *Service) view(ctx context.Context, owner Owner) (*gitops.OwnerView, error) {
	look, err := c.looks.at(ctx, c.options.Git, c.remote(owner.Location), owner.gitops())
	if err != nil {
		return nil, err
	}
	return look.ReadOwner(ctx, owner.gitops())
}

// ReadHistory is what happened to the folders of an owner; of every owner at the location where it has no name.
func (c *Service) ReadHistory(ctx context.Context, owner Owner, filter gitops.HistoryFilter) (gitops.History, error) {
	return c.options.Git.ReadHistory(ctx, c.remote(owner.Location), owner.gitops(), filter)
}

// ReadInventory lists what all owners have on a location's branch, at its path and below it.
func (c *Service) ReadInventory(ctx context.Context, at folder.Location, filter gitops.InventoryFilter) (gitops.Inventory, error) {
	look, err := c.looks.at(ctx, c.options.Git, c.remote(at))
	if err != nil {
		return gitops.Inventory{}, err
	}
	filter.Path = at.Path
	return look.ReadInventory(ctx, filter)
}

// ReadFoldersAt returns what a commit in the history of the location's branch has of an owner, which had other names before.
//
// Errors: gitops.ErrCommit where it has nothing or is not in the history, or as of a look.
func (c *Service) ReadFoldersAt(ctx context.Context, owner Owner, commit string, names ...string) (gitops.FolderEdits, error) {
	view, err := c.view(ctx, owner)
	if err != nil {
		return nil, err
	}
	return view.ReadFoldersAt(ctx, commit, names...)
}

// FindCommits looks up commits that clusters report in the history of the location's branch, and reads what the
// owner's wanted folders are there; see gitops.OwnerView.FindCommits.
func (c *Service) FindCommits(ctx context.Context, owner Owner, ids []string, want folder.Trees) (map[string]gitops.ReportedCommit, error) {
	view, err := c.view(ctx, owner)
	if err != nil {
		return nil, err
	}
	return view.FindCommits(ctx, ids, want)
}

// ReadFiles reads the files of folders by their trees, so that they are the same after the branch has moved on.
// wanted gives, for each of them, the files that it gets: those that are there already are not fetched.
//
// Errors: as of a look, or a plain one where the repository does not give a tree any more.
func (c *Service) ReadFiles(
	ctx context.Context, owner Owner, folders folder.Trees, wanted map[folder.Key][]git.File,
) (map[folder.Key][]git.File, error) {
	view, err := c.view(ctx, owner)
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

// ReadFilesNamed reads those files of folders whose names are wanted, by the trees of the folders. No other file is fetched.
//
// Errors: as of Files.
func (c *Service) ReadFilesNamed(
	ctx context.Context, owner Owner, folders folder.Trees, wanted func(name string) bool,
) (map[folder.Key][]git.File, error) {
	view, err := c.view(ctx, owner)
	if err != nil {
		return nil, err
	}
	return view.ReadFiles(ctx, folders, wanted, nil)
}

// ListOwners are the names of the owners that have records at a location's path; none where there is no branch.
//
// Errors: as of a look.
func (c *Service) ListOwners(ctx context.Context, owner Owner) ([]string, error) {
	view, err := c.view(ctx, owner)
	if err != nil {
		return nil, err
	}
	return view.OwnerNames(), nil
}
