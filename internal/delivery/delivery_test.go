package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/gittest"
)

// site is a folder with repositories. Each step runs in a new process of the provider.
type site struct {
	t      *testing.T
	folder string
}

func newSite(t *testing.T) *site {
	t.Parallel()
	return &site{t, t.TempDir()}
}

// newService returns a service without memory of earlier ones. In `make acceptance`, Git serves its repositories.
func (s *site) newService() *delivery.Service {
	return delivery.New(delivery.ServiceOptions{Git: gitops.NewBranchClient(gitops.BranchOptions{Git: git.NewConnector(gittest.Options())})})
}

func (s *site) location(name, branch string) folder.Location {
	return folder.Location{URL: filepath.ToSlash(filepath.Join(s.folder, name)), Branch: branch}
}

// content returns the files of a version.
func content(version string) []git.File {
	return []git.File{{Name: "config.yaml", Content: []byte("version: " + version + "\n")}}
}

// wantedTrees has the given number of deployment targets on each host.
func wantedTrees(t *testing.T, version string, count int, hosts ...string) folder.Trees {
	t.Helper()
	tree, err := git.TreeID(content(version))
	if err != nil {
		t.Fatal(err)
	}
	trees := folder.Trees{}
	for _, host := range hosts {
		trees[host] = map[string]string{}
		for i := range count {
			trees[host][fmt.Sprintf("target-%02d", i)] = tree
		}
	}
	return trees
}

// newApplyRequest returns a request to write one version.
func newApplyRequest(intent delivery.Desired, version string) delivery.ApplyRequest {
	return delivery.ApplyRequest{
		Desired: intent, Decisions: rollout.Decide(intent.After, rollout.Write),
		Contents: func(host, target string) gitops.FolderEdit {
			return gitops.FolderEdit{
				Tree:   intent.After[host][target],
				Files:  func() ([]git.File, error) { return content(version), nil },
				Record: folder.Record{Workload: "app", DeploymentTarget: target},
			}
		},
	}
}

// apply applies in a new process and returns the new state.
func (s *site) apply(intent delivery.Desired, version string) (*delivery.OwnerState, error) {
	s.t.Helper()
	done, err := s.newService().Apply(context.Background(), newApplyRequest(intent, version))
	if err != nil {
		return nil, err
	}
	for _, problem := range done.Problems {
		s.t.Errorf("after the commit: %s: %s", problem.Summary, problem.Detail)
	}
	return &delivery.OwnerState{
		Owner:      intent.Owner,
		Settings:   intent.Settings,
		SavedState: delivery.SavedState{Trees: intent.After, Records: done.Records, Holder: done.Holder},
	}, nil
}

func (s *site) mustApply(intent delivery.Desired, version string) *delivery.OwnerState {
	s.t.Helper()
	state, err := s.apply(intent, version)
	if err != nil {
		s.t.Fatal(err)
	}
	return state
}

func (s *site) git(repository string, arguments ...string) string {
	s.t.Helper()
	command := exec.Command("git", append([]string{"-C", filepath.Join(s.folder, repository)}, arguments...)...)
	out, err := command.CombinedOutput()
	if err != nil {
		s.t.Fatalf("git %s: %s", strings.Join(arguments, " "), out)
	}
	return strings.TrimSpace(string(out))
}

// folders lists the deployment targets' folders with their trees.
func (s *site) folders(repository, branch string) []string {
	var folders []string
	for _, line := range strings.Split(s.git(repository, "ls-tree", "-r", "-t", branch), "\n") {
		if fields := strings.Fields(line); len(fields) == 4 && fields[1] == "tree" && strings.Contains(fields[3], "target-") {
			folders = append(folders, fields[3]+" "+fields[2])
		}
	}
	return folders
}

func (s *site) commitCount(repository, branch string) string {
	return s.git(repository, "rev-list", "--count", branch)
}

func owner(location folder.Location, name string) delivery.Owner {
	return delivery.Owner{Location: location, Name: name, Environment: "dev"}
}

