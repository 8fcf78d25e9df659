package origin

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/bounded"
)

const (
	maxFiles = 50_000
	maxBytes = 128 << 20
	maxName  = 4096 // bytes of a path or a link's target
	maxDepth = 100  // folders
)

type files struct {
	regular map[string][]byte
	links   map[string]string // targets of symbolic links
	folders map[string]bool   // parents of files and links
	size    int64
}

func newFiles() *files {
	return &files{regular: map[string][]byte{}, links: map[string]string{}, folders: map[string]bool{}}
}

func (f *files) has(name string) bool {
	_, isRegular := f.regular[name]
	_, isLink := f.links[name]
	return isRegular || isLink
}

// claim checks that a path is valid and new.
func (f *files) claim(name string) error {
	switch {
	case len(name) > maxName || strings.Count(name, "/") > maxDepth:
		return fmt.Errorf("%w: it has a path of more than %d bytes or %d folders", git.ErrTooLarge, maxName, maxDepth)
	case len(f.regular)+len(f.links) >= maxFiles:
		return errTooMany
	case f.has(name) || f.folders[name]:
		return fmt.Errorf("has %q twice", name)
	}
	for folder := path.Dir(name); folder != "."; folder = path.Dir(folder) {
		if f.has(folder) {
			return fmt.Errorf("has %q below %q, which is no folder", name, folder)
		}
		f.folders[folder] = true
	}
	return nil
}

var (
	errTooLarge = fmt.Errorf("%w: it has more than %d MiB when unpacked", git.ErrTooLarge, maxBytes>>20)
	errTooMany  = fmt.Errorf("%w: it has more than %d files", git.ErrTooLarge, maxFiles)
)

func (f *files) add(name string, content []byte) error {
	if f.size += int64(len(content)); f.size > maxBytes {
		return errTooLarge
	}
	if err := f.claim(name); err != nil {
		return err
	}
	f.regular[name] = content
	return nil
}

// addLink adds a symbolic link; the renderer refuses those out of the artifact.
func (f *files) addLink(name, target string) error {
	if len(target) > maxName {
		return fmt.Errorf("%w: the link %q has a target of more than %d bytes", git.ErrTooLarge, name, maxName)
	}
	if err := f.claim(name); err != nil {
		return err
	}
	f.links[name] = target
	return nil
}

// leaves reports whether a link may lead out of the artifact, even through others. It accepts ".." only at the start, where
// every parent is a real folder.
func leaves(name, target string) bool {
	if path.IsAbs(target) || strings.Contains(target, `\`) || target == "" {
		return true
	}
	depth, down := strings.Count(name, "/"), false
	for segment := range strings.SplitSeq(target, "/") {
		switch {
		case segment == "..":
			if depth--; depth < 0 || down {
				return true
			}
		case segment != "" && segment != ".":
			down = true
		}
	}
	return false
}

// readArchive reads an untrusted tar archive in gzip. Errors continue "its archive".
func readArchive(archive []byte) (*files, error) {
	compressed, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, errors.New("is not in gzip, which charts and artifacts of Flux are")
	}
	// Headers and padding exceed the size of the files.
	reader := tar.NewReader(&bounded.Reader{From: compressed, Left: 2 * maxBytes, TooLong: errTooLarge})
	read := newFiles()
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return read, nil
		}
		if err != nil {
			return nil, fmt.Errorf("cannot be read: %w", err)
		}
		if header.Typeflag == tar.TypeXGlobalHeader {
			continue
		}
		name := path.Clean(header.Name)
		switch {
		case path.IsAbs(header.Name) || slices.Contains(strings.Split(header.Name, "/"), "..") ||
			strings.ContainsAny(header.Name, "\\\x00") || header.Name == "":
			return nil, fmt.Errorf("has a path %.200q, which leads out of it", header.Name)
		case header.Typeflag == tar.TypeDir:
			if name != "." && read.has(name) {
				return nil, fmt.Errorf("has %q twice", name)
			}
			continue // empty folders are ignored
		case name == ".":
			return nil, errors.New("has a file in place of its root")
		case header.Typeflag == tar.TypeReg:
			if header.Size > maxBytes-read.size {
				return nil, errTooLarge
			}
			content, err := io.ReadAll(reader)
			if err != nil {
				return nil, fmt.Errorf("cannot be read: %w", err)
			}
			if err := read.add(name, content); err != nil {
				return nil, err
			}
		case header.Typeflag == tar.TypeSymlink:
			if leaves(name, header.Linkname) {
				return nil, fmt.Errorf("has a symbolic link %q to %.200q, which leads out of it", name, header.Linkname)
			}
			if err := read.addLink(name, header.Linkname); err != nil {
				return nil, err
			}
		default:
			return nil, fmt.Errorf("has %q, which is neither a file nor a symbolic link", name)
		}
	}
}
