package gitops

import (
	"cmp"
	"context"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// InventoryFilter narrows an inventory. The zero value is everything.
type InventoryFilter struct {
	// Path is where the search begins. It covers InventoryLevels levels of folders below.
	Path        string
	Owner, Host string
	// Cluster selects the folders of a cluster and of its type. ClusterType selects a type and its clusters, or gives the
	// type of Cluster.
	Cluster, ClusterType string
	Workload, Workspace  string
}

// InventoryLevels is the depth of the search for owners.
const InventoryLevels = 3

// Inventory lists folders on a branch from the records of its owners. Every list is in order.
type Inventory struct {
	Commit string
	// Owners and Claims ignore the filter.
	Owners      []Owner
	Assignments []InventoryAssignment
	Claims      []Claim
	// Unreadable has the paths of records: first of owners, then of claims.
	Unreadable []string
	// Unsigned has the records without a signature by an allowed key. Records with a known commit come first.
	Unsigned []UnsignedRecord
	// TypeUnknown reports that no record names the type of the filter's cluster, so its folders are missing.
	TypeUnknown bool
	// Names are all names in the records.
	Names struct{ Hosts, Workloads, Workspaces []string }
}

// InventoryAssignment is one folder.
type InventoryAssignment struct {
	Owner Owner
	folder.Key
	FolderRecord
	// Commit is the last commit that changed the folder, if it is among the newest of the branch.
	Commit string
}

// ReadInventory reads the records that match the filter. It fetches trees, records, and commits as far back as needed to
// date folders and check signatures.
func (l *Branch) ReadInventory(ctx context.Context, filter InventoryFilter) (Inventory, error) {
	return withTip(ctx, l, func() (Inventory, error) {
		if err := git.CheckPath(filter.Path); err != nil {
			return Inventory{}, err
		}
		reader := &inventoryReader{Branch: l, filter: filter, found: Inventory{Commit: l.Tip()}}
		if reader.found.Commit == "" {
			return reader.found, nil
		}
		err := reader.read(ctx)
		return reader.found, err
	})
}

type inventoryReader struct {
	*Branch
	filter InventoryFilter
	found  Inventory
}

func (l *inventoryReader) read(ctx context.Context) error {
	if err := l.opened.Open(ctx, []string{l.filter.Path}); err != nil {
		return err
	}
	owners, directories, err := l.findOwners(ctx, l.filter.Path, InventoryLevels, true)
	if err != nil {
		return err
	}
	l.found.Owners = owners
	records, err := l.readFilteredRecords(ctx, owners)
	if err != nil {
		return err
	}
	l.found.pickAssignments(records, l.filter)
	if err := l.readAllClaims(ctx, directories); err != nil {
		return err
	}
	if l.found.Unsigned, err = l.findUnsignedIn(ctx, records, l.found.Claims); err != nil {
		return err
	}
	return l.dateInventory(ctx, l.found.Assignments)
}

// findOwners finds owners and directories with records at an open path and on some levels below, but not in the folders of
// hosts. It fetches all folders on the way, or else skips missing ones.
func (l *Branch) findOwners(ctx context.Context, begin string, levels int, fetch bool) (owners []Owner, directories []string, err error) {
	level, left := []string{begin}, visitBudget(begin)
	for depth := 0; len(level) > 0; depth++ {
		if fetch {
			if err := l.fetchFolders(ctx, level); err != nil {
				return nil, nil, err
			}
		}
		level = slices.DeleteFunc(level, func(p string) bool { return !l.opened.OpenFetched(p) })
		at, err := l.openOwners(ctx, level)
		if err != nil {
			return nil, nil, err
		}
		for _, owner := range at {
			if err := left.spend(1 + len(l.opened.recordEntries(owner.recordsPath()))); err != nil {
				return nil, nil, err
			}
		}
		owners = append(owners, at...)
		for _, p := range level {
			if l.opened.Directory(path.Join(p, recordsFolder)) != nil {
				directories = append(directories, p)
			}
		}
		if depth == levels {
			break
		}
		hosts := map[string]bool{}
		for _, owner := range at {
			hosts[path.Join(owner.Path, clustersHost)] = true
			for host := range l.opened.recordEntries(owner.recordsPath()) {
				hosts[path.Join(owner.Path, host)] = true
			}
		}
		var next []string
		for _, p := range level {
			before := len(next)
			l.opened.Directory(p).Each(func(e git.Entry) {
				if below := path.Join(p, e.Name); e.IsTree() && git.CheckSegment(e.Name) == nil && !hosts[below] {
					next = append(next, below)
				}
			})
			if err := left.spend(len(next) - before); err != nil {
				return nil, nil, err
			}
		}
		level = next
	}
	slices.SortFunc(owners, compareOwners)
	slices.Sort(directories)
	return owners, directories, nil
}

func (l *inventoryReader) readAllClaims(ctx context.Context, directories []string) error {
	folders := make([]string, len(directories))
	for i, p := range directories {
		folders[i] = claimsPath(p)
	}
	if err := l.openFolders(ctx, folders); err != nil {
		return err
	}
	var ids []git.Hash
	for _, p := range directories {
		ids = slices.AppendSeq(ids, maps.Values(l.opened.claimEntries(p)))
	}
	if err := l.tip.Need(ctx, ids); err != nil {
		return err
	}
	for _, p := range directories {
		claims, err := l.opened.readClaims(ctx, p, l.opened.claimEntries(p))
		if err != nil {
			return err
		}
		l.found.Claims, l.found.Unreadable = append(l.found.Claims, claims.Claims...), append(l.found.Unreadable, claims.Unreadable...)
	}
	return nil
}

func compareOwners(a, b Owner) int {
	return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Name, b.Name))
}

