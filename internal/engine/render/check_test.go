package render_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
)

// checkTemplate renders one template of a content type, with the other templates empty, and returns the findings.
func checkTemplate(t *testing.T, kind, contentType string, manifests ...string) fleet.Findings {
	t.Helper()
	deployment := deployment{namespaceService: "own", configType: "own", reconciler: "own"}
	empty := fleet.Template{Name: "own", Manifests: []string{""}}
	for _, other := range []string{"namespace", "config", "reconciler"} {
		template := empty
		template.Type = other
		if other == kind {
			template.ContentType, template.Manifests = contentType, manifests
		}
		deployment.templates = append(deployment.templates, template)
	}
	templates, subject := deployment.compile(t)
	files, err := templates.Render(subject)
	if err != nil {
		t.Fatal(err)
	}
	return templates.Check(subject, files)
}

func configMap(lines ...string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n" + strings.Join(lines, "\n") + "\n"
}

func TestCheckFindsInvalidFiles(t *testing.T) {
	for name, example := range map[string]struct {
		manifest string
		want     string // after `templates["own"]: config template: platform-config.yaml`
	}{
		"no YAML":                        {"a: 1\nb: [\n", ", line 2: is not YAML: did not find expected node content"},
		"a tab":                          {"a:\n\tb: 1\n", ", line 2: is not YAML: found character that cannot start any token"},
		"an alias":                       {"a: *secret\n", ": is not YAML: a value that starts with \"*\" must be in quotes"},
		"an open quote":                  {"a: \"b\n", ", line 2: is not YAML: found unexpected end of stream"},
		"the second document":            {"a: 1\n---\nb: [", ", line 3: is not YAML: did not find expected node content"},
		"a duplicate key":                {"a: 1\nb: 2\na: 3\n", `, line 3: key "a" appears twice, first in line 1`},
		"no kind":                        {"apiVersion: v1\n", ", line 1: has no kind"},
		"no apiVersion":                  {"kind: ConfigMap\n", ", line 1: has no apiVersion"},
		"an empty kind":                  {"apiVersion: v1\nkind: \"\"\n", ", line 1: has no kind"},
		"no metadata":                    {"apiVersion: v1\nkind: ConfigMap\n", ", line 1: has no metadata.name"},
		"no name":                        {"apiVersion: v1\nkind: ConfigMap\nmetadata: {}\n", ", line 3: has no metadata.name"},
		"a number as name":               {"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: 12\n", ", line 4: metadata.name is not a string"},
		"an invalid name":                {"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: A_b\n", `, line 4: metadata.name "A_b" is not a DNS subdomain: lower case letters, digits, "-" and ".", starting and ending with a letter or digit, at most 253 characters`},
		"a namespace with a dot":         {"apiVersion: v1\nkind: Namespace\nmetadata:\n  name: a.b\n", `, line 4: metadata.name "a.b" is not a DNS label: lower case letters, digits and "-", starting and ending with a letter or digit, at most 63 characters`},
		"an invalid namespace":           {configMap("  namespace: a.b"), `, line 5: metadata.namespace "a.b" is not a DNS label: lower case letters, digits and "-", starting and ending with a letter or digit, at most 63 characters`},
		"a boolean label":                {configMap("  labels:", "    a: true"), `, line 6: labels["a"] is not a string: put it in quotes`},
		"a boolean of YAML 1.1":          {configMap("  labels:", "    a: on"), `, line 6: labels["a"] is not a string: put it in quotes`},
		"a number annotation":            {configMap("  annotations:", "    a: 1"), `, line 6: annotations["a"] is not a string: put it in quotes`},
		"a label's key":                  {configMap("  labels:", "    a b: c"), `, line 6: "a b" is not the key of a label`},
		"a label's value":                {configMap("  labels:", "    a: b c"), `, line 6: labels["a"]: "b c" is not the value of a label`},
		"a number as data":               {configMap("data:", "  PORT: 80"), `, line 6: data["PORT"] is not a string: put it in quotes`},
		"a list as data":                 {configMap("data:", "  PORT: []"), `, line 6: data["PORT"] is not a string: put it in quotes`},
		"too much data":                  {configMap(`data: {"a": "{{ repeat 600000 "x" }}", "b": "{{ repeat 600000 "x" }}"}`), ", line 1: the ConfigMap's values have 1200000 bytes, and Kubernetes accepts 1048576; the largest is \"a\", with 600000"},
		"a key with a space":             {configMap("data:", "  my key: x"), `, line 6: key "my key" cannot be one of a ConfigMap: letters, digits, "-", "_" and "." can, up to 253 of them, and it does not start with ".."`},
		"a key of dots":                  {configMap("data:", "  ..: x"), `, line 6: key ".." cannot be one of a ConfigMap`},
		"a long key":                     {configMap(`data: {"{{ repeat 254 "x" }}": x}`), `, line 5: key "` + strings.Repeat("x", 254) + `" cannot be one of a ConfigMap`},
		"a duplicate object":             {configMap() + "---\n" + configMap(), `, line 7: ConfigMap "a" is written twice, first in platform-config.yaml, line 1`},
		"a duplicate in another version": {"apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: a}\n---\napiVersion: rbac.authorization.k8s.io/v1beta1\nkind: Role\nmetadata: {name: a}\n", `, line 5: Role "a" is written twice`},
		"inside a list":                  {"apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n", ", line 4: has no metadata.name"},
		"a role's name":                  {"apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: a/b}\n", `, line 3: metadata.name "a/b" may not contain '/'`},
	} {
		t.Run(name, func(t *testing.T) {
			findings := checkTemplate(t, "config", "yaml", example.manifest)
			want := `templates["own"]: config template: platform-config.yaml` + example.want
			if len(findings) != 1 || !strings.HasPrefix(findings[0].String(), want) {
				t.Errorf("findings\n%s\nwant\n%s", findings, want)
			}
		})
	}
}

