package reconciler_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// requestOf returns the request for an object of a kind with a spec.
func requestOf(t *testing.T, agent, kind, spec string) (objects.Request, []string) {
	t.Helper()
	object := map[string]any{}
	if err := yaml.Unmarshal([]byte(spec), &object, func(d *json.Decoder) *json.Decoder { d.UseNumber(); return d }); err != nil {
		t.Fatal(err)
	}
	var request objects.Request
	problems := reconciler.Named(agent).RequestOf([]map[string]any{
		{"kind": "Namespace"}, {"kind": kind, "metadata": map[string]any{"name": "dev-hello"}, "spec": object},
	}, &request)
	return request, problems
}

// overrides returns the files that override an Application's source.
func overrides(application string) []string {
	return []string{".argocd-source.yaml", ".argocd-source-" + application + ".yaml"}
}

func TestRequestFollowsFromTheObjectsOfAReconciler(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reconciler, kind, spec string
		want                   objects.Request
	}{
		"a Kustomization": {"flux", "Kustomization", `{targetNamespace: hello, path: ./live, wait: true}`, objects.Request{
			Namespace: "hello", Kustomize: &objects.Kustomize{Generate: true, Namespace: "hello"},
		}},
		"a Kustomization with all fields": {"flux", "Kustomization", `
targetNamespace: hello
namePrefix: a-
nameSuffix: -z
images: [{name: web, newName: registry.example.com/web, newTag: "2", digest: sha256:01}]
patches: [{patch: "- op: remove", target: {kind: Service, name: web.*, labelSelector: a=b}}, {patch: "kind: A"}]
components: [../tracing]
commonMetadata: {labels: {team: kaizen}, annotations: {of: x}}
postBuild: {substitute: {REGION: east}, substituteFrom: []}
healthChecks: [{kind: Deployment, name: web}]
`, objects.Request{
			Namespace: "hello", Substitute: map[string]string{"REGION": "east"}, Kustomize: &objects.Kustomize{
				Generate: true, Namespace: "hello", NamePrefix: "a-", NameSuffix: "-z",
				Images: []objects.Image{{Name: "web", NewName: "registry.example.com/web", NewTag: "2", Digest: "sha256:01"}},
				Patches: []objects.Patch{
					{Patch: "- op: remove", Target: &objects.PatchTarget{Kind: "Service", Name: "web.*", LabelSelector: "a=b"}}, {Patch: "kind: A"},
				},
				Components: []string{"../tracing"}, Labels: map[string]string{"team": "kaizen"}, Annotations: map[string]string{"of": "x"},
			},
		}},
		"a GitRepository":              {"flux", "GitRepository", `{ignore: "*.md"}`, objects.Request{Source: &objects.FluxSource{Ignore: "*.md"}}},
		"an OCIRepository of a folder": {"flux", "OCIRepository", `{}`, objects.Request{Source: &objects.FluxSource{}}},
		"an OCIRepository of a chart": {
			"flux", "OCIRepository", `{layerSelector: {mediaType: application/vnd.cncf.helm.chart.content.v1.tar+gzip, operation: copy}}`, objects.Request{},
		},
		"a HelmRelease": {"flux", "HelmRelease", `
targetNamespace: hello
releaseName: hello-dev
chart: {spec: {chart: till, valuesFiles: [live.yaml], ignoreMissingValuesFiles: true}}
install: {crds: Skip}
values: {replicas: 3}
commonMetadata: {labels: {team: kaizen}}
postRenderers: [{kustomize: {images: [{name: web, newTag: "2"}]}}]
`, objects.Request{Namespace: "hello", Helm: &objects.Helm{
			OnCluster: true, ReleaseName: "hello-dev", Namespace: "hello", ValueFiles: []string{"live.yaml"}, IgnoreMissingValueFiles: true, SkipCRDs: true,
			Values: map[string]any{"replicas": json.Number("3")},
			After:  &objects.Kustomize{Images: []objects.Image{{Name: "web", NewTag: "2"}}, Labels: map[string]string{"team": "kaizen"}},
		}}},
		"a GitRepository with required signatures": {"flux", "GitRepository", `{verify: {mode: HEAD, secretRef: {name: keys}}}`, objects.Request{
			Artifact: artifact.Artifact{Signed: true}, Source: &objects.FluxSource{},
		}},
		"a GitRepository without a requirement": {"flux", "GitRepository", `{verify: null}`, objects.Request{Source: &objects.FluxSource{}}},
		"an OCIRepository with required signatures": {"flux", "OCIRepository", `{verify: {provider: cosign, secretRef: {name: keys}}}`, objects.Request{
			Artifact: artifact.Artifact{Signed: true}, Source: &objects.FluxSource{},
		}},
		"an Application of any folder": {"argocd", "Application", `{destination: {namespace: hello}, source: {path: live}}`, objects.Request{
			Overrides: overrides("dev-hello"),
			Namespace: "hello", Helm: &objects.Helm{ReleaseName: "dev-hello", Namespace: "hello"}, Kustomize: &objects.Kustomize{}, Directory: &objects.Directory{},
		}},
		"an Application of a chart": {"argocd", "Application", `
destination: {namespace: hello}
source:
  helm: {releaseName: hello-dev, values: "a: 1", parameters: [{name: b, value: c, forceString: true}], skipTests: true, kubeVersion: "1.30", apiVersions: [b/v1, a/v1]}
`, objects.Request{
			Overrides: overrides("dev-hello"), Namespace: "hello", Helm: &objects.Helm{
				KubernetesVersion: "1.30", APIVersions: []string{"a/v1", "b/v1"},
				ReleaseName: "hello-dev", Namespace: "hello", Values: map[string]any{"a": json.Number("1")}, SkipTests: true,
				Parameters: []objects.Parameter{{Name: "b", Value: "c", IsText: true}},
			},
		}},
		"values instead of their text": {"argocd", "Application", `{source: {helm: {values: "a: 1", valuesObject: {b: c}}}}`, objects.Request{
			Overrides: overrides("dev-hello"), Helm: &objects.Helm{ReleaseName: "dev-hello", Values: map[string]any{"b": "c"}},
		}},
		"an Application of a kustomization": {"argocd", "Application", `
source:
  kustomize:
    namePrefix: a-
    images: ["web:2", "web=registry.example.com:5000/web", "db@sha256:01", "old=new:3@sha256:02"]
    replicas: [{name: web, count: 3}]
    commonLabels: {team: kaizen}
    labelWithoutSelector: true
    patches: [{patch: "kind: A"}]
`, objects.Request{Overrides: overrides("dev-hello"), Kustomize: &objects.Kustomize{
			NamePrefix: "a-", Replicas: []objects.Replicas{{Name: "web", Count: 3}}, CommonLabels: map[string]string{"team": "kaizen"}, LabelsWithoutSelector: true,
			Patches: []objects.Patch{{Patch: "kind: A"}},
			Images: []objects.Image{
				{Name: "web", NewTag: "2"}, {Name: "web", NewName: "registry.example.com:5000/web"}, {Name: "db", Digest: "sha256:01"},
				{Name: "old", NewName: "new", Digest: "sha256:02"},
			},
		}}},
		"an Application of plain manifests": {"argocd", "Application", `{source: {directory: {recurse: true, include: "*.yaml", exclude: x}}}`, objects.Request{
			Overrides: overrides("dev-hello"), Directory: &objects.Directory{Recurse: true, Include: "*.yaml", Exclude: "x"},
		}},
		"an ApplicationSet with escaped values": {"argocd-hub", "ApplicationSet", `
template: {metadata: {name: "shop-{{.nameNormalized}}"}, spec: {destination: {namespace: hello}, source: {helm: {releaseName: a, valuesObject: {text: '{{ "{{" }} b }}'}}}}}
`, objects.Request{Overrides: overrides("shop-*"), Namespace: "hello", Helm: &objects.Helm{ReleaseName: "a", Namespace: "hello", Values: map[string]any{"text": "{{ b }}"}}}},
	} {
		got, problems := requestOf(t, test.reconciler, test.kind, test.spec)
		test.want.Hooks = got.Hooks // see TestHooksIgnoredByAgentsAreLeftOut
		if !reflect.DeepEqual(got, test.want) || problems != nil {
			gotText, _ := json.Marshal(got)
			wantText, _ := json.Marshal(test.want)
			t.Errorf("%s: got\n%s\nwant\n%s\nproblems %q", name, gotText, wantText, problems)
		}
	}
}

