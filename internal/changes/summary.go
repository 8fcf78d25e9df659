package changes

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/parallel"
)

// summary collects what the lines are written from.
type summary struct {
	*explainer
	folders []Folder
	changed []*change // of content, coarsened
	drift   []*change
	hosts   []int // by folder: the number of its host
	stamps  []int // by host and by folder, see distinct
	stamp   int

	addedFolders, removedFolders, changedFolders, unknownFolders []int
}

// unit is a set of folders in which the same keys of a file changed and which the same objects reach.
type unit struct {
	file    string
	diff    *fileDiff
	reasons int
	drift   string
	back    string
	folders []int
}

// change is one line about the content of folders.
type change struct {
	files       []string
	keys        []string
	more        int // number of keys beyond maxKeys
	lines       [2]int
	causes      *causeSet
	units       []int
	count       int    // assignments
	text, where string // set by write
}

func newSummary(before, after *Version, folders []Folder, notes Notes) *summary {
	folders = slices.Clone(folders)
	slices.SortStableFunc(folders, func(a, b Folder) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.DeploymentTarget, b.DeploymentTarget), cmp.Compare(a.Location, b.Location))
	})
	s := &summary{
		explainer: newExplainer(newReach(before, after, folders), &notes),
		folders:   folders, hosts: make([]int, len(folders)),
	}
	host := -1
	for i := range folders {
		if i == 0 || folders[i].Host != folders[i-1].Host {
			host++
		}
		s.hosts[i] = host
		switch folder := &folders[i]; {
		case folder.Removed:
			s.removedFolders = append(s.removedFolders, i)
		case folder.Added:
			s.addedFolders = append(s.addedFolders, i)
		case folder.WaitsFor != "":
			s.unknownFolders = append(s.unknownFolders, i)
		default:
			s.changedFolders = append(s.changedFolders, i)
		}
	}
	s.stamps = make([]int, len(folders))
	s.layOut()
	return s
}

func (s *summary) nothing() bool {
	return len(s.folders) == 0 && s.notes.HandedOver == "" && len(s.notes.Repaired)+len(s.notes.Lines)+len(s.notes.Constraints) == 0
}

// first counts what changes.
func (s *summary) first() string {
	var b strings.Builder
	if len(s.folders) > 0 {
		b.WriteString(counted(s.hosts[len(s.hosts)-1]+1, "host") + ", ")
	}
	switch n := len(s.changedFolders); n {
	case 0:
		b.WriteString("no assignment changes")
	case 1:
		b.WriteString("1 assignment changes")
	default:
		fmt.Fprintf(&b, "%d assignments change", n)
	}
	b.WriteString("; " + are(len(s.addedFolders), "added") + "; " + are(len(s.removedFolders), "removed"))
	switch n := len(s.unknownFolders); n {
	case 0:
	case 1:
		b.WriteString("; 1 is not known yet")
	default:
		fmt.Fprintf(&b, "; %d are not known yet", n)
	}
	if s.notes.Total > 0 {
		fmt.Fprintf(&b, "; %d in all", s.notes.Total)
	}
	return b.String()
}

// units compares the files of all folders that change.
func (s *summary) units() []unit {
	type identity struct {
		file    string
		diff    *fileDiff
		reasons int
		drift   string
		back    string
	}
	type fileChange struct {
		file string
		diff *fileDiff
	}
	found := make([][]fileChange, len(s.changedFolders))
	parallel.Each(len(found), func(at int) {
		eachDifference(&s.folders[s.changedFolders[at]], func(name string, before, after *File) {
			found[at] = append(found[at], fileChange{name, diffOf(name, before, after)})
		})
	})
	numbers, same := map[identity]int{}, map[string]*fileDiff{}
	var units []unit
	for at, i := range s.changedFolders {
		folder := &s.folders[i]
		reasons := s.reasonsOf(assignmentKey{folder.Host, folder.DeploymentTarget})
		for _, one := range found[at] {
			id := one.diff.id()
			if same[id] == nil {
				same[id] = one.diff
			}
			equal := identity{one.file, same[id], reasons, folder.Drift, folder.Back}
			number, seen := numbers[equal]
			if !seen {
				number = len(units)
				numbers[equal] = number
				units = append(units, unit{file: one.file, diff: equal.diff, reasons: reasons, drift: folder.Drift, back: folder.Back})
			}
			units[number].folders = append(units[number].folders, i)
		}
	}
	return units
}

