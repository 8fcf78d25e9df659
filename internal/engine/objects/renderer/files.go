package renderer

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// treeFiles are the files of an artifact for kustomize, with one in place of what the artifact has there, or has not.
// Kustomize's own files in memory refuse names that files of a repository have. It says of a link that it leads outside.
// What kustomize never does to build is left to its files in memory, of which there are none.
type treeFiles struct {
	filesys.FileSystem
	tree    *tree
	name    string // of the file in place
	content []byte
}

func newTreeFiles(t *tree, name string, content []byte) treeFiles {
	return treeFiles{filesys.MakeFsInMemory(), t, name, content}
}

// at is a path of kustomize as the tree has it.
func treePath(name string) string {
	clean := strings.TrimPrefix(path.Clean("/"+filepath.ToSlash(name)), "/")
	if clean == "" {
		return "."
	}
	return clean
}

// isFile tells whether there is a file, or a link that leads outside.
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

// CleanedAbs implements filesys.FileSystem.
// It follows links, so that kustomize refuses those that lead out of a folder that it may not leave.
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
