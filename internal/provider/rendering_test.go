package provider_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/gittest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// published is a chart repository that has the versions of the chart "till" that were published, with their archives.
type published struct {
	url string

	mutex    sync.Mutex
	index    string
	archives map[string][]byte // by path
	fetched  int
	isDown   bool
}

func newPublished(t *testing.T) *published {
	t.Helper()
	p := &published{index: "entries:\n  till:\n", archives: map[string][]byte{}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mutex.Lock()
		defer p.mutex.Unlock()
		archive, has := p.archives[r.URL.Path]
		switch {
		case p.isDown:
			http.Error(w, "down", http.StatusBadGateway)
		case r.URL.Path == "/index.yaml":
			_, _ = fmt.Fprint(w, p.index)
		case has:
			p.fetched++
			_, _ = w.Write(archive)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	p.url = server.URL
	return p
}

// publish publishes a version with files beside Chart.yaml, and returns the pin.
func (p *published) publish(t *testing.T, version string, files map[string]string) folder.Pin {
	t.Helper()
	all := map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: till\nversion: " + version + "\n",
		"README.md":  t.Name(), // so that no other test has the same artifact
	}
	maps.Copy(all, files)
	archive := packed(t, "till", all)
	digest := fmt.Sprintf("%x", sha256.Sum256(archive))
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.index += fmt.Sprintf("    - {version: %[1]s, digest: %[2]s, urls: [till-%[1]s.tgz]}\n", version, digest)
	p.archives["/till-"+version+".tgz"] = archive
	return folder.Pin{Version: version, Digest: "sha256:" + digest}
}

// republish publishes a version of the chart again, with other content.
func (p *published) republish(t *testing.T, version string, files map[string]string) folder.Pin {
	t.Helper()
	p.mutex.Lock()
	var kept strings.Builder
	for line := range strings.Lines(p.index) {
		if !strings.Contains(line, "{version: "+version+",") {
			kept.WriteString(line)
		}
	}
	p.index = kept.String()
	p.mutex.Unlock()
	return p.publish(t, version, files)
}

// packed is the archive of a chart. A text that begins with "-> " is a symbolic link to what follows.
func packed(t testing.TB, chart string, files map[string]string) []byte {
	t.Helper()
	var buffer bytes.Buffer
	compressed := gzip.NewWriter(&buffer)
	writer := tar.NewWriter(compressed)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: chart + "/" + name, Size: int64(len(files[name])), Mode: 0o644}
		target, isLink := strings.CutPrefix(files[name], "-> ")
		if isLink {
			header = &tar.Header{Typeflag: tar.TypeSymlink, Name: chart + "/" + name, Linkname: target, Mode: 0o777}
		}
		err := writer.WriteHeader(header)
		if err == nil && !isLink {
			_, err = writer.Write([]byte(files[name]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	_, _ = writer.Close(), compressed.Close()
	return buffer.Bytes()
}

// tillFiles are files of the chart with a Deployment, a Secret and a hook.
var tillFiles = map[string]string{
	"values.yaml": "replicas: 1\ntag: v1\n",
	"templates/all.yaml": `
apiVersion: apps/v1
kind: Deployment
metadata: {name: till, annotations: {kubernetes: {{ .Capabilities.KubeVersion.Version }}, monitored: {{ .Capabilities.APIVersions.Has "monitoring.coreos.com/v1/ServiceMonitor" | quote }}}}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: till}}
  template:
    metadata: {labels: {app: till}}
    spec: {containers: [{name: till, image: "registry.example.com/till:{{ .Values.tag }}"}]}
---
apiVersion: v1
kind: Secret
metadata: {name: till}
stringData: {password: canary-secret}
---
apiVersion: batch/v1
kind: Job
metadata: {name: migrate, annotations: {helm.sh/hook: pre-upgrade}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: migrate, image: "registry.example.com/migrate:v1"}]}}}
`,
}

// rendered is a fleet of one cluster type, on which one deployment target is rendered. further are attributes of the deployment
// target, and of the cluster type.
func rendered(pin folder.Pin, manifests, further, clusterType map[string]any) map[string]any {
	target := merged(map[string]any{"environment": "dev", "manifests": manifests}, further)
	fleet := map[string]any{
		"cluster_types": []any{merged(map[string]any{"name": "store"}, clusterType)},
		"workloads": []any{map[string]any{
			"name": "till", "workspace": "team", "deployment_targets": map[string]any{"live": target},
		}},
		"target_policies":   []any{map[string]any{"name": "all", "cluster_type_selector": map[string]any{}}},
		"config_containers": []any{map[string]any{"name": "all", "data": map[string]any{"replicas": 3}}},
	}
	if pin != (folder.Pin{}) {
		text := func(name string) string { text, _ := manifests[name].(string); return text }
		pins, err := artifact.Resolved{"till-live": {
			Manifests: folder.Manifests{Storage: "helm", Repo: text("repo"), Chart: text("chart"), Version: text("version")}, Pin: pin,
		}}.Encode()
		if err != nil {
			panic(err)
		}
		fleet["artifacts"] = pins
	}
	return fleet
}

func tillManifests(p *published) map[string]any {
	return map[string]any{"storage": "helm", "repo": p.url, "chart": "till", "version": "1.x"}
}

// finalObjects are the objects that flotilla_manifests has of a fleet, by "<kind> <namespace>/<name> by <made_by> <hook>", and the images.
func finalObjects(t *testing.T, fleet map[string]any) (yaml map[string]string, images []any, said string) {
	t.Helper()
	read, diagnostics := providertest.New(startProvider).
		ReadData(t.Context(), providertest.Configuration{}, "flotilla_manifests", map[string]any{"fleet": fleetOf(fleet)})
	yaml = map[string]string{}
	for _, one := range asList(read["objects"]) {
		o := one.(map[string]any)
		if o["assignment"] != "store/till-live" {
			t.Errorf("an object is of %v", o["assignment"])
		}
		yaml[fmt.Sprintf("%v %v %v/%v by %v %v", o["api_version"], o["kind"], o["namespace"], o["name"], o["made_by"], o["hook"])] = o["yaml"].(string)
	}
	return yaml, asList(read["images"]), fmt.Sprint(diagnostics)
}

func asList(value any) []any {
	list, _ := value.([]any)
	return list
}

func TestAPreviewHasTheFinalObjectsOfAChart(t *testing.T) {
	t.Parallel()
	charts := newPublished(t)
	pin := charts.publish(t, "1.2.1", tillFiles)
	how := map[string]any{"render": "preview", "kubernetes_version": "1.33", "api_versions": []any{"monitoring.coreos.com/v1/ServiceMonitor"}}
	for name, fleet := range map[string]map[string]any{
		"of Flux": rendered(pin, tillManifests(charts), map[string]any{"config_as": []any{"values"}}, how),
		"of Argo CD, as the deployment target says": rendered(pin, tillManifests(charts), map[string]any{"config_as": []any{"values"}, "render": "preview"}, merged(how, map[string]any{"reconciler": "argocd", "render": nil})),
		"of Argo CD on a hub":                       rendered(pin, tillManifests(charts), map[string]any{"config_as": []any{"values"}}, merged(how, map[string]any{"reconciler": "argocd-hub"})),
	} {
		got, images, said := finalObjects(t, fleet)
		deployment := got["apps/v1 Deployment dev-store-till-live/till by chart <nil>"]
		for _, want := range []string{"replicas: 3\n", "kubernetes: v1.33\n", "monitored: \"true\"\n", "image: registry.example.com/till:v1\n"} {
			if !strings.Contains(deployment, want) {
				t.Errorf("%s: the Deployment lacks %q: %q; said is %s", name, want, got, said)
			}
		}
		secret := got["v1 Secret dev-store-till-live/till by chart <nil>"]
		if !strings.Contains(secret, "password: (hidden)") || strings.Contains(fmt.Sprint(got), "canary-secret") {
			t.Errorf("%s: the objects are %q", name, got)
		}
		if got["batch/v1 Job dev-store-till-live/migrate by chart pre-upgrade"] == "" || len(got) != 3 {
			t.Errorf("%s: the objects are %q", name, got)
		}
		if fmt.Sprint(images) != "[registry.example.com/migrate:v1 registry.example.com/till:v1]" {
			t.Errorf("%s: the images are %v", name, images)
		}
	}
	allowed := rendered(pin, tillManifests(charts), map[string]any{"render": "pointers"}, how)
	allowed["workspaces"] = []any{map[string]any{"name": "team", "least_render": "pointers"}}
	if got, images, said := finalObjects(t, allowed); len(got)+len(images) > 0 {
		t.Errorf("with pointers the objects are %q, %v; said is %s", got, images, said)
	}
	if charts.fetched != 1 {
		t.Errorf("the chart was fetched %d times", charts.fetched)
	}
	charts.isDown = true // another provider has what the former ones kept
	if got, _, said := finalObjects(t, rendered(pin, tillManifests(charts), nil, how)); len(got) != 3 {
		t.Errorf("while the repository is down, the objects are %q; said is %s", got, said)
	}
}

// served is a repository of files that a web server has, and the id of its one commit. A text that begins with "-> " is a
// symbolic link to what follows.
func served(t *testing.T, files map[string]string) (url, commit string) {
	t.Helper()
	url, commit, _ = servedFrom(t, files)
	return url, commit
}

// servedFrom is served with the folder of the repository.
func servedFrom(t *testing.T, files map[string]string) (url, commit, repository string) {
	t.Helper()
	root := t.TempDir()
	server := httptest.NewServer(&cgi.Handler{
		Path: filepath.Join(
			git(t, root, "--exec-path"),
			"git-http-backend",
		), Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1"}, Stderr: io.Discard,
	})
	t.Cleanup(server.Close)
	repository = filepath.Join(root, "team")
	if err := os.Mkdir(repository, 0o700); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) string {
		return strings.TrimSpace(
			gittest.Run(t, repository, "git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...),
		)
	}
	run("init", "-q", "-b", "main")
	for name, content := range files {
		path := filepath.Join(repository, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		write := func() error { return os.WriteFile(path, []byte(content), 0o600) }
		if target, isLink := strings.CutPrefix(content, "-> "); isLink {
			write = func() error { return os.Symlink(target, path) }
		}
		if err := write(); err != nil {
			t.Fatal(err)
		}
	}
	run("add", ".")
	run("commit", "-qm", "one")
	return server.URL + "/team/.git", run("rev-parse", "HEAD"), repository
}

func TestAPreviewHasTheFinalObjectsOfAFolder(t *testing.T) {
	t.Parallel()
	repo, commit := served(t, map[string]string{
		"plain/all.yaml":           "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: greeting}\ndata: {region: \"${REGION}\"}\n",
		"built/kustomization.yaml": "namePrefix: a-\nresources: [all.yaml]\n",
		"built/all.yaml":           "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: greeting}\n",
		"pages/[id].tsx":           "which no kustomization has",
	})
	for _, test := range []struct{ reconciler, path, name, with string }{
		{"flux", "plain", "v1 ConfigMap dev-store-till-live/greeting by kustomization <nil>", "region: east"},
		{"flux", "built", "v1 ConfigMap dev-store-till-live/a-greeting by kustomization <nil>", ""},
		{"argocd", "plain", "v1 ConfigMap dev-store-till-live/greeting by manifest <nil>", "region: ${REGION}"},
		{"argocd", "built", "v1 ConfigMap dev-store-till-live/a-greeting by kustomization <nil>", ""},
	} {
		further := map[string]any{"render": "preview"}
		if test.reconciler == "flux" {
			further["config_as"] = []any{"substitute"}
		}
		fleet := rendered(
			folder.Pin{},
			map[string]any{"repo": repo, "commit": commit, "path": test.path},
			further,
			map[string]any{"reconciler": test.reconciler},
		)
		fleet["config_containers"] = []any{map[string]any{"name": "all", "data": map[string]any{"REGION": "east"}}}
		got, _, said := finalObjects(t, fleet)
		if yaml, has := got[test.name]; !has || !strings.Contains(yaml, test.with) || len(got) != 1 {
			t.Errorf("%s, %s: the objects are %q; said is %s", test.reconciler, test.path, got, said)
		}
	}
}

// Files of the team's repository can change what an agent makes of it: the plan shows that, or names the file.
func TestFilesThatChangeWhatAnAgentRendersDoNotHideObjects(t *testing.T) {
	t.Parallel()
	object := func(name string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n"
	}
	with := func(name, content string) (repo, commit string) {
		return served(t, map[string]string{
			"live/kustomization.yaml": "resources: [good.yaml]\n", "live/good.yaml": object("good"), "live/evil.yaml": object("evil"), name: content,
		})
	}
	rule := ruled(rule("no-evil", "object.metadata.name != 'evil'", "match", map[string]any{"kinds": []any{"ConfigMap"}}))
	for _, test := range []struct{ reconciler, file, content, want string }{
		{"flux", "README.md", "harmless", ""},
		{"flux", ".sourceignore", "kustomization.yaml\n", `"no-evil" is violated`},
		{"flux", "live/.sourceignore", "kustomization.yaml\n", `"no-evil" is violated`},
		{"flux", "live/kustomization.yaml", "-> ../README", `"no-evil" is violated`},
		{"flux", "live/.argocd-source.yaml", "kustomize: {namePrefix: a-}\n", ""},
		{"argocd", ".sourceignore", "kustomization.yaml\n", ""},
		{"argocd", "live/.argocd-source.yaml", "directory: {recurse: true}\n", "file live/.argocd-source.yaml changes what the agent renders"},
		{"argocd", "live/.argocd-source-dev-store-till-live.yaml", "directory: {}\n", "file live/.argocd-source-dev-store-till-live.yaml changes what the agent renders"},
		{"argocd-hub", "live/.argocd-source-dev-store-till-live-east.yaml", "directory: {}\n", "changes what the agent renders"},
	} {
		repo, commit := with(test.file, test.content)
		manifests := map[string]any{"repo": repo, "commit": commit, "path": "live"}
		fleet := merged(
			rendered(folder.Pin{}, manifests, map[string]any{"render": "preview"}, map[string]any{"reconciler": test.reconciler}),
			rule,
		)
		_, said := providertest.New(startProvider).Plan(t.Context(), assigned(bare(t), fleetOf(fleet), nil))
		text := strings.Join(strings.Fields(fmt.Sprint(said)), " ")
		if test.want == "" && said.Err() != nil || !strings.Contains(text, test.want) {
			t.Errorf("%s with %s: said is %s, want %q", test.reconciler, test.file, text, test.want)
		}
	}
}

// With a preview the folders are what they are without; the plan after it changes nothing.
func TestAPreviewChangesNoFolder(t *testing.T) {
	t.Parallel()
	charts := newPublished(t)
	pin := charts.publish(t, "1.2.1", tillFiles)
	url, w := bare(t), providertest.New(startProvider)
	apply(t, w, assigned(url, fleetOf(rendered(pin, tillManifests(charts), nil, nil)), nil))
	preview := assigned(url, fleetOf(rendered(pin, tillManifests(charts), nil, map[string]any{"render": "preview"})), nil)
	if plan := apply(t, w, preview); !plan.Empty() {
		t.Errorf("with a preview it is %v", plan.Change(assignment).After)
	}
	if charts.fetched != 1 {
		t.Errorf("the chart was fetched %d times", charts.fetched)
	}
}

func TestWhatCannotBeRenderedIsAnErrorOfThePlan(t *testing.T) {
	t.Parallel()
	charts := newPublished(t)
	publish := func(version, template string) folder.Pin {
		return charts.publish(t, version, map[string]string{"templates/all.yaml": template})
	}
	gone := publish("1.9.9", "")
	delete(charts.archives, "/till-1.9.9.tgz")
	preview := map[string]any{"render": "preview"}
	unpinned := func(manifests map[string]any) map[string]any { return rendered(folder.Pin{}, manifests, preview, nil) }
	pinned := func(pin folder.Pin) map[string]any { return rendered(pin, tillManifests(charts), preview, nil) }
	for name, test := range map[string]struct {
		fleet map[string]any
		want  []string
	}{
		"a chart that fails": {pinned(publish("1.0.1", "\n{{ fail \"give me a name\" }}")), []string{
			"Manifests cannot be rendered", `"till-live": chart till 1.0.1 of ` + charts.url, "templates/all.yaml:2", "give me a name",
		}},
		"a chart that is another each time": {pinned(publish("1.0.2", "a: {{ randAlphaNum 8 }}")), []string{"Manifests cannot be rendered", "chart till 1.0.2", "templates/all.yaml", "randAlphaNum"}},
		"a chart that is not there":         {pinned(gone), []string{"Manifests cannot be rendered", `"till-live"`, charts.url}},
		"a branch":                          {unpinned(map[string]any{"repo": "https://git.example.com/app", "branch": "main"}), []string{"Invalid rendering", `workloads["till"].deployment_targets["live"].manifests: are not pinned`, "flotilla_artifacts", "or give the full id of a commit"}},
		"a range":                           {unpinned(tillManifests(charts)), []string{"Invalid rendering", "are not pinned", "flotilla_artifacts"}},
		"another reconciler": {rendered(publish("1.0.3", ""), tillManifests(charts), preview, map[string]any{"reconciler": "fleet"}), []string{
			"Invalid rendering", `cluster_types["store"].reconciler: is "fleet", and deployment target "till-live" has render = "preview": final objects are rendered for Flux and Argo CD alone`,
		}},
		"a field": {rendered(publish("1.0.4", ""), merged(tillManifests(charts), map[string]any{"parameters": map[string]any{"helm_release": map[string]any{
			"postRenderStrategy": "nohooks",
		}}}), preview, nil), []string{"Manifests cannot be rendered", "spec.postRenderStrategy can only be"}},
		"a value of the cluster": {rendered(publish("1.0.6", ""), tillManifests(charts), merged(preview, map[string]any{"config_as": []any{"configmap"}}), map[string]any{"parameters": map[string]any{
			"helm_release": map[string]any{"valuesFrom": []any{map[string]any{"kind": "ConfigMap", "name": "a"}}},
		}}), []string{"Manifests cannot be rendered", "spec.valuesFrom cannot be rendered: its values are on the cluster alone"}},
		"a word": {rendered(publish("1.0.5", ""), tillManifests(charts), map[string]any{"render": "all"}, nil), []string{`render: must be one of pointers, preview`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, w := bare(t), providertest.New(startProvider)
			_, said := w.Apply(t.Context(), assigned(url, fleetOf(test.fleet), nil))
			text := strings.Join(strings.Fields(fmt.Sprint(said)), " ")
			for _, want := range test.want {
				if said.Err() == nil || !strings.Contains(text, want) {
					t.Errorf("said is %s, want %q", text, want)
				}
			}
			if _, err := os.Stat(url); err == nil {
				t.Error("something was written")
			}
		})
	}
}

func TestRulesHoldForFinalObjects(t *testing.T) {
	t.Parallel()
	charts := newPublished(t)
	pin := charts.publish(t, "1.2.1", tillFiles)
	plan := func(rules ...any) string {
		fleet := merged(rendered(pin, tillManifests(charts), map[string]any{"render": "preview"}, nil), ruled(rules...))
		_, said := providertest.New(startProvider).Plan(t.Context(), assigned(bare(t), fleetOf(fleet), nil))
		return strings.Join(strings.Fields(fmt.Sprint(said)), " ")
	}
	if said := plan(
		rule("registries", "object.spec.template.spec.containers.all(c, c.image.startsWith('registry.example.com/'))", "match", map[string]any{"kinds": []any{"Deployment", "Job"}}),
		rule("who", "made_by == (object.kind in ['Deployment', 'Secret', 'Job'] ? 'chart' : 'flotilla')"),
	); strings.Contains(said, "Constraint") {
		t.Errorf("rules that hold: said is %s", said)
	}
	said := plan(
		rule(
			"few",
			"object.spec.replicas > 3",
			"match",
			map[string]any{"kinds": []any{"apps/Deployment"}},
			"message_expression",
			"'too few, by its ' + made_by",
		),
	)
	for _, want := range []string{"Constraint is violated", `"few" is violated by 1 of 1`, `"store/till-live", Deployment dev-store-till-live/till (by its chart)`, "too few, by its chart"} {
		if !strings.Contains(said, want) {
			t.Errorf("said is %s, want %q", said, want)
		}
	}
}

// A team cannot switch off the rules of the platform for final objects, on one cluster type or on many.
func TestADeploymentTargetDoesNotWeakenTheRendering(t *testing.T) {
	t.Parallel()
	charts := newPublished(t)
	pin := charts.publish(t, "1.2.1", tillFiles)
	rules := ruled(rule("few", "object.spec.replicas > 3", "match", map[string]any{"kinds": []any{"apps/Deployment"}}))
	plan := func(render string, workspace map[string]any, clusterTypes ...any) string {
		fleet := merged(rendered(pin, tillManifests(charts), map[string]any{"render": render}, nil), rules)
		fleet["cluster_types"] = clusterTypes
		fleet["workspaces"] = []any{merged(map[string]any{"name": "team"}, workspace)}
		_, said := providertest.New(startProvider).Plan(t.Context(), assigned(bare(t), fleetOf(fleet), nil))
		return strings.Join(strings.Fields(fmt.Sprint(said)), " ")
	}
	store := map[string]any{"name": "store", "render": "preview"}
	kiosk, depot := map[string]any{"name": "kiosk", "render": "preview"}, map[string]any{"name": "depot"}
	const weak = `workloads["till"].deployment_targets["live"].render: "pointers" is weaker than render = "preview" of cluster type `
	said := plan("pointers", nil, store, kiosk, depot)
	for _, want := range []string{"Invalid rendering", weak + `"kiosk", "store": leave it out`, `least_render = "pointers" for workspace "team"`} {
		if !strings.Contains(said, want) {
			t.Errorf("said is %s, want %q", said, want)
		}
	}
	if said := plan("preview", nil, map[string]any{"name": "store", "render": "objects"}); !strings.Contains(
		said,
		`"preview" is weaker than render = "objects"`,
	) {
		t.Errorf("with a preview of objects said is %s", said)
	}
	if said := plan("preview", map[string]any{"least_render": "pointers"}, store); !strings.Contains(said, `"few" is violated`) {
		t.Errorf("the rule says %s", said)
	}
	if said := plan("pointers", map[string]any{"least_render": "pointers"}, store); strings.Contains(said, "weaker") ||
		strings.Contains(said, "violated") {
		t.Errorf("where the workspace allows it, said is %s", said)
	}
}

// A chart that is good when it is installed, and evil when it is upgraded, breaks rules in the plan of a reconciler that upgrades.
func TestAnUpgradeBringsNothingThatThePlanDoesNotShow(t *testing.T) {
	t.Parallel()
	charts := newPublished(t)
	pin := charts.publish(t, "1.3.0", map[string]string{"templates/all.yaml": `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {mode: {{ ternary "evil" "good" .Release.IsUpgrade }}}
{{ if .Release.IsUpgrade }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: later}
{{ end }}
`})
	preview := map[string]any{"render": "preview"}
	shown := func(reconciler string) []string {
		read, said := providertest.New(startProvider).ReadData(t.Context(), providertest.Configuration{}, "flotilla_manifests", map[string]any{
			"fleet": fleetOf(rendered(pin, tillManifests(charts), preview, map[string]any{"reconciler": reconciler})),
		})
		var all []string
		for _, one := range asList(read["objects"]) {
			o := one.(map[string]any)
			all = append(all, fmt.Sprintf("%v %v %t", o["name"], o["on"], strings.Contains(o["yaml"].(string), "evil")))
		}
		if said.Err() != nil {
			t.Error(said)
		}
		return all
	}
	if got := shown("flux"); !slices.Equal(got, []string{"later upgrade false", "settings install false", "settings upgrade true"}) {
		t.Errorf("with Flux it has %q", got)
	}
	if got := shown("argocd"); !slices.Equal(got, []string{"settings <nil> false"}) {
		t.Errorf("with Argo CD it has %q", got)
	}
	plan := func(how map[string]any) string {
		rules := ruled(rule("no-evil", "object.?data.mode.orValue('') != 'evil'", "match", map[string]any{"kinds": []any{"ConfigMap"}}))
		fleet := merged(rendered(pin, tillManifests(charts), how, nil), rules)
		_, said := providertest.New(startProvider).Plan(t.Context(), assigned(bare(t), fleetOf(fleet), nil))
		return strings.Join(strings.Fields(fmt.Sprint(said)), " ")
	}
	if said, want := plan(preview), `"store/till-live", ConfigMap dev-store-till-live/settings on upgrade (by its chart)`; !strings.Contains(
		said,
		want,
	) {
		t.Errorf("said is %s, want %q", said, want)
	}
	said := plan(map[string]any{"render": "objects"})
	for _, want := range []string{`ConfigMap "settings" is not the same on install and on upgrade`, `ConfigMap "later" is not`, `render = "preview"`} {
		if !strings.Contains(said, want) {
			t.Errorf("with objects said is %s, want %q", said, want)
		}
	}

	url, w := bare(t), providertest.New(startProvider)
	still := charts.publish(
		t,
		"1.2.9",
		map[string]string{"templates/all.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {mode: good}\n"},
	)
	apply(t, w, assigned(url, fleetOf(rendered(still, tillManifests(charts), preview, nil)), nil))
	planned, _ := w.Plan(t.Context(), assigned(url, fleetOf(rendered(pin, tillManifests(charts), preview, nil)), nil))
	lines := fmt.Sprint(planned.Change(assignment).After)
	for _, want := range []string{"+ ConfigMap later on upgrade", "settings on install", "settings on upgrade", "- ConfigMap settings"} {
		if !strings.Contains(lines, want) {
			t.Errorf("the changes are %s, want %q", lines, want)
		}
	}
	read, unread := providertest.New(startProvider).ReadData(t.Context(), providertest.Configuration{}, "flotilla_diff", map[string]any{
		"name": "dev", "fleet": fleetOf(rendered(pin, tillManifests(charts), preview, nil)),
		"gitops_repo": map[string]any{"url": url, "branch": "dev", "path": "clusters/all"},
	})
	if text := fmt.Sprint(read["objects"]); !strings.Contains(text, "+# on upgrade\n") || !strings.Contains(text, "+  mode: evil\n") {
		t.Errorf("the difference is\n%s\nsaid is %s", text, unread)
	}
}

// Flux gives the version of a chart in Git the commit, and charts have the version in labels.
func TestAPreviewHasTheVersionThatFluxGivesAChart(t *testing.T) {
	t.Parallel()
	repo, commit := served(t, map[string]string{
		"till/Chart.yaml":         "apiVersion: v2\nname: till\nversion: 1.2.3\n",
		"till/templates/all.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {version: {{ .Chart.Version }}}\n",
	})
	for reconciler, want := range map[string]string{"flux": "version: 1.2.3+" + commit[:12] + "\n", "argocd": "version: 1.2.3\n"} {
		manifests := map[string]any{"repo": repo, "commit": commit, "path": "till", "type": "helm"}
		got, _, said := finalObjects(
			t,
			rendered(folder.Pin{}, manifests, map[string]any{"render": "preview"}, map[string]any{"reconciler": reconciler}),
		)
		if text := fmt.Sprint(got); !strings.Contains(text, want) {
			t.Errorf("%s: the objects are %s, want %q; said is %s", reconciler, text, want, said)
		}
	}
}

// Flux tells charts the version as the cluster says it, Argo CD its numbers.
func TestChartsSeeTheVersionOfKubernetesAsAgentsGiveIt(t *testing.T) {
	t.Parallel()
	charts := newPublished(t)
	pin := charts.publish(
		t,
		"1.2.1",
		map[string]string{
			"templates/all.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {version: {{ .Capabilities.KubeVersion.Version }}}\n",
		},
	)
	for reconciler, want := range map[string]string{"flux": "version: v1.34.2+k3s1\n", "argocd": "version: v1.34.2\n", "argocd-hub": "version: v1.34.2\n"} {
		clusterType := map[string]any{"reconciler": reconciler, "kubernetes_version": "v1.34.2+k3s1"}
		got, _, said := finalObjects(t, rendered(pin, tillManifests(charts), map[string]any{"render": "preview"}, clusterType))
		if text := fmt.Sprint(got); !strings.Contains(text, want) {
			t.Errorf("%s: the objects are %s, want %q; said is %s", reconciler, text, want, said)
		}
	}
}

// While what the manifests are pinned to is not known, there is nothing to render.
func TestPinsThatAreNotKnownYetAreRenderedAtApply(t *testing.T) {
	t.Parallel()
	charts := newPublished(t)
	pin := charts.publish(t, "1.2.1", map[string]string{"templates/all.yaml": "{{ fail \"never\" }}"})
	fleet := rendered(pin, tillManifests(charts), map[string]any{"render": "preview"}, nil)
	fleet["artifacts"] = providertest.Unknown{Then: fleet["artifacts"]}
	w := providertest.New(startProvider)
	if _, said := w.Plan(t.Context(), assigned(bare(t), fleetOf(fleet), nil)); said.Err() != nil {
		t.Errorf("the plan says %s", said)
	}
	url := bare(t)
	if _, said := w.Apply(t.Context(), assigned(url, fleetOf(fleet), nil)); !strings.Contains(
		fmt.Sprint(said),
		"Manifests cannot be rendered",
	) {
		t.Errorf("the apply says %s", said)
	}
}
