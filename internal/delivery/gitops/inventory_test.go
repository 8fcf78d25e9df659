package gitops_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

func recordedFolder(t testing.TB, workload, workspace, clusterType, content string) gitops.FolderEdit {
	t.Helper()
	recorded := newFolder(t, "a", content)
	recorded.Record = folder.Record{
		Workload: workload, Workspace: workspace, DeploymentTarget: workload + "-main", ClusterType: clusterType, ConfigVersion: content,
		Policies: []string{"everywhere"}, Objects: []folder.ObjectRef{{Kind: "Kustomization", Namespace: "flux-system", Name: workload}},
	}
	return recorded
}

// writeFourOwners writes the folders of four owners at three paths, an hour apart.
func writeFourOwners(t testing.TB, r *repository) []gitops.Owner {
	t.Helper()
	now := time.Date(2026, 11, 22, 2, 0, 0, 0, time.UTC)
	client := newClient(gitops.BranchOptions{Now: func() time.Time { return now }})
	owners := []gitops.Owner{
		{Name: "shop", Environment: "dev"}, {Name: "shop", Environment: "dev", Path: "dev"},
		{Name: "clusters", Environment: "dev", Path: "dev"}, {Name: "shop", Environment: "prod", Path: "env/eu/prod"},
	}
	for i, owner := range owners {
		edit := gitops.Edit{Owner: owner, Hosts: folderEdits(t, map[string]gitops.FolderEdit{
			fmt.Sprintf("drone/shop-main-%d", i):            recordedFolder(t, "shop", "team-a", "", "1"),
			fmt.Sprintf("large/bank-main-%d", i):            recordedFolder(t, "bank", "team-b", "", "1"),
			fmt.Sprintf("clusters/store-1/shop-main-%d", i): recordedFolder(t, "shop", "team-a", "drone", "1"),
			fmt.Sprintf("clusters/store-2/bank-main-%d", i): recordedFolder(t, "bank", "team-b", "large", "1"),
			fmt.Sprintf("idle-%d/", i):                      {},
		})}
		if _, err := client.Apply(t.Context(), r.remote, edit); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Hour)
	}
	return owners
}

func readBranch(t testing.TB, remote git.Remote) *gitops.Branch {
	t.Helper()
	branch, err := newClient(gitops.BranchOptions{}).ReadBranch(t.Context(), remote)
	if err != nil {
		t.Fatal(err)
	}
	return branch
}