// summaries returns the summaries of the problems of a HeldError.
func summaries(err error) []string {
	var held *delivery.HeldError
	if !errors.As(err, &held) {
		return nil
	}
	var list []string
	for _, problem := range held.Problems {
		list = append(list, problem.Summary)
	}
	return list
}

func TestAnotherSpellingOfTheLocationWritesNothing(t *testing.T) {
	s := newSite(t)
	location := s.location("gitops.git", "dev")
	after := wantedTrees(t, "1", 12, "drone", "large")
	state := s.mustApply(delivery.Desired{Owner: owner(location, "dev"), After: after}, "1")
	before := s.git("gitops.git", "rev-parse", "dev")
	if err := os.Symlink(filepath.Join(s.folder, "gitops.git"), filepath.Join(s.folder, "link.git")); err != nil {
		t.Skip("no symbolic links here: ", err)
	}
	for _, url := range []string{
		s.folder + "/./gitops.git", "file://" + filepath.ToSlash(s.folder) + "/gitops.git", s.folder + "/gitops.git/", s.folder + "/link.git",
	} {
		respelt := folder.Location{URL: url, Branch: "dev"}
		outlook, err := s.newService().Plan(context.Background(), delivery.Desired{Owner: owner(respelt, "dev"), State: state, After: after})
		if err != nil || outlook.Identity != delivery.Same || len(outlook.Problems) > 0 || outlook.Remove.Count()+outlook.Cleared.Count() > 0 {
			t.Fatalf("%s: %+v, %v", url, outlook, err)
		}
		state = s.mustApply(delivery.Desired{Owner: owner(respelt, "dev"), State: state, After: after}, "1")
	}
	if now := s.git("gitops.git", "rev-parse", "dev"); now != before {
		t.Errorf("the branch is at %s, want %s", now, before)
	}
}

func TestAMirrorIsTheSameLocation(t *testing.T) {
	s := newSite(t)
	after := wantedTrees(t, "1", 12, "drone", "large")
	state := s.mustApply(delivery.Desired{Owner: owner(s.location("gitops.git", "dev"), "dev"), After: after}, "1")
	s.git(".", "clone", "-q", "--mirror", "gitops.git", "mirror.git")
	s.mustApply(delivery.Desired{Owner: owner(s.location("mirror.git", "dev"), "dev"), State: state, After: after}, "1")
	for _, repository := range []string{"gitops.git", "mirror.git"} {
		if got := s.commitCount(repository, "dev"); got != "1" {
			t.Errorf("%s has %s commits", repository, got)
		}
	}
}

func TestARenameIsOneCommitWithoutChangedFolders(t *testing.T) {
	s := newSite(t)
	location, after := s.location("gitops.git", "dev"), wantedTrees(t, "1", 12, "drone", "large")
	state := s.mustApply(delivery.Desired{Owner: owner(location, "dev"), After: after}, "1")
	before := s.folders("gitops.git", "dev")
	intent := delivery.Desired{Owner: owner(location, "dev-eu"), State: state, After: after}
	outlook, err := s.newService().Plan(context.Background(), intent)
	if err != nil || outlook.Identity != delivery.Renamed || len(outlook.Problems) > 0 || outlook.Remove.Count() > 0 {
		t.Fatalf("%+v, %v", outlook, err)
	}
	state = s.mustApply(intent, "1")
	if got := s.commitCount("gitops.git", "dev"); got != "2" {
		t.Errorf("got %s commits, want two", got)
	}
	if after := s.folders("gitops.git", "dev"); !slices.Equal(before, after) || len(after) != 24 {
		t.Errorf("got folders\n%q\nwant\n%q", after, before)
	}
	if records := s.git("gitops.git", "ls-tree", "--name-only", "dev", ".flotilla/"); records != ".flotilla/dev-eu" {
		t.Errorf("got records %q", records)
	}
	client := s.newService()
	if err := client.Refresh(context.Background(), state); err != nil || !state.Drift.IsNone() {
		t.Errorf("drift after a rename: %+v, %v", state.Drift, err)
	}
}

