package render_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
)

func finalObject(group, kind, name, yaml string) objects.FinalObject {
	return objects.FinalObject{Group: group, Version: "v1", Kind: kind, Namespace: "hello", Name: name, YAML: []byte(yaml)}
}

// renderWithObjects returns the files of a deployment's folder with final objects.
func renderWithObjects(t *testing.T, d deployment, result *objects.Rendering) (map[string]string, error) {
	t.Helper()
	d.manifests.Render = fleet.RenderObjects
	f := d.fleet()
	templates, findings := render.Compile(f)
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	subject := d.subject(f)
	files, err := templates.Render(subject)
	if err == nil {
		files, err = templates.AddFinalObjects(subject, files, result)
	}
	texts := map[string]string{}
	for _, file := range files {
		texts[file.Name] = string(file.Content)
	}
	return texts, err
}

func chart(storage string) fleet.Manifests {
	return fleet.Manifests{
		Manifests: folder.Manifests{
			Storage: storage,
			Repo:    map[string]string{"helm": "https://charts.example.com", "oci": "oci://registry.example.com/charts"}[storage],
			Chart:   "till",
			Version: "1.2.1",
		},
	}
}

func TestReconcilersFollowFinalObjects(t *testing.T) {
	t.Parallel()
	repo := &folder.Location{URL: "https://git.example.com/gitops", Branch: "prod", Path: "fleet"}
	result := &objects.Rendering{
		Chart: &objects.Chart{Name: "till", Version: "1.2.1", AppVersion: "7"},
		Objects: []objects.FinalObject{
			finalObject("", "ConfigMap", "a", "kind: ConfigMap\ntext: '{{ .Values.a }}'\n"),
			{
				Group:   "apiextensions.k8s.io",
				Version: "v1",
				Kind:    "CustomResourceDefinition",
				Name:    "tills",
				IsCRD:   true,
				YAML:    []byte("kind: CustomResourceDefinition\n"),
			},
			finalObject("", "Secret", "account", "kind: Secret\nmetadata:\n  name: account\ntype: kubernetes.io/service-account-token\n"),
		},
	}
	const skip = "# +argocd:skip-file-rendering\n"
	const crd, rest = "kind: CustomResourceDefinition\n", "kind: Secret\nmetadata:\n  name: account\ntype: kubernetes.io/service-account-token\n"
	for name, test := range map[string]struct {
		deployment
		isChart   bool
		contains  []string // parts of reconciler.yaml
		lacks     []string
		documents int
	}{
		"a Kustomization": {deployment: deployment{parameters: map[string]any{"kustomization": map[string]any{"patches": []any{map[string]any{"patch": "x"}}, "force": true}}}, documents: 1, contains: []string{
			"kind: Kustomization", "path: ./fleet/drone/hello-dev/objects", "sourceRef:\n    kind: GitRepository\n    name: flotilla\n",
			"images:\n    - name: flotilla.dev/objects\n      newTag: ", "prune: true", "force: true", "targetNamespace: \"dev-drone-hello-dev\"",
		}, lacks: []string{"patches", "https://git.example.com/hello", "kind: OCIRepository"}},
		"another name of the repository": {deployment: deployment{parameters: map[string]any{"gitops_repository": "flux-system"}}, documents: 1, contains: []string{
			"kind: GitRepository\n    name: flux-system\n",
		}},
		"a HelmRelease of a chart repository": {deployment: deployment{manifests: chart("helm"), config: map[string]any{"a": "b"}, configAs: fleet.ConfigAs{"values"}}, isChart: true, documents: 1, contains: []string{
			"kind: HelmRelease", "chart: ./fleet/drone/hello-dev/objects", "reconcileStrategy: ChartVersion", "kind: GitRepository\n        name: flotilla\n", "values:\n    objects: ",
			`releaseName: "hello-dev"`,
		}, lacks: []string{"version:", "a: b", "HelmRepository"}},
		"a HelmRelease of a registry": {deployment: deployment{manifests: chart("oci")}, isChart: true, documents: 1, contains: []string{
			"chart:\n    spec:\n      chart: ./fleet/drone/hello-dev/objects", "values:\n    objects: ",
		}, lacks: []string{"chartRef", "OCIRepository"}},
		"an Application": {deployment: deployment{reconciler: "argocd", manifests: chart("helm")}, documents: 1, contains: []string{
			"kind: Application", "repoURL: https://git.example.com/gitops", "targetRevision: prod", "path: fleet/drone/hello-dev/objects",
			"kustomize:\n      images:\n        - flotilla.dev/objects:",
		}, lacks: []string{"chart:", "helm:"}},
		"an ApplicationSet": {deployment: deployment{reconciler: "argocd-hub", parameters: map[string]any{"gitops_repository": "ssh://git@git.example.com/gitops"}}, documents: 1, contains: []string{
			"kind: ApplicationSet", "repoURL: ssh://git@git.example.com/gitops", "path: fleet/drone/hello-dev/objects", "name: \"{{.name}}\"",
		}, lacks: []string{"https://git.example.com/hello"}},
	} {
		test.repo = repo
		files, err := renderWithObjects(t, test.deployment, result)
		if err != nil {
			t.Errorf("%s: %s", name, err)
			continue
		}
		reconciler := files["reconciler.yaml"]
		if documents := strings.Count(reconciler, "apiVersion: "); documents != test.documents {
			t.Errorf("%s: got %d objects", name, documents)
		}
		for _, want := range test.contains {
			if !strings.Contains(reconciler, want) {
				t.Errorf("%s: reconciler.yaml lacks %q:\n%s", name, want, reconciler)
			}
		}
		for _, not := range test.lacks {
			if strings.Contains(reconciler, not) {
				t.Errorf("%s: reconciler.yaml has %q:\n%s", name, not, reconciler)
			}
		}
		listed := skip + "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n"
		if !strings.HasPrefix(files["kustomization.yaml"], listed+"  - namespace.yaml\n") ||
			!strings.HasSuffix(files["kustomization.yaml"], "  - reconciler.yaml\n") {
			t.Errorf("%s: got kustomization.yaml %q", name, files["kustomization.yaml"])
		}
		if test.isChart {
			if want := skip + "kind: ConfigMap\ntext: '{{ .Values.a }}'\n---\n" + rest; files["objects/charts/rendered/objects.yaml"] != want ||
				files["objects/charts/rendered/crds/objects.yaml"] != skip+crd {
				t.Errorf("%s: got files %q", name, files)
			}
			for _, want := range []string{"name: till\n", "version: 1.2.1+", "appVersion: \"7\"\n"} {
				if !strings.Contains(files["objects/Chart.yaml"], want) {
					t.Errorf("%s: got chart %q", name, files["objects/Chart.yaml"])
				}
			}
			continue
		}
		if want := skip + "kind: ConfigMap\ntext: '{{ .Values.a }}'\n---\n" + crd + "---\n" + rest; files["objects/objects.yaml"] != want ||
			files["objects/kustomization.yaml"] != listed+"  - objects.yaml\n" {
			t.Errorf("%s: got files %q", name, files)
		}
	}
	if _, err := renderWithObjects(t, deployment{}, result); !errors.Is(err, render.ErrUnknown) {
		t.Errorf("without a repository: got error %v, want ErrUnknown", err)
	}
	empty, err := renderWithObjects(t, deployment{repo: repo}, &objects.Rendering{})
	if err != nil || !strings.HasSuffix(empty["objects/kustomization.yaml"], "resources: []\n") {
		t.Errorf("without objects: got folder %q, %v", empty, err)
	}
}

