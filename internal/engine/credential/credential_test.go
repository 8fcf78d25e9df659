package credential_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/credential"
)

// The texts are split to keep scanners from reporting this file.
var (
	pem    = "-----BEGIN EC " + "PRIVATE KEY-----\nMHcCAQEEIIrYSSNQFaA2Hwf1duRSxKtLYX5CB04fSeQ6tF1aY\n-----END EC PRIVATE KEY-----\n"
	github = "ghp" + "_9Xb2Qm4Lw7Kz1Rt6Yv3Hn8Jp5Gd0Fs2AcEuT"
	aws    = "AKIA" + "Z7VRSQ5TJN2XMPLQ"
	gitlab = "glpat" + "-x7Kq2mVt9RzL4wYp1NbS"
)

func TestFindReportsCredentials(t *testing.T) {
	t.Parallel()
	type object = map[string]any
	for name, test := range map[string]struct {
		value any
		want  string // path, line and rule of each
	}{
		"private key":            {object{"TLS": pem}, "TLS 1 private-key"},
		"on one line":            {object{"TLS": strings.ReplaceAll(pem, "\n", `\n`)}, "TLS 0 private-key"},
		"in YAML":                {object{"app.yaml": "tls:\n  key: |\n    " + strings.ReplaceAll(pem, "\n", "\n    ")}, "app.yaml 3 private-key"},
		"token":                  {object{"URL": "https://example.com/?x=" + github}, "URL 0 github-pat"},
		"several":                {object{"a": github, "b": []any{"x", object{"c": aws}}}, "a 0 github-pat, b[1].c 0 aws-access-token"},
		"token in text":          {object{"script": "set -e\ncurl -H x:" + gitlab + " https://example.com"}, "script 2 gitlab-pat"},
		"password":               {object{"DB_PASSWORD": "hunter2"}, "DB_PASSWORD 0 password"},
		"weak password":          {object{"password": "12345678"}, "password 0 password"},
		"nested":                 {object{"database": object{"users": []any{object{"dbPassword": "y1"}}}}, "database.users[0].dbPassword 0 password"},
		"list of passwords":      {object{"PASSWORD": []any{"", "hunter2"}}, "PASSWORD[1] 0 password"},
		"numbered":               {object{"password_2": "hunter2"}, "password_2 0 password"},
		"token by name":          {object{"apiToken": "a1b2c3"}, "apiToken 0 password"},
		"API key":                {object{"DATADOG_API_KEY": "a1b2c3d4"}, "DATADOG_API_KEY 0 password"},
		"secret":                 {object{"client-secret": "abc"}, "client-secret 0 password"},
		"bare secret":            {object{"secret": "xK3!v"}, "secret 0 password"},
		"secret key":             {object{"AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG"}, "AWS_SECRET_ACCESS_KEY 0 password"},
		"passphrase":             {object{"passphrase": "open sesame"}, "passphrase 0 password"},
		"URL":                    {object{"DATABASE_URL": "postgres://shop:hunter2@db.example.com/shop"}, "DATABASE_URL 0 password-in-url"},
		"connection string":      {object{"DSN": "host=db password=hunter2 sslmode=require"}, "DSN 0 password"},
		"ADO.NET":                {object{"ConnectionString": "Server=db;Database=shop;User Id=shop;Password=hunter2;"}, "ConnectionString 0 password"},
		"YAML":                   {object{"values.yaml": "db:\n  host: x\n  password: hunter2\n"}, "values.yaml 3 password"},
		"quoted":                 {object{"values.yaml": "db:\n  password: \"with space 1\"\n"}, "values.yaml 2 password"},
		"JSON":                   {object{"config.json": `{"db":{"password":"hunter2"}}`}, "config.json 0 password"},
		"environment file":       {object{".env": "A=b\nexport DB_PASSWORD=hunter2\n"}, ".env 2 password"},
		"properties":             {object{"p": "a=b\r\nspring.datasource.password = hunter2\r\n"}, "p 2 password"},
		"flow YAML":              {object{"y": "{user: shop, password: hunter2}"}, "y 0 password"},
		"Secret in a text":       {object{"m": "kind: Secret\ndata:\n  password: aHVudGVyMg==\n"}, "m 3 password"},
		"one finding for a text": {object{"PASSWORD": github + "\n" + pem}, "PASSWORD 0 password"},
		"a text":                 {github, " 0 github-pat"},
		"a bcrypt hash":          {object{"password": "$2y$10$abcdefghijk"}, "password 0 password"},
		"key of two words":       {object{"API key_2": "hunter2"}, "API key_2 0 password"},
		"the second of two":      {object{"t": "password: \"\"\npassword: hunter2\n"}, "t 2 password"},
		"after a placeholder":    {object{"t": "ghp_000000000000000000000000000000000000 " + github}, "t 0 github-pat"},
	} {
		if got := formatMatches(credential.Find(test.value)); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
		if !mayHave(t, test.value) {
			t.Errorf("%s: MayHave is false", name)
		}
	}
}

