package render_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
)

func TestErrorsOfEndlessOrGrowingTemplatesNameTheLimit(t *testing.T) {
	for template, want := range map[string]string{
		`{{ range 1000000000000 }}{{ end }}`:                                                                                                  "loops and calls of templates take more than 100000 steps",
		`{{ range until 1000 }}{{ range until 1000 }}{{ end }}{{ end }}`:                                                                      "loops and calls of templates take more than 100000 steps",
		`{{ define "x" }}{{ template "x" . }}{{ end }}{{ template "x" . }}`:                                                                   "templates call each other more than 100 levels deep",
		`{{ define "x" }}{{ if lt . 60 }}{{ template "x" (add1 .) }}{{ template "x" (add1 .) }}{{ end }}{{ end }}{{ template "x" (add1 0) }}`: "take more than 100000 steps",
		`{{ $t := "{{ tpl .ConfigData.loop . }}" }}{{ tpl $t . }}`:                                                                            "templates call each other more than 100 levels deep",
		`{{ until 2000000000 | len }}`:                                                                                                        "a list of numbers is larger than 1 MiB",
		`{{ untilStep 0 9223372036854775807 1 | len }}`:                                                                                       "a list of numbers is larger than 1 MiB",
		`{{ untilStep 0 -9223372036854775807 -1 | len }}`:                                                                                     "a list of numbers is larger than 1 MiB",
		`{{ seq 1 2000000000 }}`:                                                                                                              "a list of numbers is larger than 1 MiB",
		`{{ seq 2000000000 }}`:                                                                                                                "a list of numbers is larger than 1 MiB",
		`{{ seq 1 1 2000000000 }}`:                                                                                                            "a list of numbers is larger than 1 MiB",
		`{{ repeat 2000000000 "x" }}`:                                                                                                         "a text is larger than 1 MiB",
		`{{ repeat 9223372036854775807 "xx" }}`:                                                                                               "a text is larger than 1 MiB",
		`{{ indent 2000000000 "x" }}`:                                                                                                         "a text is larger than 1 MiB",
		`{{ nindent 2000000000 "x" }}`:                                                                                                        "a text is larger than 1 MiB",
		`{{ $x := repeat 100000 "a" }}{{ replace "a" $x $x }}`:                                                                                "a text is larger than 1 MiB",
		`{{ $x := repeat 100000 "a" }}{{ regexReplaceAll "a" $x $x }}`:                                                                        "a text is larger than 1 MiB",
		`{{ $x := repeat 100000 "a" }}{{ regexReplaceAllLiteral "a" $x $x }}`:                                                                 "a text is larger than 1 MiB",
		`{{ $x := repeat 1000 "a" }}{{ mustRegexReplaceAll "(a+)" $x (repeat 10000 "${1}") }}`:                                                "a text is larger than 1 MiB",
		`{{ $x := repeat 100000 "a" }}{{ join $x (until 1000) }}`:                                                                             "a text is larger than 1 MiB",
		`{{ $x := repeat 100000 "a" }}{{ wrapWith 1 $x $x }}`:                                                                                 "a text is larger than 1 MiB",
		`{{ regexMatch (repeat 1001 "a?") "a" }}`:                                                                                             "a pattern of 2002 bytes is longer than 1000",
		`{{ mustRegexFindAll (repeat 1001 "a?") (repeat 1000 "a") -1 }}`:                                                                      "a pattern of 2002 bytes is longer than 1000",
		`{{ semverCompare (repeat 1000 ">=1 ") "1.0.0" }}`:                                                                                    "a pattern of 4000 bytes is longer than 1000",
		`{{ printf "%1000000d %1000000d" 1 2 }}`:                                                                                              "a text is larger than 1 MiB",
		`{{ $x := repeat 100000 "a" }}{{ printf (repeat 1000 "%[1]s") $x }}`:                                                                  "a text is larger than 1 MiB",
		`{{ printf "%*d" 1000000 1 }}`:                                                                                                        "a width that is an argument",
		`{{ $x := "a" }}{{ range until 100 }}{{ $x = b64enc $x }}{{ end }}`:                                                                   "a value is larger than 1 MiB",
		`{{ $x := "a" }}{{ range until 100 }}{{ $x = quote $x }}{{ end }}`:                                                                    "a value is larger than 1 MiB",
		`{{ $x := list 1 }}{{ range until 100 }}{{ $x = concat $x $x }}{{ end }}`:                                                             "a value is larger than 1 MiB",
		`{{ $x := list 1 }}{{ range until 100 }}{{ $x = list $x $x }}{{ end }}{{ $x }}`:                                                       "a value is larger than 1 MiB",
		`{{ $x := list 1 }}{{ range until 2000 }}{{ $x = list $x }}{{ end }}{{ $x }}`:                                                         "a value is nested deeper than 1000 levels",
		`{{ $x := repeat 1000000 "a" }}{{ range until 100 }}{{ $y := len $x }}{{ end }}`:                                                      "functions work on more than 64 MiB",
		`{{ $x := repeat 1000000 "a" }}{{ range until 10 }}{{ $x }}{{ end }}`:                                                                 "writes more than 4 MiB into one file",
		`{{ range until 100000 }}{{ range until 100000 }}x{{ end }}{{ end }}`:                                                                 "steps",
		`{{ $x := repeat 1000000 "a" }}{{ range until 10 }}{{ $y := tpl (printf "%s%d" $x .) $ }}{{ end }}`:                                   "functions work on more than 64 MiB",
		`{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ $d }}`:                                                                                   "a value is nested deeper than 1000 levels",
		`{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ toYaml $d }}`:                                                                            "a value is nested deeper than 1000 levels",
		`{{ fromYaml "a: &a [1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e]\ng: [*f,*f,*f,*f,*f,*f,*f]" | len }}`: "",
	} {
		deployment := withTemplate("text", template)
		deployment.config["loop"] = "{{ tpl .ConfigData.loop . }}"
		templates, subject := deployment.compile(t)
		_, err := templates.Render(subject)
		var failure *render.TemplateError
		if !errors.As(err, &failure) {
			t.Errorf("%s: got error %v, want a TemplateError", template, err)
		} else if !strings.Contains(failure.Message, want) {
			t.Errorf("%s: %q, want %q in it", template, failure.Message, want)
		}
	}
}

