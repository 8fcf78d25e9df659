package provider_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// plantedCanary is part of every credential of these tests. They are concatenated, so that no scanner finds them here.
const plantedCanary = "pl4nted7f3a91"

var plantedToken = "ghp" + "_" + plantedCanary + "Xb2Qm4Lw7Kz1Rt6Yv3Hn8Jp"

// planted is a chart with a credential in each object, except in the objects of harmless.
var planted = map[string]string{"templates/all.yaml": `
apiVersion: apps/v1
kind: Deployment
metadata: {name: till, annotations: {example.com/queue: "amqp://till:` + plantedCanary + `@mq.example.com/till"}}
spec:
  selector: {matchLabels: {app: till}}
  template:
    metadata: {labels: {app: till}}
    spec:
      containers:
      - name: till
        image: registry.example.com/till:v1
        env: [{name: DB_PASSWORD, value: ` + plantedCanary + `}]
        args: [--user, till, "--password=` + plantedCanary + `", --api-token, ` + plantedCanary + `]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: till}
data:
  settings.ini: |
    # of the till
    host = ` + plantedToken + `
`, "templates/harmless.yaml": harmless}

// harmless has references and placeholders.
const harmless = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: harmless, annotations: {checksum/secret: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08}}
spec:
  selector: {matchLabels: {app: harmless}}
  template:
    metadata: {labels: {app: harmless}}
    spec:
      imagePullSecrets: [{name: regcred}]
      volumes: [{name: token, secret: {secretName: api-token}}]
      containers:
      - name: password
        image: registry.example.com/harmless@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
        env:
        - {name: DB_PASSWORD, valueFrom: {secretKeyRef: {name: db, key: password}}}
        - {name: DB_URL, value: "postgres://shop:$(DB_PASSWORD)@db.example.com/shop"}
        - {name: API_TOKEN, value: "${API_TOKEN}"}
        - {name: ADMIN_PASSWORD, value: ""}
        - {name: USE_TOKEN, value: "true"}
        - {name: TOKEN, value: /var/run/secrets/token}
        - {name: OTHER_PASSWORD, value: changeme}
        args: ["--password=$(DB_PASSWORD)", "--token-file=/var/run/token", --password, $(DB_PASSWORD), --token-ttl, 15m]
