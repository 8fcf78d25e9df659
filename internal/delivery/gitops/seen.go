package gitops

import (
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// keepUnseen keeps folders that were changed after the plan saw them with the wanted content: it announced no write. An
// existing proposal is made anew as a whole, so it ignores Seen.
func keepUnseen(w *layout, edit Edit, proposed *layout) Edit {
	if proposed != nil {
		edit.Seen = nil
	}
	if edit.Seen == nil {
		return edit
	}
	var changed []folder.Key
	for k, wanted := range folder.All(edit.Hosts) {
		now, there := w.folderTree(edit.Owner, k)
		if wanted.Action != Keep && strings.EqualFold(edit.Seen[k.Host][k.DeploymentTarget], wanted.Tree) &&
			(!there || !git.IsID(wanted.Tree, now)) {
			changed = append(changed, k)
		}
	}
	if len(changed) == 0 {
		return edit
	}
	edit.Hosts = edit.Hosts.clone()
	for _, k := range changed {
		kept := edit.Hosts[k.Host][k.DeploymentTarget]
		kept.Action = Keep
		edit.Hosts[k.Host][k.DeploymentTarget] = kept
	}
	return edit
}

// checkSeen fails for folders to be written or removed that others changed after the plan.
func (s *staging) checkSeen() error {
	if s.edit.Seen == nil {
		return nil
	}
	var changed []folder.Key
	for k, wanted := range folder.All(s.edit.Hosts) {
		now, there := s.treeOf(k)
		isWanted := there && git.IsID(wanted.Tree, now)
		if wanted.Action != Keep && !isWanted && (there || s.edit.Seen.Has(k.Host, k.DeploymentTarget)) && !s.isSeen(k) {
			changed = append(changed, k)
		}
	}
	for k := range s.owned {
		_, wanted := s.edit.Hosts[k.Host][k.DeploymentTarget]
		// A file in place of a folder counts as well.
		if _, there := s.hostDirectory(s.edit.Owner, k.Host).Look(k.DeploymentTarget); there && !wanted && !s.staying[k] && !s.isSeen(k) {
			changed = append(changed, k)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	slices.SortFunc(changed, folder.Key.Compare)
	e := &ChangedError{}
	for _, k := range changed {
		e.Folders = append(e.Folders, ChangedFolder{Key: k, Folder: s.edit.Owner.folderPath(k.Host, k.DeploymentTarget)})
	}
	return e
}

func (s *ownerTip) isSeen(k folder.Key) bool {
	seen, was := s.edit.Seen[k.Host][k.DeploymentTarget]
	now, there := s.treeOf(k)
	if !was {
		return !there || !s.owned[k]
	}
	return there && git.IsID(seen, now)
}
