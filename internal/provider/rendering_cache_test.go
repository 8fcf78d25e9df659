package provider_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// useNewCache sets an empty cache for the test and returns its path.
func useNewCache(t *testing.T) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "cache")
	t.Setenv("FLOTILLA_CACHE_DIR", folder)
	return folder
}

// fleetWithPin returns a fleet with one deployment target and a pin that a team may have copied from another team.
func fleetWithPin(t *testing.T, manifests folder.Manifests, pin folder.Pin) map[string]any {
	t.Helper()
	attributes := map[string]any{"storage": manifests.Storage, "repo": manifests.Repo}
	for name, value := range map[string]string{
		"chart": manifests.Chart, "version": manifests.Version, "tag": manifests.Tag, "commit": manifests.Commit, "path": manifests.Path,
	} {
		if value != "" {
			attributes[name] = value
		}
	}
	fleet := renderedFleet(folder.Pin{}, attributes, nil, map[string]any{"render": "preview"})
	delete(fleet, "artifacts")
	if pin != (folder.Pin{}) {
		pins, err := artifact.Resolved{"till-live": {Manifests: manifests, Pin: pin}}.Encode()
		if err != nil {
			t.Fatal(err)
		}
		fleet["artifacts"] = pins
	}
	return fleet
}

// A known commit or digest of another team gives neither files nor rendered objects.
func TestAPinReadsOnlyItsOwnRepository(t *testing.T) {
	useNewCache(t)
	charts := newChartServer(t)
	pin := charts.publish(t, "1.2.1", map[string]string{"templates/all.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: canary}\n"})
	registry := newRegistry(
		t,
		"charts/till",
		"1.2.1",
		"application/vnd.cncf.helm.chart.content.v1.tar+gzip",
		charts.archives["/till-1.2.1.tgz"],
	)
	pinned, messages := readArtifacts(t, map[string]any{"workloads": []any{map[string]any{
		"name": "till", "workspace": "team", "deployment_targets": map[string]any{"live": map[string]any{
			"environment": "dev", "manifests": map[string]any{"storage": "oci", "repo": registry + "/charts", "chart": "till", "version": "1.2.1"},
		}},
	}}})
	resolved, err := artifact.Decode(fmt.Sprint(pinned["artifacts"]))
	if err != nil {
		t.Fatalf("%v; messages: %s", err, messages)
	}
	repo, commit := serveRepository(t, map[string]string{"plain/all.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: canary}\n"})
	otherRepo, _ := serveRepository(t, map[string]string{"plain/all.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: own}\n"})
	otherCharts := newChartServer(t)
	otherCharts.publish(t, "1.2.1", nil)
	empty := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(empty.Close)
	emptyRegistry := "oci://" + empty.Listener.Addr().String()
	for name, test := range map[string]struct {
		theirs, other folder.Manifests
		pin           folder.Pin
	}{
		"a chart repository": {
			folder.Manifests{Storage: "helm", Repo: charts.url, Chart: "till", Version: "1.2.1"},
			folder.Manifests{Storage: "helm", Repo: otherCharts.url, Chart: "till", Version: "1.2.1"}, pin,
		},
		"a registry": {
			folder.Manifests{Storage: "oci", Repo: registry + "/charts", Chart: "till", Version: "1.2.1"},
			folder.Manifests{Storage: "oci", Repo: emptyRegistry + "/charts", Chart: "till", Version: "1.2.1"}, resolved["till-live"].Pin,
		},
		"another path of the registry": {
			folder.Manifests{Storage: "oci", Repo: registry + "/charts", Chart: "till", Version: "1.2.1"},
			folder.Manifests{Storage: "oci", Repo: registry + "/evil", Chart: "till", Version: "1.2.1"}, resolved["till-live"].Pin,
		},
		"Git": {
			folder.Manifests{Storage: "git", Repo: repo, Commit: commit, Path: "plain"},
			folder.Manifests{Storage: "git", Repo: otherRepo, Commit: commit, Path: "plain"}, folder.Pin{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if objects, _, messages := readFinalObjects(t, fleetWithPin(t, test.theirs, test.pin)); !strings.Contains(fmt.Sprint(objects), "canary") {
				t.Fatalf("the right repository gives %v; messages: %s", objects, messages)
			}
			for range 2 {
				objects, _, messages := readFinalObjects(t, fleetWithPin(t, test.other, test.pin))
				if len(objects) > 0 || !strings.Contains(messages, test.other.Repo) || strings.Contains(messages, "canary") {
					t.Errorf("the wrong repository gives %v; messages: %s", objects, messages)
				}
			}
			if objects, _, messages := readFinalObjects(t, fleetWithPin(t, test.theirs, test.pin)); !strings.Contains(fmt.Sprint(objects), "canary") {
				t.Errorf("afterwards, the right repository gives %v; messages: %s", objects, messages)
			}
		})
	}
}

// Two repositories fetch the same digest at the same time.
func TestAFailureIsSharedWithinOneRepositoryOnly(t *testing.T) {
	useNewCache(t)
	charts := newChartServer(t)
	pin := charts.publish(t, "1.2.1", map[string]string{"templates/all.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: canary}\n"})
	fetched := make(chan struct{})
	chartsServer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		charts.mutex.Lock()
		defer charts.mutex.Unlock()
		if r.URL.Path == "/index.yaml" {
			_, _ = fmt.Fprint(w, charts.index)
			return
		}
		_, _ = w.Write(charts.archives[r.URL.Path])
		close(fetched)
	}))
	t.Cleanup(chartsServer.Close)
	// The other repository lists the same digest and fails only after the first has answered.
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/index.yaml" {
			_, _ = fmt.Fprint(w, charts.index)
			return
		}
		select {
		case <-fetched:
		case <-time.After(20 * time.Second):
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(other.Close)
	p := &previewTargets{charts: charts, targets: map[string]any{}, pins: artifact.Resolved{}}
	for name, repo := range map[string]string{"live": chartsServer.URL, "evil": other.URL} {
		p.pins["till-"+name] = artifact.Entry{Manifests: folder.Manifests{Storage: "helm", Repo: repo, Chart: "till", Version: "1.2.1"}, Pin: pin}
		p.targets[name] = map[string]any{
			"environment": "dev",
			"manifests":   map[string]any{"storage": "helm", "repo": repo, "chart": "till", "version": "1.2.1"},
		}
	}
	messages := planMessages(t, p.fleet(t, 1))
	if !strings.Contains(messages, `"till-evil": repository "`+other.URL) || strings.Contains(messages, "till-live") {
		t.Errorf("the plan says %s", messages)
	}
	_, diags := providertest.New(startProvider).
		ReadData(t.Context(), providertest.Configuration{}, "flotilla_manifests", map[string]any{"fleet": fleetOf(p.fleet(t, 1))})
	if messages := fmt.Sprint(diags); !strings.Contains(messages, other.URL) || strings.Contains(messages, "till-live") {
		t.Errorf("flotilla_manifests says %s", messages)
	}
}
