package fleet_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/fleettest"
)

// containerInput returns a fleet with one config container.
func containerInput(attributes string) string {
	return "environment: dev\nconfig_containers: [{name: db, " + attributes + "}]"
}

func TestMistakesInSecretsAreFindings(t *testing.T) {
	const prefix = `config_containers["db"].secrets`
	for attributes, want := range map[string][]string{
		"secrets: {A: {store: vault, key: prod/db}}":                                             nil,
		"secrets: {A: {store: vault, key: prod/db, property: password, version: '3'}}, data: {}": nil,
		"secrets: {A: {store: vault, key: prod/db}, B: null}, data: {C: 1}":                      nil,
		"secrets: {}":                                                       nil,
		"secrets: null, data: {}":                                           nil,
		"secrets: null":                                                     {`config_containers["db"].data: is required: an object of configuration values, unless secrets or encrypted is given`},
		"secrets: {A: {store: vault}}":                                      {prefix + `["A"].key: is required`},
		"secrets: {A: {key: prod/db}}":                                      {prefix + `["A"].store: is required`},
		"secrets: {A: {}}":                                                  {prefix + `["A"].key: is required`, prefix + `["A"].store: is required`},
		"secrets: {A: {store: Vault, key: a}}":                              {prefix + `["A"].store: the fleet's name of a store is not a DNS label`},
		"secrets: {A: {store: vault, key: a, vers: b}}":                     {prefix + `["A"].vers: unknown attribute`},
		"secrets: {A: {stor: vault, key: a}}":                               {prefix + `["A"].store: is required`, prefix + `["A"].stor: unknown attribute; did you mean "store"?`},
		"secrets: {A: {store: vault, key: a, version: 3}}":                  {prefix + `["A"].version: must be a string, not a number: put it in quotes`},
		"secrets: {A: {store: vault, key: a}, B: [x]}":                      {prefix + `["B"]: must be a reference to a secret in a store, an object {store, key} with property and version where they are needed, not a list`},
		"secrets: {A: true}":                                                {prefix + `["A"]: not a bool`},
		"secrets: [{store: vault, key: a}]":                                 {prefix + `: must be a map of references, {store, key}, not a list`},
		"secrets: vault":                                                    {prefix + `: must be a map of references, {store, key}, not a string`},
		"secrets: {'a b': {store: vault, key: a}}":                          {prefix + `["a b"]: is not a key of a Secret: letters, digits, "-", "_" and "."`},
		"secrets: {'': {store: vault, key: a}}":                             {prefix + `[""]: is not a key of a Secret`},
		"secrets: {tls.key: {store: vault, key: a}}":                        nil,
		"secrets: {A: {store: v, key: a}}, data: {A: b}":                    {prefix + `["A"]: is a key of data, too, but a key is either a value or a secret: remove one of the two`},
		"secrets: {A: null}, data: {A: (known after apply)}":                nil,
		"secrets: {A: {store: v, key: a}}, data: {A: null}":                 nil,
		"secrets: {A: {store: v, key: " + strings.Repeat("k", 1_025) + "}}": {prefix + `["A"].key: has a character that is not shown, or is longer than 1024 bytes`},
		"secret: {A: {store: v, key: a}}, data: {}":                         {`config_containers["db"].secret: unknown attribute; did you mean "secrets"?`},
		"encrypted: [SEALED]":                                               nil,
		"encrypted: [SEALED, SEALED]":                                       {`config_containers["db"].encrypted[1]: is a Secret "tls", as config_containers["db"].encrypted[0] is: remove one of the two`},
		"encrypted: [SEALED, 'kind: Secret']":                               {`config_containers["db"].encrypted[1]: is neither a Secret of apiVersion v1 that SOPS has encrypted nor a SealedSecret`},
		"encrypted: []":                                                     nil,
		"encrypted: SEALED":                                                 {`config_containers["db"].encrypted: must be a list of strings, not a string`},
		"encrypted: [SEALED, '', null, {}]":                                 {`config_containers["db"].encrypted[1]: neither null nor empty`, `config_containers["db"].encrypted[2]: neither null nor empty`, `config_containers["db"].encrypted[3]: must be a string, not an object`},
		"data: {}, allow_plain: [A]":                                        nil,
		"data: {}, allow_plain: A":                                          {`config_containers["db"].allow_plain: must be a list of strings, not a string`},
		"data: {}, allow_plain: [1]":                                        {`config_containers["db"].allow_plain[0]: must be a string, not a number`},
		"data: [], secrets: {A: (known after apply)}":                       {`config_containers["db"].data: must be an object, not a list`},
		"environment: prod, secrets: {A: {store: v, key: (known after apply)}}, data: {A: (known after apply)}":   {prefix + `["A"]: is a key of data, too`},
		"environment: prod, secrets: {A: {store: v, key: (known after apply)}}, encrypted: [(known after apply)]": nil,
	} {
		t.Run(attributes, func(t *testing.T) {
			_, findings := fleet.Decode(input(t, containerInput(attributes)))
			wantFindings(t, findings, want...)
			alone := fleet.CheckObject("config_containers", input(t, "{name: db, "+attributes+"}"))
			if len(alone) != len(want) {
				t.Errorf("CheckObject: got\n%s", alone.Error())
			}
		})
	}
	large := containerInput("encrypted: ['" + strings.Repeat("x", 1<<20+1) + "']")
	_, findings := fleet.Decode(input(t, large))
	wantFindings(t, findings, `config_containers["db"].encrypted[0]: is larger than 1 MiB, and no Secret can be`)
}