// eachDifference calls yield with each file that differs, or once without a name where none does.
func eachDifference(folder *Folder, yield func(name string, before, after *File)) {
	before, after, found := sortedFiles(folder.Before), sortedFiles(folder.After), false
	for len(before) > 0 || len(after) > 0 {
		var one, other *File
		if len(after) == 0 || len(before) > 0 && before[0].Name <= after[0].Name {
			one = &before[0]
		}
		if len(before) == 0 || len(after) > 0 && after[0].Name <= before[0].Name {
			other = &after[0]
		}
		name := ""
		if one != nil {
			name, before = one.Name, before[1:]
		}
		if other != nil {
			name, after = other.Name, after[1:]
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

func sortedFiles(files []File) []File {
	byName := func(a, b File) int { return cmp.Compare(a.Name, b.Name) }
	if slices.IsSortedFunc(files, byName) {
		return files
	}
	return slices.SortedFunc(slices.Values(files), byName)
}

// layOut writes the lines about content.
func (s *summary) layOut() {
	units := s.units()
	changed := s.group(units)
	var drift []*change
	changed = slices.DeleteFunc(changed, func(c *change) bool {
		if c.causes.byHand() {
			drift = append(drift, c)
			return true
		}
		return false
	})
	explained := s.hiddenDrift(units, drift)
	s.changed = s.finish(units, changed, maxChanged)
	s.drift = s.finish(units, append(drift, explained...), maxDrift)
}

// group joins the keys of a file that changed in the same folders and by the same causes into one change.
func (s *summary) group(units []unit) []*change {
	type identity struct {
		file, key string
		causes    *causeSet
	}
	byKey := map[identity]*change{}
	var order []*change
	for number := range units {
		u := &units[number]
		for i := range u.diff.keys {
			key := &u.diff.keys[i]
			causes := s.explain(question{u.reasons, roleOf(u.file), key, u.drift, u.back})
			same := identity{u.file, key.text, causes}
			found := byKey[same]
			if found == nil {
				found = newChange(u.file, key.text, causes)
				byKey[same] = found
				order = append(order, found)
			}
			found.units = append(found.units, number)
			found.addLines(u.diff.lines, u.diff.lines)
			found.more = max(found.more, u.diff.more)
		}
	}
	return s.merge(order, 0, func(c *change) string {
		return byFile(c) + byCause(c) + numbersKey(c.units)
	})
}

func newChange(file, key string, causes *causeSet) *change {
	made := &change{causes: causes}
	if file != "" {
		made.files = []string{file}
	}
	if key != "" {
		made.keys = []string{key}
	}
	return made
}

func numbersKey(numbers []int) string {
	name := make([]byte, 0, 3*len(numbers))
	for _, number := range numbers {
		name = append(strconv.AppendInt(name, int64(number), 36), ' ')
	}
	return string(name)
}

func (c *change) addLines(least, most int) {
	if most == 0 {
		return
	}
	if c.lines[0] == 0 || least < c.lines[0] {
		c.lines[0] = least
	}
	c.lines[1] = max(c.lines[1], most)
}

// merge joins the changes with the same key into one, where there are more than some of them.
func (s *summary) merge(changes []*change, some int, keyOf func(*change) string) []*change {
	byKey := map[string][]*change{}
	for _, one := range changes {
		byKey[keyOf(one)] = append(byKey[keyOf(one)], one)
	}
	var merged []*change
	for _, one := range changes {
		group := byKey[keyOf(one)]
		switch {
		case len(group) == 1 || len(group) <= some:
			merged = append(merged, one)
		case one == group[0]:
			merged = append(merged, s.mergeAll(group))
		}
	}
	return merged
}

func (s *summary) mergeAll(group []*change) *change {
	var all change
	sets := make([]*causeSet, len(group))
	for i, one := range group {
		all.files = append(all.files, one.files...)
		all.keys = append(all.keys, one.keys...)
		all.units = append(all.units, one.units...)
		all.more = max(all.more, one.more)
		all.addLines(one.lines[0], one.lines[1])
		sets[i] = one.causes
	}
	for _, list := range []*[]string{&all.files, &all.keys} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	slices.Sort(all.units)
	all.units = slices.Compact(all.units)
	all.causes = s.union(sets)
	return &all
}

// How many lines there may be with the same file and causes, and with the same causes; and how many lines in all,
// before lines are merged that differ only in the names of their causes.
const (
	maxOfFileAndCause = 3
	maxOfCause        = 8
	manyChanges       = 8
)

func byFile(c *change) string { return strings.Join(c.files, "\x00") + "\x01" }

func byCause(c *change) string { return strconv.Itoa(c.causes.number) + " " }

// finish merges the changes until there are few enough, and writes their lines, the ones with most folders first.
func (s *summary) finish(units []unit, changes []*change, limit int) []*change {
	changes = s.merge(changes, maxOfFileAndCause, func(c *change) string { return byFile(c) + byCause(c) })
	changes = s.merge(changes, maxOfCause, byCause)
	for _, coarser := range []struct {
		above int
		key   func(*change) string
	}{
		{manyChanges, func(c *change) string { return byFile(c) + strings.Join(c.keys, "\x00") + "\x01" + c.causes.kinds }},
		{limit, func(c *change) string { return byFile(c) + c.causes.kinds }},
		{limit, func(c *change) string { return c.causes.kinds }},
	} {
		if len(changes) > coarser.above {
			changes = s.merge(changes, 1, coarser.key)
		}
	}
	for _, one := range changes {
		s.write(units, one)
	}
	bySize := func(a, b *change) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.text, b.text), cmp.Compare(a.where, b.where))
	}
	slices.SortFunc(changes, bySize)
	if len(changes) > limit {
		rest := s.mergeAll(changes[limit-1:])
		s.write(units, rest)
		changes = append(changes[:limit-1], rest)
	}
	return changes
}

