package changes_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/changes"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

var update = flag.Bool("update", false, "rewrite testdata/english.txt")

// assignmentsOf splits keys of the form "<host>/<target>".
func assignmentsOf(keys ...string) (assignments []folder.Key) {
	for _, key := range keys {
		host, target, _ := strings.Cut(key, "/")
		assignments = append(assignments, folder.Key{Host: host, DeploymentTarget: target})
	}
	return assignments
}

// everyLine returns lines of each kind, change and cause.
func everyLine() []changes.Line {
	one, many := assignmentsOf("large/till"), assignmentsOf("large/a", "large/b", "medium/a", "small/a", "tiny/a")
	by := func(causes ...changes.Cause) []changes.Cause { return causes }
	file := func(key changes.Key) changes.Line {
		return changes.Line{Kind: changes.FileLine, Files: []string{"a.yaml"}, Keys: []changes.Key{key}, Assignments: one}
	}
	object := func(key changes.Key) changes.Line {
		line := file(key)
		line.Kind, line.Files = changes.ObjectLine, []string{"Deployment till"}
		return line
	}
	lines := []changes.Line{
		{Kind: changes.CountLine, Counts: changes.Counts{Hosts: 1, Changed: 1, Added: 2, Removed: 3}},
		{Kind: changes.CountLine, Counts: changes.Counts{Hosts: 2, Unknown: 1, Total: 9}},
		{Kind: changes.CountLine},
		{Kind: changes.RemovalLine, Assignments: one, Location: "https://git.example.com/a (main)"},
		{Kind: changes.RemovalLine, Assignments: many, Location: "*"},
		{Kind: changes.HandoverLine, Names: []string{"dev"}},
		{Kind: changes.AdditionLine, Assignments: assignmentsOf("large/a", "small/b"), Causes: by(changes.Cause{Kind: changes.ByPolicy, Name: "p"})},
		{Kind: changes.ObjectLine, How: changes.New, Files: []string{"Deployment till"}, Keys: []changes.Key{{}}, Assignments: one},
		{Kind: changes.ObjectLine, How: changes.Removed, Files: []string{"A a", "B b", "C c", "D d"}, Keys: []changes.Key{{}}, Assignments: one},
		{Kind: changes.ObjectLine, Files: []string{""}, Keys: []changes.Key{{How: changes.NoChange}}, Assignments: one},
		{Kind: changes.ObjectLine, Files: []string{""}, Keys: []changes.Key{{Path: "the chart is gone", How: changes.FormerUnknown}}, Assignments: one},
		{Kind: changes.ObjectLine, Files: []string{"*"}, Keys: []changes.Key{{How: changes.Further}}, Assignments: one},
		object(changes.Key{Path: "spec.replicas"}),
		file(changes.Key{Path: "a.b", How: changes.New}), file(changes.Key{Path: "a.b", How: changes.Removed}),
		{Kind: changes.FileLine, Files: []string{"a.yaml"}, Keys: []changes.Key{{Path: "a"}, {Path: "b"}, {Path: "c"}}, MoreKeys: 4, Assignments: many},
		{Kind: changes.FileLine, Files: []string{"a.txt"}, Keys: []changes.Key{{}}, TextLines: 1, Assignments: one},
		{Kind: changes.FileLine, Files: []string{"a.txt"}, Keys: []changes.Key{{}}, TextLines: 7, Assignments: assignmentsOf("large/a", "small/a")},
		{Kind: changes.WaitLine, Assignments: one, Names: []string{`config container "east"`}},
		{Kind: changes.WaitLine, Assignments: many, Names: []string{"a", "b", "c", "d"}},
		{Kind: changes.RepairLine, Names: []string{"large", "small"}},
		{Kind: changes.NoteLine, Text: "stage edge waits\nfor 3 clusters"},
		{Kind: changes.MoreLine, Counts: changes.Counts{Total: 3}},
	}
	for _, how := range []changes.How{changes.New, changes.Removed, changes.NewFile, changes.RemovedFile, changes.Attributes, changes.Whole, changes.Further} {
		lines = append(lines, file(changes.Key{How: how}))
	}
	moved := changes.Move{What: "chart", From: "1.0.0", To: "1.1.0"}
	for _, causes := range [][]changes.Cause{
		by(changes.Cause{Kind: changes.ByRollback, Name: "1a2b3c4d"}), by(changes.Cause{Kind: changes.ByDrift, Name: "by hand, since commit 1a2b3c4d"}),
		by(changes.Cause{Kind: changes.ByAssignments}), by(changes.Cause{Kind: changes.ByHydration}), by(changes.Cause{Kind: changes.ByRepo}),
		by(changes.Cause{Kind: changes.ByName}), by(changes.Cause{Kind: changes.ByProvider, Moved: changes.Move{From: "1.2.0", To: "1.3.0"}}),
		by(changes.Cause{Kind: changes.ByEnvironment, Name: "stage"}, changes.Cause{Kind: changes.ByContainer, Name: "c"}),
		by(changes.Cause{Kind: changes.ByWorkload, Name: "w", Moved: moved}), by(changes.Cause{Kind: changes.ByPlacement, Name: "p"}),
		by(changes.Cause{Kind: changes.ByClusterType, Name: "a", How: changes.New}, changes.Cause{Kind: changes.ByClusterType, Name: "b", How: changes.Removed}),
		by(changes.Cause{Kind: changes.ByPolicy, Name: "a"}, changes.Cause{Kind: changes.ByPolicy, Name: "b"}, changes.Cause{Kind: changes.ByPolicy, Name: "c"}, changes.Cause{Kind: changes.ByPolicy, Name: "d"}),
		by(changes.Cause{Kind: changes.ByCluster, Name: "a", How: changes.New}, changes.Cause{Kind: changes.ByCluster, Name: "b", How: changes.New}, changes.Cause{Kind: changes.ByCluster, Name: "c", How: changes.New}, changes.Cause{Kind: changes.ByCluster, Name: "d", How: changes.New}),
		by(changes.Cause{Kind: changes.ByWorkspace, Name: "s"}, changes.Cause{Kind: changes.ByTemplate, Name: "t"}),
	} {
		line := file(changes.Key{Path: "a"})
		line.Causes = causes
		lines = append(lines, line)
	}
	return lines
}

// TestLinesInEnglish compares the text of every kind of line with the golden file.
func TestLinesInEnglish(t *testing.T) {
	t.Parallel()
	got := strings.Join(changes.English(everyLine()), "\n") + "\n"
	golden := filepath.Join("testdata", "english.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	equalLines(t, strings.Split(got, "\n"), strings.Split(string(want), "\n"))
}
