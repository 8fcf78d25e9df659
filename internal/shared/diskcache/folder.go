package diskcache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

const otherFolder = "name another folder with cache.path of the provider or FLOTILLA_CACHE_DIR, such as a new one below it: " +
	"Flotilla creates it for this user alone"

var errNoFolder = errors.New("this user has no folder for caches: name one with cache.path of the provider or FLOTILLA_CACHE_DIR")

func (f *Folder) open() (*os.Root, error) {
	if f.path == "" {
		return nil, errNoFolder
	}
	path, err := filepath.Abs(f.path)
	if err != nil {
		return nil, err
	}
	return trusted(os.OpenRoot(path))
}

// trusted closes a folder that cannot be trusted, and describes the error.
func trusted(root *os.Root, err error) (*os.Root, error) {
	if errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("the cache folder cannot be opened: %w; %s", err, otherFolder)
	}
	if err := checkFolder(root); err != nil {
		_ = root.Close()
		return nil, err
	}
	return root, nil
}

// openKind does not follow a link in place of the folder.
func openKind(root *os.Root, kind Kind) (*os.Root, error) {
	info, err := root.Lstat(string(kind))
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%q in the cache is not a folder: remove it, or %s", filepath.Join(root.Name(), string(kind)), otherFolder)
	}
	return trusted(root.OpenRoot(string(kind)))
}

// use opens the folder of a kind for reading; nil if it does not exist.
func (f *Folder) use(kind Kind) (*os.Root, error) {
	root, err := f.open()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	f.sweepOnce()
	dir, err := openKind(root, kind)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return dir, err
}

func (f *Folder) create(kind Kind) (*os.Root, error) {
	root, err := f.open()
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(f.path, 0o700); err != nil {
			return nil, fmt.Errorf("the cache folder cannot be created: %w; %s", err, otherFolder)
		}
		root, err = f.open()
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	f.sweepOnce()
	if err := root.Mkdir(string(kind), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("the cache folder %q cannot be written: %w; %s", f.path, err, otherFolder)
	}
	return openKind(root, kind)
}

func checkFolder(root *os.Root) error {
	info, err := root.Stat(".")
	if err != nil {
		return err
	}
	if problem := othersCanWrite(info); problem != "" {
		return fmt.Errorf(
			"the cache folder %q %s, so another user could decide what is rendered: remove the folder with all that is in it, or %s",
			root.Name(),
			problem,
			otherFolder,
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

// entryName matches entries. A sweep ignores other files.
var entryName = regexp.MustCompile(`^[0-9a-f]{64}$`)

type listed struct {
	kind        Kind
	name        string
	size        int64
	used        time.Time
	isTemporary bool
}

func (f *Folder) sweepOnce() {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if !f.isSwept {
		f.isSwept = true
		f.sweep(f.maxSize, inUse)
	}
}

// count adds a written entry, and sweeps if the folder is over its limit.
func (f *Folder) count(size int64) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	size = onDisk(size)
	f.size += size
	if f.uncounted += size; f.size > f.maxSize || f.uncounted > f.maxSize/recountAfter {
		f.sweep(f.maxSize, inUse)
	}
}

// makeRoom removes half of all entries, in use or not.
func (f *Folder) makeRoom() {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.sweep(f.size/2, 0)
}

// sweep removes expired entries, and then the least recently used ones down to a limit, except those used within keep. The caller
// holds the mutex.
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

// list also removes temporary files without a writer.
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