func TestHooksIgnoredByAgentsAreLeftOut(t *testing.T) {
	t.Parallel()
	const own = "argocd.argoproj.io/hook"
	for _, test := range []struct {
		reconciler, kind, spec string
		annotations            map[string]any
		want                   bool
	}{
		{"flux", "HelmRelease", `{}`, map[string]any{"helm.sh/hook": "test"}, true},
		{"flux", "HelmRelease", `{}`, map[string]any{"helm.sh/hook": "test-success"}, true},
		{"flux", "HelmRelease", `{}`, map[string]any{"helm.sh/hook": "test, pre-install"}, false},
		{"flux", "HelmRelease", `{test: {enable: true}}`, map[string]any{"helm.sh/hook": "test"}, false},
		{"flux", "HelmRelease", `{}`, map[string]any{"helm.sh/hook": "pre-rollback"}, false},
		{"flux", "HelmRelease", `{install: {disableHooks: true}}`, map[string]any{"helm.sh/hook": "pre-install"}, true},
		{"flux", "HelmRelease", `{install: {disableHooks: true}}`, map[string]any{"helm.sh/hook": "pre-install,pre-upgrade"}, false},
		{"flux", "HelmRelease", `{upgrade: {disableHooks: true}}`, map[string]any{"helm.sh/hook": "post-upgrade"}, true},
		{"flux", "HelmRelease", `{rollback: {disableHooks: true}}`, map[string]any{"helm.sh/hook": "pre-rollback"}, true},
		{"flux", "HelmRelease", `{uninstall: {disableHooks: true}}`, map[string]any{"helm.sh/hook": "pre-delete"}, true},
		{"flux", "HelmRelease", `{}`, map[string]any{own: "Skip"}, false},
		{"flux", "Kustomization", `{}`, map[string]any{"helm.sh/hook": "test"}, false},
		{"argocd", "Application", `{}`, nil, false},
		{"argocd", "Application", `{}`, map[string]any{"helm.sh/hook": "test"}, true},
		{"argocd", "Application", `{}`, map[string]any{"helm.sh/hook": "pre-rollback"}, true},
		{"argocd", "Application", `{}`, map[string]any{"helm.sh/hook": "post-delete"}, false},
		{"argocd", "Application", `{}`, map[string]any{"helm.sh/hook": "test,post-install"}, false},
		{"argocd", "Application", `{}`, map[string]any{"helm.sh/hook": "crd-install"}, false},
		{"argocd", "Application", `{}`, map[string]any{own: "Skip"}, true},
		{"argocd", "Application", `{}`, map[string]any{own: "Skip,Sync"}, false},
		{"argocd", "Application", `{}`, map[string]any{own: "Skip", "helm.sh/hook": "pre-install"}, true},
		{"argocd", "Application", `{}`, map[string]any{own: "Sync", "helm.sh/hook": "test"}, false},
		{"argocd", "Application", `{}`, map[string]any{own: "Unknown", "helm.sh/hook": "pre-install"}, false},
		{"argocd", "Application", `{}`, map[string]any{own: "Unknown"}, true},
	} {
		request, _ := requestOf(t, test.reconciler, test.kind, test.spec)
		if got := request.Hooks.LeaveOut(test.annotations); got != test.want {
			t.Errorf("%s %s with %v: left out is %t, want %t", test.kind, test.spec, test.annotations, got, test.want)
		}
	}
}

