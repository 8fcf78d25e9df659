package origin

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
)

// splitVersions splits an index like a large one, and returns the versions of all charts.
func splitVersions(text string) (map[string][]chartVersion, error) {
	index, err := splitIndex([]byte(text))
	if err != nil {
		return nil, err
	}
	all := map[string][]chartVersion{}
	for _, name := range index.names() {
		if all[name], _, err = index.versions(context.Background(), name); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// splittableIndexes are indexes in the formats of common servers.
var splittableIndexes = map[string]string{
	"helm repo index": "apiVersion: v1\nentries:\n  a:\n  - annotations:\n      b: |\n        - c:\n          d: e\n\n        # f\n    description: a \"b\n      c\"\n" +
		"    digest: abc\n    urls:\n    - a-1.tgz\n    - b\n    version: 1.2.3\n  - version: 1.2.4+a\n  b:\n  - version: \"2\"\ngenerated: \"2024\"\n",
	"indented lists": "---\napiVersion: '1.0'\nentries:\n    a:\n        - version: 1\n          urls:\n              - a\n        - version: 2\n    b:\n        - version: 3\n",
	"Windows":        "apiVersion: v1\r\nentries:\r\n  a:\r\n  - version: 1\r\n    urls:\r\n    - b\r\n  - version: 2\r\ngenerated: x\r\n",
	"flow versions":  "entries:\n  a:\n    - {version: 1.0.0, urls: [a, b]}\n    - {version: 1.0.1, urls: [c]}\n",
	"flow lists":     "entries:\n  a: [{version: 1, urls: [b]}, {version: 2}]\n  b: []\n  c: [{version: 3,\n    urls: [d]}]\n",
	"comments":       "# a\nserver: {a: b} # c\nentries: # d\n# e\n  # f\n  a: # g\n  # h\n  - version: 1 # i\n# j\n  # k\n  - # l\n    version: 2\n  b:\n  - version: 3\n# m\n",
	"quoted names":   "'entries':\n  \"a\":\n  - version: 1\n  'b c':\n  - version: 2\n  3.d:\n  - version: 3\n",
	"empty":          "apiVersion: v1\nentries: {}\n",
	"null":           "apiVersion: v1\nentries:\ngenerated: a\n",
	"empty charts":   "entries:\n  a:\n  b: ~\n  c:\n  - version: 1\n",
	"other lists":    "servers:\n- a\n- b: c\n  entries: d\nentries:\n  a:\n  - version: 1\nothers:\n- e\n",
	"two documents":  "%YAML 1.1\n---\nentries:\n  a:\n  - version: 1\n---\nentries:\n  b:\n  - version: 2\n",
	"empty document": "---\n---\nentries:\n  a:\n  - version: 1\n",
	"an end":         "entries:\n  a:\n  - version: 1\n...\nb\n",
	"anchors within": "entries:\n  a:\n  - version: &x 1\n    digest: *x\n",
	"no end of line": "entries:\n  a:\n  - version: 1",
	"JSON":           `{"apiVersion":"v1","entries":{"a":[{"version":"1","urls":["b"],"digest":"c","other":{"d":[1]}},{"version":"2"}],"b":[],"c":null},"generated":"x"}`,
	"other letters":  `{"entries":{"a":[{"Version":"1"}]}}`,
}

func TestSplitIndexEqualsParsedIndex(t *testing.T) {
	t.Parallel()
	for name, text := range splittableIndexes {
		want, err := parseIndex([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := splitVersions(text)
		if err != nil || !isSameIndex(got, want.parsed) {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, want.parsed)
		}
	}
}

// isSameIndex compares two indexes. No versions equal an empty list.
func isSameIndex(a, b map[string][]chartVersion) bool {
	return slices.Equal(slices.Sorted(maps.Keys(a)), slices.Sorted(maps.Keys(b))) && func() bool {
		for name := range a {
			if len(a[name])+len(b[name]) > 0 && !reflect.DeepEqual(a[name], b[name]) {
				return false
			}
		}
		return true
	}()
}

func TestUnsplittableIndexIsRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"entries: {a: [{version: 1}]}\n":                           "neither JSON nor divided into lines as `helm repo index` divides it (line 1)",
		"entries: &x\n  a:\n  - version: 1\n":                      "(line 1)",
		"--- {entries: {}}\n":                                      "(line 1)",
		"entries:\n- a\n":                                          "(line 2)",
		"entries:\n  - a\n":                                        "(line 2)",
		"entries:\n  ? a\n  : - version: 1\n":                      "(line 2)",
		"entries:\n  <<: {a: []}\n":                                "(line 2)",
		"entries:\n  a: [\n  ]\n":                                  "(line 3)",
		"entries:\n    a:\n    - version: 1\n  b:\n  - version\n":  "(line 4)",
		"entries:\n  a:\n  - version: 1\n  a:\n  - version: 2\n":   `chart "a" twice`,
		"entries:\n  a:\nentries:\n  b:\n":                         "entries twice, in lines 1 and 3",
		"entries:\n  a:\n  - version: 1\n\tb: c\n":                 "(line 4)",
		"a: \"b\nentries:\n  c:\"\n":                               `(line 3)`,
		"entries:\n  a:\n  - version: \"1\n  b:\n  - version: 2\"": "cannot be read",
		"entries:\n  a:\n  - version: 1\r  b:\r  - version: 2\n":   "(line 3)",
		"0: \rentries:\n 0:":                                       "(line 1)",
		"a:\n---:\nentries:\n  b:\n":                               "(line 2)",
		"entries:\n  a:\n    - version: 1\n   b: 1\n":              "(line 4)",
		"entries:\n  a:\n    b:\n    - version: 1\n":               "cannot be read",
		"entries:\n  a:\n  - version: &x 1\n  - version: *x\n":     "unknown anchor 'x'",
		"entries:\n  " + strings.Repeat("a", maxChart+1) + ":\n":   "name has more than 128 bytes",
		"{\"entries\":{\"a\":[]},\"entries\":{}}":                  "entries twice",
		"{\"entries\":{\"a\":[],\"a\":[]}}":                        `chart "a" twice`,
		"{\"entries\":[]}":                                         "is not an object",
		"{\"entries\":{\"a\":{}}}":                                 "are not a list",
		"{\"entries\":{\"a\":[1]}}":                                "cannot unmarshal number",
		"{\"entries\":{\"a\":[":                                    "unexpected EOF",
		"{entries: {a: [{version: 1}]}}":                           "begins as JSON",
	} {
		if got, err := splitVersions(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v; want %q", text, got, err, want)
		}
		if index, err := splitIndex([]byte(text)); err != nil && index != nil {
			t.Errorf("%q: got an index together with the error %v", text, err)
		}
	}
}

func TestGuideListsTheBoundsOfAnIndex(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../../../templates/guides/rendering.md.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	thousands := func(n int) string { return fmt.Sprintf("%d,%03d", n/1000, n%1000) }
	for _, want := range []string{
		fmt.Sprintf("| `index.yaml` | %d MiB |", maxIndex>>20),
		fmt.Sprintf("| charts in it | %s, each with %s versions |", thousands(maxEntries), thousands(maxEntries)),
		fmt.Sprintf("| one version in it | %d KiB |", maxParsed>>10), fmt.Sprintf("An `index.yaml` of more than %d KiB has to be JSON", maxParsed>>10),
	} {
		if !strings.Contains(string(guide), want) {
			t.Errorf("the guide to rendering has no %q", want)
		}
	}
	var charts strings.Builder
	charts.WriteString("entries:\n")
	for i := range maxEntries + 1 {
		fmt.Fprintf(&charts, "  a%d:\n", i)
	}
	versions := "entries:\n  a: [" + strings.Repeat("{},", maxEntries+1) + "]\n"
	for _, text := range []string{charts.String(), versions} {
		_, large := splitVersions(text)
		_, small := readIndex(strings.NewReader(text))
		for _, err := range []error{large, small} {
			if err == nil || !strings.Contains(err.Error(), "more than 20000 charts, or versions") {
				t.Errorf("%.20q: error %v", text, err)
			}
		}
	}
}

// bombs returns indexes of about n bytes with the highest memory cost per byte.
func bombs(n int) map[string]string {
	wrap := func(before, repeated, after string) string {
		return before + strings.Repeat(repeated, n/len(repeated)) + after
	}
	return map[string]string{
		"one version":    wrap("entries:\n  a:\n  - version: 1\n    x: [", "a,", "a]\n"),
		"flow list":      wrap("entries:\n  a: [", "{},", "{}]\n"),
		"flow":           wrap("entries: {a: [", "{},", "{}]}\n"),
		"flow lists":     wrap("entries:\n  a:\n  - ", "[", "\n"),
		"versions":       wrap("entries:\n  a:\n", "  - \n", ""),
		"dashes":         wrap("entries:\n  a:\n", "  - - - - - - - - - - - - - a\n", ""),
		"charts":         wrap("entries:\n", "  a:\n", ""),
		"deep":           wrap("entries:\n  a:\n  - version: 1\n    x: ", "[", "\n"),
		"a long name":    wrap("entries:\n  ", "a", ":\n"),
		"one line":       wrap("entries:\n  a:\n  - version: ", "a", "\n"),
		"JSON":           wrap(`{"entries":{"a":[`, "{},", "{}]}}"),
		"JSON elements":  wrap(`{"entries":{"a":[{"version":"1","x":[`, "1,", "1]}]}}"),
		"JSON charts":    wrap(`{"entries":{`, `"a":[],`, `"b":[]}}`),
		"JSON deep":      wrap(`{"entries":{"a":`, `[`, "}"),
		"JSON elsewhere": wrap(`{"x":[`, "1,", `1],"entries":{"a":[]}}`),
	}
}

// The test is not parallel, because it measures the allocations of the process.
func TestIndexBombCostsLittleMemory(t *testing.T) {
	size := acceptancetest.Count(2, 6)
	for name, text := range bombs(size << 20) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		index, err := readIndex(strings.NewReader(text))
		var versions []chartVersion
		if err == nil {
			versions, _, err = index.versions(t.Context(), "a")
		}
		runtime.ReadMemStats(&after)
		if allocated := (after.TotalAlloc - before.TotalAlloc) >> 20; allocated > uint64(size)*25 {
			t.Errorf("%s allocates %d MiB: %d versions, %v", name, allocated, len(versions), err)
		}
		if err == nil && name != "JSON elements" && name != "JSON elsewhere" {
			t.Errorf("%s: got %d versions, want an error", name, len(versions))
		}
	}
}

