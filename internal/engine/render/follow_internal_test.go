package render

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

func TestObjectsAreSplitIntoFiles(t *testing.T) {
	t.Parallel()
	var all [][]byte
	for i := range 5 {
		all = append(all, fmt.Appendf(nil, "kind: ConfigMap\nmetadata:\n  name: a%d\n", i))
	}
	sizeOf := func(objects int) int { return len(skipped) + objects*len(all[0]) + (objects-1)*len(separator) }
	for maxFile, want := range map[int]string{
		sizeOf(5): "01234", sizeOf(5) - 1: "0123 4", sizeOf(2): "01 23 4", sizeOf(2) - 1: "0 1 2 3 4", 1: "0 1 2 3 4",
	} {
		var names []string
		parts := joinParts(all, maxFile)
		for _, part := range parts {
			name := ""
			for i := range all {
				if strings.Contains(string(part), string(all[i])) {
					name += fmt.Sprint(i)
				}
			}
			names = append(names, name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("files of at most %d bytes: got objects %s, want %s", maxFile, got, want)
		}
		chart, err := chartFiles(&objects.Chart{Name: "till", Version: "1.0.0"}, parts, parts, "0123456789ab")
		if err != nil {
			t.Fatal(err)
		}
		checkParts(t, kustomizationFiles(parts), "", "kustomization.yaml", "  - %s\n", len(parts), len(all))
		checkParts(t, chart, "charts/rendered/", "charts/rendered/templates/all.yaml", "{{ .Files.Get %q }}\n", len(parts), 2*len(all))
	}
	if got := len(joinParts(nil, 1)); got != 1 {
		t.Errorf("without objects: got %d files, want 1", got)
	}
}

// checkParts checks that each part is a listed file below a folder, and that FormerObjects reads all objects.
func checkParts(t *testing.T, files []AssignmentFile, below, list, entry string, parts, objects int) {
	t.Helper()
	var committed []folder.File
	names, listed := []string{}, ""
	for _, file := range files {
		names = append(names, file.Name)
		committed = append(committed, folder.File{Name: folder.ObjectsFolder + "/" + file.Name, Content: file.Content})
		if file.Name == list {
			listed = string(file.Content)
		}
	}
	for i := range parts {
		name := folder.ObjectsFileAt(i)
		if !slices.Contains(names, below+name) || !strings.Contains(listed, fmt.Sprintf(entry, name)) {
			t.Errorf("file %s is missing in %v, or in the list\n%s", name, names, listed)
		}
	}
	former, err := FormerObjects(committed, nil)
	if err != nil || len(former) != objects {
		t.Errorf("got %d objects, %v, want %d", len(former), err, objects)
	}
}

func TestContainsSecretMatchesItsPattern(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"kind: Secret": true, "KIND : 'SECRET'": true, `"kind": "sEcReT`: true, "kind: \u017fecret": true, "kind: xxe-secre": false, "": false,
	} {
		if got := containsSecret([]byte(text)); got != want || maybeSecret.MatchString(text) != want {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}
