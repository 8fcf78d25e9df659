package gitops

import (
	"bytes"
	"cmp"
	"context"
	"path"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

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

// parseCommit skips malformed parts.
func parseCommit(content []byte) HistoryCommit {
	header, message, _ := bytes.Cut(content, []byte("\n\n"))
	var c HistoryCommit
	for line := range strings.Lines(string(header)) {
		line = strings.TrimSuffix(line, "\n")
		if by, ok := strings.CutPrefix(line, "author "); ok {
			c.Author, _ = git.ParseSignature(wording.Visible(by))
		}
	}
	text := wording.Visible(strings.TrimSpace(string(message))) // anybody with push access may have written it
	c.Subject, _, _ = strings.Cut(text, "\n")
	if c.readTrailers(text[strings.LastIndex(text, "\n\n")+1:]); len(c.Owners) == 0 {
		c.readTrailers(text) // a squash contains the messages of its commits
	}
	return c
}

func (c *HistoryCommit) readTrailers(text string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if owner, ok := strings.CutPrefix(line, "Flotilla-Assignment: "); ok && !slices.Contains(c.Owners, owner) {
			c.Owners = append(c.Owners, owner)
		}
		if release, ok := strings.CutPrefix(line, "Flotilla-Release: "); ok {
			c.Release = release
		}
		if source, ok := strings.CutPrefix(line, "Flotilla-Source: "); ok {
			c.Source = folder.ParseSource(source)
		}
		if run, ok := strings.CutPrefix(line, "Flotilla-Run: "); ok && folder.CheckText(run) == nil {
			c.Run = run
		}
	}
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

// pastTrees reads trees of several commits, and collects missing ones to fetch with one request.
type pastTrees struct {
	*git.Tip
	missing []git.Hash
	parsed  map[git.Hash][]git.Entry
}

// readPast calls read until all objects that it misses are fetched, with one request each time.
func (l *lineage) readPast(ctx context.Context, read func(*pastTrees)) error {
	trees := &pastTrees{Tip: l.tip, parsed: map[git.Hash][]git.Entry{}}
	for {
		if read(trees); len(trees.missing) == 0 {
			return nil
		}
		if err := l.tip.NeedPast(ctx, trees.missing, max(l.depth, git.FirstDepth)); err != nil {
			return err
		}
		trees.missing = nil
	}
}

func (p *pastTrees) readEntries(id git.Hash) []git.Entry {
	if id.IsZero() || id == git.EmptyTree {
		return nil
	}
	if entries, ok := p.parsed[id]; ok {
		return entries
	}
	if !p.Has(id) {
		p.missing = append(p.missing, id)
		return nil
	}
	entries, err := p.Entries(id)
	if err != nil {
		return nil // malformed, so without folders of ours
	}
	p.parsed[id] = entries
	return entries
}

func (p *pastTrees) findTree(id git.Hash, at string) git.Hash {
	for segment := range strings.SplitSeq(at, "/") {
		if segment == "" {
			continue
		}
		e := git.Search(p.readEntries(id), segment, true)
		if e == nil {
			return git.Hash{}
		}
		id = e.ID
	}
	return id
}
