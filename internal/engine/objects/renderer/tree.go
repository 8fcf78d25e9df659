package renderer

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/sourceignore"
	"github.com/fluxcd/pkg/sourceignore/gitignore"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/diskcache"
)

// Each path through a link counts as a file but shares its bytes.
const (
	maxTreeBytes = 128 << 20
	maxTreeFiles = 50_000
)

// tree has the files of an artifact and resolves links within it.
type tree struct {
	files   map[string][]byte
	names   []string          // of files, sorted
	targets map[string]string // of all links
	links   map[string]bool   // to folders; files has their content
	outside map[string]string // targets of links that leave the artifact
	size    int64
	whole   *tree // set if this is the part that Flux archives

	charts map[string]*loadedChart      // parsed, by folder
	byFlux map[objects.FluxSource]*tree // archived
}

// maxTreesBytes bounds the cached artifacts of a worker.
const maxTreesBytes = 64 << 20

// artifactCache spares reading artifacts and parsing charts again.
type artifactCache struct {
	lastUsed[*tree] // by artifact key
}

func newArtifactCache() *artifactCache {
	return &artifactCache{lastUsed[*tree]{most: maxTreesBytes}}
}

func (c *artifactCache) load(key, archive string) (*tree, error) {
	if t, has := c.get(key); has {
		return t, nil
	}
	t, err := readTree(archive)
	if err != nil {
		return nil, err
	}
	c.keep(key, t, t.size)
	return t, nil
}

func newTree() *tree {
	return &tree{
		files: map[string][]byte{}, targets: map[string]string{}, links: map[string]bool{}, outside: map[string]string{},
		charts: map[string]*loadedChart{}, byFlux: map[objects.FluxSource]*tree{},
	}
}

// errNoArchive reports a missing archive, which callers fetch again.
var errNoArchive = errors.New(
	"its archive vanished from the cache several times, as other processes remove it: " +
		"give the provider a cache of its own, or a larger cache.max_mib",
)

func readTree(archive string) (*tree, error) {
	file, err := diskcache.Open(archive)
	if errors.Is(err, os.ErrNotExist) {
		return nil, errNoArchive
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	t := newTree()
	reader := tar.NewReader(file)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("the archive is damaged: %w", err)
		}
		name := path.Clean(header.Name)
		if path.IsAbs(name) || leavesRoot(name) {
			return nil, fmt.Errorf("the archive has a file %q outside of its root", header.Name)
		}
		switch header.Typeflag {
		case tar.TypeReg:
			if t.size += header.Size; t.size > maxTreeBytes {
				return nil, fmt.Errorf("its files have more than %d MiB", maxTreeBytes>>20)
			}
			content, err := io.ReadAll(reader)
			if err != nil {
				return nil, fmt.Errorf("the archive is damaged: %w", err)
			}
			t.files[name] = content
		case tar.TypeSymlink:
			t.targets[name] = header.Linkname
		}
		if len(t.files)+len(t.targets) > maxTreeFiles {
			return nil, fmt.Errorf("it has more than %d files", maxTreeFiles)
		}
	}
	if err := t.resolveLinks(); err != nil {
		return nil, err
	}
	t.names = slices.Sorted(maps.Keys(t.files))
	return t, nil
}

// resolveLinks repeats because links may lead through links.
func (t *tree) resolveLinks() error {
	names := slices.Sorted(maps.Keys(t.targets))
	for range 8 {
		before := len(t.files) + len(t.outside)
		for _, name := range names {
			target := t.targets[name]
			to := path.Join(path.Dir(name), target)
			_, leaves := t.outside[to]
			if leaves || path.IsAbs(target) || leavesRoot(to) {
				t.outside[name] = target
				continue
			}
			if content, isFile := t.files[to]; isFile {
				t.files[name] = content
				continue
			}
			if to == name || to == "." || strings.HasPrefix(name, to+"/") {
				continue // a link to its own parent is endless
			}
			below := map[string][]byte{}
			for file, content := range t.files {
				if rest, is := strings.CutPrefix(file, to+"/"); is {
					below[name+"/"+rest] = content
				}
			}
			if len(t.files)+len(below) > maxTreeFiles {
				return fmt.Errorf("its symbolic links lead to more than %d files", maxTreeFiles)
			}
			for file, content := range below {
				t.files[file] = content
				t.links[name] = true
			}
		}
		if len(t.files)+len(t.outside) == before {
			break
		}
	}
	return nil
}

func leavesRoot(clean string) bool {
	return clean == ".." || strings.HasPrefix(clean, "../")
}

func (t *tree) read(name string) ([]byte, error) {
	if content, has := t.files[name]; has {
		return content, nil
	}
	if target, leads := t.outside[name]; leads {
		return nil, outsideError(name, target)
	}
	return nil, t.missingFile(name)
}

func (t *tree) missingFile(name string) error {
	if err := t.exclusion(name); err != nil {
		return err
	}
	return fmt.Errorf("file %q does not exist: %w", name, os.ErrNotExist)
}

func outsideError(name, target string) error {
	return fmt.Errorf("symbolic link %q leads out of the artifact, to %q", name, target)
}

func (t *tree) isFolder(name string) bool {
	at, _ := slices.BinarySearch(t.names, name+"/")
	return name == "." || at < len(t.names) && strings.HasPrefix(t.names[at], name+"/")
}

