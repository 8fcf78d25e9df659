package forge_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/webtest"

	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
)

// render returns Gitea's HTML of Markdown in the body of a pull request.
func (p *project) render(markdown string) string {
	p.t.Helper()
	in, err := json.Marshal(map[string]any{"Text": markdown, "Mode": "comment", "Context": p.user.Name + "/gitops"})
	if err != nil {
		p.t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(p.t.Context(), "POST", p.server.URL+"/api/v1/markdown", bytes.NewReader(in))
	if err != nil {
		p.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "token "+p.user.Token)
	response, err := webtest.Client.Do(request)
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	html, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		p.t.Fatalf("%s: %s, %v", response.Status, html, err)
	}
	return string(html)
}

func hostileNames(user string) []string {
	return []string{
		"drone", "@" + user, "#1", "!1", "a/b#1", "closes #1", "https://example.com/", "www.example.com",
		"a|b", `a\|b`, `a\`, `\`, "|", "`", "``", "` @" + user + " `", "a``|``b", "`` | | | |", "<b>x</b>", "<!-- x", "-->",
		"<script>alert(1)</script>", "![x](http://example.com/x.png)", "[x](javascript:x)", "**x**", "_x_", "~x~",
		"a\n\n# heading", "a\r\n| b | c | d | e |", "\n/close", "a\u2028b", "\u202eevil", "$x$", "$$x$$", ":smile:", "  ", "",
		"0123456789abcdef0123456789abcdef01234567", "é", "名前", "e\u0301",
	}
}

func TestBodyIsATableOfChanges(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		changes []folder.Change
		want    string
	}{
		"no changes": {nil, "No changes.\n"},
		"one change": {
			[]folder.Change{{Key: folder.Key{Host: "drone", DeploymentTarget: "app-test"}, Action: folder.Added, After: "aa"}},
			"1 deployment target on 1 host: 1 added.\n\n" +
				"| host | deployment target | what | configuration |\n|---|---|---|---|\n" +
				"| `drone` | `app-test` | added | → `aa` |\n",
		},
		"moved folders": {
			[]folder.Change{
				{Key: folder.Key{Host: "new", DeploymentTarget: "a"}, Action: folder.Moved, From: "old|x", Before: "aa", After: "aa"},
				{Key: folder.Key{Host: "new", DeploymentTarget: "b"}, Action: folder.Changed, From: "old|x", Before: "aa", After: "bb"},
			},
			"2 deployment targets on 1 host: 1 changed, 2 moved.\n\n" +
				"| host | deployment target | what | configuration |\n|---|---|---|---|\n" +
				"| `new` | `a` | moved, from `old\\x7cx` | `aa` |\n" +
				"| `new` | `b` | changed, from `old\\x7cx` | `aa` → `bb` |\n",
		},
		"each kind, sorted": {
			[]folder.Change{
				{Key: folder.Key{Host: "large", DeploymentTarget: "b"}, Action: folder.Removed, Before: "aa"},
				{Key: folder.Key{Host: "large", DeploymentTarget: "a"}, Action: folder.Changed, Before: "aa", After: "bb"},
				{Key: folder.Key{Host: "clusters/west|1", DeploymentTarget: "`@x`"}, Action: folder.Changed, Before: "cc", After: "cc"},
				{Key: folder.Key{Host: "drone", DeploymentTarget: "a"}, Action: folder.Added},
			},
			"4 deployment targets on 3 hosts: 1 added, 2 changed, 1 removed.\n\n" +
				"| host | deployment target | what | configuration |\n|---|---|---|---|\n" +
				"| `clusters/west\\x7c1` | `\\x60@x\\x60` | changed | `cc` |\n" +
				"| `drone` | `a` | added |  |\n" +
				"| `large` | `a` | changed | `aa` → `bb` |\n" +
				"| `large` | `b` | removed | `aa` → |\n",
		},
	} {
		if got := forge.Body(test.changes, forge.MaxBody); got != test.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, test.want)
		}
	}
}

func TestBodyCountsTheRowsThatDoNotFit(t *testing.T) {
	t.Parallel()
	count := acceptancetest.Count(2_000, 20_000) // both exceed MaxBody
	var changes []folder.Change
	for i := range count {
		changes = append(changes, folder.Change{
			Key: folder.Key{
				Host:             fmt.Sprintf("cluster-type-%03d", i%500),
				DeploymentTarget: fmt.Sprintf("workload-%05d-target", i),
			}, Action: folder.Added, After: "0123456789abcdef",
		})
	}
	for _, limit := range []int{forge.MaxBody, 3_400, 1_000} {
		body := forge.Body(changes, limit)
		rows := strings.Count(body, "\n| `")
		if len(body) > limit || len(body) < limit*8/10 {
			t.Errorf("got a body of %d bytes with the limit %d", len(body), limit)
		}
		if want := fmt.Sprintf("\nAnd %d more: %d added.\n", count-rows, count-rows); !strings.HasSuffix(body, want) {
			t.Errorf("got a body that ends in %q, want %q", body[len(body)-60:], want)
		}
	}
}

// FuzzBody expects each name to give one row with four cells, and no text outside of code.
func FuzzBody(f *testing.F) {
	for _, name := range hostileNames("person") {
		f.Add(name, "target", "v")
	}
	f.Fuzz(func(t *testing.T, host, target, version string) {
		body := forge.Body(
			[]folder.Change{{Key: folder.Key{Host: host, DeploymentTarget: target}, Action: folder.Changed, Before: version, After: "x" + version}},
			forge.MaxBody,
		)
		if len(body) > forge.MaxBody {
			t.Fatalf("the body has %d bytes", len(body))
		}
		lines := strings.Split(body, "\n")
		if len(lines) != 6 {
			t.Fatalf("got %d lines:\n%s", len(lines), body)
		}
		row := lines[4]
		if strings.Count(row, "|") != 5 {
			t.Fatalf("the row does not have four cells: %s", row)
		}
		if strings.Count(row, "`")%2 != 0 || strings.Contains(row, "``") {
			t.Fatalf("the row has unbalanced code: %s", row)
		}
		outside := ""
		for i, part := range strings.Split(row, "`") {
			if i%2 == 0 {
				outside += part
			}
		}
		if strings.Trim(outside, "| →changed") != "" {
			t.Fatalf("%q is outside of code: %s", outside, row)
		}
	})
}
