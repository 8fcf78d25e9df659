package render_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/hydrate"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/fleettest"
)

// parseObject reads an object from JSON.
func parseObject(t testing.TB, text string) map[string]any {
	t.Helper()
	value, err := fleet.ParseJSON(text)
	if err != nil {
		t.Fatalf("%s: %s", text, err)
	}
	return value.(map[string]any)
}

// withParameters returns manifests with parameters.
func withParameters(manifests fleet.Manifests, parameters map[string]any) fleet.Manifests {
	manifests.Parameters = parameters
	return manifests
}

// everyField has a parameter for each kind of object, with many of its fields.
var everyField = map[string]struct {
	reconciler string
	manifests  fleet.Manifests
	parameters string
	place      string // path of one of the fields in the rendered object
	want       any    // its value
}{
	"root_sync": {
		"config-sync", fromGit(),
		`{"root_sync": {"git": {"period": "30s", "noSSLVerify": true, "auth": "gcenode"}, "override": {"reconcileTimeout": "10m", "resources": [{"containerName": "reconciler",
			"memoryLimit": "512Mi"}], "roleRefs": [{"kind": "ClusterRole", "name": "edit", "namespace": "x"}]}}}`,
		"spec.override.roleRefs.0.name", "edit",
	},
	"kustomization": {
		"flux", fromGit(),
		`{"kustomization": {"interval": "5m", "retryInterval": "30s", "timeout": "2m", "wait": false, "healthChecks": [{"apiVersion": "apps/v1",
			"kind": "Deployment", "name": "hello", "namespace": "x"}], "patches": [{"patch": "- op: remove\n  path: /spec\n", "target": {"kind": "Service"}}],
			"decryption": {"provider": "sops", "secretRef": {"name": "keys"}}, "postBuild": {"substituteFrom": [{"kind": "ConfigMap", "name": "x"}]}}}`,
		"spec.decryption.secretRef.name", "keys",
	},
	"git_repository": {
		"flux", fromGit(),
		`{"git_repository": {"interval": "30s", "timeout": "20s", "verify": {"mode": "HEAD", "secretRef": {"name": "keys"}}, "ignore": "/*\n!/deploy\n",
			"recurseSubmodules": true, "provider": "azure", "sparseCheckout": ["deploy"]}, "secret_ref": "token"}`,
		"spec.provider", "azure",
	},
	"helm_release": {
		"flux", withParameters(helmChart, nil),
		`{"helm_release": {"interval": "1h", "install": {"remediation": {"retries": 3}}, "driftDetection": {"mode": "enabled"},
			"chart": {"spec": {"interval": "2m", "valuesFiles": ["values-prod.yaml"]}}, "values": {"replicas": 3}}, "values": {"replicas": 1, "image": {"tag": "v1"}}}`,
		"spec.values", map[string]any{"replicas": 3, "image": map[string]any{"tag": "v1"}},
	},
	"helm_repository": {
		"flux", withParameters(helmChart, nil),
		`{"helm_repository": {"interval": "1h", "timeout": "20s", "passCredentials": true, "certSecretRef": {"name": "ca"}}}`,
		"spec.certSecretRef.name", "ca",
	},
	"oci_repository": {
		"flux", ociManifests,
		`{"oci_repository": {"provider": "aws", "interval": "1h", "verify": {"provider": "cosign"}, "insecure": false}}`,
		"spec.verify.provider", "cosign",
	},
	"application": {
		"argocd", withParameters(helmChart, nil),
		`{"application": {"ignoreDifferences": [{"group": "apps", "kind": "Deployment", "jsonPointers": ["/spec/replicas"]}],
			"syncPolicy": {"automated": {"selfHeal": false}, "syncOptions": ["ServerSideApply=true"], "retry": {"limit": 5}},
			"source": {"helm": {"skipCrds": true}}, "revisionHistoryLimit": 3}}`,
		"spec.syncPolicy", map[string]any{
			"automated": map[string]any{"prune": true, "selfHeal": false}, "syncOptions": []any{"ServerSideApply=true"},
			"retry": map[string]any{"limit": 5},
		},
	},
	"git_repo": {
		"fleet", fromGit(),
		`{"git_repo": {"pollingInterval": "5m", "correctDrift": {"enabled": true}, "keepResources": true}}`,
		"spec.correctDrift.enabled", true,
	},
	"helm_op": {
		"fleet", withParameters(helmChart, nil),
		`{"helm_op": {"pollingInterval": "1h", "insecureSkipTLSVerify": true, "helm": {"atomic": true, "maxHistory": 3}}}`,
		"spec.helm.atomic", true,
	},
}

