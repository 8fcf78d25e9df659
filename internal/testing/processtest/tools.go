package processtest

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// Repository returns the root of this repository.
func Repository() (string, error) {
	working, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for folder := working; ; folder = filepath.Dir(folder) {
		if _, err := os.Stat(filepath.Join(folder, "GNUmakefile")); err == nil {
			return folder, nil
		}
		if folder == filepath.Dir(folder) {
			return "", fmt.Errorf("no folder above %s has the GNUmakefile", working)
		}
	}
}

// Tool returns the path of a program that make builds, which may be missing: in the folder of the environment variable, else in
// .tools/bin.
func Tool(variable, name string) (string, error) {
	folder := os.Getenv(variable)
	if folder == "" {
		root, err := Repository()
		if err != nil {
			return "", err
		}
		folder = filepath.Join(root, ".tools", "bin")
	}
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	return filepath.Join(folder, name), nil
}
