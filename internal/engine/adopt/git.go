package adopt

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

// gitParams returns parameters for folders or files, if the documents are the requested repository.
func (m *maker) gitParams(body map[string]any) (all []map[string]any, err error) {
	repo, _ := body["repoURL"].(string)
	if !m.a.repository.mayBeAt(repo) {
		return nil, fmt.Errorf("its generator git reads %q, which is not the repository of the documents", shortened(repo, 80))
	}
	directories, _ := body["directories"].([]any)
	files, _ := body["files"].([]any)
	prefix, _ := body["pathParamPrefix"].(string)
	names, items, matcher := m.a.docs.directories(), directories, matchFolders
	if len(directories) == 0 {
		names, items, matcher = slices.Sorted(maps.Keys(m.a.docs.texts)), files, matchFiles
	}
	included := map[string]bool{}
	for _, isExcluding := range []bool{false, true} {
		for _, item := range items {
			if isExcluded, _ := at(item, "exclude").(bool); isExcluded != isExcluding {
				continue
			}
			matches := matcher(textAt(item, "path"))
			for _, name := range names {
				if err := m.spend(len(name)); err != nil {
					return nil, err
				}
				if matches(name) {
					included[name] = !isExcluding
				}
			}
		}
	}
	maps.DeleteFunc(included, func(_ string, is bool) bool { return !is })
	for _, name := range slices.Sorted(maps.Keys(included)) {
		contents := []map[string]any{{}}
		if len(directories) == 0 {
			if contents, err = m.objectsIn(name); err != nil {
				return nil, err
			}
		}
		for _, params := range contents {
			m.addPath(params, name, prefix, len(directories) == 0)
			if all = append(all, params); len(all) > maxMade {
				return nil, errTooMany
			}
		}
	}
	return all, m.addValues(body, all)
}

// directories returns the folders that Argo CD sees.
func (a *documents) directories() []string {
	found := map[string]bool{}
	for name := range a.texts {
		for at := path.Dir(name); at != "." && at != "/" && !found[at]; at = path.Dir(at) {
			found[at] = true
		}
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(found)), func(folder string) bool {
		return strings.HasPrefix(folder, ".") || strings.Contains(folder, "/.")
	})
}

// matchFolders matches folders as Argo CD does.
func matchFolders(pattern string) func(name string) bool {
	return func(name string) bool {
		matches, err := path.Match(pattern, name)
		return matches && err == nil
	}
}

// matchFiles matches files as Git does: an asterisk includes slashes.
func matchFiles(pattern string) func(name string) bool {
	if !strings.ContainsAny(pattern, `*?[\`) {
		return func(name string) bool { return isBelow(name, path.Clean(pattern)) }
	}
	const slash = "\x00" // path.Match treats it as any other character
	pattern = strings.ReplaceAll(pattern, "/", slash)
	return func(name string) bool { return matchFolders(pattern)(strings.ReplaceAll(name, "/", slash)) }
}

func (m *maker) objectsIn(name string) (all []map[string]any, err error) {
	value, err := fleet.ParseLooseYAML(m.a.docs.texts[name])
	if err != nil {
		return nil, fmt.Errorf("its generator git reads %s, which cannot be read", name)
	}
	list, isList := withFloats(value).([]any)
	if !isList {
		list = []any{withFloats(value)}
	}
	for _, one := range list {
		fields, isObject := one.(map[string]any)
		if !isObject && one != nil {
			return nil, fmt.Errorf("its generator git reads %s, which has something else than objects", name)
		}
		if err := checkNumbers(fields); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if err := m.spend(len(m.a.docs.texts[name])); err != nil {
			return nil, err
		}
		params := map[string]any{}
		if m.isGo {
			maps.Copy(params, fields)
		} else {
			flat := map[string]string{}
			flatten(flat, "", fields)
			for key, value := range flat {
				params[key] = value
			}
		}
		all = append(all, params)
	}
	return all, nil
}

func (m *maker) addPath(params map[string]any, name, prefix string, isFile bool) {
	folder := name
	if isFile {
		folder = path.Dir(name)
	}
	about := map[string]any{"basename": path.Base(folder), "basenameNormalized": normalized(path.Base(folder))}
	if isFile {
		about["filename"], about["filenameNormalized"] = path.Base(name), normalized(path.Base(name))
	}
	segments := strings.Split(folder, "/")
	if m.isGo {
		about["path"], about["segments"] = folder, segments
		if prefix != "" {
			params[prefix] = map[string]any{"path": about}
		} else {
			params["path"] = about
		}
		return
	}
	key := strings.TrimPrefix(prefix+".path", ".")
	params[key] = folder
	for field, value := range about {
		params[key+"."+field] = value
	}
	for i, segment := range segments {
		params[key+"["+strconv.Itoa(i)+"]"] = segment
	}
}
