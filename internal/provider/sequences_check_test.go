package provider_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

type branchesState struct {
	files   map[branchOf]map[string]string
	commits map[branchOf]int
	folders map[ownedFolder]string // content as one text
	owners  map[ownedFolder]string // name in the records; "" for none
}

type branchOf struct{ repository, branch string }

type ownedFolder struct {
	branchOf
	path, host, target string
}

func (s *sequence) readBranches() branchesState {
	seen := branchesState{map[branchOf]map[string]string{}, map[branchOf]int{}, map[ownedFolder]string{}, map[ownedFolder]string{}}
	for _, repository := range s.world.repositories() {
		for _, branch := range branches {
			at := branchOf{repository, branch}
			seen.files[at] = s.world.files(repository, branch)
			seen.commits[at] = s.world.commits(repository, branch)
			for _, name := range slices.Sorted(maps.Keys(seen.files[at])) {
				content := seen.files[at][name]
				for _, prefix := range paths {
					seen.addFile(at, prefix, name, content)
				}
			}
		}
	}
	return seen
}

var (
	folderFile = regexp.MustCompile(`^(t\d)/(w-[a-f])/`)
	recordPath = regexp.MustCompile(`^\.flotilla/([^/]+)/(t\d)\.json$`)
)

// addFile adds a file to its folder, or the owners from a record.
func (seen *branchesState) addFile(at branchOf, prefix, name, content string) {
	rest := name
	if prefix != "" {
		var ok bool
		if rest, ok = strings.CutPrefix(name, prefix+"/"); !ok {
			return
		}
	}
	if found := folderFile.FindStringSubmatch(rest); found != nil {
		folder := ownedFolder{at, prefix, found[1], found[2]}
		seen.folders[folder] += name + "\x00" + content + "\x00"
	}
	if found := recordPath.FindStringSubmatch(rest); found != nil {
		var record struct {
			Targets map[string]any `json:"deployment_targets"`
		}
		if json.Unmarshal([]byte(content), &record) == nil {
			for target := range record.Targets {
				seen.owners[ownedFolder{at, prefix, found[2], target}] = found[1]
			}
		}
	}
}

// changedBranch returns the name of a branch that differs from now; "" for none.
func (seen branchesState) changedBranch(now branchesState) string {
	for at, count := range seen.commits {
		if now.commits[at] != count || !maps.Equal(seen.files[at], now.files[at]) {
			return fmt.Sprintf("branch %q of %s", at.branch, at.repository)
		}
	}
	return ""
}

func (s *sequence) checkForeign(now branchesState) {
	for at, content := range s.foreign {
		if got, ok := now.files[branchOf{at.repository, at.branch}][at.file]; !ok || got != content {
			s.t.Errorf("%s on branch %q of %s: got %q, want %q", at.file, at.branch, at.repository, got, content)
		}
	}
}

var counted = regexp.MustCompile(`: (\d+) assignments?\b`)

// checkRemovals checks that the plan showed each removed folder and that protection allows the removal.
func (s *sequence) checkRemovals(p *person, before, after branchesState, plan *providertest.Plan, diags providertest.Diagnostics) {
	removed := map[string][]ownedFolder{} // by former owner and its location
	for folder := range before.folders {
		if _, stays := after.folders[folder]; !stays {
			key := fmt.Sprint(folder.branchOf, folder.path, " ", before.owners[folder])
			removed[key] = append(removed[key], folder)
			s.tally.removed++
		}
	}
	for _, key := range slices.Sorted(maps.Keys(removed)) {
		folders := removed[key]
		owner := before.owners[folders[0]]
		total := 0
		for folder, name := range before.owners {
			if _, there := before.folders[folder]; there && name == owner && folder.branchOf == folders[0].branchOf &&
				folder.path == folders[0].path {
				total++
			}
		}
		if !slices.ContainsFunc(plan.Changes, func(change *providertest.Change) bool {
			count := total
			if w := p.wants[change.Address]; w != nil { // folders at the new location count, too
				for folder, name := range before.owners {
					at := branchOf{w.repository, w.branch}
					if name == w.name && folder.branchOf == at && folder.path == w.path && (at != folders[0].branchOf || w.path != folders[0].path) {
						count++
					}
				}
			}
			return s.allowsRemoval(p, change, diags, owner, folders, count)
		}) {
			s.t.Errorf("%d of %d folders of %q at %v %q were removed, although the plan does not show it or protection forbids it: %v",
				len(folders), total, owner, folders[0].branchOf, folders[0].path, folders)
			for _, change := range plan.Changes {
				s.t.Errorf("the plan has %s %s: %v", change.Action, change.Address, shownLines(change, diags))
			}
		}
	}
}