// People may put a secret in place of a reference.
func TestFindingsDoNotRepeatSecrets(t *testing.T) {
	const secret = `HUNTER2 hunter2\a`
	for _, attributes := range []string{
		"secrets: {A: \"%s\"}", "secrets: \"%s\"", "secrets: {A: [\"%s\"]}", "secrets: [\"%s\"]", "secrets: {A: {value: \"%s\"}}", "secrets: {A: {store: \"%s\", key: a}}",
		"secrets: {A: {store: v, key: \"%s\"}}", "secrets: {A: {store: v, key: a, version: \"%s\"}}", "secrets: {A: {store: v, key: a, property: \"%s\"}}",
		"secrets: {A: \"%s\"}, data: {A: \"%[1]s\"}",
	} {
		_, findings := fleet.Decode(input(t, containerInput(fmt.Sprintf(attributes, secret))))
		if len(findings) == 0 || strings.Contains(strings.ToLower(findings.Error()), "hunter2") {
			t.Errorf("%s: %s", attributes, findings.Error())
		}
	}
}

func TestSecretServiceAndStoresOfAClusterType(t *testing.T) {
	const prefix = `cluster_types["edge"].`
	for attributes, want := range map[string][]string{
		"secret_service: external-secrets, secret_stores: {vault: {}}":             nil,
		"secret_service: secrets-store-csi, secret_stores: {v: {provider: vault}}": nil,
		"secret_service: mine":                         nil,
		"secret_service: external-secret":              {prefix + `secret_service: no template of type secret is called "external-secret"; did you mean "external-secrets"?`},
		"secret_service: flux":                         {prefix + `secret_service: template "flux" is of type reconciler, not secret`},
		"secret_service: (known after apply)":          nil,
		"secret_stores: {v: {kind: SecretStore}}":      nil,
		"secret_stores: {v: {kind: Secretstore}}":      {prefix + `secret_stores["v"].kind: must be one of ClusterSecretStore, SecretStore, not "Secretstore"; did you mean "SecretStore"?`},
		"secret_stores: {V: {}}":                       {prefix + `secret_stores["V"]: the fleet's name of a store is not a DNS label`},
		"secret_stores: {v: {name: 'a b'}}":            {prefix + `secret_stores["v"].name: "a b" is not a DNS subdomain`},
		"secret_stores: {v: {nam: a}}":                 {prefix + `secret_stores["v"].nam: unknown attribute; did you mean "name"?`},
		"secret_stores: {v: {parameters: {a: 1}}}":     {prefix + `secret_stores["v"].parameters["a"]: must be a string, not a number`},
		"secret_stores: {v: vault}":                    {prefix + `secret_stores["v"]: must be an object, not a string`},
		"secret_stores: {v: null}":                     {prefix + `secret_stores["v"]: must be an object, not null`},
		"secret_stores: [vault]":                       {prefix + `secret_stores: must be a map of objects by the fleet's names of stores, not a list`},
		"secret_stores: {v: (known after apply)}":      nil,
		"decryption: {}":                               nil,
		"decryption: {secret: sops-age}":               nil,
		"decryption: {secret: 'a b'}":                  {prefix + `decryption.secret: "a b" is not a DNS subdomain`},
		"decryption: {service_account: 'a b'}":         {prefix + `decryption.service_account: "a b" is not a DNS subdomain`},
		"decryption: {secret_ref: a}":                  {prefix + `decryption.secret_ref: unknown attribute`},
		"reconciler: argocd, decryption: {}":           {prefix + `decryption: cannot be set: Argo CD decrypts nothing without a plugin`},
		"decryption: sops-age":                         {prefix + `decryption: must be an object, not a string`},
		"decryption: {secret: (known after apply)}":    nil,
		"secret_service: mine, secret_stores: {v: {}}": nil,
	} {
		t.Run(attributes, func(t *testing.T) {
			_, findings := fleet.Decode(
				input(t, "environment: dev\ntemplates: [{name: mine, type: secret, manifests: [x]}]\ncluster_types: [{name: edge, "+attributes+"}]"),
			)
			wantFindings(t, findings, want...)
		})
	}
}

