package provider_test

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/evidence"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/facts"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

const infrastructureGuide = "rollouts.md.tmpl"

// infrastructure has the configuration of the guide and simulated facts of its clusters.
type infrastructure struct {
	workdir
	now    time.Time
	facts  map[string]evidence.ClusterFacts
	errors map[string]float64 // by cluster; nil without measurements
}

func newInfrastructure(t *testing.T, tool, onFailure string) *infrastructure {
	t.Helper()
	config := guideExample(t, infrastructureGuide, "examples/rollouts/infrastructure/main.tf")
	config = strings.Replace(config, `"roll_back"`, `"`+onFailure+`"`, 1)
	config = strings.Replace(config, `data "flotilla_cluster_facts" "prod" {}`, "", 1)
	config = strings.ReplaceAll(config, "[data.flotilla_cluster_facts.prod.evidence]", `jsondecode(file("evidence.json"))`)
	config = strings.ReplaceAll(config, "data.flotilla_cluster_facts.prod.evidence", `jsondecode(file("evidence.json"))[0]`)
	i := &infrastructure{now: time.Now().UTC().Truncate(time.Second), facts: map[string]evidence.ClusterFacts{}}
	i.workdir = newWorkdir(t, tool, map[string]string{"main.tf": config + requiredProviders})
	return i
}

// applyAndExpect lets half an hour pass, applies with new evidence, and expects versions in the order of cluster names and an empty next
// plan. It returns the output of the apply.
func (i *infrastructure) applyAndExpect(version, want string) string {
	i.t.Helper()
	i.now = i.now.Add(30 * time.Minute)
	documents := []string{string((&evidence.Facts{Time: i.now, Clusters: i.facts}).Marshal())}
	if i.errors != nil {
		check := evidence.Check{
			Name:    "errors",
			Of:      evidence.OfCluster,
			Unit:    "%",
			Pass:    "value < 1.0",
			Fail:    "value > 5.0",
			Figures: map[string]evidence.Figure{},
		}
		for cluster, value := range i.errors {
			check.Figures[cluster] = evidence.Figure{Value: value}
		}
		documents = append(
			documents,
			string((&evidence.Measurements{Environment: "prod", Time: i.now, Checks: []evidence.Check{check}}).Marshal()),
		)
	}
	text, err := json.Marshal(documents)
	if err != nil {
		i.t.Fatal(err)
	}
	writeFile(i.t, filepath.Join(i.path, "evidence.json"), string(text))
	output := i.run("apply", "-input=false", "-auto-approve", "-no-color", "-var", "kubernetes="+version)
	var versions map[string]string
	if err := json.Unmarshal([]byte(i.run("output", "-json", "versions")), &versions); err != nil {
		i.t.Fatal(err)
	}
	var got []string
	for _, cluster := range []string{"aks-canary", "aks-west", "eks-west", "eks-east", "gke-east"} {
		got = append(got, versions[cluster])
	}
	if text := strings.Join(got, " "); text != want {
		i.t.Errorf("got versions %q, want %q:\n%s", text, want, output)
	}
	i.run("plan", "-detailed-exitcode", "-input=false", "-var", "kubernetes="+version)
	return output
}

// setVersion sets facts of clusters: they run a version and are ready.
func (i *infrastructure) setVersion(version string, clusters ...string) {
	for _, cluster := range clusters {
		i.facts[cluster] = evidence.ClusterFacts{
			Status: verdict.Status{Verdict: verdict.Ready, Since: i.now}, Facts: (&facts.OwnFacts{Version: "v" + version + ".2"}).Known(100).Facts,
		}
	}
}

