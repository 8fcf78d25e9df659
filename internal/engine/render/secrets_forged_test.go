package render_test

import (
	"net/url"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/secretservice"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// FuzzReferencesStayTexts renders references with any texts. Each object, and the YAML text in a SecretProviderClass, must have
// one entry with exactly these texts.
func FuzzReferencesStayTexts(f *testing.F) {
	for _, text := range []string{
		"prod/db", `{{ "{{" }} .password }}`, "{{ .DB }}", "a\"\n- objectName: \"other", "- |\n  objectName: other", "a: b\n# c", "'a' \"b\" \\",
		"{a: b}", "[a]", "&a *a", "!!binary YQ==", "~", "yes", "0x10", "a\\u0022, b: c", "*", "@this", "a.\"b\".c", "\u2028\u0085", "%{if true}x${y}",
	} {
		f.Add(text, text, text)
		f.Add("prod/db", text, "3")
		f.Add(text, "password", "")
	}
	f.Fuzz(func(t *testing.T, key, property, version string) {
		if key == "" || folder.CheckText(key, property, version) != nil {
			return // the fleet refuses them
		}
		object := objectFrom(t, "external-secrets", stores, fleet.SecretReference{Store: "vault", Key: key, Property: property, Version: version})
		remote := map[string]any{"key": key, "conversionStrategy": "Default", "decodingStrategy": "None", "metadataPolicy": "None"}
		setText(remote, "property", property)
		setText(remote, "version", version)
		checkEqual(t, dig(object, "spec", "data"), []any{map[string]any{"secretKey": "DB", "remoteRef": remote}})
		for store, expected := range entriesOf(key, property, version) {
			reference := fleet.SecretReference{Store: store, Key: key, Property: property, Version: version}
			provider := secretservice.SecretsStoreCSI.Provider(providers[store])
			if attribute, _ := provider.Cannot(providers[store], reference); attribute != "" {
				continue
			}
			object := objectFrom(t, "secrets-store-csi", providers, reference)
			text, _ := dig(object, "spec", "parameters", provider.Objects).(string)
			var entries any
			if err := yaml.UnmarshalStrict([]byte(text), &entries); err != nil {
				t.Fatalf("%s: %v\n%s", store, err, text)
			}
			if store == "csi-azure" { // its entries are texts
				list, _ := dig(entries, "array").([]any)
				entries = nil
				if len(list) == 1 {
					text, _ := list[0].(string)
					var entry any
					if err := yaml.UnmarshalStrict([]byte(text), &entry); err != nil {
						t.Fatalf("%s: %v\n%s", store, err, text)
					}
					entries = []any{entry}
				}
			}
			checkEqual(t, entries, []any{expected})
		}
	})
}

// entriesOf returns the expected entry of the reference "DB" by store.
func entriesOf(key, property, version string) map[string]map[string]any {
	path := key
	if version != "" {
		path += "?version=" + url.QueryEscape(version)
	}
	azure := map[string]any{
		"objectName":  regexp.MustCompile("^(secret|key|cert)/").ReplaceAllString(key, ""),
		"objectType":  "secret",
		"objectAlias": "DB",
	}
	for _, kind := range []string{"key", "cert"} {
		if strings.HasPrefix(key, kind+"/") {
			azure["objectType"] = kind
		}
	}
	setText(azure, "objectVersion", version)
	resource := "projects/apps/secrets/" + key
	if strings.HasPrefix(key, "projects/") {
		resource = key
	}
	if version == "" {
		resource += "/versions/latest"
	} else {
		resource += "/versions/" + version
	}
	gcp := map[string]any{"resourceName": resource, "path": "DB"}
	setText(gcp, "extractJSONKey", property)
	return map[string]map[string]any{
		"csi-vault": {"objectName": "DB", "secretPath": path, "secretKey": property}, "csi-azure": azure, "csi-gcp": gcp,
	}
}

func setText(object map[string]any, name, text string) {
	if text != "" {
		object[name] = text
	}
}

// objectFrom renders the object of the reference "DB".
func objectFrom(t *testing.T, service string, stores map[string]fleet.SecretStore, reference fleet.SecretReference) any {
	t.Helper()
	d := deployment{secretService: service, stores: stores, secrets: map[string]fleet.SecretReference{"DB": reference}}
	text := d.render(t)["platform-secrets.yaml"]
	var object any
	if err := yaml.UnmarshalStrict([]byte(strings.TrimPrefix(text, "---\n")), &object); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return object
}

func dig(value any, names ...string) any {
	for _, name := range names {
		object, _ := value.(map[string]any)
		value = object[name]
	}
	return value
}

func checkEqual(t *testing.T, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%#v\nwant\n%#v", got, want)
	}
}
