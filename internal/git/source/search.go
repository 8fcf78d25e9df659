package source

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// search finds the matching files of a commit.
type search struct {
	tip              *git.Tip
	base             string // the query's path
	include, exclude []pattern
	limits           Limits
	folders          int // read
	bytes            int // of matching paths and their parents

	found     map[string]git.Entry
	elsewhere []string // matching symbolic links and submodules
	unnamed   []string // matching entries with invalid names
	folder    string   // matches an include like a file
}

// maxPaths limits the memory of paths in bytes. Small objects can encode many long paths.
const maxPaths = 64 << 20

// maxFolders limits the walk. A small repository that repeats a tree can have more folders than fit into memory.
const maxFolders = 200_000

type visit struct {
	path string // below the base
	id   git.Hash
}

// find reads folders that may contain matches level by level, with one request for each.
func (s *search) find(ctx context.Context) (map[string]git.Entry, error) {
	root, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	level := []visit{{id: root}}
	for len(level) > 0 {
		if s.folders += len(level); s.folders > maxFolders {
			return nil, &QueryError{
				"include",
				"Too many folders",
				fmt.Sprintf("More than %d folders would have to be searched. Narrow path or include.", maxFolders),
			}
		}
		if err := s.needTrees(ctx, level); err != nil {
			return nil, err
		}
		var below []visit
		for _, at := range level {
			next, err := s.look(at)
			if err != nil {
				return nil, err
			}
			below = append(below, next...)
		}
		level = below
	}
	return s.found, s.check()
}

// needTrees fetches the trees of a level, and all trees below folders that may have matches at any depth.
func (s *search) needTrees(ctx context.Context, level []visit) error {
	var ids, deep []git.Hash
	for _, at := range level {
		ids = append(ids, at.id)
		if slices.ContainsFunc(s.include, func(p pattern) bool { return p.mayMatchDeep(at.path) }) {
			deep = append(deep, at.id)
		}
	}
	if err := s.tip.NeedBelow(ctx, deep, git.MaxDepth); err != nil {
		return err
	}
	return s.tip.Need(ctx, ids)
}

// look collects the matches of a folder and returns the subfolders to read.
func (s *search) look(at visit) ([]visit, error) {
	entries, err := s.tip.Entries(at.id)
	if err != nil {
		return nil, err
	}
	var below []visit
	for _, entry := range entries {
		next := visit{path: path.Join(at.path, entry.Name), id: entry.ID}
		if matching(s.exclude, next.path) != nil {
			continue // excludes everything below, too
		}
		matched := matching(s.include, next.path)
		leads := entry.IsTree() && slices.ContainsFunc(s.include, func(p pattern) bool { return p.mayMatch(next.path) })
		if matched != nil || leads {
			if s.bytes += len(next.path); len(next.path) > maxPath || s.bytes > maxPaths {
				return nil, &QueryError{
					"include",
					"Paths are too long",
					fmt.Sprintf("A path may have %d bytes, and all that match, with the folders that are searched, %d MiB. "+
						"Narrow path or include.", maxPath, maxPaths>>20),
				}
			}
			if !fitsPath(entry.Name) {
				s.unnamed = named(s.unnamed, fmt.Sprintf("%q", next.path))
				continue
			}
		}
		switch {
		case entry.IsTree():
			if matched != nil && s.folder == "" && !strings.HasSuffix(matched.text, anyDepth) {
				s.folder = next.path
			}
			if leads {
				below = append(below, next)
			}
		case matched == nil:
		case !entry.IsFile():
			s.elsewhere = named(s.elsewhere, fmt.Sprintf("%q is %s", next.path, entry.Kind()))
		case len(s.found) == s.limits.Files:
			return nil, &QueryError{
				"limits",
				"Too many files",
				fmt.Sprintf("More than %d files match, which is the limit. Narrow path or include, or raise limits.files.",
					s.limits.Files),
			}
		default:
			s.found[next.path] = entry
		}
	}
	return below, nil
}

// fitsPath reports whether a name is safe in a path. In a result that becomes a file again, a backslash or a control character
// would change its place or control a terminal. git.ParseTree refuses "..".
func fitsPath(name string) bool {
	return wording.IsLine(name) && !strings.Contains(name, "\\")
}

// named adds a name to the list of an error, which stays readable.
func named(names []string, name string) []string {
	if len(names) > 1_000 {
		return names
	}
	return append(names, name)
}

func (s *search) check() error {
	switch {
	case len(s.unnamed) > 0:
		return unreadable("Names cannot be paths", "They have a backslash, a character that is not shown or what is not UTF-8", s.unnamed)
	case len(s.elsewhere) > 0:
		return unreadable("Not a file", "The provider does not read what they lead to", s.elsewhere)
	case len(s.found) > 0:
		return nil
	}
	texts := make([]string, len(s.include))
	for i, p := range s.include {
		texts[i] = fmt.Sprintf("%q", p.text)
	}
	place := "the repository"
	if s.base != "" {
		place = fmt.Sprintf("%q", s.base)
	}
	matches := wording.List(slices.Compact(texts), wording.Named)
	detail := fmt.Sprintf("At commit %s, no file in %s matches %s.", s.tip.Commit, place, matches)
	if s.folder != "" {
		detail += fmt.Sprintf(" %q is a folder: all its files are %q.", s.folder, s.folder+"/**")
	}
	return &QueryError{"include", "No file matches", detail}
}