// randomObjects returns objects of a size with text that hardly compresses.
func randomObjects(number, size int) (all []objects.FinalObject) {
	bytes := make([]byte, size*3/4)
	source := rand.NewChaCha8([32]byte{})
	for i := range number {
		_, _ = source.Read(bytes)
		name := fmt.Sprintf("a%d", i)
		all = append(all, finalObject("", "ConfigMap", name, "kind: ConfigMap\ntext: "+base64.StdEncoding.EncodeToString(bytes)+"\n"))
	}
	return all
}

// TestManyObjectsAreInSeveralFiles splits objects of more than the maximum size of a file.
// TestObjectsAreSplitIntoFiles does the same with small files.
func TestManyObjectsAreInSeveralFiles(t *testing.T) {
	acceptancetest.Only(t)
	t.Parallel()
	repo := &folder.Location{URL: "https://git.example.com/gitops", Branch: "prod"}
	result := &objects.Rendering{Chart: &objects.Chart{Name: "till", Version: "1.0.0"}}
	for i, size := range []int{10, 1400 << 10, 1400 << 10, 1400 << 10} {
		object := func(group, kind, name string) objects.FinalObject {
			return finalObject(group, kind, name, fmt.Sprintf("kind: %s\nmetadata:\n  name: %s\ntext: %s\n", kind, name, strings.Repeat("x", size)))
		}
		result.Objects = append(result.Objects, object("", "ConfigMap", fmt.Sprintf("a%d", i)))
		crd := object("apiextensions.k8s.io", "CustomResourceDefinition", fmt.Sprintf("b%d", i))
		crd.IsCRD = true
		result.Objects = append(result.Objects, crd)
	}
	for name, test := range map[string]struct {
		deployment
		want string
	}{
		"a chart": {deployment{manifests: chart("helm")}, "charts/rendered/Chart.yaml charts/rendered/crds/objects-2.yaml " +
			"charts/rendered/crds/objects.yaml charts/rendered/objects-2.yaml charts/rendered/objects.yaml"},
		"a kustomization": {deployment{reconciler: "argocd", manifests: chart("helm")}, "objects-2.yaml objects-3.yaml objects.yaml"},
	} {
		test.repo = repo
		files, err := renderWithObjects(t, test.deployment, result)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		var committed []folder.File
		for _, file := range slices.Sorted(maps.Keys(files)) {
			committed = append(committed, folder.File{Name: file, Content: []byte(files[file])})
			if below, isBelow := strings.CutPrefix(file, "objects/"); isBelow && len(files[file]) > render.MaxFile {
				t.Errorf("%s: %s has %d bytes", name, file, len(files[file]))
			} else if isBelow && (len(files[file]) > 1<<20 || strings.HasPrefix(below, "charts/rendered/C")) {
				names = append(names, below)
			}
		}
		if got := strings.Join(names, " "); got != test.want {
			t.Errorf("%s: got files %s", name, got)
		}
		former, err := render.FormerObjects(committed, nil)
		if err != nil || len(former) != len(result.Objects) {
			t.Errorf("%s: got %d objects, %v", name, len(former), err)
		}
		if list := files["objects/kustomization.yaml"]; strings.Count(list, "\n  - objects") != 3 && name == "a kustomization" {
			t.Errorf("got list %s", list)
		}
	}
}

