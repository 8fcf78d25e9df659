package overview_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/health"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/overview"
)

// fakeRepository has one deployment target of each owner on the same host.
type fakeRepository []gitops.Owner

func (r fakeRepository) ReadOwner(_ context.Context, owner delivery.Owner, _ folder.Trees) (gitops.OwnerSnapshot, error) {
	key := folder.Key{Host: "large", DeploymentTarget: "app-" + owner.Name}
	record := gitops.FolderRecord{Record: folder.Record{Workload: "app", Workspace: "team"}, Tree: id(1)}
	return gitops.OwnerSnapshot{
		Tip: id(2), Records: map[folder.Key]gitops.FolderRecord{key: record},
		Trees: folder.Trees{"large": {key.DeploymentTarget: id(1)}},
	}, nil
}

func (r fakeRepository) ReadInventory(_ context.Context, _ folder.Location, filter gitops.InventoryFilter) (found gitops.Inventory, err error) {
	for _, owner := range r {
		if found.Owners = append(found.Owners, owner); filter.Owner == "" || filter.Owner == owner.Name {
			key := folder.Key{Host: "large", DeploymentTarget: "app-" + owner.Name}
			found.Assignments = append(found.Assignments, gitops.InventoryAssignment{Owner: owner, Key: key})
		}
	}
	return found, nil
}

func (r fakeRepository) FindCommits(context.Context, delivery.Owner, []string, folder.Trees) (map[string]gitops.ReportedCommit, error) {
	return map[string]gitops.ReportedCommit{id(2): {ID: id(2)}}, nil
}

// ReadHistory returns a commit for each hour, at any path.
func (r fakeRepository) ReadHistory(_ context.Context, owner delivery.Owner, filter gitops.HistoryFilter) (found gitops.History, err error) {
	for i := range filter.Limit {
		commit := gitops.HistoryCommit{
			Changes: []gitops.HistoryChange{{Change: folder.Change{Key: folder.Key{Host: "large", DeploymentTarget: "app"}}}},
		}
		commit.Subject, commit.Time = fmt.Sprintf("%s %d", owner.Location.Path, i), reportTime.Add(-time.Duration(i)*time.Hour)
		found.Commits = append(found.Commits, commit)
	}
	return found, nil
}

func evidenceOf(owner, path string, v verdict.Verdict, message string) *observe.Evidence {
	return &observe.Evidence{
		About: observe.About{Owner: owner, Environment: "dev", Branch: "dev", Path: path}, Time: reportTime, Tip: id(2),
		Clusters: map[string]observe.ClusterEvidence{
			"large-1": {Type: "large", Commit: id(2), Status: verdict.Status{Verdict: v, Since: reportTime, Message: message}},
		},
	}
}

// The platform and a team share a cluster. The owner edge has another path.
func TestOwnersOfOnePathShareHostsAndClusters(t *testing.T) {
	t.Parallel()
	repository := fakeRepository{
		{Name: "platform", Environment: "dev"}, {Name: "team", Environment: "dev"}, {Name: "edge", Path: "far", Environment: "dev"},
	}
	location := folder.Location{URL: "https://user:canary@git.example.com/gitops.git", Branch: "dev"}
	owners, err := overview.LookAtOwners(t.Context(), repository, location, []*observe.Evidence{
		evidenceOf(
			"team",
			"",
			verdict.Failed,
			"no space",
		), evidenceOf("platform", "", verdict.Ready, ""), evidenceOf("edge", "far", verdict.Ready, ""), evidenceOf("edge", "", verdict.Failed, "another one"),
	})
	if err != nil {
		t.Fatal(err)
	}
	history, err := overview.OwnersHistory(t.Context(), repository, location, owners, 3)
	if err != nil || len(history.Commits) != 3 || history.Complete || history.Commits[0].Time.Before(history.Commits[2].Time) ||
		history.Commits[0].Subject[0] == history.Commits[1].Subject[0] {
		t.Errorf("the history is %+v, %v", history, err)
	}
	page := overview.BuildOwners(overview.Input{Owner: delivery.Owner{Location: location}, Bounds: health.DefaultBounds()}, owners, history)
	var hosts, clusters, assignments, regions []string
	for _, h := range page.Hosts {
		hosts = append(hosts, fmt.Sprintf("%s of %s: %d", h.Name, h.Region, h.Health.Value))
	}
	for _, c := range page.Clusters {
		clusters = append(clusters, fmt.Sprintf("%s of %s: %s %s", c.Name, c.Type, c.Verdict, c.Message))
	}
	for _, a := range page.Assignments {
		assignments = append(assignments, fmt.Sprintf("%s/%s: %s", a.Host, a.Target, a.Verdict))
	}
	for _, r := range page.Regions {
		regions = append(regions, fmt.Sprintf("%s: %d", r.Name, r.Health.Value))
	}
	for _, test := range []struct {
		got  []string
		want []string
	}{
		{hosts, []string{"far/large of far/edge: 100", "large of platform, team: 50"}},
		{clusters, []string{"far/large-1 of far/large: ready ", "large-1 of large: failed no space"}},
		{assignments, []string{"far/large/app-edge: ready", "large/app-platform: ready", "large/app-team: failed"}},
		{regions, []string{"platform: 100", "team: 0", "far/edge: 100"}},
	} {
		if !reflect.DeepEqual(test.got, test.want) {
			t.Errorf("got %q, want %q", test.got, test.want)
		}
	}
	if got := page.Repository.URL; got != "https://git.example.com/gitops.git" {
		t.Errorf("the URL is %q", got)
	}
	if c := page.Count(); c.Wanted(verdict.Ready) != 2 || c.Wanted(verdict.Failed) != 1 || page.Fleet.Hosts != 2 || page.Environment != "dev" {
		t.Errorf("the counts are %+v of %+v", c, page.Fleet)
	}
}
