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

// hostile is what somebody could have made to do harm, and the error that comes of it.
type hostile struct {
	files   map[string]string
	request objects.Request // its folder is "chart" for a chart, and "apps" for all else
	loops   bool            // it takes a processor until its time is over
	want    string          // a regular expression; "" where an end is all that is asked for
}

// aliases are nine lists, each of which has the one before nine times.
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
	looping := ofTemplate("{{ range 100000000000 }}{{ end }}", "")
	looping.want, looping.loops = ".*: it takes more than 300ms to render", true
	manyLinks := map[string]string{"apps/a.yaml": settings, "a/x": ""}
	for folder := 'b'; folder <= 'z'; folder++ {
		manyLinks[string(folder)+"/one"], manyLinks[string(folder)+"/two"] = "-> ../"+string(folder-1), "-> ../"+string(folder-1)
	}
	of := func(want string, request objects.Request, files map[string]string) hostile {
		return hostile{files: files, request: request, want: want}
	}
	onCluster := objects.Request{Helm: &objects.Helm{OnCluster: true}}
	return map[string]hostile{
		// Charts that loop, that allocate, that call themselves.
		"a loop":              looping,
		"a great repeat":      ofTemplate(`{{ repeat 300000000 "x" | len }}`, ".*: it "+bounds),
		"a great until":       ofTemplate(`{{ until 2000000000 | len }}`, ".*: it "+bounds),
		"a great untilStep":   ofTemplate(`{{ untilStep 0 2000000000 1 | len }}`, ".*: it "+bounds),
		"a great random text": ofTemplate(`{{ randAlphaNum 2000000000 | len }}`, ".*: it "+bounds),
		"a great indent":      ofTemplate(`{{ indent 2000000000 "x" | len }}`, ".*: it "+bounds),
		"a text that doubles": ofTemplate(
			`{{ $x := "xxxxxxxx" }}{{ range 40 }}{{ $x = printf "%s%s" $x $x }}{{ end }}`,
			".*: it "+bounds,
		),
		"a list that doubles":           ofTemplate(`{{ $x := list 1 }}{{ range 40 }}{{ $x = concat $x $x }}{{ end }}`, ".*: it "+bounds),
		"a dict within itself":          ofTemplate(`{{ $x := dict }}{{ $_ := set $x "x" $x }}{{ toYaml $x }}`, ""),
		"a dict within itself, as JSON": ofTemplate(`{{ $x := dict }}{{ $_ := set $x "x" $x }}{{ toJson $x }}`, ""),
		"a dict within itself, copied":  ofTemplate(`{{ $x := dict }}{{ $_ := set $x "x" $x }}{{ deepCopy $x | len }}`, ""),
		"a dict within itself, merged": ofTemplate(
			`{{ $x := dict }}{{ $_ := set $x "x" $x }}{{ mergeOverwrite (dict "x" dict) $x $x | toString | len }}`,
			"",
		),
		"values within themselves": ofTemplate(`{{ $_ := set .Values "x" .Values }}{{ tpl (toYaml .Values) . }}`, ""),
		"an include of itself": ofTemplate(
			`{{ define "a" }}{{ include "a" . }}{{ end }}{{ include "a" . }}`,
			`(?s).*templates/all.yaml:1.*nested reference name: a`,
		),
		"a template of itself": ofTemplate(
			`{{ define "a" }}{{ template "a" . }}{{ end }}{{ template "a" . }}`,
			`(?s).*exceeded maximum template depth`,
		),
		"a tpl of itself": ofChart(
			bounds+`|tpl`,
			map[string]string{"values.yaml": "a: '{{ tpl .Values.a . }}'\n", "templates/all.yaml": "{{ tpl .Values.a . }}"},
		),
		"a tpl that doubles": ofTemplate(
			`{{ define "a" }}{{ $x := printf "%s%s" . . }}{{ tpl (printf "{{ include \"a\" %q }}" $x) $ }}{{ end }}{{ include "a" "x" }}`,
			".*",
		),
		"much output": ofTemplate(
			"{{ range 20 }}\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a-{{ . }}}\ndata: {text: {{ repeat 1000000 \"x\" }}}\n---\n{{ end }}",
			".*: it renders more than 16 MiB",
		),
		"much output that is nothing": ofTemplate(`{{ range 20 }}{{ repeat 1000000 " " }}{{ end }}`, ".*: it renders more than 16 MiB"),
		"a template of 10 MB": ofTemplate(
			settings+strings.Repeat("# x\n", 10<<18),
			`.*: file "templates/all.yaml" has more than 5 MiB`,
		),
		"a deep template":   ofTemplate(strings.Repeat("{{ if true }}", 200000), ".*"),
		"a deep pipeline":   ofTemplate("{{ "+strings.Repeat("(", 200000)+" }}", ".*"),
		"a negative repeat": ofTemplate(`{{ repeat -1 "x" }}`, `(?s).*templates/all.yaml:1.*repeat`),
		"a key of scrypt, many times": {
			files: chart(map[string]string{"templates/all.yaml": `{{ range 1000 }}{{ derivePassword 1 "long" "a" "b" "c" }}{{ end }}`}),
			loops: true,
			want:  "it takes more than 300ms to render",
		},

		// What templates may not ask for.
		"getHostByName": of(".*till/templates/all.yaml.* uses the function getHostByName", onCluster, chart(map[string]string{
			"templates/all.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {at: \"{{ getHostByName \"example.com\" }}\"}"})),
		"env":       ofTemplate(`{{ env "HOME" }}`, `.*templates/all.yaml:1.*function "env" not defined`),
		"expandenv": ofTemplate(`{{ expandenv "$HOME" }}`, `.*templates/all.yaml:1.*function "expandenv" not defined`),
		"a lookup that fails afterwards": of(
			`(?s).*template till/templates/all.yaml is rendered once, and fails when rendered again .* uses the function lookup \(.*nil pointer`,
			onCluster,
			chart(map[string]string{"templates/all.yaml": `{{ with lookup "v1" "Secret" "a" "b" }}{{ .data.a.b }}{{ end }}`}),
		),
		"a long message": ofTemplate(
			fmt.Sprintf(`{{ fail (repeat %d "x") }}`, acceptancetest.Count(100_000, 10_000_000)),
			`(?s).*templates/all.yaml:1.*xxx \.\.\. xxx`,
		),
		"a message for a terminal": ofTemplate("{{ fail \"\\x1b[2J\\xff\\u202e done\" }}", "(?s).*templates/all.yaml:1.* done"),
		"a file that is not UTF-8": ofTemplate(
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"a\xff\"}\n",
			`.*till/templates/all.yaml.* UTF-8`,
		),
		"a number of objects with one name": ofTemplate("{{ range 500 }}\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\n{{ end }}",
			`.*: ConfigMap "a" is there twice: in till/templates/all.yaml`),

		// Files of a chart.
		"aliases in values": ofChart(
			"chart.*values.yaml.*excessive aliasing",
			map[string]string{"values.yaml": aliases, "templates/all.yaml": settings},
		),
		"aliases in a file of values": of(
			`value file "bomb.yaml".*excessive aliasing`,
			objects.Request{Helm: &objects.Helm{ValueFiles: []string{"bomb.yaml"}}},
			chart(map[string]string{"bomb.yaml": aliases}),
		),
		"aliases in a template": ofTemplate(
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"+aliases,
			".*till/templates/all.yaml.*excessive aliasing",
		),
		"deep values":            ofChart("chart.*values.yaml", map[string]string{"values.yaml": "a: " + strings.Repeat("[", 200000)}),
		"values that are a list": ofChart("chart.*values.yaml", map[string]string{"values.yaml": "[a]"}),
		"a value file outside": of(
			`value file "../../secret.yaml" is not in the artifact`,
			objects.Request{Helm: &objects.Helm{ValueFiles: []string{"../../secret.yaml"}}},
			chart(nil),
		),
		"a value file by a link": of(
			`symbolic link "chart/a.yaml" leads out of the artifact, to "/etc/passwd"`,
			objects.Request{Helm: &objects.Helm{ValueFiles: []string{"a.yaml"}}},
			chart(map[string]string{"a.yaml": "-> /etc/passwd"}),
		),
		"a value file of the network": of(
			`value file "https://example.com/a.yaml" is not in the artifact`,
			objects.Request{Helm: &objects.Helm{ValueFiles: []string{"https://example.com/a.yaml"}}},
			chart(nil),
		),
		"a link out of a chart": ofChart(
			`symbolic link "chart/templates/a.yaml" leads out of the artifact, to "../../../etc/passwd"`,
			map[string]string{"templates/a.yaml": "-> ../../../etc/passwd"},
		),
		"a great index of a parameter": of(
			`parameter "a\[9999999999\]"`,
			objects.Request{Helm: &objects.Helm{Parameters: []objects.Parameter{{Name: "a[9999999999]", Value: "x"}}}},
			chart(nil),
		),
		"a schema of the machine": ofChart(
			`values.schema.json.*file:///etc/passwd, which rendering does not read`,
			map[string]string{"values.schema.json": `{"$ref": "file:///etc/passwd"}`},
		),
		"a schema of this machine": ofChart(
			`values.schema.json.*file:///etc/passwd, which rendering does not read`,
			map[string]string{"values.schema.json": `{"$ref": "file:///etc/passwd"}`},
		),
		"a schema of itself": ofChart(`chart`, map[string]string{"values.schema.json": `{"allOf": [{"$ref": "#"}]}`}),
		"deep subcharts":     ofChart("as deep as it can be", nested(acceptancetest.Count(30, 100))),
		"a dependency that is missing": ofChart(
			`depends on other, which its folder charts does not have`,
			map[string]string{
				"Chart.yaml": "apiVersion: v2\nname: till\nversion: 1.0.0\ndependencies: [{name: other, version: 1.0.0, repository: 'https://example.com'}]\n",
			},
		),
		"a bomb as a subchart": ofChart(
			`chart.*(larger than the maximum size|256 MiB)`,
			map[string]string{
				"charts/sub.tgz": packed(t, map[string]string{"Chart.yaml": "apiVersion: v2\nname: sub\nversion: 1.0.0\n"}, 101<<20),
			},
		),
		"a subchart that leads out": ofChart(
			`chart.*sub.tgz`,
			map[string]string{"charts/sub.tgz": packed(t, map[string]string{"../../Chart.yaml": "apiVersion: v2\nname: sub\nversion: 1.0.0\n"}, 0)},
		),
		"a subchart that is no archive": ofChart(`chart.*sub.tgz`, map[string]string{"charts/sub.tgz": "no archive"}),
		"a version that is no version": ofChart(
			`chart.*version "one" is invalid`,
			map[string]string{"Chart.yaml": "apiVersion: v2\nname: till\nversion: one\n"},
		),
		"a deep CRD": ofChart(
			`chart`,
			map[string]string{
				"crds/a.yaml": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a}\nspec: " + strings.Repeat(
					"{a: ",
					100000,
				),
			},
		),
		"aliases in a CRD": ofChart(
			`crds/a.yaml.*excessive aliasing`,
			map[string]string{"crds/a.yaml": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a}\n" + aliases},
		),
		"a folder outside": {
			files:   chart(nil),
			request: objects.Request{Path: "../chart", Helm: &objects.Helm{}},
			want:    `path "../chart" is outside of it`,
		},

		// Kustomizations.
		"a remote base":        built(network, "resources: ['https://github.com/example/app//base?ref=v1']\n", nil),
		"a remote base of git": built(network, "resources: ['github.com/example/app//base?ref=v1']\n", nil),
		"a remote base of SSH": built(network, "resources: ['git@github.com:example/app.git']\n", nil),
		"a remote component":   built(network, "components: ['https://github.com/example/app']\n", nil),
		"a remote base below": built(
			"base/kustomization.yaml refers to https://example.com/a: "+network,
			"resources: [base]\n",
			map[string]string{"apps/base/kustomization.yaml": "resources: ['https://example.com/a']\n"},
		),
		"a remote patch":               built(network, "resources: [../secret.yaml]\npatches: [{path: 'https://example.com/a.yaml'}]\n", nil),
		"a remote file of a ConfigMap": built(network, "configMapGenerator: [{name: a, files: ['a=https://example.com/a']}]\n", nil),
		"a remote file, by a generator": built(
			network,
			"generators: [generator.yaml]\n",
			map[string]string{
				"apps/generator.yaml": "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: a}\nfiles: ['https://example.com/a']\n",
			},
		),
		"a remote schema": built(network, "resources: [../secret.yaml]\nopenapi: {path: 'https://example.com/a.json'}\n", nil),
		"a chart": built(
			"has helmCharts, which are not rendered",
			"helmCharts: [{name: a, repo: 'https://example.com'}]\n",
			nil,
		),
		"a chart, by a generator": built(
			"helm",
			"generators: [generator.yaml]\n",
			map[string]string{
				"apps/generator.yaml": "apiVersion: builtin\nkind: HelmChartInflationGenerator\nmetadata: {name: a}\nname: a\nrepo: https://example.com\n",
			},
		),
		"a program": built(
			"plugin",
			"generators: [generator.yaml]\n",
			map[string]string{
				"apps/generator.yaml": "apiVersion: a.example.com/v1\nkind: A\nmetadata:\n  name: a\n  annotations:\n    config.kubernetes.io/function: |\n      exec: {path: ./run.sh}\n",
				"apps/run.sh":         "#!/bin/sh\ntouch /tmp/run\n",
			},
		),
		"a container": built(
			"plugin",
			"transformers: [transformer.yaml]\nresources: [../secret.yaml]\n",
			map[string]string{
				"apps/transformer.yaml": "apiVersion: a.example.com/v1\nkind: A\nmetadata:\n  name: a\n  annotations:\n    config.kubernetes.io/function: |\n      container: {image: 'example.com/a', network: true}\n",
			},
		),
		"Starlark": built(
			"plugin",
			"transformers: [transformer.yaml]\nresources: [../secret.yaml]\n",
			map[string]string{
				"apps/transformer.yaml": "apiVersion: a.example.com/v1\nkind: A\nmetadata:\n  name: a\n  annotations:\n    config.kubernetes.io/function: |\n      starlark: {path: a.star, name: a}\n",
				"apps/a.star":           "x = 1\n",
			},
		),
		"a program, by a plugin": built(
			"plugin",
			"generators: [generator.yaml]\n",
			map[string]string{"apps/generator.yaml": "apiVersion: someteam.example.com/v1\nkind: Exec\nmetadata: {name: a}\n"},
		),
		"a resource outside":     built(`"../../etc/passwd", which is outside of the artifact`, "resources: [../../etc/passwd]\n", nil),
		"a resource by its path": built(`"/etc/passwd", which is outside of the artifact`, "resources: [/etc/passwd]\n", nil),
		"a file outside": built(
			`apps.*etc/passwd|etc/passwd`,
			"configMapGenerator: [{name: a, files: [../../../../etc/passwd]}]\n",
			nil,
		),
		"a file by its path": built("etc/passwd", "configMapGenerator: [{name: a, files: [/etc/passwd]}]\n", nil),
		"variables outside":  built("etc/passwd", "secretGenerator: [{name: a, envs: [/etc/passwd]}]\n", nil),
		"a link to a file outside": built(
			`symbolic link "apps/a" leads out of the artifact, to "/etc/passwd"`,
			"configMapGenerator: [{name: a, files: [a]}]\n",
			map[string]string{"apps/a": "-> /etc/passwd"},
		),
		"a link to a resource outside": built(
			`symbolic link "apps/a.yaml" leads out of the artifact, to "../../etc/passwd"`,
			"resources: [a.yaml]\n",
			map[string]string{"apps/a.yaml": "-> ../../etc/passwd"},
		),
		"a link to a folder outside": built(
			`outside|leads out|does not exist`,
			"resources: [a/b.yaml]\n",
			map[string]string{"apps/a": "-> ../../etc"},
		),
		"links to each other": built(
			`does not exist in the artifact`,
			"resources: [a.yaml]\n",
			map[string]string{"apps/a.yaml": "-> b.yaml", "apps/b.yaml": "-> a.yaml"},
		),
		"links to many folders": built("symbolic links lead to more than 50000 files", "resources: [a.yaml]\n", manyLinks),
		"a base of itself": built(
			"cycle",
			"resources: [base]\n",
			map[string]string{"apps/base/kustomization.yaml": "resources: [../../apps]\n"},
		),
		"aliases in a kustomization": built(
			"kustomization.yaml.*excessive aliasing",
			"resources: [../secret.yaml]\n"+strings.ReplaceAll(aliases, "a: &a", "namePrefix: &a"),
			nil,
		),
		"aliases in a resource": built(
			"excessive aliasing|"+bounds,
			"resources: [a.yaml]\n",
			map[string]string{"apps/a.yaml": settings + aliases},
		),
		"a patch that doubles": built(bounds, "resources: [../secret.yaml]\npatches: [{target: {kind: ConfigMap}, patch: '["+
			strings.TrimSuffix(
				strings.Repeat(`{"op": "copy", "from": "/data", "path": "/data/a"}, {"op": "copy", "from": "/data", "path": "/data/b"}, `, 30),
				", ",
			)+"]'}]\n", nil),
		"a kustomization that is no map": built("kustomization.yaml", "[a]\n", nil),
		"an object that is none": built(
			"apps",
			"resources: [a.yaml]\n",
			map[string]string{"apps/a.yaml": "kind: [a]\napiVersion: {a: b}\nmetadata: 1\n"},
		),

		// Plain manifests.
		"aliases in a manifest": plain("apps/a.yaml.*excessive aliasing", map[string]string{"apps/a.yaml": settings + aliases}),
		"a deep manifest":       plain("apps/a.yaml", map[string]string{"apps/a.yaml": settings + "b: " + strings.Repeat("[", 200000)}),
		"a deep manifest in JSON": plain(
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
		"lists of lists": plain(
			"apps",
			map[string]string{"apps/a.json": strings.Repeat(`{"apiVersion": "v1", "kind": "List", "items": [`, 6000) + strings.Repeat("]}", 6000)},
		),
		"a manifest that is not UTF-8": plain(
			"apps/a.yaml",
			map[string]string{"apps/a.yaml": "apiVersion: v1\nkind: A\nmetadata: {name: \"\xff\xfe\"}\n"},
		),
		"JSON that is not UTF-8": plain(
			"apps/a.json",
			map[string]string{"apps/a.json": "{\"apiVersion\": \"v1\", \"kind\": \"A\", \"metadata\": {\"name\": \"a\xff\"}}"},
		),
		"a link out of a folder": plain(
			`symbolic link "apps/a.yaml" leads out of the artifact, to "/etc/passwd"`,
			map[string]string{"apps/a.yaml": "-> /etc/passwd", "apps/b.yaml": settings},
		),
		"Jsonnet": plain("apps/a.jsonnet is Jsonnet, which cannot be rendered", map[string]string{"apps/a.jsonnet": "{}"}),
		"thousands of large files": plain(
			"it renders more than 16 MiB",
			many(acceptancetest.Count(0, 2200), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a%d}\ndata: {text: "+strings.Repeat("x", 8000)+"}\n"),
		),
		"files of more than the memory": plain(
			"its files have more than 128 MiB",
			map[string]string{"apps/a.yaml": settings, "large": strings.Repeat("x", acceptancetest.Count(0, 130<<20))},
		),
		"variables of variables": {
			files:   map[string]string{"apps/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: '${A:=${A:=${A'}\n"},
			request: objects.Request{Kustomize: &objects.Kustomize{Generate: true}, Substitute: map[string]string{"B": "1"}},
			want:    "ConfigMap",
		},
		"a pattern that is none": {
			files:   map[string]string{"apps/a.yaml": settings},
			request: objects.Request{Directory: &objects.Directory{Include: "{a,["}},
			want:    `include "\{a,\[" is not a pattern`,
		},
	}
}