func TestTheGuideOnInfrastructureGoesFromRingToRing(t *testing.T) {
	t.Parallel()
	for name, tool := range acceptanceTools(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newInfrastructure(t, tool, "roll_back")
			i.setVersion("1.30", "aks-canary", "aks-west", "eks-west", "eks-east", "gke-east")
			i.applyAndExpect("1.30", "1.30 1.30 1.30 1.30 1.30")
			output := i.applyAndExpect("1.31", "1.31 1.30 1.30 1.30 1.30")
			if !strings.Contains(output, "aks-canary: 1.30 -> 1.31") || !strings.Contains(output, "2 changed") {
				t.Errorf("the output is %s", output)
			}
			if output = i.applyAndExpect("1.31", "1.31 1.30 1.30 1.30 1.30"); !strings.Contains(output, "proof: it is not true of the facts") {
				t.Errorf("the output is %s", output)
			}
			// Other verbs do not advance the rollout, and it continues under another name and address.
			i.run("plan", "-refresh-only", "-detailed-exitcode", "-input=false", "-var", "kubernetes=1.31")
			i.run("plan", "-destroy", "-input=false", "-var", "kubernetes=1.31")
			main := filepath.Join(i.path, "main.tf")
			renamed := strings.NewReplacer(
				"flotilla_rollout.kubernetes",
				"flotilla_rollout.k8s",
				`"flotilla_rollout" "kubernetes"`,
				`"flotilla_rollout" "k8s"`,
				`= "kubernetes"`,
				`= "k8s"`,
			).Replace(readFile(t, main))
			writeFile(t, main, renamed+"\nmoved {\n  from = flotilla_rollout.kubernetes\n  to   = flotilla_rollout.k8s\n}\n")
			// Version 1.31 fails on the canary and is rolled back.
			i.setVersion("1.31", "aks-canary")
			i.errors = map[string]float64{"aks-canary": 9, "aks-west": 0.1, "eks-west": 0.1, "eks-east": 0.1, "gke-east": 0.1}
			if output = i.applyAndExpect("1.31", "1.30 1.30 1.30 1.30 1.30"); !strings.Contains(output, "aks-canary: 1.31 -> 1.30") {
				t.Errorf("the output is %s", output)
			}
			i.setVersion("1.30", "aks-canary")
			i.errors["aks-canary"] = 0.1
			i.applyAndExpect("1.31", "1.30 1.30 1.30 1.30 1.30") // no second try
			i.applyAndExpect("1.32", "1.32 1.30 1.30 1.30 1.30")
			i.setVersion("1.32", "aks-canary")
			i.applyAndExpect("1.32", "1.32 1.32 1.30 1.30 1.30")
			i.setVersion("1.32", "aks-west")
			i.applyAndExpect("1.32", "1.32 1.32 1.32 1.30 1.30")
			i.setVersion("1.32", "eks-west")
			i.applyAndExpect("1.32", "1.32 1.32 1.32 1.32 1.32")
			i.setVersion("1.32", slices.Sorted(maps.Keys(i.facts))...)
			if output = i.applyAndExpect("1.32", "1.32 1.32 1.32 1.32 1.32"); !strings.Contains(output, "the wanted value is proven") {
				t.Errorf("the output is %s", output)
			}
			i.run("destroy", "-input=false", "-auto-approve")
		})
	}
}

func TestTheGuideOnInfrastructureHaltsAtTheCanary(t *testing.T) {
	t.Parallel()
	for name, tool := range acceptanceTools(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newInfrastructure(t, tool, "halt")
			i.setVersion("1.30", "aks-canary", "aks-west", "eks-west", "eks-east", "gke-east")
			i.applyAndExpect("1.31", "1.31 1.30 1.30 1.30 1.30")
			i.setVersion("1.31", "aks-canary")
			canary := i.facts["aks-canary"]
			canary.Verdict, canary.Message = verdict.Progressing, "1 of 3 nodes is not ready"
			i.facts["aks-canary"] = canary
			if output := i.applyAndExpect("1.31", "1.31 1.30 1.30 1.30 1.30"); !strings.Contains(output, "1 of 3 nodes is not ready") {
				t.Errorf("the output is %s", output)
			}
			i.setVersion("1.31", "aks-canary")
			i.errors = map[string]float64{"aks-canary": 9}
			if output := i.applyAndExpect("1.31", "1.31 1.30 1.30 1.30 1.30"); !strings.Contains(output, "errors: 9 %") {
				t.Errorf("the output is %s", output)
			}
			i.applyAndExpect("1.32", "1.32 1.30 1.30 1.30 1.30") // a newer value starts at once
		})
	}
}

// Terraform reports a cycle if the provider's clusters depend on the resources that receive the values.
func TestTheGuideOnInfrastructureIsRightAboutCycles(t *testing.T) {
	t.Parallel()
	for _, tool := range acceptanceTools(t) {
		config := readFile(t, filepath.Join("..", "..", "examples", "rollouts", "infrastructure", "main.tf")) + requiredProviders
		cycle := config + "\nprovider \"flotilla\" {\n  clusters = { aks-canary = { host = terraform_data.aks[\"aks-canary\"].output.name } }\n}\n"
		w := newWorkdir(t, tool, map[string]string{"main.tf": cycle})
		if _, output, err := w.try("plan", "-input=false", "-no-color"); err == nil || !strings.Contains(output, "Cycle") {
			t.Errorf("the output is %s", output)
		}
		aliased := strings.Replace(cycle, "provider \"flotilla\" {", "provider \"flotilla\" {\n  alias = \"facts\"", 1)
		aliased = strings.Replace(
			aliased,
			`data "flotilla_cluster_facts" "prod" {}`,
			"data \"flotilla_cluster_facts\" \"prod\" {\n  provider = flotilla.facts\n}",
			1,
		)
		writeFile(t, filepath.Join(w.path, "main.tf"), aliased)
		if _, output, err := w.try("plan", "-input=false", "-no-color"); err == nil || !strings.Contains(output, "Cycle") {
			t.Errorf("the output is %s", output)
		}
	}
}