// allowsRemoval reports whether a change of the plan shows the removal of the folders, and its protection allows it.
func (s *sequence) allowsRemoval(
	p *person,
	change *providertest.Change,
	diags providertest.Diagnostics,
	owner string,
	folders []ownedFolder,
	total int,
) bool {
	protection := change.After["protection"]
	switch change.Action {
	case providertest.NoOp:
		return false
	case providertest.Delete:
		protection = change.Before["protection"]
		if change.Before["name"] != owner || change.Before["on_destroy"] == "keep" {
			return false
		}
	case providertest.DeleteThenCreate, providertest.CreateThenDelete:
		if change.Action == providertest.CreateThenDelete {
			protection = change.Before["protection"]
		}
		if change.Before["name"] != owner && change.After["name"] != owner {
			return false
		}
	default:
		shown := 0
		for _, line := range shownLines(change, diags) {
			text, removal := strings.CutPrefix(line, "- ")
			switch number := counted.FindStringSubmatch(text); {
			case !removal:
			case number != nil:
				n, _ := strconv.Atoi(number[1])
				shown += n
			default: // up to three names
				names, _, _ := strings.Cut(text, ", by ")
				names, _, _ = strings.Cut(names, ", at ")
				shown += strings.Count(names, ", ") + 1
			}
		}
		if shown < len(folders) {
			return false
		}
		w := p.wants[change.Address]
		for host := range hostCount {
			emptied, lost := 0, 0
			for _, folder := range folders {
				if folder.host == hostName(host) {
					lost++
				}
			}
			if lost == targetCount { // all folders of a host
				emptied = lost
			}
			limits, _ := protection.(map[string]any)
			if emptied >= 5 && limits["emptied_hosts"] == nil && limits["allow_empty"] == nil && w != nil &&
				w.branch == folders[0].branch && w.repository == folders[0].repository && w.path == folders[0].path {
				return false
			}
		}
	}
	limits, _ := protection.(map[string]any)
	removed := len(folders)
	number := func(key string) (int, bool) {
		if limits[key] == nil {
			return 0, false
		}
		n, err := strconv.Atoi(fmt.Sprint(limits[key]))
		return n, err == nil
	}
	most, isNumber := number("max_removed")
	share, isShare := number("max_removed_percent")
	switch {
	case isNumber:
		return removed <= most
	case isShare && share > 0:
		return removed <= 10 || removed*100 <= total*2*share // a move has as many folders at its new location
	case isShare:
		return removed == 0
	}
	return removed <= 10 || removed*100 <= total*50
}

// shownLines returns the lines of a plan about a change. Facts that the plan read from a branch are in warnings, because the apply may
// find other facts: folders at a location that is new to the state, and folders of the former branch or repository of a move.
func shownLines(change *providertest.Change, diags providertest.Diagnostics) []string {
	var lines []string
	known, _ := change.After["changes"].([]any)
	for _, line := range known {
		lines = append(lines, fmt.Sprint(line))
	}
	for _, diagnostic := range diags {
		if diagnostic.Address == change.Address &&
			slices.Contains([]string{"Changes that are known so far", "Folders are there already"}, diagnostic.Summary) {
			lines = append(lines, strings.Split(diagnostic.Detail, "\n")...)
		}
	}
	return lines
}

