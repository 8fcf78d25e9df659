package provider_test

import (
	"maps"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// playEverywhere plays an attack with the stand-in. `make acceptance` also plays it with Terraform and OpenTofu.
func playEverywhere(t *testing.T, attack func(t *testing.T, o ownedAssignment)) {
	t.Helper()
	t.Run("stand-in", func(t *testing.T) {
		t.Parallel()
		attack(t, newOwnedAssignment(t))
	})
	if !simulated() {
		withTools(t, func(t *testing.T, runner providertest.Runner) {
			t.Helper()
			attack(t, newOwnedAssignmentIn(t, newBareWorld(t), runner))
		})
	}
}

func withTools(t *testing.T, test func(t *testing.T, runner providertest.Runner)) {
	t.Helper()
	t.Run("tools", func(t *testing.T) {
		t.Parallel()
		for name, tool := range acceptanceTools(t) {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, providertest.NewTerraform(t, tool, "flotilla/flotilla", startProvider))
			})
		}
	})
}

// forgeRecord adds a second assignment, whose record lists the folder t0/w-a of the first.
func forgeRecord(t *testing.T, o ownedAssignment) (second *assignmentConfig, before branchesState) {
	t.Helper()
	second = o.addSecondAssignment(t)
	o.tamper(t, "clusters/all/.flotilla/dev-eu/t0.json", func(content string) string {
		return strings.Replace(content, `"deployment_targets": {`, `"deployment_targets": {
    "w-a": {"workload": "w", "deployment_target": "a", "tree": "4b825dc642cb6eb9a060e54bf8d69288fbee4904"},`, 1)
	})
	return second, o.readBranches()
}

// tamper changes a file like an attacker with push access.
func (o ownedAssignment) tamper(t *testing.T, name string, change func(content string) string) {
	t.Helper()
	files := maps.Clone(o.world.files(o.config.repository, o.config.branch))
	content, exists := files[name]
	if files[name] = change(content); !exists || files[name] == content {
		t.Fatalf("file %s did not change", name)
	}
	o.world.commit(o.config.repository, o.config.branch, files)
}

// requireFolderUnchanged checks the folder t0/w-a.
func requireFolderUnchanged(t *testing.T, o ownedAssignment, before branchesState) {
	t.Helper()
	after := o.readBranches()
	folder := ownedFolder{branchOf{o.config.repository, o.config.branch}, "clusters/all", "t0", "w-a"}
	if before.folders[folder] == "" || after.folders[folder] != before.folders[folder] {
		t.Error("the folder of the other assignment has changed")
	}
}

const twiceListed = `Folder "clusters/all/t0/w-a" belongs to the assignment "dev" at path "clusters/all", and the record "clusters/all/.flotilla/dev-eu/t0.json" lists it, too`

func TestAForgedRecordIsShownByThePlanAndRepairedByAdopt(t *testing.T) {
	t.Parallel()
	playEverywhere(t, func(t *testing.T, o ownedAssignment) {
		t.Helper()
		second, before := forgeRecord(t, o)
		second.shape.version++
		if diags := o.requireRefusal(t, "Record lists a folder of another assignment"); !strings.Contains(diags.String(), twiceListed) {
			t.Errorf("got diagnostics %s", diags)
		}
		second.adopt = true
		o.mustApply(t)
		requireFolderUnchanged(t, o, before)
		folder := ownedFolder{branchOf{o.config.repository, o.config.branch}, "clusters/all", "t0", "w-a"}
		if owner := o.readBranches().owners[folder]; owner != "dev" {
			t.Errorf("the folder belongs to %q", owner)
		}
	})
}

