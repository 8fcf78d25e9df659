package provider_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// newRegistry serves an archive as the artifact <name>:<tag> of an OCI registry.
func newRegistry(t *testing.T, name, tag, layerType string, archive []byte) (url string) {
	t.Helper()
	digest := func(data []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(data)) }
	manifest, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": map[string]any{"mediaType": "application/vnd.oci.empty.v1+json", "digest": digest([]byte("{}")), "size": 2},
		"layers": []any{map[string]any{"mediaType": layerType, "digest": digest(archive), "size": len(archive)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data := manifest
		switch r.URL.Path {
		case "/v2/" + name + "/manifests/" + tag, "/v2/" + name + "/manifests/" + digest(manifest):
			w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
		case "/v2/" + name + "/tags/list":
			data = fmt.Appendf(nil, `{"name": %q, "tags": [%q]}`, name, tag)
		case "/v2/" + name + "/blobs/" + digest(archive):
			data = archive
		default:
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Docker-Content-Digest", digest(data))
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
	}))
	t.Cleanup(server.Close)
	return "oci://" + server.Listener.Addr().String()
}

// packFile returns an archive with one file at its root.
func packFile(t *testing.T, name, content string) []byte {
	t.Helper()
	var buffer bytes.Buffer
	compressed := gzip.NewWriter(&buffer)
	writer := tar.NewWriter(compressed)
	err := writer.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(content)), Mode: 0o644})
	_, writeErr := io.WriteString(writer, content)
	if err := errors.Join(err, writeErr, writer.Close(), compressed.Close()); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

// manifestsOfEachOrigin returns unpinned manifests from each kind of origin.
func manifestsOfEachOrigin(t *testing.T) map[string]map[string]any {
	t.Helper()
	const template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: greeting}\ndata: {at: '%s'}\n"
	charts := newChartServer(t)
	charts.publish(t, "1.2.1", map[string]string{"templates/all.yaml": fmt.Sprintf(template, "{{ .Release.Namespace }}")})
	archive := charts.archives["/till-1.2.1.tgz"]
	registry := newRegistry(t, "charts/till", "1.2.1", "application/vnd.cncf.helm.chart.content.v1.tar+gzip", archive)
	artifacts := newRegistry(
		t,
		"team/app",
		"v1",
		"application/vnd.cncf.flux.content.v1.tar+gzip",
		packFile(t, "all.yaml", fmt.Sprintf(template, t.Name())),
	)
	repo, _ := serveRepository(t, map[string]string{
		"plain/all.yaml":           fmt.Sprintf(template, t.Name()),
		"chart/Chart.yaml":         "apiVersion: v2\nname: till\nversion: 1.0.0\n",
		"chart/templates/all.yaml": fmt.Sprintf(template, "{{ .Release.Namespace }}"),
	})
	return map[string]map[string]any{
		"an exact version of a chart repository": {"storage": "helm", "repo": charts.url, "chart": "till", "version": "1.2.1"},
		"a range of a chart repository":          {"storage": "helm", "repo": charts.url, "chart": "till", "version": "1.x"},
		"an exact version of a registry":         {"storage": "oci", "repo": registry + "/charts", "chart": "till", "version": "1.2.1"},
		"a range of a registry":                  {"storage": "oci", "repo": registry + "/charts", "chart": "till", "version": "1.x"},
		"an artifact of a registry":              {"storage": "oci", "repo": artifacts + "/team/app", "tag": "v1"},
		"a folder of Git":                        {"storage": "git", "repo": repo, "branch": "main", "path": "plain"},
		"a chart of Git":                         {"storage": "git", "repo": repo, "branch": "main", "path": "chart", "type": "helm"},
	}
}

func TestPinsOfEachOriginAreRendered(t *testing.T) {
	t.Parallel()
	for origin, manifests := range manifestsOfEachOrigin(t) {
		for _, reconciler := range []string{"flux", "argocd", "argocd-hub"} {
			t.Run(origin+", "+reconciler, func(t *testing.T) {
				fleet := pinnedFleet(t, manifests, reconciler)
				yaml, _, messages := readFinalObjects(t, fleet)
				if len(yaml) != 1 || !strings.Contains(fmt.Sprint(yaml), "greeting") {
					t.Errorf("the objects are %v; messages: %s", yaml, messages)
				}
			})
		}
	}
}

