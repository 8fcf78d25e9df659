package gitops

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"path"
	"slices"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// HistoryFilter narrows a history. The zero value is the last 100 commits.
type HistoryFilter struct {
	Host, DeploymentTarget string
	// Since excludes older commits, unless zero.
	Since time.Time
	Limit int
}

// History is ordered from the newest commit.
type History struct {
	Commits []HistoryCommit
	// Complete reports that neither Limit nor the bound of 16,384 visited commits ended the walk.
	Complete bool
}

// HistoryCommit is a commit or merge that changed owned folders. A merge without trailers has the trailers of its merged
// commits.
type HistoryCommit struct {
	Commit  string
	Author  git.Signature
	Time    time.Time // of the committer
	Subject string
	// Owners are the assignments in the trailers, or else those whose records changed with the folders; none for a change
	// by hand.
	Owners []string
	// Signed reports whether an allowed key signed the commit; nil without allowed keys.
	Signed *bool
	// Release, Source and Run are the last trailers of that name.
	Release string
	Source  folder.Source
	Run     string
	Changes []HistoryChange
}

// HistoryChange is one folder, and the owner whose record lists it.
type HistoryChange struct {
	Owner string
	folder.Change
}

const defaultHistory = 100

// ReadHistory returns the commits along first parents that changed folders in the owner's records, or of every owner at
// Owner.Path if it has no name. It fetches commits, changed trees, and records of changed hosts.
func (l *Branch) ReadHistory(ctx context.Context, owner Owner, filter HistoryFilter) (History, error) {
	return withTip(ctx, l, func() (History, error) {
		err := git.CheckPath(owner.Path)
		if owner.Name != "" {
			err = owner.check()
		}
		if err != nil {
			return History{}, err
		}
		filter.Limit = cmp.Or(max(filter.Limit, 0), defaultHistory)
		w := &historyWalk{branch: l, owner: owner, filter: filter, next: l.past.tip.Commit}
		err = w.readAll(ctx)
		return w.history, err
	})
}

type historyWalk struct {
	*pastTrees
	branch  *Branch
	owner   Owner
	filter  HistoryFilter
	next    git.Hash // the next commit; zero after the first commit of the branch
	history History
}

type step struct {
	commit        git.Hash
	before, after git.Hash // root trees
}

func (w *historyWalk) readAll(ctx context.Context) error {
	for {
		steps, isOld := w.nextSteps()
		if err := w.readSteps(ctx, steps); err != nil {
			return err
		}
		switch {
		case len(w.history.Commits) > w.filter.Limit:
			w.history.Commits = w.history.Commits[:w.filter.Limit]
			return nil
		case isOld || w.next.IsZero():
			w.history.Complete = true
			return nil
		case w.branch.past.isComplete || w.branch.past.depth >= git.LastDepth:
			return nil
		}
		if err := w.branch.deepenHistory(ctx); err != nil {
			return err
		}
	}
}

func (w *historyWalk) nextSteps() (steps []step, isOld bool) {
	for !w.next.IsZero() {
		head, ok := w.branch.past.heads[w.next]
		if !ok {
			return steps, false
		}
		if head.Time.Before(w.filter.Since) {
			return steps, true
		}
		s := step{commit: w.next, after: head.Tree}
		next := git.Hash{}
		if len(head.Parents) > 0 {
			next = head.Parents[0]
			parent, ok := w.branch.past.heads[next]
			if !ok {
				return steps, false
			}
			s.before = parent.Tree
		}
		steps, w.next = append(steps, s), next
	}
	return steps, false
}

// readSteps fetches missing trees of all steps with one request for each level.
func (w *historyWalk) readSteps(ctx context.Context, steps []step) error {
	found := make([][]HistoryChange, len(steps))
	err := w.branch.past.readPast(ctx, func(trees *pastTrees) {
		w.pastTrees = trees
		for i, s := range steps {
			if s.before != s.after {
				clear(trees.parsed) // entries of all steps together would need too much memory
				found[i] = w.findChanges(s)
			}
		}
	})
	if err != nil {
		return err
	}
	merged := w.branch.past.listMerged()
	for i, s := range steps {
		if len(found[i]) > 0 {
			w.history.Commits = append(w.history.Commits, w.newCommit(s, found[i], merged[s.commit]))
		}
	}
	return nil
}

func (w *historyWalk) newCommit(s step, changes []HistoryChange, merged []git.Hash) HistoryCommit {
	text, _ := w.branch.past.tip.CommitText(s.commit)
	commit := parseCommit(text)
	if len(commit.Owners) == 0 {
		w.addMergedTrailers(&commit, merged)
	}
	if len(commit.Owners) == 0 {
		w.addOwnersByRecords(&commit, s, changes)
	}
	commit.Commit, commit.Time, commit.Changes = s.commit.String(), w.branch.past.heads[s.commit].Time, changes
	if w.branch.signers != nil {
		signed := w.branch.signers.Verify(text)
		commit.Signed = &signed
	}
	return commit
}

