package comparison_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/fleettest"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/comparison"
)

// repository has owners at branches, and records the folders that are read.
type repository struct {
	written map[string]gitops.OwnerSnapshot // by branch and commit
	files   map[string]string               // the configuration, by tree
	read    []string                        // trees
	owners  []string
}

func (r *repository) ReadOwner(ctx context.Context, owner delivery.Owner, _ folder.Trees) (gitops.OwnerSnapshot, error) {
	return r.ReadOwnerAt(ctx, owner, "")
}

func (r *repository) ReadOwnerAt(_ context.Context, owner delivery.Owner, commit string) (gitops.OwnerSnapshot, error) {
	if owner.Location.Branch == "refused" {
		return gitops.OwnerSnapshot{}, errors.New("refused")
	}
	return r.written[owner.Location.Branch+commit], nil
}

func (r *repository) ListOwners(context.Context, delivery.Owner) ([]string, error) {
	return r.owners, nil
}

func (r *repository) ReadFilesNamed(
	_ context.Context,
	_ delivery.Owner,
	folders folder.Trees,
	wanted func(string) bool,
) (map[folder.Key][]folder.File, error) {
	files := map[folder.Key][]folder.File{}
	for key, tree := range folder.All(folders) {
		r.read = append(r.read, tree)
		if text := r.files[tree]; text != "" && wanted("platform-config.json") && !wanted("reconciler.yaml") {
			files[key] = []folder.File{{Name: "platform-config.json", Content: []byte(text)}}
		}
	}
	return files, nil
}

// snapshotOf returns the snapshot of a commit. A folder is "<host>/<target> <config version> <tree>". After " by hand", the tree
// differs from the record; after " gone", it is missing.
func snapshotOf(tip string, folders ...string) gitops.OwnerSnapshot {
	w := gitops.OwnerSnapshot{Tip: tip, Records: map[folder.Key]gitops.FolderRecord{}, Trees: folder.Trees{}}
	for _, text := range folders {
		var folderKey, config, tree string
		_, _ = fmt.Sscan(text, &folderKey, &config, &tree)
		var key folder.Key
		_ = key.UnmarshalText([]byte(folderKey))
		record := gitops.FolderRecord{Record: folder.Record{Workload: "app", ConfigVersion: strings.Trim(config, "-")}, Tree: tree}
		if strings.HasSuffix(text, "by hand") {
			record.Tree = "before"
		}
		w.Records[key] = record
		if !strings.HasSuffix(text, "gone") {
			folder.Put(w.Trees, key, tree)
		}
	}
	return w
}

func point(name, branch, commit string) comparison.Point {
	return comparison.Point{
		Owner:  delivery.Owner{Name: name, Location: folder.Location{URL: "u", Branch: branch, Path: "clusters"}},
		Commit: commit,
	}
}

func TestOnlyFoldersWithPossibleDifferencesAreRead(t *testing.T) {
	t.Parallel()
	r := &repository{
		written: map[string]gitops.OwnerSnapshot{
			"stage": snapshotOf(
				"c1",
				"a/same v1 s1",
				"a/moved v1 s2",
				"a/chart v1 s3",
				"b/chart v1 s4",
				"a/hand v1 s5",
				"a/old - s6",
				"a/gone v1 s7 gone",
			),
			"prod": snapshotOf(
				"c2",
				"a/same v1 p1",
				"a/moved v2 p2",
				"a/chart v2 p3",
				"b/chart v2 p4",
				"a/hand v1 p5 by hand",
				"a/old - p6",
				"a/gone v1 p7",
			),
		},
		files: map[string]string{
			"s2": `{"K":"1"}`,
			"p2": `{"K":"2"}`,
			"s5": `{"K":"1"}`,
			"p5": `{"K":"1","L":""}`,
			"s6": `{"K":"1"}`,
			"p6": `{"K":"1"}`,
		},
	}
	result, err := comparison.Read(t.Context(), r, point("stage", "stage", ""), point("prod", "prod", ""), comparison.Pairs{})
	if err != nil {
		t.Fatal(err)
	}
	// The values of v1 and v2 are read from chart first, which has no file, and then from moved and hand.
	slices.Sort(r.read)
	if got, want := strings.Join(r.read, " "), "p2 p3 p5 p6 s2 s3 s5 s6"; got != want {
		t.Errorf("read %s, want %s", got, want)
	}
	want := map[string]string{"chart": "values; value K", "moved": "values; value K", "hand": "values; value L", "gone": "only_right"}
	got := map[string]string{}
	for name, differences := range formatTargets(result.Targets) {
		left, right, _ := strings.Cut(name, " → ")
		got[max(left, right)] = differences
	}
	for name, differences := range want {
		words := strings.Split(differences, "; ")
		slices.Sort(words)
		want[name] = strings.Join(words, "; ")
	}
	if !maps.Equal(got, want) || len(result.Notes) > 0 || result.Same != 2 {
		t.Errorf("got %v, %+v, %q", got, result.Counts, result.Notes)
	}
	left := comparison.Seen{Name: "stage", Branch: "stage", Path: "clusters", Commit: "c1", Written: true, Hosts: 2, Assignments: 6}
	if result.Left != left {
		t.Errorf("left is %+v", result.Left)
	}
}