func TestFluxAddsTheRevisionToChartVersions(t *testing.T) {
	t.Parallel()
	pin := folder.Pin{Commit: "0123456789abcdef", Digest: "sha256:fedcba9876543210"}
	for spec, want := range map[string]string{
		`{chart: {spec: {reconcileStrategy: Revision, sourceRef: {kind: GitRepository}}}}`:     "0123456789ab",
		`{chart: {spec: {reconcileStrategy: ChartVersion, sourceRef: {kind: GitRepository}}}}`: "",
		`{chart: {spec: {sourceRef: {kind: HelmRepository}}}}`:                                 "",
		`{chartRef: {kind: OCIRepository}}`:                                                    "fedcba987654",
	} {
		object := map[string]any{}
		if err := yaml.Unmarshal([]byte(spec), &object); err != nil {
			t.Fatal(err)
		}
		request := objects.Request{Artifact: artifact.Artifact{Pin: pin}}
		problems := reconciler.Named("flux").RequestOf([]map[string]any{{"kind": "HelmRelease", "spec": object}}, &request)
		if request.Helm.VersionMetadata != want || !request.Helm.OnCluster || problems != nil {
			t.Errorf("%s: metadata %q, want %q; problems %q", spec, request.Helm.VersionMetadata, want, problems)
		}
	}
}