// checkRenames checks that new names and spellings of URLs make at most one commit, which changes no folder.
func (s *sequence) checkRenames(p *person, before, after branchesState) {
	if len(p.lastApplied) == 0 || len(p.lastApplied) != len(p.wants) {
		return
	}
	renamed := false
	for address, w := range p.wants {
		was, ok := p.lastApplied[address]
		if !ok {
			return
		}
		for folder, name := range before.owners {
			if name == w.name && name != was.name && folder.branchOf == (branchOf{w.repository, w.branch}) && folder.path == w.path {
				return // another assignment has this name
			}
		}
		renamed = renamed || was.name != w.name || was.spelling != w.spelling
		was.name, was.spelling, was.adopt = w.name, w.spelling, w.adopt
		was.protection, was.keep, was.createFirst = w.protection, w.keep, w.createFirst
		if was != *w {
			return
		}
	}
	if !renamed {
		return
	}
	s.tally.renamed++
	for at, count := range before.commits {
		if n := after.commits[at] - count; n > 1 {
			s.t.Errorf("a rename makes %d commits on %v", n, at)
		}
	}
	if !maps.Equal(before.folders, after.folders) {
		s.t.Error("a rename changes folders")
	}
}

func (s *sequence) writeForeign(at spot) {
	files := maps.Clone(s.world.files(at.repository, at.branch))
	if files == nil {
		files = map[string]string{}
	}
	files[at.file] = fmt.Sprint("of somebody else, in ", at.repository, " ", at.branch, ", ", len(s.log), "\n")
	s.foreign[at] = files[at.file]
	s.world.commit(at.repository, at.branch, files)
}

func (s *sequence) editForeign() {
	prefix := pick(s.random, paths)
	s.writeForeign(spot{
		pick(s.random, s.world.repositories()), pick(s.random, branches),
		path.Join(prefix, pick(s.random, []string{"NOTES.md", "t0/notes.txt", "t1/somebody/kustomization.yaml", ".flotilla.md", "other/x.yaml"})),
	})
}

// changeByHand commits a change of a random file with a chosen name.
func (s *sequence) changeByHand(choose func(name string) bool, change func(files map[string]string, name string)) {
	seen := s.readBranches()
	var found []spot
	for at, files := range seen.files {
		for name := range files {
			if choose(name) {
				found = append(found, spot{at.repository, at.branch, name})
			}
		}
	}
	if len(found) == 0 {
		return
	}
	slices.SortFunc(found, func(a, b spot) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	at := pick(s.random, found)
	files := maps.Clone(seen.files[branchOf{at.repository, at.branch}])
	change(files, at.file)
	s.logf("    %+v", at)
	s.world.commit(at.repository, at.branch, files)
	for _, p := range s.people {
		p.lastApplied = nil
	}
}

var ownedFile = regexp.MustCompile(`(^|/)t\d/w-[a-f]/`)

func (s *sequence) editOwned() {
	edit := s.random.IntN(3)
	s.changeByHand(ownedFile.MatchString, func(files map[string]string, name string) {
		switch edit {
		case 0:
			files[name] += "# by hand\n"
		case 1:
			delete(files, name)
		default:
			files[path.Join(path.Dir(name), "by-hand.yaml")] = "a: b\n"
		}
	})
}

func (s *sequence) removeOwned() {
	s.changeByHand(ownedFile.MatchString, func(files map[string]string, name string) {
		maps.DeleteFunc(files, func(other, _ string) bool { return path.Dir(other) == path.Dir(name) })
	})
}

var recordFile = regexp.MustCompile(`(^|/)\.flotilla/[^/]+/t\d\.json$|(^|/)t\d/[^/]+\.md$`)

func (s *sequence) editRecord() {
	edit := s.random.IntN(3)
	s.changeByHand(recordFile.MatchString, func(files map[string]string, name string) {
		switch {
		case edit == 0:
			delete(files, name)
		case path.Ext(name) == ".md":
			files[name] = "by hand\n"
		case edit == 1:
			files[name] = strings.Replace(files[name], "{\n", "{\n  \"by_hand\": true,\n", 1)
		default:
			files[name] = strings.ReplaceAll(files[name], "\n", "\n ")
		}
	})
}
