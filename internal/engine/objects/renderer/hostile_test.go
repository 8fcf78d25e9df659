package renderer_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects/renderer"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/objectstest"
)

// hostile is a harmful artifact or request, and the expected error.
type hostile struct {
	files   map[string]string
	request objects.Request // its default path is "chart" for charts and "apps" for other files
	loops   bool            // whether it uses a processor until the time limit
	want    string          // a regular expression of the error; "" permits success
}

// aliases has nine lists. Each contains the list before it nine times.
const aliases = `a: &a [x, x, x, x, x, x, x, x, x]
b: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a]
c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b]
d: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c]
e: &e [*d, *d, *d, *d, *d, *d, *d, *d, *d]
f: &f [*e, *e, *e, *e, *e, *e, *e, *e, *e]
g: &g [*f, *f, *f, *f, *f, *f, *f, *f, *f]
h: &h [*g, *g, *g, *g, *g, *g, *g, *g, *g]
i: &i [*h, *h, *h, *h, *h, *h, *h, *h, *h]
`

const (
	bounds  = `needs more than 256 MiB of memory to render|takes more than \S+ to render`
	network = "rendering reads nothing from the network"
)

func hostiles(t *testing.T) map[string]hostile {
	t.Helper()
	looping := chartOfTemplate("{{ range 100000000000 }}{{ end }}", "")
	looping.want, looping.loops = ".*: it takes more than 300ms to render", true
	manyLinks := map[string]string{"apps/a.yaml": settings, "a/x": ""}
	for folder := 'b'; folder <= 'z'; folder++ {
		manyLinks[string(folder)+"/one"], manyLinks[string(folder)+"/two"] = "-> ../"+string(folder-1), "-> ../"+string(folder-1)
	}
	withRequest := func(want string, request objects.Request, files map[string]string) hostile {
		return hostile{files: files, request: request, want: want}
	}
	onCluster := objects.Request{Helm: &objects.Helm{OnCluster: true}}
	return map[string]hostile{
		// Charts with loops, large allocations and recursion.
		"a loop":              looping,
		"a great repeat":      chartOfTemplate(`{{ repeat 300000000 "x" | len }}`, ".*: it "+bounds),
		"a great until":       chartOfTemplate(`{{ until 2000000000 | len }}`, ".*: it "+bounds),
		"a great untilStep":   chartOfTemplate(`{{ untilStep 0 2000000000 1 | len }}`, ".*: it "+bounds),
		"a great random text": chartOfTemplate(`{{ randAlphaNum 2000000000 | len }}`, ".*: it "+bounds),
		"a great indent":      chartOfTemplate(`{{ indent 2000000000 "x" | len }}`, ".*: it "+bounds),
		"a text that doubles": chartOfTemplate(
			`{{ $x := "xxxxxxxx" }}{{ range 40 }}{{ $x = printf "%s%s" $x $x }}{{ end }}`,
			".*: it "+bounds,
		),
		"a list that doubles":           chartOfTemplate(`{{ $x := list 1 }}{{ range 40 }}{{ $x = concat $x $x }}{{ end }}`, ".*: it "+bounds),
		"a dict within itself":          chartOfTemplate(`{{ $x := dict }}{{ $_ := set $x "x" $x }}{{ toYaml $x }}`, ""),
		"a dict within itself, as JSON": chartOfTemplate(`{{ $x := dict }}{{ $_ := set $x "x" $x }}{{ toJson $x }}`, ""),
		"a dict within itself, copied":  chartOfTemplate(`{{ $x := dict }}{{ $_ := set $x "x" $x }}{{ deepCopy $x | len }}`, ""),
		"a dict within itself, merged": chartOfTemplate(
			`{{ $x := dict }}{{ $_ := set $x "x" $x }}{{ mergeOverwrite (dict "x" dict) $x $x | toString | len }}`,
			"",
		),
		"values within themselves": chartOfTemplate(`{{ $_ := set .Values "x" .Values }}{{ tpl (toYaml .Values) . }}`, ""),
		"an include of itself": chartOfTemplate(
			`{{ define "a" }}{{ include "a" . }}{{ end }}{{ include "a" . }}`,
			`(?s).*templates/all.yaml:1.*nested reference name: a`,
		),
		"a template of itself": chartOfTemplate(
			`{{ define "a" }}{{ template "a" . }}{{ end }}{{ template "a" . }}`,
			`(?s).*exceeded maximum template depth`,
		),
		"a tpl of itself": chartOfFiles(
			bounds+`|tpl`,
			map[string]string{"values.yaml": "a: '{{ tpl .Values.a . }}'\n", "templates/all.yaml": "{{ tpl .Values.a . }}"},
		),
		"a tpl that doubles": chartOfTemplate(
			`{{ define "a" }}{{ $x := printf "%s%s" . . }}{{ tpl (printf "{{ include \"a\" %q }}" $x) $ }}{{ end }}{{ include "a" "x" }}`,
			".*",
		),
		"much output": chartOfTemplate(
			"{{ range 20 }}\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a-{{ . }}}\ndata: {text: {{ repeat 1000000 \"x\" }}}\n---\n{{ end }}",
			".*: it renders more than 16 MiB",
		),
		"much empty output": chartOfTemplate(`{{ range 20 }}{{ repeat 1000000 " " }}{{ end }}`, ".*: it renders more than 16 MiB"),
		"a template of 10 MB": chartOfTemplate(
			settings+strings.Repeat("# x\n", 10<<18),
			`.*: file "templates/all.yaml" has more than 5 MiB`,
		),
		"a deep template":   chartOfTemplate(strings.Repeat("{{ if true }}", 200000), ".*"),
		"a deep pipeline":   chartOfTemplate("{{ "+strings.Repeat("(", 200000)+" }}", ".*"),
		"a negative repeat": chartOfTemplate(`{{ repeat -1 "x" }}`, `(?s).*templates/all.yaml:1.*repeat`),
		"a key of scrypt, many times": {
			files: chart(map[string]string{"templates/all.yaml": `{{ range 1000 }}{{ derivePassword 1 "long" "a" "b" "c" }}{{ end }}`}),
			loops: true,
			want:  "it takes more than 300ms to render",
		},

		// Forbidden functions of templates, and invalid output.
		"getHostByName": withRequest(".*till/templates/all.yaml.* uses the function getHostByName", onCluster, chart(map[string]string{
			"templates/all.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {at: \"{{ getHostByName \"example.com\" }}\"}"})),
		"env":       chartOfTemplate(`{{ env "HOME" }}`, `.*templates/all.yaml:1.*function "env" not defined`),
		"expandenv": chartOfTemplate(`{{ expandenv "$HOME" }}`, `.*templates/all.yaml:1.*function "expandenv" not defined`),
		"a lookup that fails afterwards": withRequest(
			`(?s).*template till/templates/all.yaml is rendered once, and fails when rendered again .* uses the function lookup \(.*nil pointer`,
			onCluster,
			chart(map[string]string{"templates/all.yaml": `{{ with lookup "v1" "Secret" "a" "b" }}{{ .data.a.b }}{{ end }}`}),
		),
		"a long message": chartOfTemplate(
			fmt.Sprintf(`{{ fail (repeat %d "x") }}`, acceptancetest.Count(100_000, 10_000_000)),
			`(?s).*templates/all.yaml:1.*xxx \.\.\. xxx`,
		),
		"a message for a terminal": chartOfTemplate("{{ fail \"\\x1b[2J\\xff\\u202e done\" }}", "(?s).*templates/all.yaml:1.* done"),
		"a file that is not UTF-8": chartOfTemplate(
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"a\xff\"}\n",
			`.*till/templates/all.yaml.* UTF-8`,
		),
		"many objects with one name": chartOfTemplate("{{ range 500 }}\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\n{{ end }}",
			`.*: ConfigMap "a" is there twice: in till/templates/all.yaml`),

		// Files of a chart.
		"aliases in values": chartOfFiles(
			"chart.*values.yaml.*excessive aliasing",
			map[string]string{"values.yaml": aliases, "templates/all.yaml": settings},
		),
		"aliases in a file of values": withRequest(
			`value file "bomb.yaml".*excessive aliasing`,
			objects.Request{Helm: &objects.Helm{ValueFiles: []string{"bomb.yaml"}}},
			chart(map[string]string{"bomb.yaml": aliases}),
		),
		"aliases in a template": chartOfTemplate(
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"+aliases,
			".*till/templates/all.yaml.*excessive aliasing",
		),
		"deep values":            chartOfFiles("chart.*values.yaml", map[string]string{"values.yaml": "a: " + strings.Repeat("[", 200000)}),
		"values that are a list": chartOfFiles("chart.*values.yaml", map[string]string{"values.yaml": "[a]"}),
		"a value file outside": withRequest(
			`value file "../../secret.yaml" is not in the artifact`,
			objects.Request{Helm: &objects.Helm{ValueFiles: []string{"../../secret.yaml"}}},
			chart(nil),
		),
		"a value file by a link": withRequest(
			`symbolic link "chart/a.yaml" leads out of the artifact, to "/etc/passwd"`,
			objects.Request{Helm: &objects.Helm{ValueFiles: []string{"a.yaml"}}},
			chart(map[string]string{"a.yaml": "-> /etc/passwd"}),
		),
		"a value file of the network": withRequest(
			`value file "https://example.com/a.yaml" is not in the artifact`,
			objects.Request{Helm: &objects.Helm{ValueFiles: []string{"https://example.com/a.yaml"}}},
			chart(nil),
		),
		"a link out of a chart": chartOfFiles(
			`symbolic link "chart/templates/a.yaml" leads out of the artifact, to "../../../etc/passwd"`,
			map[string]string{"templates/a.yaml": "-> ../../../etc/passwd"},
		),
		"a great index of a parameter": withRequest(
			`parameter "a\[9999999999\]"`,
			objects.Request{Helm: &objects.Helm{Parameters: []objects.Parameter{{Name: "a[9999999999]", Value: "x"}}}},
			chart(nil),
		),
		"a schema of this machine": chartOfFiles(
			`values.schema.json.*file:///etc/passwd, which rendering does not read`,
			map[string]string{"values.schema.json": `{"$ref": "file:///etc/passwd"}`},
		),
		"a schema of itself": chartOfFiles(`chart`, map[string]string{"values.schema.json": `{"allOf": [{"$ref": "#"}]}`}),
		"deep subcharts":     chartOfFiles("as deep as it can be", nestedCharts(acceptancetest.Count(30, 100))),
		"a dependency that is missing": chartOfFiles(
			`depends on other, which its folder charts does not have`,
			map[string]string{
				"Chart.yaml": "apiVersion: v2\nname: till\nversion: 1.0.0\ndependencies: [{name: other, version: 1.0.0, repository: 'https://example.com'}]\n",
			},
		),
		"a bomb as a subchart": chartOfFiles(
			`chart.*(larger than the maximum size|256 MiB)`,
			map[string]string{
				"charts/sub.tgz": packChart(t, map[string]string{"Chart.yaml": "apiVersion: v2\nname: sub\nversion: 1.0.0\n"}, 101<<20),
			},
		),
		"a subchart outside": chartOfFiles(
			`chart.*sub.tgz`,
			map[string]string{"charts/sub.tgz": packChart(t, map[string]string{"../../Chart.yaml": "apiVersion: v2\nname: sub\nversion: 1.0.0\n"}, 0)},
		),
		"an invalid archive of a subchart": chartOfFiles(`chart.*sub.tgz`, map[string]string{"charts/sub.tgz": "no archive"}),
		"an invalid version": chartOfFiles(
			`chart.*version "one" is invalid`,
			map[string]string{"Chart.yaml": "apiVersion: v2\nname: till\nversion: one\n"},
		),
		"a deep CRD": chartOfFiles(
			`chart`,
			map[string]string{
				"crds/a.yaml": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a}\nspec: " + strings.Repeat(
					"{a: ",
					100000,
				),
			},
		),
		"aliases in a CRD": chartOfFiles(
			`crds/a.yaml.*excessive aliasing`,
			map[string]string{"crds/a.yaml": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a}\n" + aliases},
		),
		"a folder outside": {
			files:   chart(nil),
			request: objects.Request{Path: "../chart", Helm: &objects.Helm{}},
			want:    `path "../chart" is outside of it`,
		},

		// Kustomizations.
		"a remote base":        kustomizationOf(network, "resources: ['https://github.com/example/app//base?ref=v1']\n", nil),
		"a remote base of git": kustomizationOf(network, "resources: ['github.com/example/app//base?ref=v1']\n", nil),
		"a remote base of SSH": kustomizationOf(network, "resources: ['git@github.com:example/app.git']\n", nil),
		"a remote component":   kustomizationOf(network, "components: ['https://github.com/example/app']\n", nil),
		"a remote base below": kustomizationOf(
			"base/kustomization.yaml refers to https://example.com/a: "+network,
			"resources: [base]\n",
			map[string]string{"apps/base/kustomization.yaml": "resources: ['https://example.com/a']\n"},
		),
		"a remote patch":               kustomizationOf(network, "resources: [../secret.yaml]\npatches: [{path: 'https://example.com/a.yaml'}]\n", nil),
		"a remote file of a ConfigMap": kustomizationOf(network, "configMapGenerator: [{name: a, files: ['a=https://example.com/a']}]\n", nil),
		"a remote file, by a generator": kustomizationOf(
			network,
			"generators: [generator.yaml]\n",
			map[string]string{
				"apps/generator.yaml": "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: a}\nfiles: ['https://example.com/a']\n",
			},
		),
		"a remote schema": kustomizationOf(network, "resources: [../secret.yaml]\nopenapi: {path: 'https://example.com/a.json'}\n", nil),
		"a chart": kustomizationOf(
			"has helmCharts, which are not rendered",
			"helmCharts: [{name: a, repo: 'https://example.com'}]\n",
			nil,
		),
		"a chart, by a generator": kustomizationOf(
			"helm",
			"generators: [generator.yaml]\n",
			map[string]string{
				"apps/generator.yaml": "apiVersion: builtin\nkind: HelmChartInflationGenerator\nmetadata: {name: a}\nname: a\nrepo: https://example.com\n",
			},
		),
		"a program": kustomizationOf(
			"plugin",
			"generators: [generator.yaml]\n",
			map[string]string{
				"apps/generator.yaml": "apiVersion: a.example.com/v1\nkind: A\nmetadata:\n  name: a\n  annotations:\n    config.kubernetes.io/function: |\n      exec: {path: ./run.sh}\n",
				"apps/run.sh":         "#!/bin/sh\ntouch /tmp/run\n",
			},
		),
		"a container": kustomizationOf(
			"plugin",
			"transformers: [transformer.yaml]\nresources: [../secret.yaml]\n",
			map[string]string{
				"apps/transformer.yaml": "apiVersion: a.example.com/v1\nkind: A\nmetadata:\n  name: a\n  annotations:\n    config.kubernetes.io/function: |\n      container: {image: 'example.com/a', network: true}\n",
			},
		),
		"Starlark": kustomizationOf(
			"plugin",
			"transformers: [transformer.yaml]\nresources: [../secret.yaml]\n",
			map[string]string{
				"apps/transformer.yaml": "apiVersion: a.example.com/v1\nkind: A\nmetadata:\n  name: a\n  annotations:\n    config.kubernetes.io/function: |\n      starlark: {path: a.star, name: a}\n",
				"apps/a.star":           "x = 1\n",
			},
		),
		"a program, by a plugin": kustomizationOf(
			"plugin",
			"generators: [generator.yaml]\n",
			map[string]string{"apps/generator.yaml": "apiVersion: someteam.example.com/v1\nkind: Exec\nmetadata: {name: a}\n"},
		),
		"a resource outside":     kustomizationOf(`"../../etc/passwd", which is outside of the artifact`, "resources: [../../etc/passwd]\n", nil),
		"a resource by its path": kustomizationOf(`"/etc/passwd", which is outside of the artifact`, "resources: [/etc/passwd]\n", nil),
		"a file outside": kustomizationOf(
			`apps.*etc/passwd|etc/passwd`,
			"configMapGenerator: [{name: a, files: [../../../../etc/passwd]}]\n",
			nil,
		),
		"a file by its path": kustomizationOf("etc/passwd", "configMapGenerator: [{name: a, files: [/etc/passwd]}]\n", nil),
		"variables outside":  kustomizationOf("etc/passwd", "secretGenerator: [{name: a, envs: [/etc/passwd]}]\n", nil),
		"a link to a file outside": kustomizationOf(
			`symbolic link "apps/a" leads out of the artifact, to "/etc/passwd"`,
			"configMapGenerator: [{name: a, files: [a]}]\n",
			map[string]string{"apps/a": "-> /etc/passwd"},
		),
		"a link to a resource outside": kustomizationOf(
			`symbolic link "apps/a.yaml" leads out of the artifact, to "../../etc/passwd"`,
			"resources: [a.yaml]\n",
			map[string]string{"apps/a.yaml": "-> ../../etc/passwd"},
		),
		"a link to a folder outside": kustomizationOf(
			`outside|leads out|does not exist`,
			"resources: [a/b.yaml]\n",
			map[string]string{"apps/a": "-> ../../etc"},
		),
		"links to each other": kustomizationOf(
			`does not exist in the artifact`,
			"resources: [a.yaml]\n",
			map[string]string{"apps/a.yaml": "-> b.yaml", "apps/b.yaml": "-> a.yaml"},
		),
		"links to many folders": kustomizationOf("symbolic links lead to more than 50000 files", "resources: [a.yaml]\n", manyLinks),
		"a base of itself": kustomizationOf(
			"cycle",
			"resources: [base]\n",
			map[string]string{"apps/base/kustomization.yaml": "resources: [../../apps]\n"},
		),
		"aliases in a kustomization": kustomizationOf(
			"kustomization.yaml.*excessive aliasing",
			"resources: [../secret.yaml]\n"+strings.ReplaceAll(aliases, "a: &a", "namePrefix: &a"),
			nil,
		),
		"aliases in a resource": kustomizationOf(
			"excessive aliasing|"+bounds,
			"resources: [a.yaml]\n",
			map[string]string{"apps/a.yaml": settings + aliases},
		),
		"a patch that doubles": kustomizationOf(bounds, "resources: [../secret.yaml]\npatches: [{target: {kind: ConfigMap}, patch: '["+
			strings.TrimSuffix(
				strings.Repeat(`{"op": "copy", "from": "/data", "path": "/data/a"}, {"op": "copy", "from": "/data", "path": "/data/b"}, `, 30),
				", ",
			)+"]'}]\n", nil),
		"a list as kustomization": kustomizationOf("kustomization.yaml", "[a]\n", nil),
		"an invalid object": kustomizationOf(
			"apps",
			"resources: [a.yaml]\n",
			map[string]string{"apps/a.yaml": "kind: [a]\napiVersion: {a: b}\nmetadata: 1\n"},
		),

		// Plain manifests.
		"aliases in a manifest": manifestsOf("apps/a.yaml.*excessive aliasing", map[string]string{"apps/a.yaml": settings + aliases}),
		"a deep manifest":       manifestsOf("apps/a.yaml", map[string]string{"apps/a.yaml": settings + "b: " + strings.Repeat("[", 200000)}),
		"a deep manifest in JSON": manifestsOf(
			"apps/a.json",
			map[string]string{
				"apps/a.json": `{"apiVersion": "v1", "kind": "A", "metadata": {"name": "a"}, "a": ` + strings.Repeat(
					"[",
					200000,
				) + strings.Repeat(
					"]",
					200000,
				) + "}",
			},
		),
		"lists of lists": manifestsOf(
			"apps",
			map[string]string{"apps/a.json": strings.Repeat(`{"apiVersion": "v1", "kind": "List", "items": [`, 6000) + strings.Repeat("]}", 6000)},
		),
		"a manifest that is not UTF-8": manifestsOf(
			"apps/a.yaml",
			map[string]string{"apps/a.yaml": "apiVersion: v1\nkind: A\nmetadata: {name: \"\xff\xfe\"}\n"},
		),
		"JSON that is not UTF-8": manifestsOf(
			"apps/a.json",
			map[string]string{"apps/a.json": "{\"apiVersion\": \"v1\", \"kind\": \"A\", \"metadata\": {\"name\": \"a\xff\"}}"},
		),
		"a link out of a folder": manifestsOf(
			`symbolic link "apps/a.yaml" leads out of the artifact, to "/etc/passwd"`,
			map[string]string{"apps/a.yaml": "-> /etc/passwd", "apps/b.yaml": settings},
		),
		"Jsonnet": manifestsOf("apps/a.jsonnet is Jsonnet, which cannot be rendered", map[string]string{"apps/a.jsonnet": "{}"}),
		"thousands of large files": manifestsOf(
			"it renders more than 16 MiB",
			manyObjects(acceptancetest.Count(0, 2200), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a%d}\ndata: {text: "+strings.Repeat("x", 8000)+"}\n"),
		),
		"files larger than the memory": manifestsOf(
			"its files have more than 128 MiB",
			map[string]string{"apps/a.yaml": settings, "large": strings.Repeat("x", acceptancetest.Count(0, 130<<20))},
		),
		"variables of variables": {
			files:   map[string]string{"apps/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: '${A:=${A:=${A'}\n"},
			request: objects.Request{Kustomize: &objects.Kustomize{Generate: true}, Substitute: map[string]string{"B": "1"}},
			want:    "ConfigMap",
		},
		"an invalid pattern": {
			files:   map[string]string{"apps/a.yaml": settings},
			request: objects.Request{Directory: &objects.Directory{Include: "{a,["}},
			want:    `include "\{a,\[" is not a pattern`,
		},
	}
}