func TestAnAllowedMoveClearsTheFormerLocation(t *testing.T) {
	s := newSite(t)
	after := wantedTrees(t, "1", 12, "drone", "large")
	state := s.mustApply(delivery.Desired{Owner: owner(s.location("gitops.git", "dev"), "dev"), After: after}, "1")
	intent := delivery.Desired{Owner: owner(s.location("gitops.git", "next"), "dev"), State: state, After: after}
	outlook, err := s.newService().Plan(context.Background(), intent)
	if err != nil || outlook.Identity != delivery.Moved || outlook.Cleared.Count() != 24 || !outlook.HasError() {
		t.Fatalf("%+v, %v", outlook, err)
	}
	if _, err := s.apply(intent, "1"); !slices.Equal(summaries(err), []string{"Mass deletion"}) || !errors.As(err, new(*delivery.HeldError)) {
		t.Fatalf("without protection.max_removed: %v", err)
	}
	if branches := s.git("gitops.git", "branch", "--format=%(refname:short)"); branches != "dev" {
		t.Fatalf("got branches %q after a refused move", branches)
	}
	most := int64(24)
	intent.Protection.MaxRemoved = &most
	s.mustApply(intent, "1")
	if now, then := len(s.folders("gitops.git", "next")), len(s.folders("gitops.git", "dev")); now != 24 || then != 0 {
		t.Errorf("got %d folders at the new location, %d at the former one", now, then)
	}
}

func TestAMoveWithLeaveKeepsTheFormerLocation(t *testing.T) {
	s := newSite(t)
	after := wantedTrees(t, "1", 2, "drone")
	state := s.mustApply(delivery.Desired{Owner: owner(s.location("old.git", "dev"), "dev"), After: after}, "1")
	s.mustApply(delivery.Desired{Owner: owner(s.location("kept.git", "dev"), "dev"), State: state, After: after, Leave: true}, "1")
	if got := len(s.folders("old.git", "dev")); got != 2 {
		t.Errorf("got %d folders at the former location, want two", got)
	}
}

func TestUntrackedFoldersAreRemovedOnlyWithAdopt(t *testing.T) {
	s := newSite(t)
	location := s.location("gitops.git", "dev")
	s.mustApply(delivery.Desired{Owner: owner(location, "dev"), After: wantedTrees(t, "1", 3, "drone")}, "1")
	second := delivery.Desired{Owner: owner(location, "dev"), After: wantedTrees(t, "1", 2, "large")}
	if _, err := s.apply(second, "1"); !slices.Equal(summaries(err), []string{"Another assignment has this name"}) {
		t.Fatalf("a second root with the same name: %v", err)
	}
	if got := len(s.folders("gitops.git", "dev")); got != 3 {
		t.Fatalf("got %d folders, want the three of the first root", got)
	}
	second.Adopt = true
	s.mustApply(second, "1")
	if got := len(s.folders("gitops.git", "dev")); got != 2 {
		t.Errorf("got %d folders, want the two of the second root", got)
	}
}

func TestALostStateChangesNoFolder(t *testing.T) {
	s := newSite(t)
	intent := delivery.Desired{Owner: owner(s.location("gitops.git", "dev"), "dev"), After: wantedTrees(t, "1", 12, "drone", "large")}
	s.mustApply(intent, "1")
	s.mustApply(intent, "1") // changes only the holder in the records
	if got := s.commitCount("gitops.git", "dev"); got != "2" || len(s.folders("gitops.git", "dev")) != 24 {
		t.Errorf("%s commits, want two", got)
	}
}

func TestDuplicateOwnersAreRefused(t *testing.T) {
	s := newSite(t)
	location, client := s.location("gitops.git", "dev"), s.newService()
	if err := client.RegisterOwner(owner(location, "dev")); err != nil {
		t.Fatal(err)
	}
	respelt := folder.Location{URL: location.URL + "/", Branch: "dev"}
	if err := client.RegisterOwner(owner(respelt, "dev")); !errors.Is(err, delivery.ErrDuplicate) {
		t.Errorf("two planned owners: %v", err)
	}
	if err := client.RegisterOwner(owner(location, "other")); err != nil {
		t.Error(err)
	}
}