func (w *historyWalk) recordIDs(root git.Hash, owner string) map[string]git.Hash {
	return listRecords(path.Join(recordsFolder, owner), func(at string, do func(git.Entry)) {
		for _, e := range w.readEntries(w.findTree(root, at)) {
			do(e)
		}
	})
}

func (w *historyWalk) readRecord(id git.Hash) map[string]folderRecord {
	if id.IsZero() {
		return nil
	}
	content, err := w.Blob(id)
	if err != nil {
		return nil
	}
	record, _ := parseRecord(content) // empty if it is not valid
	return record.DeploymentTargets
}

func (w *historyWalk) findChanges(s step) []HistoryChange {
	known := len(w.missing)
	before, after := w.findTree(s.before, w.owner.Path), w.findTree(s.after, w.owner.Path)
	if before == after || len(w.missing) > known {
		return nil
	}
	owners := map[string]bool{w.owner.Name: true}
	if w.owner.Name == "" {
		clear(owners)
		for _, root := range []git.Hash{before, after} {
			for _, e := range w.readEntries(w.findTree(root, recordsFolder)) {
				owners[e.Name] = e.IsTree() && git.CheckSegment(e.Name) == nil
			}
		}
	}
	var changes []HistoryChange
	for _, owner := range slices.Sorted(maps.Keys(owners)) {
		if owners[owner] {
			changes = append(changes, w.findOwnerChanges(owner, before, after)...)
		}
	}
	return changes
}

// findOwnerChanges compares the changed hosts of one owner. While objects are missing, it only collects them: a missing
// object would look removed.
func (w *historyWalk) findOwnerChanges(owner string, before, after git.Hash) []HistoryChange {
	known := len(w.missing)
	was, is := w.recordIDs(before, owner), w.recordIDs(after, owner)
	if len(w.missing) > known {
		return nil
	}
	hosts := maps.Clone(was)
	maps.Copy(hosts, is)
	var changed []hostChange
	for _, host := range slices.Sorted(maps.Keys(hosts)) {
		known := len(w.missing)
		c := hostChange{host: host, recordBefore: was[host], recordAfter: is[host]}
		if w.filter.Host != "" && host != w.filter.Host && !c.isOneSided() { // folders of a renamed host may have moved here
			continue
		}
		c.treeBefore, c.treeAfter = w.findTree(before, host), w.findTree(after, host)
		if len(w.missing) > known || c.recordBefore == c.recordAfter && c.treeBefore == c.treeAfter {
			continue
		}
		for _, id := range []git.Hash{c.recordBefore, c.recordAfter} {
			if !id.IsZero() && !w.Has(id) {
				w.missing = append(w.missing, id)
			}
		}
		w.readEntries(c.treeBefore)
		w.readEntries(c.treeAfter)
		changed = append(changed, c)
	}
	if len(w.missing) > 0 {
		return nil
	}
	var folders []folderChange
	for _, c := range changed {
		folders = append(folders, w.compareFolders(c)...)
	}
	var changes []HistoryChange
	for _, change := range pairMoves(folders) {
		if w.filter.Host == "" || change.Host == w.filter.Host || change.From == w.filter.Host {
			changes = append(changes, HistoryChange{Owner: owner, Change: change})
		}
	}
	return changes
}

type hostChange struct {
	host                      string
	treeBefore, treeAfter     git.Hash
	recordBefore, recordAfter git.Hash
}

func (c hostChange) isOneSided() bool { return c.recordBefore.IsZero() != c.recordAfter.IsZero() }

func (w *historyWalk) compareFolders(c hostChange) []folderChange {
	oldRecord, nowRecord := w.readRecord(c.recordBefore), w.readRecord(c.recordAfter)
	targets := maps.Collect(maps.All(oldRecord))
	maps.Copy(targets, nowRecord)
	var changes []folderChange
	for _, target := range slices.Sorted(maps.Keys(targets)) {
		if w.filter.DeploymentTarget != "" && target != w.filter.DeploymentTarget {
			continue
		}
		change := folder.Change{
			Key:    folder.Key{Host: c.host, DeploymentTarget: target},
			Before: oldRecord[target].ConfigVersion, After: nowRecord[target].ConfigVersion,
		}
		oldID, nowID := w.recordedTree(c.treeBefore, oldRecord, target), w.recordedTree(c.treeAfter, nowRecord, target)
		switch {
		case oldID == nowID, w.findTree(c.treeBefore, target) == w.findTree(c.treeAfter, target):
			continue // or only the owner changed
		case oldID.IsZero():
			change.Action, change.Before = folder.Added, ""
		case nowID.IsZero():
			change.Action, change.After = folder.Removed, ""
		default:
			change.Action = folder.Changed
		}
		changes = append(changes, folderChange{change, oldID, nowID, nowRecord[target].TreeBefore, c.isOneSided()})
	}
	return changes
}

