package forge_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
)

var update = flag.Bool("update", false, "write the table of permissions into the guide")

func TestTheGuideHasTheRightsOfTokens(t *testing.T) {
	t.Parallel()
	const guide, begin, end = "../../../templates/guides/delivery.md", "<!-- rights -->\n", "<!-- end of rights -->"
	text, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatal("the guide has no place for the table")
	}
	want := before + begin + rightsTable() + end + after
	if *update {
		err = os.WriteFile(guide, []byte(want), 0o666)
	} else if string(text) != want {
		t.Error("the table in the guide is not of this code: run go test ./internal/git/forge -run Rights -update")
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range forge.Kinds() {
		if len(kind.Tokens) == 0 {
			t.Errorf("%s has no rights of tokens", kind.Title)
		}
	}
}

// rightsTable returns a Markdown table of all kinds.
func rightsTable() string {
	var table strings.Builder
	table.WriteString("| Git host: token | read | push | pull requests | commit statuses, feedback |\n|---|---|---|---|---|\n")
	for _, kind := range forge.Kinds() {
		for _, r := range kind.Tokens {
			table.WriteString("| " + kind.Title + ": " + strings.Join([]string{r.Token, r.Read, r.Push, r.Request, r.Status}, " | ") + " |\n")
		}
	}
	return table.String()
}