func TestCheckAcceptsValidFiles(t *testing.T) {
	for name, manifest := range map[string]string{
		"plain values":                   "a: 1\nb: [x]\n",
		"nothing but comments":           "# nothing\n",
		"documents of comments":          "---\n# nothing\n---\n" + configMap(),
		"strings that look like numbers": configMap("  labels:", `    a: "true"`, "data:", `  PORT: "80"`, "  LEADING: '0123'", "  TEXT: |", "    1"),
		"names of roles":                 "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: \"system:node\"}\n",
		"one name in two namespaces":     configMap("  namespace: a") + "---\n" + configMap("  namespace: b"),
		"one name of two kinds":          configMap() + "---\napiVersion: v1\nkind: Secret\nmetadata: {name: a}\n",
		"a list":                         "apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(strings.TrimSpace(configMap()), "\n", "\n  ") + "\n",
		"anchors":                        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: &name a, labels: {app: *name}}\ndata: {a: *name}\n",
	} {
		t.Run(name, func(t *testing.T) {
			if findings := checkTemplate(t, "config", "yaml", manifest); len(findings) > 0 {
				t.Error(findings)
			}
		})
	}
}

func TestCheckRequiresKubernetesDocumentsOfOtherTypes(t *testing.T) {
	for manifest, want := range map[string]string{
		"a: 1\n": "has no apiVersion\n",
		"- 1\n":  "is not a Kubernetes document: it has no apiVersion and kind",
		"text\n": "is not a Kubernetes document: it has no apiVersion and kind",
	} {
		findings := checkTemplate(t, "reconciler", "yaml", manifest)
		if len(findings) == 0 || !strings.Contains(findings.Error()+"\n", want) {
			t.Errorf("%q: findings %v, want %s", manifest, findings, want)
		}
	}
}

func TestCheckReadsJSON(t *testing.T) {
	for manifest, want := range map[string]string{
		`{"a": 1}`:                  "",
		`[1]`:                       "",
		"{\n\"a\": 1,\n}":           ", line 2: is not JSON: invalid character ','",
		"{\"a\": {{ .Namespace }}}": ", line 1: is not JSON: invalid character 'd'",
		`{"a": 1, "a": 2}`:          `is not JSON: key "a" appears twice`,
		`{"a": 1} x`:                "is not JSON: text follows the JSON value",
		`{"apiVersion": "v1", "kind": "ConfigMap"}`:                                                 ", line 1: has no metadata.name",
		`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": 1}}`:    `data["a"] is not a string`,
		`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "\/"}}`: "",
	} {
		findings := checkTemplate(t, "config", "json", manifest)
		if want == "" && len(findings) > 0 || want != "" && !strings.Contains(findings.Error(), want) {
			t.Errorf("%s: findings %v, want %q", manifest, findings, want)
		}
	}
}