func TestAnUnreadableLocationMayMirrorAnotherOwner(t *testing.T) {
	s := newSite(t)
	location, after, client := s.location("gitops.git", "dev"), wantedTrees(t, "1", 2, "drone"), s.newService()
	state := s.mustApply(delivery.Desired{Owner: owner(location, "dev"), After: after}, "1")
	state.Owner = owner(folder.Location{URL: "http://127.0.0.1:1/mirror.git", Branch: "dev"}, "dev")
	for _, planned := range []delivery.Owner{owner(location, "dev"), state.Owner} {
		if err := client.RegisterOwner(planned); err != nil {
			t.Fatal(err)
		}
	}
	plan, err := client.Plan(context.Background(), delivery.Desired{Owner: state.Owner, State: state, After: after})
	if !errors.Is(err, git.ErrUnreachable) {
		t.Errorf("%+v, %v", plan, err)
	}
}

// A scheme's default port is the same as no port.
func TestDifferentPortsAreDifferentLocations(t *testing.T) {
	t.Parallel()
	ownerAt := func(url string) delivery.Owner { return owner(folder.Location{URL: url, Branch: "dev"}, "dev") }
	for _, test := range []struct {
		one, other string
		same       bool
	}{
		{"https://git.example.com:8443/platform/gitops", "https://git.example.com:9443/platform/gitops", false},
		{"https://git.example.com:8443/platform/gitops", "https://git.example.com/platform/gitops", false},
		{"ssh://git@git.example.com:2222/platform/gitops", "git@git.example.com:platform/gitops", false},
		{"https://git.example.com:443/platform/gitops.git", "https://GIT.example.com/platform/gitops", true},
		{"ssh://git@git.example.com:22/platform/gitops", "https://git.example.com/platform/gitops", true},
	} {
		client := delivery.New(delivery.ServiceOptions{})
		if err := client.RegisterOwner(ownerAt(test.one)); err != nil {
			t.Fatal(err)
		}
		if err := client.RegisterOwner(ownerAt(test.other)); errors.Is(err, delivery.ErrDuplicate) != test.same {
			t.Errorf("%s and %s: %v", test.one, test.other, err)
		}
	}
}

func TestProtectionRefusesADestroy(t *testing.T) {
	s := newSite(t)
	state := s.mustApply(
		delivery.Desired{Owner: owner(s.location("gitops.git", "dev"), "dev"), After: wantedTrees(t, "1", 12, "drone", "large")},
		"1",
	)
	if err := s.newService().Destroy(context.Background(), state, rollout.Protection{}, false, ""); !slices.Equal(
		summaries(err),
		[]string{"Mass deletion"},
	) {
		t.Fatalf("without protection.max_removed_percent: %v", err)
	}
	if got := len(s.folders("gitops.git", "dev")); got != 24 {
		t.Fatalf("got %d folders after a refused destroy", got)
	}
	percent := int64(100)
	if err := s.newService().Destroy(context.Background(), state, rollout.Protection{MaxRemovedPercent: &percent}, false, ""); err != nil {
		t.Fatal(err)
	}
	if got := len(s.folders("gitops.git", "dev")); got != 0 {
		t.Errorf("got %d folders after a destroy", got)
	}
}

func TestDestroyKeepsTheFoldersOfARecreatedOwner(t *testing.T) {
	s := newSite(t)
	intent := delivery.Desired{Owner: owner(s.location("gitops.git", "dev"), "dev"), After: wantedTrees(t, "1", 12, "drone", "large")}
	state := s.mustApply(intent, "1")
	s.mustApply(intent, "1") // create_before_destroy
	if err := s.newService().Destroy(context.Background(), state, rollout.Protection{}, false, ""); err != nil {
		t.Fatal(err)
	}
	if got := s.commitCount("gitops.git", "dev"); got != "2" || len(s.folders("gitops.git", "dev")) != 24 {
		t.Errorf("%s commits, %d folders", got, len(s.folders("gitops.git", "dev")))
	}
}