func TestUnsuitableFinalObjectsAreErrors(t *testing.T) {
	t.Parallel()
	repo := &folder.Location{URL: "https://git.example.com/gitops", Branch: "prod"}
	secret := func(name, rest string) objects.FinalObject {
		return finalObject("", "Secret", name, fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata:\n  name: %s\n%s", name, rest))
	}
	const sops = "sops:\n  mac: ENC[AES256_GCM,data:YQ==,iv:YQ==,tag:YQ==,type:str]\n  lastmodified: \"2026-01-01T00:00:00Z\"\n  version: 3.9.0\n  encrypted_regex: ^(data|stringData)$\n  age:\n  - recipient: age1\n    enc: |\n      -----BEGIN AGE ENCRYPTED FILE-----\n      YQ==\n      -----END AGE ENCRYPTED FILE-----\n"
	hook := finalObject("", "ConfigMap", "twice", "kind: ConfigMap\n")
	hook.Hook = "pre-install"
	for name, test := range map[string]struct {
		objects []objects.FinalObject
		isChart bool
		want    []string
	}{
		"plain Secrets": {[]objects.FinalObject{secret("a", "data:\n  p: YQ==\n"), secret("b", "stringData:\n  p: canary\n")}, true, []string{
			`Secrets "a", "b" would be in the GitOps repository as plain text`, "encrypt them with SOPS", `render = "preview"`,
		}},
		"an encrypted Secret":             {[]objects.FinalObject{secret("a", "stringData:\n  p: ENC[AES256_GCM,data:YQ==,iv:YQ==,tag:YQ==,type:str]\n"+sops)}, false, nil},
		"a Secret encrypted in part":      {[]objects.FinalObject{secret("a", "stringData:\n  p: canary\n"+sops)}, false, []string{`Secret "a": `, "stringData"}},
		"a generated name":                {[]objects.FinalObject{finalObject("batch", "Job", "a-", "kind: Job\nmetadata:\n  generateName: a-\n")}, false, []string{`Job "a-" has a generateName`}},
		"a generated name of a chart":     {[]objects.FinalObject{finalObject("batch", "Job", "a-", "kind: Job\nmetadata:\n  generateName: a-\n")}, true, nil},
		"a hook and another object":       {[]objects.FinalObject{finalObject("", "ConfigMap", "twice", "kind: ConfigMap\n"), hook}, false, []string{`ConfigMap "twice" is there as a hook and as another object`}},
		"a hook and an object of a chart": {[]objects.FinalObject{finalObject("", "ConfigMap", "twice", "kind: ConfigMap\n"), hook}, true, nil},
		"too much":                        {[]objects.FinalObject{finalObject("", "ConfigMap", "a", strings.Repeat("a", render.MaxFile+1))}, false, []string{`ConfigMap "a" has more than 4 MiB`}},
		"a release that is too large": {randomObjects(9, 1<<18), true, []string{
			"its final objects make a release of ", "KiB, and Helm stores a release in a Secret, which can have 1024 KiB",
		}},
		"the same for Argo CD":    {randomObjects(9, 1<<18), false, nil},
		"a release that is large": {randomObjects(2, 1<<18), true, nil},
	} {
		d := deployment{repo: repo}
		if test.isChart {
			d.manifests = chart("helm")
		}
		_, err := renderWithObjects(t, d, &objects.Rendering{Objects: test.objects, Chart: &objects.Chart{Name: "till", Version: "1.0.0+b"}})
		if (err != nil) != (test.want != nil) || strings.Contains(fmt.Sprint(err), "canary") {
			t.Errorf("%s: got error %v", name, err)
		}
		for _, want := range test.want {
			if !strings.Contains(fmt.Sprint(err), want) {
				t.Errorf("%s: got error %v, want %q", name, err, want)
			}
		}
	}
}
