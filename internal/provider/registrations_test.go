package provider_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// registrationYAML returns a WorkloadRegistration. workspace adds to its spec: ", workspace: team".
func registrationYAML(name, repo, workspace string) string {
	return fmt.Sprintf("apiVersion: scheduler.kalypso.io/v1alpha1\nkind: WorkloadRegistration\nmetadata: {name: %s}\n"+
		"spec: {workload: {repo: %q, branch: main}%s}\n", name, repo, workspace)
}

// The provider does not even connect to other servers.
func TestARegistrationReachesOnlyTheSourcesOfItsWorkspace(t *testing.T) {
	t.Parallel()
	for name, tool := range acceptanceTools(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSources(t)
			evil, connected := newListener(t)
			address := "http://" + evil + "/evil/x.git"
			s.commit("platform/control-plane.git", "main", map[string]string{"evil/evil.yaml": registrationYAML("evil", address, ", workspace: team")})
			plan := func(options string) string {
				t.Helper()
				w := newWorkdir(t, tool, map[string]string{"main.tf": requiredProviders + fmt.Sprintf(`
data "flotilla_repository_files" "main" {
  url  = %q
  path = "evil"
}

data "flotilla_repository_files" "workloads" {
  for_each = provider::flotilla::registrations(data.flotilla_repository_files.main.files%s)

  url     = each.value.url
  ref     = each.value.ref
  sources = each.value.sources
}
`, s.url("platform/control-plane.git"), options)})
				w.run("validate")
				stdout, stderr, err := w.try("plan", "-input=false", "-no-color")
				if err == nil {
					t.Errorf("%s: got no error: %s", options, stdout)
				}
				return strings.Join(strings.Fields(strings.ReplaceAll(stderr, "│", " ")), " ")
			}
			messages := plan(`, { workspaces = [{ name = "team", sources = ["https://git.example.com/team"] }] }`)
			for _, part := range []string{
				address, `workspace "team"`, `WorkloadRegistration "evil"`, "spec.workload.repo", "which are https://git.example.com/team",
				"add the beginning of the URL to them",
			} {
				if !strings.Contains(messages, part) {
					t.Errorf("the error lacks %s: %s", part, messages)
				}
			}
			if n := connected.Load(); n > 0 {
				t.Fatalf("the provider connected %d times to a server outside the sources", n)
			}
			plan("") // without workspaces, the attack succeeds
			if connected.Load() == 0 {
				t.Error("without workspaces, the provider did not connect")
			}
		})
	}
}

