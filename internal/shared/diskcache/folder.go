package diskcache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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