// The plan's knowledge of other records may be outdated at apply.
func TestAPlanWithAForgedRecordIsAppliedAfterTheOtherRecordIsGone(t *testing.T) {
	t.Parallel()
	o := newOwnedAssignment(t)
	second, before := forgeRecord(t, o)
	second.adopt = true
	plan, diags := o.runner.Plan(t.Context(), o.configuration(o.person))
	if diags.Err() != nil {
		t.Fatal(diags)
	}
	files := maps.Clone(o.world.files(o.config.repository, o.config.branch))
	delete(files, "clusters/all/.flotilla/dev/t0.json")
	o.world.commit(o.config.repository, o.config.branch, files)
	if diags := o.runner.ApplyPlan(t.Context(), plan); diags.Bugs() != nil {
		t.Errorf("got diagnostics %s", diags)
	}
	requireFolderUnchanged(t, o, before)
}

// Records of others are read at the commit in the state, which the branch may have lost.
func TestARewrittenHistoryStopsNoRemoval(t *testing.T) {
	t.Parallel()
	url, w := bare(t), providertest.New(startProvider)
	apply(t, w, assigned(url, fleetOf(nil), nil))
	git(
		t,
		url,
		"update-ref",
		"refs/heads/dev",
		git(t, url, "-c", "user.name=a", "-c", "user.email=a@example.com", "commit-tree", "-m", "anew", "dev^{tree}"),
	)
	free := map[string]any{"protection": map[string]any{"max_removed": 100, "allow_empty": true}}
	if plan := apply(t, w, assigned(url, fleetOf(map[string]any{"target_policies": []any{}}), free)); !strings.Contains(
		strings.Join(linesOf(plan), "\n"),
		"- ",
	) {
		t.Errorf("the plan removes nothing: %v", linesOf(plan))
	}
}

func TestAnImportedForgedRecordRemovesNoFoldersOfOthers(t *testing.T) {
	t.Parallel()
	playEverywhere(t, func(t *testing.T, o ownedAssignment) {
		t.Helper()
		second, before := forgeRecord(t, o)
		o.runner.Lose(addresses[1])
		o.importAssignment(o.person, addresses[1])
		if diags := o.requireRefusal(t, "Record lists a folder of another assignment"); !strings.Contains(diags.String(), twiceListed) {
			t.Errorf("got diagnostics %s", diags)
		}
		second.adopt = true
		o.mustApply(t)
		requireFolderUnchanged(t, o, before)
	})
}

func TestAForgedRecordOfALostStateRemovesNoFoldersOfOthers(t *testing.T) {
	t.Parallel()
	playEverywhere(t, func(t *testing.T, o ownedAssignment) {
		t.Helper()
		second, before := forgeRecord(t, o)
		o.runner.Lose(addresses[1])
		o.requireRefusal(t, "Record lists a folder of another assignment")
		second.adopt = true
		o.mustApply(t)
		requireFolderUnchanged(t, o, before)
	})
}

func TestADestroyWithAForgedRecordRemovesNoFoldersOfOthers(t *testing.T) {
	t.Parallel()
	for name, imported := range map[string]bool{"in the state": false, "imported": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			playEverywhere(t, func(t *testing.T, o ownedAssignment) {
				t.Helper()
				_, before := forgeRecord(t, o)
				if imported {
					o.runner.Lose(addresses[1])
					o.importAssignment(o.person, addresses[1])
				}
				delete(o.wants, addresses[1])
				if _, diags := o.runner.Apply(t.Context(), o.configuration(o.person)); diags.Err() != nil {
					t.Fatal(diags)
				}
				requireFolderUnchanged(t, o, before)
				own := ownedFolder{branchOf{o.config.repository, o.config.branch}, "clusters/all", "t0", "w-b"}
				if o.readBranches().folders[own] != "" {
					t.Error("the destroy left the assignment's own folder")
				}
			})
		})
	}
}

func TestAForgedRecordLetsNoAssignmentWriteTheFoldersOfAnother(t *testing.T) {
	t.Parallel()
	playEverywhere(t, func(t *testing.T, o ownedAssignment) {
		t.Helper()
		second, before := forgeRecord(t, o)
		second.shape.targets[0] |= 1
		if diags := o.requireRefusal(t, "Folder does not belong to this assignment"); !strings.Contains(
			diags.String(),
			`belongs to the assignment "dev"`,
		) {
			t.Errorf("got diagnostics %s", diags)
		}
		requireFolderUnchanged(t, o, before)
	})
}

