package gitops

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/wording"
)

// HistoryFilter narrows a history. The zero value is the last 100 commits.
type HistoryFilter struct {
	// Host and DeploymentTarget leave other folders out; "" is all.
	Host, DeploymentTarget string
	// Since leaves older commits out; the zero time is all.
	Since time.Time
	// Limit is how many commits are returned at most; 0 is 100.
	Limit int
}

// History is what happened to the folders of an owner, newest first.
type History struct {
	Commits []HistoryCommit
	// Complete says that there is no more: neither Limit nor the 16,384 commits
	// that are looked at ended the walk.
	Complete bool
}

// HistoryCommit is one commit of the branch that changed owned folders. A
// branch that was merged is one commit: the one that merged it. Owners, Release and
// Source of a merge that names none are those of the commits that it merged.
type HistoryCommit struct {
	Commit  string
	Author  git.Signature
	Time    time.Time // of the committer
	Subject string
	// Owners are the assignments that the trailers name, else those whose records changed
	// with the folders; none when the folders were changed by hand.
	Owners []string
	// Signed says that one of the allowed keys has signed the commit; nil without allowed keys.
	Signed *bool
	// Release is what the last trailer of that name says.
	Release string
	// Source is likewise where the changes came from; "" where no trailer says it.
	Source folder.Source
	// Run is likewise the run of a pipeline that made the commit.
	Run     string
	Changes []HistoryChange
}

// HistoryChange is one folder, and the owner whose record lists it.
type HistoryChange struct {
	Owner string
	folder.Change
}

const defaultHistory = 100

// History reads the branch back from its tip, along first parents, and returns
// the commits that added, changed or removed folders in the records of the owner;
// with no Owner.Name, of every owner at its Path. It fetches commits, the trees
// that differ from one commit to the next, and the records of hosts where
// something changed. A server that cannot give single objects sends all of the
// commits it is asked for.
//
// Errors: as of Branch.
func (c *Client) History(ctx context.Context, remote git.Remote, owner Owner, filter HistoryFilter) (History, error) {
	history, err := c.history(ctx, remote, owner, filter)
	return history, describe(remote, err)
}

func (c *Client) history(ctx context.Context, remote git.Remote, owner Owner, filter HistoryFilter) (History, error) {
	err := cmp.Or(remote.Check(), git.CheckPath(owner.Path))
	if owner.Name != "" {
		err = cmp.Or(err, owner.check())
	}
	if err != nil {
		return History{}, err
	}
	t, err := c.options.Git.Open(ctx, remote, 1)
	if err != nil {
		return History{}, err
	}
	defer t.Close()
	if t.Commit.IsZero() {
		return History{Complete: true}, nil
	}
	if filter.Limit <= 0 {
		filter.Limit = defaultHistory
	}
	w := &walk{pastTrees: pastTrees{Tip: t}, owner: owner, filter: filter, signers: c.options.AllowedSigners, next: t.Commit, commits: map[git.Hash]git.CommitHead{}}
	return w.run(ctx)
}

// walk is a history that is being read.
type walk struct {
	pastTrees
	owner   Owner
	filter  HistoryFilter
	signers *git.Verifier // nil: no commit is checked
	commits map[git.Hash]git.CommitHead
	next    git.Hash // the commit to look at next; zero after the first of all
	history History
}

// step is a commit and what was before it.
type step struct {
	commit        git.Hash
	before, after git.Hash // root trees; before is zero for the first commit
}

func (w *walk) run(ctx context.Context) (History, error) {
	for depth := git.FirstDepth; ; depth *= 4 {
		commits, complete, err := w.Past(ctx, depth)
		if err != nil {
			return History{}, err
		}
		maps.Copy(w.commits, commits)
		steps, old := w.steps()
		if err := w.read(ctx, steps); err != nil {
			return History{}, err
		}
		switch {
		case len(w.history.Commits) > w.filter.Limit:
			w.history.Commits = w.history.Commits[:w.filter.Limit]
			return w.history, nil
		case old || w.next.IsZero():
			w.history.Complete = true
			return w.history, nil
		case depth >= git.LastDepth || complete:
			return w.history, nil
		}
	}
}