func TestCheckLeavesOtherContentAlone(t *testing.T) {
	for _, contentType := range []string{"env", "properties", "sh", "text"} {
		if findings := checkTemplate(t, "config", contentType, "a: ["); len(findings) > 0 {
			t.Errorf("%s: %v", contentType, findings)
		}
	}
}

func TestCheckFindsTheSameObjectInTwoFiles(t *testing.T) {
	deployment := deployment{reconciler: "own", templates: []fleet.Template{{
		Type: "reconciler", Name: "own", Manifests: []string{"apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {{ .Namespace }}\n"},
	}}}
	templates, subject := deployment.compile(t)
	files, err := templates.Render(subject)
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(templates.Check(subject, files))
	want := `templates["own"]: reconciler template: reconciler.yaml, line 1: Namespace "dev-drone-hello-dev" is written twice, first in namespace.yaml, line 1`
	if got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestRenderedYAMLIsBounded(t *testing.T) {
	deployment := withTemplate("yaml", "a: 1")
	deployment.reconciler = "zarf" // the others accept only manifests
	templates, subject := deployment.compile(t)
	check := func(content string) fleet.Findings {
		return templates.Check(subject, []render.AssignmentFile{{Name: "platform-config.yaml", Content: []byte(content)}})
	}
	long := strings.Repeat("x", 40_000)
	for content, want := range map[string]string{
		"a: 1\n---\nb: &b " + long + "\nc: [" + strings.Repeat("*b, ", 100) + "]\n": "platform-config.yaml, line 3: its aliases make it larger than 1 MiB",
		"a: 1\n---\nb: [" + strings.Repeat("1, ", 110_000) + "]\n":                  "platform-config.yaml, line 3: has more than 100000 keys and values",
		"a: &a 1\nb: *a\n": "",
	} {
		if got := check(content).Error(); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%.50q: %.300s, want %q", content, got, want)
		}
	}
}

// The quick check is enough for common files. Without it, a first apply of a large fleet takes seconds longer.
func TestCommonFilesPassTheQuickCheck(t *testing.T) {
	config := map[string]any{
		"DATABASE_URL": "postgres://db.example.com:5432/app", "REPLICAS": json.Number("3"), "EMERGENCY": "0911", "DEBUG": true, "EMPTY": "",
		"FEATURES": map[string]any{"a": true, "rollout": map[string]any{"percent": json.Number("5")}}, "HOSTS": []any{"a", "b"},
	}
	templates, subject := deployment{config: config}.compile(t)
	files, err := templates.Render(subject)
	if err != nil {
		t.Fatal(err)
	}
	content := ""
	for _, file := range files {
		if !render.IsQuicklyValid(templates, subject, file) {
			t.Errorf("%s fails the quick check:\n%s", file.Name, file.Content)
		}
		if file.Name == "platform-config.yaml" {
			content = string(file.Content)
		}
	}
	for _, other := range []string{
		strings.Replace(content, "data:", "data: {}\ndata:", 1), content + "  EMPTY: x\n", content + " X: x\n", content + "  X: 1\n", content + "  X: on\n",
		content + "  on: x\n", content + "  X: 'a' b\n", content + "  X: |\n   a\n  b\n", content + "  X:\n",
		content + "X: x\n---\n" + content, content + "  X: \"\\x\"\n", content + "  X: a: b\n", content + "---\n- a\n", content + "---\nkind: List\n",
		strings.Replace(content, "kind: ConfigMap", "kind: Namespace", 1), strings.Replace(content, "namespace: \"d", "namespace: \"D", 1), content + "  Y: \u0085\n",
		strings.Replace(content, "labels:", "labels:\n    a: true", 1), strings.Replace(content, "labels:", "labels:\n    a: b c", 1), strings.Replace(content, "labels:", "annotations:\n    a: 1\n  labels:", 1),
		"%FOO\n---\n" + content, content + "... x\n", content + "---\n# x\u0085y: z\n",
		strings.Replace(content, "name:", "Name:", 1), strings.Replace(content, "apiVersion:", "version:", 1), strings.Replace(content, "kind:", "kinds:", 1),
	} {
		file := render.AssignmentFile{Name: "platform-config.yaml", Content: []byte(other)}
		if render.IsQuicklyValid(templates, subject, file) && len(render.FullCheck(templates, subject, file)) > 0 {
			t.Errorf("the quick check accepts:\n%s", other)
		}
	}
}