func TestMissingContentIsANote(t *testing.T) {
	t.Parallel()
	var many, others []string
	for i := range comparison.MaxFolders {
		many = append(many, fmt.Sprintf("a/app-%d v%d s%d", i, i, i))
		others = append(others, fmt.Sprintf("a/app-%d w%d p%d", i, i, i))
	}
	unreadable := snapshotOf("c1", "a/app v1 t")
	unreadable.Unreadable = []string{".flotilla/stage/x.json"}
	for name, test := range map[string]struct {
		r           *repository
		left, right comparison.Point
		want        string
	}{
		"no branch":  {&repository{}, point("stage", "stage", ""), point("prod", "prod", ""), `The left side is not written yet: branch "stage" does not exist.|The right side is not written yet: branch "prod" does not exist.`},
		"no owner":   {&repository{written: map[string]gitops.OwnerSnapshot{"prod": {Tip: "c"}}}, point("stage", "prod", ""), point("prod", "prod", ""), `The left side is not written yet: branch "prod" has nothing of assignment "stage" at path "clusters".|The right side`},
		"not then":   {&repository{owners: []string{"dev"}, written: map[string]gitops.OwnerSnapshot{"dev1234567890abcdef": {Tip: "c"}, "dev": snapshotOf("c1", "a/app v1 t")}}, point("dev", "dev", "1234567890abcdef"), point("dev", "dev", ""), `The left side is not written yet: commit 1234567890ab has nothing of assignment "dev".`},
		"unreadable": {&repository{written: map[string]gitops.OwnerSnapshot{"stage": unreadable}}, point("stage", "stage", ""), point("stage2", "stage", ""), `The left side lacks what these records say, which cannot be read: .flotilla/stage/x.json.|The right side lacks`},
		"no file":    {&repository{written: map[string]gitops.OwnerSnapshot{"a": snapshotOf("c", "a/app v1 s"), "b": snapshotOf("c", "a/app v2 p")}}, point("a", "a", ""), point("b", "b", ""), "It is unknown which values differ in 1 deployment target: their folders have no file of configuration that can be read."},
		"too much":   {&repository{written: map[string]gitops.OwnerSnapshot{"a": snapshotOf("c", many...), "b": snapshotOf("c", others...)}}, point("a", "a", ""), point("b", "b", ""), "It is unknown which values differ in 5000 deployment targets: files of 5000 folders were read, and no more are."},
	} {
		result, err := comparison.Read(t.Context(), test.r, test.left, test.right, comparison.Pairs{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := strings.Join(result.Notes, "|"); !strings.HasPrefix(got, test.want) {
			t.Errorf("%s: notes %s, want %s", name, got, test.want)
		}
		if len(test.r.read) > comparison.MaxFolders {
			t.Errorf("%s: %d folders were read", name, len(test.r.read))
		}
	}
	var side *comparison.SideError
	if _, err := comparison.Read(t.Context(), &repository{owners: []string{"dev", "prod"}}, point("prod", "b", ""), point("prd", "b", ""), comparison.Pairs{}); !errors.As(
		err,
		&side,
	) ||
		!side.Right ||
		!errors.Is(err, comparison.ErrOwner) ||
		!strings.Contains(err.Error(), `branch "b" has no "prd" at path "clusters", but "dev", "prod"`) {
		t.Errorf("another owner: %v", err)
	}
	if _, err := comparison.Read(t.Context(), &repository{}, point("prod", "refused", ""), point("prd", "b", ""), comparison.Pairs{}); !errors.As(
		err,
		&side,
	) ||
		side.Right {
		t.Errorf("refused: %v", err)
	}
}

// largeResult returns a result with so many targets, each with so many hosts, keys and values.
func largeResult(targets, others int) *comparison.Result {
	result := &comparison.Result{Left: comparison.Seen{Name: "stage", Written: true}}
	var hosts, values []string
	for i := range others {
		hosts, values = append(hosts, fmt.Sprintf("host-%d", i)), append(values, strings.Repeat("é", i))
	}
	for i := range targets {
		part := comparison.Part{Versions: []comparison.Version{{Hosts: hosts}}, OnlyHosts: hosts, OnlyPolicies: hosts}
		target := comparison.Target{Name: fmt.Sprint("app-", i), State: comparison.Different, Left: part, Right: part}
		for key := range others {
			target.Keys = append(target.Keys, comparison.Key{Key: fmt.Sprint("K", key), Left: values, Right: values})
		}
		result.Targets = append(result.Targets, target)
	}
	return result
}

func TestResultIsBoundedAndParsed(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{0, 0}, {2, 3}, {400, 5}, {20, 60}} {
		result := largeResult(size[0], size[1])
		before, _ := json.Marshal(result)
		text, err := result.Marshal(true)
		if err != nil || len(text) > 128<<10 {
			t.Fatalf("%d bytes, %v", len(text), err)
		}
		parsed, err := comparison.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if parsed.MoreTargets+len(parsed.Targets) != size[0] {
			t.Errorf("%d and %d targets of %d", len(parsed.Targets), parsed.MoreTargets, size[0])
		}
		if size[1] == 3 && !reflect.DeepEqual(parsed, result) {
			t.Errorf("got %+v, want %+v", parsed, result)
		}
		for i := range parsed.Targets {
			target := &parsed.Targets[i]
			if target.Left.Versions[0].Count() != size[1] || len(target.Right.OnlyHosts)+target.Right.MoreHosts != size[1] ||
				len(target.Keys)+target.MoreKeys != size[1] {
				t.Errorf("omitted parts are not counted: %+v", target)
			}
		}
		hidden, _ := result.Marshal(false)
		if strings.Contains(string(hidden), "é") {
			t.Error("hidden values are in the output")
		}
		if after, _ := json.Marshal(result); string(after) != string(before) {
			t.Error("the result has changed")
		}
	}
}

func TestInvalidComparisonIsRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "unexpected end", `{}`: `has no "format"`, `{"format":"2","left":1}`: `the format "2"`, `{"format":"1","x":1}`: `unknown field "x"`,
		`{"format":"1","format":"1"}`: "duplicate field", "\xff": "not UTF-8", strings.Repeat(" ", 128<<10+1): "longer than 128 KiB", `null`: `has no "format"`, `{"format":"1"}`: "",
	} {
		_, err := comparison.Parse([]byte(text))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	text, _ := largeResult(2, 2).Marshal(true)
	f.Add(text)
	f.Add([]byte(`{"format":"1"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 1<<16 {
			return
		}
		var result *comparison.Result
		var err error
		fleettest.Bounded(t, string(text), func() { result, err = comparison.Parse(text) })
		if err != nil {
			return
		}
		if _, err := result.Marshal(true); err != nil {
			t.Error(err)
		}
	})
}

// All hosts together have the same values on both sides, but each host has other values.
func TestSwappedHostsAreADifference(t *testing.T) {
	t.Parallel()
	r := &repository{
		written: map[string]gitops.OwnerSnapshot{
			"stage": snapshotOf("c1", "a/app v1 s1", "b/app v2 s2"),
			"prod":  snapshotOf("c2", "a/app v2 p1", "b/app v1 p2"),
		},
		files: map[string]string{"s1": `{"K":"1","L":"x"}`, "s2": `{"K":"2","L":"x"}`},
	}
	result, err := comparison.Read(t.Context(), r, point("stage", "stage", ""), point("prod", "prod", ""), comparison.Pairs{})
	if err != nil {
		t.Fatal(err)
	}
	want := []comparison.Key{{Key: "K", State: comparison.Different, Left: []string{"1", "2"}, Right: []string{"1", "2"}}}
	if len(result.Targets) != 1 || !reflect.DeepEqual(result.Targets[0].Keys, want) || len(r.read) != 2 {
		t.Errorf("got %+v, read %v", result.Targets, r.read)
	}
}
