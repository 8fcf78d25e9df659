package provider_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
)

// changedRegistry is a registry with one chart that can change its answers.
type changedRegistry struct {
	repo        string
	pin         folder.Pin
	mutex       sync.Mutex
	change      func(path string, body []byte) []byte // nil serves the pushed bytes
	keepsDigest bool                                  // answers carry the requested digest, whatever their content
}

func (c *changedRegistry) set(change func(path string, body []byte) []byte, unsigned bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.change, c.keepsDigest = change, unsigned
}

func newChangedRegistry(t *testing.T) *changedRegistry {
	t.Helper()
	digest := func(data []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(data)) }
	archive := chartArchive(t, "till", map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: till\nversion: 1.2.1\n", "templates/all.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: canary}\n",
	})
	manifest, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": map[string]any{"mediaType": "application/vnd.oci.empty.v1+json", "digest": digest([]byte("{}")), "size": 2},
		"layers": []any{
			map[string]any{"mediaType": "application/vnd.cncf.helm.chart.content.v1.tar+gzip", "digest": digest(archive), "size": len(archive)},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	c := &changedRegistry{pin: folder.Pin{Version: "1.2.1", Digest: digest(manifest)}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := archive
		if strings.Contains(r.URL.Path, "/manifests/") {
			body = manifest
			w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
		}
		digestHeader := digest(body)
		c.mutex.Lock()
		defer c.mutex.Unlock()
		if c.change != nil && r.Method == http.MethodGet {
			body = c.change(r.URL.Path, body)
		}
		if !c.keepsDigest {
			digestHeader = digest(body)
		}
		w.Header().Set("Docker-Content-Digest", digestHeader)
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		if r.Method == http.MethodGet {
			_, _ = w.Write(body)
		}
	}))
	t.Cleanup(server.Close)
	c.repo = "oci://" + server.Listener.Addr().String() + "/charts"
	return c
}

// The error names the registry. Nothing is rendered or cached.
func TestOtherBytesForADigestAreAnError(t *testing.T) {
	useNewCache(t)
	evil := chartArchive(t, "till", map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: till\nversion: 1.2.1\n", "templates/all.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: evil}\n",
	})
	inPath := func(part string, change func(body []byte) []byte) func(string, []byte) []byte {
		return func(path string, body []byte) []byte {
			if strings.Contains(path, part) {
				return change(body)
			}
			return body
		}
	}
	replaceAll := func([]byte) []byte { return evil }
	for name, test := range map[string]struct {
		change   func(path string, body []byte) []byte
		unsigned bool
	}{
		"another layer": {inPath("/blobs/", replaceAll), false},
		"another layer with the requested digest":    {inPath("/blobs/", replaceAll), true},
		"one bit of the layer":                       {inPath("/blobs/", flipBit), true},
		"a truncated layer":                          {inPath("/blobs/", func(body []byte) []byte { return body[:len(body)/2] }), true},
		"a longer layer":                             {inPath("/blobs/", func(body []byte) []byte { return append(append([]byte{}, body...), 'x') }), true},
		"an empty layer":                             {inPath("/blobs/", func([]byte) []byte { return nil }), true},
		"another manifest":                           {inPath("/manifests/", flipBit), false},
		"another manifest with the requested digest": {inPath("/manifests/", flipBit), true},
		"a truncated manifest":                       {inPath("/manifests/", func(body []byte) []byte { return body[:len(body)/2] }), true},
	} {
		t.Run(name, func(t *testing.T) {
			registry := newChangedRegistry(t)
			fleet := fleetWithPin(t, folder.Manifests{Storage: "oci", Repo: registry.repo, Chart: "till", Version: "1.2.1"}, registry.pin)
			registry.set(test.change, test.unsigned)
			objects, _, message := readFinalObjects(t, fleet)
			if len(objects) > 0 || !strings.Contains(message, registry.repo) || strings.Contains(message, "evil") {
				t.Errorf("the objects are %v; diagnostics: %s", objects, message)
			}
			// Nothing was cached. Once the right bytes are cached, later answers of the registry do not matter.
			registry.set(nil, false)
			for range 2 {
				if objects, _, message := readFinalObjects(t, fleet); len(objects) != 1 || !strings.Contains(fmt.Sprint(objects), "canary") {
					t.Errorf("afterwards the objects are %v; diagnostics: %s", objects, message)
				}
				registry.set(test.change, test.unsigned)
			}
		})
	}
}

func flipBit(body []byte) []byte {
	other := append([]byte{}, body...)
	other[len(other)/2] ^= 1
	return other
}

// A chart repository may omit digests, so its first answer is the pin.
func TestAnotherArchiveForTheSecondRequestIsAnError(t *testing.T) {
	useNewCache(t)
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/index.yaml" {
			_, _ = fmt.Fprint(w, "entries: {till: [{version: 1.2.1, urls: [till.tgz]}]}")
			return
		}
		requests++
		_, _ = w.Write(chartArchive(t, "till", map[string]string{
			"Chart.yaml":         "apiVersion: v2\nname: till\nversion: 1.2.1\n",
			"templates/all.yaml": fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: answer-%d}\n", requests),
		}))
	}))
	t.Cleanup(server.Close)
	fleet := pinnedFleet(t, map[string]any{"storage": "helm", "repo": server.URL, "chart": "till", "version": "1.2.1"}, "flux")
	objects, _, message := readFinalObjects(t, fleet)
	if len(objects) > 0 || !strings.Contains(message, server.URL) || !strings.Contains(message, "was published again with other content") {
		t.Errorf("after %d requests the objects are %v; diagnostics: %s", requests, objects, message)
	}
}

func TestAnArtifactOfVeryManyFilesIsAnError(t *testing.T) {
	useNewCache(t)
	number := acceptancetest.Count(50_100, 100_000)
	files := map[string]string{"templates/all.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: canary}\n"}
	for i := range number {
		files[fmt.Sprintf("files/%03d/f%06d", i/1000, i)] = "x"
	}
	charts := newChartServer(t)
	pin := charts.publish(t, "1.2.1", files)
	measure := func(name string, fleet map[string]any) {
		t.Helper()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := time.Now()
		objects, _, message := readFinalObjects(t, fleet)
		runtime.ReadMemStats(&after)
		t.Logf(
			"%s of %d files: %s, %d MiB allocated",
			name,
			number,
			time.Since(began).Round(time.Millisecond),
			(after.TotalAlloc-before.TotalAlloc)>>20,
		)
		if len(objects) > 0 || !strings.Contains(message, "more than 50000 files") {
			t.Errorf("%s gives %v; diagnostics: %s", name, objects, message)
		}
	}
	measure("a chart", fleetWithPin(t, folder.Manifests{Storage: "helm", Repo: charts.url, Chart: "till", Version: "1.2.1"}, pin))
	if !acceptancetest.All() {
		return // git takes longer to make such a commit than Flotilla takes to refuse it
	}
	repo, commit := serveRepository(t, files)
	measure("a commit", fleetWithPin(t, folder.Manifests{Storage: "git", Repo: repo, Commit: commit, Path: "templates"}, folder.Pin{}))
}