func TestUnsupportedFieldsAreProblems(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reconciler, kind, spec string
		want                   []string
	}{
		{"flux", "Kustomization", `{postBuild: {substituteFrom: [{kind: ConfigMap, name: a}]}, buildMetadata: [originAnnotations], ignoreMissingComponents: true}`, []string{
			"spec.postBuild.substituteFrom cannot be rendered", "spec.buildMetadata cannot", "spec.ignoreMissingComponents cannot",
		}},
		{"flux", "Kustomization", `{patches: [{patch: a, options: {allowNameChange: true}}], images: [1], namePrefix: 1, components: [2], commonMetadata: {labels: {a: 1}}}`, []string{
			"spec.namePrefix must be a string", "spec.images[0] must be an object", "spec.patches[0].options cannot", "spec.components[0] must be", "spec.commonMetadata.labels.a must be",
		}},
		{"flux", "HelmRelease", `{valuesFrom: [{kind: Secret, name: a}], postRenderStrategy: nohooks, postRenderers: [{kustomize: {patchesJson6902: [1]}}, {}]}`, []string{
			"spec.valuesFrom cannot", "spec.postRenderStrategy can only be", "spec.postRenderers can only have one", "spec.postRenderers[0].kustomize.patchesJson6902 cannot",
		}},
		{"flux", "GitRepository", `{include: [{repository: {name: a}}], recurseSubmodules: true, sparseCheckout: [b]}`, []string{
			"spec.include cannot", "spec.recurseSubmodules cannot", "spec.sparseCheckout cannot",
		}},
		{"flux", "GitRepository", `{verify: {mode: TagAndHEAD, newer: true}}`, []string{
			"spec.verify.newer cannot be rendered", `spec.verify.mode can only be "HEAD"`,
		}},
		{"flux", "GitRepository", `{verify: yes}`, []string{"spec.verify must be an object"}},
		{"flux", "OCIRepository", `{verify: {provider: notation, secretRef: {name: a}}}`, []string{`spec.verify.provider can only be "cosign"`}},
		{"flux", "OCIRepository", `{verify: {provider: cosign, matchOIDCIdentity: [{issuer: a, subject: b}]}}`, []string{"spec.verify asks for a signature without a key"}},
		{"flux", "OCIRepository", `{verify: {}}`, []string{"spec.verify asks for a signature without a key"}},
		{"flux", "HelmRelease", `{chart: {spec: {verify: {provider: cosign}}}}`, []string{"spec.chart.spec.verify asks for a signature without a key"}},
		{"flux", "OCIRepository", `{layerSelector: {mediaType: application/vnd.example.other}}`, []string{"spec.layerSelector cannot"}},
		{"flux", "OCIRepository", `{layerSelector: {operation: copy}}`, []string{"spec.layerSelector cannot"}},
		{"flux", "OCIRepository", `{ignore: a, layerSelector: {mediaType: application/vnd.cncf.helm.chart.content.v1.tar+gzip, operation: copy}}`, []string{"spec.ignore cannot"}},
		{"flux", "HelmRelease", `{upgrade: {preserveValues: true}}`, []string{"spec.upgrade.preserveValues cannot"}},
		{"argocd", "Application", `{source: {plugin: {name: a}, helm: {fileParameters: [{name: a, path: b}], newer: 1, values: "[1]"}}}`, []string{
			"spec.source.plugin cannot", "spec.source.helm.newer cannot", "spec.source.helm.fileParameters cannot",
			"spec.source.helm.values is not YAML of an object",
		}},
		{"argocd", "Application", `{source: {kustomize: {version: v4, commonAnnotationsEnvsubst: true, patches: [{path: a.yaml}], replicas: [{name: a, count: "50%"}]}}}`, []string{
			"spec.source.kustomize.version cannot", "spec.source.kustomize.commonAnnotationsEnvsubst cannot", "spec.source.kustomize.patches[0].path cannot",
			"spec.source.kustomize.replicas[0].count must be a whole number",
		}},
		{"argocd", "Application", `{source: {directory: {jsonnet: {libs: [a]}}}}`, []string{"spec.source.directory.jsonnet cannot"}},
	} {
		_, problems := requestOf(t, test.reconciler, test.kind, test.spec)
		if len(problems) != len(test.want) || !slices.EqualFunc(problems, test.want, strings.HasPrefix) {
			t.Errorf("%s: problems %q, want %q", test.spec, problems, test.want)
		}
	}
}

