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

// Edit is what one owner wants the repository to hold: these hosts and folders,
// and nothing else of its own. An Edit without hosts removes everything.
type Edit struct {
	Owner Owner
	// FormerName, when not "", is the name that the owner had at the same path. What
	// is in its records is the owner's own, and its records and markers become the
	// owner's, in the same commit. No folder changes for that.
	FormerName string
	// Hosts are all hosts of the fleet, those without folders too.
	Hosts FolderEdits
	// Renames are hosts that had other names before. What the owner has under a former
	// name goes, and its records say under the present name what they said; a folder
	// that is kept is what it was under the former name. The host's folder vanishes
	// with its marker: an agent whose folder vanishes removes nothing.
	Renames folder.Renames
	// FormerHosts are the names that hosts had before earlier edits: a commit that folders go
	// back to may have these.
	FormerHosts folder.Renames
	// Holder is who has the owner from then on: a random text of the Terraform state,
	// which the records say. "" leaves what they say.
	Holder string
	// TakesOver lets the edit write where records have another holder. Without it, that is an ErrHeld.
	TakesOver bool
	// Written is what the state says was written. What is in it and not wanted
	// any more may be removed even when the repository's records have lost it.
	Written folder.Trees
	// Seen are the owner's folders as the plan saw them, with their trees; nil where
	// it did not look. With it, a folder that is to be written or removed, and is
	// neither what the plan saw nor as wanted, is a *ChangedError, and one that the
	// plan saw as wanted stays as it is, whatever others made of it since.
	Seen folder.Trees
	// Remove are the only folders that the edit may remove: those that the plan
	// showed. The trees in it mean nothing. Others that are the owner's and that are
	// not wanted are an ErrUnplanned, and nothing is written.
	Remove folder.Trees
	// LeaveOthers lets folders that are the owner's, and neither wanted nor in
	// Remove, stay with their records, in place of an ErrUnplanned. It is for a
	// destroy. Then hosts whose records have another holder stay as they are.
	LeaveOthers bool
	// Records are the ids of the owner's records by host, as the state knows them:
	// the ApplyResult.Records of the apply that wrote Previously. With them, hosts on
	// which nothing changed need not be read, and records that somebody changed by
	// hand are repaired. A host that is left out is read.
	Records map[string]string
	// Author is author and committer.
	Author git.Signature
	// Subject begins the commit message; default: "dev: 2 added, 1 changed, 1 removed".
	// It may be several paragraphs.
	Subject string
	// Release goes into the trailer Flotilla-Release; "" leaves that out.
	Release string
	// Source goes into the trailer Flotilla-Source, and into the records of folders that change; "" leaves that out.
	Source folder.Source
	// Run goes into the trailer Flotilla-Run; "" leaves that out.
	Run string
	// Abandon ends the ownership instead of removing folders: the folders and markers
	// stay as they are, and the owner's records are removed, but for those of another
	// holder. Its Hosts are empty.
	Abandon bool
	// Adopt takes over folders that another owner's records list, or that hold
	// something else and are in no record: they belong to the edit's owner from
	// then on. Without it they are an ErrConflict.
	Adopt bool
	// Head, when not "", is the branch that the commit goes to in place of the
	// remote's, for a pull request: the remote's tip with this edit applied. It
	// belongs to this edit alone; changes by others on it are reverted.
	Head string

	// Verify finds what is wrong with files that a folder gets at a path of the
	// repository, before anything is pushed; nil accepts all.
	Verify func(at string, files []git.File) error

	claim *ClaimEdit // nil where the edit is of an owner
}

// FolderEdits are those of hosts, by host and by the full name of the deployment target. A host without folders is there, with none.
type FolderEdits map[string]map[string]FolderEdit

// Trees are the trees of those that are not kept.
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

// FolderAction is what an edit does with a folder.
type FolderAction string

// The actions.
const (
	// Write makes the folder what Folder.Tree and Folder.Files say.
	Write FolderAction = ""
	// Keep leaves the folder and its record as the tip has them, also when it has
	// none, and also when another owner has it.
	Keep FolderAction = "keep"
	// RollBack makes the folder what it was in the commit Folder.From.
	RollBack FolderAction = "roll back"
	// Relocate leaves the folder as it is, but for objects that name its place: Tree
	// and Files have them at the present place of the folder. Its record stays.
	Relocate FolderAction = "relocate"
	// move makes the folder what it is under the former name of its host.
	move FolderAction = "move"
)

// FolderEdit is one assignment.
type FolderEdit struct {
	Action FolderAction
	// Tree is the id that git.TreeID gives for the files, or the tree that the
	// folder goes back to. It means nothing for a folder that is kept.
	Tree string
	// From is the commit in the branch's history, in hex, in which the folder is
	// Tree, for one that goes back.
	From string
	// FromTree is what the folder is in From, for one that goes back and has objects
	// that name its place: Tree and Files have them at its present place. "" is Tree.
	FromTree string
	// Files renders the files, for one that is written or relocated. It is called only
	// when that happens, and again when a race was lost; the files must be those of Tree.
	Files func() ([]git.File, error)
	// Record is what the repository keeps about the folder. One that goes back gets
	// what the commit says, if that says anything, and one that is kept what is
	// recorded, unless that was lost.
	Record folder.Record
}

// defaultAuthor is used when no author is given. The domain is reserved (RFC
// 2606), so that a commit is never attributed to a person by accident.
var defaultAuthor = git.Signature{Name: "Flotilla", Email: "flotilla@flotilla.invalid"}

// authorOr is the author, with the default's parts where it has none.
func withDefaultAuthor(author git.Signature) git.Signature {
	return git.Signature{
		Name: cmp.Or(strings.TrimSpace(author.Name), defaultAuthor.Name), Email: cmp.Or(strings.TrimSpace(author.Email), defaultAuthor.Email),
	}
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// check finds what is wrong with an edit before the repository is asked.
func (e Edit) check() error {
	if err := cmp.Or(
		e.Owner.check(), e.Author.Check(), checkMessageText(e.Subject, e.Release), checkClaimTexts(e.Holder), folder.CheckText(string(e.Source), e.Run),
		checkFormerName("owner", e.FormerName, e.Owner.Name, git.CheckName),
	); err != nil {
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
	hosts := slices.Sorted(maps.Keys(e.Hosts))
	if err := checkNamesFold("hosts", hosts); err != nil {
		return err
	}
	for _, host := range hosts {
		if err := e.checkHost(host); err != nil {
			return err
		}
	}
	if err := checkFolders(e.Written); err != nil {
		return fmt.Errorf("in the state: %w", err)
	}
	return nil
}

// checkFormer finds what is wrong with the name that an owner or a claim had before; "" is none.
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

// checkFolders finds names that cannot be those of folders.
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

// checkText finds what cannot be in a commit message.
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
	targets := slices.Sorted(maps.Keys(e.Hosts[host]))
	// The marker is their sibling.
	if err := checkNamesFold(fmt.Sprintf("on host %q", host), append(slices.Clone(targets), e.Owner.Name+markerSuffix)); err != nil {
		return err
	}
	for _, target := range targets {
		folder := e.Hosts[host][target]
		if err := git.CheckName(target); err != nil {
			return fmt.Errorf("host %q: %w", host, err)
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

func checkNamesFold(where string, names []string) error {
	seen := make(map[string]string, len(names))
	for _, name := range names {
		folded := strings.ToLower(name)
		if other, ok := seen[folded]; ok {
			return fmt.Errorf("%s: names %q and %q are the same on a file system that ignores case; rename one", where, other, name)
		}
		seen[folded] = name
	}
	return nil
}
