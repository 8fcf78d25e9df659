package provider_test

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// setsOfAHub are the guide's ApplicationSets.
const setsOfAHub = `
apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: web, namespace: argocd}
spec:
  generators: [{clusters: {selector: {matchLabels: {env: prod}}}}]
  template:
    metadata: {name: "{{name}}-web"}
    spec: {project: default, source: {repoURL: "https://git.example.com/web", path: ".", targetRevision: v1}, destination: {server: "{{server}}", namespace: web}}
---
apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: metrics, namespace: argocd}
spec:
  generators: [{clusters: {}}]
  template:
    metadata: {name: "{{name}}-metrics"}
    spec: {project: default, source: {repoURL: "https://git.example.com/metrics", path: ".", targetRevision: v1}, destination: {name: "{{name}}", namespace: metrics}}
`

// ownSecret registers the hub's own cluster and gives it labels for generators.
const ownSecret = `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "own", "namespace": "argocd", "labels":
	{"argocd.argoproj.io/secret-type": "cluster"}}, "data": {"name": "Y2VudHJhbA==", "server": "aHR0cHM6Ly9rdWJlcm5ldGVzLmRlZmF1bHQuc3Zj"}}`

// Each cluster and the hub must have a folder.
func TestTheGuideOnAdoptingIsRightAboutTheFoldersOfAHub(t *testing.T) {
	t.Parallel()
	const head = "`root` follows | `hosts` | cluster type, in the fleet and of the agent"
	clusters := readFile(t, "../../examples/adopting/hub/clusters.json")
	third := strings.Replace(ownSecret, "Y2VudHJhbA==", "c3RvcmUtMw==", 1) // store-3
	third = strings.Replace(third, "aHR0cHM6Ly9rdWJlcm5ldGVzLmRlZmF1bHQuc3Zj", "aHR0cHM6Ly9zdG9yZS0zLmV4YW1wbGUuY29t", 1)
	withThird := strings.Replace(clusters, `"items": [`, `"items": [`+third+",", 1)
	withOwn := strings.Replace(clusters, `"items": [`, `"items": [`+ownSecret+",", 1)
	rows := guideTableOf(t, "adopting.md", head).rows
	if len(rows) != 2 {
		t.Fatalf("the table has the rows %q", rows)
	}
	for _, row := range rows {
		for _, registered := range []string{clusters, withOwn, withThird} {
			quoted := strings.Split(row, "`")                                               // the folder is in the row's first or only code, the cluster type in its last
			stores, count := []string{"store-1", "store-2"}, "5 added, 0 removed, 5 in all" // Applications
			if registered == withThird {
				stores, count = append(stores, "store-3"), "6 added, 0 removed, 6 in all" // no label env: prod
			}
			options, folder, own := map[string]any{}, quoted[1], quoted[len(quoted)-2]
			if len(quoted) > 5 {
				options["hosts"] = strings.Trim(quoted[3], `"`)
			}
			documents := map[string]any{
				folder + "/all.yaml": setsOfAHub, "clusters.json": registered,
				"clusters/store-1/a.yaml":  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: deployed}\n",
				"chart/Chart.yaml":         "name: web\n",
				"chart/templates/web.yaml": "metadata: { name: {{ .Release.Name }} }\n",
			}
			value, err := evaluateAdopt(t, "prod", documents, options)
			if err != nil {
				t.Fatal(err)
			}
			adopted := value.(map[string]any)
			fleet := adopted["fleet"].(map[string]any)
			names := func(key string) (names []string) {
				for _, one := range fleet[key].([]any) {
					names = append(names, fmt.Sprint(one.(map[string]any)["name"]))
				}
				return slices.Sorted(slices.Values(names))
			}
			if got, want := names("cluster_types"), append([]string{own}, stores...); !slices.Equal(got, want) {
				t.Errorf("%s: cluster types are %q, want %q", row, got, want)
			}
			if got := names("clusters"); !slices.Equal(got, stores) {
				t.Errorf("%s: clusters are %q, want %q", row, got, stores)
			}
			listed := fmt.Sprint(adopted["listed"])
			for _, part := range []string{
				"Secret argocd/cluster-store-1", "ApplicationSet argocd/web", "chart/templates object: reason:has templates",
			} {
				if !strings.Contains(listed, part) {
					t.Errorf("%s: %s is not in %s", row, part, listed)
				}
			}
			fleet["clusters"] = append(fleet["clusters"].([]any), map[string]any{"name": "central", "cluster_type": own})
			called := providertest.Call{Function: "fleet", Arguments: []any{fleet}}
			plan, _ := mustPlan(t, providertest.New(startProvider), assigned(bare(t), called, map[string]any{"name": "prod"}))
			if lines := strings.Join(linesOf(plan), "\n"); !strings.Contains(lines, count) {
				t.Errorf("%s: the plan has\n%s", row, lines)
			}
		}
	}
}

