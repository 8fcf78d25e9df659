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

// branchesState is what all branches have at one time.
type branchesState struct {
	files   map[branchOf]map[string]string
	commits map[branchOf]int
	folders map[ownedFolder]string // what is in each folder, as one text
	owners  map[ownedFolder]string // the name in the records; "" for none
}

// branchOf is a branch of a repository.
type branchOf struct{ repository, branch string }

// ownedFolder is a folder of an assignment.
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
					seen.note(at, prefix, name, content)
				}
			}
		}
	}
	return seen
}

var (
	inFolder = regexp.MustCompile(`^(t\d)/(w-[a-f])/`)
	inRecord = regexp.MustCompile(`^\.flotilla/([^/]+)/(t\d)\.json$`)
)

// note finds out to which folder a file belongs, or what a record says.
func (seen *branchesState) note(at branchOf, prefix, name, content string) {
	rest := name
	if prefix != "" {
		var ok bool
		if rest, ok = strings.CutPrefix(name, prefix+"/"); !ok {
			return
		}
	}
	if found := inFolder.FindStringSubmatch(rest); found != nil {
		folder := ownedFolder{at, prefix, found[1], found[2]}
		seen.folders[folder] += name + "\x00" + content + "\x00"
	}
	if found := inRecord.FindStringSubmatch(rest); found != nil {
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

// changedBranch names a branch that is not as it was.
func (seen branchesState) changedBranch(now branchesState) string {
	for at, count := range seen.commits {
		if now.commits[at] != count || !maps.Equal(seen.files[at], now.files[at]) {
			return fmt.Sprintf("branch %q of %s", at.branch, at.repository)
		}
	}
	return ""
}

// checkForeign holds files of nobody to what they were.
func (s *sequence) checkForeign(now branchesState) {
	for at, content := range s.foreign {
		if got, ok := now.files[branchOf{at.repository, at.branch}][at.file]; !ok || got != content {
			s.t.Errorf("%s on branch %q of %s is %q now, was %q", at.file, at.branch, at.repository, got, content)
		}
	}
}

var counted = regexp.MustCompile(`: (\d+) assignments?\b`)

// checkRemovals holds each folder that is gone to what the plan showed, and to protection.
func (s *sequence) checkRemovals(p *person, before, after branchesState, plan *providertest.Plan, said providertest.Diagnostics) {
	gone := map[string][]ownedFolder{} // by the owner that had them, and its location
	for folder := range before.folders {
		if _, stays := after.folders[folder]; !stays {
			key := fmt.Sprint(folder.branchOf, folder.path, " ", before.owners[folder])
			gone[key] = append(gone[key], folder)
			s.tally.removed++
		}
	}
	for _, key := range slices.Sorted(maps.Keys(gone)) {
		folders := gone[key]
		owner := before.owners[folders[0]]
		total := 0
		for folder, name := range before.owners {
			if _, there := before.folders[folder]; there && name == owner && folder.branchOf == folders[0].branchOf &&
				folder.path == folders[0].path {
				total++
			}
		}
		if !slices.ContainsFunc(plan.Changes, func(change *providertest.Change) bool {
			of := total
			if w := p.wants[change.Address]; w != nil { // what is at the new location counts, too
				for folder, name := range before.owners {
					at := branchOf{w.repository, w.branch}
					if name == w.name && folder.branchOf == at && folder.path == w.path && (at != folders[0].branchOf || w.path != folders[0].path) {
						of++
					}
				}
			}
			return s.allows(p, change, said, owner, folders, of)
		}) {
			s.t.Errorf("%d of %d folders of %q are gone at %v %q, which no plan showed and protection allowed: %v",
				len(folders), total, owner, folders[0].branchOf, folders[0].path, folders)
			for _, change := range plan.Changes {
				s.t.Errorf("the plan: %s %s: %v", change.Action, change.Address, shownLines(change, said))
			}
		}
	}
}

// allows tells whether one change of a plan shows that the folders go, and its protection lets them.
func (s *sequence) allows(
	p *person,
	change *providertest.Change,
	said providertest.Diagnostics,
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
		for _, line := range shownLines(change, said) {
			text, removal := strings.CutPrefix(line, "- ")
			switch number := counted.FindStringSubmatch(text); {
			case !removal:
			case number != nil:
				n, _ := strconv.Atoi(number[1])
				shown += n
			default: // up to three by name
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
			had, lost := 0, 0
			for _, folder := range folders {
				if folder.host == hostName(host) {
					lost++
				}
			}
			if lost == targetCount { // every folder that a host can have
				had = lost
			}
			limits, _ := protection.(map[string]any)
			if had >= 5 && limits["emptied_hosts"] == nil && limits["allow_empty"] == nil && w != nil &&
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
		return removed <= 10 || removed*100 <= total*2*share // a move has as many at its new location
	case isShare:
		return removed == 0
	}
	return removed <= 10 || removed*100 <= total*50
}

// shownLines are the lines in which a plan says what a change does. What takes a look at a branch is in warnings, since an
// apply may find other things there: what is at a location that is new to the state, and, as that tells whether an
// assignment moves at all, what goes at the former branch or repository.
func shownLines(change *providertest.Change, said providertest.Diagnostics) []string {
	var lines []string
	known, _ := change.After["changes"].([]any)
	for _, line := range known {
		lines = append(lines, fmt.Sprint(line))
	}
	for _, diagnostic := range said {
		if diagnostic.Address == change.Address &&
			slices.Contains([]string{"Changes that are known so far", "Folders are there already"}, diagnostic.Summary) {
			lines = append(lines, strings.Split(diagnostic.Detail, "\n")...)
		}
	}
	return lines
}

// checkRenames holds what only renamed and respelt to one commit at most, in which no folder changes.
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
				return // somebody else is called so
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
		if made := after.commits[at] - count; made > 1 {
			s.t.Errorf("a rename makes %d commits on %v", made, at)
		}
	}
	if !maps.Equal(before.folders, after.folders) {
		s.t.Error("a rename changes folders")
	}
}

// writeForeign writes a file that is nobody's.
func (s *sequence) writeForeign(at spot) {
	files := maps.Clone(s.world.files(at.repository, at.branch))
	if files == nil {
		files = map[string]string{}
	}
	files[at.file] = fmt.Sprint("of somebody else, in ", at.repository, " ", at.branch, ", ", len(s.did), "\n")
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

// byHand changes a branch that has files of owners.
func (s *sequence) byHand(choose func(name string) bool, change func(files map[string]string, name string)) {
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
	s.say("    %+v", at)
	s.world.commit(at.repository, at.branch, files)
	for _, p := range s.people {
		p.lastApplied = nil
	}
}

var ownedFile = regexp.MustCompile(`(^|/)t\d/w-[a-f]/`)

func (s *sequence) editOwned() {
	what := s.random.IntN(3)
	s.byHand(ownedFile.MatchString, func(files map[string]string, name string) {
		switch what {
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
	s.byHand(ownedFile.MatchString, func(files map[string]string, name string) {
		maps.DeleteFunc(files, func(other, _ string) bool { return path.Dir(other) == path.Dir(name) })
	})
}

var recordFile = regexp.MustCompile(`(^|/)\.flotilla/[^/]+/t\d\.json$|(^|/)t\d/[^/]+\.md$`)

func (s *sequence) editRecord() {
	what := s.random.IntN(3)
	s.byHand(recordFile.MatchString, func(files map[string]string, name string) {
		switch {
		case what == 0:
			delete(files, name)
		case path.Ext(name) == ".md":
			files[name] = "by hand\n"
		case what == 1:
			files[name] = strings.Replace(files[name], "{\n", "{\n  \"by_hand\": true,\n", 1)
		default:
			files[name] = strings.ReplaceAll(files[name], "\n", "\n ")
		}
	})
}