// An unknown part of references or of an encrypted file leaves only its entry pending.
func TestUnknownSecretsArePendingAlone(t *testing.T) {
	for attributes, want := range map[string][]string{
		"secrets: (known after apply)":                                             {"secrets/db"},
		"secrets: {A: (known after apply)}":                                        {"secrets/db"},
		"secrets: {A: {store: v, key: k, version: (known after apply)}}, data: {}": {"secrets/db"},
		"encrypted: (known after apply)":                                           {"secrets/db"},
		"encrypted: [SEALED, (known after apply)]":                                 {"secrets/db"},
		"data: (known after apply), secrets: {A: {store: v, key: k}}":              {"db"},
		"data: (known after apply), secrets: {A: (known after apply)}":             {"db", "secrets/db"},
		"data: {}, allow_plain: (known after apply)":                               nil,
		"data: {}, allow_plain: [(known after apply)]":                             nil,
	} {
		decoded, findings := fleet.Decode(input(t, containerInput(attributes)))
		wantFindings(t, findings)
		if !decoded.Known || !decoded.ContainersKnown || !slices.Equal(decoded.Pending, want) {
			t.Errorf("%s: got known %t, pending %q", attributes, decoded.Known, decoded.Pending)
		}
		_, known, err := decoded.Config.Secrets(&decoded.Fleet.ConfigContainers[0])
		if err != nil || known == slices.Contains(want, "secrets/db") || decoded.Config.Known("db") != (want == nil) {
			t.Errorf("%s: got secrets known %t, all known %t, %v", attributes, known, decoded.Config.Known("db"), err)
		}
	}
}

// The model does not depend on the containers with references, because they may be unknown.
func TestSecretsAreNoPartOfTheModel(t *testing.T) {
	var models []string
	for _, attributes := range []string{"data: {}", "secrets: {A: {store: v, key: k}}", "encrypted: [SEALED]", "secrets: (known after apply)", "data: {}, allow_plain: [A]"} {
		decoded, findings := fleet.Decode(input(t, containerInput(attributes)))
		wantFindings(t, findings)
		models = append(models, model(t, decoded.Fleet))
	}
	if len(slices.Compact(models)) != 1 {
		t.Errorf("got different models %q", models)
	}
}

func TestABaseFleetKeepsSecrets(t *testing.T) {
	decoded, findings := fleet.Decode(input(t, containerInput("data: {B: 1}, secrets: {A: {store: v, key: k}}, encrypted: [SEALED]")))
	wantFindings(t, findings)
	base := valueOf(decoded)
	again, findings := fleet.Decode(map[string]any{"environment": "dev", "base": base})
	wantFindings(t, findings)
	if !reflect.DeepEqual(again.Config, decoded.Config) || len(again.Config) != 2 {
		t.Errorf("got %v, want %v", again.Config, decoded.Config)
	}

	pending, findings := fleet.Decode(input(t, containerInput("secrets: {A: (known after apply)}")))
	wantFindings(t, findings)
	again, findings = fleet.Decode(map[string]any{"environment": "dev", "base": valueOf(pending)})
	wantFindings(t, findings)
	if !slices.Equal(again.Pending, []string{"secrets/db"}) || !reflect.DeepEqual(again.Config, pending.Config) {
		t.Errorf("got pending %q, known %v", again.Pending, again.Config)
	}

	for _, wrong := range []string{`[]`, `{"secret":{}}`, `{"secrets":{"A":"b"}}`, `{"encrypted":"a"}`, `1`, "null"} {
		known, err := fleet.EncodeEntries(map[string]string{"db": "{}", "secrets/db": wrong})
		if err != nil {
			t.Fatal(err)
		}
		forged := maps.Clone(base)
		forged["config"] = map[string]any{"known": known}
		_, findings = fleet.Decode(map[string]any{"environment": "dev", "base": forged})
		wantFindings(
			t,
			findings,
			`base.config["secrets/db"]: must be the JSON of references and encrypted files, as provider::flotilla::fleet returned it`,
		)
	}
}

