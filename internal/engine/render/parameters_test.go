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
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/fleettest"
)

// object reads what a user would write as an object.
func object(t testing.TB, text string) map[string]any {
	t.Helper()
	value, err := fleet.ParseJSON(text)
	if err != nil {
		t.Fatalf("%s: %s", text, err)
	}
	return value.(map[string]any)
}

// with returns manifests with parameters.
func with(manifests fleet.Manifests, parameters map[string]any) fleet.Manifests {
	manifests.Parameters = parameters
	return manifests
}

// everyField has a parameter for each kind of object, with fields of its definition.
var everyField = map[string]struct {
	reconciler string
	manifests  fleet.Manifests
	parameters string
	place      string // of something that the parameters say, in the object that they are for
	want       any
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
		"flux", with(helmChart, nil),
		`{"helm_release": {"interval": "1h", "install": {"remediation": {"retries": 3}}, "driftDetection": {"mode": "enabled"},
			"chart": {"spec": {"interval": "2m", "valuesFiles": ["values-prod.yaml"]}}, "values": {"replicas": 3}}, "values": {"replicas": 1, "image": {"tag": "v1"}}}`,
		"spec.values", map[string]any{"replicas": 3, "image": map[string]any{"tag": "v1"}},
	},
	"helm_repository": {
		"flux", with(helmChart, nil),
		`{"helm_repository": {"interval": "1h", "timeout": "20s", "passCredentials": true, "certSecretRef": {"name": "ca"}}}`,
		"spec.certSecretRef.name", "ca",
	},
	"oci_repository": {
		"flux", ociManifests,
		`{"oci_repository": {"provider": "aws", "interval": "1h", "verify": {"provider": "cosign"}, "insecure": false}}`,
		"spec.verify.provider", "cosign",
	},
	"application": {
		"argocd", with(helmChart, nil),
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
		"fleet", with(helmChart, nil),
		`{"helm_op": {"pollingInterval": "1h", "insecureSkipTLSVerify": true, "helm": {"atomic": true, "maxHistory": 3}}}`,
		"spec.helm.atomic", true,
	},
}

// allowing is a workspace whose workloads may set every field of a parameter.
func allowing(parameter string) fleet.Workspace {
	return fleet.Workspace{Name: "kaizen", Parameters: []string{parameter, "secret_ref"}}
}

func TestParametersReachEveryField(t *testing.T) {
	for name, test := range everyField {
		t.Run(name, func(t *testing.T) {
			files := deployment{
				reconciler: test.reconciler, workspace: allowing(name), manifests: with(test.manifests, object(t, test.parameters)),
			}.render(t)
			for _, document := range documentsOf(t, []byte(files["reconciler.yaml"])) {
				if got := at(document, test.place); reflect.DeepEqual(got, test.want) {
					return
				}
			}
			t.Errorf("%s is nowhere %v:\n%s", test.place, test.want, files["reconciler.yaml"])
		})
	}
}

func TestParametersOfADeploymentTargetAreOverThoseOfItsClusterType(t *testing.T) {
	files := deployment{
		parameters: object(
			t,
			`{"kustomization": {"interval": "1h", "timeout": "1m", "wait": null, "force": true}, "git_repository": {"interval": "1h"}, "helm_release": {"interval": "1h"}}`,
		),
		manifests: with(fromGit(), object(t, `{"kustomization": {"interval": "2m", "force": null}}`)),
	}.render(t)
	documents := documentsOf(t, []byte(files["reconciler.yaml"]))
	if got := at(documents[0], "spec.interval"); got != "1h" {
		t.Errorf("source's interval %v, want the cluster type's", got)
	}
	spec := at(documents[1], "spec").(map[string]any)
	for field, want := range map[string]any{"interval": "2m", "timeout": "1m", "wait": nil, "force": nil, "prune": true} {
		if spec[field] != want {
			t.Errorf("%s is %v, want %v", field, spec[field], want)
		}
	}
}