// TestTheGuideOnAdoptingMakesNoSecondAgentOfAHub evaluates the Secrets of the example, including the Secret of the hub's own
// cluster.
func TestTheGuideOnAdoptingMakesNoSecondAgentOfAHub(t *testing.T) {
	t.Parallel()
	file, problems := hclsyntax.ParseConfig([]byte(readFile(t, "../../examples/adopting/hub/takeover.tf")), "takeover.tf", hcl.InitialPos)
	if problems.HasErrors() {
		t.Fatal(problems)
	}
	clusters := readFile(t, "../../examples/adopting/hub/clusters.json")
	scope := &hcl.EvalContext{
		Functions: map[string]function.Function{"jsondecode": stdlib.JSONDecodeFunc, "base64decode": function.New(&function.Spec{
			Params: []function.Parameter{{Name: "text", Type: cty.String}},
			Type:   function.StaticReturnType(cty.String),
			Impl: func(arguments []cty.Value, _ cty.Type) (cty.Value, error) {
				text, err := base64.StdEncoding.DecodeString(arguments[0].AsString())
				return cty.StringVal(string(text)), err
			},
		})},
		Variables: map[string]cty.Value{"local": cty.ObjectVal(map[string]cty.Value{
			"registered": cty.StringVal(strings.Replace(clusters, `"items": [`, `"items": [`+ownSecret+",", 1)),
		})},
	}
	for _, block := range file.Body.(*hclsyntax.Body).Blocks {
		if block.Type != "locals" {
			continue
		}
		secrets, problems := block.Body.Attributes["secrets"].Expr.Value(scope)
		if problems.HasErrors() {
			t.Fatal(problems)
		}
		if got := slices.Sorted(maps.Keys(secrets.AsValueMap())); !slices.Equal(got, []string{"store-1", "store-2"}) {
			t.Errorf("agents are created from %q", got)
		}
	}
}

// TestTheExamplesOnAdoptingListInOneForm evaluates the output listed for an object and for a document without an object.
func TestTheExamplesOnAdoptingListInOneForm(t *testing.T) {
	t.Parallel()
	listed := func(file, object string, taken bool) cty.Value {
		return cty.ObjectVal(map[string]cty.Value{
			"file": cty.StringVal(file), "object": cty.StringVal(object), "reason": cty.StringVal("is left"), "taken": cty.BoolVal(taken),
		})
	}
	scope := &hcl.EvalContext{
		Functions: map[string]function.Function{"join": stdlib.JoinFunc, "compact": stdlib.CompactFunc},
		Variables: map[string]cty.Value{"local": cty.ObjectVal(map[string]cty.Value{"adopted": cty.ObjectVal(map[string]cty.Value{
			"listed": cty.TupleVal([]cty.Value{listed("a.yaml", "Secret b/c", false), listed("d", "", false), listed("e", "", true)}),
		})})},
	}
	for _, name := range []string{"main.tf", "hub/main.tf"} {
		file, problems := hclsyntax.ParseConfig([]byte(readFile(t, "../../examples/adopting/"+name)), name, hcl.InitialPos)
		if problems.HasErrors() {
			t.Fatal(problems)
		}
		blocks := file.Body.(*hclsyntax.Body).Blocks
		index := slices.IndexFunc(blocks, func(one *hclsyntax.Block) bool { return one.Type == "output" && one.Labels[0] == "listed" })
		value, problems := blocks[index].Body.Attributes["value"].Expr.Value(scope)
		want := cty.TupleVal([]cty.Value{cty.StringVal("a.yaml: Secret b/c is left"), cty.StringVal("d: is left")})
		if problems.HasErrors() || !value.RawEquals(want) {
			t.Errorf("%s lists %#v, %v", name, value, problems)
		}
	}
}

