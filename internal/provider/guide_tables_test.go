package provider_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

// guideRow is a row of a table in a guide, with the test of its statements.
type guideRow struct {
	cells string // "plan | an error"
	play  func(t *testing.T)
}

// playTable checks that a guide has exactly this table, and runs the test of each row.
func playTable(t *testing.T, guide, head string, rows []guideRow) {
	t.Helper()
	var table strings.Builder
	table.WriteString("\n| " + head + " |\n|" + strings.Repeat("---|", strings.Count(head, "|")+1) + "\n")
	for _, row := range rows {
		table.WriteString("| " + row.cells + " |\n")
		name, _, _ := strings.Cut(row.cells, " |")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			row.play(t)
		})
	}
	if !strings.Contains(guideText(t, guide), table.String()+"\n") {
		t.Errorf("%s lacks this tested table:\n%s", guide, table.String())
	}
}

type guideTable struct {
	head string // "operation | effect"
	rows []string
}

func guideTables(page string) (tables []guideTable) {
	isTable := false
	for line := range strings.Lines(codePattern.ReplaceAllString(page, "")) {
		row, isRow := strings.CutPrefix(strings.TrimSpace(line), "|")
		row = strings.TrimPrefix(strings.TrimSuffix(row, "|"), " ")
		switch {
		case isRow && !isTable:
			tables = append(tables, guideTable{head: strings.TrimSuffix(row, " ")})
		case isRow && !strings.HasPrefix(row, "--"):
			last := &tables[len(tables)-1]
			last.rows = append(last.rows, row)
		}
		isTable = isRow
	}
	return tables
}

func guideTableOf(t *testing.T, guide, head string) guideTable {
	t.Helper()
	for _, table := range guideTables(readDocumentation(t)["docs/guides/"+guide]) {
		if table.head == head {
			return table
		}
	}
	t.Fatalf("%s has no table %q", guide, head)
	return guideTable{}
}

// TestEveryTableOfTheGuidesIsChecked requires an entry in testdata/tables.txt for each table: a line with guide and head, then
// an indented line with the names of tests, or with "no test:" and the reason.
func TestEveryTableOfTheGuidesIsChecked(t *testing.T) {
	t.Parallel()
	known, listed, key := testNames(t), map[string]bool{}, ""
	for line := range strings.Lines(readFile(t, filepath.Join("testdata", "tables.txt"))) {
		text := strings.TrimSpace(line)
		switch {
		case text == "" || strings.HasPrefix(line, "#"):
		case !strings.HasPrefix(line, "\t"):
			if key = text; listed[key] {
				t.Errorf("testdata/tables.txt has %q twice", key)
			}
			listed[key] = false
		case strings.HasPrefix(text, "no test: "):
			listed[key] = true
		default:
			for name := range strings.FieldsSeq(text) {
				if listed[key] = true; !known[name] {
					t.Errorf("test %s of %s does not exist", name, key)
				}
			}
		}
	}
	found := map[string]bool{}
	for name, page := range readDocumentation(t) {
		guide, isGuide := strings.CutPrefix(name, "docs/guides/")
		for _, table := range guideTables(page) {
			key := strings.TrimSpace(guide + ": " + table.head)
			if found[key] = true; isGuide && !listed[key] {
				t.Errorf("testdata/tables.txt names no test for the table\n%s", key)
			}
		}
	}
	for key := range listed {
		if !found[key] {
			t.Errorf("no guide has the table of testdata/tables.txt\n%s", key)
		}
	}
}

func TestTablesOfAGuideAreFound(t *testing.T) {
	t.Parallel()
	got := guideTables("text\n\n|  | b |\n|---|---|\n| 1 | 2 |\n| 3 |  |\n\n```\n| no | table |\n```\n| c |\n|---|\n")
	want := []guideTable{{" | b", []string{"1 | 2 ", "3 |  "}}, {"c", nil}}
	if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		t.Errorf("got %q", got)
	}
}

func TestTheGuidesNameEveryVerdict(t *testing.T) {
	t.Parallel()
	for guide, head := range map[string]string{"reference-observing.md": "verdict | meaning", "observe.md": "verdict | points"} {
		var names []string
		for _, row := range guideTableOf(t, guide, head).rows {
			name, _, _ := strings.Cut(row, " | ")
			names = append(names, name)
		}
		for _, status := range verdict.All {
			if !slices.Contains(names, "`"+string(status)+"`") || len(names) != len(verdict.All) {
				t.Errorf("%s has the verdicts %q", guide, names)
			}
		}
	}
}

var credentialVariable = regexp.MustCompile(`"(FLOTILLA_(?:GIT|SSH|SIGNING|MEASUREMENTS)[A-Z_]*)"`)

func TestTheGuideNamesEveryCredentialVariable(t *testing.T) {
	t.Parallel()
	table := strings.Join(guideTableOf(t, "secrets.md", "attribute | variable").rows, "\n")
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, source := range sources {
		if strings.HasSuffix(source, "_test.go") {
			continue
		}
		for _, match := range credentialVariable.FindAllStringSubmatch(readFile(t, source), -1) {
			if !strings.HasSuffix(match[1], "_") {
				found[match[1]] = true
				continue
			}
			for _, key := range []string{"TOKEN", "USERNAME", "PASSWORD"} {
				found[match[1]+key] = true
			}
		}
	}
	for name := range found {
		if !strings.Contains(table, "`"+name+"`") {
			t.Errorf("the table does not name %s", name)
		}
	}
	if listed := strings.Count(table, "`FLOTILLA_"); listed != len(found) {
		t.Errorf("the table has %d variables, and the code %d", listed, len(found))
	}
}
