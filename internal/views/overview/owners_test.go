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

// recorded is a repository that has one deployment target of each owner on the same host.
type recorded []gitops.Owner

func (r recorded) ReadOwner(_ context.Context, owner delivery.Owner, _ folder.Trees) (gitops.OwnerSnapshot, error) {
	key := folder.Key{Host: "large", DeploymentTarget: "app-" + owner.Name}
	record := gitops.FolderRecord{Record: folder.Record{Workload: "app", Workspace: "team"}, Tree: id(1)}
	return gitops.OwnerSnapshot{
		Tip: id(2), Records: map[folder.Key]gitops.FolderRecord{key: record},
		Trees: folder.Trees{"large": {key.DeploymentTarget: id(1)}},
	}, nil
}

func (r recorded) ReadInventory(_ context.Context, _ folder.Location, filter gitops.InventoryFilter) (found gitops.Inventory, err error) {
	for _, owner := range r {
		if found.Owners = append(found.Owners, owner); filter.Owner == "" || filter.Owner == owner.Name {
			key := folder.Key{Host: "large", DeploymentTarget: "app-" + owner.Name}
			found.Assignments = append(found.Assignments, gitops.InventoryAssignment{Owner: owner, Key: key})
		}
	}
	return found, nil
}

func (r recorded) FindCommits(context.Context, delivery.Owner, []string, folder.Trees) (map[string]gitops.ReportedCommit, error) {
	return map[string]gitops.ReportedCommit{id(2): {ID: id(2)}}, nil
}

// History has a commit each hour, of whatever path.
func (r recorded) ReadHistory(_ context.Context, owner delivery.Owner, filter gitops.HistoryFilter) (found gitops.History, err error) {
	for i := range filter.Limit {
		commit := gitops.HistoryCommit{
			Changes: []gitops.HistoryChange{{Change: folder.Change{Key: folder.Key{Host: "large", DeploymentTarget: "app"}}}},
		}
		commit.Subject, commit.Time = fmt.Sprintf("%s %d", owner.Location.Path, i), asked.Add(-time.Duration(i)*time.Hour)
		found.Commits = append(found.Commits, commit)
	}
	return found, nil
}

func reported(owner, path string, is verdict.Verdict, message string) *observe.Evidence {
	return &observe.Evidence{
		About: observe.About{Owner: owner, Environment: "dev", Branch: "dev", Path: path}, Time: asked, Tip: id(2),
		Clusters: map[string]observe.ClusterEvidence{
			"large-1": {Type: "large", Commit: id(2), Status: verdict.Status{Verdict: is, Since: asked, Message: message}},
		},
	}
}

// The platform and a team have each something on the same cluster, as have two regions at other paths.
func TestOwnersOfOnePathShareHostsAndClusters(t *testing.T) {
	t.Parallel()
	repository := recorded{
		{Name: "platform", Environment: "dev"}, {Name: "team", Environment: "dev"}, {Name: "edge", Path: "far", Environment: "dev"},
	}
	at := folder.Location{URL: "https://user:canary@git.example.com/gitops.git", Branch: "dev"}
	owners, err := overview.LookAtOwners(t.Context(), repository, at, []*observe.Evidence{
		reported(
			"team",
			"",
			verdict.Failed,
			"no space",
		), reported("platform", "", verdict.Ready, ""), reported("edge", "far", verdict.Ready, ""), reported("edge", "", verdict.Failed, "another one"),
	})
	if err != nil {
		t.Fatal(err)
	}
	history, err := overview.OwnersHistory(t.Context(), repository, at, owners, 3)
	if err != nil || len(history.Commits) != 3 || history.Complete || history.Commits[0].Time.Before(history.Commits[2].Time) ||
		history.Commits[0].Subject[0] == history.Commits[1].Subject[0] {
		t.Errorf("the history is %+v, %v", history, err)
	}
	made := overview.BuildOwners(overview.Input{Owner: delivery.Owner{Location: at}, Bounds: health.DefaultBounds()}, owners, history)
	var hosts, clusters, assignments, regions []string
	for _, h := range made.Hosts {
		hosts = append(hosts, fmt.Sprintf("%s of %s: %d", h.Name, h.Region, h.Health.Value))
	}
	for _, c := range made.Clusters {
		clusters = append(clusters, fmt.Sprintf("%s of %s: %s %s", c.Name, c.Type, c.Verdict, c.Message))
	}
	for _, a := range made.Assignments {
		assignments = append(assignments, fmt.Sprintf("%s/%s: %s", a.Host, a.Target, a.Verdict))
	}
	for _, r := range made.Regions {
		regions = append(regions, fmt.Sprintf("%s: %d", r.Name, r.Health.Value))
	}
	for _, is := range []struct {
		got  []string
		want []string
	}{
		{hosts, []string{"far/large of far/edge: 100", "large of platform, team: 50"}},
		{clusters, []string{"far/large-1 of far/large: ready ", "large-1 of large: failed no space"}},
		{assignments, []string{"far/large/app-edge: ready", "large/app-platform: ready", "large/app-team: failed"}},
		{regions, []string{"platform: 100", "team: 0", "far/edge: 100"}},
	} {
		if !reflect.DeepEqual(is.got, is.want) {
			t.Errorf("got %q, want %q", is.got, is.want)
		}
	}
	if got := made.Repository.URL; got != "https://git.example.com/gitops.git" {
		t.Errorf("the URL is %q", got)
	}
	if c := made.Count(); c.Wanted(verdict.Ready) != 2 || c.Wanted(verdict.Failed) != 1 || made.Fleet.Hosts != 2 || made.Environment != "dev" {
		t.Errorf("the counts are %+v of %+v", c, made.Fleet)
	}
}