// workspaceAllowing returns a workspace that permits its workloads every field of a parameter.
func workspaceAllowing(parameter string) fleet.Workspace {
	return fleet.Workspace{Name: "kaizen", Parameters: []string{parameter, "secret_ref"}}
}

func TestParametersReachEveryField(t *testing.T) {
	for _, kind := range reconciler.Kinds() {
		if _, hasCase := everyField[kind.Parameter]; kind.Parameter != "" && !hasCase {
			t.Errorf("everyField has no case for %s", kind.Parameter)
		}
	}
	for name, test := range everyField {
		t.Run(name, func(t *testing.T) {
			files := deployment{
				reconciler: test.reconciler, workspace: workspaceAllowing(name), manifests: withParameters(test.manifests, parseObject(t, test.parameters)),
			}.render(t)
			for _, document := range documentsOf(t, []byte(files["reconciler.yaml"])) {
				if got := valueAt(document, test.place); reflect.DeepEqual(got, test.want) {
					return
				}
			}
			t.Errorf("no object has %s: %v in\n%s", test.place, test.want, files["reconciler.yaml"])
		})
	}
}

func TestParametersOfADeploymentTargetOverrideItsClusterType(t *testing.T) {
	files := deployment{
		parameters: parseObject(
			t,
			`{"kustomization": {"interval": "1h", "timeout": "1m", "wait": null, "force": true}, "git_repository": {"interval": "1h"}, "helm_release": {"interval": "1h"}}`,
		),
		manifests: withParameters(fromGit(), parseObject(t, `{"kustomization": {"interval": "2m", "force": null}}`)),
	}.render(t)
	documents := documentsOf(t, []byte(files["reconciler.yaml"]))
	if got := valueAt(documents[0], "spec.interval"); got != "1h" {
		t.Errorf("got interval %v of the source, want the value of the cluster type", got)
	}
	spec := valueAt(documents[1], "spec").(map[string]any)
	for field, want := range map[string]any{"interval": "2m", "timeout": "1m", "wait": nil, "force": nil, "prune": true} {
		if spec[field] != want {
			t.Errorf("%s is %v, want %v", field, spec[field], want)
		}
	}
}