func readInventory(t testing.TB, branch *gitops.Branch, filter gitops.InventoryFilter) gitops.Inventory {
	t.Helper()
	found, err := branch.ReadInventory(t.Context(), filter)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// assignmentTexts returns each assignment as "<path>:<owner>:<host>/<target>".
func assignmentTexts(found gitops.Inventory) []string {
	var list []string
	for _, a := range found.Assignments {
		list = append(list, fmt.Sprintf("%s:%s:%s/%s", a.Owner.Path, a.Owner.Name, a.Host, a.DeploymentTarget))
	}
	return list
}

func TestAnInventoryHasTheRecordsOfAllOwners(t *testing.T) {
	t.Parallel()
	forEachServing(t, func(t *testing.T, r *repository) {
		r.commitByHand(func(w *workTree) {
			w.write("docs/a/b/c/d/e", "x")
			w.write("dev/drone/foreign/.flotilla/other/drone.json", "{}") // inside a host
			w.write("charts/.flotilla/x", "a file")
			w.write("charts/.flotilla/bad/drone.json", "{")
			w.write("a/b/c/d/.flotilla/deep/drone.json", "{}") // too deep
			w.write("a/b/c/d/drone/x", "x")
		})
		owners := writeFourOwners(t, r)
		view := readBranch(t, r.remote)
		found := readInventory(t, view, gitops.InventoryFilter{})
		var names []string
		for _, owner := range found.Owners {
			names = append(names, owner.Path+":"+owner.Name)
		}
		if got := strings.Join(names, " "); got != ":shop charts:bad dev:clusters dev:shop env/eu/prod:shop" {
			t.Errorf("got owners %s", got)
		}
		if !slices.Equal(found.Unreadable, []string{"charts/.flotilla/bad/drone.json"}) || found.Commit != r.tip() {
			t.Errorf("got unreadable %v at %s", found.Unreadable, found.Commit)
		}
		var want []string
		for _, i := range []int{0, 2, 1, 3} {
			for _, key := range []string{"clusters/store-1/shop", "clusters/store-2/bank", "drone/shop", "large/bank"} {
				want = append(want, fmt.Sprintf("%s:%s:%s-main-%d", owners[i].Path, owners[i].Name, key, i))
			}
		}
		if got := assignmentTexts(found); !slices.Equal(got, want) {
			t.Errorf("got assignments\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		commits := strings.Fields(r.git("rev-list", "--reverse", "main"))[1:]
		for _, a := range found.Assignments {
			i := slices.IndexFunc(owners, func(o gitops.Owner) bool { return o == a.Owner })
			if i < 0 || a.Commit != commits[i] || !a.Changed.Equal(time.Date(2026, 11, 22, 2+i, 0, 0, 0, time.UTC)) {
				t.Errorf("%+v", a)
			}
		}
		record := found.Assignments[0]
		record.Changed, record.Commit = time.Time{}, ""
		if got, want := sprint(record), sprint(gitops.InventoryAssignment{
			Owner: owners[0], Key: folder.Key{Host: "clusters/store-1", DeploymentTarget: "shop-main-0"},
			FolderRecord: gitops.FolderRecord{Record: recordedFolder(t, "shop", "team-a", "drone", "1").Record, Tree: newFolder(t, "a", "1").Tree},
		}); got != want {
			t.Errorf("the first assignment: got\n%s\nwant\n%s", got, want)
		}
		names = found.Names.Hosts
		if got := strings.Join(names, " "); !strings.HasPrefix(got, "clusters/store-1 clusters/store-2 drone idle-0") ||
			fmt.Sprint(found.Names.Workloads, found.Names.Workspaces) != "[bank shop] [team-a team-b]" {
			t.Errorf("got names %+v", found.Names)
		}
	})
}

func TestAnInventoryIsFiltered(t *testing.T) {
	t.Parallel()
	r := newRepository(t, servings[0])
	writeFourOwners(t, r)
	// A record may lack the cluster type and the workspace.
	r.commitByHand(func(w *workTree) {
		record := fmt.Sprintf(
			`{"format": 1, "deployment_targets": {"old-main": {"workload": "old", "deployment_target": "old-main", "tree": %q}}}`,
			newFolder(t, "a", "1").Tree,
		)
		w.write("old/.flotilla/former/clusters/store-9.json", record)
		w.write("old/.flotilla/former/drone.json", record)
	})
	branch := readBranch(t, r.remote)
	for name, test := range map[string]struct {
		filter      gitops.InventoryFilter
		count       int
		first       string
		typeUnknown bool
	}{
		"everything":                 {gitops.InventoryFilter{}, 18, ":shop:clusters/store-1/shop-main-0", false},
		"a path":                     {gitops.InventoryFilter{Path: "env"}, 4, "env/eu/prod:shop:clusters/store-1/shop-main-3", false},
		"the path itself":            {gitops.InventoryFilter{Path: "env/eu/prod"}, 4, "env/eu/prod:shop:clusters/store-1/shop-main-3", false},
		"a missing path":             {gitops.InventoryFilter{Path: "nowhere/else"}, 0, "", false},
		"the path of a file":         {gitops.InventoryFilter{Path: "dev/drone/clusters.md"}, 0, "", false},
		"an owner":                   {gitops.InventoryFilter{Owner: "clusters"}, 4, "dev:clusters:clusters/store-1/shop-main-2", false},
		"no such owner":              {gitops.InventoryFilter{Owner: "nobody"}, 0, "", false},
		"a host":                     {gitops.InventoryFilter{Host: "drone"}, 5, ":shop:drone/shop-main-0", false},
		"a cluster as a host":        {gitops.InventoryFilter{Host: "clusters/store-2"}, 4, ":shop:clusters/store-2/bank-main-0", false},
		"a cluster":                  {gitops.InventoryFilter{Cluster: "store-1"}, 9, ":shop:clusters/store-1/shop-main-0", false},
		"a cluster, a workload":      {gitops.InventoryFilter{Cluster: "store-1", Workload: "shop"}, 8, ":shop:clusters/store-1/shop-main-0", false},
		"a cluster and its type":     {gitops.InventoryFilter{Cluster: "store-3", ClusterType: "large"}, 4, ":shop:large/bank-main-0", false},
		"a cluster without its type": {gitops.InventoryFilter{Cluster: "store-9"}, 1, "old:former:clusters/store-9/old-main", true},
		"that cluster with its type": {gitops.InventoryFilter{Cluster: "store-9", ClusterType: "drone"}, 6, ":shop:drone/shop-main-0", false},
		"no such cluster":            {gitops.InventoryFilter{Cluster: "store-8"}, 0, "", true},
		"a cluster type":             {gitops.InventoryFilter{ClusterType: "large"}, 8, ":shop:clusters/store-2/bank-main-0", false},
		"a workload":                 {gitops.InventoryFilter{Workload: "bank"}, 8, ":shop:clusters/store-2/bank-main-0", false},
		"a workspace":                {gitops.InventoryFilter{Workspace: "team-a"}, 8, ":shop:clusters/store-1/shop-main-0", false},
		"an owner on a cluster":      {gitops.InventoryFilter{Owner: "clusters", Cluster: "store-2"}, 2, "dev:clusters:clusters/store-2/bank-main-2", false},
		"another team's workload":    {gitops.InventoryFilter{Workload: "bank", Workspace: "team-a"}, 0, "", false},
	} {
		found := readInventory(t, branch, test.filter)
		list := append(assignmentTexts(found), "")
		if len(found.Assignments) != test.count || list[0] != test.first || found.TypeUnknown != test.typeUnknown {
			t.Errorf("%s: got %d, type unknown %t:\n%s", name, len(found.Assignments), found.TypeUnknown, strings.Join(list, "\n"))
		}
	}
	if _, err := branch.ReadInventory(t.Context(), gitops.InventoryFilter{Path: "../x"}); err == nil {
		t.Error("a path outside the repository is accepted")
	}
}

func TestTheInventoryOfAnEmptyBranchIsEmpty(t *testing.T) {
	t.Parallel()
	forEachServing(t, func(t *testing.T, r *repository) {
		for _, remote := range []git.Remote{r.remote, {URL: filepath.Join(t.TempDir(), "new.git"), Branch: "main"}} {
			if found := readInventory(t, readBranch(t, remote), gitops.InventoryFilter{}); found.Commit != "" ||
				len(found.Assignments)+len(found.Owners) > 0 {
				t.Errorf("%+v", found)
			}
		}
		r.commitByHand(func(w *workTree) { w.write("README.md", "x") })
		if found := readInventory(t, readBranch(t, r.remote), gitops.InventoryFilter{Cluster: "x"}); found.Commit == "" ||
			len(found.Assignments)+len(found.Owners) > 0 {
			t.Errorf("%+v", found)
		}
	})
}

func TestRecordsOfOtherVersionsAreInTheInventory(t *testing.T) {
	t.Parallel()
	names, err := os.ReadDir("testdata/records")
	if err != nil {
		t.Fatal(err)
	}
	r := newRepository(t, servings[0])
	r.commitByHand(func(w *workTree) {
		for _, name := range names {
			content, err := os.ReadFile(filepath.Join("testdata/records", name.Name()))
			if err != nil {
				t.Fatal(err)
			}
			w.write(".flotilla/"+strings.TrimSuffix(name.Name(), ".json")+"/drone.json", string(content))
		}
	})
	found := readInventory(t, readBranch(t, r.remote), gitops.InventoryFilter{Workload: "hello-world-app"})
	if len(found.Assignments) != len(names) || len(found.Unreadable) > 0 {
		t.Errorf("%+v", found)
	}
	for _, a := range found.Assignments {
		// No commit has the time in the record.
		if a.DeploymentTarget != "hello-world-app-functional-test" || a.ConfigVersion != "4f" || a.Commit != "" || a.Owner.Environment != "dev" {
			t.Errorf("%+v", a)
		}
	}
}

// Two commits have the same second, so the commit of the changed folder is unknown.
func TestAnAmbiguousCommitIsUnknown(t *testing.T) {
	t.Parallel()
	r := newRepository(t, servings[0])
	now := time.Date(2026, 11, 22, 2, 0, 0, 0, time.UTC)
	client := newClient(gitops.BranchOptions{Now: func() time.Time { return now }})
	write := func(owner gitops.Owner, target, content string) string {
		edit := gitops.Edit{Owner: owner, Hosts: folderEdits(t, map[string]gitops.FolderEdit{"drone/" + target: recordedFolder(t, "shop", "team", "", content)})}
		result, err := client.Apply(t.Context(), r.remote, edit)
		if err != nil {
			t.Fatal(err)
		}
		return result.Commit
	}
	other := gitops.Owner{Name: "other", Path: "dev"}
	write(dev, "app", "1")
	otherCommit := write(other, "app-of-other", "1")
	write(dev, "app", "2")
	commits := map[string]string{}
	for _, a := range readInventory(t, readBranch(t, r.remote), gitops.InventoryFilter{}).Assignments {
		commits[a.DeploymentTarget] = a.Commit
	}
	if commits["app-of-other"] != otherCommit || commits["app"] != "" || len(commits) != 2 {
		t.Errorf("got commits %v, want %s for the other owner", commits, otherCommit)
	}
}

func TestAnInventoryReadsOnlyRecords(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		config []string
		most   int
	}{
		"any object":     {anyObject, 12},
		"no tree filter": {noTreeFilter, 6},
		"plain":          {nil, 3},
	} {
		r := newRepository(t, serving{config: test.config, remote: overHTTP})
		r.commitByHand(func(w *workTree) { w.write("docs/a/b/c/d/e", "x") })
		writeFourOwners(t, r)
		count := &counter{next: backend(t, filepath.Dir(r.directory))}
		branch := readBranch(t, git.Remote{IsGitOps: true, URL: serve(t, count) + "/gitops.git", Branch: "main"})
		found := readInventory(t, branch, gitops.InventoryFilter{Workload: "shop"})
		reads, requests := count.take()
		t.Logf("%s: %d reads, %d requests", name, reads, requests)
		if reads != 1 || requests > test.most || len(found.Assignments) != 8 {
			t.Errorf("%s: %d reads, %d requests for %d assignments", name, reads, requests, len(found.Assignments))
		}
		view, err := branch.ReadOwner(t.Context(), gitops.Owner{Name: "shop"})
		if err != nil {
			t.Fatal(err)
		}
		if blobs := view.Blobs(); test.config != nil && blobs > 4*5 {
			t.Errorf("%s: %d blobs were fetched", name, blobs)
		}
		count.take()
		readInventory(t, branch, gitops.InventoryFilter{Cluster: "store-1"})
		if reads, requests := count.take(); reads+requests > 0 {
			t.Errorf("%s: a second inventory took %d reads and %d requests", name, reads, requests)
		}
	}
}

func BenchmarkInventory(b *testing.B) {
	for _, hosts := range []int{500, 2500} { // 20,000 and 100,000 assignments
		b.Run(fmt.Sprintf("%d assignments", 40*hosts), func(b *testing.B) {
			r := newRepository(b, servings[0])
			edit := gitops.Edit{Owner: dev, Hosts: gitops.FolderEdits{}}
			for host := range hosts {
				folders := map[string]gitops.FolderEdit{}
				for target := range 40 {
					folders[fmt.Sprintf("workload-%02d-main", target)] = recordedFolder(b, fmt.Sprintf("workload-%02d", target), "team", "", "1")
				}
				edit.Hosts[fmt.Sprintf("type-%04d", host)] = folders
			}
			if _, err := newClient(gitops.BranchOptions{}).Apply(b.Context(), r.remote, edit); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if found := readInventory(b, readBranch(b, r.remote), gitops.InventoryFilter{}); len(found.Assignments) != 40*hosts {
					b.Fatal(len(found.Assignments))
				}
			}
		})
	}
}