// filesBelow returns sorted relative paths, with links that leave the artifact.
func (t *tree) filesBelow(folder string) []string {
	prefix := folder + "/"
	if folder == "." {
		prefix = ""
	}
	var all []string
	at, _ := slices.BinarySearch(t.names, prefix)
	for _, name := range t.names[at:] {
		rest, is := strings.CutPrefix(name, prefix)
		if !is {
			break
		}
		all = append(all, rest)
	}
	sorted := len(all)
	for name := range t.outside {
		if rest, is := strings.CutPrefix(name, prefix); is {
			all = append(all, rest)
		}
	}
	if len(all) > sorted {
		slices.Sort(all)
	}
	return all
}

// passesLink reports whether a path is, or passes through, one of the links.
func passesLink[T any](links map[string]T, name string) bool {
	for ; len(links) > 0 && name != "."; name = path.Dir(name) {
		if _, is := links[name]; is {
			return true
		}
	}
	return false
}

// realPath stops before a link that leaves the artifact, and after 40 links.
func (t *tree) realPath(name string) string {
	const most = 40 // as in Linux
	for range most {
		next := t.replaceLink(name)
		if next == name || leavesRoot(next) {
			return name
		}
		name = next
	}
	return name
}

// replaceLink resolves the first link.
func (t *tree) replaceLink(name string) string {
	for i := range len(name) + 1 {
		if i < len(name) && name[i] != '/' {
			continue
		}
		if target, isLink := t.targets[name[:i]]; isLink && !path.IsAbs(target) {
			return path.Join(path.Dir(name[:i]), target, name[i:])
		}
	}
	return name
}

var byteOrderMark = []byte("\xEF\xBB\xBF")

func trimByteOrderMark(content []byte) []byte {
	return bytes.TrimPrefix(content, byteOrderMark)
}

// archivedByFlux follows Storage.Archive and SourceIgnoreFilter of fluxcd/pkg/artifact.
func (t *tree) archivedByFlux(by *objects.FluxSource) (*tree, error) {
	if known := t.byFlux[*by]; known != nil {
		return known, nil
	}
	patterns, err := t.ignorePatterns()
	if err != nil {
		return nil, err
	}
	patterns = append(patterns, sourceignore.ReadPatterns(strings.NewReader(by.Ignore), nil)...)
	matcher := sourceignore.NewDefaultMatcher(nil, nil)
	if len(patterns) > 0 { // patterns replace the defaults, except Git's
		matcher = sourceignore.NewMatcher(append(sourceignore.VCSPatterns(nil), patterns...))
	}
	kept := newTree()
	kept.whole = t
	for name, content := range t.files {
		if !passesLink(t.targets, name) && !matcher.Match(strings.Split(name, "/"), false) {
			kept.files[name], kept.size = content, kept.size+int64(len(content))
		}
	}
	kept.names = slices.Sorted(maps.Keys(kept.files))
	t.byFlux[*by] = kept
	return kept, nil
}

func (t *tree) exclusion(name string) error {
	if t.whole == nil {
		return nil
	}
	_, isFile := t.whole.files[name]
	target, leads := t.whole.outside[name]
	switch {
	case leads:
		return outsideError(name, target)
	case !isFile:
		return nil
	case passesLink(t.whole.targets, name):
		return fmt.Errorf("%q is a symbolic link, or below one, and Flux leaves links out: put the file itself there", name)
	}
	return fmt.Errorf("Flux leaves out %q because of a .sourceignore file or its defaults: include it there", name)
}

// ignorePatterns reads .sourceignore files, outer folders first. Like Flux, it follows links to files only.
func (t *tree) ignorePatterns() ([]gitignore.Pattern, error) {
	var files []string
	for _, name := range t.names {
		if path.Base(name) == sourceignore.IgnoreFile && !passesLink(t.targets, path.Dir(name)) {
			files = append(files, name)
		}
	}
	for name, target := range t.outside {
		if path.Base(name) == sourceignore.IgnoreFile {
			return nil, outsideError(name, target)
		}
	}
	slices.SortFunc(files, func(a, b string) int {
		return slices.Compare(domainOf(a), domainOf(b))
	})
	var patterns []gitignore.Pattern
	for _, name := range files {
		patterns = append(patterns, sourceignore.ReadPatterns(bytes.NewReader(t.files[name]), domainOf(name))...)
	}
	return patterns, nil
}

func domainOf(name string) []string {
	steps := strings.Split(name, "/")
	return steps[:len(steps)-1]
}

// checkOverrides refuses files that change the agent's rendering.
func checkOverrides(t *tree, folder string, overrides []string) error {
	for _, pattern := range overrides {
		full := path.Join(folder, pattern)
		if strings.Contains(pattern, "*") {
			full = t.firstMatch(full)
		}
		_, leads := t.outside[full]
		if _, has := t.files[full]; has || leads {
			return fmt.Errorf(
				"file %s changes what the agent renders, and Flotilla does not read it: remove it, and move its settings into the parameters "+
					"of the manifests", full)
		}
	}
	return nil
}

func (t *tree) firstMatch(pattern string) string {
	for _, name := range slices.Concat(t.names, slices.Sorted(maps.Keys(t.outside))) {
		if matches, _ := path.Match(pattern, name); matches {
			return name
		}
	}
	return ""
}