func TestAMissingRepositoryIsWrittenAnew(t *testing.T) {
	s := newSite(t)
	intent := delivery.Desired{Owner: owner(s.location("gitops.git", "dev"), "dev"), After: wantedTrees(t, "1", 2, "drone")}
	state := s.mustApply(intent, "1")
	if err := os.RemoveAll(filepath.Join(s.folder, "gitops.git")); err != nil {
		t.Fatal(err)
	}
	if err := s.newService().Refresh(context.Background(), state); err != nil || state.Current().Count() != 0 {
		t.Fatalf("refresh: %v, %v", state.Drift, err)
	}
	if err := s.newService().Destroy(context.Background(), state, rollout.Protection{}, false, ""); err != nil {
		t.Errorf("destroy without a repository: %v", err)
	}
	intent.State = state
	s.mustApply(intent, "1")
	if got := len(s.folders("gitops.git", "dev")); got != 2 {
		t.Errorf("got %d folders, want two", got)
	}
}

func TestRefreshFindsDriftAndItsCommit(t *testing.T) {
	s := newSite(t)
	state := s.mustApply(
		delivery.Desired{Owner: owner(s.location("gitops.git", "dev"), "dev"), After: wantedTrees(t, "1", 3, "drone", "large")},
		"1",
	)
	s.git(".", "clone", "-q", "--branch", "dev", "gitops.git", "work")
	for path, text := range map[string]string{"drone/target-01/config.yaml": "by: hand\n", "large/dev.md": "touched\n"} {
		if err := os.WriteFile(filepath.Join(s.folder, "work", path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.git("work", "rm", "-rq", "large/target-02")
	s.git("work", "-c", "user.name=somebody", "-c", "user.email=somebody@example.com", "commit", "-qam", "by hand")
	s.git("work", "push", "-q")
	manualCommit := s.git("work", "rev-parse", "HEAD")
	if err := s.newService().Refresh(context.Background(), state); err != nil {
		t.Fatal(err)
	}
	drifted := slices.Sorted(maps.Keys(keysByText(state.Drift.Trees)))
	if !slices.Equal(drifted, []string{"drone/target-01", "large/target-02"}) || !slices.Equal(state.Drift.Touched, []string{"large"}) {
		t.Errorf("%+v", state.Drift)
	}
	for key := range state.Drift.Trees {
		if state.Drift.Since[key] != manualCommit {
			t.Errorf("%s: got drift since %q, want %s", key, state.Drift.Since[key], manualCommit)
		}
	}
	if got := state.Current().Count(); got != 5 {
		t.Errorf("got %d folders, want five", got)
	}
}

func keysByText[V any](values map[folder.Key]V) map[string]V {
	byText := map[string]V{}
	for key, value := range values {
		byText[key.String()] = value
	}
	return byText
}

func TestApplyRemovesOnlyPlannedFolders(t *testing.T) {
	s := newSite(t)
	location := s.location("gitops.git", "dev")
	state := s.mustApply(delivery.Desired{Owner: owner(location, "dev"), After: wantedTrees(t, "1", 2, "drone")}, "1")
	more := delivery.OwnerState{Owner: state.Owner, SavedState: delivery.SavedState{Trees: state.Trees, Records: state.Records, Holder: state.Holder}}
	// Another state of the owner writes one more folder.
	s.mustApply(delivery.Desired{Owner: owner(location, "dev"), State: &more, After: wantedTrees(t, "1", 3, "drone")}, "1")
	_, err := s.apply(delivery.Desired{Owner: owner(location, "dev"), State: state, After: wantedTrees(t, "2", 1, "drone")}, "2")
	if !errors.Is(err, gitops.ErrUnplanned) {
		t.Errorf("an unplanned removal: %v", err)
	}
	if got := len(s.folders("gitops.git", "dev")); got != 3 {
		t.Errorf("got %d folders, want three", got)
	}
}
