package renderer

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/sourceignore"
	"github.com/fluxcd/pkg/sourceignore/gitignore"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
)

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
				"file %s changes what the agent renders, and Flotilla does not read it: remove it, and put what it sets into the parameters "+
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
