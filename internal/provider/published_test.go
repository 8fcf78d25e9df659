package provider_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net/http"
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

// chartServer is a chart repository with versions of the chart "till".
type chartServer struct {
	url string

	mutex    sync.Mutex
	index    string
	archives map[string][]byte
	fetched  int
	isDown   bool
}

func newChartServer(t *testing.T) *chartServer {
	t.Helper()
	p := &chartServer{index: "entries:\n  till:\n", archives: map[string][]byte{}}
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

// publish adds a version with further files, and returns the pin.
func (p *chartServer) publish(t *testing.T, version string, files map[string]string) folder.Pin {
	t.Helper()
	all := map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: till\nversion: " + version + "\n",
		"README.md":  t.Name(), // makes the artifact unique to the test
	}
	maps.Copy(all, files)
	archive := chartArchive(t, "till", all)
	digest := fmt.Sprintf("%x", sha256.Sum256(archive))
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.index += fmt.Sprintf("    - {version: %[1]s, digest: %[2]s, urls: [till-%[1]s.tgz]}\n", version, digest)
	p.archives["/till-"+version+".tgz"] = archive
	return folder.Pin{Version: version, Digest: "sha256:" + digest}
}

func (p *chartServer) republish(t *testing.T, version string, files map[string]string) folder.Pin {
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

// chartArchive returns the archive of a chart. A text "-> target" is a symbolic link.
func chartArchive(t testing.TB, chart string, files map[string]string) []byte {
	t.Helper()
	var buffer bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&buffer, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
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

// renderedFleet returns a fleet with one rendered deployment target (attributes: further) on one cluster type.
func renderedFleet(pin folder.Pin, manifests, further, clusterType map[string]any) map[string]any {
	target := mergeMaps(map[string]any{"environment": "dev", "manifests": manifests}, further)
	fleet := map[string]any{
		"cluster_types": []any{mergeMaps(map[string]any{"name": "store"}, clusterType)},
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

func tillManifests(p *chartServer) map[string]any {
	return map[string]any{"storage": "helm", "repo": p.url, "chart": "till", "version": "1.x"}
}

// readFinalObjects reads flotilla_manifests. Keys of yaml are "<api_version> <kind> <namespace>/<name> by <made_by> <hook>".
func readFinalObjects(t *testing.T, fleet map[string]any) (yaml map[string]string, images []any, problems string) {
	t.Helper()
	read, diagnostics := providertest.New(startProvider).
		ReadData(t.Context(), providertest.Configuration{}, "flotilla_manifests", map[string]any{"fleet": fleetOf(fleet)})
	yaml = map[string]string{}
	for _, one := range asList(read["objects"]) {
		o := one.(map[string]any)
		if o["assignment"] != "store/till-live" {
			t.Errorf("got an object of assignment %v, want store/till-live", o["assignment"])
		}
		yaml[fmt.Sprintf("%v %v %v/%v by %v %v", o["api_version"], o["kind"], o["namespace"], o["name"], o["made_by"], o["hook"])] = o["yaml"].(string)
	}
	return yaml, asList(read["images"]), fmt.Sprint(diagnostics)
}

func asList(value any) []any {
	list, _ := value.([]any)
	return list
}

// serveRepository serves a bare repository with one commit of these files. A text "-> target" is a symbolic link.
func serveRepository(t *testing.T, files map[string]string) (url, commit string) {
	t.Helper()
	root := t.TempDir()
	server := httptest.NewServer(httpBackend(t, root))
	t.Cleanup(server.Close)
	bare := initHosted(t, root, "team.git", "main")
	gittest.Commit(t, bare, "main", "main", func(folder string) { writeFiles(t, folder, files) })
	return server.URL + "/team.git", git(t, bare, "rev-parse", "main")
}

func writeFiles(t *testing.T, folder string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(folder, filepath.FromSlash(name))
		target, isLink := strings.CutPrefix(content, "-> ")
		if !isLink {
			writeFile(t, path, content)
			continue
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.Symlink(target, path)); err != nil {
			t.Fatal(err)
		}
	}
}

// serveWorkingCopy is like serveRepository, with a working copy.
func serveWorkingCopy(t *testing.T, files map[string]string) (url, commit, repository string) {
	t.Helper()
	root := t.TempDir()
	server := httptest.NewServer(httpBackend(t, root))
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
	writeFiles(t, repository, files)
	run("add", ".")
	run("commit", "-qm", "one")
	return server.URL + "/team/.git", run("rev-parse", "HEAD"), repository
}
