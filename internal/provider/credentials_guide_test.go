package provider_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/giteatest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

func TestTheGuideOnDeliveryIsRightAboutExpiredCredentials(t *testing.T) {
	t.Parallel()
	playTable(t, "delivery.md", "operation | effect", []guideRow{
		{"plan | an error that names the server and its answer; nothing is written", testExpiredTokenAtPlan},
		{"apply, before the push | an error that says `Nothing was written`; the next apply writes everything", testExpiredTokenBeforeThePush},
		{
			"apply, after the push | an error that says `The commit is pushed`; the branch has the whole commit, and the next apply completes the " +
				"request",
			testExpiredTokenAfterThePush,
		},
		{
			"`flotilla_compliance`, `flotilla_overview` | the warning `Repository cannot be read`; the rest of the values is there",
			testExpiredTokenOfReports,
		},
		{"`flotilla_diff`, `flotilla_history`, `flotilla_inventory` | an error at `gitops_repo`", testExpiredTokenOfViews},
		{
			"`flotilla_compliance` with commit statuses | the warning `Commit statuses cannot be read`; clusters are `unknown`, and a rollout waits",
			testExpiredTokenForStatuses,
		},
		{
			"`flotilla_compliance`, `flotilla_cluster_facts` with wrong credentials of a cluster | the cluster is `unknown`; " +
				"its message names the answer of the API server",
			testWrongCredentialsOfAReadCluster,
		},
		{
			"`flotilla_agent` with wrong credentials of the cluster | an error at `cluster`, which names the answer of the API server; the plan " +
				"of an existing agent has a warning, and the agent stays as it is",
			testWrongCredentialsOfAnAgentsCluster,
		},
		{"`flotilla_commit_status` | an error at `url`; the status stays unchanged", testExpiredTokenOfACommitStatus},
		{"`flotilla_measurements` | a warning that names the server and its answer; the check has no figure", testExpiredTokenOfMeasurements},
		{"`flotilla_repository_files` | an error at `url`", testExpiredTokenOfRepositoryFiles},
		{"`flotilla_artifacts` | an error at `workloads`, which names the server and the deployment targets", testExpiredTokenOfArtifacts},
		{"an agent that reads the repository | its cluster is `failed`; the message is that of the agent", testExpiredTokenOfAnAgent},
	})
}

// tokenHost is a Git host whose token can expire, with the workspace of one assignment.
type tokenHost struct {
	*gitHub
	t *testing.T
	w *providertest.Workspace
}

const validToken = "valid-t0ken"

func newTokenHost(t *testing.T) *tokenHost {
	t.Helper()
	h := &tokenHost{startGitHub(t), t, providertest.New(startProvider)}
	h.tokens = []string{validToken}
	return h
}

func (h *tokenHost) assigned(fleet any, further map[string]any) providertest.Configuration {
	c := assigned(h.url, fleet, further)
	c.Provider = map[string]any{"git": map[string]any{"token": validToken}}
	return c
}

func (h *tokenHost) setDisturbance(disturb func(w http.ResponseWriter, r *http.Request, next http.Handler) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.disturb = disturb
}

func (h *tokenHost) endDisturbance() { h.setDisturbance(nil) }

// expire refuses the token from the first request that matches.
func (h *tokenHost) expire(when func(r *http.Request) bool) {
	var expired atomic.Bool
	h.setDisturbance(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if !expired.Load() && !when(r) {
			return false
		}
		expired.Store(true)
		http.Error(w, `{"message": "the token has expired"}`, http.StatusUnauthorized)
		return true
	})
}

func isAnyRequest(*http.Request) bool   { return true }
func isPush(r *http.Request) bool       { return strings.Contains(r.URL.String(), "git-receive-pack") }
func isAPICall(r *http.Request) bool    { return strings.HasPrefix(r.URL.Path, "/api/") }
func opensRequest(r *http.Request) bool { return isAPICall(r) && r.Method == http.MethodPost }

