package provider_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// sharedTypeFleet returns a fleet with the workloads on clusterType, and the workload base on the cluster type "other".
func sharedTypeFleet(base string, clusterType map[string]any, workloads ...string) providertest.Call {
	var list, explicit []any
	for _, name := range append([]string{base}, workloads...) {
		list = append(list, map[string]any{"name": name, "workspace": "team", "deployment_targets": map[string]any{
			"live": map[string]any{
				"environment": "dev",
				"namespace":   name,
				"manifests":   map[string]any{"repo": "https://git.example.com/app", "branch": "main", "path": name},
			},
		}})
		on := clusterType["name"]
		if name == base {
			on = "other"
		}
		explicit = append(explicit, map[string]any{"cluster_type": on, "deployment_target": name + "-live"})
	}
	types := []any{namedType("other")}
	if len(workloads) > 0 {
		types = append(types, clusterType)
	}
	return fleetOfTypes("info", map[string]any{"workloads": list, "clusters": nil, "target_policies": nil, "assignments": explicit}, types...)
}

// The steps of the guide for a cluster type that two assignments share: one assignment takes all folders, moves them, and gives them
// back. Each commit has all folders under one of the two names.
func TestOneAssignmentRenamesAClusterTypeOfTwo(t *testing.T) {
	t.Parallel()
	url := bare(t)
	ours, theirs := providertest.New(startProvider), providertest.New(startProvider)
	const ourWorkload, theirWorkload = "shop", "till"
	configurationsOf := func(name, base string) func(adopt bool, clusterType map[string]any, workloads ...string) providertest.Configuration {
		return func(adopt bool, clusterType map[string]any, workloads ...string) providertest.Configuration {
			return assigned(url, sharedTypeFleet(base, clusterType, workloads...), map[string]any{"name": name, "adopt": adopt})
		}
	}
	ourConfiguration, theirConfiguration := configurationsOf("ours", "base"), configurationsOf("theirs", "kiosk")
	old, renamed := namedType("old"), namedType("new", "old")
	apply(t, ours, ourConfiguration(false, old, ourWorkload))
	apply(t, theirs, theirConfiguration(false, old, theirWorkload))
	_, refused := ours.Plan(t.Context(), ourConfiguration(false, renamed, ourWorkload))
	if !refused.Has("Folder of a cluster type cannot move") || !strings.Contains(refused.String(), `"clusters/all/old/theirs.md"`) ||
		!strings.Contains(refused.String(), "adopt = true") {
		t.Fatalf("the plan says %s", refused)
	}

	apply(t, ours, ourConfiguration(true, old, ourWorkload, theirWorkload))
	apply(t, theirs, theirConfiguration(false, old))
	person := filepath.Join(t.TempDir(), "person")
	for _, arguments := range [][]string{
		{"clone", "--quiet", "--branch=dev", url, person}, {"-C", person, "rm", "--quiet", "clusters/all/old/theirs.md"},
		{"-C", person, "-c", "user.name=A", "-c", "user.email=a@example.com", "commit", "--quiet", "-m", "Let the folder go"}, {"-C", person, "push", "--quiet"},
	} {
		if output, err := exec.CommandContext(t.Context(), "git", arguments...).CombinedOutput(); err != nil {
			t.Fatalf("git %s: %s: %s", strings.Join(arguments, " "), err, output)
		}
	}
	before := filesBelow(t, url, "old")
	apply(t, ours, ourConfiguration(false, renamed, ourWorkload, theirWorkload))
	if after := filesBelow(t, url, "new"); after != before || filesBelow(t, url, "old") != "" {
		t.Errorf("the new folder has\n%s\nwant\n%s", after, before)
	}
	apply(t, theirs, theirConfiguration(true, renamed, theirWorkload))
	apply(t, ours, ourConfiguration(false, renamed, ourWorkload))
	apply(t, theirs, theirConfiguration(false, renamed, theirWorkload))
	for name, w := range map[string]struct {
		*providertest.Workspace
		configuration providertest.Configuration
	}{"ours": {ours, ourConfiguration(false, renamed, ourWorkload)}, "theirs": {theirs, theirConfiguration(false, renamed, theirWorkload)}} {
		if plan := apply(t, w.Workspace, w.configuration); !plan.Empty() {
			t.Errorf("%s: the last plan says %s", name, rolloutText(plan))
		}
	}
	for _, commit := range strings.Fields(git(t, url, "rev-list", "--reverse", "dev"))[2:] {
		paths := git(t, url, "ls-tree", "-r", "--name-only", commit)
		hasBothTargets := func(folder string) bool {
			return strings.Contains(paths, "/"+folder+"/shop-live/") && strings.Contains(paths, "/"+folder+"/till-live/")
		}
		if hasBothTargets("old") == hasBothTargets("new") {
			t.Errorf("commit %s has\n%s", commit, paths)
		}
	}
	if got := git(t, url, "ls-tree", "--name-only", "dev:clusters/all/new"); got != "ours.md\nshop-live\ntheirs.md\ntill-live" {
		t.Errorf("at the end, the new folder has %s", got)
	}
}
