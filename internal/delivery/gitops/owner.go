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

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/parallel"
)

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