// TestTheGuideOnAdoptingNamesTheAgentsOfAHub compares the guide's table with the example. TestAHubIsTakenOver applies the
// example.
func TestTheGuideOnAdoptingNamesTheAgentsOfAHub(t *testing.T) {
	t.Parallel()
	const head = "folders | contain | `reconciler` | `cluster`, `cluster_type` | `hub` | `name`"
	agents := strings.Split(readFile(t, "../../examples/adopting/hub/takeover.tf"), "resource \"flotilla_agent\"")[1:]
	rows := guideTableOf(t, "adopting.md", head).rows
	if len(rows) != len(agents) {
		t.Fatalf("the table has %d rows, and the example %d agents", len(rows), len(agents))
	}
	for i, row := range rows {
		cells := strings.Split(strings.ReplaceAll(row, "`", ""), " | ")
		name, _, _ := strings.Cut(cells[5], ",")
		for attribute, want := range map[string]string{"reconciler": cells[2], "hub": cells[4], "name": strings.TrimSpace(name)} {
			_, got, _ := strings.Cut(agents[i], "\n  "+attribute+" ")
			if got, _, _ = strings.Cut(strings.TrimLeft(got, " =\""), "\""); got != want && (got != "" || want != "unset") {
				t.Errorf("%s of %s is %q in the example, and %q in the table", attribute, cells[3], got, want)
			}
		}
	}
}

// TestAnUnreadableHubReportsNoMissingSecret plans agents with existing Secrets on hubs that answer no request.
func TestAnUnreadableHubReportsNoMissingSecret(t *testing.T) {
	t.Parallel()
	startRefusing := func(status int) map[string]any {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": %d, "message": "no"}`, status)
		}))
		t.Cleanup(server.Close)
		return map[string]any{"host": server.URL, "token": "x"}
	}
	for name, test := range map[string]struct {
		hub   map[string]any
		fails bool
		each  string // diagnostic of each agent
	}{
		"unreachable":  {map[string]any{"host": "https://127.0.0.1:1", "token": "x"}, false, `The plan for cluster %q was not tried.`},
		"overloaded":   {startRefusing(http.StatusServiceUnavailable), false, `The plan for cluster %q was not tried.`},
		"unauthorized": {startRefusing(http.StatusUnauthorized), true, ""},
		"forbidden":    {startRefusing(http.StatusForbidden), true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			configuration := providertest.Configuration{
				Provider:  map[string]any{"clusters": map[string]any{"hub": test.hub}},
				Resources: map[string]providertest.Resource{},
			}
			clusters := []string{"edge-paris", "edge-rome"}
			for _, cluster := range clusters {
				configuration.Resources["flotilla_agent."+cluster] = providertest.Resource{Attributes: agentAttributes("argocd", map[string]any{
					"cluster": cluster, "reconciler": "argocd-hub", "hub": "hub", "environment": "dev",
					"registration": map[string]any{"secret": "cluster-" + cluster},
				})}
			}
			_, diags := providertest.New(startProvider).Plan(t.Context(), configuration)
			if (diags.Err() != nil) != test.fails || strings.Contains(diags.String(), "does not exist") ||
				diags.Has("Cluster is not registered at the hub") {
				t.Errorf("the plan says %s", diags)
			}
			for _, cluster := range clusters {
				if want := fmt.Sprintf(test.each, cluster); test.each != "" && !strings.Contains(diags.String(), want) {
					t.Errorf("no agent says %q: %s", want, diags)
				}
			}
		})
	}
}

