// Package diskcache keeps reproducible content in a folder of this machine, for several processes at once. It trusts no folder
// that other users can write to, and returns no damaged entry.
package diskcache

import (
	"bufio"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Kind is a kind of content, and begins the names of its entries.
type Kind string

// The kinds.
const (
	Artifacts Kind = "artifacts"
	Objects   Kind = "objects"
)

// DefaultMaxSize is the default limit of a folder in bytes.
const DefaultMaxSize = 4 << 30

// Folder is the cache folder of one user, for concurrent use.
type Folder struct {
	path    string
	maxSize int64

	mutex     sync.Mutex
	isSwept   bool
	size      int64 // bytes at the last sweep, and of later entries of this process
	uncounted int64 // bytes since the last sweep
}

// New returns the cache in a folder, which need not exist. Every use of path "" is an error.
func New(path string, maxSize int64) *Folder {
	return &Folder{path: path, maxSize: maxSize}
}

// DefaultPath returns FLOTILLA_CACHE_DIR, or flotilla in the user's folder for caches; "" if there is none.
func DefaultPath() string {
	if path := os.Getenv("FLOTILLA_CACHE_DIR"); path != "" {
		return path
	}
	path, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(path, "flotilla")
}

// Check returns an error if the folder exists and cannot be trusted.
func (f *Folder) Check() error {
	dir, err := f.open()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		_ = dir.Close()
	}
	return err
}

// Find returns the path of an unverified entry for [Open], and marks it as used. An error means that the folder is unusable.
func (f *Folder) Find(kind Kind, key string) (path string, has bool, err error) {
	dir, err := f.use()
	if dir == nil {
		return "", false, err
	}
	defer func() { _ = dir.Close() }()
	name := nameOf(kind, key)
	info, err := dir.Lstat(name)
	if err != nil || checkEntry(info) != nil {
		return "", false, nil
	}
	markUsed(dir, name, info)
	return filepath.Join(dir.Name(), name), true, nil
}

// Read returns an entry; nil if there is none. An error means that the folder is unusable.
func (f *Folder) Read(kind Kind, key string) ([]byte, error) {
	dir, err := f.use()
	if dir == nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	name := nameOf(kind, key)
	entry, err := openEntry(dir, name)
	if err != nil {
		return nil, nil // the caller makes a new one
	}
	defer func() { _ = entry.Close() }()
	markUsed(dir, name, entry.info)
	content, err := io.ReadAll(entry)
	if err != nil {
		return nil, nil
	}
	return content, nil
}

// Write writes an entry, completely or not at all, and returns its path. If the disk is full, it removes other entries and calls
// write again.
func (f *Folder) Write(kind Kind, key string, write func(io.Writer) error) (path string, err error) {
	dir, err := f.create()
	if err != nil {
		return "", err
	}
	defer func() { _ = dir.Close() }()
	name := nameOf(kind, key)
	size, err := writeEntry(dir, name, write)
	if isDiskFull(err) {
		f.makeRoom(dir)
		size, err = writeEntry(dir, name, write)
	}
	if err != nil {
		return "", fmt.Errorf("the cache folder %q cannot be written: %w; free space there, or %s", f.path, err, otherFolder)
	}
	f.count(dir, size)
	return filepath.Join(dir.Name(), name), nil
}

func markUsed(dir *os.Root, name string, info fs.FileInfo) {
	if now := time.Now(); now.Sub(info.ModTime()) > touchAfter {
		_ = dir.Chtimes(name, now, now) // a cache that is read-only is used all the same
	}
}

func nameOf(kind Kind, key string) string {
	sum := sha256.Sum256([]byte(key))
	return string(kind) + "-" + hex.EncodeToString(sum[:])
}

// headerLength is the length of the first line of an entry: the checksum of its name and content.
const headerLength = 2*sha256.Size + 1

func newChecksum(name string) hash.Hash {
	sum := sha256.New()
	_, _ = io.WriteString(sum, name+"\n")
	return sum
}

func headerOf(sum hash.Hash) string { return hex.EncodeToString(sum.Sum(nil)) + "\n" }

// writeEntry does not wait for the disk: content lost by a power failure does not match its checksum.
func writeEntry(dir *os.Root, name string, write func(io.Writer) error) (size int64, err error) {
	temporary := temporaryPrefix + rand.Text()
	file, err := dir.OpenFile(temporary, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	defer func() { _ = dir.Remove(temporary) }()
	sum := newChecksum(name)
	buffered := bufio.NewWriterSize(file, 64<<10)
	_, err = buffered.Write(make([]byte, headerLength))
	if err == nil {
		err = write(io.MultiWriter(buffered, sum))
	}
	if err == nil {
		err = buffered.Flush()
	}
	if err == nil {
		_, err = file.WriteAt([]byte(headerOf(sum)), 0)
	}
	var info fs.FileInfo
	if err == nil {
		info, err = file.Stat()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return 0, err
	}
	if err := dir.Rename(temporary, name); err != nil {
		// On Windows, a file that another process reads cannot be replaced. It has the same content.
		if existing, openErr := openEntry(dir, name); openErr == nil {
			return 0, existing.Close()
		}
		return 0, err
	}
	return info.Size(), nil
}

// Entry is verified content. It stays readable after its removal.
type Entry struct {
	*io.SectionReader
	file *os.File
	info fs.FileInfo
}

// Close closes the file.
func (e *Entry) Close() error { return e.file.Close() }

// Open opens and verifies an entry by its path. If it is gone or damaged, the error is fs.ErrNotExist, and a damaged entry is
// removed.
func Open(path string) (*Entry, error) {
	dir, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	if err := checkFolder(dir); err != nil {
		return nil, err
	}
	return openEntry(dir, filepath.Base(path))
}

func openEntry(dir *os.Root, name string) (*Entry, error) {
	entry, err := verified(dir, name)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return entry, err
	}
	_ = dir.Remove(name) // removes a link, not the file that it leads to
	return nil, fmt.Errorf("entry %s of the cache: %w: %w", name, err, fs.ErrNotExist)
}

// verified opens only regular files: a pipe would block, and a link leads elsewhere.
func verified(dir *os.Root, name string) (*Entry, error) {
	info, err := dir.Lstat(name)
	if err != nil {
		return nil, err
	}
	if err := checkEntry(info); err != nil {
		return nil, err
	}
	file, err := dir.Open(name)
	if err != nil {
		return nil, err
	}
	entry, err := verify(file, name)
	if err != nil {
		_ = file.Close()
	}
	return entry, err
}

var errDamaged = errors.New("it is damaged")

func verify(file *os.File, name string) (*Entry, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if err := checkEntry(info); err != nil {
		return nil, err
	}
	header := make([]byte, headerLength)
	if _, err := io.ReadFull(file, header); err != nil {
		return nil, errDamaged
	}
	sum := newChecksum(name)
	length, err := io.Copy(sum, file)
	if err != nil {
		return nil, err
	}
	if string(header) != headerOf(sum) {
		return nil, errDamaged
	}
	return &Entry{io.NewSectionReader(file, headerLength, length), file, info}, nil
}
