package gitops

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// Edit is the target state of one owner: these hosts and folders, and no others of its own.
type Edit struct {
	Owner Owner
	// FormerName is the owner's former name at the same path. The edit renames its records and markers, and changes no
	// folder.
	FormerName string
	Hosts      FolderEdits
	// Renames maps former names of hosts to present ones. Folders and records move, and the former host's folder vanishes
	// with its marker: an agent whose folder vanishes removes nothing.
	Renames folder.Renames
	// Holder is the random text of the Terraform state that has the owner from now on. "" keeps the recorded holder.
	Holder string
	// TakesOver allows writing over records of another holder, in place of an ErrOtherHolder.
	TakesOver bool
	// Written are the folders in the state. Unwanted ones may be removed even if the records have lost them.
	Written folder.Trees
	// Seen are the owner's folders as the plan saw them, if it looked. A folder to be changed with neither the seen nor the
	// wanted content is a *ChangedError. A folder that the plan saw as wanted stays, even if others changed it since.
	Seen folder.Trees
	// Remove has the only folders that the edit may remove, because the plan showed it. Other unwanted ones are an
	// ErrUnplanned.
	Remove folder.Trees
	// LeaveOthers, for a destroy, keeps unwanted folders outside Remove and hosts with another holder, in place of an
	// error.
	LeaveOthers bool
	// Records has the ids of the owner's records, from the ApplyResult that wrote Written. It saves reading unchanged
	// hosts, and repairs records changed by hand.
	Records map[string]string
	// Author is the author and committer. Default: Flotilla.
	Author git.Signature
	// Subject begins the commit message, and may have several paragraphs. Default: "dev: 2 added, 1 changed, 1 removed".
	Subject string
	// Release, Source and Run become trailers. Records of changed folders have Source, too.
	Release string
	Source  folder.Source
	Run     string
	// Abandon ends the ownership: only the owner's records are removed, unless they have another holder. Hosts must be
	// empty.
	Abandon bool
	// Adopt takes over folders of other owners, and filled folders in no record, in place of an ErrConflict.
	Adopt bool
	// Head is the branch of a pull request, which gets the commit. It belongs to this edit: changes by others are reverted.
	Head string

	// Verify checks the files of a folder before the push, if set.
	Verify func(at string, files []git.File) error
}

// FolderEdits has folders by host and full name of the deployment target. A host without folders has an empty map.
type FolderEdits map[string]map[string]FolderEdit

// Trees returns the trees of the folders that are not kept.
func (f FolderEdits) Trees() folder.Trees {
	trees := make(folder.Trees, len(f))
	for host, targets := range f {
		trees[host] = make(map[string]string, len(targets))
		for target, folder := range targets {
			if folder.Action != Keep {
				trees[host][target] = strings.ToLower(folder.Tree)
			}
		}
	}
	return trees
}

func (f FolderEdits) clone() FolderEdits {
	clone := make(FolderEdits, len(f))
	for host, targets := range f {
		clone[host] = maps.Clone(targets)
	}
	return clone
}

// FolderAction is an action on a folder.
type FolderAction string

// Actions of an edit.
const (
	Write FolderAction = ""
	// Keep leaves the folder and its record as they are, even if the folder is missing or another owner has it.
	Keep FolderAction = "keep"
	// RollBack restores the folder of the commit From, as [OwnerView.ReadFoldersAt] returns it.
	RollBack FolderAction = "roll back"
	// Relocate changes only objects that name the place of the folder, to the present place. The record stays.
	Relocate FolderAction = "relocate"
	move     FolderAction = "move"
)

// FolderEdit is one assignment.
type FolderEdit struct {
	Action FolderAction
	// Tree is git.TreeID of the files, or the tree to roll back to. Kept folders have none.
	Tree string
	// From is the commit of a rollback.
	From string
	// Files renders a written or relocated folder. It is called only for a write, and again after a lost race.
	Files func() ([]git.File, error)
	// Record describes the folder. Kept folders use existing records instead.
	Record folder.Record
}

// defaultAuthor uses a reserved domain (RFC 2606): a commit is never attributed to a person by accident.
var defaultAuthor = git.Signature{Name: "Flotilla", Email: "flotilla@flotilla.invalid"}

func withDefaultAuthor(author git.Signature) git.Signature {
	return git.Signature{
		Name: cmp.Or(strings.TrimSpace(author.Name), defaultAuthor.Name), Email: cmp.Or(strings.TrimSpace(author.Email), defaultAuthor.Email),
	}
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

func (e Edit) check() error {
	if err := cmp.Or(e.Owner.check(), e.Author.Check(), checkMessageText(e.Subject, e.Release), checkClaimTexts(e.Holder),
		folder.CheckText(string(e.Source), e.Run),
		checkFormerName("owner", e.FormerName, e.Owner.Name, git.CheckName)); err != nil {
		return err
	}
	if e.Abandon && len(e.Hosts) > 0 {
		return errors.New("an edit that gives up its folders must not want any")
	}
	if e.Head != "" {
		if err := git.CheckBranch(e.Head); err != nil {
			return err
		}
	}
	for _, host := range slices.Sorted(maps.Keys(e.Hosts)) {
		if err := e.checkHost(host); err != nil {
			return err
		}
	}
	if err := checkFolders(e.Written); err != nil {
		return fmt.Errorf("in the state: %w", err)
	}
	return nil
}

func checkFormerName(whose, former, name string, check func(string) error) error {
	if former == "" {
		return nil
	}
	if err := check(former); err != nil {
		return fmt.Errorf("the %s's former name: %w", whose, err)
	}
	if former == name {
		return fmt.Errorf("the %s's former name is %q, its own", whose, former)
	}
	return nil
}

func checkFolders(folders folder.Trees) error {
	for host, targets := range folders {
		if err := checkHost(host); err != nil {
			return err
		}
		for target := range targets {
			if err := git.CheckName(target); err != nil {
				return fmt.Errorf("host %q: %w", host, err)
			}
		}
	}
	return nil
}

func checkMessageText(subject, release string) error {
	if strings.ContainsFunc(subject, func(r rune) bool { return isControl(r) && r != '\n' && r != '\r' && r != '\t' }) {
		return errors.New("the commit message has a control character")
	}
	if strings.ContainsFunc(release, isControl) {
		return errors.New("the release has a control character")
	}
	return nil
}

func (e Edit) checkHost(host string) error {
	if err := checkHost(host); err != nil {
		return err
	}
	if err := git.CheckPath(e.Owner.markerPath(host)); err != nil {
		return err
	}
	for _, target := range slices.Sorted(maps.Keys(e.Hosts[host])) {
		folder := e.Hosts[host][target]
		if err := git.CheckName(target); err != nil {
			return fmt.Errorf("host %q: %w", host, err)
		}
		if target == e.Owner.Name+markerSuffix {
			return fmt.Errorf("host %q: the marker has the name %q; use another name", host, target)
		}
		if err := git.CheckPath(e.Owner.folderPath(host, target)); err != nil {
			return err
		}
		if err := folder.check(); err != nil {
			return fmt.Errorf("folder %q: %w", e.Owner.folderPath(host, target), err)
		}
	}
	return nil
}

func (f FolderEdit) check() error {
	switch f.Action {
	case Keep:
		return nil
	case RollBack:
		if err := git.CheckCommit(f.From); err != nil {
			return err
		}
	case Write, Relocate:
		if f.Files == nil {
			return errors.New("it has no files")
		}
	default:
		return fmt.Errorf("the action %q is unknown", string(f.Action))
	}
	_, err := git.ParseID(f.Tree)
	return err
}