func TestParametersAddDependencies(t *testing.T) {
	files := deployment{
		requires:  []fleet.Workload{required("api", fromGit())},
		manifests: withParameters(fromGit(), parseObject(t, `{"kustomization": {"dependsOn": [{"name": "infrastructure"}]}}`)),
	}.render(t)
	documents := documentsOf(t, []byte(files["reconciler.yaml"]))
	want := []any{map[string]any{"name": "dev-drone-api-dev"}, map[string]any{"name": "infrastructure"}}
	if got := valueAt(documents[1], "spec.dependsOn"); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestChartFieldsOfAClusterTypeAreOmittedForOCICharts(t *testing.T) {
	files := deployment{
		manifests:  ociChart,
		parameters: parseObject(t, `{"helm_release": {"chart": {"spec": {"interval": "1m"}}, "interval": "1h"}}`),
	}.render(
		t,
	)
	documents := documentsOf(t, []byte(files["reconciler.yaml"]))
	if chart, interval := valueAt(documents[1], "spec.chart"), valueAt(documents[1], "spec.interval"); chart != nil || interval != "1h" {
		t.Errorf("chart %v, interval %v", chart, interval)
	}
}

func TestInvalidParametersAreErrors(t *testing.T) {
	prefix := `workloads["hello"].deployment_targets["dev"].manifests.parameters`
	tenant := fleet.Workspace{Name: "kaizen", ServiceAccount: "kaizen", ArgocdProject: &fleet.ArgocdProject{Name: "kaizen"}}
	own := []fleet.Template{{Type: "config", Name: "own", ContentType: "text", Manifests: []string{"x"}}}
	for name, test := range map[string]struct {
		deployment deployment
		parameters string
		want       string
	}{
		"misspelt":                           {deployment{}, `{"kustomisation": {}}`, prefix + `.kustomisation: unknown parameter; did you mean "kustomization"?`},
		"misspelt, with a custom template":   {deployment{configType: "own", templates: own}, `{"kustomisation": {}}`, ""},
		"free, with a custom template":       {deployment{configType: "own", templates: own}, `{"kustomization": "overlays/dev"}`, ""},
		"no object":                          {deployment{}, `{"kustomization": "x"}`, prefix + `.kustomization: must be an object, which is merged over the spec of the Kustomization`},
		"values that are no object":          {deployment{manifests: helmChart}, `{"values": "x"}`, prefix + `.values: must be an object of Helm values`},
		"a secret that is no text":           {deployment{}, `{"secret_ref": {"name": "x"}}`, prefix + `.secret_ref: must be a string`},
		"a path":                             {deployment{}, `{"kustomization": {"path": "./x"}}`, prefix + `.kustomization.path: cannot be set: the deployment target's manifests set this`},
		"no path":                            {deployment{}, `{"kustomization": {"path": null}}`, prefix + `.kustomization.path: cannot be set`},
		"a namespace":                        {deployment{}, `{"kustomization": {"targetNamespace": "x"}}`, prefix + `.kustomization.targetNamespace: cannot be set: the deployment target's namespace sets this`},
		"part of a reference":                {deployment{}, `{"git_repository": {"ref": {"semver": "1"}}}`, prefix + `.git_repository.ref: cannot be set`},
		"a chart's version":                  {deployment{manifests: helmChart}, `{"helm_release": {"chart": {"spec": {"version": "1"}}}}`, prefix + `.helm_release.chart.spec.version: cannot be set`},
		"a chart with all in it":             {deployment{manifests: helmChart}, `{"helm_release": {"chart": null}}`, prefix + `.helm_release.chart: cannot be set`},
		"a name":                             {deployment{manifests: helmChart}, `{"helm_release": {"releaseName": "x"}}`, prefix + `.helm_release.releaseName: cannot be set: the deployment target's name sets this`},
		"a source":                           {deployment{reconciler: "argocd"}, `{"application": {"source": {"repoURL": "x"}}}`, prefix + `.application.source.repoURL: cannot be set`},
		"sources":                            {deployment{reconciler: "argocd"}, `{"application": {"sources": []}}`, prefix + `.application.sources: cannot be set`},
		"a destination":                      {deployment{reconciler: "argocd"}, `{"application": {"destination": {"name": "x"}}}`, prefix + `.application.destination: cannot be set`},
		"paths":                              {deployment{reconciler: "fleet"}, `{"git_repo": {"paths": ["x"]}}`, prefix + `.git_repo.paths: cannot be set`},
		"the folder of Config Sync":          {deployment{reconciler: "config-sync"}, `{"root_sync": {"git": {"dir": "x"}}}`, prefix + `.root_sync.git.dir: cannot be set`},
		"a chart of Rancher Fleet":           {deployment{reconciler: "fleet", manifests: helmChart}, `{"helm_op": {"helm": {"chart": "x"}}}`, prefix + `.helm_op.helm.chart: cannot be set`},
		"a project":                          {deployment{reconciler: "argocd"}, `{"application": {"project": "x"}}`, ""},
		"a project in place of the team's":   {deployment{reconciler: "argocd", workspace: tenant}, `{"application": {"project": "x"}}`, prefix + `.application.project: cannot be set: the workspace's argocd_project sets this`},
		"another project":                    {deployment{reconciler: "argocd", workspace: tenant}, `{"project": "x"}`, prefix + `.project: cannot be set: the workspace's argocd_project sets this`},
		"an account":                         {deployment{}, `{"kustomization": {"serviceAccountName": "x"}}`, ""},
		"an account in place of the team's":  {deployment{workspace: tenant}, `{"kustomization": {"serviceAccountName": "x"}}`, prefix + `.kustomization.serviceAccountName: cannot be set: the workspace's service_account sets this`},
		"an account of Rancher Fleet":        {deployment{workspace: tenant}, `{"git_repo": {"serviceAccount": "x"}}`, prefix + `.git_repo.serviceAccount: cannot be set`},
		"for other manifests":                {deployment{}, `{"helm_release": {"interval": "1m"}}`, prefix + `.helm_release: is for charts, and these manifests are something else`},
		"values without a chart":             {deployment{}, `{"values": {"a": 1}}`, prefix + `.values: is for charts, which these manifests are not`},
		"a chart where there is an artifact": {deployment{manifests: ociChart}, `{"helm_release": {"chart": {"spec": {"interval": "1m"}}}}`, prefix + `.helm_release.chart: is for charts of storage "helm" and "git": use oci_repository`},
		"for another reconciler":             {deployment{}, `{"application": {"info": []}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if test.deployment.manifests.Repo == "" {
				test.deployment.manifests = fromGit()
			}
			test.deployment.manifests.Parameters = parseObject(t, test.parameters)
			templates, subject := test.deployment.compile(t)
			_, err := templates.Render(subject)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.HasPrefix(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestInvalidParametersOfAClusterTypeAreFindings(t *testing.T) {
	prefix := `cluster_types["drone"].parameters`
	for parameters, test := range map[string]struct {
		deployment deployment
		want       string
	}{
		`{"kustomization": {"interval": "1m"}, "secret_ref": "x"}`: {deployment{}, ""},
		`{"kustomisation": {}}`:                     {deployment{}, prefix + `.kustomisation: unknown parameter; did you mean "kustomization"?`},
		`{"application": {}}`:                       {deployment{}, prefix + `.application: is for the reconciler "argocd"`},
		`{"project": "x"}`:                          {deployment{}, prefix + `.project: is for the reconciler "argocd"`},
		`{"git_repository": {"url": "x"}}`:          {deployment{}, prefix + `.git_repository.url: cannot be set`},
		`{"anything": {}, "kustomization": "free"}`: {deployment{reconciler: "own", templates: []fleet.Template{{Type: "reconciler", Name: "own", Manifests: []string{""}}}}, ""},
	} {
		test.deployment.parameters = parseObject(t, parameters)
		_, findings := render.Compile(test.deployment.fleet())
		if test.want == "" && findings != nil || test.want != "" && (len(findings) != 1 || !strings.HasPrefix(findings.Error(), test.want)) {
			t.Errorf("%s: got %v, want %q", parameters, findings, test.want)
		}
	}
}

func TestCustomTemplatesSeeAllParameters(t *testing.T) {
	subject := withTemplate("text", `{{ toJson .Manifests.parameters }} {{ .Manifests.a.b }}`)
	subject.parameters = parseObject(t, `{"a": {"b": 1, "c": 2}, "d": "type"}`)
	subject.manifests = withParameters(fromGit(), parseObject(t, `{"a": {"b": 3}}`))
	if got, want := subject.render(t)["platform-config.txt"], `{"a":{"b":3,"c":2},"d":"type"} 3`+"\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Render reuses the files of another assignment if only names differ.
func TestFilesDoNotDependOnEarlierRenderings(t *testing.T) {
	f, config := fleettest.Reference(acceptancetest.Count(400, 2_000), 1)
	for i := range f.ClusterTypes {
		if i%3 == 0 && f.ClusterTypes[i].Reconciler == "flux" {
			f.ClusterTypes[i].Parameters = parseObject(
				t,
				`{"kustomization": {"interval": "1h", "postBuild": {"substitute": {"a": "b"}}}, "helm_release": {"values": {"a": 1}}}`,
			)
		}
	}
	for i := range f.Workloads {
		for j := range f.Workloads[i].DeploymentTargets {
			target := &f.Workloads[i].DeploymentTargets[j]
			if i%10 == 8 {
				target.Manifests.ConfigAs = fleet.ConfigAs{"configmap", "values:platform"}
			}
			if i%7 == 0 {
				target.Namespace = target.Name
			}
		}
	}
	scheduled, findings := schedule.Schedule(f)
	hydrated, err := hydrate.Hydrate(f, config, scheduled.Assignments)
	if err != nil || len(findings) > 0 {
		t.Fatal(err, findings)
	}
	shared := compile(t, f)
	for i, assignment := range scheduled.Assignments {
		subject := render.Subject{
			Assignment: assignment, Environment: f.Environment, Owner: "platform",
			ConfigVersion: hydrated.All[i].Version, Config: hydrated.All[i].Values(),
		}
		got, err := shared.Render(subject)
		if err != nil {
			t.Fatal(err)
		}
		if findings := shared.Check(subject, got); len(findings) > 0 {
			t.Fatal(findings)
		}
		if i%5 != 0 {
			continue
		}
		fresh := compile(t, f)
		want, _ := fresh.Render(subject)
		if findings := fresh.Check(subject, want); len(findings) > 0 {
			t.Fatal(findings)
		}
		if len(got) != len(want) {
			t.Fatalf("%s has %d files, want %d", assignment.Key(), len(got), len(want))
		}
		for j := range got {
			if got[j].Name != want[j].Name || !bytes.Equal(got[j].Content, want[j].Content) {
				t.Fatalf("%s/%s is\n%s\nwant\n%s", assignment.Key(), got[j].Name, got[j].Content, want[j].Content)
			}
		}
	}
}

func compile(t testing.TB, f *fleet.Fleet) *render.Templates {
	t.Helper()
	templates, findings := render.Compile(f)
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	return templates
}

// Shapes have marks in place of names. A value that looks like a mark must stay unchanged.
func TestAValueLikeAMarkStaysUnchanged(t *testing.T) {
	f := deployment{manifests: withParameters(fromGit(), parseObject(t, `{"secret_ref": "flotilla4f1d9c0a7be2635d80x"}`))}.fleet()
	f.ClusterTypes = append(
		f.ClusterTypes,
		fleet.ClusterType{Name: "large", Reconciler: "flux", NamespaceService: "default", ConfigType: "configmap"},
	)
	templates := compile(t, f)
	for range 4 {
		subject := deployment{}.subject(f)
		subject.Config = map[string]any{"a": "flotilla4f1d9c0a7be2635d80x"}
		files, err := templates.Render(subject)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if mark := "flotilla4f1d9c0a7be2635d80x"; strings.HasPrefix(file.Name, "platform-config") || file.Name == "reconciler.yaml" {
				if bytes.Count(file.Content, []byte(mark)) != 1 {
					t.Errorf("%s is\n%s", file.Name, file.Content)
				}
			}
		}
	}
}

func TestCheckIsDeterministic(t *testing.T) {
	templates, subject := deployment{config: map[string]any{"a b": "x"}, manifests: fromGit()}.compile(t)
	first := ""
	for range 4 {
		files, err := templates.Render(subject)
		if err != nil {
			t.Fatal(err)
		}
		for i := range files {
			if files[i].Name == "namespace.yaml" {
				files[i].Content = append(files[i].Content, "\nx: [\n"...)
			}
		}
		findings := templates.Check(subject, files)
		if findings == nil || first != "" && findings.Error() != first {
			t.Fatalf("got %v, want %s as before", findings, first)
		}
		first = findings.Error()
	}
}

// FuzzParameters merges any parameters over a spec and compares the files with a merge of the values.
func FuzzParameters(f *testing.F) {
	for _, test := range everyField {
		f.Add(test.parameters)
	}
	for _, seed := range []string{
		`{"kustomization": {"<<": 1, "y": "n", "~": {"a b": "x\ny"}, "": [], "wait": {"a": {}}, "dependsOn": 3}}`,
		`{"kustomization": {"prune": {"a": null, "b": [null, {"c": null}]}}, "git_repository": {"secretRef": {"name": "\u0085"}, "interval": 1e3}}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		value, err := fleet.ParseJSON(text)
		parameters, isObject := value.(map[string]any)
		if err != nil || !isObject {
			return
		}
		if canonical, err := fleet.Canonical(value); err == nil {
			parameters = canonical.(map[string]any)
		}
		deployment := deployment{requires: []fleet.Workload{required("api", fromGit())}, manifests: withParameters(fromGit(), parameters)}
		model := deployment.fleet()
		templates, findings := render.Compile(model)
		if len(findings) > 0 {
			return
		}
		subject := deployment.subject(model)
		files, err := templates.Render(subject)
		if err != nil {
			return
		}
		if findings := templates.Check(subject, files); len(findings) > 0 {
			return
		}
		deployment.manifests.Parameters = maps.Clone(parameters)
		for _, parameter := range []string{"kustomization", "git_repository"} {
			delete(deployment.manifests.Parameters, parameter)
		}
		plain := documentsOf(t, []byte(deployment.render(t)["reconciler.yaml"]))
		for _, file := range files {
			if file.Name != "reconciler.yaml" {
				continue
			}
			got := documentsOf(t, file.Content)
			for i, parameter := range []string{"git_repository", "kustomization"} {
				spec := plain[i].(map[string]any)["spec"].(map[string]any)
				over, _ := parameters[parameter].(map[string]any)
				if want := jsonOf(t, mergeParameters(spec, over, true)); jsonOf(t, valueAt(got[i], "spec")) != want {
					t.Fatalf("%s is\n%s\nwant\n%s", parameter, jsonOf(t, valueAt(got[i], "spec")), want)
				}
			}
		}
	})
}

// mergeParameters merges parameters as the guide describes it.
func mergeParameters(base, over map[string]any, outermost bool) map[string]any {
	result := maps.Clone(base)
	for key, value := range over {
		present, presentIsObject := result[key].(map[string]any)
		added, isObject := value.(map[string]any)
		list, isList := value.([]any)
		before, wasList := result[key].([]any)
		switch {
		case value == nil:
			delete(result, key)
		case isObject && presentIsObject:
			result[key] = mergeParameters(present, added, false)
		case isObject:
			result[key] = mergeParameters(map[string]any{}, added, false)
		case outermost && key == "dependsOn" && isList && wasList:
			result[key] = append(append([]any{}, before...), list...)
		default:
			result[key] = value
		}
	}
	return result
}

func jsonOf(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := fleet.ParseJSON(string(text))
	if err != nil {
		t.Fatal(err)
	}
	canonical, err := fleet.CanonicalJSON(parsed)
	if err != nil {
		t.Fatal(err)
	}
	return canonical
}
