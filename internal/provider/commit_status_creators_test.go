package provider_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/giteatest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// One of two accounts sets the statuses of both clusters.
func TestATokenOfOneClusterDoesNotSpeakForAnother(t *testing.T) {
	t.Parallel()
	repo, server, owner := requestHost(t)
	drone1, drone2 := server.User(t), server.User(t)
	path := "/repos/" + owner.Name + "/gitops"
	for _, user := range []giteatest.User{drone1, drone2} {
		server.API(t, owner, "PUT", path+"/collaborators/"+user.Name, map[string]any{"permission": "write"}, nil)
	}
	settings := map[string]any{"git": map[string]any{"token": owner.Token}}
	configuration := assigned(repo.url, fleetWithClusters(nil), nil)
	configuration.Provider = settings
	apply(t, providertest.New(startProvider), configuration)
	setStatus := func(user giteatest.User, cluster, state string) {
		t.Helper()
		for _, host := range []string{"cluster", "cluster-type"} {
			server.API(
				t,
				user,
				"POST",
				path+"/statuses/"+strings.TrimSpace(git(t, repo.folder, "rev-parse", "dev")),
				map[string]any{"context": "flotilla/" + cluster + "/" + host, "state": state},
				nil,
			)
		}
	}
	setStatus(drone1, "drone-1", "success")
	setStatus(drone2, "drone-2", "failure")
	setStatus(drone1, "drone-2", "success")
	setStatus(drone1, "large-1", "failure")
	read := func(creators any) (map[string]any, providertest.Diagnostics) {
		t.Helper()
		statuses := map[string]any{"forge": "gitea"}
		if creators != nil {
			statuses["creators"] = creators
		}
		return readCompliance(t, repo.url, settings, map[string]any{"feedback": map[string]any{"commit_statuses": statuses}})
	}
	for name, test := range map[string]struct {
		creators any
		want     string // verdicts of drone-1, drone-2 and large-1
	}{
		"an account for each cluster": {map[string]any{"drone-1": strings.ToUpper(drone1.Name), "drone-2": drone2.Name}, "ready unknown unknown"},
		"one account for all":         {drone1.Name, "ready ready failed"},
		"another account for all":     {drone2.Name, "unknown unknown unknown"},
		"not restricted":              {nil, "ready ready failed"},
	} {
		values, diags := read(test.creators)
		if got := clusterVerdicts(values); diags.Err() != nil || got != test.want {
			t.Errorf("%s: the verdicts are %q, want %q: %s", name, got, test.want, diags)
		}
	}
	values, _ := read(map[string]any{"drone-1": drone1.Name, "drone-2": drone2.Name})
	for cluster, want := range map[string]string{
		"drone-2": `is by "` + drone1.Name + `", and only those by "` + drone2.Name + `" count for this cluster`, "large-1": "creators has no account for this cluster",
	} {
		entry, _ := values["clusters"].(map[string]any)[cluster].(map[string]any)
		if message, _ := entry["message"].(string); !strings.Contains(message, want) {
			t.Errorf("the message of %s is %q, want %q", cluster, message, want)
		}
	}
	setStatus(drone2, "drone-2", "success")
	if values, _ := read(map[string]any{"drone-1": drone1.Name, "drone-2": drone2.Name}); clusterVerdicts(values) != "ready ready unknown" {
		t.Errorf("with a status of its own the verdicts are %q", clusterVerdicts(values))
	}
}

func TestWrongCreatorsAreRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		url      string
		statuses map[string]any
		want     string
	}{
		"a Git host without creators":         {"https://bitbucket.org/team/r.git", map[string]any{"creators": "bot"}, "Bitbucket Cloud does not report who set a commit status"},
		"a Git host without creators, by API": {"https://git.example.com/scm/team/r.git", map[string]any{"creators": "bot", "forge": "bitbucket_datacenter"}, "Bitbucket Data Center does not report"},
		"an unknown cluster":                  {"https://github.com/team/r.git", map[string]any{"creators": map[string]any{"drone-l": "bot"}}, `no cluster of this fleet is called "drone-l"; did you mean "drone-1"?`},
		"an empty account":                    {"https://github.com/team/r.git", map[string]any{"creators": ""}, "creators: must be the name of an account"},
		"no account by cluster":               {"https://github.com/team/r.git", map[string]any{"creators": map[string]any{}}, "creators: has no account, so that no status would count"},
		"an empty account for one cluster":    {"https://github.com/team/r.git", map[string]any{"creators": map[string]any{"drone-1": ""}}, `creators: the account of cluster "drone-1" is empty`},
		"a number":                            {"https://github.com/team/r.git", map[string]any{"creators": 7}, "creators: must be a string or a map of strings, not a number"},
	} {
		_, diags := readCompliance(
			t,
			test.url,
			map[string]any{"git": map[string]any{"token": "t"}},
			map[string]any{"feedback": map[string]any{"commit_statuses": test.statuses}},
		)
		if !slices.ContainsFunc(diags, func(d providertest.Diagnostic) bool {
			return d.Error && d.At == `AttributeName("feedback")` && strings.Contains(strings.Join(strings.Fields(d.Detail), " "), test.want)
		}) {
			t.Errorf("%s: got %s, want %q", name, diags, test.want)
		}
	}
}

func TestTheGuideOnTrustNamesTheGitHostsWithoutCreators(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../templates/guides/trust.md")
	if err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(strings.Fields(string(guide)), " "); !strings.Contains(text, forge.CreatorsText()) {
		t.Errorf("the guide lacks: %s", forge.CreatorsText())
	}
}
