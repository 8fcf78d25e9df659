package secret_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/secret"
)

func TestAnErrorRepeatsNoValue(t *testing.T) {
	t.Parallel()
	const canary = `cAn4ry-/+"7f3'a91<`
	values := map[string]any{
		"a":      []any{"x", map[string]any{"b": canary}},
		"number": json.Number("123456789"),
		"pin":    "hun2er",
		"ok":     true,
		"n":      3.0,
		"url":    "postgres://me:s3cret@db",
		"text":   "first line of text\nlast1",
	}
	inJSON, err := json.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	inYAML, err := yaml.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"plain": canary, "quoted": fmt.Sprintf("%q", canary), "JSON": string(inJSON), "YAML": string(inYAML), "cut": canary[:7] + "...", "a part": canary[2:13],
		"base64": base64.StdEncoding.EncodeToString([]byte(canary)), "base64 in base64's midst": base64.StdEncoding.EncodeToString([]byte("a:" + canary + "!")),
		"base64 of URLs": base64.RawURLEncoding.EncodeToString([]byte("abcd" + canary)), "hexadecimal": fmt.Sprintf("%x", canary), "upper": strings.ToUpper(canary),
		"a number": "123456789", "a word": "is 'hun2er' not", "a word at the end": "it is hun2er.", "a password": "no user s3cret", "a line": "\n  last1\n", "Go": fmt.Sprint(values),
	} {
		got := secret.Unrepeated("before "+text+" after", nil, values)
		for _, part := range []string{"cAn4ry", "CAN4RY", "f3'a9", "56789", "hun2er", "s3cret", "last1", "first line", base64.StdEncoding.EncodeToString([]byte(canary))[4:12]} {
			if strings.Contains(got, part) {
				t.Errorf("%s: %q has %q", name, got, part)
			}
		}
		if !strings.Contains(got, "***") || !strings.HasPrefix(got, "before ") || !strings.HasSuffix(got, " after") {
			t.Errorf("%s: %q", name, got)
		}
	}
	const harmless = `template till/templates/all.yaml:3: executing "all" at <.Values.a>: must be true, not 3, hun2ers or xhun2er: x`
	if got := secret.Unrepeated(harmless, nil, values); got != harmless {
		t.Errorf("%q", got)
	}
	if got := secret.Unrepeated("in templates/all.yaml: templates/all.yaml", regexp.MustCompile(`^in templates/all.yaml`), "templates/all.yaml"); got != "in templates/all.yaml: ***" {
		t.Errorf("%q", got)
	}
}

func FuzzUnrepeated(f *testing.F) {
	f.Add("before ", "cAn4ry-value", " after")
	f.Add("", "päss wörd", "ö")
	f.Add("é", "äöüäöüäöü", "é")
	f.Fuzz(func(t *testing.T, before, value, after string) {
		got := secret.Unrepeated(before+value+after, nil, value)
		if len(value) >= 8 && strings.Contains(got, value) && strings.TrimSpace(value) == value {
			t.Errorf("%q", got)
		}
	})
}