func TestTemplateTextsAreLimited(t *testing.T) {
	_, findings := render.Compile(withTemplate("text", strings.Repeat(" ", 1<<20+1)).fleet())
	if len(findings) != 1 || !strings.Contains(findings[0].Message, "is longer than 1 MiB") {
		t.Errorf("got findings %v", findings)
	}
}

// If a sum overflowed the largest integer, the list would never end.
func TestListsOfNumbersEndAtTheLargestInteger(t *testing.T) {
	for template, want := range map[string]string{
		`{{ untilStep 0 9223372036854775807 9223372036854775806 }}`:                             "[0 9223372036854775806]",
		`{{ untilStep 0 -9223372036854775808 -9223372036854775807 }}`:                           "[0 -9223372036854775807]",
		`{{ untilStep -9223372036854775808 9223372036854775807 9223372036854775807 }}`:          "[-9223372036854775808 -1 9223372036854775806]",
		`{{ seq 0 9223372036854775805 9223372036854775806 }}`:                                   "0 9223372036854775805",
		`{{ untilStep 0 10 4 }} {{ untilStep 10 0 -5 }} {{ untilStep 0 10 -1 }} {{ until -2 }}`: "[0 4 8] [10 5] [] [0 -1]",
		`{{ seq 3 }}, {{ seq -1 }}, {{ seq 2 0 }}, {{ seq 1 2 6 }}, {{ seq 1 1 0 }}, {{ seq }}`: "1 2 3, 1 0 -1, 2 1 0, 1 3 5, , ",
	} {
		templates, subject := withTemplate("text", template).compile(t)
		files, err := templates.Render(subject)
		if err != nil {
			t.Fatalf("%s: %v", template, err)
		}
		if got := strings.TrimSuffix(string(files[1].Content), "\n"); got != want {
			t.Errorf("%s: %q, want %q", template, got, want)
		}
	}
}

