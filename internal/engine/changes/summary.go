package changes

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/parallel"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// summary collects the content of the lines.
type summary struct {
	*explainer
	folders                          []FolderChange // sorted
	added, removed, changed, unknown []int          // indexes of folders
}

// changeLine is the content of one line.
type changeLine struct {
	files, keys []string
	more        int    // omitted keys
	lines       int    // maximum of differing lines, without known keys
	objects     int    // of files: number of final objects
	sign        string // "+ " or "- " for final objects
	location    string // former location of removed folders
	causes      *causeSet
	folders     []int // sorted
	text        string
}

// cell is one change to describe: of a file or object, and key or field.
type cell struct {
	file, key, sign string
	causes          *causeSet
}

// cells collects entries by cell, in order of discovery.
type cells struct {
	all []*changeLine
	of  map[cell]*changeLine
}

// add adds a folder to a cell, in order of folders.
func (c *cells) add(folder int, of cell) *changeLine {
	e := c.of[of]
	if e == nil {
		if c.of == nil {
			c.of = map[cell]*changeLine{}
		}
		e = &changeLine{files: []string{of.file}, keys: []string{of.key}, sign: of.sign, causes: of.causes}
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

// first counts changed hosts and assignments.
func (s *summary) first() string {
	hosts := ""
	if len(s.folders) > 0 {
		compact := slices.CompactFunc(slices.Clone(s.folders), func(a, b FolderChange) bool { return a.Host == b.Host })
		hosts = counted(len(compact), "host") + "; "
	}
	text := hosts + "assignments: " + wording.AllCounts([]int{len(s.changed), len(s.added), len(s.removed)}, "changed", "added", "removed")
	for _, count := range wording.Counts([]int{len(s.unknown), s.notes.Total}, "not known yet", "in all") {
		text += ", " + count
	}
	return text
}

// moves describes added or removed folders: one line for each cause and former location. New or removed hosts with
// the same policies count as one cause. If there are too many lines, it ignores causes.
func (s *summary) moves(sign string, folders []int, limit int) []string {
	entries := make([]*changeLine, len(folders))
	for i, folder := range folders {
		entries[i] = &changeLine{location: s.folders[folder].Location, causes: s.moved(&s.folders[folder]), folders: []int{folder}}
	}
	type move struct {
		location, policies string
		causes             *causeSet
	}
	entries = merged(s, entries, func(e *changeLine) move {
		unnamed, isHost := s.unnamedHosts(e.causes)
		policies := ""
		if isHost {
			policies = s.policiesOf(&s.folders[e.folders[0]])
		}
		return move{e.location, policies, unnamed}
	})
	if len(entries) > limit {
		entries = merged(s, entries, func(e *changeLine) string { return e.location })
	}
	return s.lines(entries, limit, func(e *changeLine) string {
		text := sign
		if len(e.folders) <= maxAssignments {
			text += s.named(e.folders)
		} else {
			text += s.targetsText(e.folders, "deployment target") + " on " + s.hostsText(e.folders) + ": " + counted(len(e.folders), "assignment")
		}
		if e.location != "" {
			text += ", at " + word(e.location)
		}
		return text + e.causes.text()
	})
}

// manyChanges is the number of lines for one key from which causes are merged.
const manyChanges = 8

// contents describes changed final objects and files: one line for each file, keys and causes, or for each file and
// keys if there are many. Changes by drift alone are separate.
func (s *summary) contents() (contents, drift []string) {
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
		s.finals(i, by, besides, found[at], &objects)
		for _, one := range found[at] {
			for j := range one.keys {
				key, causes := &one.keys[j], besides
				if s.folders[i].Finals.tell(one.file, key) {
					continue
				}
				if causes == nil {
					causes = s.explain(by, one.file, key)
				}
				among := &changed
				if len(causes.causes) == 1 && causes.causes[0].kind == byHand {
					among = &drifted
				}
				among.add(i, cell{file: one.file, key: key.text, causes: causes}).count(one.more, one.lines)
			}
		}
	}
	return append(s.objectLines(objects.all), s.contentLines(changed.all, maxChanged)...), s.contentLines(drifted.all, maxDrift)
}

// count adds the size of a folder's difference.
func (e *changeLine) count(more, lines int) { e.more, e.lines = max(e.more, more), max(e.lines, lines) }

func (s *summary) contentLines(entries []*changeLine, limit int) []string {
	sameFolders := func(e *changeLine) cell {
		return cell{file: strings.Join(e.files, "\x00"), key: foldersKey(e.folders), causes: e.causes}
	}
	entries = merged(s, entries, sameFolders)
	if len(entries) > manyChanges {
		entries = merged(s, entries, func(e *changeLine) cell {
			return cell{file: strings.Join(e.files, "\x00"), key: strings.Join(e.keys, "\x00")}
		})
		entries = merged(s, entries, sameFolders)
	}
	return s.lines(entries, limit, s.contentText)
}

// foldersKey identifies a list of folders.
func foldersKey(folders []int) string {
	key := make([]byte, 0, 3*len(folders))
	for _, folder := range folders {
		key = append(strconv.AppendInt(key, int64(folder), 36), ' ')
	}
	return string(key)
}

func (s *summary) contentText(e *changeLine) string {
	isEmpty := func(text string) bool { return text == "" } // without a file or known keys
	files, keys := slices.DeleteFunc(slices.Clone(e.files), isEmpty), slices.DeleteFunc(slices.Clone(e.keys), isEmpty)
	switch {
	case e.lines > 1 && len(e.folders) > 1:
		keys = append(keys, fmt.Sprintf("up to %d lines", e.lines))
	case e.lines > 0:
		keys = append(keys, counted(e.lines, "line"))
	}
	text := listWords(keys, e.more, "key")
	if len(files) > 0 {
		text = names(files, "file") + ": " + text
	}
	return text + ", on " + s.which(e.folders) + e.causes.text()
}

// merged joins entries by cell, in order of first occurrence.
func merged[C comparable](s *summary, entries []*changeLine, cellOf func(*changeLine) C) []*changeLine {
	groups := grouped(entries, cellOf)
	joined := make([]*changeLine, len(groups))
	for i, group := range groups {
		joined[i] = s.join(group)
	}
	return joined
}

// grouped groups entries by cell, in order of first occurrence.
func grouped[C comparable](entries []*changeLine, cellOf func(*changeLine) C) [][]*changeLine {
	var groups [][]*changeLine
	number := map[C]int{}
	for _, one := range entries {
		of := cellOf(one)
		at, seen := number[of]
		if !seen {
			at = len(groups)
			number[of], groups = at, append(groups, nil)
		}
		groups[at] = append(groups[at], one)
	}
	return groups
}

func (s *summary) join(group []*changeLine) *changeLine {
	if len(group) == 1 {
		return group[0]
	}
	all := &changeLine{location: group[0].location, sign: group[0].sign}
	var causes []cause
	var folders []int
	seen := map[*causeSet]bool{}
	for _, one := range group {
		all.files, all.keys = append(all.files, one.files...), append(all.keys, one.keys...)
		folders = append(folders, one.folders...)
		all.count(one.more, one.lines)
		if !seen[one.causes] {
			seen[one.causes] = true
			causes = append(causes, one.causes.causes...)
		}
		if one.location != all.location {
			all.location = "several locations"
		}
		if one.sign != all.sign {
			all.sign = ""
		}
	}
	slices.Sort(folders)
	slices.Sort(all.files)
	slices.Sort(all.keys)
	all.folders, all.files, all.keys = slices.Compact(folders), slices.Compact(all.files), slices.Compact(all.keys)
	all.causes = s.set(causes)
	if group[0].objects > 0 {
		all.objects = len(all.files)
	}
	return all
}

// limited sorts entries by number of folders, formats them, and merges those beyond the limit.
func (s *summary) limited(entries []*changeLine, limit int, write func(*changeLine) string) []*changeLine {
	for _, one := range entries {
		one.text = write(one)
	}
	slices.SortStableFunc(entries, func(a, b *changeLine) int {
		return cmp.Or(cmp.Compare(len(b.folders), len(a.folders)), cmp.Compare(b.objects, a.objects), cmp.Compare(a.text, b.text))
	})
	if len(entries) > limit {
		rest := s.join(entries[limit-1:])
		rest.text, rest.objects = write(rest), min(rest.objects, 1) // after the named ones
		entries = append(entries[:limit-1:limit-1], rest)
	}
	return entries
}

// lines formats entries by number of folders, with one line for those beyond the limit.
func (s *summary) lines(entries []*changeLine, limit int, write func(*changeLine) string) []string {
	entries = s.limited(entries, limit, write)
	lines := make([]string, len(entries))
	for i, one := range entries {
		lines[i] = one.text
	}
	return lines
}

// waiting describes unknown folders with their unknown inputs.
func (s *summary) waiting() []string {
	var entries []*changeLine
	for i := range s.folders {
		if folder := &s.folders[i]; folder.WaitsFor != "" && !folder.Removed {
			entries = append(entries, &changeLine{keys: []string{folder.WaitsFor}, causes: s.set(nil), folders: []int{i}})
		}
	}
	entries = merged(s, entries, func(e *changeLine) string { return e.keys[0] })
	return s.lines(entries, maxWaiting, func(e *changeLine) string {
		verb := " wait for "
		if len(e.folders) == 1 {
			verb = " waits for "
		}
		return "not known yet, on " + s.which(e.folders) + verb + names(e.keys, "thing")
	})
}

// maxAssignments bounds the named assignments in a line.
const maxAssignments = 3

// which returns "large, small: 14 assignments", or names a few: "large: payments-live", "large/a-live, small/b-live".
func (s *summary) which(folders []int) string {
	if len(folders) > maxAssignments {
		return s.hostsText(folders) + ": " + counted(len(folders), "assignment")
	}
	isOne := func(of func(*FolderChange) string) bool {
		return !slices.ContainsFunc(folders, func(i int) bool { return of(&s.folders[i]) != of(&s.folders[folders[0]]) })
	}
	if isOne(func(f *FolderChange) string { return f.Host }) || isOne(func(f *FolderChange) string { return f.DeploymentTarget }) {
		return s.hostsText(folders) + ": " + s.targetsText(folders, "assignment")
	}
	return s.named(folders)
}

// named lists assignments by key.
func (s *summary) named(folders []int) string {
	keys := make([]string, len(folders))
	for i, folder := range folders {
		keys[i] = word(s.folders[folder].Host) + "/" + word(s.folders[folder].DeploymentTarget)
	}
	return listWords(keys, 0, "assignment")
}

// hostsText names the hosts of folders, sorted by host.
func (s *summary) hostsText(folders []int) string {
	var hosts []string
	for _, i := range folders {
		if host := s.folders[i].Host; len(hosts) == 0 || hosts[len(hosts)-1] != host {
			hosts = append(hosts, host)
		}
	}
	return names(hosts, "host")
}

func (s *summary) targetsText(folders []int, what string) string {
	targets := make([]string, len(folders))
	for i, folder := range folders {
		targets[i] = s.folders[folder].DeploymentTarget
	}
	slices.Sort(targets)
	return names(slices.Compact(targets), what)
}

// eachDifference calls yield with each differing file, or once without a name if none differs.
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
	byName := func(a, b folder.File) int { return cmp.Compare(a.Name, b.Name) }
	if slices.IsSortedFunc(files, byName) {
		return files
	}
	return slices.SortedFunc(slices.Values(files), byName)
}
