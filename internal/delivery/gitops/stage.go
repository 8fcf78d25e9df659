package gitops

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wait"
)

// stageEdit computes the change of an edit at a tip, without writing. proposed is the tip of the pull request's branch, or
// nil.
func stageEdit(ctx context.Context, w *layout, edit Edit, now time.Time, proposed *layout) (*change, error) {
	tip, err := openOwnerTip(ctx, w, edit, proposed)
	if err != nil {
		return nil, err
	}
	s := &staging{
		ownerTip: tip, now: now.UTC().Format(time.RFC3339), staying: map[folder.Key]bool{},
		change: &change{edit: tip.edit, at: now.UTC(), atTip: tip.atTip, records: map[string]git.Hash{}},
	}
	if err := s.ownership().checkPathsFree(s.want, s.isOwn); err != nil {
		return nil, err
	}
	if err := s.checkHolders(ctx, proposed); err != nil {
		return nil, err
	}
	if err := s.readOwnRecords(ctx); err != nil {
		return nil, err
	}
	if edit.Abandon {
		s.stageAbandon()
		s.change.summarize()
		return s.change, nil
	}
	if err := (&ownershipCheck{s}).checkFolders(ctx); err != nil {
		return nil, err
	}
	if err := s.checkSeen(); err != nil {
		return nil, err
	}
	hosts := &hostStaging{staging: s, marker: git.NewHasher().Blob(s.edit.Owner.markerText())}
	if err := hosts.readProposed(ctx, proposed); err != nil {
		return nil, err
	}
	hosts.stageAll() // first: records are packed before folders, and then need no memory
	s.stageFolders()
	if err := s.checkVanishes(); err != nil {
		return nil, err
	}
	for _, file := range s.change.put {
		if len(file.content) > maxRecord {
			return nil, fmt.Errorf("the record %q would be longer than %d MiB: the host has too many folders", file.path, maxRecord>>20)
		}
	}
	slices.SortFunc(s.change.folders, func(a, b folder.Change) int { return a.Compare(b.Key) })
	s.change.summarize()
	return s.change, nil
}

func (s *staging) checkHolders(ctx context.Context, proposed *layout) error {
	if s.edit.LeaveOthers || s.edit.Abandon {
		return s.skipHeldHosts(ctx, proposed)
	}
	return s.checkHolder(ctx, proposed)
}

type staging struct {
	*ownerTip
	now     string // as in records
	change  *change
	staying map[folder.Key]bool // folders that are neither wanted nor removed
}

func (s *staging) stageAbandon() {
	remove := func(owner Owner, records map[string]git.Hash) {
		for _, host := range slices.Sorted(maps.Keys(records)) {
			s.change.hosts = append(s.change.hosts, host)
			s.change.remove = append(s.change.remove, owner.RecordPath(host))
		}
	}
	remove(s.edit.Owner, s.atTip)
	remove(s.formerOwner(), s.formerAtTip)
	for k := range s.owned {
		if _, ok := s.treeOf(k); ok {
			s.change.abandoned = append(s.change.abandoned, k)
		}
	}
	slices.SortFunc(s.change.abandoned, folder.Key.Compare)
}

func (s *staging) findUnplanned() []folder.Key {
	var unplanned []folder.Key
	for k := range s.owned {
		_, wanted := s.edit.Hosts[k.Host][k.DeploymentTarget]
		_, planned := s.edit.Remove[k.Host][k.DeploymentTarget]
		if _, there := s.treeOf(k); !there || wanted || planned || s.movesToNewName(k) {
			continue
		}
		if s.edit.LeaveOthers {
			s.staying[k] = true
			continue
		}
		unplanned = append(unplanned, k)
	}
	slices.SortFunc(unplanned, folder.Key.Compare)
	return unplanned
}

func (s *staging) isUntouched(k folder.Key) bool {
	return s.staying[k] || s.edit.Hosts[k.Host][k.DeploymentTarget].Action == Keep
}

func (s *staging) stageFolders() {
	for host := range s.edit.Hosts {
		if at := s.findReplacement(s.edit.Owner, host); at != "" && s.isOwn(host) {
			s.change.remove = append(s.change.remove, at)
		}
	}
	for k, wanted := range folder.All(s.edit.Hosts) {
		if wanted.Action != Keep && !s.skipped[k.Host] {
			s.stageFolder(k, wanted)
		}
	}
	moved := map[folder.Key]bool{}
	for _, change := range s.change.folders {
		moved[change.Origin()] = true
	}
	for k := range s.owned {
		if _, ok := s.edit.Hosts[k.Host][k.DeploymentTarget]; ok || s.staying[k] {
			continue
		}
		if _, ok := s.hostDirectory(s.edit.Owner, k.Host).Look(k.DeploymentTarget); ok {
			if !moved[k] {
				s.addChange(folder.Change{Key: k, Action: folder.Removed})
			}
			s.change.remove = append(s.change.remove, s.edit.Owner.folderPath(k.Host, k.DeploymentTarget))
		}
	}
}