func (w *historyWalk) recordedTree(host git.Hash, recorded map[string]folderRecord, target string) git.Hash {
	if _, ok := recorded[target]; !ok {
		return git.Hash{}
	}
	return w.findTree(host, target)
}

// listMerged returns the commits that each merge brought to the branch, newest first. One pass from the oldest merge to the
// newest finds them all.
func (l *lineage) listMerged() map[git.Hash][]git.Hash {
	var line []git.Hash
	at := l.tip.Commit
	for head, ok := l.heads[at]; ok; head, ok = l.heads[at] {
		line, at = append(line, at), git.Hash{}
		if len(head.Parents) > 0 {
			at = head.Parents[0]
		}
	}
	seen, merged := map[git.Hash]bool{}, map[git.Hash][]git.Hash{}
	for _, at := range slices.Backward(line) {
		for next := []git.Hash{at}; len(next) > 0; {
			id := next[len(next)-1]
			next = next[:len(next)-1]
			head, ok := l.heads[id]
			if !ok || seen[id] {
				continue
			}
			seen[id] = true
			next = append(next, head.Parents...)
			if id != at {
				merged[at] = append(merged[at], id)
			}
		}
		slices.SortFunc(merged[at], func(a, b git.Hash) int {
			return cmp.Or(l.heads[b].Time.Compare(l.heads[a].Time), bytes.Compare(a[:], b[:]))
		})
	}
	return merged
}

func (w *historyWalk) addMergedTrailers(commit *HistoryCommit, merged []git.Hash) {
	for _, id := range merged {
		text, _ := w.CommitText(id)
		of := parseCommit(text)
		for _, owner := range of.Owners {
			if !slices.Contains(commit.Owners, owner) {
				commit.Owners = append(commit.Owners, owner)
			}
		}
		commit.Release, commit.Run = cmp.Or(commit.Release, of.Release), cmp.Or(commit.Run, of.Run)
		commit.Source = cmp.Or(commit.Source, of.Source)
	}
	slices.Sort(commit.Owners)
}

// addOwnersByRecords attributes a commit without trailers, such as a squash, to the owners whose records have the new tree
// of a changed folder and a later time than before. A commit by hand does not update the record.
func (w *historyWalk) addOwnersByRecords(commit *HistoryCommit, s step, changes []HistoryChange) {
	clear(w.parsed)
	before, after := w.findTree(s.before, w.owner.Path), w.findTree(s.after, w.owner.Path)
	for _, change := range changes {
		is, recorded := w.readRecord(w.recordIDs(after, change.Owner)[change.Host])[change.DeploymentTarget]
		was := w.readRecord(w.recordIDs(before, change.Owner)[change.Host])[change.DeploymentTarget]
		tree := w.findTree(after, path.Join(change.Host, change.DeploymentTarget))
		if !recorded || !git.IsID(is.Tree, tree) || is.Changed <= was.Changed {
			continue
		}
		if !slices.Contains(commit.Owners, change.Owner) {
			commit.Owners = append(commit.Owners, change.Owner)
		}
		commit.Source = cmp.Or(commit.Source, is.Source)
	}
	slices.Sort(commit.Owners)
}

// folderChange is a change with the facts that identify a move to another host.
type folderChange struct {
	folder.Change
	oldTree, newTree git.Hash
	treeBefore       string
	isOneSided       bool
}

// pairMoves combines a folder that vanishes with its host and the same folder on a new host: the host was renamed.
func pairMoves(changes []folderChange) []folder.Change {
	type identity struct{ deploymentTarget, tree string }
	gone := map[identity]*folderChange{}
	for i := range changes {
		if c := &changes[i]; c.Action == folder.Removed && c.isOneSided {
			gone[identity{c.DeploymentTarget, c.oldTree.String()}] = c
		}
	}
	moved := map[folder.Key]bool{}
	for i := range changes {
		c := &changes[i]
		if c.Action != folder.Added || !c.isOneSided {
			continue
		}
		action := folder.Moved
		from := gone[identity{c.DeploymentTarget, c.newTree.String()}]
		if from == nil {
			action, from = folder.Changed, gone[identity{c.DeploymentTarget, c.treeBefore}]
		}
		if from != nil {
			c.Action, c.From, c.Before = action, from.Host, from.Before
			moved[from.Key] = true
			delete(gone, identity{c.DeploymentTarget, from.oldTree.String()})
		}
	}
	var paired []folder.Change
	for _, c := range changes {
		if !moved[c.Key] || c.Action != folder.Removed {
			paired = append(paired, c.Change)
		}
	}
	return paired
}