// similar are cases that `make acceptance` plays. The others exceed the same bound, or these tests have it with less:
// TestWhatComesToItsBoundsIsAnErrorAndTheNextIsRendered, TestOutputOfManyFilesIsBounded and TestFilesOfAnArtifactAreBounded.
var similar = []string{
	"a great until", "a great untilStep", "a great random text", "a great indent", "a list that doubles", "a text that doubles",
	"a tpl that doubles", "a tpl of itself", "a dict within itself, as JSON", "a dict within itself, copied", "a dict within itself, merged",
	"values within themselves", "a deep pipeline", "a loop", "a great repeat", "much output", "a patch that doubles",
	"thousands of large files", "files of more than the memory",
}

func TestMeanInputIsAnErrorWithinBounds(t *testing.T) {
	archives := objectstest.NewArchives(t)
	workers := renderer.NewWorkers(2)
	within := func(limit time.Duration) *renderer.Pool {
		return pool(t, archives, renderer.PoolOptions{Time: limit, Memory: 256 << 20, Workers: workers})
	}
	long, short, shortest := within(5*time.Minute), within(500*time.Millisecond), within(300*time.Millisecond)
	number := 0
	for name, test := range hostiles(t) {
		if !acceptancetest.All() && slices.Contains(similar, name) {
			continue
		}
		number++
		what := shop
		what.Pin.Commit = fmt.Sprintf("%040x", number)
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
		request.Artifact = archives.Add(what, test.files)
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
				t.Fatal("there is no error")
			}
			said := err.Error()
			if !regexp.MustCompile(test.want).MatchString(said) {
				t.Errorf("the error is %.1000q, want %q", said, test.want)
			}
			if !strings.Contains(said, request.Artifact.Pin.Commit) || !strings.Contains(said, request.Path) || !strings.Contains(said, shop.Repo) {
				t.Errorf("the error does not name the artifact: %.1000q", said)
			}
			if len(said) > 2500 || !utf8.ValidString(said) || strings.ContainsRune(said, '\x1b') {
				t.Errorf("the error has %d bytes: %.1000q", len(said), said)
			}
			if strings.Contains(said, "root:") {
				t.Errorf("the error has a file of this machine: %.1000q", said)
			}
		})
	}
}
