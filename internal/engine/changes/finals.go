package changes

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"unique"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/secret"
)

// Finals describes changes of a folder's final objects.
type Finals struct {
	// Unknown is the reason why the former objects are unknown, or "".
	Unknown string
	Changes []ObjectChange
	Moved   Move // change of the artifact
}

// ObjectChange is a changed field, or an added or removed object. Equal changes are identical.
type ObjectChange struct{ of unique.Handle[objectField] }

type objectField struct {
	object string // as displayed: "Deployment till"
	field  Key
	how    How // New or Removed for a whole object
}

const maxObjectChanges = 2000

// MovedFrom returns the change of versions of an artifact, if any.
func MovedFrom(before, after *folder.Manifests) Move {
	if before == nil || after == nil || before.Storage != after.Storage {
		return Move{}
	}
	const digits = 7
	short := func(text string, most int) string { return text[:min(most, len(text))] }
	move := func(what, from, to string) Move {
		if from == to || from == "" || to == "" {
			return Move{}
		}
		return Move{what, from, to}
	}
	one, _ := before.Pinned()
	other, _ := after.Pinned()
	if after.Storage == "git" {
		return move("commit", short(one.Commit, digits), short(other.Commit, digits))
	}
	what := "version"
	if after.Chart != "" {
		what = "chart"
	}
	const digest = len("sha256:") + digits
	return cmp.Or(
		move(what, cmp.Or(before.Pin.Version, before.Version, before.Tag), cmp.Or(after.Pin.Version, after.Version, after.Tag)),
		move("digest", short(before.Pin.Digest, digest), short(after.Pin.Digest, digest)),
	)
}

// CompareObjects returns added and removed objects and changed fields. Kind, namespace and name identify an object,
// plus the group if ambiguous. Named list elements are compared by name: containers[till].
func CompareObjects(before, after []objects.FinalObject) []ObjectChange {
	var found []ObjectChange
	add := func(object string, field Key, how How) {
		switch {
		case len(found) < maxObjectChanges:
			found = append(found, ObjectChange{unique.Make(objectField{object, field, how})})
		case len(found) == maxObjectChanges:
			found = append(found, ObjectChange{unique.Make(objectField{object: otherObjects, field: Key{How: Further}})})
		}
	}
	partner, added := matched(
		before,
		after,
		func(o *objects.FinalObject) occasional { return occasional{o.Identity(), o.On} },
		func(o *objects.FinalObject) occasional {
			return occasional{objects.Identity{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}, o.On}
		},
	)
	names := namesOfObjects(before, after)
	for i, other := range partner {
		if other < 0 {
			add(names(&before[i]), Key{}, Removed)
		}
	}
	for _, i := range added {
		add(names(&after[i]), Key{}, New)
	}
	for i, other := range partner {
		if other < 0 || bytes.Equal(before[i].YAML, after[other].YAML) {
			continue
		}
		differ := &collector{keyOf: elementName}
		old, wanted, name := readObject(&before[i]), readObject(&after[other]), names(&after[other])
		if old != nil && wanted != nil {
			differ.compareValues(old, wanted)
		}
		for _, key := range differ.keys {
			add(name, key.Key, Changed)
		}
		if differ.more > 0 || len(differ.keys) == 0 {
			add(name, Key{How: Further}, Changed)
		}
	}
	return found
}

type occasional struct {
	objects.Identity
	on objects.Occasion
}

func readObject(o *objects.FinalObject) map[string]any {
	documents, err := fleet.ReadObjects(string(o.YAML))
	if err != nil || len(documents) != 1 {
		return nil
	}
	if object := documents[0]; secret.IsSecret(object) {
		return secret.Masked(object, standIn) // keeps parts of values out of field names
	}
	return documents[0]
}

func standIn(value any, _ ...string) any {
	text, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%x", sha256.Sum256(text))
}

func namesOfObjects(lists ...[]objects.FinalObject) func(*objects.FinalObject) string {
	called := func(o *objects.FinalObject) string { return word(o.Kind) + " " + word(o.Name) }
	namespaces, groups := map[string]map[string]bool{}, map[string]map[string]bool{}
	note := func(in map[string]map[string]bool, name, what string) {
		if in[name] == nil {
			in[name] = map[string]bool{}
		}
		in[name][what] = true
	}
	for _, list := range lists {
		for i := range list {
			note(namespaces, called(&list[i]), list[i].Namespace)
			note(groups, called(&list[i])+" "+list[i].Namespace, list[i].Group)
		}
	}
	return func(o *objects.FinalObject) string {
		kind, name := word(o.Kind), word(o.Name)
		if len(groups[called(o)+" "+o.Namespace]) > 1 && o.Group != "" {
			kind += "." + word(o.Group)
		}
		if len(namespaces[called(o)]) > 1 && o.Namespace != "" {
			name = word(o.Namespace) + "/" + name
		}
		if o.On != "" {
			name += " on " + string(o.On)
		}
		return kind + " " + name
	}
}