func TestDependenciesAreAddedTo(t *testing.T) {
	files := deployment{
		requires:  []fleet.Workload{required("api", fromGit())},
		manifests: with(fromGit(), object(t, `{"kustomization": {"dependsOn": [{"name": "infrastructure"}]}}`)),
	}.render(t)
	documents := documentsOf(t, []byte(files["reconciler.yaml"]))
	want := []any{map[string]any{"name": "dev-drone-api-dev"}, map[string]any{"name": "infrastructure"}}
	if got := at(documents[1], "spec.dependsOn"); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestAClusterTypesChartFieldsAreLeftOutWhereTheChartIsAnArtifact(t *testing.T) {
	files := deployment{
		manifests:  ociChart,
		parameters: object(t, `{"helm_release": {"chart": {"spec": {"interval": "1m"}}, "interval": "1h"}}`),
	}.render(
		t,
	)
	documents := documentsOf(t, []byte(files["reconciler.yaml"]))
	if chart, interval := at(documents[1], "spec.chart"), at(documents[1], "spec.interval"); chart != nil || interval != "1h" {
		t.Errorf("chart %v, interval %v", chart, interval)
	}
}

func TestParametersThatAreWrong(t *testing.T) {
	at := `workloads["hello"].deployment_targets["dev"].manifests.parameters`
	tenant := fleet.Workspace{Name: "kaizen", ServiceAccount: "kaizen", ArgocdProject: &fleet.ArgocdProject{Name: "kaizen"}}
	own := []fleet.Template{{Type: "config", Name: "own", ContentType: "text", Manifests: []string{"x"}}}
	for name, test := range map[string]struct {
		deployment deployment
		parameters string
		want       string
	}{
		"misspelt":                               {deployment{}, `{"kustomisation": {}}`, at + `.kustomisation: unknown parameter; did you mean "kustomization"?`},
		"misspelt, with a template of one's own": {deployment{configType: "own", templates: own}, `{"kustomisation": {}}`, ""},
		"free, with a template of one's own":     {deployment{configType: "own", templates: own}, `{"kustomization": "overlays/dev"}`, ""},
		"no object":                              {deployment{}, `{"kustomization": "x"}`, at + `.kustomization: must be an object, which is merged over the spec of the Kustomization`},
		"values that are no object":              {deployment{manifests: helmChart}, `{"values": "x"}`, at + `.values: must be an object of Helm values`},
		"a secret that is no text":               {deployment{}, `{"secret_ref": {"name": "x"}}`, at + `.secret_ref: must be a string`},
		"a path":                                 {deployment{}, `{"kustomization": {"path": "./x"}}`, at + `.kustomization.path: cannot be set: the deployment target's manifests set this`},
		"no path":                                {deployment{}, `{"kustomization": {"path": null}}`, at + `.kustomization.path: cannot be set`},
		"a namespace":                            {deployment{}, `{"kustomization": {"targetNamespace": "x"}}`, at + `.kustomization.targetNamespace: cannot be set: the deployment target's namespace sets this`},
		"part of a reference":                    {deployment{}, `{"git_repository": {"ref": {"semver": "1"}}}`, at + `.git_repository.ref: cannot be set`},
		"a chart's version":                      {deployment{manifests: helmChart}, `{"helm_release": {"chart": {"spec": {"version": "1"}}}}`, at + `.helm_release.chart.spec.version: cannot be set`},
		"a chart with all in it":                 {deployment{manifests: helmChart}, `{"helm_release": {"chart": null}}`, at + `.helm_release.chart: cannot be set`},
		"a name":                                 {deployment{manifests: helmChart}, `{"helm_release": {"releaseName": "x"}}`, at + `.helm_release.releaseName: cannot be set: the deployment target's name sets this`},
		"a source":                               {deployment{reconciler: "argocd"}, `{"application": {"source": {"repoURL": "x"}}}`, at + `.application.source.repoURL: cannot be set`},
		"sources":                                {deployment{reconciler: "argocd"}, `{"application": {"sources": []}}`, at + `.application.sources: cannot be set`},
		"a destination":                          {deployment{reconciler: "argocd"}, `{"application": {"destination": {"name": "x"}}}`, at + `.application.destination: cannot be set`},
		"paths":                                  {deployment{reconciler: "fleet"}, `{"git_repo": {"paths": ["x"]}}`, at + `.git_repo.paths: cannot be set`},
		"the folder of Config Sync":              {deployment{reconciler: "config-sync"}, `{"root_sync": {"git": {"dir": "x"}}}`, at + `.root_sync.git.dir: cannot be set`},
		"a chart of Rancher Fleet":               {deployment{reconciler: "fleet", manifests: helmChart}, `{"helm_op": {"helm": {"chart": "x"}}}`, at + `.helm_op.helm.chart: cannot be set`},
		"a project":                              {deployment{reconciler: "argocd"}, `{"application": {"project": "x"}}`, ""},
		"a project in place of the team's":       {deployment{reconciler: "argocd", workspace: tenant}, `{"application": {"project": "x"}}`, at + `.application.project: cannot be set: the workspace's argocd_project sets this`},
		"another project":                        {deployment{reconciler: "argocd", workspace: tenant}, `{"project": "x"}`, at + `.project: cannot be set: the workspace's argocd_project sets this`},
		"an account":                             {deployment{}, `{"kustomization": {"serviceAccountName": "x"}}`, ""},
		"an account in place of the team's":      {deployment{workspace: tenant}, `{"kustomization": {"serviceAccountName": "x"}}`, at + `.kustomization.serviceAccountName: cannot be set: the workspace's service_account sets this`},
		"an account of Rancher Fleet":            {deployment{workspace: tenant}, `{"git_repo": {"serviceAccount": "x"}}`, at + `.git_repo.serviceAccount: cannot be set`},
		"for other manifests":                    {deployment{}, `{"helm_release": {"interval": "1m"}}`, at + `.helm_release: is for charts, and these manifests are something else`},
		"values without a chart":                 {deployment{}, `{"values": {"a": 1}}`, at + `.values: is for charts, which these manifests are not`},
		"a chart where there is an artifact":     {deployment{manifests: ociChart}, `{"helm_release": {"chart": {"spec": {"interval": "1m"}}}}`, at + `.helm_release.chart: is for charts of storage "helm" and "git": use oci_repository`},
		"for another reconciler":                 {deployment{}, `{"application": {"info": []}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if test.deployment.manifests.Repo == "" {
				test.deployment.manifests = fromGit()
			}
			test.deployment.manifests.Parameters = object(t, test.parameters)
			templates, subject := test.deployment.compile(t)
			_, err := templates.Render(subject)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.HasPrefix(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestParametersOfAClusterTypeThatAreWrong(t *testing.T) {
	at := `cluster_types["drone"].parameters`
	for parameters, test := range map[string]struct {
		deployment deployment
		want       string
	}{
		`{"kustomization": {"interval": "1m"}, "secret_ref": "x"}`: {deployment{}, ""},
		`{"kustomisation": {}}`:                     {deployment{}, at + `.kustomisation: unknown parameter; did you mean "kustomization"?`},
		`{"application": {}}`:                       {deployment{}, at + `.application: is for the reconciler "argocd"`},
		`{"project": "x"}`:                          {deployment{}, at + `.project: is for the reconciler "argocd"`},
		`{"git_repository": {"url": "x"}}`:          {deployment{}, at + `.git_repository.url: cannot be set`},
		`{"anything": {}, "kustomization": "free"}`: {deployment{reconciler: "own", templates: []fleet.Template{{Type: "reconciler", Name: "own", Manifests: []string{""}}}}, ""},
	} {
		test.deployment.parameters = object(t, parameters)
		_, findings := render.Compile(test.deployment.fleet())
		if test.want == "" && findings != nil || test.want != "" && (len(findings) != 1 || !strings.HasPrefix(findings.Error(), test.want)) {
			t.Errorf("%s: got %v, want %q", parameters, findings, test.want)
		}
	}
}

func TestTemplatesOfOnesOwnSeeAllParameters(t *testing.T) {
	subject := withTemplate("text", `{{ toJson .Manifests.parameters }} {{ .Manifests.a.b }}`)
	subject.parameters = object(t, `{"a": {"b": 1, "c": 2}, "d": "type"}`)
	subject.manifests = with(fromGit(), object(t, `{"a": {"b": 3}}`))
	if got, want := subject.render(t)["platform-config.txt"], `{"a":{"b":3,"c":2},"d":"type"} 3`+"\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Two assignments of a deployment target differ in names only, and Render makes use of it.
func TestFilesDoNotDependOnWhatWasRenderedBefore(t *testing.T) {
	f, config := fleettest.Reference(acceptancetest.Count(400, 2_000), 1)
	for i := range f.ClusterTypes {
		if i%3 == 0 && f.ClusterTypes[i].Reconciler == "flux" {
			f.ClusterTypes[i].Parameters = object(
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

// A text that looks like the marks of shapes is a text like any other.
func TestAValueThatIsLikeAMarkStaysWhatItIs(t *testing.T) {
	f := deployment{manifests: with(fromGit(), object(t, `{"secret_ref": "flotilla4f1d9c0a7be2635d80x"}`))}.fleet()
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

func TestCheckFindsTheSameEveryTime(t *testing.T) {
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
			t.Fatalf("got %v, and first %s", findings, first)
		}
		first = findings.Error()
	}
}

// FuzzParameters merges any parameters over a spec: what comes out is what a merge of the values is.
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
		deployment := deployment{requires: []fleet.Workload{required("api", fromGit())}, manifests: with(fromGit(), parameters)}
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
				if want := jsonOf(t, merged(spec, over, true)); jsonOf(t, at(got[i], "spec")) != want {
					t.Fatalf("%s is\n%s\nwant\n%s", parameter, jsonOf(t, at(got[i], "spec")), want)
				}
			}
		}
	})
}

// merged is the merge of parameters as the guide tells it.
func merged(base, over map[string]any, outermost bool) map[string]any {
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
			result[key] = merged(present, added, false)
		case isObject:
			result[key] = merged(map[string]any{}, added, false)
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
