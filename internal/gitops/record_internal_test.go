package gitops

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
)

func FuzzParseRecord(f *testing.F) {
	for _, seed := range []string{
		`{"environment":"dev","deployment_targets":{"app":{"workload":"w","deployment_target":"t","policies":["p"],"config_version":"1","tree":"4b825dc642cb6eb9a060e54bf8d69288fbee4904"}}}`,
		`{"deployment_targets":{"../x":{"tree":"4b825dc642cb6eb9a060e54bf8d69288fbee4904"}}}`, `{}`, `null`, `{"deployment_targets":{"a":null}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		record, err := parseRecord(content)
		if err != nil {
			return
		}
		for target, folder := range record.DeploymentTargets {
			if git.CheckName(target) != nil {
				t.Fatalf("target %q", target)
			}
			if _, err := git.ParseID(folder.Tree); err != nil {
				t.Fatal(err)
			}
		}
		encoded := record.encode()
		var b bytes.Buffer
		encoder := json.NewEncoder(&b)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		if record.DeploymentTargets == nil {
			record.DeploymentTargets = map[string]folderRecord{}
		}
		if err := encoder.Encode(record); err != nil || !bytes.Equal(b.Bytes(), encoded) {
			t.Fatalf("encoding/json writes %s, we write %s", b.Bytes(), encoded)
		}
		again, err := parseRecord(encoded)
		if err != nil || len(again.DeploymentTargets) != len(record.DeploymentTargets) {
			t.Fatalf("%s: %v", encoded, err)
		}
	})
}

func TestRecordsAreReadable(t *testing.T) {
	t.Parallel()
	record := hostRecord{Environment: "dev", DeploymentTargets: map[string]folderRecord{
		"hello-world-app-functional-test": {
			Record: Record{Workload: "hello-world-app", DeploymentTarget: "functional-test", Policies: []string{"a<b"}, ConfigVersion: "4f"},
			Tree:   "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
		},
	}}
	want := `{
  "environment": "dev",
  "deployment_targets": {
    "hello-world-app-functional-test": {
      "workload": "hello-world-app",
      "deployment_target": "functional-test",
      "policies": [
        "a<b"
      ],
      "config_version": "4f",
      "tree": "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
    }
  }
}
`
	if got := string(record.encode()); got != want {
		t.Errorf("record = %s", got)
	}
}
