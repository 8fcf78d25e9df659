package troubleshooting_test

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the list of titles")

// TestEachTitleHasASectionInTheGuide compares the summaries in the code with the sections of the guide on troubleshooting. -update writes
// the provider's list of titles.
func TestEachTitleHasASectionInTheGuide(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../../templates/guides/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(guide), "\n## Removals and protection\n") // skips the questions
	sections := map[string]string{}
	var title string
	for line := range strings.Lines(after) {
		if heading, isSection := strings.CutPrefix(line, "### "); isSection {
			if title = strings.TrimSpace(heading); sections[title] != "" {
				t.Errorf("the guide has two sections %q", title)
			}
			sections[title] = " "
		} else if title != "" && !strings.HasPrefix(line, "#") {
			sections[title] += line
		}
	}
	inCode := summaries(t)
	inCode["Invalid attribute"] = "the title of attributes without their own section"
	if len(inCode) < 150 {
		t.Errorf("only %d summaries were found", len(inCode))
	}
	for _, summary := range slices.Sorted(maps.Keys(inCode)) {
		if sections[summary] == "" {
			t.Errorf("%s: the guide has no section %q", inCode[summary], summary)
		}
	}
	for _, section := range slices.Sorted(maps.Keys(sections)) {
		if inCode[section] == "" {
			t.Errorf("the guide's section %q is about no summary in the code", section)
		}
		if len(strings.TrimSpace(sections[section])) < 20 {
			t.Errorf("the guide's section %q says nothing", section)
		}
	}
	list := strings.Join(slices.Sorted(maps.Keys(sections)), "\n") + "\n"
	if *update {
		if err := os.WriteFile("titles.txt", []byte(list), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if known, err := os.ReadFile("titles.txt"); err != nil || string(known) != list {
		t.Errorf("titles.txt differs from the guide (%v): run the test with -update", err)
	}
}

// titleForm matches summaries: words without a full stop or a colon.
var titleForm = regexp.MustCompile(`^[A-Z][A-Za-z0-9 _'-]+$`)

// reporters maps functions to the position of the summary in their arguments. Functions with a prefix of reporterPrefixes, in packages
// without Terraform, have it at any position. summaryTypes are the types with a summary.
var (
	reporters = map[string]int{
		"AddError": 0, "AddWarning": 0, "AddAttributeError": 1, "AddAttributeWarning": 1, "AddFindings": 2, "AddErrorf": 2, "AddWarningf": 2,
		"addAll": 0, "Error": 2, "Warning": 2, "NewAttributeErrorDiagnostic": 1, "unreadable": 0, "KindOf": 1,
		"newError": 1, "newWarning": 1,
	}
	reporterPrefixes = regexp.MustCompile(`^(add|warn|join|report)`)
	summaryTypes     = map[string]bool{"Kind": true, "PlanProblem": true, "Problem": true, "Refusal": true, "Error": true, "QueryError": true, "Finding": true}
)

// summaries returns the summaries in the code, each with a position.
func summaries(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, folder := range []string{"..", "../../engine/pipeline", "../../delivery", "../../rollout", "../../git/source"} {
		err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, path, nil, 0)
			if err != nil {
				return err
			}
			addSummaries := func(position int, arguments ...ast.Expr) {
				for i, argument := range arguments {
					if field, isField := argument.(*ast.KeyValueExpr); isField {
						if name, isName := field.Key.(*ast.Ident); !isName || name.Name != "Summary" {
							continue
						}
						argument = field.Value
					} else if position >= 0 && i != position {
						continue
					}
					if literal, isLiteral := argument.(*ast.BasicLit); isLiteral && literal.Kind == token.STRING {
						if text, _ := strconv.Unquote(literal.Value); titleForm.MatchString(text) {
							found[text] = files.Position(literal.Pos()).String()
						}
					}
				}
			}
			ast.Inspect(file, func(node ast.Node) bool {
				switch node := node.(type) {
				case *ast.CallExpr:
					position, isReporter := reporters[nameOf(node.Fun)]
					if !isReporter && reporterPrefixes.MatchString(nameOf(node.Fun)) {
						position, isReporter = -1, true
					}
					if isReporter {
						addSummaries(position, node.Args...)
					}
				case *ast.CompositeLit:
					if node.Type == nil || summaryTypes[nameOf(node.Type)] || isList(node.Type) {
						addSummaries(-1, node.Elts...)
					} else if nameOf(node.Type) != "Definition" { // of a function
						addSummaries(len(node.Elts), node.Elts...) // only fields with the name Summary
					}
				case *ast.ValueSpec:
					for i, name := range node.Names {
						if strings.HasSuffix(name.Name, "Summary") && i < len(node.Values) {
							addSummaries(0, node.Values[i])
						}
					}
				case *ast.AssignStmt:
					for i, to := range node.Lhs {
						if name := nameOf(to); (name == "Summary" || name == "summary" || name == "kind") && len(node.Lhs) == len(node.Rhs) {
							addSummaries(0, node.Rhs[i])
						}
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}

func nameOf(expression ast.Expr) string {
	switch expression := expression.(type) {
	case *ast.SelectorExpr:
		return expression.Sel.Name
	case *ast.Ident:
		return expression.Name
	}
	return ""
}

func isList(expression ast.Expr) bool {
	list, ok := expression.(*ast.ArrayType)
	return ok && summaryTypes[nameOf(list.Elt)]
}
