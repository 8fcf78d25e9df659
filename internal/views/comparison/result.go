package comparison

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/changes"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Result is a comparison.
type Result struct {
	Left  Seen `json:"left"`
	Right Seen `json:"right"`
	Counts
	// Targets lists the differing ones by name.
	Targets     []Target `json:"deployment_targets"`
	MoreTargets int      `json:"more_deployment_targets,omitempty"`
	// Notes has sentences about missing parts.
	Notes    []string `json:"notes,omitempty"`
	Unpaired []string `json:"-"`
}

// Seen describes one side.
type Seen struct {
	Name        string `json:"name"` // of the owner
	Branch      string `json:"branch"`
	Path        string `json:"path,omitempty"`
	Commit      string `json:"commit,omitempty"` // full id; "" without a branch
	Written     bool   `json:"written"`
	Hosts       int    `json:"hosts"`
	Assignments int    `json:"assignments"`
}

// Bounds limits a result.
type Bounds struct {
	Targets, Hosts, Keys, Values int // of each list
	Runes                        int // of a value
	ShowValues                   bool
}

// Within returns the result within bounds, with the number of omitted parts.
func (r *Result) Within(b Bounds) *Result {
	bounded := *r
	bounded.Targets, bounded.MoreTargets = first(r.Targets, b.Targets, r.MoreTargets)
	for i := range bounded.Targets {
		t := &bounded.Targets[i]
		t.Left, t.Right = t.Left.within(b), t.Right.within(b)
		t.Keys, t.MoreKeys = first(t.Keys, b.Keys, t.MoreKeys)
		for j := range t.Keys {
			k := &t.Keys[j]
			if !b.ShowValues {
				k.Left, k.Right, k.More = nil, nil, 0
				continue
			}
			k.Left, k.More = first(k.Left, b.Values, k.More)
			k.Right, k.More = first(k.Right, b.Values, k.More)
			for _, texts := range [][]string{k.Left, k.Right} {
				for at := range texts {
					texts[at] = wording.CutRunes(texts[at], b.Runes)
				}
			}
		}
	}
	return &bounded
}

// WithoutValues removes the values of keys.
func (r *Result) WithoutValues() *Result {
	return r.Within(Bounds{Targets: math.MaxInt, Hosts: math.MaxInt, Keys: math.MaxInt})
}

func (p Part) within(b Bounds) Part {
	p.Versions, _ = first(p.Versions, b.Hosts, 0)
	for i := range p.Versions {
		v := &p.Versions[i]
		v.Hosts, v.MoreHosts = first(v.Hosts, b.Hosts, v.MoreHosts)
	}
	p.OnlyHosts, p.MoreHosts = first(p.OnlyHosts, b.Hosts, p.MoreHosts)
	p.OnlyPolicies, _ = first(p.OnlyPolicies, b.Hosts, 0)
	return p
}

func first[T any](list []T, most, more int) ([]T, int) {
	kept := min(len(list), most)
	return append([]T(nil), list[:kept]...), more + len(list) - kept
}

const (
	format      = "1"
	maxDocument = 128 << 10
)

type document struct {
	Format *string `json:"format"`
	*Result
}

// Marshal returns JSON of at most 128 KiB. It omits keys first, then deployment targets.
func (r *Result) Marshal(showValues bool) ([]byte, error) {
	b := Bounds{Targets: 200, Hosts: 20, Keys: 50, Values: 3, Runes: 200, ShowValues: showValues}
	for {
		text, err := json.Marshal(document{new(format), r.Within(b)})
		if err != nil || len(text) <= maxDocument || b.Targets == 0 {
			return text, err
		}
		if b.Keys > 5 {
			b.Keys, b.Runes = b.Keys/2, b.Runes/2
		} else {
			b.Targets /= 2
		}
	}
}

// Parse parses the JSON of Marshal.
func Parse(text []byte) (*Result, error) {
	var err error
	d := document{Result: &Result{}}
	if len(text) > maxDocument {
		err = fmt.Errorf("it is longer than %d KiB", maxDocument>>10)
	} else {
		err = observe.DecodeDocument(text, &d, &d.Format, format)
	}
	if err != nil {
		return nil, fmt.Errorf("the comparison is not what flotilla_comparison gives: %w", err)
	}
	return d.Result, nil
}

// Repository reads GitOps repositories. A delivery.Service implements it.
type Repository interface {
	ReadOwner(ctx context.Context, owner delivery.Owner, wanted folder.Trees) (gitops.OwnerSnapshot, error)
	ReadOwnerAt(ctx context.Context, owner delivery.Owner, commit string) (gitops.OwnerSnapshot, error)
	ListOwners(ctx context.Context, owner delivery.Owner) ([]string, error)
	ReadFilesNamed(ctx context.Context, owner delivery.Owner, folders folder.Trees,
		wanted func(name string) bool) (map[folder.Key][]folder.File, error)
}

// Point is an owner at a commit of its branch, or now.
type Point struct {
	Owner  delivery.Owner
	Commit string // full id; "" means now
}

// ErrOwner reports that a branch has only other owners.
var ErrOwner = errors.New("the branch has no such assignment")

// SideError is an error of one side.
type SideError struct {
	Right bool
	Err   error
}

func (e *SideError) Error() string { return e.Err.Error() }

func (e *SideError) Unwrap() error { return e.Err }

// MaxFolders limits the folders whose configuration is read.
const MaxFolders = 5000