// The edits remove the settings of the former renderer, and add the digest of the final objects.
func TestEditsPointAnObjectToFinalObjects(t *testing.T) {
	t.Parallel()
	place := reconciler.Place{Repository: "flotilla", Branch: "main", Path: "drone/hello-dev/objects", Digest: "0123"}
	for _, test := range []struct{ reconciler, kind, spec, want string }{
		{"flux", "Kustomization", "spec", `{"images":[{"name":"flotilla.dev/objects","newTag":"0123"}],"path":"./drone/hello-dev/objects","sourceRef":{"kind":"GitRepository","name":"flotilla"}}`},
		{"flux", "HelmRelease", "spec", `{"chart.spec.chart":"./drone/hello-dev/objects","chart.spec.reconcileStrategy":"ChartVersion",` +
			`"chart.spec.sourceRef":{"kind":"GitRepository","name":"flotilla"},"values":{"objects":"0123"}}`},
		{"argocd", "Application", "spec", `{"source.kustomize":{"images":["flotilla.dev/objects:0123"]},"source.path":"drone/hello-dev/objects","source.repoURL":"flotilla","source.targetRevision":"main"}`},
		{"argocd-hub", "ApplicationSet", "spec.template.spec", `{"source.kustomize":{"images":["flotilla.dev/objects:0123"]},"source.path":"drone/hello-dev/objects","source.repoURL":"flotilla","source.targetRevision":"main"}`},
	} {
		final, spec := reconciler.Named(test.reconciler).FinalOf(test.kind)
		set := map[string]any{}
		for _, edit := range final.Follow(place) {
			if edit.Value != nil {
				set[edit.Path] = edit.Value
			}
		}
		if got, _ := json.Marshal(set); string(got) != test.want || spec != test.spec {
			t.Errorf("%s at %s sets\n%s\nwant\n%s", test.kind, spec, got, test.want)
		}
	}
	for _, name := range reconciler.Names() {
		agent := reconciler.Named(name)
		for _, kind := range agent.Deployers {
			if final, _ := agent.FinalOf(kind); (final == nil) != (agent.NoObjects != "") {
				t.Errorf("%s of %s must have either a final object or a reason", kind, name)
			}
		}
	}
	if final, _ := reconciler.Named("flux").FinalOf("GitRepository"); final != nil {
		t.Error("a source has a final object")
	}
	if !reconciler.IsSource("GitRepository") || reconciler.IsSource("Kustomization") || reconciler.IsSource("Namespace") {
		t.Error("IsSource must be true for sources only")
	}
}