// TestAnExistingSecretOfAHubIsUsed onboards registered clusters, as the guide on adopting does.
func TestAnExistingSecretOfAHubIsUsed(t *testing.T) {
	acceptancetest.Only(t)
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	for _, kind := range []string{"AppProject", "ApplicationSet", "Application"} { // wait until the API serves the kinds
		server.Get(t, "argoproj.io/v1alpha1", kind, "default", "none")
	}
	const namespace = "provider-existing"
	server.Apply(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+namespace+"}\n")
	secret := func(name, cluster string) string {
		return fmt.Sprintf(`apiVersion: v1
kind: Secret
metadata: {name: %s, namespace: %s, labels: {argocd.argoproj.io/secret-type: cluster}}
stringData: {name: %s, server: "https://10.0.0.1", config: '{"bearerToken": "canary-t0ken-4715"}'}
`, name, namespace, cluster)
	}
	configuration := func(registration map[string]any) providertest.Configuration {
		result := onHub(server, agentAttributes(namespace, map[string]any{
			"reconciler": "argocd-hub", "hub": "hub", "environment": "dev", "registration": registration,
		}))
		result.Provider["clusters"] = map[string]any{"hub": connectionTo(server)} // Flotilla does not reach the cluster
		result.Resources["flotilla_agent.hub"] = providertest.Resource{Attributes: agentAttributes(namespace, map[string]any{
			"cluster": "hub", "cluster_type": "central", "reconciler": "argocd", "name": "central",
		})}
		return result
	}
	registered := configuration(map[string]any{"secret": "cluster-edge-1"})
	w := providertest.New(startProvider)
	configurationThrough := func(hub map[string]any) providertest.Configuration {
		result := configuration(map[string]any{"secret": "cluster-edge-1"})
		result.Provider["clusters"] = map[string]any{"hub": hub}
		return result
	}
	narrow := connectAs(t, server, namespace, `[{apiGroups: ["argoproj.io"], resources: ["*"], verbs: [get, list, create, patch]}]`)
	planNarrow := func() {
		t.Helper()
		if _, diags := w.Plan(t.Context(), configurationThrough(narrow)); strings.Contains(diags.String(), "does not exist") ||
			!strings.Contains(diags.String(), "get Secret "+namespace+"/cluster-edge-1 (403 Forbidden)") {
			t.Errorf("without rights on Secrets, the plan says %s", diags)
		}
	}
	planNarrow()
	const summary = "Cluster is not registered at the hub"
	plan, diags := w.Plan(t.Context(), registered)
	if diags.Err() != nil || !diags.Has(summary) || !strings.Contains(diags.String(), "cluster-edge-1 on the hub does not exist") {
		t.Fatalf("for a missing Secret, the plan says %s", diags)
	}
	if diags := w.ApplyPlan(t.Context(), plan); diags.Err() == nil || !diags.Has(summary) {
		t.Errorf("for a missing Secret, the apply says %s", diags)
	}
	server.Apply(t, secret("cluster-edge-2", "edge-2"))
	_, diags = w.Plan(t.Context(), configuration(map[string]any{"secret": "cluster-edge-2"}))
	if index := slices.IndexFunc(diags, func(one providertest.Diagnostic) bool { return one.Error }); index < 0 ||
		diags[index].At != `AttributeName("registration")` || !strings.Contains(diags.String(), `registers another cluster, with the name "edge-2"`) {
		t.Errorf("for the Secret of another cluster, the plan says %s", diags)
	}
	if _, diags := w.Plan(t.Context(), configuration(map[string]any{"secret": "cluster-edge-1", "server": "https://10.0.0.1"})); diags.Err() == nil ||
		!strings.Contains(diags.String(), "registration.secret cannot be set together with other attributes") {
		t.Errorf("for two ways, the plan says %s", diags)
	}

	before := server.Apply(t, secret("cluster-edge-1", "edge-1"))[0]
	plan = applyAgent(t, w, registered)
	if lines := agentLines(plan); !slices.Contains(lines, "Secret "+namespace+"/cluster-edge-1 on the hub is applied") {
		t.Errorf("the plan has %q", lines)
	}
	check := func(labels ...string) {
		t.Helper()
		live := server.Get(t, "v1", "Secret", namespace, "cluster-edge-1")
		if live == nil || live.GetUID() != before.GetUID() || !reflect.DeepEqual(live.Object["data"], before.Object["data"]) {
			t.Fatalf("the Secret is %v", live)
		}
		got := slices.Sorted(maps.Keys(live.GetLabels()))
		if want := append([]string{"argocd.argoproj.io/secret-type"}, labels...); !slices.Equal(got, want) {
			t.Errorf("the Secret has the labels %q, want %q", got, want)
		}
	}
	check("flotilla.dev/agent", "flotilla.dev/cluster", "flotilla.dev/cluster-type", "flotilla.dev/environment")
	if server.Get(t, "v1", "Secret", namespace, "flotilla-dev-clusters-edge-1") != nil {
		t.Error("a second Secret registers the cluster")
	}
	if state := fmt.Sprint(w.State.Values(agentAddress)); strings.Contains(state, "canary") {
		t.Errorf("the state has a secret: %s", state)
	}
	plan, diags = w.Plan(t.Context(), configurationThrough(map[string]any{"host": "https://127.0.0.1:1", "token": "x"}))
	if diags.Err() != nil || !plan.Empty() || strings.Count(diags.String(), `Cluster "hub": the API server cannot be reached`) != 2 ||
		!strings.Contains(diags.String(), `The state of the agent of cluster "edge-1" keeps what was applied last.`) {
		t.Errorf("for an unreachable hub, the plan says %s, and has %q", diags, agentLines(plan))
	}
	planNarrow()
	if _, diags := w.Apply(t.Context(), registered, providertest.Destroy()); diags.Err() != nil ||
		!strings.Contains(diags.String(), "keeps the labels by which the hub deploys to the cluster") {
		t.Errorf("the destroy says %s", diags)
	}
	check("flotilla.dev/cluster", "flotilla.dev/cluster-type", "flotilla.dev/environment")
}