func (l *Branch) fetchFolders(ctx context.Context, folders []string) error {
	var ids []git.Hash
	for _, folder := range folders {
		if e, ok := l.opened.Lookup(folder); ok && e.IsTree() && folder != "" {
			ids = append(ids, e.ID)
		}
	}
	return l.tip.Need(ctx, ids)
}

// openFolders opens folders whose parents are open, with one request. Malformed trees of others are no error.
func (l *Branch) openFolders(ctx context.Context, folders []string) error {
	err := l.fetchFolders(ctx, folders)
	for _, folder := range folders {
		l.opened.OpenFetched(folder)
	}
	return err
}

func (l *Branch) openOwners(ctx context.Context, folders []string) ([]Owner, error) {
	var directories []string
	var ids []git.Hash
	for _, p := range folders {
		folder := path.Join(p, recordsFolder)
		directories = append(directories, folder)
		if e, ok := l.opened.Lookup(folder); ok && e.IsTree() && !l.opened.OpenFetched(folder) {
			ids = append(ids, e.ID)
		}
		for _, name := range l.opened.listOwners(p) {
			e, _ := l.opened.Lookup(path.Join(folder, name))
			ids = append(ids, e.ID)
		}
	}
	if err := l.tip.NeedBelow(ctx, ids, recordLevels); err != nil {
		return nil, err
	}
	if err := l.openFolders(ctx, directories); err != nil {
		return nil, err
	}
	var owners []Owner
	directories = directories[:0]
	for _, p := range folders {
		for _, name := range l.opened.listOwners(p) {
			owner := Owner{Name: name, Path: p}
			owners, directories = append(owners, owner), append(directories, owner.recordsPath())
		}
	}
	if err := l.openFolders(ctx, directories); err != nil {
		return nil, err
	}
	for i := range directories {
		directories[i] = path.Join(directories[i], clustersHost)
	}
	return owners, l.openFolders(ctx, directories)
}

type ownedHost struct {
	owner Owner
	host  string
}

type ownedRecord struct {
	ownedHost
	record hostRecord
}

func (l *inventoryReader) readFilteredRecords(ctx context.Context, owners []Owner) ([]ownedRecord, error) {
	filter := &l.filter
	hosts := map[string]bool{}
	entries := make([]map[string]git.Hash, len(owners))
	for i, owner := range owners {
		entries[i] = l.opened.recordEntries(owner.recordsPath())
		for host := range entries[i] {
			hosts[host] = true
		}
	}
	l.found.Names.Hosts = slices.Sorted(maps.Keys(hosts))
	if filter.Cluster != "" && filter.ClusterType == "" {
		own, err := l.readOwnedRecords(ctx, owners, entries, func(_ Owner, host string) bool {
			return host == path.Join(clustersHost, filter.Cluster)
		})
		if err != nil {
			return nil, err
		}
		filter.ClusterType = findClusterType(own)
		l.found.TypeUnknown = filter.ClusterType == ""
		l.found.Unreadable = nil // they are read again
	}
	return l.readOwnedRecords(ctx, owners, entries, func(owner Owner, host string) bool {
		return (filter.Owner == "" || filter.Owner == owner.Name) && (filter.Host == "" || filter.Host == host) && filter.canBeOn(host)
	})
}

func (f *InventoryFilter) canBeOn(host string) bool {
	cluster, isCluster := strings.CutPrefix(host, clustersHost+"/")
	switch {
	case f.Cluster != "" && isCluster:
		return cluster == f.Cluster
	case f.Cluster != "":
		return host == f.ClusterType
	case f.ClusterType != "":
		return isCluster || host == f.ClusterType
	}
	return true
}