func TestLimitsApplyToOneFile(t *testing.T) {
	templates, subject := withTemplate("text", `{{ range until 60000 }}{{ end }}x`).compile(t)
	for range 5 {
		if _, err := templates.Render(subject); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTemplatesCannotChangeTheInputsOfOthers(t *testing.T) {
	deployment := withTemplate("text",
		`{{ $_ := set .ConfigData "ADDED" "x" }}{{ $_ := unset .Labels "workload" }}{{ $_ := set .ConfigData.LIMITS "cpu" "1" }}`+
			`{{ $_ := set . "Namespace" "elsewhere" }}{{ .ConfigData.ADDED }} {{ .ConfigData.LIMITS.cpu }}`,
		`{{ tpl "{{ $_ := mergeOverwrite .ConfigData (dict \"REPLICAS\" 7) }}" . }}{{ .ConfigData.REPLICAS }} {{ .Namespace }}`)
	templates, subject := deployment.compile(t)
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for range 50 {
				files, err := templates.Render(subject)
				if err != nil {
					t.Error(err)
					return
				}
				if got := string(files[1].Content); got != "x 1\n7 elsewhere\n" {
					t.Errorf("rendered %q", got)
				}
				if got := string(files[0].Content); !strings.Contains(got, "dev-drone-hello-dev") || !strings.Contains(got, `workload: "hello"`) {
					t.Errorf("got namespace %q", got)
				}
			}
		})
	}
	workers.Wait()
	if _, ok := deployment.config["ADDED"]; ok || deployment.config["LIMITS"].(map[string]any)["cpu"] != "500m" {
		t.Errorf("the configuration was changed: %v", deployment.config)
	}
}

func TestRenderingIsTheSameEveryTime(t *testing.T) {
	deployment := withTemplate("text", strings.Join([]string{
		`{{ keys .ConfigData .Labels }} {{ values .ConfigData }} {{ keys .ConfigData | reverse }}`,
		`{{ range $k, $v := .ConfigData }}{{ $k }}{{ end }} {{ .ConfigData }} {{ pick .ConfigData "DEBUG" "EMPTY" }}`,
		`{{ omit .ConfigData "DEBUG" | toJson }} {{ merge (dict "a" 1 "b" 2) .ConfigData | toYaml }} {{ hash .ConfigData }}`,
		`{{ pluck "a" (dict "a" 1) (dict "a" 2) }} {{ toPrettyJson .ConfigData }} {{ urlParse "http://x/?b=1&a=2" }} {{ splitn "," 2 "a,b,c" }}`,
		`{{ deepCopy .ConfigData | toRawJson }} {{ toEnv (omit .ConfigData "") }} {{ toProperties .ConfigData }} {{ stringify .ConfigData }}`,
	}, "\n"))
	first := ""
	for range 100 {
		got := deployment.render(t)["platform-config.txt"]
		if first == "" {
			first = got
		}
		if got != first {
			t.Fatalf("rendered\n%s\nand then\n%s", first, got)
		}
	}
}

func TestManifestsOfATemplateAreJoined(t *testing.T) {
	for name, example := range map[string]struct {
		contentType string
		manifests   []string
		want        string
	}{
		"YAML documents":                    {"yaml", []string{"a: 1", "b: 2\n", "c: 3"}, "a: 1\n---\nb: 2\n---\nc: 3\n"},
		"YAML documents with separators":    {"yaml", []string{"---\na: 1\n", "---\nb: 2\n"}, "---\na: 1\n---\nb: 2\n"},
		"empty manifests":                   {"yaml", []string{" \n", "a: 1\n", "{{ if false }}b: 2{{ end }}\n", "c: 3\n"}, "a: 1\n---\nc: 3\n"},
		"other content":                     {"env", []string{"A=1", "B=2\n"}, "A=1\nB=2\n"},
		"a file without content":            {"text", []string{" \n", "{{/* comment */}}\n"}, ""},
		"a template without manifests":      {"text", nil, ""},
		"a template with definitions alone": {"text", []string{`{{ define "x" }}x{{ end }}`}, ""},
		"definitions of two manifests":      {"text", []string{`{{ define "x" }}1{{ end }}{{ template "x" }}`, `{{ define "x" }}2{{ end }}{{ template "x" }}`}, "1\n2\n"},
	} {
		t.Run(name, func(t *testing.T) {
			deployment := withTemplate(example.contentType, example.manifests...)
			deployment.reconciler = "zarf" // the others accept only manifests
			files := deployment.render(t)
			extension := map[string]string{"yaml": "yaml", "env": "env", "text": "txt"}[example.contentType]
			got, written := files["platform-config."+extension]
			if got != example.want || written != (example.want != "") {
				t.Errorf("got %q, want %q in %v", got, example.want, files)
			}
		})
	}
}

func TestFilesAreNamedByTypeAndContentType(t *testing.T) {
	for contentType, extension := range map[string]string{
		"": "yaml", "yaml": "yaml", "json": "json", "env": "env", "properties": "properties", "sh": "sh", "text": "txt",
	} {
		deployment := withTemplate(contentType, "{}")
		deployment.reconciler = "zarf"
		files := deployment.render(t)
		var names []string
		for name := range files {
			names = append(names, name)
		}
		if _, ok := files["platform-config."+extension]; !ok || len(files) != 3 {
			t.Errorf("content type %q writes %q", contentType, names)
		}
	}
}

