package provider_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/changes"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// serveTill serves version 1.2.1 of the chart "till", with a digest of the digit that publish sets.
func serveTill(t *testing.T) (url string, publish func(digit string)) {
	t.Helper()
	var digit atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/index.yaml" {
			http.NotFound(w, r)
			return
		}
		_, _ = fmt.Fprintf(w, "entries:\n  till:\n    - {version: 1.2.1, digest: %q}\n", strings.Repeat(digit.Load().(string), 64))
	}))
	t.Cleanup(server.Close)
	return server.URL, func(one string) { digit.Store(one) }
}

func TestAVersionPublishedAgainIsAChangeInThePlan(t *testing.T) {
	t.Parallel()
	for _, reconciler := range []string{"flux", "argocd", "argocd-hub", "fleet", "zarf"} {
		t.Run(reconciler, func(t *testing.T) {
			t.Parallel()
			repo, publish := serveTill(t)
			publish("1")
			url, workloads := bare(t), tillWorkloads(repo, "1.2.1")
			w := providertest.New(startProvider)
			configuration := func(update any) (providertest.Configuration, string) {
				t.Helper()
				read, message := readArtifacts(t, map[string]any{
					"workloads": workloads, "environment": "dev", "update": update, "name": "dev",
					"gitops_repo": map[string]any{"url": url, "branch": "dev", "path": "clusters/all"},
				})
				if read["artifacts"] == nil {
					t.Fatal(message)
				}
				return assigned(url, fleetOf(map[string]any{
					"workloads": workloads, "artifacts": read["artifacts"],
					"cluster_types": []any{map[string]any{"name": "drone", "labels": map[string]any{"edge": "true"}, "reconciler": reconciler}},
				}), nil), message
			}
			first, _ := configuration(nil)
			apply(t, w, first)
			publish("2")

			held, message := configuration([]any{})
			if !strings.Contains(message, "Version was published again") || !strings.Contains(message, `Chart "till" 1.2.1`) ||
				!strings.Contains(message, "render = ") {
				t.Errorf("the plan with a kept pin says %s", message)
			}
			plan, problems := w.Plan(t.Context(), held)
			if problems.Err() != nil || plan.Change(assignment).Action != providertest.NoOp ||
				strings.Contains(fmt.Sprint(problems), "published again") {
				t.Errorf("update = [] does not prevent the change: %v; diagnostics: %v", plan.Change(assignment).After["changes"], problems)
			}

			allowed, _ := configuration([]any{"till"})
			plan, problems = w.Plan(t.Context(), allowed)
			want := fileLine("", `metadata.annotations["flotilla.dev/digest"]`, "drone/till-edge", causeBy(changes.ByWorkload, "till"))
			if lines := fmt.Sprint(plan.Change(assignment).After["changes"]); !strings.Contains(lines, want) {
				t.Errorf("changes are %s, want %s", lines, want)
			}
			for _, want := range []string{"Version was published again", repo, "sha256:" + strings.Repeat("1", 64), "sha256:" + strings.Repeat("2", 64), `"till-edge"`} {
				if !strings.Contains(fmt.Sprint(problems), want) {
					t.Errorf("got %v, want %s", problems, want)
				}
			}
			apply(t, w, allowed)
			if plan, problems := w.Plan(t.Context(), allowed); plan.Change(assignment).Action != providertest.NoOp ||
				strings.Contains(fmt.Sprint(problems), "published again") {
				t.Errorf("after the apply, the plan is %v; diagnostics: %v", plan.Change(assignment).After["changes"], problems)
			}
		})
	}
}

// A misspelt name or environment would turn off all pins, but looks like a new one.
func TestANameOrEnvironmentWithoutPinsIsAWarning(t *testing.T) {
	t.Parallel()
	repo, publish := serveTill(t)
	publish("1")
	url, workloads := bare(t), tillWorkloads(repo, "1.2.1")
	apply(t, providertest.New(startProvider), assigned(url, fleetOf(map[string]any{"workloads": workloads}), nil))
	repoAt := func(path string) map[string]any { return map[string]any{"url": url, "branch": "dev", "path": path} }
	for name, test := range map[string]struct {
		attributes map[string]any
		want       string // "" if there is no warning
	}{
		"valid names":               {map[string]any{"name": "dev", "gitops_repo": repoAt("clusters/all"), "environment": "dev"}, ""},
		"a name":                    {map[string]any{"name": "dve", "gitops_repo": repoAt("clusters/all")}, `has no records of an assignment "dve" at path "clusters/all", so every pin is resolved`},
		"a name, nearest":           {map[string]any{"name": "dve", "gitops_repo": repoAt("clusters/all")}, `correct name or gitops_repo; did you mean "dev"?`},
		"a path":                    {map[string]any{"name": "dev", "gitops_repo": repoAt("clusters/al")}, "No pins are deployed"},
		"an environment":            {map[string]any{"environment": "prd"}, `belongs to environment "prd", so nothing is pinned. The workloads have deployment targets of "dev", "prod"; did you mean "prod"?`},
		"no workloads":              {map[string]any{"environment": "prd", "workloads": []any{}}, ""},
		"all environments":          {nil, ""},
		"another valid environment": {map[string]any{"environment": "prod"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			attributes := map[string]any{"workloads": workloads}
			for name, value := range test.attributes {
				attributes[name] = value
			}
			read, message := readArtifacts(t, attributes)
			if read["artifacts"] == nil || test.want == "" && message != "" || !strings.Contains(strings.Join(strings.Fields(message), " "), test.want) {
				t.Errorf("got %s, want %s", message, test.want)
			}
		})
	}
}

// The error mentions neither a missing repository nor credentials.
func TestATypoInTheNameOfAChartIsExplained(t *testing.T) {
	t.Parallel()
	for chart, want := range map[string]string{
		"tlil":     `it has no chart "tlil"; did you mean "till"?`,
		"payments": `it has no chart "payments".`,
	} {
		repo := serveIndex(t, "entries:\n  till:\n    - {version: 1.0.0, digest: x}\n")
		workloads := tillWorkloads(repo, "*")
		for _, target := range workloads[0].(map[string]any)["deployment_targets"].(map[string]any) {
			target.(map[string]any)["manifests"].(map[string]any)["chart"] = chart
		}
		_, message := readArtifacts(t, map[string]any{"workloads": workloads})
		message = strings.Join(strings.Fields(message), " ")
		if !strings.Contains(message, want) || strings.Contains(message, "not found") || strings.Contains(message, "credentials") {
			t.Errorf("chart %q: the error is %s\nwant %s", chart, message, want)
		}
	}
}

func TestAChartWithOnlyPreReleasesIsExplained(t *testing.T) {
	t.Parallel()
	repo := serveIndex(t, "entries:\n  till:\n    - {version: 1.0.0-rc.1, digest: x}\n    - {version: v1.0.0-rc.2, digest: x}\n")
	_, message := readArtifacts(t, map[string]any{"workloads": tillWorkloads(repo, "*")})
	message = strings.Join(strings.Fields(message), " ")
	if want := `the newest of these is "v1.0.0-rc.2": set version to it, or to a range such as ">=v1.0.0-rc.2"`; !strings.Contains(
		message,
		want,
	) ||
		strings.Contains(message, "not found") {
		t.Errorf("got %s, want %s", message, want)
	}
}