// A process caches the indexes of many repositories.
func TestCachedTextOfAnIndexIsBounded(t *testing.T) {
	t.Parallel()
	var noise strings.Builder
	noise.WriteString("entries:\n  a:\n")
	var random [768]byte
	for source := rand.NewChaCha8([32]byte{}); noise.Len() < 12<<20; {
		_, _ = source.Read(random[:])
		fmt.Fprintf(&noise, "  - version: %s\n", base64.StdEncoding.EncodeToString(random[:]))
	}
	if _, err := readIndex(strings.NewReader(noise.String())); !errors.Is(err, git.ErrTooLarge) ||
		!strings.Contains(err.Error(), "8 MiB, compressed") {
		t.Errorf("error %v", err)
	}
	usual := "entries:\n  a:\n" + strings.Repeat("  - version: 1.2.3\n    description: the same text for each version of a chart\n", 10_000)
	index, err := readIndex(strings.NewReader(usual))
	if err != nil {
		t.Fatal(err)
	}
	if index.size > len(usual)/10 {
		t.Errorf("%d bytes are cached of %d", index.size, len(usual))
	}
	if versions, _, err := index.versions(t.Context(), "a"); err != nil || len(versions) != 10_000 {
		t.Errorf("%d versions, error %v", len(versions), err)
	}
}

