package changes

import (
	"bytes"
	"cmp"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/parallel"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

type summary struct {
	*explainer
	folders                          []FolderChange // sorted
	added, removed, changed, unknown []int          // indexes of folders
}

type changeLine struct {
	files    []string
	keys     []Key
	more     int    // omitted keys
	lines    int    // maximum of differing lines, without known keys
	objects  int    // of files: number of final objects
	how      How    // of final objects
	location string // former location of removed folders
	waitsFor []string
	causes   *causeSet
	folders  []int // sorted
}

func (e *changeLine) joinedFiles() string { return strings.Join(e.files, "\x00") }

func (e *changeLine) joinedKeys() string {
	var b strings.Builder
	for _, key := range e.keys {
		b.WriteString(key.Path + "\x00" + string(key.How) + "\x00")
	}
	return b.String()
}

// cell is one change to describe: of a file or object, and key or field.
type cell struct {
	file   string
	key    Key
	how    How
	causes *causeSet
}

type cells struct {
	all []*changeLine
	of  map[cell]*changeLine
}

func (c *cells) add(folder int, of cell) *changeLine {
	e := c.of[of]
	if e == nil {
		if c.of == nil {
			c.of = map[cell]*changeLine{}
		}
		e = &changeLine{files: []string{of.file}, keys: []Key{of.key}, how: of.how, causes: of.causes}
		c.of[of], c.all = e, append(c.all, e)
	}
	if len(e.folders) == 0 || e.folders[len(e.folders)-1] != folder {
		e.folders = append(e.folders, folder)
	}
	return e
}

func newSummary(before, after *Version, folders []FolderChange, notes Notes) *summary {
	folders = sortedFolders(folders)
	s := &summary{explainer: newExplainer(before, after, folders, &notes), folders: folders}
	for i := range folders {
		switch folder := &folders[i]; {
		case folder.Removed:
			s.removed = append(s.removed, i)
		case folder.Added:
			s.added = append(s.added, i)
		case folder.WaitsFor != "":
			s.unknown = append(s.unknown, i)
		default:
			s.changed = append(s.changed, i)
		}
	}
	return s
}

func sortedFolders(folders []FolderChange) []FolderChange {
	folders = slices.Clone(folders)
	slices.SortStableFunc(folders, func(a, b FolderChange) int {
		return cmp.Or(a.Compare(b.Key), cmp.Compare(a.Location, b.Location))
	})
	return folders
}

func (s *summary) counts() Counts {
	hosts := map[string]bool{}
	for i := range s.folders {
		hosts[s.folders[i].Host] = true
	}
	return Counts{len(hosts), len(s.changed), len(s.added), len(s.removed), len(s.unknown), s.notes.Total}
}

// moves returns a line for each cause and former location. New or removed hosts with the same policies count as one
// cause. If there are too many lines, it ignores causes.
func (s *summary) moves(kind LineKind, folders []int, limit int) []Line {
	entries := make([]*changeLine, len(folders))
	for i, folder := range folders {
		entries[i] = &changeLine{location: s.folders[folder].Location, causes: s.explainMove(&s.folders[folder]), folders: []int{folder}}
	}
	type move struct {
		location, policies string
		causes             *causeSet
	}
	entries = mergeLines(s, entries, func(e *changeLine) move {
		unnamed, isHost := s.unnamedHosts(e.causes)
		policies := ""
		if isHost {
			policies = s.policiesOf(&s.folders[e.folders[0]])
		}
		return move{e.location, policies, unnamed}
	})
	if len(entries) > limit {
		entries = mergeLines(s, entries, func(e *changeLine) string { return e.location })
	}
	return s.lines(kind, entries, limit)
}

// manyChanges is the smallest number of lines for one key whose causes are merged.
const manyChanges = 8

// contents returns a line for each file, keys and causes, or for each file and keys if there are many. Changes by
// drift alone are separate.
func (s *summary) contents() (contents, drift []Line) {
	found := make([][]*fileDiff, len(s.changed))
	parallel.Each(len(found), func(at int) {
		eachDifference(&s.folders[s.changed[at]], func(name string, before, after *folder.File) {
			found[at] = append(found[at], diffOf(name, before, after))
		})
	})
	var objects, changed, drifted cells
	for at, i := range s.changed {
		besides := s.besidesFleet(&s.folders[i])
		var by *reached
		if besides == nil {
			by = s.reach(&s.folders[i])
		}
		edit := s.editOf(&s.folders[i])
		s.addFinals(i, by, besides, edit.without(found[at]), &objects)
		for _, one := range found[at] {
			for j := range one.keys {
				key, causes := &one.keys[j], besides
				if s.folders[i].Finals.covers(one.file, key) {
					continue
				}
				switch {
				case edit.has(one.file, key.Key):
					causes = edit.causes
				case causes == nil:
					causes = s.explain(by, one.file, key)
				}
				among := &changed
				if len(causes.causes) == 1 && causes.causes[0].Kind == ByDrift {
					among = &drifted
				}
				among.add(i, cell{file: one.file, key: key.Key, causes: causes}).count(one.more, one.lines)
			}
		}
	}
	return append(s.objectLines(objects.all), s.contentLines(changed.all, maxChanged)...), s.contentLines(drifted.all, maxDrift)
}

func (e *changeLine) count(more, lines int) { e.more, e.lines = max(e.more, more), max(e.lines, lines) }

func (s *summary) contentLines(entries []*changeLine, limit int) []Line {
	type group struct {
		files, others string
		causes        *causeSet
	}
	sameFolders := func(e *changeLine) group { return group{e.joinedFiles(), numbersKey(e.folders), e.causes} }
	entries = mergeLines(s, entries, sameFolders)
	if len(entries) > manyChanges {
		entries = mergeLines(s, entries, func(e *changeLine) group { return group{e.joinedFiles(), e.joinedKeys(), nil} })
		entries = mergeLines(s, entries, sameFolders)
	}
	return s.lines(FileLine, entries, limit)
}

func numbersKey(numbers []int) string {
	key := make([]byte, 0, 3*len(numbers))
	for _, number := range numbers {
		key = append(strconv.AppendInt(key, int64(number), 36), ' ')
	}
	return string(key)
}

func mergeLines[C comparable](s *summary, entries []*changeLine, cellOf func(*changeLine) C) []*changeLine {
	var joined []*changeLine
	for _, group := range groupLines(entries, cellOf) {
		joined = append(joined, s.join(group))
	}
	return joined
}

func groupLines[C comparable](entries []*changeLine, cellOf func(*changeLine) C) iter.Seq2[C, []*changeLine] {
	var groups wording.Groups[C, *changeLine]
	for _, one := range entries {
		groups.Add(cellOf(one), one)
	}
	return groups.All()
}

func (s *summary) join(group []*changeLine) *changeLine {
	if len(group) == 1 {
		return group[0]
	}
	all := &changeLine{location: group[0].location, how: group[0].how}
	var causes []Cause
	var folders []int
	seen := map[*causeSet]bool{}
	for _, one := range group {
		all.files, all.keys = append(all.files, one.files...), append(all.keys, one.keys...)
		all.waitsFor = append(all.waitsFor, one.waitsFor...)
		folders = append(folders, one.folders...)
		all.count(one.more, one.lines)
		if !seen[one.causes] {
			seen[one.causes] = true
			causes = append(causes, one.causes.causes...)
		}
		if one.location != all.location {
			all.location = severalLocations
		}
		if one.how != all.how {
			all.how = Changed
		}
	}
	slices.Sort(folders)
	slices.Sort(all.files)
	slices.SortFunc(all.keys, Key.compare)
	slices.Sort(all.waitsFor)
	all.waitsFor = slices.Compact(all.waitsFor)
	all.folders, all.files, all.keys = slices.Compact(folders), slices.Compact(all.files), slices.Compact(all.keys)
	all.causes = s.internCauses(causes)
	if group[0].objects > 0 {
		all.objects = len(all.files)
	}
	return all
}

var howOrder = []How{New, Removed, Changed}

// limitEntries sorts entries by number of folders and merges those beyond the limit.
func (s *summary) limitEntries(entries []*changeLine, limit int) []*changeLine {
	slices.SortStableFunc(entries, func(a, b *changeLine) int {
		return cmp.Or(
			cmp.Compare(len(b.folders), len(a.folders)), cmp.Compare(b.objects, a.objects),
			cmp.Compare(slices.Index(howOrder, a.how), slices.Index(howOrder, b.how)), slices.Compare(a.files, b.files),
			slices.CompareFunc(a.keys, b.keys, Key.compare), slices.Compare(a.folders, b.folders), cmp.Compare(a.location, b.location),
		)
	})
	if len(entries) > limit {
		rest := s.join(entries[limit-1:])
		rest.objects = min(rest.objects, 1) // after the named ones
		entries = append(entries[:limit-1:limit-1], rest)
	}
	return entries
}

func (s *summary) lines(kind LineKind, entries []*changeLine, limit int) []Line {
	var lines []Line
	for _, e := range s.limitEntries(entries, limit) {
		line := Line{
			Kind: kind, Files: e.files, Keys: e.keys, MoreKeys: e.more, TextLines: e.lines, How: e.how, Location: e.location,
			Causes: e.causes.causes, Names: e.waitsFor,
		}
		for _, i := range e.folders {
			line.Assignments = append(line.Assignments, s.folders[i].Key)
		}
		lines = append(lines, line)
	}
	return lines
}

func (s *summary) waiting() []Line {
	var entries []*changeLine
	for i := range s.folders {
		if folder := &s.folders[i]; folder.WaitsFor != "" && !folder.Removed {
			entries = append(entries, &changeLine{waitsFor: []string{folder.WaitsFor}, causes: s.internCauses(nil), folders: []int{i}})
		}
	}
	entries = mergeLines(s, entries, func(e *changeLine) string { return e.waitsFor[0] })
	return s.lines(WaitLine, entries, maxWaiting)
}

// eachDifference yields each differing file, or once no name if none differs.
func eachDifference(change *FolderChange, yield func(name string, before, after *folder.File)) {
	before, after, found := sortedFiles(change.Before), sortedFiles(change.After), false
	for len(before) > 0 || len(after) > 0 {
		var one, other *folder.File
		name := ""
		order := cmp.Compare(len(after), 0) - cmp.Compare(len(before), 0) // which side is exhausted
		if order == 0 {
			order = cmp.Compare(before[0].Name, after[0].Name)
		}
		if order <= 0 {
			one, name, before = &before[0], before[0].Name, before[1:]
		}
		if order >= 0 {
			other, name, after = &after[0], after[0].Name, after[1:]
		}
		if one != nil && other != nil && bytes.Equal(one.Content, other.Content) {
			continue
		}
		found = true
		yield(name, one, other)
	}
	if !found {
		yield("", nil, nil)
	}
}

func sortedFiles(files []folder.File) []folder.File {
	ByName := func(a, b folder.File) int { return cmp.Compare(a.Name, b.Name) }
	if slices.IsSortedFunc(files, ByName) {
		return files
	}
	return slices.SortedFunc(slices.Values(files), ByName)
}

// edit separates repairs of a folder from other changes.
type edit struct {
	causes *causeSet
	wanted map[string]map[Key]bool // changes since the last apply, by file
}

// editOf returns nil for a folder without an edit.
func (s *summary) editOf(of *FolderChange) *edit {
	if of.Edit == "" || of.Written == nil {
		return nil
	}
	e := &edit{s.internCauses([]Cause{{Kind: ByDrift, Name: of.Edit}}), map[string]map[Key]bool{}}
	eachDifference(&FolderChange{Before: of.Written, After: of.After}, func(name string, before, after *folder.File) {
		keys := map[Key]bool{}
		for _, key := range diffOf(name, before, after).keys {
			keys[key.anyHow()] = true
		}
		e.wanted[name] = keys
	})
	return e
}

// anyHow omits how a key changes, because an edit may have removed it.
func (k Key) anyHow() Key {
	if k.Path != "" {
		k.How = Changed
	}
	return k
}

func (e *edit) has(file string, key Key) bool {
	if e == nil {
		return false
	}
	wanted := e.wanted[file]
	return !wanted[key.anyHow()] && !wanted[Key{How: NewFile}] && !wanted[Key{How: RemovedFile}]
}

func (e *edit) without(diffs []*fileDiff) []*fileDiff {
	if e == nil {
		return diffs
	}
	var others []*fileDiff
	for _, diff := range diffs {
		other := *diff
		other.keys = nil
		for i := range diff.keys {
			if !e.has(diff.file, diff.keys[i].Key) {
				other.keys = append(other.keys, diff.keys[i])
			}
		}
		others = append(others, &other)
	}
	return others
}
