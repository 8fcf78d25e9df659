package render

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// RelocatePointers rewrites the objects that follow their folder's final objects, after the folder moves. Other files stay
// unchanged.
func RelocatePointers(files []folder.File, from, to folder.Location) (relocated []folder.File, isSame bool) {
	isSame = true
	for i, file := range files {
		content, changed := relocate(file, from, to)
		if !changed {
			continue
		}
		if isSame {
			relocated, isSame = slices.Clone(files), false
		}
		relocated[i].Content = content
	}
	if isSame {
		return files, true
	}
	return relocated, false
}

func relocate(file folder.File, from, to folder.Location) (content []byte, changed bool) {
	if !mayFollow(file) {
		return nil, false
	}
	content, err := rewriteDocuments(file.Content, func(document *yaml.Node) error {
		return eachFollower(document, func(spec *yaml.Node, fields *reconciler.Final, of follower) error {
			below, isOwn := strings.CutPrefix(of.path, path.Join(from.Path, folder.ObjectsFolder))
			if !isOwn || below != "" && below[0] != '/' {
				return nil
			}
			set := func(at, was, now string) error {
				if at == "" || was == now {
					return nil
				}
				changed = true
				return setField(spec, at, now)
			}
			if err := set(fields.Path, of.prefix+of.path, of.prefix+path.Join(to.Path, folder.ObjectsFolder)+below); err != nil {
				return err
			}
			if fields.Branch == "" {
				return nil
			}
			if of.repository == from.URL {
				if err := set(fields.Repository, of.repository, to.URL); err != nil {
					return err
				}
			}
			return set(fields.Branch, of.branch, to.Branch)
		})
	})
	return content, err == nil && changed
}

// CheckPointers refuses objects that follow another path, branch or repository. The reconciler's own file may name the
// repository differently (gitops_repository).
func CheckPointers(files []folder.File, at folder.Location) error {
	hasObjects := slices.ContainsFunc(files, func(file folder.File) bool { return folder.IsInObjectsFolder(file.Name) })
	if !hasObjects {
		return nil
	}
	want := path.Join(at.Path, folder.ObjectsFolder)
	repositories := []string{at.URL}
	for _, file := range files {
		if file.Name != reconcilerFile {
			continue
		}
		err := eachPointer(file, func(_ *reconciler.Final, of follower) error {
			repositories = append(repositories, of.repository)
			return nil
		})
		if err != nil {
			return err
		}
	}
	for _, file := range files {
		err := eachPointer(file, func(fields *reconciler.Final, of follower) error {
			switch {
			case of.path != want:
				return fmt.Errorf("%s: it follows %q, and its final objects are at %q", file.Name, of.path, want)
			case fields.Branch != "" && of.branch != at.Branch:
				return fmt.Errorf("%s: it follows branch %q, and its final objects are on branch %q", file.Name, of.branch, at.Branch)
			case fields.Repository != "" && !slices.Contains(repositories, of.repository):
				return fmt.Errorf("%s: it follows repository %q, and its final objects are in %q", file.Name, of.repository, at.URL)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func eachPointer(file folder.File, do func(fields *reconciler.Final, of follower) error) error {
	if !mayFollow(file) {
		return nil
	}
	_, err := rewriteDocuments(file.Content, func(document *yaml.Node) error {
		return eachFollower(document, func(_ *yaml.Node, fields *reconciler.Final, of follower) error {
			if !strings.HasSuffix(of.path, "/"+folder.ObjectsFolder) {
				return nil
			}
			return do(fields, of)
		})
	})
	return err
}

func mayFollow(file folder.File) bool {
	extension := path.Ext(file.Name)
	return (extension == ".yaml" || extension == ".yml") && !strings.Contains(file.Name, "/") &&
		bytes.Contains(file.Content, []byte("/"+folder.ObjectsFolder))
}

// follower is the pointer of an object to final objects.
type follower struct {
	prefix, path       string // "./" or "", and the path without it
	repository, branch string
}

func eachFollower(document *yaml.Node, do func(spec *yaml.Node, fields *reconciler.Final, of follower) error) error {
	if len(document.Content) == 0 {
		return nil
	}
	root := document.Content[0]
	kind := member(root, "kind")
	if kind == nil {
		return nil
	}
	fields, at := reconciler.FinalOfKind(kind.Value)
	if fields == nil {
		return nil
	}
	spec := nodeAt(root, at)
	text := func(at string) string {
		if at == "" {
			return ""
		}
		if node := nodeAt(spec, at); node != nil && node.Kind == yaml.ScalarNode {
			return node.Value
		}
		return ""
	}
	of := follower{path: text(fields.Path), repository: text(fields.Repository), branch: text(fields.Branch)}
	if rest, isRelative := strings.CutPrefix(of.path, "./"); isRelative {
		of.prefix, of.path = "./", rest
	}
	if spec == nil || of.path == "" {
		return nil
	}
	return do(spec, fields, of)
}

func nodeAt(mapping *yaml.Node, at string) *yaml.Node {
	for step := range strings.SplitSeq(at, ".") {
		if mapping == nil || mapping.Kind != yaml.MappingNode {
			return nil
		}
		mapping = member(mapping, step)
	}
	return mapping
}