// write writes the line of a change.
func (s *summary) write(units []unit, c *change) {
	var folders []int
	for _, number := range c.units {
		folders = append(folders, units[number].folders...)
	}
	folders = s.distinct(folders)
	c.count = len(folders)
	files := make([]string, len(c.files))
	for i, file := range c.files {
		files[i] = word(file)
	}
	keys := slices.Clone(c.keys)
	switch least, most := c.lines[0], c.lines[1]; {
	case most == 0:
	case least == most:
		keys = append(keys, counted(most, "line"))
	default:
		keys = append(keys, fmt.Sprintf("up to %d lines", most))
	}
	c.text = listWords(keys, c.more, "key")
	if len(files) > 0 {
		c.text = listWords(files, 0, "file") + ": " + c.text
	}
	c.where = s.where(folders) + c.causes.text()
}

// where is ", on large, small: 14 assignments".
func (s *summary) where(folders []int) string { return ", on " + s.which(folders) }

// maxAssignments is how many assignments a line names.
const maxAssignments = 3

// which is "large, small: 14 assignments". A few are named: "large: payments-live", "large/a-live, small/b-live".
func (s *summary) which(folders []int) string {
	if len(folders) > maxAssignments {
		return s.hostsText(folders) + ": " + counted(len(folders), "assignment")
	}
	var keys, targets []string
	for _, i := range folders {
		targets = append(targets, s.folders[i].DeploymentTarget)
		keys = append(keys, s.folders[i].Host+"/"+s.folders[i].DeploymentTarget)
	}
	slices.Sort(targets)
	targets = slices.Compact(targets)
	if oneHost := s.hosts[folders[0]] == s.hosts[folders[len(folders)-1]]; oneHost || len(targets) == 1 {
		return s.hostsText(folders) + ": " + names(targets, "assignment")
	}
	slices.Sort(keys)
	return names(keys, "assignment")
}

func (s *summary) hostsText(folders []int) string {
	seen := map[int]bool{}
	var hosts []string
	for _, i := range folders {
		if !seen[s.hosts[i]] {
			seen[s.hosts[i]] = true
			hosts = append(hosts, s.folders[i].Host)
		}
	}
	slices.Sort(hosts)
	return names(hosts, "host")
}

// distinct returns the folders in order, each once.
func (s *summary) distinct(folders []int) []int {
	s.stamp++
	kept := folders[:0]
	for _, i := range folders {
		if s.stamps[i] != s.stamp {
			s.stamps[i] = s.stamp
			kept = append(kept, i)
		}
	}
	slices.Sort(kept)
	return kept
}

func (s *summary) contents() []string { return textsOf(s.changed) }

func (s *summary) drifted() []string { return textsOf(s.drift) }

func textsOf(changes []*change) []string {
	lines := make([]string, len(changes))
	for i, one := range changes {
		lines[i] = one.text + one.where
	}
	return lines
}

// hiddenDrift finds folders that were changed in the repository, where no line of drift says so yet, because
// changes of the fleet explain the same keys.
func (s *summary) hiddenDrift(units []unit, listed []*change) []*change {
	shown := map[int]bool{}
	for _, one := range listed {
		for _, number := range one.units {
			for _, folder := range units[number].folders {
				shown[folder] = true
			}
		}
	}
	byText := map[string]*change{}
	for number := range units {
		u := &units[number]
		if u.drift == "" || s.notes.RolledBack != "" || shown[u.folders[0]] && len(u.folders) == 1 {
			continue
		}
		hidden := slices.ContainsFunc(u.folders, func(i int) bool { return !shown[i] })
		if !hidden {
			continue
		}
		if byText[u.drift] == nil {
			byText[u.drift] = newChange("", "some of this was changed in the repository", s.set([]cause{{kind: byHand, name: u.drift}}))
		}
		byText[u.drift].units = append(byText[u.drift].units, number)
	}
	var found []*change
	for _, text := range slices.Sorted(maps.Keys(byText)) {
		found = append(found, byText[text])
	}
	return found
}
