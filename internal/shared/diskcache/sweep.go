package diskcache

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	// maxAge is how long an entry stays after its last use.
	maxAge = 30 * 24 * time.Hour
	// touchAfter is how exactly the last use of an entry is known.
	touchAfter = 30 * time.Second
	// inUse is how long after its last use an entry is not removed for its size: its reader may not have opened it yet.
	inUse = 2 * touchAfter
	// abandonedAfter is when a temporary file has no writer any more. A fetch takes minutes, and writing takes seconds.
	abandonedAfter = time.Hour
	// recountAfter is the part of the limit that a process writes before it counts again: others may have written, too.
	recountAfter = 16

	temporaryPrefix = ".new-"
	block           = 4096 // bytes that a small file takes on most disks
)

// entryName matches the file names of entries. A sweep neither counts nor removes other files.
var entryName = regexp.MustCompile(`^[0-9a-f]{64}$`)

// listed is an entry as a sweep finds it.
type listed struct {
	kind Kind
	name string
	size int64
	used time.Time
	// isTemporary is set while the entry is being written.
	isTemporary bool
}

// sweepOnce removes old entries at the first use of the folder by this process.
func (f *Folder) sweepOnce() {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if !f.isSwept {
		f.isSwept = true
		f.sweep(f.maxSize, inUse)
	}
}

// count adds an entry that was written, and removes others if the folder is over its limit.
func (f *Folder) count(size int64) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	size = onDisk(size)
	f.size += size
	if f.uncounted += size; f.size > f.maxSize || f.uncounted > f.maxSize/recountAfter {
		f.sweep(f.maxSize, inUse)
	}
}

// makeRoom removes half of all entries, even if they are in use. Their readers make them again.
func (f *Folder) makeRoom() {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.sweep(f.size/2, 0)
}

// sweep removes expired entries, and then the least recently used ones until the rest is below a limit. It keeps entries that were
// used within the time keep. Another process may sweep at the same time. The caller holds the mutex.
func (f *Folder) sweep(limit int64, keep time.Duration) {
	root, err := f.open()
	if err != nil {
		return // the next use has the error
	}
	defer func() { _ = root.Close() }()
	now := time.Now()
	var all []listed
	dirs := map[Kind]*os.Root{}
	for _, kind := range kinds {
		dir, err := openKind(root, kind)
		if err != nil {
			continue
		}
		defer func() { _ = dir.Close() }()
		dirs[kind] = dir
		all = append(all, list(dir, kind, now)...)
	}
	f.size, f.uncounted = 0, 0
	for _, entry := range all {
		f.size += entry.size
	}
	slices.SortFunc(all, func(a, b listed) int { return a.used.Compare(b.used) })
	for _, entry := range all {
		age := now.Sub(entry.used)
		if age <= maxAge && (f.size <= limit || age <= keep) {
			break // all others were used later
		}
		if !entry.isTemporary && dirs[entry.kind].Remove(entry.name) == nil {
			f.size -= entry.size
		}
	}
}

// list returns the entries in the folder of a kind, and removes temporary files without a writer.
func list(dir *os.Root, kind Kind, now time.Time) []listed {
	opened, err := dir.Open(".")
	if err != nil {
		return nil
	}
	defer func() { _ = opened.Close() }()
	found, _ := opened.ReadDir(-1) // other processes may change the folder meanwhile
	var all []listed
	for _, file := range found {
		isTemporary := strings.HasPrefix(file.Name(), temporaryPrefix)
		if !isTemporary && !entryName.MatchString(file.Name()) {
			continue
		}
		info, err := dir.Lstat(file.Name())
		if err != nil {
			continue // another process has removed it
		}
		if isTemporary && now.Sub(info.ModTime()) > abandonedAfter {
			_ = dir.Remove(file.Name())
			continue
		}
		all = append(all, listed{kind, file.Name(), onDisk(info.Size()), info.ModTime(), isTemporary})
	}
	return all
}

func onDisk(size int64) int64 { return (size + block - 1) / block * block }
