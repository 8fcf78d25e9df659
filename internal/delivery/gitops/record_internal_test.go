package gitops

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

const (
	oneTree     = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
	anotherTree = "4b825dc642cb6eb9a060e54bf8d69288fbee4905"
)

func FuzzParseRecord(f *testing.F) {
	for _, seed := range []string{
		`{"format":1,"environment":"dev","deployment_targets":{"app":{"workload":"w","deployment_target":"t","policies":["p"],"config_version":"1","tree":"4b825dc642cb6eb9a060e54bf8d69288fbee4904"}}}`,
		`{"format":1,"deployment_targets":{"../x":{"tree":"4b825dc642cb6eb9a060e54bf8d69288fbee4904"}}}`, `{}`, `null`, `{"format":1,"deployment_targets":{"a":null}}`,
		`{"format":1,"formerly":["a","../b"],"owner_formerly":["c",".."],"deployment_targets":{}}`,
		`{"format":2,"x":[ 1, {"a" : null} ],"deployment_targets":{"a":{"tree":"4b825dc642cb6eb9a060e54bf8d69288fbee4904","policies":{},"Tree":"<&>","y":1e400}}}`,
	} {
		f.Add([]byte(seed))
	}
	for name, content := range recordFiles(f) {
		_ = name
		f.Add(content)
	}
	for _, content := range attacks() {
		if len(content) < 1<<17 {
			f.Add([]byte(content))
		}
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		var record hostRecord
		var err error
		if took := measureAllocated(func() {
			if record, err = parseRecord(content); err == nil {
				record.encode()
			}
		}); took > maxAllocated(len(content)) {
			t.Fatalf("%d bytes take %d", len(content), took)
		}
		if err != nil {
			return
		}
		for target, folder := range record.DeploymentTargets {
			if git.CheckName(target) != nil {
				t.Fatalf("target %q", target)
			}
			if _, err := git.ParseID(folder.Tree); err != nil {
				t.Fatal(err)
			}
			folder.toPublic()
		}
		encoded := record.encode()
		if !json.Valid(encoded) {
			t.Fatalf("the record is written as invalid JSON: %s", encoded)
		}
		again, err := parseRecord(encoded)
		if err != nil || len(again.DeploymentTargets) != len(record.DeploymentTargets) {
			t.Fatalf("%s: %v", encoded, err)
		}
		if !bytes.Equal(again.encode(), encoded) {
			t.Fatalf("the second round trip: got %s\nwant %s", again.encode(), encoded)
		}
		if countUnknownMembers(t, content) > countUnknownMembers(t, encoded) {
			t.Fatalf("fields are lost: %s", encoded)
		}
	})
}

// countUnknownMembers counts the members of a record that this version does not know.
func countUnknownMembers(t *testing.T, content []byte) int {
	var record fields
	if err := json.Unmarshal(content, &record); err != nil {
		t.Fatal(err)
	}
	record.drop(hostMembers...)
	return len(record)
}

// recordFiles returns the records in testdata, written by this version and newer ones.
func recordFiles(t testing.TB) map[string][]byte {
	t.Helper()
	return readFiles(t, "testdata/records/*.json", 4)
}

// readFiles returns the files of a pattern by name. It expects a minimum number.
func readFiles(t testing.TB, pattern string, least int) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) < least {
		t.Fatal(names, err)
	}
	files := map[string][]byte{}
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(name)] = content
	}
	return files
}