func TestErrorsNameTemplateManifestLineAndAction(t *testing.T) {
	for template, want := range map[string]string{
		"a\n  b: {{ .ConfigData.NOPE | quote }}\n":   `config template "own", manifests[1], line 2, {{ .ConfigData.NOPE | quote }}: .ConfigData.NOPE has no value`,
		"{{ fail \"no region\" }}":                   `config template "own", manifests[1], line 1, {{ fail "no region" }}: no region`,
		"\n\n{{ index .ConfigData.REGIONS 7 }}":      `config template "own", manifests[1], line 3, {{ index .ConfigData.REGIONS 7 }}: index out of range: 7`,
		"{{ upper .ConfigData.REPLICAS }}":           `config template "own", manifests[1], line 1, {{ upper .ConfigData.REPLICAS }}: wrong type for value; expected string; got int64`,
		"{{ template \"x\" . }}":                     `config template "own", manifests[1], line 1, {{ template "x" . }}: template "x" not defined`,
		"{{ tpl \"a\\n{{ .NOPE }}\" . }}":            `config template "own", manifests[1], line 1, {{ tpl "a\n{{ .NOPE }}: in the text given to tpl, line 2, {{ .NOPE }}: .NOPE has no value`,
		"{{ tpl \"{{ now }}\" . }}":                  `config template "own", manifests[1], line 1, {{ tpl "{{ now }}: in the text given to tpl, line 1: function "now" is not for templates: it reads the clock, or the time zone of the machine that renders`,
		"{{ div 1 0 }}":                              `config template "own", manifests[1], line 1, {{ div 1 0 }}: runtime error: integer divide by zero`,
		"{{ fromJson \"{\" }}":                       `fromJson: the text ends too early`,
		"{{ fromYaml \"a: [\" }}":                    `fromYaml: line 1: did not find expected node content`,
		"{{ toEnv (dict \"a b\" 1) }}":               `key "a b" cannot be the name of an environment variable`,
		"{{ dig \"REPLICAS\" \"x\" 1 .ConfigData }}": `dig: what should hold "x" is not a map`,
	} {
		templates, subject := withTemplate("text", "fine", template).compile(t)
		_, err := templates.Render(subject)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot  %v\nwant %s", template, err, want)
		}
	}
}

func TestEveryFailingTemplateIsReportedAtOnce(t *testing.T) {
	deployment := withTemplate("text", "{{ .Nope }}")
	deployment.namespaceService, deployment.reconciler = "own", "own"
	for _, kind := range []string{"namespace", "reconciler", "policy"} {
		name := "own"
		if kind == "policy" {
			name = "default"
		}
		own := deployment.templates[0]
		own.Type, own.Name = kind, name
		deployment.templates = append(deployment.templates, own)
	}
	templates, subject := deployment.compile(t)
	_, err := templates.Render(subject)
	if lines := strings.Split(fmt.Sprint(err), "\n"); len(lines) != 4 {
		t.Errorf("%d errors, want one for each template:\n%v", len(lines), err)
	}
}

func TestCompileReportsEveryUsedTemplate(t *testing.T) {
	deployment := withTemplate("text", "fine", "{{ now }}\n", "a\n{{ if }}")
	deployment.reconciler, deployment.namespaceService = "fluxx", "none"
	unused := deployment.templates[0]
	unused.Name = "unused"
	deployment.templates = append(deployment.templates, unused)
	_, findings := render.Compile(deployment.fleet())
	want := `cluster_types["drone"].namespace_service: no template of type namespace is called "none"
templates["own"].manifests[1]: config template, line 1: function "now" is not for templates: it reads the clock, or the time zone of the machine that renders
templates["own"].manifests[2]: config template, line 2: missing value for if
cluster_types["drone"].reconciler: no template of type reconciler is called "fluxx"; did you mean "flux"?`
	if findings.Error() != want {
		t.Errorf("findings\n%s\nwant\n%s", findings, want)
	}
}

func TestFleetsTemplateReplacesTheBuiltinOne(t *testing.T) {
	deployment := withTemplate("yaml", "a: 1")
	deployment.configType, deployment.templates[0].Name, deployment.reconciler = "configmap", "configmap", "zarf"
	if got := deployment.render(t)["platform-config.yaml"]; got != "a: 1\n" {
		t.Errorf("got %q", got)
	}
}