func (h *tokenHost) tip() string { return git(h.t, h.bare, "rev-parse", "dev") }

func (h *tokenHost) expectEmptyPlan(wanted providertest.Configuration) {
	h.t.Helper()
	if plan, diags := mustPlan(h.t, h.w, wanted); !plan.Empty() {
		h.t.Errorf("the plan has %q: %s", linesOf(plan), diags)
	}
}

func expectError(t *testing.T, diags providertest.Diagnostics, summary, attribute string, texts ...string) {
	t.Helper()
	index := slices.IndexFunc(diags, func(d providertest.Diagnostic) bool { return d.Error })
	if index < 0 || diags[index].Summary != summary || diags[index].At != fmt.Sprintf("AttributeName(%q)", attribute) {
		t.Fatalf("got %s, want %q at %s", diags, summary, attribute)
	}
	for _, text := range texts {
		if !strings.Contains(diags[index].Detail, text) {
			t.Errorf("%q is not in %s", text, diags)
		}
	}
	if strings.Contains(diags.String(), "t0ken") {
		t.Errorf("a token is in %s", diags)
	}
}

const refusesCredentials = "Repository refuses the credentials"

func testExpiredTokenAtPlan(t *testing.T) {
	h := newTokenHost(t)
	server := strings.TrimSuffix(h.url, "/owner/gitops.git")
	h.expire(isAnyRequest)
	_, diags := h.w.Plan(t.Context(), h.assigned(databaseFleet("one"), nil))
	expectError(t, diags, refusesCredentials, "gitops_repo", server, "401 Unauthorized", "the token has expired")
	h.endDisturbance()
	apply(t, h.w, h.assigned(databaseFleet("one"), nil))
	before := h.tip()
	h.expire(isAnyRequest)
	_, diags = h.w.Plan(t.Context(), h.assigned(databaseFleet("two"), nil))
	expectError(t, diags, refusesCredentials, "gitops_repo", server, "401 Unauthorized", "the token has expired")
	h.endDisturbance()
	if h.expectEmptyPlan(h.assigned(databaseFleet("one"), nil)); h.tip() != before {
		t.Error("something was written")
	}
}

func testExpiredTokenBeforeThePush(t *testing.T) {
	for name, when := range map[string]func(*http.Request) bool{"at once": isAnyRequest, "at the push": isPush} {
		h := newTokenHost(t)
		apply(t, h.w, h.assigned(databaseFleet("one"), nil))
		plan, _ := mustPlan(t, h.w, h.assigned(databaseFleet("two"), nil))
		before := h.tip()
		h.expire(when)
		expectError(t, h.w.ApplyPlan(t.Context(), plan), refusesCredentials, "gitops_repo", "401 Unauthorized", "Nothing was written.")
		h.endDisturbance()
		if h.tip() != before {
			t.Errorf("%s: something was written", name)
		}
		apply(t, h.w, h.assigned(databaseFleet("two"), nil))
		h.expectEmptyPlan(h.assigned(databaseFleet("two"), nil))
	}
}

func testExpiredTokenAfterThePush(t *testing.T) {
	h := newTokenHost(t)
	apply(t, h.w, h.assigned(databaseFleet("one"), nil))
	proposed := h.assigned(databaseFleet("two"), map[string]any{"delivery": map[string]any{"mode": "pull_request", "forge": "github"}})
	h.expire(opensRequest)
	_, diags := h.w.Apply(t.Context(), proposed)
	expectError(t, diags, "Git host refuses the credentials", "delivery", "The commit is pushed", "401 Unauthorized")
	const head = "flotilla/dev/clusters/all/dev"
	pushed := git(t, h.bare, "rev-parse", head)
	text := git(t, h.bare, "show", head+":clusters/all/large/app-core/platform-config.yaml")
	if !strings.Contains(text, "two") || len(h.pullRequests) > 0 {
		t.Errorf("%d requests are open, and the branch has %s", len(h.pullRequests), text)
	}
	h.endDisturbance()
	apply(t, h.w, proposed)
	if h.expectEmptyPlan(proposed); len(h.pullRequests) != 1 || git(t, h.bare, "rev-parse", head) != pushed {
		t.Errorf("the open requests are %v", h.pullRequests)
	}
}

