// Package gitops reads and writes folders of rendered manifests on a branch of a Git repository. It knows neither Terraform
// nor fleets.
//
//   - An [Owner] is one flotilla_assignment.
//   - A host is a cluster type or a cluster. It has a folder for each deployment target.
//   - A record is a file that lists an owner's folders on a host.
//   - A marker is a file that keeps a host's folder from being empty.
//
// A [Branch] is a tip as it was read, and an [OwnerView] is the part of one owner. An [Edit] is the target state of an
// owner. A [BranchClient] edits the trees of a tip in memory, and pushes one commit as a compare-and-swap. Content of
// others is carried over by id and never read.
//
// Layout, below the owner's path:
//
//	<host>/<owner>.md                  the marker
//	<host>/<deployment target>/...     a folder, flat
//	.flotilla/<owner>/<host>.json      the record
//	.flotilla/.claims/<claim>.json     the record of a [Claim]
//
// The name of a host is "<cluster type>" or "clusters/<cluster>".
package gitops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/parallel"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wait"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// BranchClient reads and writes branches. It is safe for concurrent use. Edits of one branch wait for each other.
type BranchClient struct {
	options  BranchOptions
	branches wait.Locks
}

// BranchOptions are settings. The zero value has the defaults.
type BranchOptions struct {
	// Git reaches repositories. Default: without options.
	Git *git.Connector
	// Now is the clock. Default: time.Now.
	Now func() time.Time
	// Signer signs commits. Default: none does.
	Signer *git.Signer
	// AllowedSigners verify records. Default: all records are believed.
	AllowedSigners *git.Verifier
}

// NewBranchClient returns a BranchClient.
func NewBranchClient(options BranchOptions) *BranchClient {
	if options.Git == nil {
		options.Git = git.NewConnector(git.ConnectorOptions{})
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	return &BranchClient{options: options}
}

// The errors of this package. Others are errors of package git, context errors, or sentences about invalid input.
var (
	// ErrConflict reports a folder of another owner, or with files of others.
	ErrConflict = errors.New("folder does not belong to this assignment")
	// ErrUnplanned reports folders of the owner that the edit neither wants nor may remove.
	ErrUnplanned = errors.New("folders that the plan did not show")
	// ErrRace reports that others moved the branch before each push, up to the limit.
	ErrRace = errors.New("others kept moving the branch")
)

// completeError has a complete text, and matches another error.
type completeError struct {
	text string
	of   error
}

func (e *completeError) Error() string { return e.text }
func (e *completeError) Unwrap() error { return e.of }

func newCompleteError(err error) error { return &completeError{err.Error(), err} }

func joinTexts[T any](all []T, text func(T) string) string {
	var texts []string
	for _, one := range all[:min(len(all), wording.Named)] {
		texts = append(texts, text(one))
	}
	if more := len(all) - wording.Named; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, "; ")
}

// ChangedError is an ErrUnplanned with the changed folders.
type ChangedError struct {
	Folders []ChangedFolder
}

// ChangedFolder is one folder of a ChangedError.
type ChangedFolder struct {
	folder.Key
	// Folder is the path in the repository.
	Folder string
	// Commit is the last commit that changed the folder, if known. Apply does not set it.
	Commit string
}

func (e *ChangedError) Error() string { return joinTexts(e.Folders, ChangedFolder.String) }

func (f ChangedFolder) String() string {
	text := fmt.Sprintf("folder %q has changed since the plan", f.Folder)
	if f.Commit != "" {
		text += ", by commit " + f.Commit
	}
	return text
}

func (e *ChangedError) Unwrap() error { return ErrUnplanned }

// describeError adds the remote to an error, unless its text is complete.
func describeError(remote git.Remote, err error) error {
	if changed, ok := errors.AsType[*ChangedError](err); ok {
		return changed
	}
	if told, ok := errors.AsType[*completeError](err); ok {
		return told
	}
	return remote.Describe(err, ErrRace)
}

// Owner is one flotilla_assignment. Name and Path identify it.
type Owner struct {
	Name string
	// Environment is only a label.
	Environment string
	Path        string
}

func (o Owner) check() error {
	if err := git.CheckName(o.Name); err != nil {
		return fmt.Errorf("the owner's name: %w", err)
	}
	if strings.ContainsFunc(o.Environment, isControl) {
		return errors.New("the owner's environment has a control character")
	}
	return git.CheckPath(o.Path)
}

