package provider_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// listingTests maps prefixes of keys of listings, other than HCL and commands, to tests.
var listingTests = map[string]string{
	"guides/adopting/applicationsets":                    "TestTheGuideAdoptsAnApplicationSet",
	"guides/assignments/read-a-plan":                     "TestTheGuideOnAssignmentsShowsTheLinesOfAPlan",
	"guides/ci/pipelines":                                "TestPipelinesFollowTheirSchemas",
	"guides/clusters/terraform-reports-a-cycle":          "TestListingsApply",
	"guides/first-cluster/":                              "TestTheFirstClusterIsSetUpAsTheTutorialSays",
	"guides/night/":                                      "TestTheQuestionsAtNightAreAnswered",
	"guides/observe/metrics-and-alerts":                  "TestPrometheusHasDataForEveryPanelAndEveryAlert",
	"guides/reference-fleet/reference-the-fleet":         "TestListingsApply",
	"guides/reference-observing/facts-of-clusters":       "TestTheRoleOfTheGuideIsEnoughForFacts",
	"guides/rendering/final-objects":                     "TestTheGuideShowsChangesOfFinalObjects",
	"guides/rings/":                                      "TestTheRingsAreFollowedAsTheTutorialSays",
	"guides/rollouts/metrics":                            "TestGuideToMeasurementsComparesTheCanaryWithTheOthers",
	"guides/secrets/the-guard-against-plain-credentials": "TestTheGuideShowsTheGuardAgainstPlainCredentials",
	"index/five-minutes":                                 "TestNewcomersGetTheOutputOfTheStartPage",
	"readme/the-core-of-a-configuration":                 "TestTheReadmeShowsThePlanOfItsConfiguration",
}

// TestListingsHaveTests skips generated signatures of functions, drawings, and commands (TestCommandsOfPagesAreValid).
func TestListingsHaveTests(t *testing.T) {
	t.Parallel()
	isUsed := map[string]bool{}
	for _, language := range []string{"", "text", "console", "yaml", "json", "hcl"} {
		for _, block := range listingsOf(t, language) {
			isCommands := language == "console" && !strings.HasPrefix(block.text, "$ ")
			if isCommands || strings.Contains(block.text, "──") || strings.HasSuffix(block.key, "/signature") {
				continue
			}
			isTested := false
			for key := range listingTests {
				if strings.HasPrefix(block.key, key) {
					isUsed[key], isTested = true, true
				}
			}
			if !isTested {
				t.Errorf("no test reads the listing %s:\n%s", block.key, block.text)
			}
		}
	}
	for key, test := range listingTests {
		requireTest(t, test)
		if !isUsed[key] {
			t.Errorf("there is no listing %s", key)
		}
	}
}

func TestTheGuideAdoptsAnApplicationSet(t *testing.T) {
	t.Parallel()
	secret := func(name, env string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: %[1]s, namespace: argocd, labels: "+
			"{argocd.argoproj.io/secret-type: cluster, env: %[2]s}}\nstringData: {name: %[1]s, server: 'https://%[1]s'}\n", name, env)
	}
	value, err := evaluateAdopt(t, "prod", map[string]any{
		"web.yaml":      textListing(t, "yaml", "guides/adopting/applicationsets"),
		"clusters.yaml": secret("berlin", "prod") + "---\n" + secret("lyon", "prod") + "---\n" + secret("oslo", "dev"),
	})
	if err != nil {
		t.Fatal(err)
	}
	adopted := value.(map[string]any)["fleet"].(map[string]any)
	workload := adopted["workloads"].([]any)[0].(map[string]any)
	policy := adopted["target_policies"].([]any)[0].(map[string]any)
	got := fmt.Sprintf("workload %s with %q, policy %s with %v", workload["name"],
		slices.Collect(maps.Keys(workload["deployment_targets"].(map[string]any))), policy["name"], policy["cluster_type_selector"])
	if got != `workload web with ["default"], policy prod with map[match_labels:map[env:prod]]` {
		t.Errorf("got %s", got)
	}
}

func TestTheGuideShowsTheGuardAgainstPlainCredentials(t *testing.T) {
	t.Parallel()
	want := textListing(t, "text", "guides/secrets/the-guard-against-plain-credentials")
	_, err := providertest.New(startProvider).Evaluate(t.Context(), fleetOf(map[string]any{
		"config_containers": []any{map[string]any{"name": "db", "data": map[string]any{"DB_PASSWORD": "canary-4714"}}},
	}))
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestGuideCommandsNameExistingAgents(t *testing.T) {
	t.Parallel()
	commands := annotateCommand.FindAllStringSubmatch(textListing(t, "shell", "guides/clusters/ask-agents-to-look-now"), -1)
	if len(commands) != 2 {
		t.Fatalf("got commands %q, want two", commands)
	}
	for i, reconciler := range []string{"flux", "argocd"} {
		value, err := providertest.New(startProvider).Evaluate(t.Context(), providertest.Call{Function: "agent_manifests", Arguments: []any{
			map[string]any{
				"cluster": "store-17", "cluster_type": "store", "reconciler": reconciler,
				"gitops_repo": map[string]any{"url": "https://git.example.com/platform/gitops", "branch": "dev"},
			},
		}})
		if err != nil {
			t.Fatal(err)
		}
		namespace, kind, name := commands[i][1], commands[i][2], commands[i][3]
		isNamed := func(text any) bool {
			var object struct {
				Kind     string
				Metadata struct{ Name, Namespace string }
			}
			if err := yaml.Unmarshal([]byte(text.(string)), &object); err != nil {
				t.Fatal(err)
			}
			isKind := strings.TrimSuffix(kind, "s") == strings.ToLower(object.Kind)
			return isKind && object.Metadata.Namespace == namespace && (name == "" || object.Metadata.Name == name)
		}
		if !slices.ContainsFunc(value.([]any), isNamed) {
			t.Errorf("an agent of %s has no %s %s/%s", reconciler, kind, namespace, name)
		}
	}
}

var annotateCommand = regexp.MustCompile(`(?m)^kubectl --namespace (\S+) annotate --overwrite (\w+)(?:/(\S+))? `)