// Only containers of Azure App Configuration have names with a slash, as entries of secrets do.
func TestEntriesOfContainersDoNotCollide(t *testing.T) {
	plane, findings := fleet.DecodeControlPlane(
		"dev",
		[]any{"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: azure-app-config}\ndata: {secrets.A: b}\n"},
	)
	wantFindings(t, findings)
	decoded, findings := fleet.Decode(map[string]any{
		"environment": "dev", "base": valueOf(plane),
		"config_containers": []any{input(t, "{name: azure-app-config, secrets: {A: {store: v, key: k}}}")},
	})
	wantFindings(t, findings)
	if len(decoded.Config) != 3 {
		t.Errorf("got entries %v, want three", decoded.Config)
	}
}

func TestSecretsAreReadBack(t *testing.T) {
	decoded, findings := fleet.Decode(input(t, containerInput("secrets: {A: {store: v, key: k}, B: null}, encrypted: [SEALED]")))
	wantFindings(t, findings)
	secrets, known, err := decoded.Config.Secrets(&decoded.Fleet.ConfigContainers[0])
	want := fleet.ContainerSecrets{
		References: map[string]*fleet.SecretReference{"A": {Store: "v", Key: "k"}, "B": nil},
		Encrypted:  []string{fleettest.Sealed("tls", "shop")},
	}
	if err != nil || !known || !reflect.DeepEqual(secrets, want) {
		t.Errorf("got %v, known %t, %v", secrets, known, err)
	}
	value, err := decoded.Value()
	if err != nil {
		t.Fatal(err)
	}
	// fleettest.Input writes it in the form of users.
	again, findings := fleet.Decode(fleettest.Input(decoded.Fleet, value.Config))
	wantFindings(t, findings)
	if !reflect.DeepEqual(again.Config, decoded.Config) {
		t.Errorf("got %v, want %v", again.Config, decoded.Config)
	}
	value.Config["secrets/db"] = "{"
	if _, _, err := value.Config.Secrets(&decoded.Fleet.ConfigContainers[0]); err == nil ||
		!strings.Contains(err.Error(), `config container "db": its secrets are not what provider::flotilla::fleet returned`) {
		t.Error(err)
	}
}

func TestHostileSecretsAreReadWithinBounds(t *testing.T) {
	var members strings.Builder
	for i := range 90_000 {
		fmt.Fprintf(&members, `,"%x":{}`, i)
	}
	text := `{"secrets":{` + members.String()[1:] + `}}`
	fleettest.Bounded(t, text, func() {
		_, _, _ = fleet.Config{"secrets/a": text}.Secrets(&fleet.ConfigContainer{Name: "a"})
	})
	text = `{"environment":"dev","cluster_types":[{"name":"a","secret_stores":{` + members.String()[1:] + `}}]}`
	fleettest.Bounded(t, text, func() { _, _ = fleet.ParseModel(text) })
}

// FuzzContainerSecrets reads any entry within bounds, writes it, and reads it again with the same result.
func FuzzContainerSecrets(f *testing.F) {
	f.Add(`{"secrets":{"A":{"store":"v","key":"k"},"B":null},"encrypted":["a"]}`)
	f.Add(`{"secrets":null,"encrypted":[null]}`)
	f.Fuzz(func(t *testing.T, text string) {
		container := &fleet.ConfigContainer{Name: "a"}
		var secrets fleet.ContainerSecrets
		var err error
		fleettest.Bounded(t, text, func() {
			secrets, _, err = fleet.Config{fleet.SecretsEntry("a"): text}.Secrets(container)
		})
		if err != nil {
			return
		}
		config := fleet.Config{}
		if err := config.SetSecrets(container, secrets); err != nil {
			t.Fatal(err)
		}
		again, known, err := config.Secrets(container)
		if err != nil || !known || len(again.References) != len(secrets.References) || !slices.Equal(again.Encrypted, secrets.Encrypted) {
			t.Errorf("%q: %v, then %v: %v", text, secrets, again, err)
		}
	})
}