func findClusterType(records []ownedRecord) string {
	var told folderRecord
	for _, r := range records {
		for _, target := range slices.Sorted(maps.Keys(r.record.DeploymentTargets)) {
			if f := r.record.DeploymentTargets[target]; f.ClusterType != "" && (told.ClusterType == "" || f.Changed > told.Changed) {
				told = f
			}
		}
	}
	return told.ClusterType
}

func (l *inventoryReader) readOwnedRecords(
	ctx context.Context, owners []Owner, entries []map[string]git.Hash, wanted func(Owner, string) bool,
) ([]ownedRecord, error) {
	var hosts []ownedHost
	ids := map[ownedHost]git.Hash{}
	for i, owner := range owners {
		for _, host := range slices.Sorted(maps.Keys(entries[i])) {
			if at := (ownedHost{owner, host}); wanted(owner, host) {
				hosts, ids[at] = append(hosts, at), entries[i][host]
			}
		}
	}
	read, err := readRecords(ctx, l.opened, ids)
	if err != nil {
		return nil, err
	}
	var readable []ownedRecord
	for _, at := range hosts {
		record, ok := read[at]
		if !ok {
			l.found.Unreadable = append(l.found.Unreadable, at.owner.RecordPath(at.host))
			continue
		}
		at.owner.Environment = record.Environment
		readable = append(readable, ownedRecord{at, record})
	}
	return readable, nil
}

func (v *Inventory) pickAssignments(records []ownedRecord, filter InventoryFilter) {
	workloads, workspaces := map[string]bool{}, map[string]bool{}
	for _, r := range records {
		for _, target := range slices.Sorted(maps.Keys(r.record.DeploymentTargets)) {
			recorded := r.record.DeploymentTargets[target]
			workloads[recorded.Workload] = true
			if recorded.Workspace != "" {
				workspaces[recorded.Workspace] = true
			}
			a := InventoryAssignment{Owner: r.owner, Key: folder.Key{Host: r.host, DeploymentTarget: target}, FolderRecord: recorded.toPublic()}
			if filter.includes(a) {
				v.Assignments = append(v.Assignments, a)
			}
		}
	}
	v.Names.Workloads, v.Names.Workspaces = slices.Sorted(maps.Keys(workloads)), slices.Sorted(maps.Keys(workspaces))
}

func (f *InventoryFilter) includes(a InventoryAssignment) bool {
	return (f.Workload == "" || f.Workload == a.Workload) && (f.Workspace == "" || f.Workspace == a.Workspace) &&
		(f.ClusterType == "" || f.Cluster != "" || f.ClusterType == a.Host || f.ClusterType == a.ClusterType)
}

// maxInventoryDepth bounds the commits to read. If trees come with commits, only the first step is read.
const maxInventoryDepth = 1 << 10

// dateInventory finds the commits that changed folders last, by owner and time in the record. It skips ambiguous times.
func (l *inventoryReader) dateInventory(ctx context.Context, assignments []InventoryAssignment) error {
	wanted := map[time.Time]bool{}
	var oldest time.Time
	for _, a := range assignments {
		if at := a.Changed.UTC(); !at.IsZero() {
			wanted[at] = true
			if oldest.IsZero() || at.Before(oldest) {
				oldest = at
			}
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	for !l.past.isDeep() && !slices.ContainsFunc(l.past.times, oldest.After) {
		if err := l.deepenHistory(ctx); err != nil {
			return err
		}
	}
	made := l.past.findMadeAt(wanted)
	for i := range assignments {
		if commits := made[madeBy{assignments[i].Changed.UTC(), assignments[i].Owner.Name}]; len(commits) == 1 {
			assignments[i].Commit = commits[0].String()
		}
	}
	return nil
}

func (l *lineage) isDeep() bool {
	limit := maxInventoryDepth
	if l.tip.MaxPast() < git.LastDepth {
		limit = git.FirstDepth
	}
	return l.isExhausted() || l.depth >= limit
}

type madeBy struct {
	at    time.Time
	owner string
}

func (l *lineage) findMadeAt(wanted map[time.Time]bool) map[madeBy][]git.Hash {
	made := map[madeBy][]git.Hash{}
	for id, number := range l.numbers {
		if at := l.times[number]; wanted[at] {
			text, _ := l.tip.CommitText(id)
			owners := parseCommit(text).Owners
			slices.Sort(owners)
			for _, owner := range slices.Compact(owners) {
				made[madeBy{at, owner}] = append(made[madeBy{at, owner}], id)
			}
		}
	}
	return made
}