var nameInList = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,62}$`)

func elementName(element map[string]any) string {
	if name, _ := element["name"].(string); nameInList.MatchString(name) {
		return indexMark + name
	}
	return ""
}

// Limits of lines about final objects, for equal causes and in total.
const (
	maxObjectsOfCause = 10
	maxSignedOfCause  = 3
	maxObjectLines    = 30
)

// manyObjects is the number of objects from which equal changes share a line.
const manyObjects = 3

// objectLines returns one line per object, or one for equal changes of many. If there are many lines, it ignores
// causes.
func (s *summary) objectLines(all []*changeLine) []Line {
	entries := s.objectGroups(all)
	if len(entries) > manyChanges {
		entries = s.objectGroups(mergeLines(s, all, func(e *changeLine) cell { return cell{file: e.files[0], key: e.keys[0], how: e.how} }))
	}
	var few []*changeLine
	for _, group := range groupLines(entries, func(e *changeLine) cell { return cell{how: e.how, causes: e.causes} }) {
		limit := maxObjectsOfCause
		if group[0].how != Changed {
			limit = maxSignedOfCause
		}
		few = append(few, s.limitEntries(group, limit)...)
	}
	return s.lines(ObjectLine, few, maxObjectLines)
}

// objectGroups merges entries with equal folders and causes: many objects with equal changes, then fields of an
// object, then objects with equal fields.
func (s *summary) objectGroups(all []*changeLine) []*changeLine {
	type group struct {
		text, folders string
		how           How
		causes        *causeSet
	}
	byObjects := func(e *changeLine) group { return group{e.joinedFiles(), numbersKey(e.folders), e.how, e.causes} }
	byFields := func(e *changeLine) group { return group{e.joinedKeys(), numbersKey(e.folders), e.how, e.causes} }
	var entries, alone []*changeLine
	for _, alike := range groupLines(all, byFields) {
		if len(alike) >= manyObjects || alike[0].keys[0] == (Key{}) {
			entries = append(entries, s.join(alike))
		} else {
			alone = append(alone, alike...)
		}
	}
	return mergeLines(s, mergeLines(s, append(entries, alone...), byObjects), byFields)
}

func (s *summary) addFinals(i int, by *reached, besides *causeSet, diffs []*fileDiff, found *cells) {
	folder := &s.folders[i]
	if folder.Finals == nil {
		return
	}
	causes := besides
	if causes == nil {
		causes = s.finalCauses(folder, by, diffs)
	}
	switch {
	case folder.Finals.Unknown != "":
		found.add(i, cell{file: allObjects, key: Key{folder.Finals.Unknown, FormerUnknown}, causes: causes}).objects = 1
	case len(folder.Finals.Changes) == 0:
		found.add(i, cell{file: allObjects, key: Key{How: NoChange}, causes: causes}).objects = 1
	}
	for _, change := range folder.Finals.Changes {
		of := change.of.Value()
		found.add(i, cell{of.object, of.field, of.how, causes}).objects = 1
	}
}

// SummarizeFinals describes final objects of unchanged folders in at most 12 lines.
func SummarizeFinals(before, after *Version, folders []FolderChange) []Line {
	s := newSummary(before, after, folders, Notes{})
	var found cells
	for i := range s.folders {
		s.addFinals(i, s.reach(&s.folders[i]), nil, nil, &found)
	}
	lines := s.objectLines(found.all)
	if left := len(lines) - maxFew + 1; left > 1 {
		lines = append(lines[:maxFew-1], Line{Kind: MoreLine, Counts: Counts{Total: left}})
	}
	return lines
}

// covers reports whether lines about final objects cover a file's change.
func (f *Finals) covers(file string, key *keyChange) bool {
	return f != nil && f.Unknown == "" &&
		(folder.IsInObjectsFolder(file) || f.Moved != (Move{}) && roleOf(file) == reconcilerRole && reconciler.IsRevision(key.kind, key.segments))
}

// finalCauses returns the causes behind the deploying files, and a workload with a new artifact.
func (s *summary) finalCauses(folder *FolderChange, by *reached, diffs []*fileDiff) *causeSet {
	found := map[Cause]bool{}
	for _, diff := range diffs {
		if roleOf(diff.file) != reconcilerRole {
			continue
		}
		for j := range diff.keys {
			for _, one := range s.explain(by, diff.file, &diff.keys[j]).causes {
				found[one] = true
			}
		}
	}
	for _, object := range by.objects {
		if object.cause.Kind == ByClusterType && object.fields != nil && object.has("kubernetes_version", "api_versions") {
			found[object.cause] = true
		}
	}
	if a := s.current[folder.String()].assignment; folder.Finals.Moved != (Move{}) && a != nil {
		workload := Cause{Kind: ByWorkload, Name: a.Target.Workload.Name}
		delete(found, workload)
		workload.Moved = folder.Finals.Moved
		found[workload] = true
	}
	return s.internCauses(slices.Collect(maps.Keys(found)))
}
