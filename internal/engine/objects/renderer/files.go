package renderer

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// treeFiles gives kustomize the files of an artifact with one replaced or added. Kustomize's own refuse some names.
type treeFiles struct {
	filesys.FileSystem
	tree    *tree
	name    string
	content []byte
}

func newTreeFiles(t *tree, name string, content []byte) treeFiles {
	return treeFiles{filesys.MakeFsInMemory(), t, name, content}
}

func treePath(name string) string {
	clean := strings.TrimPrefix(path.Clean("/"+filepath.ToSlash(name)), "/")
	if clean == "" {
		return "."
	}
	return clean
}

func (f treeFiles) isFile(name string) bool {
	_, leads := f.tree.outside[name]
	_, has := f.tree.files[name]
	return has || leads || name == f.name
}

// IsDir implements filesys.FileSystem.
func (f treeFiles) IsDir(name string) bool {
	folder := treePath(name)
	return f.tree.isFolder(folder) || strings.HasPrefix(f.name, folder+"/")
}

// Exists implements filesys.FileSystem.
func (f treeFiles) Exists(name string) bool { return f.isFile(treePath(name)) || f.IsDir(name) }

// CleanedAbs implements filesys.FileSystem. It follows links, so that kustomize refuses those out of its folder.
func (f treeFiles) CleanedAbs(name string) (filesys.ConfirmedDir, string, error) {
	clean := f.tree.realPath(treePath(name))
	switch {
	case f.IsDir(clean):
		return filesys.ConfirmedDir(path.Join("/", clean)), "", nil
	case f.isFile(clean):
		return filesys.ConfirmedDir(path.Join("/", path.Dir(clean))), path.Base(clean), nil
	}
	return "", "", f.tree.missingFile(clean)
}

// ReadFile implements filesys.FileSystem.
func (f treeFiles) ReadFile(name string) ([]byte, error) {
	clean := treePath(name)
	switch {
	case clean == f.name:
		return f.content, nil
	case f.IsDir(name):
		return nil, fmt.Errorf("%q is a folder", clean)
	}
	return f.tree.read(clean)
}
