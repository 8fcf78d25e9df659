package provider_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// restrictedCluster is a [standInCluster] that denies requests. `make acceptance` runs the same cases on a real API server.
type restrictedCluster struct {
	standInCluster
	denies func(verb, resource string, r *http.Request) bool // nil allows all requests
}

var standInPath = regexp.MustCompile(`^/\w+/(?:api|apis/[\w.-]+)/v\w+(?:/namespaces/([\w-]+))?(?:/([a-z]+)(?:/([\w-]+))?)?$`)

func (c *restrictedCluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	part := standInPath.FindStringSubmatch(r.URL.Path)
	if part == nil || part[1] == "" && part[2] == "" { // discovery
		c.standInCluster.ServeHTTP(w, r)
		return
	}
	verb, resource, name := map[string]string{"GET": "get", "PATCH": "patch", "DELETE": "delete"}[r.Method], part[2], part[3]
	if resource == "" {
		resource, name = "namespaces", part[1]
	}
	if name == "" {
		verb = "list"
	}
	if c.denies != nil && c.denies(verb, resource, r) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,`+
			`"message":"%s is forbidden: User \"u\" cannot %s resource \"%s\""}`, resource, verb, resource)
		return
	}
	c.standInCluster.ServeHTTP(w, r)
}

// start returns the connection to the cluster.
func (c *restrictedCluster) start(t *testing.T) map[string]any {
	t.Helper()
	c.objects = map[string]map[string]any{}
	url, certificate := serveTLS(t, c)
	return map[string]any{"host": url + "/a", "cluster_ca_certificate": certificate, "token": "a-token"}
}

func (c *restrictedCluster) find(namespace, resourceAndName string) map[string]any {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, object := range c.objects {
		if strings.HasSuffix(key, "/namespaces/"+namespace+"/"+resourceAndName) {
			return object
		}
	}
	return nil
}

// expectTexts fails the test unless the diagnostics contain all texts.
func expectTexts(t *testing.T, diags providertest.Diagnostics, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(diags.String(), text) {
			t.Errorf("got no %q: %s", text, diags)
		}
	}
}

func TestARemovalThatIsDeniedChangesNothing(t *testing.T) {
	t.Parallel()
	cluster := &restrictedCluster{}
	connection, w := cluster.start(t), providertest.New(startProvider)
	agent := agentAttributes("flux", nil)
	applyAgent(t, w, onCluster(connection, agent))
	cluster.denies = func(verb, _ string, _ *http.Request) bool { return verb == "patch" }
	_, diags := w.Apply(t.Context(), onCluster(connection, nil))
	expectTexts(t, diags, "nothing was changed there", "patch Kustomization flux/flotilla-cluster, Kustomization flux/flotilla-cluster-type")
	cluster.denies = func(verb, _ string, _ *http.Request) bool { return verb == "delete" }
	_, diags = w.Apply(t.Context(), onCluster(connection, nil))
	expectTexts(t, diags, "Credentials of the cluster lack permissions", "these credentials may not ", "nothing was changed there",
		"delete GitRepository flux/flotilla, Kustomization flux/flotilla-cluster, "+
			"Kustomization flux/flotilla-cluster-type, Secret flux/flotilla-repository")
	for _, suffix := range []string{"cluster", "cluster-type"} {
		live := cluster.find("flux", "kustomizations/flotilla-"+suffix)
		if live == nil || live["spec"].(map[string]any)["prune"] != true {
			t.Errorf("%s is %v", suffix, live)
		}
	}
	if cluster.find("flux", "secrets/flotilla-repository") == nil {
		t.Error("the Secret was removed")
	}
	agent["name"] = "other"
	_, diags = w.Apply(t.Context(), onCluster(connection, agent))
	expectTexts(t, diags, "delete GitRepository flux/flotilla, Kustomization")
	if cluster.find("flux", "gitrepositories/other") != nil {
		t.Error("something was applied")
	}
	cluster.denies = nil
	if _, diags := w.Apply(t.Context(), onCluster(connection, nil)); diags.Err() != nil {
		t.Error(diags)
	}
	if cluster.find("flux", "kustomizations/flotilla-cluster") != nil {
		t.Error("the objects still exist")
	}
}

func TestADestroyThatFailsHalfwayListsItsChanges(t *testing.T) {
	t.Parallel()
	cluster := &restrictedCluster{}
	connection, w := cluster.start(t), providertest.New(startProvider)
	applyAgent(t, w, onCluster(connection, agentAttributes("flux", nil)))
	cluster.denies = func(verb, resource string, r *http.Request) bool {
		return verb == "delete" && resource == "gitrepositories" && r.URL.Query().Get("dryRun") == ""
	}
	_, diags := w.Apply(t.Context(), onCluster(connection, nil))
	expectTexts(t, diags, "Before that, these changes were made: ",
		"Kustomization flux/flotilla-cluster was set to leave what it has applied", "Kustomization flux/flotilla-cluster-type was deleted")
	cluster.denies = nil
	if _, diags := w.Apply(t.Context(), onCluster(connection, nil)); diags.Err() != nil {
		t.Error(diags)
	}
}

func TestComplianceOfADenyingClusterNamesTheMissingRight(t *testing.T) {
	t.Parallel()
	url := bare(t)
	apply(t, providertest.New(startProvider), assigned(url, fleetWithClusters(nil), nil))
	cluster := &restrictedCluster{denies: func(_, _ string, _ *http.Request) bool { return true }}
	clusters := map[string]any{"drone-1": cluster.start(t)}
	values, diags := readCompliance(t, url, map[string]any{"clusters": clusters}, map[string]any{"feedback": map[string]any{"clusters": true}})
	if diags.Err() != nil {
		t.Fatal(diags)
	}
	drone := values["clusters"].(map[string]any)["drone-1"].(map[string]any)
	const denied = "list kustomizations.kustomize.toolkit.fluxcd.io"
	if text := fmt.Sprint(drone["message"]); drone["verdict"] != "unknown" || !strings.Contains(text, denied) {
		t.Errorf("the verdict is %v: %s", drone["verdict"], text)
	}
}

// Two agents on one cluster would undo each other's changes.
func TestTwoNamesForOneClusterOfTheStandIn(t *testing.T) {
	t.Parallel()
	const namespace = "two-names"
	cluster := &restrictedCluster{}
	connection := cluster.start(t)
	owner := func() any {
		live := cluster.find(namespace, "kustomizations/flotilla-cluster")
		if live == nil {
			return nil
		}
		return live["metadata"].(map[string]any)["labels"].(map[string]any)["flotilla.dev/cluster"]
	}
	w, other := providertest.New(startProvider), providertest.New(startProvider)
	expectRefusal(t, other, agentsConfiguration(namespace, map[string]any{"north": connection, "south": connection}, nil), "Two names for one cluster",
		`reach cluster "north" and cluster "south" by the same address`, "Kustomization "+namespace+"/flotilla-cluster")
	if owner() != nil {
		t.Error("something was applied")
	}
	if _, diags := w.Apply(t.Context(), agentsConfiguration(namespace, map[string]any{"north": connection}, nil)); diags.Err() != nil {
		t.Fatal(diags)
	}
	south := agentsConfiguration(namespace, map[string]any{"south": connection}, nil)
	expectRefusal(t, other, south, otherAgent, `Kustomization `+namespace+`/flotilla-cluster`, `of the agent of cluster "north"`, "set force = true")
	if owner() != "north" {
		t.Errorf("the objects belong to %q", owner())
	}
	forced := map[string]any{"force": true}
	if _, diags := other.Apply(t.Context(), agentsConfiguration(namespace, map[string]any{"south": connection}, forced)); diags.Err() != nil {
		t.Fatal(diags)
	}
	// The former name cannot take the objects back. Removing its agent leaves them.
	north := agentsConfiguration(namespace, map[string]any{"north": connection}, nil)
	expectRefusal(t, w, north, otherAgent, `of the agent of cluster "south"`)
	north.Resources = nil
	_, diags := w.Apply(t.Context(), north)
	expectTexts(t, diags, `Kustomization `+namespace+`/flotilla-cluster stays: it is of cluster "south" now`)
	if diags.Err() != nil || owner() != "south" {
		t.Errorf("the destroy says %s, and the objects belong to %q", diags, owner())
	}
	if _, diags := other.Apply(t.Context(), south, providertest.Destroy()); diags.Err() != nil || len(diags) > 0 || owner() != nil {
		t.Errorf("the destroy of the other agent says %s", diags)
	}
}

// A missing Secret is a warning. The Secret of another cluster is an error.
func TestAPlanChecksAnExistingSecretOfAHub(t *testing.T) {
	t.Parallel()
	cluster := &restrictedCluster{}
	connection, w := cluster.start(t), providertest.New(startProvider)
	plan := func(secret string) providertest.Diagnostics {
		configuration := onCluster(nil, agentAttributes("argocd", map[string]any{
			"reconciler": "argocd-hub", "hub": "hub", "environment": "dev", "registration": map[string]any{"secret": secret},
		}))
		configuration.Provider["clusters"] = map[string]any{"hub": connection}
		_, diags := w.Plan(t.Context(), configuration)
		return diags
	}
	cluster.denies = func(_, resource string, _ *http.Request) bool { return resource == "secrets" }
	if diags := plan("cluster-edge-1"); strings.Contains(diags.String(), "does not exist") ||
		!strings.Contains(diags.String(), "Secret argocd/cluster-edge-1 (403 Forbidden)") {
		t.Errorf("without rights on Secrets, the plan says %s", diags)
	}
	cluster.denies = nil
	if diags := plan("cluster-edge-1"); diags.Err() != nil || !diags.Has("Cluster is not registered at the hub") {
		t.Errorf("for a missing Secret, the plan says %s", diags)
	}
	cluster.objects["a/api/v1/namespaces/argocd/secrets/cluster-edge-2"] = map[string]any{
		"apiVersion": "v1", "kind": "Secret",
		"metadata": map[string]any{
			"name": "cluster-edge-2", "namespace": "argocd", "uid": "u", "labels": map[string]any{"argocd.argoproj.io/secret-type": "cluster"},
		},
		"data": map[string]any{"name": "ZWRnZS0y", "server": "aHR0cHM6Ly9lZGdlLTI=", "config": "e30="}, // edge-2
	}
	diags := plan("cluster-edge-2")
	if index := slices.IndexFunc(diags, func(one providertest.Diagnostic) bool { return one.Error }); index < 0 ||
		diags[index].At != `AttributeName("registration")` || !strings.Contains(diags.String(), `registers another cluster, with the name "edge-2"`) {
		t.Errorf("for the Secret of another cluster, the plan says %s", diags)
	}
}
