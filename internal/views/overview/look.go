package overview

import (
	"cmp"
	"context"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// Repository reads a GitOps repository, as delivery.Service does.
type Repository interface {
	ReadOwner(ctx context.Context, owner delivery.Owner, wanted folder.Trees) (gitops.OwnerSnapshot, error)
	ReadInventory(ctx context.Context, at folder.Location, filter gitops.InventoryFilter) (gitops.Inventory, error)
	FindCommits(ctx context.Context, owner delivery.Owner, ids []string, want folder.Trees) (map[string]gitops.ReportedCommit, error)
	ReadHistory(ctx context.Context, owner delivery.Owner, filter gitops.HistoryFilter) (gitops.History, error)
}

// Seen holds the content of a branch for one owner.
type Seen struct {
	Written gitops.OwnerSnapshot
	// Commits has the last commit of folders, if known.
	Commits map[folder.Key]string
	// Past has the commits in the evidence by id.
	Past    map[string]gitops.ReportedCommit
	History gitops.History
}

// Label returns the owner's label on rendered objects.
func (s *Seen) Label(owner string) string { return cmp.Or(s.Written.Label(), owner) }

// Look reads the branch: its tip, the owner's records and trees, the commits in the evidence, and up to history commits. It
// returns the errors of the repository.
func Look(ctx context.Context, repository Repository, owner delivery.Owner, evidence *observe.Evidence, history int) (*Seen, error) {
	written, err := repository.ReadOwner(ctx, owner, nil)
	if err != nil {
		return nil, err
	}
	seen := &Seen{Written: written, Commits: map[folder.Key]string{}, History: gitops.History{Complete: true}}
	if written.Tip == "" {
		return seen, nil
	}
	inventory, err := repository.ReadInventory(ctx, owner.Location, gitops.InventoryFilter{Owner: owner.Name})
	if err != nil {
		return nil, err
	}
	for _, one := range inventory.Assignments {
		if one.Owner.Path == owner.Location.Path {
			seen.Commits[folder.Key{Host: one.Host, DeploymentTarget: one.DeploymentTarget}] = one.Commit
		}
	}
	if ids := commitsOf(evidence); len(ids) > 0 {
		if seen.Past, err = repository.FindCommits(ctx, owner, ids, seen.wanted(evidence)); err != nil {
			return nil, err
		}
	}
	if history > 0 {
		seen.History, err = repository.ReadHistory(ctx, owner, gitops.HistoryFilter{Limit: history})
	}
	return seen, err
}

// commitsOf includes the tip at the time of the evidence.
func commitsOf(evidence *observe.Evidence) []string {
	if evidence == nil || len(evidence.Clusters) == 0 {
		return nil
	}
	ids := map[string]bool{evidence.Tip: true}
	for _, cluster := range evidence.Clusters {
		ids[cluster.Commit] = true
	}
	delete(ids, "")
	return slices.Sorted(maps.Keys(ids))
}

// wanted returns the folders to compare at the commits; none if the evidence has the present tip.
func (s *Seen) wanted(evidence *observe.Evidence) folder.Trees {
	if evidence.Tip == s.Written.Tip {
		return nil
	}
	trees := folder.Trees{}
	for key := range s.Written.Records {
		folder.Put(trees, key, "")
	}
	return trees
}

func withoutCredentials(text string) string {
	if !strings.Contains(text, "://") {
		return text
	}
	parsed, err := url.Parse(text)
	if err != nil {
		return ""
	}
	parsed.User = nil
	return parsed.String()
}
