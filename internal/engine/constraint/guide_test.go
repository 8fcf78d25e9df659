package constraint_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/constraint"
)

var update = flag.Bool("update", false, "rewrite the tables of the guide")

// TestGuideHasEveryVariableFieldAndFunction compares the guide's tables with the code.
func TestGuideHasEveryVariableFieldAndFunction(t *testing.T) {
	t.Parallel()
	path := filepath.Join("..", "..", "..", "templates", "guides", "reference-observing.md.tmpl")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := string(content)
	for name, rows := range map[string][]string{
		"variables": append([]string{"| variable | type | what it is |", "|---|---|---|"}, constraint.VariableRows()...),
		"fields":    append([]string{"| field | type | what it is |", "|---|---|---|"}, constraint.FieldRows()...),
		"functions": append([]string{"| group | functions |", "|---|---|"}, functionRows()...),
		"limits":    append([]string{"| what | at most |", "|---|---|"}, limitRows()...),
	} {
		begin, end := "<!-- "+name+" -->\n", "<!-- /"+name+" -->"
		before, rest, found := strings.Cut(want, begin)
		_, after, ended := strings.Cut(rest, end)
		if !found || !ended {
			t.Fatalf("%s has no place for the table of %s", path, name)
		}
		want = before + begin + strings.Join(rows, "\n") + "\n" + end + after
	}
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if want != string(content) {
		t.Errorf("%s is out of date: run go test ./internal/engine/constraint -run Guide -update, and make docs", path)
	}
}

func functionRows() []string {
	rows := make([]string, len(groups))
	for i, group := range groups {
		names := slices.Clone(group.functions)
		for k, name := range names {
			names[k] = "`" + name + "`"
		}
		rows[i] = fmt.Sprintf("| [%s](%s) | %s |", group.name, group.link, strings.Join(names, ", "))
	}
	return rows
}

func limitRows() []string {
	return []string{
		fmt.Sprintf("| characters of an expression | %d |", constraint.MaxExpression),
		fmt.Sprintf("| cost of one evaluation | %d |", constraint.MaxCost),
		fmt.Sprintf("| cost of a rule over the whole fleet | %d |", constraint.MaxFleetCost),
		fmt.Sprintf("| bytes of a message that `message_expression` gives | %d |", constraint.MaxMessage),
		fmt.Sprintf("| violations of a rule that are listed; all are counted | %d |", constraint.MaxListed),
	}
}