const (
	recordsFolder = ".flotilla"
	recordSuffix  = ".json"
	markerSuffix  = ".md"
	clustersHost  = "clusters"
)

func (o Owner) folderPath(host, target string) string { return path.Join(o.Path, host, target) }

func (o Owner) markerPath(host string) string { return path.Join(o.Path, host, o.Name+markerSuffix) }

func (o Owner) recordsPath() string { return path.Join(o.Path, recordsFolder, o.Name) }

// RecordPath returns the path of a record.
func (o Owner) RecordPath(host string) string { return path.Join(o.recordsPath(), host+recordSuffix) }

func (o Owner) markerText() []byte {
	return []byte("Flotilla writes this folder for the assignment `" + o.Name +
		"`. What is changed here by hand is put back by the next apply.\n")
}

func (o Owner) leftText() []byte {
	return []byte("Nothing of the assignment `" + o.Name + "` is here any more. Agents that follow this folder remove " +
		"what they had of it. " +
		"When no agent follows it any more, this file may be removed by hand.\n")
}

func checkHost(host string) error {
	name, cluster := strings.CutPrefix(host, clustersHost+"/")
	if !cluster && host == clustersHost {
		return fmt.Errorf("host %q is the name of the folder for single clusters; use another name", host)
	}
	if err := git.CheckName(name); err != nil {
		return fmt.Errorf("host %q: %w", host, err)
	}
	if len(name)+len(recordSuffix) > git.MaxSegment {
		return fmt.Errorf("host %q is too long for the name of its record", host)
	}
	return nil
}

// recordEntries returns an owner's records by host. The records folder and its clusters must be open.
func (w *layout) recordEntries(records string) map[string]git.Hash {
	return listRecords(records, w.eachEntry)
}

func listRecords(records string, each func(at string, do func(git.Entry))) map[string]git.Hash {
	hosts := map[string]git.Hash{}
	list := func(at, prefix string) {
		each(at, func(e git.Entry) {
			name, ok := strings.CutSuffix(e.Name, recordSuffix)
			if host := prefix + name; ok && e.IsFile() && checkHost(host) == nil {
				hosts[host] = e.ID
			}
		})
	}
	list(records, "")
	list(path.Join(records, clustersHost), clustersHost+"/")
	return hosts
}

func (w *layout) eachEntry(at string, do func(git.Entry)) {
	if d := w.Directory(at); d != nil {
		d.Each(do)
	}
}

// readRecords omits unreadable records.
func readRecords[K comparable](ctx context.Context, w *layout, entries map[K]git.Hash) (map[K]hostRecord, error) {
	if err := w.Need(ctx, slices.Collect(maps.Values(entries))); err != nil {
		return nil, err
	}
	left := &budget{maxRecords, fmt.Sprintf("the records of assignments have more than %d MiB together", maxRecords>>20)}
	keys := slices.Collect(maps.Keys(entries))
	contents := make([][]byte, len(keys))
	for i, key := range keys {
		content, err := w.Blob(entries[key])
		if err = cmp.Or(err, left.spend(len(content))); err != nil {
			return nil, err
		}
		contents[i] = content
	}
	records, failures := make([]hostRecord, len(keys)), make([]error, len(keys))
	parallel.Each(len(keys), func(i int) { records[i], failures[i] = parseRecord(contents[i]) })
	read := make(map[K]hostRecord, len(keys))
	for i, key := range keys {
		if failures[i] == nil {
			read[key] = records[i]
		}
	}
	return read, nil
}

const (
	// maxRecords bounds the bytes of assignment records in one read: enough for 600,000 folders.
	maxRecords = 256 << 20
	// maxClaims bounds the bytes of claim records at a path: enough for 300,000 clusters.
	maxClaims = 32 << 20
	// maxVisited bounds one inventory: enough for ten fleets of 3,000 clusters.
	maxVisited = 500_000
)

// budget bounds the cost of one read. Git stores equal content once, so a push of a few kilobytes can contain billions of
// files.
type budget struct {
	left    int
	problem string
}

func visitBudget(begin string) *budget {
	return &budget{
		maxVisited,
		fmt.Sprintf("%q has more than %d folders and records up to %d levels below it", begin, maxVisited, InventoryLevels),
	}
}

func (b *budget) spend(amount int) error {
	if b.left -= amount; b.left < 0 {
		return newCompleteError(errors.New(b.problem + ", which Flotilla does not write: find the commit that added them, and revert it"))
	}
	return nil
}