// readData reads a data source about the assignment.
func (h *tokenHost) readData(name string, further map[string]any) (map[string]any, providertest.Diagnostics) {
	h.t.Helper()
	attributes := map[string]any{"gitops_repo": map[string]any{"url": h.url, "branch": "dev", "path": "clusters/all"}}
	maps.Copy(attributes, further)
	configuration := providertest.Configuration{Provider: h.assigned(nil, nil).Provider}
	return h.w.ReadData(h.t.Context(), configuration, name, attributes)
}

func testExpiredTokenOfReports(t *testing.T) {
	h := newTokenHost(t)
	apply(t, h.w, h.assigned(fleetWithClusters(nil), nil))
	h.expire(isAnyRequest)
	further := map[string][]any{"flotilla_compliance": {"feedback", map[string]any{"reports": []any{}}}, "flotilla_overview": nil}
	for name, more := range further {
		values, diags := h.readData(name, with(map[string]any{"name": "dev", "fleet": fleetWithClusters(nil)}, more...))
		if diags.Err() != nil || !diags.Has("Repository cannot be read") || !strings.Contains(diags.String(), "401 Unauthorized") {
			t.Errorf("%s says %s", name, diags)
		}
		if !strings.Contains(fmt.Sprint(values), "drone-1") {
			t.Errorf("%s has %v", name, values)
		}
	}
}

func testExpiredTokenOfViews(t *testing.T) {
	h := newTokenHost(t)
	apply(t, h.w, h.assigned(fleetOf(nil), nil))
	h.expire(isAnyRequest)
	for name, further := range map[string]map[string]any{
		"flotilla_diff": {"name": "dev", "fleet": fleetOf(nil)}, "flotilla_history": nil, "flotilla_inventory": nil,
	} {
		_, diags := h.readData(name, further)
		expectError(t, diags, refusesCredentials, "gitops_repo", h.url, "401 Unauthorized")
	}
}

func testExpiredTokenForStatuses(t *testing.T) {
	h := newTokenHost(t)
	fleetAt := func(version string) any {
		return providertest.Call{Function: "fleet", Arguments: []any{ringFleet(version, nil)}}
	}
	apply(t, h.w, h.assigned(fleetAt("1"), nil))
	attributes := map[string]any{
		"name": "dev", "fleet": fleetAt("2"), "gitops_repo": map[string]any{"url": h.url, "branch": "dev", "path": "clusters/all"},
		"feedback": map[string]any{"commit_statuses": map[string]any{"forge": "github"}},
	}
	wanted := h.assigned(fleetAt("2"), map[string]any{
		"rollout":  ringRollout(nil),
		"evidence": providertest.Reading{DataSource: "flotilla_compliance", Attribute: "evidence", Attributes: attributes},
	})
	apply(t, h.w, wanted) // writes to canary
	h.mu.Lock()
	h.statuses = []string{"flotilla/canary/cluster-type success"}
	h.mu.Unlock()

	h.setDisturbance(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if isAPICall(r) {
			refuseToken(w, r)
		}
		return isAPICall(r)
	})
	plan, diags := mustPlan(t, h.w, wanted)
	if !diags.Has("Commit statuses cannot be read") || !strings.Contains(diags.String(), "401 Unauthorized") || !plan.Empty() {
		t.Errorf("the plan has %q and says %s", linesOf(plan), diags)
	}
	if waits := fmt.Sprint(plan.Change(assignment).After["rolling_out"]); !strings.Contains(waits, "waits for clusters to be ready") {
		t.Errorf("the rollout is %s", waits)
	}
	values, diags := h.w.ReadData(t.Context(), providertest.Configuration{Provider: wanted.Provider}, "flotilla_compliance", attributes)
	for name, cluster := range values["clusters"].(map[string]any) {
		if got := cluster.(map[string]any)["verdict"]; got != "unknown" || diags.Err() != nil {
			t.Errorf("%s is %v: %s", name, got, diags)
		}
	}
	h.endDisturbance()
	if plan := apply(t, h.w, wanted); !strings.Contains(strings.Join(linesOf(plan), " "), "on region") {
		t.Errorf("with a token the plan has %q", linesOf(plan))
	}
}

