package provider

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-log/tflogtest"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
)

func TestLogRecordsRepositoryOperations(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	ctx := tflogtest.RootLogger(t.Context(), &log)
	client := git.NewConnector(git.ConnectorOptions{Log: logDebug})
	remote := git.Remote{
		URL:         filepath.Join(t.TempDir(), "r.git"),
		Branch:      "main",
		Credentials: git.Credentials{Login: git.Login{Token: "canary"}},
	}
	if err := client.Create(ctx, remote); err != nil {
		t.Fatal(err)
	}
	client.Log(ctx, remote, "something with canary in a field", map[string]any{"field": "canary", "number": 3})
	lines, err := tflogtest.MultilineJSONDecode(&log)
	if err != nil {
		t.Fatal(err)
	}
	if len(lines) != 2 || lines[0]["@level"] != "debug" || lines[0]["branch"] != "main" || lines[0]["repository"] != remote.URL {
		t.Fatalf("got log %v, want two lines of level debug with branch and repository", lines)
	}
	if field, ok := lines[1]["field"].(string); !ok || strings.Contains(field, "canary") {
		t.Errorf("the log contains the token: %v", lines[1])
	}
}
