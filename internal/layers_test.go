package internal_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// groups lists the groups of packages. Each may import itself and the groups after it.
var groups = []string{"provider", "views", "cluster", "delivery", "rollout", "engine", "git", "shared"}

const module = "github.com/flotilla/terraform-provider-flotilla/internal/"

func TestGroupsImportOnlyGroupsBelow(t *testing.T) {
	seen := map[string]bool{}
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		group, _, isInGroup := strings.Cut(filepath.ToSlash(path), "/")
		if !isInGroup || group == "testing" {
			return nil
		}
		own := slices.Index(groups, group)
		if own < 0 {
			t.Errorf("%s is in no group", path)
			return nil
		}
		seen[group] = true
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			name, isOurs := strings.CutPrefix(imported, module)
			if !isOurs {
				continue
			}
			other, _, _ := strings.Cut(name, "/")
			if slices.Index(groups, other) < own {
				t.Errorf("%s imports %s: %s is not below %s", path, name, other, group)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(seen) != len(groups) {
		t.Errorf("found packages in the groups %v only", seen)
	}
}
