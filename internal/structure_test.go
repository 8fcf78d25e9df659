package internal_test

import (
	"bufio"
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	mostFolders      = 10  // below internal
	mostSameName     = 3   // types of one name in all packages
	mostMethods      = 20  // of a type
	mostOfInterface  = 6   // methods of an interface
	mostLines        = 80  // of a function
	mostCharacters   = 140 // of a line
	testsFolder      = "testing"
	generatedMessage = "DO NOT EDIT"
)

// exceptions lists declarations that exceed a bound, with today's figure. It only gets shorter, and its figures only fall.
var exceptions = map[string]int{
	"engine/kinds/kind.go: long lines": 1, // a pattern
}

// TestCodeStaysWithinItsBounds checks the bounds that keep code readable: few folders, names of types that can be searched
// for, small types, interfaces and functions, short lines. Tests and their helpers are not checked.
func TestCodeStaysWithinItsBounds(t *testing.T) {
	named := map[string][]string{}
	methods := map[string]int{}
	used := map[string]bool{}
	report := func(what string, figure, most int) {
		limit, isException := exceptions[what]
		used[what] = used[what] || figure > most
		if figure > max(most, limit) {
			t.Errorf("%s: %d, and at most %d are allowed", what, figure, max(most, limit))
		}
		if isException && figure < limit && figure > most {
			t.Errorf("%s: lower its exception from %d to %d", what, limit, figure)
		}
	}
	eachSource(t, func(folder, path string, content []byte) {
		report(path+": long lines", longLines(content), 0)
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, content, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range file.Decls {
			switch declaration := declaration.(type) {
			case *ast.GenDecl:
				for _, spec := range declaration.Specs {
					if spec, ok := spec.(*ast.TypeSpec); ok {
						named[spec.Name.Name] = append(named[spec.Name.Name], folder)
						if body, ok := spec.Type.(*ast.InterfaceType); ok {
							report(folder+": methods of interface "+spec.Name.Name, body.Methods.NumFields(), mostOfInterface)
						}
					}
				}
			case *ast.FuncDecl:
				name := declaration.Name.Name
				if receiver := receiverOf(declaration); receiver != "" {
					methods[folder+": methods of "+receiver]++
					name = receiver + "." + name
				}
				lines := files.Position(declaration.End()).Line - files.Position(declaration.Pos()).Line + 1
				report(folder+": lines of "+name, lines, mostLines)
			}
		}
	})
	for what, count := range methods {
		report(what, count, mostMethods)
	}
	for name, folders := range named {
		report("types named "+name+", in "+strings.Join(folders, ", "), len(folders), mostSameName)
	}
	for what := range exceptions {
		if !used[what] {
			t.Errorf("%s needs no exception any more", what)
		}
	}
}

// eachSource calls do for each Go file of the provider, without tests, their helpers and generated code.
func eachSource(t *testing.T, do func(folder, path string, content []byte)) {
	t.Helper()
	folders := 0
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		path = filepath.ToSlash(path)
		if entry.IsDir() {
			if path != "." && !strings.Contains(path, "/") && path != "testdata" {
				folders++
			}
			if path == testsFolder || entry.Name() == "testdata" {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		content, err := os.ReadFile(path)
		if err == nil && !bytes.Contains(content, []byte(generatedMessage)) {
			do(filepath.ToSlash(filepath.Dir(path)), path, content)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if folders > mostFolders {
		t.Errorf("internal has %d folders, and at most %d are allowed", folders, mostFolders)
	}
}

func longLines(content []byte) int {
	count := 0
	for scanner := bufio.NewScanner(bytes.NewReader(content)); scanner.Scan(); {
		if utf8.RuneCount(scanner.Bytes()) > mostCharacters {
			count++
		}
	}
	return count
}

// receiverOf returns the name of the type of a method, or "" for a function.
func receiverOf(function *ast.FuncDecl) string {
	if function.Recv == nil {
		return ""
	}
	at := function.Recv.List[0].Type
	for {
		switch of := at.(type) {
		case *ast.StarExpr:
			at = of.X
		case *ast.IndexExpr:
			at = of.X
		case *ast.IndexListExpr:
			at = of.X
		case *ast.Ident:
			return of.Name
		default:
			return ""
		}
	}
}