// similar has the cases for `make acceptance` alone. In `make test`, other cases exceed the same bound, or cheaper tests do:
// TestExceededBoundsAreErrorsAndRenderingContinues, TestOutputOfManyFilesIsBounded and TestFilesOfAnArtifactAreBounded.
var similar = []string{
	"a great until", "a great untilStep", "a great random text", "a great indent", "a list that doubles", "a text that doubles",
	"a tpl that doubles", "a tpl of itself", "a dict within itself, as JSON", "a dict within itself, copied", "a dict within itself, merged",
	"values within themselves", "a deep pipeline", "a loop", "a great repeat", "much output", "a patch that doubles",
	"thousands of large files", "files larger than the memory",
}

func TestHostileInputIsAnErrorWithinBounds(t *testing.T) {
	archives := objectstest.NewArchives(t)
	workers := renderer.NewWorkers(2)
	poolWith := func(limit time.Duration) *renderer.Pool {
		return pool(t, archives, renderer.PoolOptions{Time: limit, Memory: 256 << 20, Workers: workers})
	}
	long, short, shortest := poolWith(5*time.Minute), poolWith(500*time.Millisecond), poolWith(300*time.Millisecond)
	number := 0
	for name, test := range hostiles(t) {
		if !acceptancetest.All() && slices.Contains(similar, name) {
			continue
		}
		number++
		source := shop
		source.Pin.Commit = fmt.Sprintf("%040x", number)
		request := test.request
		if request.Helm == nil && request.Kustomize == nil && request.Directory == nil {
			request.Helm = &objects.Helm{}
		}
		switch {
		case request.Helm != nil:
			request.Helm.ReleaseName, request.Helm.Namespace = "eu", "shop"
			if request.Path == "" {
				request.Path = "chart"
			}
		case request.Path == "":
			request.Path = "apps"
		}
		request.Artifact = archives.Add(source, test.files)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := long
			switch {
			case test.loops:
				p = shortest
			case test.want == "" || test.want == ".*" || strings.Contains(test.want, bounds):
				p = short
			}
			_, err := p.Render(t.Context(), &request)
			if err == nil {
				if test.want == "" {
					return
				}
				t.Fatalf("got no error, want %q", test.want)
			}
			message := err.Error()
			if !regexp.MustCompile(test.want).MatchString(message) {
				t.Errorf("got error %.1000q, want %q", message, test.want)
			}
			if !strings.Contains(message, request.Artifact.Pin.Commit) || !strings.Contains(message, request.Path) || !strings.Contains(message, shop.Repo) {
				t.Errorf("the error does not name the artifact: %.1000q", message)
			}
			if len(message) > 2500 || !utf8.ValidString(message) || strings.ContainsRune(message, '\x1b') {
				t.Errorf("the error has %d bytes: %.1000q", len(message), message)
			}
			if strings.Contains(message, "root:") {
				t.Errorf("the error has a file of this machine: %.1000q", message)
			}
		})
	}
}
