package encrypted_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/encrypted"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

// readFile reads a file by sops or kubeseal; see testdata/README.md.
func readFile(t testing.TB, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestFilesOfTheRealToolsAreAccepted(t *testing.T) {
	for name, want := range map[string]encrypted.File{
		"sops.yaml":   {Method: encrypted.SOPS, Name: "db", Namespace: "shop"},
		"sealed.yaml": {Method: encrypted.SealedSecret, Name: "db", Namespace: "shop"},
		"wide.yaml":   {Method: encrypted.SealedSecret, Name: "db", Namespace: "shop"},
	} {
		t.Run(name, func(t *testing.T) {
			want.Text = readFile(t, name)
			if got, err := fleet.ParseEncrypted(want.Text); err != nil || got != want {
				t.Errorf("got %+v, %v, want %+v", got, err, want)
			}
		})
	}
}

func TestPlainOrIncompleteFileIsAnErrorWithoutContent(t *testing.T) {
	sops, sealed := readFile(t, "sops.yaml"), readFile(t, "sealed.yaml")
	replace := func(text, part, by string) string {
		t.Helper()
		if !strings.Contains(text, part) {
			t.Fatalf("%q is not in\n%s", part, text)
		}
		return strings.Replace(text, part, by, 1)
	}
	// removeLines removes the lines that contain a text.
	removeLines := func(text, line string) string {
		remaining := ""
		for textLine := range strings.Lines(text) {
			if !strings.Contains(textLine, line) {
				remaining += textLine
			}
		}
		return remaining
	}
	metadata, _, _ := strings.Cut(sops, "sops:")
	const canary = "hunter2"
	for name, example := range map[string]struct{ text, want string }{
		"nothing":                   {"", "is not an encrypted file: neither a Secret that SOPS has encrypted nor a SealedSecret"},
		"a text":                    {canary, "is not an encrypted file"},
		"no YAML":                   {"a: [\n" + canary, "invalid YAML, line 2"},
		"an alias":                  {"a: *" + canary, "invalid YAML, from line 1"},
		"a tag":                     {"a: !!int " + canary, "invalid YAML, from line 1"},
		"a key twice":               {canary + ": 1\n" + canary + ": 2", "invalid YAML, line 2"},
		"two documents":             {sops + "---\npassword: " + canary, "has more than one YAML document, the second from line 30"},
		"another kind":              {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: " + canary + "}", "is neither a Secret of apiVersion v1 that SOPS has encrypted nor a SealedSecret of apiVersion bitnami.com/v1alpha1"},
		"a plain Secret":            {"apiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: b}\nstringData: {a: " + canary + "}", "is a Secret that is not encrypted: sops is missing"},
		"the whole file":            {readFile(t, "whole.yaml"), "the whole file is encrypted, so that its name and namespace cannot be read: encrypt it with --encrypted-regex '^(data|stringData)$'"},
		"a part of the file":        {readFile(t, "partly.yaml"), `stringData["USER"] is not encrypted`},
		"a value beside":            {replace(sops, "    EMPTY: \"\"", "    EMPTY: "+canary), `stringData["EMPTY"] is not encrypted`},
		"several values":            {replace(sops, "stringData:", "data: {B: "+canary+", A: [1], C: {D: 1}}\nstringData:"), `data["A"] is not encrypted; data["B"] is not encrypted; data["C"] is not encrypted`},
		"text after a value":        {replace(sops, ",type:str]\n    PASSWORD", ",type:str]"+canary+"\n    PASSWORD"), `stringData["USER"] is not encrypted`},
		"data as a text":            {replace(sops, "stringData:", "data: "+canary+"\nstringData:"), "data is not a map"},
		"a key with spaces":         {replace(sops, "    EMPTY", "    my "+canary), `stringData has a key that a Secret cannot have: letters, digits, "-", "_" and "." are allowed`},
		"a number":                  {replace(sops, "type:str]\n    PASSWORD", "type:int]\n    PASSWORD"), `stringData["USER"] was no text before it was encrypted, and a Secret has only texts: put it in quotes, and encrypt it again`},
		"another field":             {sops + "dta: {a: " + canary + "}\n", "dta is not allowed: the fields are apiVersion, kind, metadata, type, immutable, data, stringData, sops"},
		"a field with a space":      {sops + "hunter 2: 1\n", "a field is not allowed"},
		"no data":                   {replace(removeLines(sops, "ENC[AES256_GCM,data:"), "    EMPTY: \"\"\n", ""), "has neither data nor stringData; sops.mac is missing, or is not what SOPS writes"},
		"no mac":                    {removeLines(sops, "mac:"), "sops.mac is missing"},
		"no time":                   {removeLines(sops, "lastmodified:"), "sops.lastmodified is missing"},
		"no version":                {removeLines(sops, "version:"), "sops.version is missing"},
		"no key":                    {replace(sops, "- enc:", "- other:"), "sops has no key that can decrypt the file"},
		"sops as a text":            {metadata + "sops: " + canary, "sops is not what SOPS writes"},
		"no name":                   {removeLines(sops, "name: db"), "metadata.name is missing"},
		"no namespace":              {removeLines(sops, "namespace: shop"), "metadata.namespace is missing"},
		"an invalid name":           {replace(sops, "name: db", "name: "+canary+"_"), "metadata.name is not a DNS subdomain"},
		"a long name":               {replace(sops, "name: db", "name: "+strings.Repeat("a", 241)), "metadata.name is longer than 240 characters"},
		"an invalid namespace":      {replace(sops, "namespace: shop", "namespace: "+canary+".x"), "metadata.namespace is not a DNS label"},
		"a copy of the Secret":      {replace(sops, "    labels:", "    annotations: {kubectl.kubernetes.io/last-applied-configuration: "+canary+"}\n    labels:"), "metadata.annotations has a copy of the Secret before it was encrypted"},
		"sealed: a plain value":     {replace(sealed, "    PASSWORD: ", "    PASSWORD: aHVudGVyMg==\n    OTHER: "), `spec.encryptedData["PASSWORD"] is not what kubeseal writes`},
		"sealed: no base64":         {replace(sealed, "    PASSWORD: ", "    PASSWORD: "+canary+"\n    OTHER: "), `spec.encryptedData["PASSWORD"] is not what kubeseal writes`},
		"sealed: nothing":           {"apiVersion: bitnami.com/v1alpha1\nkind: SealedSecret\nmetadata: {name: db, namespace: shop}\nspec: {encryptedData: {}}", "spec.encryptedData is empty"},
		"sealed: a plain template":  {replace(sealed, "  template:\n", "  template:\n    data: {a: "+canary+"}\n"), "spec.template.data is plain: give all values in spec.encryptedData"},
		"sealed: plain stringData":  {replace(sealed, "  template:\n", "  template:\n    stringData: {a: "+canary+"}\n"), "spec.template.stringData is plain"},
		"sealed: data as a text":    {replace(sealed, "  template:\n", "  template:\n    stringData: "+canary+"\n"), "spec.template.stringData is not a map"},
		"sealed: template of text":  {"apiVersion: bitnami.com/v1alpha1\nkind: SealedSecret\nmetadata: {name: db, namespace: shop}\nspec: {encryptedData: {}, template: " + canary + "}", "spec.encryptedData is empty; spec.template is not a map"},
		"sealed: the old form":      {replace(sealed, "spec:\n", "spec:\n  data: "+canary+"\n"), "spec.data is not supported by current controllers"},
		"sealed: another field":     {sealed + "data: {a: " + canary + "}\n", "data is not allowed: the fields are apiVersion, kind, metadata, spec, status"},
		"sealed: a copy":            {replace(sealed, "  template:\n    metadata:\n", "  template:\n    metadata:\n      annotations: {kubectl.kubernetes.io/last-applied-configuration: "+canary+"}\n"), "spec.template.metadata.annotations has a copy"},
		"sealed: of another API":    {replace(sealed, "v1alpha1", "v1"), "is neither a Secret"},
		"sealed: without namespace": {strings.Replace(sealed, "  namespace: shop\n", "", 1), "metadata.namespace is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := fleet.ParseEncrypted(example.text)
			if err == nil || !strings.HasPrefix(err.Error(), example.want) {
				t.Errorf("got %+v, %v, want %s", got, err, example.want)
			} else if strings.Contains(err.Error(), canary) || strings.Contains(err.Error(), "aHVudGVyMg") {
				t.Errorf("the error reveals content: %s", err)
			}
		})
	}
}

