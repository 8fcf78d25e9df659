package render_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/fleettest"
)

// FuzzTemplate renders any text as a template twice. Both renderings end, are equal, and print no missing value.
func FuzzTemplate(f *testing.F) {
	seeds, err := filepath.Glob(filepath.Join("templates", "*", "*"))
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range seeds {
		content, err := os.ReadFile(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(content))
	}
	for _, seed := range []string{
		`{{ range $k, $v := .ConfigData }}{{ $k }}={{ $v | quote }}{{ end }}`,
		`{{ define "x" }}{{ .a }}{{ end }}{{ template "x" (dict "a" .Namespace) }}`,
		`{{ with $x := .Labels }}{{ index $x "workload" | upper | repeat 3 }}{{ else }}{{ fail "none" }}{{ end }}`,
		`{{ range until 10 }}{{ if eq . 3 }}{{ continue }}{{ else if gt . 5 }}{{ break }}{{ end }}{{ . }}{{ end }}`,
		`{{ $x := list 1 2 }}{{ $x = append $x .ConfigData.REPLICAS }}{{ printf "%v %q" $x "a" | replace "1" "2" }}`,
		`{{ tpl .ConfigData.TEMPLATE . }}{{ set .ConfigData "a" nil }}{{ .ConfigData.a }}{{ print nil }}{{ (index . "Namespace") }}`,
		`{{ fromYaml "a: [1, {b: c}]" | toJson | fromJson | stringify | nindent 4 }}{{ regexReplaceAll "a" "b" "c" | b64enc }}`,
		`{{ dig "a" "b" "c" .ConfigData }}{{ keys . | sortAlpha | join "," }}{{ .Repo.URL }}{{ seq 1 3 }}{{ merge (dict) .Labels | values }}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, manifest string) {
		deployment := withTemplate("yaml", manifest)
		deployment.config["TEMPLATE"] = manifest
		fleet := deployment.fleet()
		templates, findings := render.Compile(fleet)
		if len(findings) > 0 {
			return
		}
		subject := deployment.subject(fleet)
		first, err := templates.Render(subject)
		second, again := templates.Render(subject)
		if (err == nil) != (again == nil) || err != nil && err.Error() != again.Error() {
			t.Fatalf("%v, and then %v", err, again)
		}
		var failure *render.TemplateError
		if err != nil && !errors.Is(err, render.ErrUnknown) && !errors.As(err, &failure) {
			t.Fatalf("%T: %v", err, err)
		}
		for i, file := range first {
			if !bytes.Equal(file.Content, second[i].Content) {
				t.Fatalf("%q, and then %q", file.Content, second[i].Content)
			}
			for _, missing := range []string{"<no value>", "<nil>"} {
				if bytes.Contains(file.Content, []byte(missing)) && !strings.Contains(manifest, "<") && !strings.Contains(manifest, "enc") {
					t.Fatalf("printed %s: %q", missing, file.Content)
				}
			}
		}
		_ = templates.Check(subject, first)
	})
}

// FuzzCheck checks any content. Kubernetes' own parser must read all accepted content.
func FuzzCheck(f *testing.F) {
	for _, seed := range []string{
		"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  labels: {a: b}\ndata:\n  a: |\n    b\n",
		"apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Secret, metadata: {name: a}}]\n",
		"a: &a {b: 1}\nc:\n  <<: *a\n  d: *a\n", "- a\n- 'b'\n- \"c\\n\"\n- !!binary aGk=\n", "? a\n: b\n", "~: a\n", "[a]: b\n", ": a\n", "a: 1\na: 2\n",
		"%YAML 1.1\n---\na: on\n", "# nothing\n", "a: 2001-01-01\nb: 0o17\nc: 1_000\nd: .inf\ne: ~\n", "\ufeffa: 1\n", "{\"a\": [1, 2.5e3, null]}",
	} {
		f.Add([]byte(seed))
	}
	templates, subject := withTemplate("yaml", "a: 1").compile(f)
	asJSON, jsonSubject := withTemplate("json", "{}").compile(f)
	f.Fuzz(func(t *testing.T, content []byte) {
		fleettest.Bounded(t, string(content), func() {
			_ = asJSON.Check(jsonSubject, []render.AssignmentFile{{Name: "platform-config.json", Content: content}})
		})
		var findings fleet.Findings
		fleettest.Bounded(t, string(content), func() {
			findings = templates.Check(subject, []render.AssignmentFile{{Name: "platform-config.yaml", Content: content}})
		})
		if len(findings) > 0 || bytes.Contains(content, []byte("---")) || bytes.Contains(content, []byte("...")) {
			return
		}
		if _, err := yaml.YAMLToJSON(content); err != nil {
			t.Fatalf("%q is accepted, but Kubernetes says %v", content, err)
		}
	})
}

// FuzzQuickCheck compares the quick check with the full check, which must have no findings in accepted files. Kubernetes'
// parser must read them.
func FuzzQuickCheck(f *testing.F) {
	for _, seed := range []string{
		`{"A": "b", "URL": "postgres://x:5432/app", "N": 3, "B": true, "E": "", "Q": "yes", "Z": "0911", "C": "key: value # no"}`,
		`{"O": {"a": [1, {"b": null}], "c": "x y"}, "M": "a\n  b\n\nc\n", "T": "a\nb", "S": " a\nb", "I": "|", "J": ">-"}`,
		`{"my key": "x", "..": "y", "y": "z", "null": 1, "a.b-c_d": "\u0085", "F": "*a", "G": "&a", "H": "!a", "K": "- a", "L": "a: b"}`,
		`{"A": "\n", "B": "\n\na", "C": "a\n ", "D": "\ta\nb", "E": "#a\nb", "F": "---\na", "G": "a\n---\nb", "H": "it's", "I": "\"a\""}`,
	} {
		f.Add(seed, "")
	}
	f.Add(`{"A": "x"}`, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: \"platform-config\"\n  namespace: \"a\"\n  labels:\n"+
		"    app.kubernetes.io/managed-by: flotilla\ndata:\n  A: |\n    b\n      c\n  D: 'e'\n  A: x\n")
	for _, content := range []string{
		"apiVersion: a.b/v1\nkind: Role\nmetadata:\n  name: x\n  namespace: y\n  annotations:\n    a/b: c\n---\napiVersion: a.b/v2\nkind: Role\nmetadata:\n  name: x\n",
		"apiVersion: v1\nkind: List\nitems:\n- a: b\n", "apiVersion: v1\nkind: Service\nmetadata:\n  name: x\n  labels:\n    a: 1\n", "- a\n", "# x\n--- a\n", "%FOO\n---\n", "... x\n", "# x\u0085y: z\n",
		"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\nbinaryData:\n  x..: y\n  ..x: \"a: b\"\n  y: 'a\"b'\n",
	} {
		f.Add(`{}`, content)
	}
	f.Fuzz(func(t *testing.T, text, content string) {
		value, err := fleet.ParseJSON(text)
		config, isObject := value.(map[string]any)
		if err != nil || !isObject {
			return
		}
		deployment := deployment{config: config, namespace: "hello"}
		templates, subject := deployment.compile(t)
		files := []render.AssignmentFile{{Name: "platform-config.yaml", Content: []byte(content)}}
		if content == "" {
			if files, err = templates.Render(subject); err != nil {
				return
			}
		}
		for _, file := range files {
			if file.Name != "platform-config.yaml" || !render.IsQuicklyValid(templates, subject, file) {
				continue
			}
			if findings := render.FullCheck(templates, subject, file); len(findings) > 0 {
				t.Fatalf("%s\n%s", findings, file.Content)
			}
			for _, document := range fleet.SplitYAML(string(file.Content)) {
				var parsed struct {
					Kind string
					Data map[string]any
				}
				if err := yaml.UnmarshalStrict([]byte(document.Text), &map[string]any{}); err != nil {
					t.Fatalf("%s\n%s", err, file.Content)
				}
				if err := yaml.Unmarshal([]byte(document.Text), &parsed); err != nil {
					t.Fatalf("%s\n%s", err, file.Content)
				}
				for key, value := range parsed.Data {
					if _, isText := value.(string); !isText && parsed.Kind == "ConfigMap" {
						t.Fatalf("%s is a %T\n%s", key, value, file.Content)
					}
				}
			}
		}
	})
}