`

// plantedNames maps the names of planted's credentials in allow_plain to their rules.
var plantedNames = map[string]string{
	"Deployment.metadata.annotations.example.com/queue":                     "password-in-url",
	"Deployment.spec.template.spec.containers[till].args[2]":                "password",
	"Deployment.spec.template.spec.containers[till].args[4]":                "password",
	"Deployment.spec.template.spec.containers[till].env[DB_PASSWORD].value": "password",
	"ConfigMap.data.settings.ini":                                           "github-pat",
}

// allowPlain returns the names as the value of allow_plain.
func allowPlain(names map[string]string) (keys []any) {
	for name := range names {
		keys = append(keys, name)
	}
	return keys
}

// checkPlanted checks that diagnostics name credentials and rules, but contain no values.
func checkPlanted(t *testing.T, message string, names map[string]string) {
	t.Helper()
	plain := strings.NewReplacer(" in line 3", "", ", line 2,", "").Replace(strings.Join(strings.Fields(message), " "))
	for name, rule := range names {
		if !strings.Contains(plain, fmt.Sprintf("allow_plain = [%q]", name)) ||
			!strings.Contains(plain, "looks like a credential (rule "+rule+")") {
			t.Errorf("%s (%s) is not reported: %s", name, rule, message)
		}
	}
	if got := strings.Count(plain, "looks like a credential"); got != len(names) {
		t.Errorf("got %d credentials, want %d: %s", got, len(names), message)
	}
	if strings.Contains(plain, plantedCanary) {
		t.Errorf("a value is shown: %s", message)
	}
}

func TestCredentialsInFinalObjectsAreRefusedBeforeTheyAreCommitted(t *testing.T) {
	t.Parallel()
	charts := newChartServer(t)
	pin := charts.publish(t, "1.2.1", planted)
	for _, reconciler := range []string{"flux", "argocd"} {
		clusterType := map[string]any{"render": "objects", "reconciler": reconciler}
		url, w := bare(t), providertest.New(startProvider)
		_, diags := w.Plan(t.Context(), assigned(url, fleetOf(renderedFleet(pin, tillManifests(charts), nil, clusterType)), nil))
		if diags.Err() == nil || !diags.Has("Manifests cannot be rendered") {
			t.Errorf("%s: there is no error: %s", reconciler, diags)
		}
		checkPlanted(t, diags.String(), plantedNames)

		allowed := renderedFleet(pin, tillManifests(charts), map[string]any{"allow_plain": allowPlain(plantedNames)}, clusterType)
		apply(t, w, assigned(url, fleetOf(allowed), nil))
		if !strings.Contains(fileOnBranch(t, url, tillFolder+objectsFiles[reconciler]), plantedCanary) {
			t.Errorf("%s: the allowed credentials are not committed", reconciler)
		}
	}
}

func TestCredentialsInAPreviewAreAWarningAndAreNotShown(t *testing.T) {
	t.Parallel()
	charts := newChartServer(t)
	pin := charts.publish(t, "1.2.1", planted)
	clusterType := map[string]any{"render": "preview"}
	fleet := renderedFleet(pin, tillManifests(charts), nil, clusterType)
	plan, diags := providertest.New(startProvider).Plan(t.Context(), assigned(bare(t), fleetOf(fleet), nil))
	if diags.Err() != nil || !diags.Has("Credentials in final objects") {
		t.Errorf("there is no warning: %s", diags)
	}
	checkPlanted(t, diags.String(), plantedNames)
	if strings.Contains(fmt.Sprint(plan.Change(assignment).After), plantedCanary) {
		t.Error("a value is in the plan")
	}
	shown, _, _ := readFinalObjects(t, fleet)
	if len(shown) != 3 || strings.Contains(fmt.Sprint(shown), plantedCanary) || !strings.Contains(fmt.Sprint(shown), "DB_PASSWORD") {
		t.Errorf("the shown objects are %q", shown)
	}
	allowed := renderedFleet(pin, tillManifests(charts), map[string]any{"allow_plain": allowPlain(plantedNames)}, clusterType)
	_, diags = providertest.New(startProvider).Plan(t.Context(), assigned(bare(t), fleetOf(allowed), nil))
	checkPlanted(t, diags.String(), nil)
}

// An annotation of the object, or the config container of the value, allows it.
func TestCredentialsThatAreAllowedOnceAreAllowedInFinalObjects(t *testing.T) {
	t.Parallel()
	charts := newChartServer(t)
	configMap := func(annotations, value string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: till, annotations: {" + annotations + "}}\ndata: {password: \"" + value + "\"}\n"
	}
	clusterType := map[string]any{"render": "objects"}
	annotated := renderedFleet(
		charts.publish(t, "1.0.1", map[string]string{"templates/all.yaml": configMap("flotilla.dev/allow-plain: data.password", plantedCanary)}),
		tillManifests(charts),
		nil,
		clusterType,
	)
	configured := renderedFleet(charts.publish(t, "1.0.2", map[string]string{"templates/all.yaml": configMap("", "{{ .Values.DB_PASSWORD }}")}),
		tillManifests(charts), map[string]any{"config_as": []any{"values"}}, clusterType)
	configured["config_containers"] = []any{
		map[string]any{"name": "all", "data": map[string]any{"DB_PASSWORD": plantedCanary}, "allow_plain": []any{"DB_PASSWORD"}},
	}
	for name, fleet := range map[string]map[string]any{"annotation": annotated, "config container": configured} {
		if _, diags := providertest.New(startProvider).Plan(t.Context(), assigned(bare(t), fleetOf(fleet), nil)); diags.Err() != nil {
			t.Errorf("%s: %s", name, diags)
		}
	}
}

func TestCredentialsInParametersAreRefused(t *testing.T) {
	t.Parallel()
	values := func(kind string) map[string]any {
		return map[string]any{
			kind: map[string]any{"values": map[string]any{"db": map[string]any{"password": plantedCanary, "existingSecret": "db"}}},
		}
	}
	patch := map[string]any{"kustomization": map[string]any{"patches": []any{map[string]any{
		"target": map[string]any{"kind": "ConfigMap"}, "patch": "- op: add\n  path: /data/a\n  value: " + plantedToken + "\n",
	}}}}
	inGit := map[string]any{"repo": "https://git.example.com/app", "commit": "1dabfc3f0e5d7f1c2b3a49586776859403a2b1c0"}
	chart := map[string]any{"storage": "helm", "repo": "https://charts.example.com", "chart": "till", "version": "1.0.0"}
	const target, clusterType = `workloads["till"].deployment_targets["live"].manifests.parameters.`, `cluster_types["store"].`
	for name, test := range map[string]struct {
		target, clusterType map[string]any
		at, allow, rule     string
		onType              bool
	}{
		"values of a HelmRelease": {mergeMaps(chart, map[string]any{"parameters": values("helm_release")}), nil,
			target + "helm_release.values.db.password", "parameters.helm_release.values.db.password", "password", false},
		"a patch": {mergeMaps(inGit, map[string]any{"parameters": patch}), nil,
			target + "kustomization.patches[0].patch", "parameters.kustomization.patches[0].patch", "github-pat", false},
		"values of a cluster type": {chart, map[string]any{"parameters": values("helm_release")},
			clusterType + "parameters.helm_release.values.db.password", "parameters.helm_release.values.db.password", "password", true},
		"parameters of an Application": {chart, map[string]any{"reconciler": "argocd", "parameters": map[string]any{"application": map[string]any{"source": map[string]any{
			"helm": map[string]any{"parameters": []any{map[string]any{"name": "db.password", "value": plantedCanary}}}}}}},
			clusterType + "parameters.application.source.helm.parameters[db.password].value", "parameters.application.source.helm.parameters[db.password].value", "password", true},
		"a store": {inGit, map[string]any{"secret_service": "secrets-store-csi", "secret_stores": map[string]any{"vault": map[string]any{
			"provider": "vault", "parameters": map[string]any{"clientSecret": plantedCanary, "roleName": "till", "vaultAddress": "https://vault.example.com"}}}},
			clusterType + "secret_stores.vault.parameters.clientSecret", "secret_stores.vault.parameters.clientSecret", "password", true},
	} {
		plan := func(allow []any) providertest.Diagnostics {
			ofTarget, ofType := map[string]any{}, mergeMaps(test.clusterType)
			if allow != nil && test.onType {
				ofType["allow_plain"] = allow
			} else if allow != nil {
				ofTarget["allow_plain"] = allow
			}
			_, diags := providertest.New(startProvider).
				Plan(t.Context(), assigned(bare(t), fleetOf(renderedFleet(folder.Pin{}, test.target, ofTarget, ofType)), nil))
			return diags
		}
		diags := plan(nil)
		if plain := strings.Join(strings.Fields(diags.String()), " "); diags.Err() == nil ||
			!strings.Contains(plain, test.at+": looks like a credential") {
			t.Errorf("%s: %s is not reported: %s", name, test.at, diags)
		}
		checkPlanted(t, diags.String(), map[string]string{test.allow: test.rule})
		if diags := plan([]any{test.allow}); diags.Err() != nil {
			t.Errorf("%s: allowed, got %s", name, diags)
		}
	}
}

func TestCredentialsInFilesOfOwnTemplatesAreRefused(t *testing.T) {
	t.Parallel()
	own := func(kind, contentType, manifest string, further map[string]any) map[string]any {
		fleet := renderedFleet(
			folder.Pin{},
			map[string]any{"repo": "https://git.example.com/app", "commit": "1dabfc3f0e5d7f1c2b3a49586776859403a2b1c0"},
			further,
			map[string]any{
				map[string]string{"namespace": "namespace_service", "config": "config_type"}[kind]: "own",
				"labels": map[string]any{"code": plantedCanary},
			},
		)
		fleet["templates"] = []any{map[string]any{"name": "own", "type": kind, "content_type": contentType, "manifests": []any{manifest}}}
		return fleet
	}
	deployment := func(value string) string {
		return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: till}\nspec: {selector: {matchLabels: {app: till}}, template: {spec: {containers: [{name: till, image: a, env: [{name: DB_PASSWORD, value: " +
			value + "}]}]}}}\n"
	}
	const ofDeployment = "Deployment.spec.template.spec.containers[till].env[DB_PASSWORD].value"
	for name, test := range map[string]struct{ kind, contentType, manifest, allow string }{
		"a literal":           {"namespace", "yaml", deployment(plantedCanary), ofDeployment},
		"a label":             {"namespace", "yaml", deployment("{{ .HostLabels.code }}"), ofDeployment},
		"values without kind": {"config", "json", `{"db": {"password": "` + plantedCanary + `"}}`, "platform-config.json.db.password"},
		"a text":              {"config", "env", "A=b\nDB_PASSWORD=" + plantedCanary + "\n", "platform-config.env"},
		"a reference":         {"namespace", "yaml", deployment("$(OTHER)"), ""},
		"a comment":           {"namespace", "yaml", "# password: example-of-one1\n" + deployment("$(OTHER)"), ""},
	} {
		plan := func(further map[string]any) providertest.Diagnostics {
			fleet := own(test.kind, test.contentType, test.manifest, further)
			_, diags := providertest.New(startProvider).Plan(t.Context(), assigned(bare(t), fleetOf(fleet), nil))
			return diags
		}
		names := map[string]string{}
		if test.allow != "" {
			names[test.allow] = "password"
		}
		diags := plan(nil)
		if (diags.Err() != nil) != (test.allow != "") {
			t.Errorf("%s: got diagnostics %s", name, diags)
		}
		checkPlanted(t, diags.String(), names)
		if diags := plan(map[string]any{"allow_plain": []any{"other", "and " + test.allow, cmp.Or(test.allow, "none")}}); diags.Err() != nil {
			t.Errorf("%s: allowed, got %s", name, diags)
		}
	}
}

func TestCredentialsInTextsForOthersAreRefused(t *testing.T) {
	t.Parallel()
	for name, attributes := range map[string]map[string]any{
		"commit_message": {"commit_message": "Set the token " + plantedToken},
		"source.url":     {"source": map[string]any{"url": "https://git.example.com/" + plantedToken, "commit": "1dabfc3f0e5d7f1c2b3a49586776859403a2b1c0"}},
		"holds":          {"holds": []any{map[string]any{"hosts": []any{"large"}, "reason": "log in with " + plantedToken}}},
		"delivery.title": {"delivery": map[string]any{"mode": "pull_request", "forge": "gitea", "api_url": "https://git.example.com", "title": "password: " + plantedCanary}},
	} {
		_, diags := providertest.New(startProvider).Plan(t.Context(), assigned(bare(t), fleetOf(nil), attributes))
		attribute, _, _ := strings.Cut(name, ".")
		plain := strings.Join(strings.Fields(diags.String()), " ")
		if diags.Err() == nil || !strings.Contains(plain, "AttributeName(\""+attribute) ||
			!strings.Contains(plain, "looks like a credential (rule ") ||
			strings.Contains(plain, plantedCanary) {
			t.Errorf("%s: got diagnostics %s", name, diags)
		}
	}
	plain := map[string]any{
		"commit_message": "Rotate the password of the till",
		"holds":          []any{map[string]any{"hosts": []any{"large"}, "reason": "token expired, see runbook"}},
	}
	if _, diags := providertest.New(startProvider).Plan(t.Context(), assigned(bare(t), fleetOf(nil), plain)); diags.Err() != nil {
		t.Error(diags)
	}
	claim := claims(with(claimOn(bare(t), "web", 1, poolFleet("c1")), "commit_message", plantedToken))
	if _, diags := providertest.New(startProvider).Plan(t.Context(), claim); !strings.Contains(diags.String(), "looks like a credential") ||
		strings.Contains(diags.String(), plantedCanary) {
		t.Errorf("claim: got diagnostics %s", diags)
	}
}