func TestRegistrationsAreBoundByTheSourcesOfTheirWorkspace(t *testing.T) {
	t.Parallel()
	workspace := func(sources any) map[string]any { return map[string]any{"name": "team", "sources": sources} }
	at := func(repo string) string { return registrationYAML("a", repo, ", workspace: team") }
	unknown := providertest.Unknown{}
	sources := []any{"https://git.example.com/team"}
	within, bounded, add := at("https://git.example.com/team/x.git"), []any{workspace(sources)}, "add the beginning of the URL"
	another := map[string]any{"name": "another", "sources": unknown}
	for name, c := range map[string]struct {
		document   string
		workspaces any
		sources    any    // returned for the registration
		wantError  string // "" for success
	}{
		"no workspaces":                          {within, nil, nil, ""},
		"a URL within the sources":               {within, bounded, sources, ""},
		"an object by name":                      {within, map[string]any{"team": workspace(sources)}, sources, ""},
		"any source":                             {within, []any{workspace(nil)}, nil, ""},
		"a path with any source":                 {at("/srv/x.git"), []any{workspace(nil)}, nil, ""},
		"unknown sources":                        {within, []any{workspace(unknown)}, unknown, ""},
		"one unknown source":                     {within, []any{workspace([]any{"https://git.example.com/other", unknown})}, unknown, ""},
		"an unknown name":                        {within, []any{map[string]any{"name": unknown, "sources": sources}}, unknown, ""},
		"an unknown workspace":                   {within, []any{unknown}, unknown, ""},
		"unknown workspaces":                     {within, unknown, unknown, ""},
		"another unknown attribute":              {within, []any{with(workspace(sources), "contributor_groups", unknown)}, sources, ""},
		"another workspace with unknown sources": {at("https://evil.example/x"), []any{workspace(sources), another}, nil, add},
		"no sources":                             {within, []any{workspace([]any{})}, nil, "which has none"},
		"another server":                         {at("https://git.example.com.evil.example/team/x"), bounded, nil, add},
		"another scheme":                         {at("http://git.example.com/team/x"), bounded, nil, add},
		"a longer segment":                       {at("https://git.example.com/team-evil/x"), bounded, nil, add},
		"a path traversal":                       {at("https://git.example.com/team/../other/x"), bounded, nil, "spec.workload.repo: the URL"},
		"a path":                                 {at("/srv/x.git"), bounded, nil, "a path on this machine"},
		"credentials":                            {at("https://u:canary@git.example.com/team/x"), bounded, nil, "spec.workload.repo: the URL"},
		"another workspace": {
			registrationYAML("a", "https://git.example.com/team/x", ", workspace: tame"), bounded, nil,
			`spec.workspace: is "tame", which is not among workspaces; did you mean "team"?`,
		},
		"no workspace":                {registrationYAML("a", "https://git.example.com/team/x", ""), bounded, nil, "spec.workspace: is required"},
		"an empty list of workspaces": {within, []any{}, nil, `spec.workspace: is "team", which is not among workspaces`},
		"a misspelt key":              {within, []any{map[string]any{"name": "team", "source": sources}}, nil, `did you mean "sources"?`},
		"a result of the function":    {within, map[string]any{"a": map[string]any{"name": "a", "url": "https://x"}}, nil, "options.workspaces"},
		"an invalid source":           {within, []any{workspace([]any{"*"})}, nil, "is not the beginning of a URL"},
		"the second of two":           {within + "---\n" + registrationYAML("b", "https://evil.example/x", ", workspace: team"), bounded, nil, `"https://evil.example/x"`},
	} {
		call := providertest.Call{Function: "registrations", Arguments: []any{[]any{c.document}, map[string]any{"workspaces": c.workspaces}}}
		got, err := providertest.New(startProvider).Evaluate(t.Context(), call)
		if c.wantError != "" {
			if err == nil || !strings.Contains(err.Error(), c.wantError) || strings.Contains(err.Error(), "canary") {
				t.Errorf("%s: the error is %v, want %q", name, err, c.wantError)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		one, _ := got.(map[string]any)["a"].(map[string]any)
		if fmt.Sprint(one["sources"]) != fmt.Sprint(c.sources) {
			t.Errorf("%s: sources are %v, want %v", name, one["sources"], c.sources)
		}
	}
}

func TestARegistrationCannotRedirectOutsideItsSources(t *testing.T) {
	t.Parallel()
	victim, connected := newListener(t)
	team := newWitness(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://"+victim+"/evil/x.git/info/refs?service=git-upload-pack", http.StatusFound)
	})
	provider := providertest.New(startProvider)
	found, err := provider.Evaluate(t.Context(), providertest.Call{Function: "registrations", Arguments: []any{
		[]any{registrationYAML("a", team.URL+"/team/x.git", ", workspace: team")},
		map[string]any{"workspaces": []any{map[string]any{"name": "team", "sources": []any{team.URL + "/team"}}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	one := found.(map[string]any)["a"].(map[string]any)
	configuration := providertest.Configuration{Provider: map[string]any{"git": map[string]any{"token": "canary", "credentials": []any{
		map[string]any{"url": "http://" + victim, "token": "canary"}, map[string]any{"url": team.URL + "/team", "token": "of-the-team"},
	}}}}
	attributes := map[string]any{"url": one["url"], "ref": one["ref"], "sources": one["sources"]}
	_, diags := provider.ReadData(t.Context(), configuration, "flotilla_repository_files", attributes)
	if !strings.Contains(diags.String(), "not among the sources") {
		t.Errorf("got %s", diags)
	}
	asked, shown := team.recorded()
	if n := connected.Load(); n > 0 || len(asked) == 0 || strings.Contains(fmt.Sprint(shown), "canary") {
		t.Errorf("the team's server got requests %q with %q; the other server got %d connections", asked, shown, n)
	}
}
