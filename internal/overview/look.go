package overview

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/report"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
)

// Repository is what is asked of a GitOps repository; delivery.Client is one.
type Repository interface {
	Written(ctx context.Context, owner delivery.Owner, wanted rollout.Trees) (delivery.Written, error)
	Inventory(ctx context.Context, at delivery.Location, filter gitops.InventoryFilter) (gitops.Inventory, error)
	Commits(ctx context.Context, owner delivery.Owner, ids []string, want rollout.Trees) (map[string]gitops.Commit, error)
	History(ctx context.Context, owner delivery.Owner, filter gitops.HistoryFilter) (gitops.History, error)
}

// Seen is what a branch has of an owner.
type Seen struct {
	Written delivery.Written
	// Commits changed the folders last, as far as that is known.
	Commits map[rollout.Key]string
	// Past are the commits that the evidence names, by their ids.
	Past    map[string]gitops.Commit
	History gitops.History
}

// Label is the name that what is rendered has in its labels: the first one of the owner.
func (s *Seen) Label(owner string) string {
	label := ""
	for _, record := range s.Written.Records {
		label = max(label, record.OwnerLabel)
	}
	if label == "" {
		return owner
	}
	return label
}

// Look reads what the branch has: its tip, the owner's records and trees, the commits that evidence names, and as many
// commits of the history as asked for. It reads the branch as others in the process do, once, and of files none but
// records.
//
// Errors: as of a look at a repository.
func Look(ctx context.Context, repository Repository, owner delivery.Owner, evidence *observe.Evidence, history int) (*Seen, error) {
	written, err := repository.Written(ctx, owner, nil)
	if err != nil {
		return nil, err
	}
	seen := &Seen{Written: written, Commits: map[rollout.Key]string{}, History: gitops.History{Complete: true}}
	if written.Tip == "" {
		return seen, nil
	}
	inventory, err := repository.Inventory(ctx, owner.Location, gitops.InventoryFilter{Owner: owner.Name})
	if err != nil {
		return nil, err
	}
	for _, one := range inventory.Assignments {
		if one.Owner.Path == owner.Location.Path {
			seen.Commits[rollout.Key{Host: one.Host, DeploymentTarget: one.DeploymentTarget}] = one.Commit
		}
	}
	if ids := commitsOf(evidence); len(ids) > 0 {
		if seen.Past, err = repository.Commits(ctx, owner, ids, seen.wanted(evidence)); err != nil {
			return nil, err
		}
	}
	if history > 0 {
		seen.History, err = repository.History(ctx, owner, gitops.HistoryFilter{Limit: history})
	}
	return seen, err
}

// commitsOf are those that clusters have, and the one that the branch had when they were asked.
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

// wanted are the folders whose trees matter at the commits: none where the branch is as it was.
func (s *Seen) wanted(evidence *observe.Evidence) rollout.Trees {
	if evidence.Tip == s.Written.Tip {
		return nil
	}
	trees := rollout.Trees{}
	for key := range s.Written.Records {
		if trees[key.Host] == nil {
			trees[key.Host] = map[string]string{}
		}
		trees[key.Host][key.DeploymentTarget] = ""
	}
	return trees
}

// maxChanges is how many changes of a commit a page lists.
const maxChanges = 50

// setHistory lists the commits. Of a commit that changed many assignments, each deployment target comes once before
// any comes again.
func (m *builder) setHistory() {
	if m.Seen == nil {
		return
	}
	m.out.Page.HistoryCut = !m.Seen.History.Complete
	for i := range m.Seen.History.Commits {
		from := &m.Seen.History.Commits[i]
		c := report.Commit{ID: from.Commit, Author: from.Author.Name, Subject: from.Subject, Time: from.Time.UTC(), Count: len(from.Changes)}
		var first, others []report.Change
		seen := map[string]bool{}
		for _, change := range from.Changes {
			one := report.Change{Action: string(change.Action), Assignment: change.Host + "/" + change.DeploymentTarget}
			if seen[change.DeploymentTarget] {
				others = append(others, one)
				continue
			}
			seen[change.DeploymentTarget] = true
			first = append(first, one)
		}
		all := slices.Concat(first, others)
		c.Changes = all[:min(maxChanges, len(all))]
		m.out.Page.History = append(m.out.Page.History, c)
	}
}

// withoutCredentials is a URL that may be shown.
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
