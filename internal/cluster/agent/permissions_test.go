package agent_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/agenttest"
)

var update = flag.Bool("update", false, "write the table of permissions into the guide")

// The table of permissions in the guide equals the generated table. Tests in internal/provider prove the permissions with a real API.
func TestTheGuideListsThePermissions(t *testing.T) {
	const guide, begin = "../../../templates/guides/reference-observing.md.tmpl", "| agent | for | API group | resource | verbs | in a |\n"
	text, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	before, after, found := strings.Cut(string(text), begin)
	if !found {
		t.Fatal("the guide has no table of permissions")
	}
	_, after, _ = strings.Cut(after, "\n\n")
	want := before + agenttest.PermissionsTable() + "\n" + after
	if *update {
		if err := os.WriteFile(guide, []byte(want), 0o666); err != nil {
			t.Fatal(err)
		}
	} else if string(text) != want {
		t.Error("the table of permissions is out of date: run go test ./internal/cluster/agent -run Permissions -update")
	}
}
