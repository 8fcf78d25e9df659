package gitops

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/gittest"
)

func TestUnchangedHostsAreNotRead(t *testing.T) {
	t.Parallel()
	memory := gittest.NewRepository(true)
	repository := git.NewConnector(git.ConnectorOptions{Over: memory})
	remote := git.Remote{IsGitOps: true, URL: "http://memory/r", Branch: "main"}
	edit := Edit{Owner: Owner{Name: "dev", Path: "dev"}, Hosts: FolderEdits{}}
	newFolder := func(content string) FolderEdit {
		files := []git.File{{Name: "a", Content: []byte(content)}}
		tree, err := git.TreeID(files)
		if err != nil {
			t.Fatal(err)
		}
		return FolderEdit{Tree: tree, Files: func() ([]git.File, error) { return files, nil }}
	}
	const hosts = 20
	for i := range hosts {
		edit.Hosts[fmt.Sprintf("host-%d", i)] = map[string]FolderEdit{"app": newFolder(fmt.Sprint(i)), "other": newFolder("x")}
	}
	result, err := NewBranchClient(BranchOptions{Git: repository}).Apply(context.Background(), remote, edit)
	if err != nil || len(result.Records) != hosts {
		t.Fatalf("%+v, %v", result, err)
	}
	countRead := func(edit Edit) (records int) {
		t.Helper()
		tip, err := repository.Open(context.Background(), remote, edit.Owner.treeLevels())
		if err != nil {
			t.Fatal(err)
		}
		defer tip.Close()
		if _, err := stageEdit(context.Background(), newLayout(tip), edit, time.Now(), nil); err != nil {
			t.Fatal(err)
		}
		for _, id := range result.Records {
			if tip.Has(parseID(t, id)) {
				records++
			}
		}
		return records
	}
	if got := countRead(edit); got != hosts {
		t.Errorf("without a state: got %d read records, want %d", got, hosts)
	}
	countParsed := func(edit Edit) int {
		t.Helper()
		tip, err := repository.Open(context.Background(), remote, edit.Owner.treeLevels())
		if err != nil {
			t.Fatal(err)
		}
		defer tip.Close()
		s := &ownerTip{layout: newLayout(tip), edit: edit, want: edit.Hosts.Trees()}
		if s.atTip, err = s.openOwner(context.Background(), edit.Owner, nil); err == nil {
			err = s.readOwnRecords(context.Background())
		}
		if err != nil {
			t.Fatal(err)
		}
		return len(s.recorded)
	}
	for name, test := range map[string]struct {
		change func(edit *Edit)
		want   int
	}{
		"nothing":        {func(*Edit) {}, 0},
		"a folder":       {func(e *Edit) { e.Hosts["host-3"]["app"] = newFolder("new") }, 1},
		"one less":       {func(e *Edit) { delete(e.Hosts["host-5"], "app") }, 1},
		"another policy": {func(e *Edit) { e.Hosts["host-6"]["app"] = withPolicy(e.Hosts["host-6"]["app"], "p") }, 1},
		"one is kept":    {func(e *Edit) { e.Hosts["host-7"]["app"] = FolderEdit{Action: Keep} }, 1},
		"another holder": {func(e *Edit) { e.Holder = "h" }, hosts},
	} {
		changed := edit
		changed.Hosts = edit.Hosts.clone()
		test.change(&changed)
		if got := countParsed(changed); got != test.want {
			t.Errorf("without a state, %s: got %d parsed records, want %d", name, got, test.want)
		}
	}
	edit.Written, edit.Records = edit.Wanted(), result.Records
	for name, test := range map[string]struct {
		change func(edit *Edit)
		want   int
	}{
		"nothing":  {func(*Edit) {}, 0},
		"a folder": {func(e *Edit) { e.Hosts["host-3"]["app"] = newFolder("new") }, 1},
		"one more": {func(e *Edit) { e.Hosts["host-4"]["new"] = newFolder("new") }, 1},
		"one less": {func(e *Edit) {
			delete(e.Hosts["host-5"], "app")
			e.Remove = folder.Trees{"host-5": {"app": ""}}
		}, 1},
		"a host less":     {func(e *Edit) { delete(e.Hosts, "host-6"); e.Remove = folder.Trees{"host-6": {"app": "", "other": ""}} }, 1},
		"another id":      {func(e *Edit) { e.Records["host-7"] = e.Records["host-8"] }, 1},
		"a new name":      {func(e *Edit) { e.Owner.Name, e.FormerName = "dev-eu", "dev" }, hosts},
		"all are kept":    {func(e *Edit) { keepAll(e) }, 0},
		"kept, and other": {func(e *Edit) { keepAll(e); e.Hosts["host-3"]["app"] = newFolder("new") }, 1},
	} {
		changed := edit
		changed.Hosts, changed.Records = edit.Hosts.clone(), map[string]string{}
		for host, id := range edit.Records {
			changed.Records[host] = id
		}
		test.change(&changed)
		if got := countRead(changed); got != test.want {
			t.Errorf("%s: got %d read records, want %d", name, got, test.want)
		}
	}
}

func withPolicy(folder FolderEdit, policy string) FolderEdit {
	folder.Record.Policies = []string{policy}
	return folder
}

func keepAll(edit *Edit) {
	for _, host := range edit.Hosts {
		for target := range host {
			host[target] = FolderEdit{Action: Keep}
		}
	}
}

func parseID(t *testing.T, id string) git.Hash {
	t.Helper()
	hash, err := git.ParseID(id)
	if err != nil {
		t.Fatal(err)
	}
	return hash
}
