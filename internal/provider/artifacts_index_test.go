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

// serveIndex serves an index.yaml, compressed if the client accepts that.
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

// A test of package origin bounds the memory.
func TestAnIndexBombIsAnErrorOfThePlan(t *testing.T) {
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
			_, message := readArtifacts(t, map[string]any{"workloads": tillWorkloads(repo, "1.x")})
			if message = strings.Join(strings.Fields(message), " "); !strings.Contains(message, test.want) || !strings.Contains(message, repo) ||
				len(message) > 2000 {
				t.Errorf("got %s, want %q", message, test.want)
			}
		})
	}
}

// A large index is divided by lines, or is JSON.
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
		read, message := readArtifacts(t, map[string]any{"workloads": tillWorkloads(serveIndex(t, index), "<1.2.900")})
		pins, _ := read["pins"].(map[string]any)
		pin, _ := pins["till-edge"].(map[string]any)
		if pin["version"] != "1.2.899" || pin["digest"] != fmt.Sprintf("sha256:%064d", 900) ||
			fmt.Sprint(read["newest"]) != "map[till-edge:1.2.999 till-live:1.2.999]" {
			t.Errorf("%s of %d KiB: the pin is %v, newest is %v; diagnostics: %s", name, len(index)>>10, pin, read["newest"], message)
		}
	}
}
