package objectstest

import (
	"embed"
	"io/fs"
	"os"
	"strings"
	"testing"
)

//go:embed all:app
var app embed.FS

// App returns the files of a chart like that of `helm create`, by path below prefix.
func App(t testing.TB, name, prefix string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for path, content := range filesOf(t, app) {
		files[prefix+strings.TrimPrefix(path, "app/")] = strings.ReplaceAll(content, "NAME", name)
	}
	return files
}

// Folder reads the files of a folder on disk, by path.
func Folder(t testing.TB, folder string) map[string]string {
	t.Helper()
	return filesOf(t, os.DirFS(folder))
}

func filesOf(t testing.TB, folder fs.FS) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := fs.WalkDir(folder, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(folder, path)
		files[path] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