func TestReadingVersionsStopsWithTheContext(t *testing.T) {
	t.Parallel()
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, text := range map[string]string{"YAML": "entries:\n  a:\n  - version: 1\n", "JSON": `{"entries":{"a":[{}]}}`} {
		index, err := splitIndex([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := index.versions(canceled, "a"); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzDivideIndex compares split indexes with the parser. If all charts of a split index are readable, parsing the whole text
// gives the same.
func FuzzDivideIndex(f *testing.F) {
	for _, text := range splittableIndexes {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := splitVersions(text)
		if err != nil {
			return
		}
		whole, err := parseIndex([]byte(text))
		if err != nil {
			return // an error outside of the entries or in the whole text, such as an anchor defined twice
		}
		if !isSameIndex(got, whole.parsed) {
			t.Errorf("%q is split as %+v, and parsed as %+v", text, got, whole.parsed)
		}
	})
}

// largeIndex returns an index like the largest public ones: 20 MiB with 15,000 versions of 150 charts.
func largeIndex() []byte {
	var text bytes.Buffer
	text.WriteString("apiVersion: v1\nentries:\n")
	seed := uint64(1)
	for chart := range 150 {
		fmt.Fprintf(&text, "  chart-%d:\n", chart)
		for version := range 100 {
			seed = seed*6364136223846793005 + 1442695040888963407
			fmt.Fprintf(&text, `  - annotations:
      category: Infrastructure
      images: |
        - name: app
          image: docker.io/example/app:1.2.%[2]d-debian-12-r%[3]d
        - name: metrics
          image: docker.io/example/metrics:4.5.%[2]d-debian-12-r%[3]d
      licenses: Apache-2.0
    apiVersion: v2
    appVersion: 1.2.%[2]d
    created: "2024-01-01T00:00:%02[2]d.123456789Z"
    dependencies:
    - name: common
      repository: oci://registry.example.com/charts
      tags:
      - common
      version: 2.x.x
    description: Chart number %[1]d is an application that people run on Kubernetes, and
      whose description goes on in the next line as those of Helm do.
    digest: %016[4]x%016[5]x%016[6]x%016[7]x
    home: https://example.com
    icon: https://example.com/assets/stacks/app/img/app-stack-220x234.png
    keywords:
    - application
    - infrastructure
    - workflow
    maintainers:
    - name: Example, Inc. All Rights Reserved.
      url: https://git.example.com/charts
    name: chart-%[1]d
    sources:
    - https://git.example.com/charts/tree/main/chart-%[1]d
    urls:
    - https://charts.example.com/stable/chart-%[1]d-1.2.%[2]d.tgz
    version: 1.2.%[2]d
`, chart, version, seed%40, seed, seed*3, seed*5, seed*7)
		}
	}
	text.WriteString("generated: \"2024-01-01T00:00:00Z\"\n")
	return text.Bytes()
}

// BenchmarkLargeIndex compares parsing a large index with splitting it and reading one or ten charts.
func BenchmarkLargeIndex(b *testing.B) {
	text := largeIndex()
	for name, read := range map[string]func() error{
		"whole":      func() error { _, err := parseIndex(text); return err },
		"one chart":  func() error { return readCharts(text, 1) },
		"ten charts": func() error { return readCharts(text, 10) },
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if err := read(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func readCharts(text []byte, count int) error {
	index, err := readIndex(io.LimitReader(bytes.NewReader(text), maxIndex))
	for chart := range count {
		if err == nil {
			_, _, err = index.versions(context.Background(), fmt.Sprintf("chart-%d", chart))
		}
	}
	return err
}
