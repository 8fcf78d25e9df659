package diskcache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"
)

const otherFolder = "name another folder with cache.path of the provider or FLOTILLA_CACHE_DIR, such as a new one below it: " +
	"Flotilla creates it for this user alone"

var errNoFolder = errors.New("this user has no folder for caches: name one with cache.path of the provider or FLOTILLA_CACHE_DIR")

// use opens the folder for reading; nil if it does not exist.
func (f *Folder) use() (*os.Root, error) {
	dir, err := f.open()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		f.sweepOnce(dir)
	}
	return dir, err
}

func (f *Folder) create() (*os.Root, error) {
	if dir, err := f.use(); dir != nil || err != nil {
		return dir, err
	}
	if err := os.MkdirAll(f.path, 0o700); err != nil {
		return nil, fmt.Errorf("the cache folder cannot be created: %w; %s", err, otherFolder)
	}
	return f.open()
}

// open opens the folder, unless it cannot be trusted.
func (f *Folder) open() (*os.Root, error) {
	if f.path == "" {
		return nil, errNoFolder
	}
	path, err := filepath.Abs(f.path)
	if err != nil {
		return nil, err
	}
	dir, err := os.OpenRoot(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("the cache folder cannot be opened: %w; %s", err, otherFolder)
	}
	if err := checkFolder(dir); err != nil {
		_ = dir.Close()
		return nil, err
	}
	return dir, nil
}

func checkFolder(root *os.Root) error {
	info, err := root.Stat(".")
	if err != nil {
		return err
	}
	if problem := othersCanWrite(info); problem != "" {
		return fmt.Errorf(
			"the cache folder %q %s, so another user could decide what is rendered: remove the folder with all that is in it, or %s",
			root.Name(), problem, otherFolder,
		)
	}
	return nil
}

// checkEntry refuses links, pipes and files of another user.
func checkEntry(info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return errors.New("it is not a regular file")
	}
	if problem := othersCanWrite(info); problem != "" {
		return errors.New("it " + problem)
	}
	if hasOtherNames(info) {
		return errors.New("it has a second name elsewhere")
	}
	return nil
}

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
