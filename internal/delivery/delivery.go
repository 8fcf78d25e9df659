// Package delivery writes the target state of one owner to its location in a GitOps repository, by push or by pull request.
// It knows neither Terraform nor the fleet.
//
// The [Planner] compares a [Desired] with an [OwnerState] and the repository, and returns a [Plan]. The [Writer] applies
// it. The [Reader] reads branches, and the [Refresher] finds drift. For errors, see gitops.BranchClient.
package delivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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

// OnPresentBranch returns an owner at the branch with its present content.
func (k *OwnerState) OnPresentBranch(owner Owner) Owner {
	if k.Proposed && owner.Location == k.Owner.Location {
		owner.Location.Branch = k.Settings.selector(k.Owner).Head
	}
	return owner
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

// Identity is the relation of an owner to its state.
type Identity string

// Identities of an owner.
const (
	Created Identity = "created" // no state
	Same    Identity = "same"    // same location and name, perhaps another spelling of the URL
	Renamed Identity = "renamed" // records are handed over
	Moved   Identity = "moved"   // another location, whose content is then removed from the former one
)

// formerLocation compares an owner's location with its state.
type formerLocation struct {
	identity   Identity
	unreadable error // error of reading the former location
	isSeparate bool  // same by history, but with another tip or unreadable
}

// identify compares the owner's location with the state. Two locations are the same, or mirrors, if they have the same tip,
// or if the new one has the commit of the state in its history: others may push to one of them.
func (p *Planner) identify(ctx context.Context, known *OwnerState, owner Owner) (formerLocation, error) {
	if known == nil {
		return formerLocation{identity: Created}, nil
	}
	was, is := known.Owner.Location, owner.Location
	here := Same
	if known.Owner.Name != owner.Name {
		here = Renamed
	}
	if was == is {
		return formerLocation{identity: here}, nil
	}
	then, gone := p.reader.tip(ctx, was)
	if ctx.Err() != nil {
		return formerLocation{}, gone
	}
	if gone == nil && then == "" {
		gone = fmt.Errorf("branch %q %w", was.Branch, git.ErrNoBranch)
	}
	if was.Path != is.Path {
		return formerLocation{identity: Moved, unreadable: gone}, nil
	}
	now, err := p.reader.tip(ctx, is)
	if err != nil {
		return formerLocation{}, err
	}
	if now != "" && gone == nil && now == then {
		return formerLocation{identity: here}, nil
	}
	if contains, err := p.reader.hasCommit(ctx, owner, now, known.Tip); contains || err != nil {
		return formerLocation{identity: here, isSeparate: !errors.Is(gone, git.ErrNoBranch)}, err
	}
	return formerLocation{identity: Moved, unreadable: gone}, nil // the plan warns, and clears nothing there
}

// FindRelocated returns the state at another branch or URL if that was renamed: nothing is at the former location, and the
// new one has records of this state, or is the base of the open pull request. Otherwise it returns nil.
func (r *Refresher) FindRelocated(ctx context.Context, known *OwnerState, at folder.Location) *OwnerState {
	was := known.Owner.Location
	if was == at || was.Path != at.Path || known.Holder == "" || !known.Proposed && known.Current().Count() > 0 {
		return nil
	}
	if tip, err := r.reader.tip(ctx, was); tip != "" || err != nil && !isGone(err) {
		return nil
	}
	relocated := *known
	relocated.Owner.Location, relocated.Drift = at, Drift{}
	view, err := r.reader.view(ctx, relocated.Owner)
	if err != nil || view.Tip() == "" {
		return nil
	}
	records, err := view.ReadRecords(ctx, "")
	isSame := records.Holder == known.Holder || was.URL == at.URL && at.Branch == known.Drift.Into
	if err != nil || !isSame {
		return nil
	}
	if len(known.Replaced) > 0 { // the branch still has the folders to be removed, and other records
		relocated.Trees, relocated.Records = known.Trees.Clone(), nil
		for key, tree := range known.Replaced {
			if !known.Trees.Has(key.Host, key.DeploymentTarget) {
				folder.Put(relocated.Trees, key, tree)
			}
		}
	}
	if err := relocated.compare(ctx, view); err != nil {
		return nil
	}
	if relocated.Tip, relocated.Proposed = view.Tip(), false; len(relocated.Drift.Trees) > 0 && known.Settings.PullRequest {
		relocated.Drift.Cause = RequestOpen
	}
	return &relocated
}

func isGone(err error) bool { return errors.Is(err, git.ErrNotFound) }

// Identify compares an owner's location and name with the state.
func (p *Planner) Identify(ctx context.Context, known *OwnerState, owner Owner) (Identity, error) {
	former, err := p.identify(ctx, known, owner)
	return former.identity, err
}
