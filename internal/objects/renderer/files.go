package renderer

import (
	"errors"
	"path"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// guarded are the files of an artifact for kustomize. It says of a link that it leads outside.
type guarded struct {
	filesys.FileSystem
	outside map[string]string
}

func (g guarded) ReadFile(name string) ([]byte, error) {
	clean := strings.TrimPrefix(path.Clean("/"+strings.ReplaceAll(name, "\\", "/")), "/")
	if target, leads := g.outside[clean]; leads {
		return nil, outsideError(clean, target)
	}
	return g.FileSystem.ReadFile(name)
}

// fileSystem has all files of the artifact, in memory.
func (t *tree) fileSystem() filesys.FileSystem {
	if t.memory != nil {
		return t.memory
	}
	files := filesys.MakeFsInMemory()
	var mistakes []error
	for _, name := range t.names {
		mistakes = append(mistakes, files.WriteFile("/"+name, t.files[name]))
	}
	for name := range t.outside {
		mistakes = append(mistakes, files.WriteFile("/"+name, nil))
	}
	if err := errors.Join(mistakes...); err != nil {
		panic(err) // files in memory are always written, as their paths are clean
	}
	t.memory = &guarded{files, t.outside}
	return t.memory
}
