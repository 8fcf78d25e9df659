package access_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// connecting are the functions, types and values that open connections, by import path.
var connecting = map[string][]string{
	"net/http":                    {"Client", "Transport", "DefaultClient", "DefaultTransport", "Get", "Head", "Post", "PostForm"},
	"net":                         {"Dial", "DialTimeout", "DialTCP", "DialUDP", "DialUnix", "DialIP", "Dialer"},
	"crypto/tls":                  {"Dial", "DialWithDialer", "Dialer"},
	"golang.org/x/crypto/ssh":     {"Dial", "NewClientConn"},
	"k8s.io/client-go/rest":       {"Config", "HTTPClientFor", "RESTClientFor", "TransportFor"},
	"github.com/go-git/go-git/v5": {"Clone", "CloneContext", "PlainClone", "PlainCloneContext", "NewRemote"},
	"oras.land/oras-go/v2/registry/remote/auth": {"Client", "DefaultClient"},
	"oras.land/oras-go/v2/registry/remote":      {"NewRepository", "NewRegistry"},
}

// connections lists the files of the product that open connections. decides is the file that asks Decide about their requests;
// "" means that there is nothing to decide, for the reason in why.
var connections = map[string]struct{ decides, why string }{
	"internal/engine/artifact/origin/web.go":      {"internal/engine/artifact/origin/web.go", "chart repositories and registries"},
	"internal/engine/artifact/origin/registry.go": {"internal/engine/artifact/origin/web.go", "registries"},
	"internal/shared/bounded/bounded.go":          {"", "the transport below the others, and Guarded, which asks IsPublic"},
	"internal/git/forge/forge.go":                 {"internal/git/forge/transport.go", "APIs of Git hosts"},
	"internal/git/forge/github_app.go":            {"internal/git/forge/transport.go", "tokens of GitHub Apps"},
	"internal/git/wire.go":                        {"internal/git/http.go", "Git over http"},
	"internal/git/ssh.go":                         {"internal/git/wire.go", "Git over ssh"},
	"internal/cluster/kube/kube.go":               {"internal/cluster/kube/kube.go", "clusters, by kubeconfig or by attributes"},
	"internal/cluster/measure/measure.go":         {"internal/provider/provider_credentials.go", "Prometheus and web servers"},
	"internal/engine/objects/renderer/worker.go":  {"", "a transport that refuses every request"},
}

// testOnly lists folders that the product does not import.
var testOnly = []string{
	"acceptancetest",
	"e2e",
	"giteatest",
	"gittest",
	"kubetest",
	"postgrestest",
	"processtest",
	"prometheustest",
	"providertest",
	"reliabilitytest",
}

// TestEveryConnectionIsDecided fails if the product opens connections without asking Decide.
func TestEveryConnectionIsDecided(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "..")
	opening, deciding := map[string][]string{}, map[string]bool{}
	err := filepath.WalkDir(filepath.Join(root, "internal"), func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (slices.Contains(testOnly, entry.Name()) || strings.HasSuffix(entry.Name(), "test") && entry.Name() != "internal"):
			return fs.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		imports := map[string]string{}
		for _, spec := range file.Imports {
			at := strings.Trim(spec.Path.Value, `"`)
			local := at[strings.LastIndex(at, "/")+1:]
			if spec.Name != nil {
				local = spec.Name.Name
			}
			imports[local] = at
		}
		ast.Inspect(file, func(node ast.Node) bool {
			if _, isPointer := node.(*ast.StarExpr); isPointer { // the type of a value made elsewhere
				return false
			}
			selector, ok := node.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if selector.Sel.Name == "Decide" {
				deciding[name] = true
			}
			if from, ok := selector.X.(*ast.Ident); ok && slices.Contains(connecting[imports[from.Name]], selector.Sel.Name) {
				opening[name] = append(opening[name], fmt.Sprintf("%s.%s", from.Name, selector.Sel.Name))
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, what := range opening {
		if _, listed := connections[name]; !listed {
			t.Errorf("%s opens connections (%s): let access.Decide decide about its requests, and list it here", name, strings.Join(what, ", "))
		}
	}
	for name, one := range connections {
		if len(opening[name]) == 0 {
			t.Errorf("%s opens no connections any more: take it off the list", name)
		}
		if one.decides != "" && !deciding[one.decides] {
			t.Errorf("%s, which is about the requests of %s, does not call Decide", one.decides, name)
		}
	}
}