// steps goes on from where it stopped, as far as commits are here; old says that
// it came to those before Since.
func (w *walk) steps() (steps []step, old bool) {
	for !w.next.IsZero() {
		head, ok := w.commits[w.next]
		if !ok {
			return steps, false
		}
		if !w.filter.Since.IsZero() && head.Time.Before(w.filter.Since) {
			return steps, true
		}
		s := step{commit: w.next, after: head.Tree}
		next := git.Hash{}
		if len(head.Parents) > 0 {
			next = head.Parents[0]
			parent, ok := w.commits[next]
			if !ok {
				return steps, false
			}
			s.before = parent.Tree
		}
		steps, w.next = append(steps, s), next
	}
	return steps, false
}

// read finds the changes of each step. What it finds missing is fetched for all
// steps together, a request for each level of trees.
func (w *walk) read(ctx context.Context, steps []step) error {
	for {
		w.missing = nil
		found := make([][]HistoryChange, len(steps))
		for i, s := range steps {
			if s.before != s.after {
				w.parsed = map[git.Hash][]git.Entry{} // those of all steps would be too many to keep
				found[i] = w.changes(s)
			}
		}
		if len(w.missing) > 0 {
			if err := w.Need(ctx, w.missing); err != nil {
				return err
			}
			continue
		}
		merged := w.merged()
		for i, s := range steps {
			if len(found[i]) > 0 {
				text, _ := w.CommitText(s.commit)
				commit := parseCommit(text)
				if len(commit.Owners) == 0 {
					w.attribute(&commit, merged[s.commit])
				}
				if len(commit.Owners) == 0 {
					w.attributeByRecords(&commit, s, found[i])
				}
				commit.Commit, commit.Time, commit.Changes = s.commit.String(), w.commits[s.commit].Time, found[i]
				if w.signers != nil {
					signed := w.signers.Verify(text)
					commit.Signed = &signed
				}
				w.history.Commits = append(w.history.Commits, commit)
			}
		}
		return nil
	}
}

// merged returns the commits that each merge brought to the branch, newest first, as far as commits are here. Each commit
// belongs to the oldest merge that has it.
func (w *walk) merged() map[git.Hash][]git.Hash {
	var line []git.Hash // first parents, newest first
	for at := w.Commit; ; {
		head, ok := w.commits[at]
		if !ok {
			break
		}
		if line = append(line, at); len(head.Parents) == 0 {
			break
		}
		at = head.Parents[0]
	}
	seen, merged := map[git.Hash]bool{}, map[git.Hash][]git.Hash{}
	for _, at := range slices.Backward(line) {
		var brought []git.Hash
		for left := []git.Hash{at}; len(left) > 0; {
			next := left[len(left)-1]
			left = left[:len(left)-1]
			head, ok := w.commits[next]
			if !ok || seen[next] {
				continue
			}
			if seen[next] = true; next != at {
				brought = append(brought, next)
			}
			left = append(left, head.Parents...)
		}
		if at != line[len(line)-1] && len(brought) > 0 { // the first one stands for all before it
			slices.SortFunc(brought, func(a, b git.Hash) int {
				return cmp.Or(w.commits[b].Time.Compare(w.commits[a].Time), bytes.Compare(a[:], b[:]))
			})
			merged[at] = brought
		}
	}
	return merged
}

// attribute gives a merge the trailers of the commits that it merged, of which the newest come first.
func (w *walk) attribute(commit *HistoryCommit, merged []git.Hash) {
	for _, id := range merged {
		text, ok := w.CommitText(id)
		if !ok {
			continue
		}
		of := parseCommit(text)
		for _, owner := range of.Owners {
			if !slices.Contains(commit.Owners, owner) {
				commit.Owners = append(commit.Owners, owner)
			}
		}
		commit.Release, commit.Source = cmp.Or(commit.Release, of.Release), cmp.Or(commit.Source, of.Source)
	}
	slices.Sort(commit.Owners)
}