// enter returns the tree of the query's path.
func (s *search) enter(ctx context.Context) (git.Hash, error) {
	id, at := s.tip.Root, ""
	if s.base == "" {
		return id, nil
	}
	for name := range strings.SplitSeq(s.base, "/") {
		if err := s.tip.Need(ctx, []git.Hash{id}); err != nil {
			return git.Hash{}, err
		}
		entries, err := s.tip.Entries(id)
		if err != nil {
			return git.Hash{}, err
		}
		at = path.Join(at, name)
		if folder := git.Search(entries, name, true); folder != nil {
			id = folder.ID
			continue
		}
		if other := git.Search(entries, name, false); other != nil {
			detail := fmt.Sprintf("%q is %s, but path must be a folder.", at, other.Kind())
			if other.IsFile() {
				detail = fmt.Sprintf(
					"%q is a file, but path must be a folder. For this file alone, set path to its folder, and include to its name.",
					at,
				)
			}
			return git.Hash{}, &QueryError{"path", "Path is not a folder", detail}
		}
		var names []string
		for _, entry := range entries {
			if entry.IsTree() {
				names = append(names, entry.Name)
			}
		}
		return git.Hash{}, &QueryError{"path", "Path does not exist", fmt.Sprintf("The repository has no folder %q at commit %s%s",
			at, s.tip.Commit, wording.DidYouMean(name, names))}
	}
	return id, nil
}

// pattern is a path pattern with the syntax of Terraform's fileset: *, ? and [a-z] within a name, ** for any number of folders,
// {a,b} for alternatives, and \ to escape a character.
type pattern struct {
	text string // as given
	glob string

	// fixed has the segments that match one name each, up to the first that may match several. deep reports whether there is one.
	fixed []string
	deep  bool
}

const (
	maxPatterns   = 256 // including alternatives, which are matched one by one
	maxPatternLen = 4096
	anyDepth      = "**"
)

func parsePatterns(texts []string) ([]pattern, error) {
	patterns, alternatives := make([]pattern, len(texts)), 0
	for i, text := range texts {
		p, count, err := parsePattern(text)
		if err != nil {
			return nil, fmt.Errorf("pattern %q: %w", text, err)
		}
		if alternatives += count; alternatives > maxPatterns {
			return nil, fmt.Errorf("there are more than %d patterns, alternatives in braces counted", maxPatterns)
		}
		patterns[i] = p
	}
	return patterns, nil
}

// parsePattern returns a pattern and the number of its alternatives.
func parsePattern(text string) (pattern, int, error) {
	switch {
	case text == "":
		return pattern{}, 0, errors.New("it is empty")
	case len(text) > maxPatternLen:
		return pattern{}, 0, fmt.Errorf("it is longer than %d bytes", maxPatternLen)
	case strings.HasPrefix(text, "/"):
		return pattern{}, 0, errors.New("it begins with a slash; patterns are relative to path, so remove the slash")
	case !doublestar.ValidatePattern(text):
		return pattern{}, 0, errors.New("a bracket is not closed, a brace is not closed or not opened, or a backslash has nothing after it; " +
			"write \\{ for the character itself")
	}
	p := pattern{text: text, glob: strings.TrimPrefix(text, "./")}
	segments, alternatives := split(p.glob)
	for _, segment := range segments {
		switch {
		case segment == "":
			return pattern{}, 0, errors.New("it ends with a slash, or has two in a row; all files of a folder are folder/**")
		case segment == "." || segment == "..":
			return pattern{}, 0, fmt.Errorf("it has a segment %q", segment)
		case segment != anyDepth && strings.Contains(segment, anyDepth) && !strings.Contains(segment, "{"):
			return pattern{}, 0, errors.New("** must stand alone between slashes, as in **/*.yaml")
		}
		p.deep = p.deep || strings.Contains(segment, anyDepth) || strings.Contains(segment, "/")
		if !p.deep {
			p.fixed = append(p.fixed, segment)
		}
	}
	return p, alternatives, nil
}

// split splits a pattern at slashes outside of braces. alternatives is an upper bound of the combinations in braces.
func split(glob string) (segments []string, alternatives int) {
	alternatives = 1
	var commas []int // of the open braces
	begin := 0
	for i := 0; i < len(glob); i++ {
		depth := len(commas)
		switch glob[i] {
		case '\\':
			i++
		case '{':
			commas = append(commas, 0)
		case ',':
			if depth > 0 {
				commas[depth-1]++
			}
		case '}':
			if depth > 0 {
				alternatives = min(alternatives*(commas[depth-1]+1), maxPatterns+1)
				commas = commas[:depth-1]
			}
		case '/':
			if depth == 0 {
				segments, begin = append(segments, glob[begin:i]), i+1
			}
		}
	}
	return append(segments, glob[begin:]), alternatives
}

// matching returns a pattern that matches a path; nil for none.
func matching(patterns []pattern, path string) *pattern {
	for i := range patterns {
		if doublestar.MatchUnvalidated(patterns[i].glob, path) {
			return &patterns[i]
		}
	}
	return nil
}

// mayMatch reports whether paths below a folder may match; "" is the root.
func (p *pattern) mayMatch(folder string) bool {
	names := strings.FieldsFunc(folder, func(r rune) bool { return r == '/' })
	if !p.deep && len(names) >= len(p.fixed) {
		return false
	}
	n := min(len(names), len(p.fixed))
	return doublestar.MatchUnvalidated(strings.Join(p.fixed[:n], "/"), strings.Join(names[:n], "/"))
}

// mayMatchDeep reports whether paths at any depth below a folder may match.
func (p *pattern) mayMatchDeep(folder string) bool {
	names := 0
	if folder != "" {
		names = strings.Count(folder, "/") + 1
	}
	return p.deep && names >= len(p.fixed) && p.mayMatch(folder)
}