func (s *staging) stageFolder(k folder.Key, wanted FolderEdit) {
	e, ok := s.hostDirectory(s.edit.Owner, k.Host).Look(k.DeploymentTarget)
	id, _ := git.ParseID(wanted.Tree) // Edit.check has parsed it
	change := folder.Change{Key: k, Action: folder.Changed}
	switch {
	case ok && e.IsTree() && e.ID == id:
		return
	case ok:
	default:
		change.Action = folder.Added
		if former, tree, moves := s.movesFrom(k); moves {
			if change.From, change.Action = former, folder.Changed; tree == id {
				change.Action = folder.Moved
			}
		}
	}
	s.addChange(change)
	s.change.put = append(s.change.put, putFile{
		path: s.edit.Owner.folderPath(k.Host, k.DeploymentTarget), id: id, isFolder: true, files: wanted.Files, exists: wanted.Files == nil,
	})
}

func (s *staging) addChange(change folder.Change) {
	prior, _ := s.priorRecord(change.Key)
	change.After = s.edit.Hosts[change.Host][change.DeploymentTarget].Record.ConfigVersion
	if change.Action != folder.Added {
		change.Before = prior.ConfigVersion
	}
	if change.Action == folder.Moved {
		change.After = change.Before
	}
	if tree, there := s.treeOf(change.Origin()); there {
		change.Was = tree.String()
	}
	s.change.folders = append(s.change.folders, change)
}

// race measures the competition with other writers, and sets the waits.
//
//   - The first attempt does not wait.
//   - A late attempt is followed by a random wait of at most one and a half times its duration. Each commit leaves one
//     competitor less, so the limit does not grow by itself.
//   - After five lost pushes, a push waits until the branch has not moved for some time. A lost push costs the server and
//     all writers as much as a successful one.
//
// All waits are multiples of times measured with this server: no fixed wait suits fast and slow ones.
// race_simulation_internal_test.go holds the figures.
type race struct {
	began      time.Time
	pushed     time.Duration
	moved      int // a new tip before the push
	lost       int // a new tip at the push
	unanswered int // consecutive invalid answers
}

const (
	// maxMoves bounds how often others may move the branch first. Contexts with a deadline end sooner.
	maxMoves      = 1000
	maxUnanswered = 4
	firstWait     = 50 * time.Millisecond
	lastWait      = 15 * time.Second
	listenAfter   = 5
	// longestPush caps the measured push, since concurrent pushes take longer than later ones.
	longestPush = 2 * time.Second
)

func (r *race) waitLimit(took time.Duration) time.Duration {
	if r.unanswered > 0 {
		return min(max(firstWait, took)<<(r.unanswered-1), lastWait)
	}
	return min(took*3/2, lastWait)
}

// silenceLimits returns how long the branch must not have moved before the next push, and the limit of a random wait
// beyond.
func (r *race) silenceLimits(took time.Duration) (least, more time.Duration) {
	if r.lost < listenAfter {
		return 0, 0
	}
	took = min(took+min(r.pushed, longestPush), lastWait)
	return took / 3, took * 2 / 3
}

func (a *applyLoop) waitForSilence(ctx context.Context) error {
	least, more := a.race.silenceLimits(time.Since(a.race.began))
	if more == 0 {
		return nil
	}
	return a.sleep(ctx, "waits until the branch has not moved for a while", least, more)
}

// sleep waits for least and a random part of more, so that processes that collided do not collide again.
func (a *applyLoop) sleep(ctx context.Context, why string, least, more time.Duration) error {
	d := least + rand.N(more+1)
	a.client.options.Git.Log(ctx, a.remote, why, map[string]any{
		"wait": d, "moved": a.race.moved, "lost_pushes": a.race.lost, "unanswered": a.race.unanswered,
	})
	return wait.For(ctx, d)
}

func (a *applyLoop) countOvertaken(pushed bool) error {
	a.race.unanswered = 0
	if pushed {
		a.race.lost++
	} else {
		a.race.moved++
	}
	if times := a.race.lost + a.race.moved; times >= maxMoves {
		return fmt.Errorf(
			"%w: others moved branch %q %d times, each time before this commit was pushed; apply again when there are fewer writers",
			ErrRace,
			a.targetBranch(),
			times,
		)
	}
	return nil
}

// push moves the branch from old to the commit, and finds out whether the server applied it.
func (a *applyLoop) push(ctx context.Context, base, old, commit git.Hash, pack *git.Pack, c *change) (done bool, err error) {
	if err := a.waitForSilence(ctx); err != nil {
		return false, err
	}
	pushed, err := a.client.options.Git.Push(ctx, a.remote, a.targetBranch(), old, commit, pack)
	if pushed.Sent {
		a.race.pushed = pushed.Took
		a.pushes++
	}
	if errors.Is(err, git.ErrUnknown) || pushed.MayHaveApplied() {
		a.unconfirmed = c
	}
	switch {
	case err != nil:
		return false, err
	case pushed.Moved:
		return false, a.countOvertaken(pushed.Sent)
	case pushed.Unanswered != nil:
		if a.race.unanswered++; a.race.unanswered >= maxUnanswered {
			return false, fmt.Errorf("%w (%d times)", pushed.Unanswered, a.race.unanswered)
		}
		return false, nil
	}
	if a.edit.Head != "" {
		a.setResult(base, commit, c, c)
	} else {
		a.setResult(commit, git.Hash{}, c, nil)
	}
	return true, nil
}