// startRefusingCluster returns the connection to an API server that refuses all credentials.
func startRefusingCluster(t *testing.T) map[string]any {
	t.Helper()
	url, certificate := serveTLS(t, http.HandlerFunc(refuseToken))
	return map[string]any{"host": url, "cluster_ca_certificate": certificate, "token": "expired-t0ken"}
}

func refuseToken(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusUnauthorized)
	fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}`)
}

func testWrongCredentialsOfAReadCluster(t *testing.T) {
	clusters := map[string]any{"drone-1": startRefusingCluster(t), "drone-2": startRefusingCluster(t), "large-1": startRefusingCluster(t)}
	url := bare(t)
	apply(t, providertest.New(startProvider), assigned(url, fleetWithClusters(nil), nil))
	const answer = "the API server refuses the credentials (401 Unauthorized)"
	attributes := map[string]any{"feedback": map[string]any{"clusters": true}}
	values, diags := readCompliance(t, url, map[string]any{"clusters": clusters}, attributes)
	text := fmt.Sprint(values["clusters"])
	if diags.Err() != nil || clusterVerdicts(values) != "unknown unknown unknown" || !strings.Contains(text, answer) {
		t.Errorf("flotilla_compliance has %s: %s", text, diags)
	}
	values, diags = readFacts(t, clusters, map[string]any{"requested": true, "sources": map[string]any{"clusters": true}})
	text = fmt.Sprint(values["clusters"])
	if diags.Err() != nil || !strings.Contains(text, answer) || !strings.Contains(text, "verdict:unknown") {
		t.Errorf("flotilla_cluster_facts has %s: %s", text, diags)
	}
}

func testWrongCredentialsOfAnAgentsCluster(t *testing.T) {
	api := &standInCluster{}
	url, certificate := api.start(t)
	w := providertest.New(startProvider)
	agent := agentAttributes("flux-system", nil)
	cluster := map[string]any{"host": url + "/a", "cluster_ca_certificate": certificate, "token": "t"}
	apply(t, w, onCluster(cluster, agent))
	expired := startRefusingCluster(t)
	_, diags := providertest.New(startProvider).Plan(t.Context(), onCluster(expired, agent))
	expectError(t, diags, "Cluster cannot be reached", "cluster", "401 Unauthorized")

	plan, diags := w.Plan(t.Context(), onCluster(expired, agent))
	if diags.Err() != nil || !diags.Has("Cluster cannot be reached") || !strings.Contains(diags.String(), "401 Unauthorized") || !plan.Empty() {
		t.Errorf("the plan of an existing agent has %q: %s", agentLines(plan), diags)
	}
	other := with(agent, "interval", "7m")
	_, diags = w.Apply(t.Context(), onCluster(expired, other))
	expectError(t, diags, "Cluster cannot be reached", "cluster", "401 Unauthorized")
	if plan := planAgent(t, w, onCluster(cluster, agent)); !plan.Empty() {
		t.Errorf("with credentials the plan has %q", agentLines(plan))
	}
}

func testExpiredTokenOfACommitStatus(t *testing.T) {
	host := &standInStatuses{}
	g := &statusGitea{
		hostedRepository: hostedRepository{t, nil, giteatest.User{Token: "a-t0ken"}}, url: host.start(t) + "/team/app.git", commits: []string{aCommit},
	}
	w := providertest.New(startProvider)
	apply(t, w, g.configuration(g.attributes()))
	refuse := func(refuse func(w http.ResponseWriter, r *http.Request) bool) {
		host.mu.Lock()
		defer host.mu.Unlock()
		host.refuse = refuse
	}
	refuse(func(w http.ResponseWriter, r *http.Request) bool {
		refuseToken(w, r)
		return true
	})
	_, diags := w.Apply(t.Context(), g.configuration(g.attributes("state", "success")))
	expectError(t, diags, "Git host refuses the credentials", "url", "401 Unauthorized")
	refuse(nil)
	if received := host.history("flotilla/dev"); !slices.Equal(received, []string{"pending"}) {
		t.Errorf("the Git host has %q", received)
	}
	apply(t, w, g.configuration(g.attributes("state", "success")))
	if action, diags := planStatus(t, w, g.configuration(g.attributes("state", "success"))); action != providertest.NoOp {
		t.Errorf("the next plan is to %s: %s", action, diags)
	}
}

func testExpiredTokenOfMeasurements(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(refuseToken))
	t.Cleanup(server.Close)
	values, diags := readMeasurements(t, map[string]any{"url": server.URL, "token": "expired-t0ken"}, newCheck(server.URL, nil))
	text := diags.String()
	if diags.Err() != nil || !strings.Contains(text, server.URL) || !strings.Contains(text, "401") || strings.Contains(text, "t0ken") {
		t.Errorf("got %s", text)
	}
	if results := asJSON(t, values["results"]); !strings.Contains(results, `"measured":0`) {
		t.Errorf("the results are %s", results)
	}
}

func testExpiredTokenOfRepositoryFiles(t *testing.T) {
	h := newTokenHost(t)
	server := strings.TrimSuffix(h.url, "/owner/gitops.git")
	_, diags := h.w.ReadData(t.Context(), providertest.Configuration{Provider: map[string]any{
		"git": map[string]any{"credentials": []any{map[string]any{"url": server, "token": "expired-t0ken"}}},
	}}, "flotilla_repository_files", map[string]any{"url": h.url, "ref": "dev"})
	expectError(t, diags, refusesCredentials, "url", server, "401 Unauthorized")
}

func testExpiredTokenOfArtifacts(t *testing.T) {
	h := newTokenHost(t)
	server := strings.TrimSuffix(h.url, "/owner/gitops.git")
	_, diags := h.w.ReadData(t.Context(), providertest.Configuration{Provider: map[string]any{
		"git": map[string]any{"credentials": []any{map[string]any{"url": server, "token": "expired-t0ken"}}},
	}}, "flotilla_artifacts", map[string]any{
		"environment": "dev", "workloads": teamWorkloads(map[string]any{"storage": "git", "repo": h.url, "branch": "dev"}),
	})
	expectError(t, diags, "Artifacts cannot be resolved", "workloads", server, "401 Unauthorized", `"till-live"`)
}

func testExpiredTokenOfAnAgent(t *testing.T) {
	const namespace = "agent-token-expired"
	r := startRootCluster(t, "flux", namespace)
	r.putObject(t, "Kustomization", namespace, "root", map[string]any{
		"path": "clusters/all/drone", "interval": "1m", "prune": true, "wait": true,
		"sourceRef": map[string]any{"kind": "GitRepository", "name": "gitops"},
	}, rootCondition("True", "Succeeded", "applied"), "dev")
	r.putObject(t, "GitRepository", namespace, "gitops", map[string]any{
		"url": r.repositoryURL, "interval": "1m", "ref": map[string]any{"branch": "dev"},
	}, rootCondition("False", "GitOperationFailed", "authentication required"), "dev")
	if got := r.readVerdict(); got != "failed: GitRepository "+namespace+"/gitops is not ready: authentication required" {
		t.Errorf("the cluster is %s", got)
	}
	// TestAFailureOfTheRootHaltsAndRollsNothingBack tests the effect on a rollout.
	if evidence := fmt.Sprint(r.readCompliance()["evidence"]); !strings.Contains(evidence, `"of":"root"`) {
		t.Errorf("the evidence has no failure of the root: %s", evidence)
	}
}