func TestRecordsOfOtherVersionsRoundTrip(t *testing.T) {
	t.Parallel()
	for name, content := range recordFiles(t) {
		record, err := parseRecord(content)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		folder := record.DeploymentTargets["hello-world-app-functional-test"]
		if folder.Tree != oneTree || folder.ConfigVersion != "4f" || folder.Workload != "hello-world-app" || record.Environment != "dev" {
			t.Errorf("%s: %+v", name, folder)
		}
		if got := record.encode(); !bytes.Equal(got, content) {
			t.Errorf("%s is written as %s", name, got)
		}
		// Another spelling of the same record.
		var compact bytes.Buffer
		if err := json.Compact(&compact, content); err != nil {
			t.Fatal(err)
		}
		again, err := parseRecord(compact.Bytes())
		if err != nil || !bytes.Equal(again.encode(), content) {
			t.Errorf("%s, compact, is written as %s, %v", name, again.encode(), err)
		}
	}
}

func TestARecordIsParsed(t *testing.T) {
	t.Parallel()
	record, err := parseRecord(recordFiles(t)["format_1.json"])
	want := FolderRecord{
		Record: folder.Record{
			Workload: "hello-world-app", DeploymentTarget: "functional-test", Policies: []string{"a<b"}, ConfigVersion: "4f",
			Objects: []folder.ObjectRef{{Kind: "GitRepository", Namespace: "flux-system", Name: "hello"}, {Kind: "Namespace", Name: "hello"}},
		},
		Tree: oneTree, TreeBefore: anotherTree, Changed: time.Date(2026, 11, 21, 22, 0, 0, 0, time.UTC),
	}
	if got := record.DeploymentTargets["hello-world-app-functional-test"].toPublic(); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("record = %+v, %v\nwant %+v", got, err, want)
	}
}

func TestBadRecordsAreRefused(t *testing.T) {
	t.Parallel()
	one := func(fields string) string { return `{"format":1,"deployment_targets":{"app":{` + fields + `}}}` }
	for content, want := range map[string]string{
		`{"format":"1"}`:                                  "format",
		`{"format":-1}`:                                   "no format",
		`{"deployment_targets":{}}`:                       "no format",
		`{"format":1,"environment":1}`:                    "environment",
		`{"format":1,"deployment_targets":[]}`:            "deployment_targets",
		one(`"tree":"x"`):                                 "object id",
		one(`"tree":1`):                                   "tree",
		one(`"policies":1`):                               "policies",
		one(`"tree":"` + oneTree + `","manifests":1`):     "manifests",
		one(`"tree":"` + oneTree + `","source":"\u200b"`): "not shown",
		strings.Replace(one(`"tree":1`), "1", "9", 1):     "tree",
		`[]`: "array", `{`: "unexpected end", "": "unexpected end",
		strings.Repeat(" ", maxRecord+1): "12 MiB",
	} {
		if _, err := parseRecord([]byte(content)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: err = %v, want %q", content, err, want)
		}
	}
	// Invalid optional members are ignored.
	record, err := parseRecord([]byte(one(`"tree":"` + oneTree + `","tree_before":"../x","changed":"yesterday","source":"x@main"`)))
	if got := record.DeploymentTargets["app"]; err != nil || got.TreeBefore != "" || got.Changed != "" || got.Source != "" {
		t.Errorf("%+v, %v", got, err)
	}
}

// The pin in the manifests of a record is plain JSON.
func TestARecordHasThePinOfManifests(t *testing.T) {
	t.Parallel()
	manifests := folder.Manifests{
		Storage: "helm",
		Repo:    "https://charts.example.com",
		Chart:   "till",
		Version: "3.x",
		Pin:     folder.Pin{Version: "3.2.1", Digest: "sha256:" + strings.Repeat("d1", 32)},
	}
	text := appendManifests(nil, &manifests)
	var read struct{ Manifests folder.Manifests }
	if err := json.Unmarshal(fmt.Appendf(nil, `{"manifests": %s}`, text), &read); err != nil || read.Manifests != manifests {
		t.Errorf("%s is read as %+v, %v", text, read.Manifests, err)
	}
	if manifests.Pin = (folder.Pin{}); strings.Contains(string(appendManifests(nil, &manifests)), "pin") {
		t.Errorf("without a pin: got %s", appendManifests(nil, &manifests))
	}
}
