package changes

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// move is one line about folders that are added or removed.
type move struct {
	causes   *causeSet
	location string
	folders  []int
}

// maxOfMove is how many lines may say what one object adds or removes.
const maxOfMove = 3

// moves writes the lines about folders that are added or removed.
func (s *summary) moves(sign string, folders []int, limit int) []string {
	if len(folders) == 0 {
		return nil
	}
	single := make([]*move, len(folders))
	for i, number := range folders {
		single[i] = &move{causes: s.moved(&s.folders[number]), location: s.folders[number].Location, folders: []int{number}}
	}
	keyOf := func(m *move) string { return fmt.Sprintf("%d %q", m.causes.number, m.location) }
	var moves []*move
	for _, group := range partition(single, keyOf) {
		moves = append(moves, s.fewest(group)...)
	}
	if len(moves) > limit {
		moves = s.joined(moves, func(m *move) string { return fmt.Sprintf("%q %q", m.causes.kinds, m.location) })
	}
	slices.SortStableFunc(moves, func(a, b *move) int {
		return cmp.Or(cmp.Compare(len(b.folders), len(a.folders)), cmp.Compare(a.folders[0], b.folders[0]))
	})
	if len(moves) > limit {
		moves = append(moves[:limit-1], s.join(moves[limit-1:]))
	}
	lines := make([]string, len(moves))
	for i, one := range moves {
		lines[i] = s.moveText(sign, one)
	}
	return lines
}

// fewest joins the moves with the same causes: into one for each deployment target with all its hosts, joining
// targets with the same hosts; or into one for each host with all its targets; or into a single one where both are
// too many lines.
func (s *summary) fewest(group []*move) []*move {
	targetOf := func(m *move) string { return s.folders[m.folders[0]].DeploymentTarget }
	hostOf := func(m *move) string { return s.folders[m.folders[0]].Host }
	byTarget := s.joined(s.joined(group, targetOf), s.allOf(hostOf))
	if len(byTarget) <= maxOfMove {
		return byTarget
	}
	byHost := s.joined(s.joined(group, hostOf), s.allOf(targetOf))
	if len(byHost) <= maxOfMove {
		return byHost
	}
	return []*move{s.join(group)}
}

// allOf returns a key that is equal for moves whose folders have the same hosts, or deployment targets.
func (s *summary) allOf(of func(*move) string) func(*move) string {
	return func(m *move) string {
		names := make([]string, len(m.folders))
		for i, folder := range m.folders {
			names[i] = of(&move{folders: []int{folder}})
		}
		slices.Sort(names)
		return strings.Join(slices.Compact(names), "\x00")
	}
}

// partition returns groups of moves with the same key, in the order of their first move.
func partition(moves []*move, keyOf func(*move) string) [][]*move {
	numbers := map[string]int{}
	var groups [][]*move
	for _, one := range moves {
		key := keyOf(one)
		number, seen := numbers[key]
		if !seen {
			number = len(groups)
			numbers[key] = number
			groups = append(groups, nil)
		}
		groups[number] = append(groups[number], one)
	}
	return groups
}

func (s *summary) joined(moves []*move, keyOf func(*move) string) []*move {
	groups := partition(moves, keyOf)
	joined := make([]*move, len(groups))
	for i, group := range groups {
		joined[i] = s.join(group)
	}
	return joined
}

func (s *summary) join(group []*move) *move {
	if len(group) == 1 {
		return group[0]
	}
	all := &move{location: group[0].location}
	sets := make([]*causeSet, 0, len(group))
	for _, one := range group {
		all.folders = append(all.folders, one.folders...)
		if !slices.Contains(sets, one.causes) {
			sets = append(sets, one.causes)
		}
		if one.location != all.location {
			all.location = "several locations"
		}
	}
	slices.Sort(all.folders)
	all.causes = s.union(sets)
	return all
}

// moveText is "+ large/reports-nightly, by target policy "nightly"", or for several
// "- reports on large, small: 2 assignments".
func (s *summary) moveText(sign string, m *move) string {
	var b strings.Builder
	b.WriteString(sign + " ")
	if len(m.folders) == 1 {
		folder := &s.folders[m.folders[0]]
		b.WriteString(word(folder.Host) + "/" + word(folder.DeploymentTarget))
	} else {
		targets := make([]string, len(m.folders))
		for i, number := range m.folders {
			targets[i] = s.folders[number].DeploymentTarget
		}
		slices.Sort(targets)
		b.WriteString(names(slices.Compact(targets), "deployment target") + " on " + s.hostsText(m.folders) + ": " +
			counted(len(m.folders), "assignment"))
	}
	if m.location != "" {
		b.WriteString(", at " + word(m.location))
	}
	return b.String() + m.causes.text()
}

// ownership says what happens to folders that stay as they are.
func (s *summary) ownership() []string {
	var lines []string
	if s.notes.HandedOver != "" {
		lines = append(lines, "owner "+quoted(s.notes.HandedOver)+" hands over its folders unchanged: nothing is removed")
	}
	return lines
}

// waiting says what is not known yet, and what it waits for.
func (s *summary) waiting() []string {
	byCause := map[string][]int{}
	for number := range s.folders {
		if folder := &s.folders[number]; folder.WaitsFor != "" && !folder.Removed {
			byCause[folder.WaitsFor] = append(byCause[folder.WaitsFor], number)
		}
	}
	causes := slices.Collect(maps.Keys(byCause))
	slices.SortFunc(causes, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(byCause[b]), len(byCause[a])), cmp.Compare(a, b))
	})
	var lines []string
	for i, cause := range causes {
		folders, what := byCause[cause], word(cause)
		if i == maxWaiting-1 && len(causes) > maxWaiting {
			for _, other := range causes[i+1:] {
				folders = append(folders, byCause[other]...)
			}
			what = names(causes[i:], "thing")
		}
		verb := "wait"
		if len(folders) == 1 {
			verb = "waits"
		}
		slices.Sort(folders)
		lines = append(lines, fmt.Sprintf("not known yet, on %s %s for %s", s.which(folders), verb, what))
		if len(lines) == maxWaiting {
			break
		}
	}
	return lines
}

// others are the lines about what no folder shows.
func (s *summary) others() []string {
	var lines []string
	if n := len(s.notes.Repaired); n > 0 {
		hosts := slices.Sorted(slices.Values(s.notes.Repaired))
		lines = append(lines, "marker or record repaired, on "+names(hosts, "host"))
	}
	for i, line := range s.notes.Lines {
		if left := len(s.notes.Lines) - i; len(lines) == maxOthers-1 && left > 1 {
			return append(lines, "and "+counted(left, "more line"))
		}
		lines = append(lines, oneLine(line))
	}
	return lines
}
