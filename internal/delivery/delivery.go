// Package delivery writes the target state of one owner to its location in a GitOps repository, by push or by pull request.
// It knows neither Terraform nor the fleet.
//
// The [Planner] compares a [Desired] with an [OwnerState] and the repository, and returns a [Plan]. The [Writer] applies
// it. The [Reader] reads branches, and the [Refresher] finds drift. For errors, see gitops.BranchClient.
package delivery

import (
	"cmp"
	"net/http"
	"path"
	"strconv"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// Owner is one flotilla_assignment.
type Owner struct {
	Location folder.Location
	Name     string
	// Environment is only a label.
	Environment string
}

func (o Owner) repositoryOwner() gitops.Owner {
	return gitops.Owner{Name: o.Name, Environment: o.Environment, Path: o.Location.Path}
}

// Service serves all owners and claims of one provider. It is safe for concurrent use.
type Service struct {
	*Reader
	*GitHosts
	*Refresher
	*Registry
	*Planner
	*Writer
	*ClaimRecords
}

// ServiceOptions are the settings of a Service.
type ServiceOptions struct {
	Git         *gitops.BranchClient
	Credentials git.Credentials
	// Over is the transport for the APIs of Git hosts, and UserAgent identifies the provider to them.
	Over http.RoundTripper
	// Author signs commits. Default: see gitops.
	Author git.Signature
	// Release and Run are for trailers: the version of the provider and the pipeline run.
	Release   string
	Run       string
	UserAgent string
}

// New returns a Service.
func New(options ServiceOptions) *Service {
	reader := &Reader{git: options.Git, credentials: options.Credentials}
	hosts := &GitHosts{reader: reader, options: options}
	refresher := &Refresher{reader: reader, hosts: hosts}
	registry := &Registry{
		reader: reader, owners: map[ownerKey]folder.Location{}, holders: map[ownerKey][]string{}, replaced: map[ownerKey]bool{},
	}
	planner := &Planner{reader: reader, registry: registry}
	writer := &Writer{reader: reader, hosts: hosts, refresher: refresher, registry: registry, planner: planner, options: options}
	claims := &ClaimRecords{reader: reader, registry: registry, options: options}
	return &Service{reader, hosts, refresher, registry, planner, writer, claims}
}

// Settings describe how commits reach the branch. The zero value pushes to it.
type Settings struct {
	PullRequest bool
	Forge       forge.Forge // "" derives it from the URL
	APIURL      string
	Head        string // branch of the pull request; "" derives it from the owner
	Request     forge.RequestOptions
}

// selector identifies the owner's pull request. Owners on different branches or paths have different heads.
func (s Settings) selector(owner Owner) forge.Selector {
	mark := strings.TrimPrefix(owner.Location.Path+"/"+owner.Name, "/")
	return forge.Selector{Owner: mark, Base: owner.Location.Branch, Head: cmp.Or(s.Head, "flotilla/"+owner.Location.Branch+"/"+mark)}
}

// OnPresentBranch returns an owner at the branch with its present content.
func (k *OwnerState) OnPresentBranch(owner Owner) Owner {
	if k.Proposed && owner.Location == k.Owner.Location {
		owner.Location.Branch = k.Settings.selector(k.Owner).Head
	}
	return owner
}

// OwnerState is an owner as the Terraform state has it.
type OwnerState struct {
	Owner       Owner
	Settings    Settings
	PullRequest string
	SavedState
}

// SavedState is the part of an OwnerState in private state.
type SavedState struct {
	// Label is the owner's name in the labels of rendered objects, if it differs from the present one.
	Label  string        `json:"label,omitempty"`
	Former folder.Former `json:"former,omitzero"`
	// Trees are the folders as written.
	Trees   folder.Trees      `json:"trees,omitempty"`
	Records map[string]string `json:"records,omitempty"`
	// Holder ties the owner's records to this state.
	Holder string `json:"holder,omitempty"`
	// Imported names the commit of imported records, until the first write of this state sets a new holder: another state
	// may have the present one.
	Imported string `json:"imported,omitempty"`
	Drift    Drift  `json:"drift,omitzero"`
	// Replaced has the folders that the pull request changes, with their trees on its base; "" for added ones.
	Replaced map[folder.Key]string `json:"replaced,omitempty"`
	// Proposed reports that the content was in an open pull request.
	Proposed bool `json:"proposed,omitempty"`
	// Incomplete reports that the last apply changed the pull request and then failed. Refresh ignores the request.
	Incomplete bool `json:"incomplete,omitempty"`
	// Tip is the commit that Refresh read; "" if the branch lacks Current.
	Tip string `json:"tip,omitempty"`
}

// seenCommit returns the commit of the last refresh, if it read the location's branch.
func (k *OwnerState) seenCommit() string {
	if k.Proposed {
		return ""
	}
	return k.Tip
}

// Current returns the trees in the repository.
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

// requestNumber returns the number at the end of the pull request's URL; 0 if there is none.
func (k *OwnerState) requestNumber() int {
	if k == nil {
		return 0
	}
	number, _ := strconv.Atoi(path.Base(k.PullRequest))
	return number
}