// attributeByRecords gives a commit without trailers, such as a squash, the owners whose records say of a changed folder what
// it is, and that it changed later than before. A commit of a person leaves the record as it is, or reverts it.
func (w *walk) attributeByRecords(commit *HistoryCommit, s step, changes []HistoryChange) {
	w.parsed = map[git.Hash][]git.Entry{}
	before, after := w.below(s.before, w.owner.Path), w.below(s.after, w.owner.Path)
	for _, change := range changes {
		is, recorded := w.record(w.records(after, change.Owner)[change.Host])[change.DeploymentTarget]
		was := w.record(w.records(before, change.Owner)[change.Host])[change.DeploymentTarget]
		tree := w.below(after, path.Join(change.Host, change.DeploymentTarget))
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

// records are the ids of an owner's records, by host.
func (w *walk) records(root git.Hash, owner string) map[string]git.Hash {
	return recordsIn(path.Join(recordsFolder, owner), func(at string, do func(git.Entry)) {
		for _, e := range w.entries(w.below(root, at)) {
			do(e)
		}
	})
}

// note notes the records that are not here.
func (w *walk) note(ids ...git.Hash) {
	for _, id := range ids {
		if !id.IsZero() && !w.Has(id) {
			w.missing = append(w.missing, id)
		}
	}
}

// record reads a record that is here; nil where there is none.
func (w *walk) record(id git.Hash) map[string]folderRecord {
	if id.IsZero() {
		return nil
	}
	content, err := w.Blob(id)
	if err != nil {
		return nil
	}
	record, err := parseRecord(content)
	if err != nil {
		return nil
	}
	return record.DeploymentTargets
}

func (w *walk) changes(s step) []HistoryChange {
	known := len(w.missing)
	before, after := w.below(s.before, w.owner.Path), w.below(s.after, w.owner.Path)
	if before == after || len(w.missing) > known {
		return nil
	}
	owners := map[string]bool{w.owner.Name: true}
	if w.owner.Name == "" {
		clear(owners)
		for _, root := range []git.Hash{before, after} {
			for _, e := range w.entries(w.below(root, recordsFolder)) {
				owners[e.Name] = e.IsTree() && git.CheckSegment(e.Name) == nil
			}
		}
	}
	var changes []HistoryChange
	for _, owner := range slices.Sorted(maps.Keys(owners)) {
		if owners[owner] {
			changes = append(changes, w.changesOf(owner, before, after)...)
		}
	}
	return changes
}

// changesOf compares the hosts of one owner whose record or folder differs. As long
// as anything is missing, it only notes what has to be fetched, for all hosts: what
// is not here yet would seem to have been removed.
func (w *walk) changesOf(owner string, before, after git.Hash) []HistoryChange {
	known := len(w.missing)
	was, is := w.records(before, owner), w.records(after, owner)
	if len(w.missing) > known {
		return nil
	}
	hosts := maps.Clone(was)
	maps.Copy(hosts, is)
	var changed []hostChange
	for _, host := range slices.Sorted(maps.Keys(hosts)) {
		known := len(w.missing)
		c := hostChange{host: host, was: was[host], is: is[host]}
		if w.filter.Host != "" && host != w.filter.Host && !c.comesOrGoes() { // else its folders may be those of the other host
			continue
		}
		c.old, c.now = w.below(before, host), w.below(after, host)
		if len(w.missing) > known || c.was == c.is && c.old == c.now {
			continue
		}
		w.note(c.was, c.is)
		w.entries(c.old)
		w.entries(c.now)
		changed = append(changed, c)
	}
	if len(w.missing) > 0 {
		return nil
	}
	var folders []folderChange
	for _, c := range changed {
		folders = append(folders, w.folders(c)...)
	}
	var changes []HistoryChange
	for _, change := range pairMoves(folders) {
		if w.filter.Host == "" || change.Host == w.filter.Host || change.From == w.filter.Host {
			changes = append(changes, HistoryChange{Owner: owner, Change: change})
		}
	}
	return changes
}

// hostChange is a host whose record or folder differs: the trees of the folder and
// the ids of the record, before and after.
type hostChange struct {
	host     string
	old, now git.Hash
	was, is  git.Hash
}

// comesOrGoes reports whether the owner has the host on one side alone.
func (c hostChange) comesOrGoes() bool { return c.was.IsZero() != c.is.IsZero() }

// folderChange is a change with what tells a folder that moves to another host.
type folderChange struct {
	folder.Change
	old, now    git.Hash // trees; zero for none
	treeBefore  string   // in the record after it
	comesOrGoes bool     // with its host
}

// pairMoves makes one change of a folder that goes with its host, and the same one that comes with another host: the host has
// another name.
func pairMoves(changes []folderChange) []folder.Change {
	type identity struct{ deploymentTarget, tree string }
	gone := map[identity]*folderChange{}
	for i := range changes {
		if c := &changes[i]; c.Action == folder.Removed && c.comesOrGoes {
			gone[identity{c.DeploymentTarget, c.old.String()}] = c
		}
	}
	moved := map[folder.Key]bool{}
	for i := range changes {
		c := &changes[i]
		if c.Action != folder.Added || !c.comesOrGoes {
			continue
		}
		action := folder.Moved
		from := gone[identity{c.DeploymentTarget, c.now.String()}]
		if from == nil {
			action, from = folder.Changed, gone[identity{c.DeploymentTarget, c.treeBefore}]
		}
		if from != nil {
			c.Action, c.From, c.Before = action, from.Host, from.Before
			moved[from.Key] = true
			delete(gone, identity{c.DeploymentTarget, from.old.String()})
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

// folders compares the folders that the records of a host list.
func (w *walk) folders(c hostChange) []folderChange {
	oldRecord, nowRecord := w.record(c.was), w.record(c.is)
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
		oldID, nowID := w.folder(c.old, oldRecord, target), w.folder(c.now, nowRecord, target)
		switch {
		case oldID == nowID, w.below(c.old, target) == w.below(c.now, target):
			continue // or only its owner is another
		case oldID.IsZero():
			change.Action, change.Before = folder.Added, ""
		case nowID.IsZero():
			change.Action, change.After = folder.Removed, ""
		default:
			change.Action = folder.Changed
		}
		changes = append(changes, folderChange{change, oldID, nowID, nowRecord[target].TreeBefore, c.comesOrGoes()})
	}
	return changes
}

// folder is the tree of a folder that is recorded; zero when it is not, or gone.
func (w *walk) folder(host git.Hash, recorded map[string]folderRecord, target string) git.Hash {
	if _, ok := recorded[target]; !ok {
		return git.Hash{}
	}
	return w.below(host, target)
}

// parseCommit reads what a commit says, but its time, as far as it can be read.
func parseCommit(content []byte) HistoryCommit {
	header, message, _ := bytes.Cut(content, []byte("\n\n"))
	var c HistoryCommit
	for line := range strings.Lines(string(header)) {
		line = strings.TrimSuffix(line, "\n")
		if by, ok := strings.CutPrefix(line, "author "); ok {
			c.Author, _ = git.ParseSignature(wording.Visible(by))
		}
	}
	text := wording.Visible(strings.TrimSpace(string(message))) // anybody may have written it
	c.Subject, _, _ = strings.Cut(text, "\n")
	if c.readTrailers(text[strings.LastIndex(text, "\n\n")+1:]); len(c.Owners) == 0 {
		c.readTrailers(text) // a squash has the messages of its commits within its own
	}
	return c
}

// readTrailers reads the trailers of Flotilla among the lines of a message.
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