// pinnedFleet returns a fleet of one cluster type with the artifacts that flotilla_artifacts returns.
func pinnedFleet(t *testing.T, manifests map[string]any, reconciler string) map[string]any {
	t.Helper()
	workloads := []any{map[string]any{
		"name": "till", "workspace": "team", "deployment_targets": map[string]any{"live": map[string]any{"environment": "dev", "manifests": manifests}},
	}}
	read, messages := readArtifacts(t, map[string]any{"workloads": workloads})
	if read["artifacts"] == nil {
		t.Fatalf("the manifests are not pinned: %s", messages)
	}
	return map[string]any{
		"cluster_types": []any{
			map[string]any{"name": "store", "reconciler": reconciler, "render": "preview"},
		}, "workloads": workloads, "artifacts": read["artifacts"],
		"target_policies": []any{map[string]any{"name": "all", "cluster_type_selector": map[string]any{}}},
	}
}

// Artifacts in the cache are planned although their repository is down.
func TestThePlanOfAPreviewNamesUnreachableRepositories(t *testing.T) {
	useNewCache(t)
	const address = "127.0.0.1:1"
	charts := newChartServer(t)
	p := &previewTargets{charts: charts, targets: map[string]any{}, pins: artifact.Resolved{}}
	files := map[string]string{"templates/all.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"}
	p.addChart(t, "kept", files)
	url, w := bare(t), providertest.New(startProvider)
	apply(t, w, assigned(url, fleetOf(p.fleet(t, 1)), nil))
	charts.isDown = true

	// With keep_unreachable, flotilla_artifacts keeps the deployed pins.
	workloads := []any{map[string]any{"name": "till", "workspace": "team", "deployment_targets": p.targets}}
	kept := map[string]any{
		"workloads":        workloads,
		"name":             "dev",
		"gitops_repo":      map[string]any{"url": url, "branch": "dev", "path": "clusters/all"},
		"keep_unreachable": true,
	}
	read, messages := readArtifacts(t, kept)
	if text, err := p.pins.Encode(); err != nil || read["artifacts"] != text || !strings.Contains(messages, "Pins stay as they are deployed") ||
		!strings.Contains(messages, charts.url) {
		t.Fatalf("the pins are %v; messages: %s", read["artifacts"], messages)
	}
	fleet := p.fleet(t, 1)
	fleet["artifacts"] = read["artifacts"]
	if plan, diags := w.Plan(t.Context(), assigned(url, fleetOf(fleet), nil)); diags.Err() != nil || !plan.Empty() {
		t.Errorf("with cached artifacts, the plan says %s", diags)
	}

	charts.isDown = false
	p.addChart(t, "other", map[string]string{"templates/all.yaml": "{{ fail `of itself` }}"})
	reachable := p.charts
	p.charts = newChartServer(t)
	p.addChart(t, "chart", files)
	down := p.charts.url
	p.charts.isDown = true
	p.charts = reachable
	p.targets["git"] = map[string]any{
		"environment": "dev",
		"manifests":   map[string]any{"repo": "http://" + address + "/team/app", "commit": strings.Repeat("a", 40)},
	}
	repo := "oci://" + address + "/team/app"
	p.targets["registry"] = map[string]any{"environment": "dev", "manifests": map[string]any{"storage": "oci", "repo": repo, "tag": "v1"}}
	p.pins["till-registry"] = artifact.Entry{
		Manifests: folder.Manifests{Storage: "oci", Repo: repo, Tag: "v1"},
		Pin:       folder.Pin{Version: "v1", Digest: digestOfVersion("1")},
	}
	text := planMessages(t, p.fleet(t, 1))
	for _, want := range []string{
		fmt.Sprintf(`"till-chart": repository %q: `, down), fmt.Sprintf(`"till-git": repository "http://%s/team/app": `, address),
		fmt.Sprintf(`"till-registry": repository "oci://%s/team/app": `, address), "502", "of itself",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the plan says %s, want %q", text, want)
		}
	}
	if strings.Contains(text, "till-kept") || strings.Contains(text, "keep_unreachable") {
		t.Errorf("the plan names a cached artifact: %s", text)
	}
	for _, source := range []string{"flotilla_manifests", "flotilla_diff"} {
		arguments := map[string]any{"fleet": fleetOf(p.fleet(t, 1)), "name": "dev", "gitops_repo": kept["gitops_repo"]}
		_, diags := w.ReadData(t.Context(), providertest.Configuration{}, source, arguments)
		if text := fmt.Sprint(diags); !strings.Contains(text, down) || strings.Contains(text, "keep_unreachable") {
			t.Errorf("%s says %s", source, text)
		}
	}
}
