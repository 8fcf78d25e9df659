package diskcache

import (
	"os"
	"regexp"
	"slices"
	"time"
)

const (
	// maxAge is the time since the last use of an entry.
	maxAge = 30 * 24 * time.Hour
	// touchAfter is the precision of the last use.
	touchAfter = 30 * time.Second
	// inUse protects an entry after its last use: its reader may not have opened it yet.
	inUse = 2 * touchAfter
	// abandonedAfter is the age of a temporary file without a writer. A fetch takes minutes.
	abandonedAfter = time.Hour
	// recountAfter is the part of the limit after which a process counts again, for the writes of others.
	recountAfter = 16

	temporaryPrefix = ".new-"
	block           = 4096 // bytes that a small file takes on most disks
)

// A sweep ignores files of other names: the user's folder may contain anything.
var (
	entryName     = regexp.MustCompile(`^(` + string(Artifacts) + `|` + string(Objects) + `)-[0-9a-f]{64}$`)
	temporaryName = regexp.MustCompile(`^` + regexp.QuoteMeta(temporaryPrefix) + `[A-Z2-7]{26}$`) // see rand.Text
)

type listed struct {
	name        string
	size        int64
	used        time.Time
	isTemporary bool
}

func (f *Folder) sweepOnce(dir *os.Root) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if !f.isSwept {
		f.isSwept = true
		f.sweep(dir, f.maxSize, inUse)
	}
}

// count adds a written entry, and sweeps if the folder is over its limit.
func (f *Folder) count(dir *os.Root, size int64) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	size = onDisk(size)
	f.size += size
	if f.uncounted += size; f.size > f.maxSize || f.uncounted > f.maxSize/recountAfter {
		f.sweep(dir, f.maxSize, inUse)
	}
}

// makeRoom removes half of all entries, in use or not.
func (f *Folder) makeRoom(dir *os.Root) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.sweep(dir, f.size/2, 0)
}

// sweep removes expired entries, and then the least recently used ones down to a limit, except those used within keep. The caller
// holds the mutex.
func (f *Folder) sweep(dir *os.Root, limit int64, keep time.Duration) {
	now := time.Now()
	all := list(dir, now)
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
		if !entry.isTemporary && dir.Remove(entry.name) == nil {
			f.size -= entry.size
		}
	}
}

// list also removes temporary files without a writer.
func list(dir *os.Root, now time.Time) []listed {
	opened, err := dir.Open(".")
	if err != nil {
		return nil
	}
	defer func() { _ = opened.Close() }()
	found, _ := opened.ReadDir(-1) // other processes may change the folder meanwhile
	var all []listed
	for _, file := range found {
		isTemporary := temporaryName.MatchString(file.Name())
		if !isTemporary && !entryName.MatchString(file.Name()) {
			continue
		}
		info, err := dir.Lstat(file.Name())
		if err != nil || !info.Mode().IsRegular() {
			continue // another process has removed it, or it is of somebody else
		}
		if isTemporary && now.Sub(info.ModTime()) > abandonedAfter {
			_ = dir.Remove(file.Name())
			continue
		}
		all = append(all, listed{file.Name(), onDisk(info.Size()), info.ModTime(), isTemporary})
	}
	return all
}

func onDisk(size int64) int64 { return (size + block - 1) / block * block }
