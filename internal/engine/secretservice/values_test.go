package secretservice_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"text/template"
	"unicode/utf8"

	"sigs.k8s.io/yaml"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/secretservice"
)

// execute executes a text like the template engine of External Secrets Operator, which is Go's with the functions of Sprig:
// https://github.com/external-secrets/external-secrets/blob/v2.9.0/runtime/template/v2/template.go
func execute(t *testing.T, text string, secrets map[string]string) string {
	t.Helper()
	toJSON := func(value any) (string, error) {
		text, err := json.Marshal(value)
		return string(text), err
	}
	parsed, err := template.New("values.yaml").Option("missingkey=error").Funcs(template.FuncMap{"toJson": toJSON}).Parse(text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	var output bytes.Buffer
	if err := parsed.Execute(&output, secrets); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return output.String()
}

func TestAnySecretIsAValueOfAChart(t *testing.T) {
	secrets := map[string]string{"DB_PASSWORD": "it's \"quoted\": {{ .DB_PASSWORD }} # &*!|>\n\t- no\\n", "tls.crt": "12345", "_a-b": "yes"}
	text := secretservice.Values([]string{"global", "{{ .DB_PASSWORD }}", "a: b\n"}, []string{"DB_PASSWORD", "_a-b", "tls.crt"})
	for _, secret := range secrets {
		if strings.Contains(text, secret) {
			t.Errorf("%q is in %s", secret, text)
		}
	}
	var got map[string]any
	if err := yaml.Unmarshal([]byte(execute(t, text, secrets)), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"global": map[string]any{"{{ .DB_PASSWORD }}": map[string]any{"a: b\n": map[string]any{
		"DB_PASSWORD": secrets["DB_PASSWORD"], "tls.crt": "12345", "_a-b": "yes",
	}}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func FuzzValues(f *testing.F) {
	f.Add("global", "KEY", "secret")
	f.Add("{{{", "a.b-c_d", "}}{{")
	f.Add("{{`", "-", "\n---\na: b")
	f.Add("{", "KEY", "\u2028\u0085")
	f.Fuzz(func(t *testing.T, below, key, secret string) {
		const longest = 500 // a longer key is no simple key in YAML
		if !utf8.ValidString(below) || len(below) > longest || key == "" || len(key) > 253 ||
			strings.Trim(key, "-._abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") != "" {
			return
		}
		if strings.ContainsFunc(
			secret,
			func(r rune) bool { return r > 0x7e || r == utf8.RuneError },
		) { // JSON does not escape these, and YAML may refuse them
			return
		}
		var got map[string]map[string]string
		text := execute(t, secretservice.Values([]string{below}, []string{key}), map[string]string{key: secret})
		if err := yaml.UnmarshalStrict([]byte(text), &got); err != nil || len(got) != 1 || len(got[below]) != 1 || got[below][key] != secret {
			t.Errorf("%v: %q of %s", err, got, text)
		}
	})
}

func TestEverySecretServiceIsNamed(t *testing.T) {
	for _, name := range []string{"external-secrets", "secrets-store-csi"} {
		if service := secretservice.Named(name); service == nil || service.Name != name || service.Kind.Kind == "" {
			t.Errorf("%s is %v", name, service)
		}
	}
	if service := secretservice.Named("own"); service != nil {
		t.Errorf("own is %v", service)
	}
}

func TestProviderNamesTheUnreadableAttribute(t *testing.T) {
	for name, test := range map[string]struct {
		store     secretservice.Store
		reference secretservice.Reference
		want      string // the attribute
	}{
		"Vault":                         {secretservice.Store{Provider: "vault"}, secretservice.Reference{Key: "secret/data/db", Property: "password", Version: "3"}, ""},
		"Vault, a parameter":            {secretservice.Store{Provider: "vault"}, secretservice.Reference{Key: "secret/data/db?version=3", Property: "password"}, "key"},
		"Vault, no property":            {secretservice.Store{Provider: "vault"}, secretservice.Reference{Key: "secret/data/db"}, "property"},
		"Azure":                         {secretservice.Store{Provider: "azure"}, secretservice.Reference{Key: "db", Version: "3"}, ""},
		"Azure, a property":             {secretservice.Store{Provider: "azure"}, secretservice.Reference{Key: "db", Property: "a"}, "property"},
		"AWS":                           {secretservice.Store{Provider: "aws"}, secretservice.Reference{Key: "prod/db", Property: "a", Version: "AWSCURRENT"}, ""},
		"AWS, an ARN":                   {secretservice.Store{Provider: "aws"}, secretservice.Reference{Key: "arn:aws:secretsmanager:eu-west-1:1:secret:db"}, ""},
		"AWS, a parameter":              {secretservice.Store{Provider: "aws"}, secretservice.Reference{Key: "arn:aws:ssm:eu-west-1:1:parameter/db"}, "key"},
		"Google Cloud":                  {secretservice.Store{Provider: "gcp"}, secretservice.Reference{Key: "projects/a/secrets/db"}, ""},
		"Google Cloud, the project":     {secretservice.Store{Provider: "gcp", Parameters: map[string]string{"project": "a"}}, secretservice.Reference{Key: "db"}, ""},
		"Google Cloud, no project":      {secretservice.Store{Provider: "gcp"}, secretservice.Reference{Key: "db"}, "key"},
		"Google Cloud, a version in it": {secretservice.Store{Provider: "gcp"}, secretservice.Reference{Key: "projects/a/secrets/db/versions/3"}, "key"},
	} {
		got, problem := secretservice.SecretsStoreCSI.Provider(test.store).Cannot(test.store, test.reference)
		if got != test.want || (got == "") != (problem == "") {
			t.Errorf("%s: %q %q, want %q", name, got, problem, test.want)
		}
	}
}