func TestFindReadsPairsOfNameAndValue(t *testing.T) {
	t.Parallel()
	type object = map[string]any
	pair := func(name, value string) any { return []any{object{"name": name, "value": value}} }
	for name, test := range map[string]struct {
		value any
		want  string
	}{
		"environment":          {object{"env": pair("DB_PASSWORD", "hunter2")}, "env[DB_PASSWORD].value 0 password"},
		"reference":            {object{"env": pair("DB_PASSWORD", "$(OTHER)")}, ""},
		"another name":         {object{"env": pair("DB_HOST", "hunter2")}, ""},
		"argument":             {object{"args": []any{"--password", "hunter2"}}, "args[1] 0 password"},
		"argument in one":      {object{"args": []any{"--password=hunter2"}}, "args[0] 0 password"},
		"two flags":            {object{"args": []any{"--password", "--verbose"}}, ""},
		"argument of another":  {object{"args": []any{"--user", "hunter2"}}, ""},
		"name is a credential": {pair(github, "x"), "[0].name 0 github-pat"},
		"name of many lines":   {pair("a\nb", github), "[0].value 0 github-pat"},
		"key is a credential":  {object{"a": object{github: object{"b": aws}}}, "a.(hidden) 0 github-pat, a.(hidden).b 0 aws-access-token"},
		"checksum":             {object{"checksum/secret": "9f86d081884c7d659a2feaa0c55ad015"}, ""},
	} {
		if got := formatMatches(credential.Find(test.value)); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

func TestFindIgnoresKnownTexts(t *testing.T) {
	t.Parallel()
	value := map[string]any{
		"url":      "postgres://shop:hunter2@db/shop",
		"password": "hunter2",
		"text":     "a: b\npassword: hunter2\ntoken: other1\n",
	}
	if got := formatMatches(credential.Find(value, "hunter2")); got != "text 3 password" {
		t.Errorf("got %q", got)
	}
	if got := formatMatches(credential.Find(value, "hunter2", "other1")); got != "" {
		t.Errorf("got %q", got)
	}
}

func TestMaskedReplacesFoundCredentials(t *testing.T) {
	t.Parallel()
	value := map[string]any{"a": []any{map[string]any{"name": "TOKEN", "value": "x1y2"}, "plain", 5}, github: nil}
	got := credential.Masked(value, func(path, _ string) string { return "mask of " + path })
	want := map[string]any{"a": []any{map[string]any{"name": "TOKEN", "value": "mask of a[TOKEN].value"}, "plain", 5}, "mask of (hidden)": nil}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if texts := credential.Texts(value); !slices.Equal(texts, []string{"x1y2", github}) && !slices.Equal(texts, []string{github, "x1y2"}) {
		t.Errorf("texts are %q", texts)
	}
}

func TestFindIgnoresReferencesAndPlaceholders(t *testing.T) {
	t.Parallel()
	for key, values := range map[string][]any{
		"password": {
			"", " ", "${DB_PASSWORD}", "$DB_PASSWORD", "$(DB_PASSWORD)", "{{ .Values.password }}", "{{ vault }}-x", "<password>", "<set by the platform>", "vault:secret/data/db#password",
			"ref+vault://secret/db#/password", "op://vault/db/password", "arn:aws:secretsmanager:eu-west-1:1:secret:db", "projects/p/secrets/db/versions/1", "DB_PASSWORD_FROM_ENV", "/run/secrets/db", "file:///run/secrets/db",
			"ENC[AES256_GCM,data:x,type:str]", "{cipher}AQA", "changeme", "CHANGE-ME", "***", "xxxx", "%PASSWORD%", "@password@", "REDACTED", "your-password", "Enter the password of the database",
			true, false, nil, json.Number("5"), "true", "required", struct{}{}, map[string]any{"valueFrom": "x"},
		},
		"token":          {"300", "15m", "0.5", "https://login.example.com/token"},
		"secret":         {"db-credentials", "shop/db-credentials-v2", "regcred", "tls-2026"},
		"credentials":    {"gcp-credentials"},
		"existingSecret": {"xK3v9"}, "EXISTING_SECRET": {"xK3v9"}, "imagePullSecret": {"xK3v9"}, "secretName": {"xK3v9"}, "passwordSecretRef": {"xK3v9"}, "tokenUrl": {"https://x1"}, "password_file": {"xK3v9"}, "TOKEN_PATH": {"xK3v9"},
		"passwordPolicy": {"strong1"}, "tokens": {"x1"}, "max_token_count": {"100"}, "public_key": {"x1"}, "PASSWORD_MIN_LENGTH": {"12a1"}, "key": {"x1"}, "secretsProvider": {"v1ault"},
		"image":              {"registry.example.com/api-token:v1.2.3-alpine", "registry.example.com/x/password:1"},
		"url":                {"https://example.com/a:b@c", "https://me@example.com", "postgres://shop:${PASSWORD}@db/shop", "postgres://shop:$PASSWORD@db/shop", "amqp://$(USER):$(PASSWORD)@mq", "redis://:<password>@redis", "git@example.com:a/b.git"},
		"text":               {"# password: hunter2\na: b # token: x1\n", "password: ''\n", "password:\n  secretKeyRef: {name: db, key: password}\n", "const token = request.token()", "token: {{ .Values.token }}\n", "password: ${DB_PASSWORD}\n", "password: |\n", "the password: it is secret, ask", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n", "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----"},
		"example":            {"AKIAIOSFODNN7EXAMPLE", "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"},
		"commit":             {"1dabfc3f0e5d7f1c2b3a49586776859403a2b1c0"},
		"digest":             {"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"},
		"sourcegraph_commit": {"sourcegraph 1dabfc3f0e5d7f1c2b3a49586776859403a2b1c0"},
	} {
		for _, value := range values {
			if got := credential.Find(map[string]any{key: value}); len(got) > 0 {
				t.Errorf("%s = %v: %v", key, value, got)
			}
		}
	}
}

func formatMatches(findings []credential.Match) string {
	var shown []string
	for _, f := range findings {
		shown = append(shown, fmt.Sprintf("%s %d %s", f.Path, f.Line, f.Rule))
	}
	return strings.Join(shown, ", ")
}

func mayHave(t *testing.T, value any) bool {
	t.Helper()
	text, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return credential.MayHave(string(text))
}

func isPrintable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' })
}

// FuzzFind finds at most one match in a text. No match contains the text.
func FuzzFind(f *testing.F) {
	for _, text := range []string{pem, github, aws, "password: hunter2", `{"token":"x1"}`, "postgres://a:b1@c", "a\xffpassword=\x00", "пароль=1"} {
		f.Add("key", text)
		f.Add("DB_PASSWORD", text)
	}
	f.Fuzz(func(t *testing.T, key, text string) {
		found := credential.Find(map[string]any{key: []any{text}})
		found = slices.DeleteFunc(found, func(f credential.Match) bool { return f.Path == "(hidden)" }) // the key
		if len(found) > 1 {
			t.Fatalf("%q: %v", text, found)
		}
		if len(found) > 0 && isPrintable(key+text) && !mayHave(t, map[string]any{key: []any{text}}) {
			t.Errorf("%q: %q has a match, but MayHave is false", key, text)
		}
		for _, finding := range found {
			finding.Path = strings.Replace(finding.Path, "(hidden)", key, 1)
			if finding.Path != key+"[0]" || finding.Line < 0 || finding.Line > 1+strings.Count(text, "\n") || finding.Rule == "" {
				t.Errorf("%q: %+v", text, finding)
			}
		}
	})
}

// Many keys without a complete value would take hours in quadratic time.
func TestLongTextIsReadInLinearTime(t *testing.T) {
	for _, text := range []string{strings.Repeat("token=", 1<<15) + `"`, strings.Repeat("password: ${X}, ", 1<<14), strings.Repeat("a://b:", 1<<15), strings.Repeat("token=", 1<<15) + "_here"} {
		if found := credential.Find(map[string]any{"app": text}); found != nil {
			t.Errorf("found %v", found)
		}
	}
	found := credential.Find(
		map[string]any{"app": strings.Repeat("token=", 1<<15) + "\" # token: commented-7f3a91x\ntoken: present-7f3a91x\n"},
	)
	if want := []credential.Match{{Path: "app", Line: 2, Rule: "password"}}; !slices.Equal(found, want) {
		t.Errorf("found %v, want %v", found, want)
	}
}