// unknownMember has the maximal depth of a record. Indentation would multiply its length.
var unknownMember = strings.Repeat("[", 28) + `"` + strings.Repeat("y", 450) + `"` + strings.Repeat("]", 28)

func TestTamperedRecordsAreDriftAndAreRepaired(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		file   string
		change func(content string) string
	}{
		"invalid JSON": {".flotilla/dev/t0.json", func(string) string { return "not JSON" }},
		"padding":      {".flotilla/dev/t0.json", func(c string) string { return c + strings.Repeat(" ", acceptancetest.Count(64<<10, 8<<20)) }},
		"escapes":      {".flotilla/dev/t0.json", func(c string) string { return strings.Replace(c, `"workload": "w"`, `"workload": "\u001b[2J"`, 1) }},
		"a false name": {".flotilla/dev/t0.json", func(c string) string { return strings.Replace(c, `"workload": "w"`, `"workload": "another"`, 1) }},
		"no holder":    {".flotilla/dev/t0.json", func(c string) string { return strings.Replace(c, `  "holder": "`, `  "unholder": "`, 1) }},
		"10,000 levels": {".flotilla/dev/t0.json", func(c string) string {
			return strings.Replace(c, "{", `{"x":`+strings.Repeat("[", 9_000)+strings.Repeat("]", 9_000)+",", 1)
		}},
		"another holder": {".flotilla/dev/t0.json", func(c string) string { return strings.Replace(c, `  "holder": "`, `  "holder": "x`, 1) }},
		"duplicate members": {".flotilla/dev/t0.json", func(c string) string {
			return strings.Replace(c, "{", `{"deployment_targets": {"w-a": {"tree": "4b825dc642cb6eb9a060e54bf8d69288fbee4904"}},`, 1)
		}},
		"a folder of another host": {".flotilla/dev/t0.json", func(c string) string { return strings.Replace(c, `"w-a": {`, `"../t1/w-a": {`, 1) }},
		"invalid UTF-8":            {".flotilla/dev/t0.json", func(c string) string { return strings.Replace(c, `"workload": "w"`, "\"workload\": \"\xff\"", 1) }},
		"a long number": {".flotilla/dev/t0.json", func(c string) string {
			return strings.Replace(c, "{", `{"format": 1`+strings.Repeat("0", acceptancetest.Count(4<<10, 1<<20))+",", 1)
		}},
		"unknown members": {".flotilla/dev/t0.json", func(c string) string {
			return strings.Replace(c, "{", `{"x": [`+strings.Repeat(unknownMember+",", 100)+`1],`, 1)
		}},
		"the marker": {"t0/dev.md", func(string) string { return "by hand\n" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			playEverywhere(t, func(t *testing.T, o ownedAssignment) {
				t.Helper()
				branch, file := branchOf{o.config.repository, o.config.branch}, path.Join("clusters/all", test.file)
				before := o.readBranches()
				o.tamper(t, file, test.change)
				began := time.Now()
				plan, diags := o.runner.Plan(t.Context(), o.configuration(o.person))
				if diags.Err() != nil {
					t.Fatal(diags)
				}
				if plan.Change(addresses[0]).Action != providertest.Update || !strings.Contains(changesOf(plan), "repaired") {
					t.Fatalf("got changes %q and diagnostics %s", changesOf(plan), diags)
				}
				_, tampered, after := o.mustApply(t)
				if !maps.Equal(before.folders, after.folders) || len(after.files[branch]) != len(before.files[branch]) {
					t.Error("the repair changed folders or the number of files")
				}
				t.Logf("%d bytes in, %d out, in %s: %s", len(tampered.files[branch][file]), len(after.files[branch][file]), time.Since(began),
					changesOf(plan))
				if now := after.files[branch][file]; len(now) > 2*max(len(before.files[branch][file]), len(tampered.files[branch][file])) ||
					strings.Count(now, `"deployment_targets"`) > 1 {
					t.Errorf("the record has %d bytes now", len(after.files[branch][file]))
				}
			})
		})
	}
}
