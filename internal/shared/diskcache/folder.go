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