// SOPS writes the keys of several groups below sops.key_groups.
func TestKeyGroupsAreKeys(t *testing.T) {
	text := strings.Replace(readFile(t, "sops.yaml"), "    age:\n", "    key_groups:\n    - hc_vault: []\n      age:\n", 1)
	if _, err := fleet.ParseEncrypted(text); err != nil {
		t.Errorf("%v:\n%s", err, text)
	}
}

func FuzzParseEncrypted(f *testing.F) {
	for _, name := range []string{"sops.yaml", "whole.yaml", "partly.yaml", "sealed.yaml", "wide.yaml"} {
		f.Add(readFile(f, name))
	}
	f.Add(
		"apiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: b}\nsops: {key_groups: [[[[[[{enc: a}]]]]]]}\nstringData: {a: &a \"\", b: *a}",
	)
	f.Fuzz(func(t *testing.T, text string) {
		got, err := fleet.ParseEncrypted(text)
		if err != nil {
			if err.Error() == "" || strings.Contains(err.Error(), "\n") {
				t.Errorf("the error is %q", err)
			}
			return
		}
		if got.Text != text || got.Name == "" || got.Namespace == "" || len(got.FileName()) > 255 {
			t.Errorf("%+v", got)
		}
		// Any YAML reader must find only encrypted values in an accepted file.
		if document, err := fleet.ParseLooseYAML(text); err == nil {
			for _, name := range []string{"data", "stringData"} {
				entries, _ := document.(map[string]any)[name].(map[string]any)
				for key, value := range entries {
					if text, isText := value.(string); value != nil && (!isText || text != "" && !strings.HasPrefix(text, "ENC[AES256_GCM,data:")) {
						t.Errorf("%s[%q] is %v, which is not encrypted", name, key, value)
					}
				}
			}
		}
	})
}
