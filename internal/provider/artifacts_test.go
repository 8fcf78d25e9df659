package provider_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/changes"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// serveCharts serves the chart "till" in the versions of the last call of publish. The server is down if there are none.
func serveCharts(t *testing.T) (url string, publish func(versions ...string)) {
	t.Helper()
	var versions atomic.Pointer[[]string]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if versions.Load() == nil || r.URL.Path != "/index.yaml" {
			http.Error(w, "down", http.StatusBadGateway)
			return
		}
		for _, line := range append([]string{"entries:", "  till:"}, *versions.Load()...) {
			_, _ = fmt.Fprintln(w, line)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, func(published ...string) {
		lines := make([]string, len(published))
		for i, version := range published {
			lines[i] = fmt.Sprintf("    - {version: %s, digest: %s}", version, strings.TrimPrefix(digestOfVersion(version), "sha256:"))
		}
		if versions.Store(&lines); len(lines) == 0 {
			versions.Store(nil)
		}
	}
}

// digestOfVersion returns the digest of a version: its last digit, repeated.
func digestOfVersion(version string) string {
	return "sha256:" + strings.Repeat(version[len(version)-1:], 64)
}

func tillWorkloads(repo, version string) []any {
	target := func(environment string) map[string]any {
		return map[string]any{
			"environment": environment, "labels": map[string]any{"edge": "true"},
			"manifests": map[string]any{"storage": "helm", "repo": repo, "chart": "till", "version": version},
		}
	}
	return []any{map[string]any{
		"name": "till", "workspace": "team", "deployment_targets": map[string]any{"edge": target("dev"), "live": target("prod")},
	}}
}

func readArtifacts(t *testing.T, attributes map[string]any) (map[string]any, string) {
	t.Helper()
	read, diags := providertest.New(startProvider).ReadData(t.Context(), providertest.Configuration{}, "flotilla_artifacts", attributes)
	return read, fmt.Sprint(diags)
}

func TestArtifactsPinManifests(t *testing.T) {
	t.Parallel()
	repo, publish := serveCharts(t)
	publish("1.2.1", "1.2.2", "2.0.3")
	read, message := readArtifacts(
		t,
		map[string]any{"workloads": tillWorkloads(repo, "1.x"), "environment": "dev", "timeouts": map[string]any{"read": "1m"}},
	)
	text, err := artifact.Resolved{"till-edge": {
		Manifests: folder.Manifests{Storage: "helm", Repo: repo, Chart: "till", Version: "1.x"},
		Pin:       folder.Pin{Version: "1.2.2", Digest: digestOfVersion("1.2.2")},
	}}.Encode()
	if err != nil || read["artifacts"] != text {
		t.Errorf("artifacts are %v, want %s; diagnostics: %s", read["artifacts"], text, message)
	}
	want := map[string]any{"till-edge": map[string]any{"commit": nil, "version": "1.2.2", "digest": digestOfVersion("1.2.2"), "kept": false}}
	if !reflect.DeepEqual(read["pins"], want) || !reflect.DeepEqual(read["newest"], map[string]any{"till-edge": "2.0.3"}) {
		t.Errorf("pins are %v, newest is %v", read["pins"], read["newest"])
	}
	read, _ = readArtifacts(t, map[string]any{"workloads": tillWorkloads(repo, "1.x")})
	if all, _ := read["pins"].(map[string]any); len(all) != 2 {
		t.Errorf("the pins of all environments are %v", all)
	}
}

func TestDeployedPinsAreKept(t *testing.T) {
	t.Parallel()
	repo, publish := serveCharts(t)
	publish("1.2.1")
	url := bare(t)
	workloads := tillWorkloads(repo, "1.x")
	first, message := readArtifacts(t, map[string]any{"workloads": workloads, "environment": "dev"})
	if first["artifacts"] == nil {
		t.Fatal(message)
	}
	apply(
		t,
		providertest.New(startProvider),
		assigned(url, fleetOf(map[string]any{"workloads": workloads, "artifacts": first["artifacts"]}), nil),
	)
	publish("1.2.1", "1.2.2")
	read := func(further map[string]any) (version, kept any, message string) {
		t.Helper()
		attributes := map[string]any{
			"workloads": workloads, "environment": "dev", "name": "dev", "gitops_repo": map[string]any{"url": url, "branch": "dev", "path": "clusters/all"},
		}
		for name, value := range further {
			attributes[name] = value
		}
		read, message := readArtifacts(t, attributes)
		pin, _ := read["pins"].(map[string]any)
		one, _ := pin["till-edge"].(map[string]any)
		return one["version"], one["kept"], message
	}
	for name, test := range map[string]struct {
		further map[string]any
		version string
		kept    bool
	}{
		"no update":             {nil, "1.2.2", false},
		"an empty update":       {map[string]any{"update": []any{}}, "1.2.1", true},
		"the workload":          {map[string]any{"update": []any{"till"}}, "1.2.2", false},
		"the deployment target": {map[string]any{"update": []any{"till-edge"}}, "1.2.2", false},
		"other manifests":       {map[string]any{"update": []any{}, "workloads": tillWorkloads(repo, ">=1")}, "1.2.2", false},
		"another assignment":    {map[string]any{"update": []any{}, "name": "other"}, "1.2.2", false},
		"an empty branch":       {map[string]any{"update": []any{}, "gitops_repo": map[string]any{"url": bare(t), "branch": "dev"}}, "1.2.2", false},
		"keep_unreachable, and the server answers": {map[string]any{"keep_unreachable": true}, "1.2.2", false},
	} {
		if version, kept, message := read(test.further); version != test.version || kept != test.kept {
			t.Errorf("%s: version %v, kept %v; diagnostics: %s", name, version, kept, message)
		}
	}
	publish()
	if version, kept, message := read(map[string]any{"keep_unreachable": true}); version != "1.2.1" || kept != true ||
		!strings.Contains(message, "Pins stay as they are deployed") || !strings.Contains(message, repo) || !strings.Contains(message, `"till-edge"`) {
		t.Errorf("while the server is down, version is %v, kept %v; diagnostics: %s", version, kept, message)
	}
	for _, update := range []any{nil, []any{}} {
		further := map[string]any{
			"workloads": workloads, "environment": "dev", "name": "dev", "keep_unreachable": true, "update": update,
			"gitops_repo": map[string]any{"url": url, "branch": "dev", "path": "clusters/all"},
		}
		if read, message := readArtifacts(t, further); !reflect.DeepEqual(read["newest"], map[string]any{"till-edge": "1.2.1"}) {
			t.Errorf("while the server is down, newest is %v; diagnostics: %s", read["newest"], message)
		}
	}
	if _, _, message := read(nil); !strings.Contains(message, "Artifacts cannot be resolved") || !strings.Contains(message, repo) ||
		!strings.Contains(message, "502") ||
		!strings.Contains(message, "set keep_unreachable") {
		t.Errorf("while the server is down, and without kept pins, got %s", message)
	}
	if _, _, message := read(map[string]any{"keep_unreachable": true, "workloads": tillWorkloads(repo, ">=1")}); !strings.Contains(
		message,
		"Artifacts cannot be resolved",
	) ||
		strings.Contains(message, "set keep_unreachable") {
		t.Errorf("while the server is down, and without a pin to keep, got %s", message)
	}
}

func TestANewVersionUpstreamIsAChangeInThePlan(t *testing.T) {
	t.Parallel()
	repo, publish := serveCharts(t)
	publish("1.2.1")
	url, workloads := bare(t), tillWorkloads(repo, "1.x")
	w := providertest.New(startProvider)
	configuration := func(update []any) providertest.Configuration {
		t.Helper()
		attributes := map[string]any{"workloads": workloads, "environment": "dev"}
		if update != nil {
			attributes["update"], attributes["name"] = update, "dev"
			attributes["gitops_repo"] = map[string]any{"url": url, "branch": "dev", "path": "clusters/all"}
		}
		read, message := readArtifacts(t, attributes)
		if read["artifacts"] == nil {
			t.Fatal(message)
		}
		return assigned(url, fleetOf(map[string]any{"workloads": workloads, "artifacts": read["artifacts"]}), nil)
	}
	apply(t, w, configuration(nil))
	if rendered := git(t, url, "show", "dev:clusters/all/drone/till-edge/reconciler.yaml"); !strings.Contains(rendered, `version: "1.2.1"`) {
		t.Errorf("the rendered file is\n%s", rendered)
	}
	publish("1.2.1", "1.2.2")
	plan, diags := w.Plan(t.Context(), configuration([]any{}))
	if diags.Err() != nil || plan.Change(assignment).Action != providertest.NoOp {
		t.Errorf("an excluded workload changes: %s", diags)
	}
	plan, _ = w.Plan(t.Context(), configuration([]any{"till"}))
	if lines := fmt.Sprint(plan.Change(assignment).After["changes"]); !strings.Contains(
		lines,
		fileLine("", "spec.chart.spec.version", "drone/till-edge", causeBy(changes.ByWorkload, "till")),
	) {
		t.Errorf("changes are %s", lines)
	}
}

func TestWrongArtifactsAreRefused(t *testing.T) {
	t.Parallel()
	repo, publish := serveCharts(t)
	publish("1.2.1")
	location := map[string]any{"url": bare(t), "branch": "dev"}
	for name, test := range map[string]struct {
		attributes map[string]any
		want       []string
	}{
		"update without records":               {map[string]any{"update": []any{}}, []string{"Name is required with update", "records of an assignment"}},
		"keep_unreachable without gitops_repo": {map[string]any{"keep_unreachable": true, "name": "dev"}, []string{"gitops_repo is required with keep_unreachable, name", "records of an assignment", "Invalid gitops_repo"}},
		"an unknown name in update":            {map[string]any{"update": []any{"tlil"}, "name": "dev", "gitops_repo": location}, []string{"Invalid update", `did you mean "till"`}},
		"an environment":                       {map[string]any{"environment": "a b"}, []string{"Invalid environment"}},
		"a name":                               {map[string]any{"name": "a b", "gitops_repo": location}, []string{"Invalid name"}},
		"workloads":                            {map[string]any{"workloads": tillWorkloads("here", "1.x")}, []string{"Invalid workloads", "is not the URL of a chart repository"}},
		"a misspelt key":                       {map[string]any{"workloads": []any{map[string]any{"name": "a", "workspace": "team", "lables": map[string]any{}}}}, []string{"Invalid workloads", "labels"}},
		"a missing version":                    {map[string]any{"workloads": tillWorkloads(repo, ">9")}, []string{"Artifacts cannot be resolved", `">9"`, repo, `"till-edge", "till-live"`}},
		"an unreachable repository":            {map[string]any{"name": "dev", "gitops_repo": map[string]any{"url": "http://127.0.0.1:1/a.git", "branch": "dev"}}, []string{"Repository cannot be reached"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			attributes := map[string]any{"workloads": tillWorkloads(repo, "1.x")}
			for name, value := range test.attributes {
				attributes[name] = value
			}
			_, message := readArtifacts(t, attributes)
			for _, want := range test.want {
				if !strings.Contains(strings.Join(strings.Fields(message), " "), want) {
					t.Errorf("got %s, want %q", message, want)
				}
			}
		})
	}
}
