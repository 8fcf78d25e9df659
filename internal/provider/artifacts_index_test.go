package provider_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// indexAt is a chart repository that has one index.yaml, and sends it compressed to those who take that.
func serveIndex(t *testing.T, index string) (url string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/index.yaml":
			http.NotFound(w, r)
		case strings.Contains(r.Header.Get("Accept-Encoding"), "gzip"):
			w.Header().Set("Content-Encoding", "gzip")
			writer := gzip.NewWriter(w)
			_, _ = io.WriteString(writer, index)
			_ = writer.Close()
		default:
			_, _ = io.WriteString(w, index)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// Whatever an index.yaml unpacks to, the plan ends with an error soon, and a test of package origin holds how much memory that takes.
func TestAnIndexThatIsABombIsAnErrorOfThePlan(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ index, want string }{
		"few bytes sent":   {"entries:\n  till:\n  - version: 1.0.0\n    x: [" + strings.Repeat("a,", 33<<19) + "a]\n", "its index.yaml has more than 32 MiB"},
		"one version":      {"entries:\n  till:\n  - version: 1.0.0\n    x: [" + strings.Repeat("a,", 400<<10) + "a]\n", "the entry in line 3 has more than 256 KiB"},
		"many versions":    {"entries:\n  till:\n" + strings.Repeat("  - version: 1.0.0\n", 21_000), "more than 20000 charts, or versions of one"},
		"no lines":         {"entries: {till: [" + strings.Repeat("{version: 1.0.0},", 20<<10) + "]}\n", "neither JSON nor divided into lines as `helm repo index` divides it (line 1)"},
		"a list of a list": {"entries:\n  till:\n" + strings.Repeat("  - - a\n", 19_000) + "# " + strings.Repeat("a", 256<<10) + "\n", "the entry in line 3 cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo := serveIndex(t, test.index)
			_, said := readArtifacts(t, map[string]any{"workloads": tillWorkloads(repo, "1.x")})
			if said = strings.Join(strings.Fields(said), " "); !strings.Contains(said, test.want) || !strings.Contains(said, repo) ||
				len(said) > 2000 {
				t.Errorf("said is %s, want %q", said, test.want)
			}
		})
	}
}

// A large index is divided by its lines, or as JSON, and pins are found in it as in a small one.
func TestPinsAreFoundInALargeIndex(t *testing.T) {
	t.Parallel()
	var lines, json strings.Builder
	lines.WriteString("apiVersion: v1\nentries:\n")
	json.WriteString(`{"apiVersion":"v1","entries":{`)
	for i, name := range []string{"app", "till", "web"} {
		fmt.Fprintf(&lines, "  %s:\n", name)
		fmt.Fprintf(&json, "%s%q:[", strings.Repeat(",", min(i, 1)), name)
		for version := range 1000 {
			digest := fmt.Sprintf("%064d", version+1)
			fmt.Fprintf(
				&lines,
				"  - description: |\n      A chart\n\n      entries:\n    digest: %s\n    urls:\n    - %s.tgz\n    version: 1.2.%d\n",
				digest,
				name,
				version,
			)
			fmt.Fprintf(
				&json,
				`%s{"description":"A chart","digest":%q,"urls":["%s.tgz"],"version":"1.2.%d"}`,
				strings.Repeat(",", min(version, 1)),
				digest,
				name,
				version,
			)
		}
		json.WriteString("]")
	}
	json.WriteString("}}")
	for name, index := range map[string]string{"lines": lines.String(), "JSON": json.String() + strings.Repeat(" ", 256<<10)} {
		read, said := readArtifacts(t, map[string]any{"workloads": tillWorkloads(serveIndex(t, index), "<1.2.900")})
		pins, _ := read["pins"].(map[string]any)
		pin, _ := pins["till-edge"].(map[string]any)
		if pin["version"] != "1.2.899" || pin["digest"] != fmt.Sprintf("sha256:%064d", 900) ||
			fmt.Sprint(read["newest"]) != "map[till-edge:1.2.999 till-live:1.2.999]" {
			t.Errorf("%s of %d KiB: the pin is %v, newest is %v; said is %s", name, len(index)>>10, pin, read["newest"], said)
		}
	}
}
