package gitops

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
)

// Edit is what one owner wants the repository to hold: these hosts and folders,
// and nothing else of its own. An Edit without hosts removes everything.
type Edit struct {
	Owner Owner
	// Hosts are all hosts of the fleet by name, those without folders too.
	Hosts map[string]Host
	// Previously is what the state says was written. What is in it and not
	// wanted any more is removed even when the repository's records have lost it.
	Previously Deployed
	// Author is author and committer.
	Author git.Signature
	// Subject begins the commit message; default: "dev: 2 added, 1 changed, 1 removed".
	// It may be several paragraphs.
	Subject string
	// Release goes into the trailer Flotilla-Release; "" leaves that out.
	Release string
	// From, when not "", is a commit in the branch's history, in hex: the edit wants
	// what that has of the owner, and its Hosts are empty.
	From string
	// Keep lets go of everything instead of removing it: the folders and markers
	// stay as they are, and the owner's records go. Its Hosts are empty.
	Keep bool
	// Adopt takes over folders that another owner's records list, or that hold
	// something else and are in nobody's records: the edit's owner has them from
	// then on. Without it they are an *OwnershipError.
	Adopt bool
	// Head, when not "", is the branch that the commit goes to in place of the
	// remote's, for a pull request: the remote's tip with this edit applied. It
	// belongs to this edit alone; what others did there is taken back.
	Head string
}

// Host is one host's folder.
type Host struct {
	// Folders are the deployment targets by full name.
	Folders map[string]Folder
}

// Folder is one assignment.
type Folder struct {
	// Tree is the id that TreeID gives for the files.
	Tree string
	// Files renders the files. It is called only when the folder is written, and
	// again when a race was lost; the files must be those of Tree.
	Files func() ([]git.File, error)
	// Record is what the repository keeps about the folder.
	Record Record

	there bool // the repository has the files
}

// defaultAuthor signs when nobody is named. The domain is reserved (RFC 2606), so
// that no commit is ever somebody's by accident.
var defaultAuthor = git.Signature{Name: "Flotilla", Email: "flotilla@flotilla.invalid"}

// authorOr is the author, with the default's parts where it has none.
func authorOr(author git.Signature) git.Signature {
	author.Name, author.Email = strings.TrimSpace(author.Name), strings.TrimSpace(author.Email)
	if author.Name == "" {
		author.Name = defaultAuthor.Name
	}
	if author.Email == "" {
		author.Email = defaultAuthor.Email
	}
	return author
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// check finds what is wrong with an edit before the repository is asked.
func (e Edit) check() error {
	if err := e.Owner.check(); err != nil {
		return err
	}
	if err := e.Author.Check(); err != nil {
		return err
	}
	if strings.ContainsFunc(e.Subject, func(r rune) bool { return isControl(r) && r != '\n' && r != '\r' && r != '\t' }) {
		return errors.New("the commit message has a control character")
	}
	if strings.ContainsFunc(e.Release, isControl) {
		return errors.New("the release has a control character")
	}
	if e.From != "" {
		if err := git.CheckCommit(e.From); err != nil {
			return err
		}
		if slices.ContainsFunc(slices.Collect(maps.Values(e.Hosts)), func(h Host) bool {
			return slices.ContainsFunc(slices.Collect(maps.Values(h.Folders)), func(f Folder) bool { return !f.there })
		}) {
			return errors.New("an edit that goes back to a commit has folders of its own")
		}
	}
	if e.Keep && (len(e.Hosts) > 0 || e.From != "") {
		return errors.New("an edit that lets go of its folders wants some")
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
	for host, targets := range e.Previously {
		if err := checkHost(host); err != nil {
			return fmt.Errorf("in the state: %w", err)
		}
		for target := range targets {
			if err := git.CheckName(target); err != nil {
				return fmt.Errorf("in the state: %w", err)
			}
		}
	}
	return nil
}

func (e Edit) checkHost(host string) error {
	if err := checkHost(host); err != nil {
		return err
	}
	if err := git.CheckPath(e.Owner.marker(host)); err != nil {
		return err
	}
	targets := slices.Sorted(maps.Keys(e.Hosts[host].Folders))
	// The marker is their sibling.
	if err := checkNamesFold(fmt.Sprintf("on host %q", host), append(slices.Clone(targets), e.Owner.Name+markerSuffix)); err != nil {
		return err
	}
	for _, target := range targets {
		folder := e.Hosts[host].Folders[target]
		if err := git.CheckName(target); err != nil {
			return fmt.Errorf("host %q: %w", host, err)
		}
		if err := git.CheckPath(e.Owner.folder(host, target)); err != nil {
			return err
		}
		if _, err := git.ParseID(folder.Tree); err != nil {
			return fmt.Errorf("folder %q: %w", e.Owner.folder(host, target), err)
		}
		if folder.Files == nil && !folder.there {
			return fmt.Errorf("folder %q: has no files", e.Owner.folder(host, target))
		}
	}
	return nil
}

func checkNamesFold(where string, names []string) error {
	seen := make(map[string]string, len(names))
	for _, name := range names {
		folded := strings.ToLower(name)
		if other, ok := seen[folded]; ok {
			return fmt.Errorf("%s: names %q and %q are the same where case does not count", where, other, name)
		}
		seen[folded] = name
	}
	return nil
}

// want is the edit's folders by id.
func (e Edit) want() Deployed {
	want := make(Deployed, len(e.Hosts))
	for host, h := range e.Hosts {
		want[host] = make(map[string]string, len(h.Folders))
		for target, folder := range h.Folders {
			want[host][target] = folder.Tree
		}
	}
	return want
}

// recordFile is a record as it has to be, encoded.
type recordFile struct {
	content []byte
	id      git.Hash
}

// recordFiles are the records that the edit wants, by host.
func (e Edit) recordFiles() map[string]recordFile {
	h := git.NewHasher()
	files := make(map[string]recordFile, len(e.Hosts))
	for host, wanted := range e.Hosts {
		record := hostRecord{
			Environment:       e.Owner.Environment,
			DeploymentTargets: make(map[string]folderRecord, len(wanted.Folders)),
		}
		for target, folder := range wanted.Folders {
			record.DeploymentTargets[target] = folderRecord{Record: folder.Record, Tree: strings.ToLower(folder.Tree)}
		}
		content := record.encode()
		files[host] = recordFile{content: content, id: h.Blob(content)}
	}
	return files
}