// Read compares two owners, or one owner at two commits. It reads records, and files where values differ: of one folder for each
// version of the configuration. A side without commits is empty, with a note.
//
// Errors: a *SideError with ErrOwner or git.ErrCommit, or an error of the repository.
func Read(ctx context.Context, repository Repository, left, right Point, pairs Pairs) (*Result, error) {
	in := Input{
		Pairs:  pairs,
		Values: map[string]Values{},
		Files:  left.Owner.Location == right.Owner.Location && left.Owner.Name == right.Owner.Name,
	}
	result := &Result{}
	for _, side := range []struct {
		name    string
		of      Point
		isRight bool
		into    *Side
		seen    *Seen
	}{{"left", left, false, &in.Left, &result.Left}, {"right", right, true, &in.Right, &result.Right}} {
		written, err := written(ctx, repository, side.of)
		if err != nil {
			return nil, &SideError{side.isRight, err}
		}
		*side.into = sideOf(written)
		*side.seen = seenOf(side.of, written, *side.into)
		if !side.seen.Written {
			result.Notes = append(result.Notes, "The "+side.name+" side is not written yet: "+whyNot(side.of, written)+".")
		}
		if len(written.Unreadable) > 0 {
			result.Notes = append(result.Notes, fmt.Sprintf("The %s side lacks what these records say, which cannot be read: %s.", side.name,
				wording.List(written.Unreadable, wording.Named)))
		}
	}
	if result.Left.Written && result.Right.Written {
		result.Unpaired = in.unpaired()
	}
	cut, err := in.read(ctx, repository, left.Owner, right.Owner)
	if err != nil {
		return nil, err
	}
	result.Targets, result.Counts = Compare(in)
	if result.Unread > 0 {
		why := "their folders have no file of configuration that can be read"
		if cut {
			why = fmt.Sprintf("files of %d folders were read, and no more are", MaxFolders)
		}
		result.Notes = append(result.Notes, fmt.Sprintf("It is unknown which values differ in %s: %s.",
			wording.Count(result.Unread, "deployment target", "deployment targets"), why))
	}
	return result, nil
}

func written(ctx context.Context, repository Repository, of Point) (found gitops.OwnerSnapshot, err error) {
	if of.Commit == "" {
		found, err = repository.ReadOwner(ctx, of.Owner, nil)
	} else {
		found, err = repository.ReadOwnerAt(ctx, of.Owner, of.Commit)
	}
	if err != nil || len(found.Trees)+len(found.Unreadable) > 0 {
		return found, err
	}
	owners, err := repository.ListOwners(ctx, of.Owner)
	if err == nil && len(owners) > 0 && !slices.Contains(owners, of.Owner.Name) {
		err = fmt.Errorf("%w: branch %q has no %q at path %q, but %s", ErrOwner, of.Owner.Location.Branch, of.Owner.Name, of.Owner.Location.Path,
			wording.List(wording.Quoted(owners), wording.Named))
	}
	return found, err
}

func whyNot(of Point, found gitops.OwnerSnapshot) string {
	switch at := of.Owner.Location; {
	case found.Tip == "":
		return fmt.Sprintf("branch %q does not exist", at.Branch)
	case of.Commit != "":
		return fmt.Sprintf("commit %.12s has nothing of assignment %q", of.Commit, of.Owner.Name)
	default:
		return fmt.Sprintf("branch %q has nothing of assignment %q at path %q", at.Branch, of.Owner.Name, cmp.Or(at.Path, "/"))
	}
}

// sideOf returns the folders of present records. A folder changed by hand has values of its own.
func sideOf(written gitops.OwnerSnapshot) Side {
	side := make(Side, len(written.Records))
	for key, record := range written.Records {
		tree := written.Trees[key.Host][key.DeploymentTarget]
		if tree == "" {
			continue
		}
		config := record.ConfigVersion
		if config == "" || !strings.EqualFold(tree, record.Tree) {
			config = "tree " + tree
		}
		side[key] = Folder{
			Workload: record.Workload, Workspace: record.Workspace, Manifests: record.Manifests, Policies: record.Policies,
			Config: config, Tree: tree,
		}
	}
	return side
}

func seenOf(of Point, written gitops.OwnerSnapshot, side Side) Seen {
	hosts := map[string]bool{}
	for key := range side {
		hosts[key.Host] = true
	}
	return Seen{
		Name: of.Owner.Name, Branch: of.Owner.Location.Branch, Path: of.Owner.Location.Path, Commit: written.Tip,
		Written: len(written.Trees)+len(written.Unreadable) > 0, Hosts: len(hosts), Assignments: len(side),
	}
}

// read reads the values that may differ; cut: not all of them.
func (in *Input) read(ctx context.Context, repository Repository, left, right delivery.Owner) (cut bool, err error) {
	room := MaxFolders
	for _, again := range []bool{false, true} {
		asks := Asks(*in, again, room+1)
		if len(asks) > room {
			asks, cut = asks[:room], true
		}
		room -= len(asks)
		for _, isRight := range []bool{false, true} {
			owner, folders := left, folder.Trees{}
			if isRight {
				owner = right
			}
			for _, ask := range asks {
				if ask.Right == isRight {
					folder.Put(folders, ask.Key, ask.Tree)
				}
			}
			if len(folders) == 0 {
				continue
			}
			files, err := repository.ReadFilesNamed(ctx, owner, folders, changes.IsConfig)
			if err != nil {
				return false, &SideError{isRight, err}
			}
			for _, ask := range asks {
				if values := changes.ConfigValues(files[ask.Key]); ask.Right == isRight && values != nil {
					in.Values[ask.Config] = values
				}
			}
		}
	}
	return cut, nil
}
