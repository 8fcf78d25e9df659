package provider_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

const agentAddress = "flotilla_agent.test"

func agentAttributes(namespace string, further map[string]any) map[string]any {
	attributes := map[string]any{
		"cluster": "edge-1", "cluster_type": "edge", "namespace": namespace,
		"gitops_repo":    map[string]any{"url": "https://git.example.com/gitops", "branch": "dev"},
		"credentials_wo": map[string]any{"token": "canary-t0ken-4711"},
	}
	for key, value := range further {
		attributes[key] = value
	}
	return attributes
}

// Terraform shows only the first of several warnings with the same title.
func TestAPlanHasEachWarningOfAnAgentOnce(t *testing.T) {
	t.Parallel()
	cluster := map[string]any{"host": "https://127.0.0.1:1", "token": "x"}
	agent := agentAttributes("flux-system", map[string]any{"gitops_repo": map[string]any{"url": "http://git.example.com/gitops", "branch": "dev"}})
	_, diags := providertest.New(startProvider).Plan(t.Context(), onCluster(cluster, agent))
	if count := strings.Count(diags.String(), "gitops_repo.url is not https"); count != 1 {
		t.Errorf("%d warnings: %s", count, diags)
	}
}

// onCluster configures one agent and the connection to its cluster.
func onCluster(cluster any, agent map[string]any) providertest.Configuration {
	configuration := providertest.Configuration{
		Provider:  map[string]any{"clusters": map[string]any{"edge-1": cluster}},
		Resources: map[string]providertest.Resource{},
	}
	if agent != nil {
		configuration.Resources[agentAddress] = providertest.Resource{Attributes: agent}
	}
	return configuration
}

// connectionTo returns the provider's configuration of the server.
func connectionTo(server *kubetest.Server) map[string]any {
	return map[string]any{"host": server.Host, "cluster_ca_certificate": server.CA, "token": server.Token}
}

// agentLines returns the agent's changes in a plan.
func agentLines(plan *providertest.Plan) []string {
	if plan == nil || plan.Change(agentAddress) == nil {
		return nil
	}
	change := plan.Change(agentAddress)
	var lines []string
	all, _ := change.After["changes"].([]any)
	for _, line := range all {
		lines = append(lines, fmt.Sprint(line))
	}
	return lines
}

// planAgent fails the test if the plan has errors.
func planAgent(
	t *testing.T,
	w *providertest.Workspace,
	configuration providertest.Configuration,
	options ...providertest.Option,
) *providertest.Plan {
	t.Helper()
	plan, diags := w.Plan(t.Context(), configuration, options...)
	if diags.Err() != nil {
		t.Fatal(diags)
	}
	return plan
}

// applyAgent applies. A second plan and a refresh-only plan must then be empty.
func applyAgent(
	t *testing.T,
	w *providertest.Workspace,
	configuration providertest.Configuration,
	options ...providertest.Option,
) *providertest.Plan {
	t.Helper()
	plan, diags := w.Apply(t.Context(), configuration, options...)
	if diags.Err() != nil {
		t.Fatal(diags)
	}
	again := planAgent(t, w, configuration, options...)
	if !again.Empty() {
		t.Errorf("the next plan has %q", agentLines(again))
	}
	if refresh := planAgent(t, w, configuration, append(options, providertest.RefreshOnly())...); refresh.ExitCode != 0 {
		t.Errorf("a refresh-only plan finds changes: %q", refresh.Drifted)
	}
	return plan
}

func TestAnAgentIsPutOntoAClusterAndKeptThere(t *testing.T) {
	acceptancetest.Only(t)
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	w := providertest.New(startProvider)
	configuration := onCluster(connectionTo(server), agentAttributes("provider-life", nil))
	plan := applyAgent(t, w, configuration)
	want := []string{
		"Namespace provider-life is applied", "Secret provider-life/flotilla-repository is applied", "GitRepository provider-life/flotilla is applied",
		"Kustomization provider-life/flotilla-cluster-type is applied", "Kustomization provider-life/flotilla-cluster is applied",
	}
	if got := agentLines(plan); !slices.Equal(got, want) {
		t.Errorf("the first plan has %q", got)
	}
	state := w.State.Values(agentAddress)
	if len(state["objects"].(map[string]any)) != 5 || fmt.Sprint(state["found"]) != "[]" || strings.Contains(fmt.Sprint(state), "canary") {
		t.Errorf("the state is %v", state)
	}

	kustomizations := server.Client().
		Resource(schema.GroupVersionResource{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Resource: "kustomizations"}).
		Namespace("provider-life")
	if _, err := kustomizations.Patch(t.Context(), "flotilla-cluster", types.MergePatchType, []byte(`{"spec":{"prune":false}}`), metav1.PatchOptions{FieldManager: "kubectl-edit"}); err != nil {
		t.Fatal(err)
	}
	server.Delete(t, "source.toolkit.fluxcd.io/v1", "GitRepository", "provider-life", "flotilla")
	plan = planAgent(t, w, configuration)
	want = []string{
		"GitRepository provider-life/flotilla is gone",
		`Kustomization provider-life/flotilla-cluster: spec.prune changed, by "kubectl-edit"`,
	}
	if got := agentLines(plan); !slices.Equal(got, want) {
		t.Errorf("the drift is %q", got)
	}
	if before := plan.Change(agentAddress).Before["objects"].(map[string]any)["GitRepository provider-life/flotilla"]; before != "is gone" {
		t.Errorf("the object is %v in the refreshed state", before)
	}
	if diags := w.ApplyPlan(t.Context(), plan); diags.Err() != nil {
		t.Fatal(diags)
	}

	// Decryption can be added, changed and removed. An addition by others is drift.
	var plans []string
	for _, decryption := range []any{map[string]any{"secret": "sops-age"}, map[string]any{"service_account": "sops"}, nil} {
		configuration = onCluster(connectionTo(server), agentAttributes("provider-life", map[string]any{"decryption": decryption}))
		plans = append(plans, strings.Join(agentLines(applyAgent(t, w, configuration)), "\n"))
		live := server.Get(t, "kustomize.toolkit.fluxcd.io/v1", "Kustomization", "provider-life", "flotilla-cluster")
		got, _, _ := unstructured.NestedMap(live.Object, "spec", "decryption")
		want := map[string]string{
			"map[secret:sops-age]":      "map[provider:sops secretRef:map[name:sops-age]]",
			"map[service_account:sops]": "map[provider:sops serviceAccountName:sops]",
			"<nil>":                     "map[]",
		}
		if fmt.Sprint(got) != want[fmt.Sprint(decryption)] {
			t.Errorf("with %v the Kustomization has %v", decryption, got)
		}
	}
	if !strings.Contains(plans[0], "Kustomization provider-life/flotilla-cluster") ||
		!strings.Contains(plans[1], "Kustomization provider-life/flotilla-cluster") {
		t.Errorf("the plans are %q", plans)
	}
	if _, err := kustomizations.Patch(t.Context(), "flotilla-cluster", types.MergePatchType, []byte(`{"spec":{"decryption":{"provider":"sops"}}}`), metav1.PatchOptions{FieldManager: "kubectl-edit"}); err != nil {
		t.Fatal(err)
	}
	if got := agentLines(applyAgent(t, w, configuration)); !slices.Equal(
		got,
		[]string{`Kustomization provider-life/flotilla-cluster: spec.decryption changed, by "kubectl-edit"`},
	) {
		t.Errorf("the drift is %q", got)
	}

	// A new name removes the objects of the former name after it turns off their pruning.
	configuration = onCluster(connectionTo(server), agentAttributes("provider-life", map[string]any{"interval": "30s", "name": "other"}))
	plan = applyAgent(t, w, configuration)
	if got := strings.Join(agentLines(plan), "\n"); !strings.HasPrefix(
		got,
		"GitRepository provider-life/flotilla is removed\nKustomization provider-life/flotilla-cluster is removed",
	) {
		t.Errorf("the plan has\n%s", got)
	}
	if server.Get(t, "kustomize.toolkit.fluxcd.io/v1", "Kustomization", "provider-life", "flotilla-cluster") != nil ||
		server.Get(t, "kustomize.toolkit.fluxcd.io/v1", "Kustomization", "provider-life", "other-cluster") == nil {
		t.Error("the objects of the former name still exist")
	}

	// After a lost state, the next apply takes over the objects.
	w.Lose(agentAddress)
	applyAgent(t, w, configuration)
	if found := w.State.Values(agentAddress)["found"]; fmt.Sprint(found) != "[]" {
		t.Errorf("after a lost state, found is %v", found)
	}

	if _, diags := w.Apply(t.Context(), configuration, providertest.Destroy()); diags.Err() != nil {
		t.Fatal(diags)
	}
	for _, kind := range []string{"Kustomization", "GitRepository", "Secret"} {
		version := map[string]string{"Kustomization": "kustomize.toolkit.fluxcd.io/v1", "GitRepository": "source.toolkit.fluxcd.io/v1", "Secret": "v1"}[kind]
		name := map[string]string{"Kustomization": "other-cluster", "GitRepository": "other", "Secret": "other-repository"}[kind]
		if server.Get(t, version, kind, "provider-life", name) != nil {
			t.Errorf("%s still exists", kind)
		}
	}
	if namespace := server.Get(t, "v1", "Namespace", "", "provider-life"); namespace == nil || namespace.GetDeletionTimestamp() != nil {
		t.Error("the namespace is gone, although others may use it")
	}
}

func TestACredentialIsAppliedWithItsVersion(t *testing.T) {
	acceptancetest.Only(t)
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	w := providertest.New(startProvider)
	configuration := func(version int, token string) providertest.Configuration {
		return onCluster(
			connectionTo(server),
			agentAttributes("provider-credentials", map[string]any{"credentials_wo": map[string]any{"token": token}, "credentials_wo_version": version}),
		)
	}
	password := func() string {
		secret := server.Get(t, "v1", "Secret", "provider-credentials", "flotilla-repository")
		return fmt.Sprint(secret.Object["data"].(map[string]any)["password"])
	}
	applyAgent(t, w, configuration(1, "first"))
	before := password()
	if plan := planAgent(t, w, configuration(1, "second")); !plan.Empty() {
		t.Errorf("the plan of another credential with the same version has %q", agentLines(plan))
	}
	plan := applyAgent(t, w, configuration(2, "second"))
	if got := agentLines(plan); !slices.Equal(got, []string{"credentials_wo is applied again"}) || password() == before {
		t.Errorf("the plan has %q, and the password is the same: %v", got, password() == before)
	}
}

func TestAnUnreachableClusterIsAWarningAtPlanAndAnErrorAtApply(t *testing.T) {
	acceptancetest.Only(t)
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	w := providertest.New(startProvider)
	attributes := agentAttributes("provider-away", nil)
	unreachable := map[string]any{"host": "https://127.0.0.1:1", "token": "canary-t0ken-4712"}

	if _, diags := w.Plan(t.Context(), onCluster(map[string]any{"host": providertest.Unknown{}}, attributes)); len(diags) > 0 {
		t.Errorf("for an unknown cluster, got %s", diags)
	}
	if _, diags := w.Plan(t.Context(), onCluster(unreachable, attributes)); diags.Err() != nil || !diags.Has("Cluster cannot be reached") {
		t.Errorf("for an unreachable cluster, got %s", diags)
	}
	if _, diags := w.Apply(t.Context(), onCluster(unreachable, attributes)); diags.Err() == nil ||
		!strings.Contains(diags.String(), `Cluster "edge-1": the API server cannot be reached: dial 127.0.0.1:1: connect: connection refused.`) {
		t.Errorf("an apply to an unreachable cluster says %s", diags)
	}
	_, diags := w.Plan(t.Context(), onCluster(nil, attributes))
	if diags.Err() == nil || diags[0].At != `AttributeName("cluster")` ||
		!strings.Contains(diags.String(), `The provider's clusters has no entry "edge-1".`) {
		t.Errorf("for an unconfigured cluster, got %s", diags)
	}

	applyAgent(t, w, onCluster(connectionTo(server), attributes))
	plan, diags := w.Plan(t.Context(), onCluster(unreachable, attributes))
	if diags.Err() != nil || !plan.Empty() || !diags.Has("Cluster cannot be reached") {
		t.Errorf("the refresh of an unreachable cluster says %s, and plans %q", diags, agentLines(plan))
	}
	if plan, diags := w.Plan(t.Context(), onCluster(map[string]any{"host": providertest.Unknown{}}, attributes)); len(diags) > 0 ||
		!plan.Empty() {
		t.Errorf("for a cluster that became unknown, got %s", diags)
	}
}

// A destroy must report the objects that may remain on an unreachable cluster.
func TestADestroyOfAnAgentNeedsItsCluster(t *testing.T) {
	acceptancetest.Only(t)
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	attributes := agentAttributes("provider-lost", nil)
	w := providertest.New(startProvider)
	applyAgent(t, w, onCluster(connectionTo(server), attributes))
	kept := w.State.Clone()
	isThere := func() bool { return server.Get(t, "v1", "Secret", "provider-lost", "flotilla-repository") != nil }
	const remaining = "Secret provider-lost/flotilla-repository"
	unreachable := map[string]map[string]any{
		"refuses connections":                  {"host": "https://127.0.0.1:1", "token": "x"},
		"has a name that does not exist":       {"host": "https://edge-1.invalid", "token": "x"},
		"has an unknown certificate authority": {"host": server.Host, "token": "x"},
	}
	for name, cluster := range unreachable {
		w.State = kept.Clone()
		_, diags := w.Apply(t.Context(), onCluster(cluster, nil), providertest.SkipRefresh())
		if diags.Err() == nil || !diags.Has("Cluster cannot be reached") || w.State.Values(agentAddress) == nil || !isThere() {
			t.Errorf("the destroy of an agent whose cluster %s says %s", name, diags)
		}
		for _, way := range []string{"terraform state rm", "removed block", `on_unreachable = "forget"`, "take it out of the provider's clusters"} {
			if !strings.Contains(diags.String(), way) {
				t.Errorf("the destroy of an agent whose cluster %s says %s, without %s", name, diags, way)
			}
		}
	}

	// The provider no longer has an entry for the cluster.
	w.State = kept.Clone()
	if _, diags := w.Apply(t.Context(), onCluster(nil, nil), providertest.SkipRefresh()); diags.Err() != nil ||
		!diags.Has("Cluster is given up") ||
		!strings.Contains(diags.String(), remaining) ||
		len(w.State) > 0 ||
		!isThere() {
		t.Errorf("the destroy of an agent without a configured cluster says %s", diags)
	}

	w.State = kept.Clone()
	attributes["on_unreachable"] = "forget"
	if plan := applyAgent(t, w, onCluster(connectionTo(server), attributes)); plan.Empty() ||
		fmt.Sprint(plan.Change(agentAddress).After["found"]) != "[]" ||
		len(agentLines(plan)) > 0 {
		t.Errorf("the plan of a changed on_unreachable has %q", agentLines(plan))
	}
	kept = w.State.Clone()
	for name, cluster := range unreachable {
		w.State = kept.Clone()
		if _, diags := w.Apply(t.Context(), onCluster(cluster, nil), providertest.SkipRefresh()); diags.Err() != nil ||
			!diags.Has("Cluster is given up") ||
			!strings.Contains(diags.String(), remaining) ||
			len(w.State) > 0 {
			t.Errorf("with on_unreachable = \"forget\", the destroy of an agent whose cluster %s says %s", name, diags)
		}
	}
	w.State = kept.Clone()
	if _, diags := w.Apply(t.Context(), onCluster(connectionTo(server), nil)); diags.Err() != nil || len(diags) > 0 || isThere() {
		t.Errorf("with on_unreachable = \"forget\", the destroy of a reachable agent says %s", diags)
	}
}

// Two agents of one name would undo each other's changes. A replaced, renamed or imported agent is not a second one.
func TestTwoAgentsOfOneNameAreAnErrorAtPlan(t *testing.T) {
	acceptancetest.Only(t)
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	const another = "flotilla_agent.another"
	w := providertest.New(startProvider)
	one := onCluster(connectionTo(server), agentAttributes("provider-twice", nil))
	both := func(further map[string]any) providertest.Configuration {
		configuration := onCluster(connectionTo(server), agentAttributes("provider-twice", nil))
		configuration.Resources[another] = providertest.Resource{Attributes: agentAttributes("provider-twice", further)}
		return configuration
	}
	checkRefused := func(when string) {
		t.Helper()
		for _, further := range []map[string]any{nil, {"name": "flotilla"}, {"cluster_type": "other", "interval": "5m"}} {
			_, diags := w.Plan(t.Context(), both(further))
			if len(diags) != 1 || !diags.Has("Two agents have the same name") || diags[0].At != `AttributeName("name")` ||
				!strings.Contains(diags[0].Detail, `on cluster "edge-1"`) {
				t.Errorf("%s, two agents with %v give %s", when, further, diags)
			}
		}
	}
	checkRefused("without an existing agent")
	if plan, diags := w.Plan(t.Context(), both(map[string]any{"name": "other"})); diags.Err() != nil || plan.Change(another) == nil {
		t.Errorf("for another name, got %s", diags)
	}
	applyAgent(t, w, one)
	checkRefused("beside an existing agent")

	for _, before := range []bool{false, true} {
		one.Resources[agentAddress] = providertest.Resource{Attributes: one.Resources[agentAddress].Attributes, CreateBeforeDestroy: before}
		if _, diags := w.Apply(t.Context(), one, providertest.Replace(agentAddress)); diags.Err() != nil {
			t.Errorf("the replacement says %s", diags)
		}
	}
	renamed := providertest.Configuration{
		Provider:  one.Provider,
		Resources: map[string]providertest.Resource{another: one.Resources[agentAddress]},
	}
	if _, diags := w.Apply(t.Context(), renamed); diags.Err() != nil {
		t.Errorf("the move to another address says %s", diags)
	}
	w.Lose(another)
	if diags := w.Import(t.Context(), one, agentAddress, "edge-1"); diags.Err() != nil {
		t.Fatal(diags)
	}
	if _, diags := w.Apply(t.Context(), one, providertest.Replace(agentAddress)); diags.Err() != nil {
		t.Errorf("the replacement of an imported agent says %s", diags)
	}
}

func TestInvalidSettingsOfAnAgentAreReportedAtTheirAttributes(t *testing.T) {
	acceptancetest.Only(t)
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	server.Apply(t, `
apiVersion: v1
kind: Namespace
metadata: {name: provider-bad}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: flotilla-cluster, namespace: provider-bad}
spec: {interval: 1h, prune: true, path: ./mine, sourceRef: {kind: GitRepository, name: mine}}
`)
	certificate, key := server.ClientCertificate(t, "nobody", "nothing")
	nobody := map[string]any{"host": server.Host, "cluster_ca_certificate": server.CA, "client_certificate": certificate, "client_key": key}
	wrong := map[string]any{"host": server.Host, "cluster_ca_certificate": server.CA, "token": "canary-t0ken-4713"}
	for name, c := range map[string]struct {
		cluster any
		agent   map[string]any
		at      string
		want    string
	}{
		"a reconciler":                 {agent: map[string]any{"reconciler": "fluxx"}, at: "reconciler", want: `did you mean "flux"?`},
		"an on_destroy":                {agent: map[string]any{"on_destroy": "kep"}, at: "on_destroy", want: `did you mean "keep"?`},
		"an on_unreachable":            {agent: map[string]any{"on_unreachable": "forgt"}, at: "on_unreachable", want: `did you mean "forget"?`},
		"a hub without its kind":       {agent: map[string]any{"hub": "h"}, at: "hub", want: `hub is for reconciler = "argocd-hub" only.`},
		"a kind without its hub":       {agent: map[string]any{"reconciler": "argocd-hub"}, at: "hub", want: `hub is required`},
		"itself as a hub":              {agent: map[string]any{"reconciler": "argocd-hub", "hub": "edge-1"}, at: "hub", want: `hub is the cluster itself`},
		"a repository of this machine": {agent: map[string]any{"gitops_repo": map[string]any{"url": "./gitops.git", "branch": "dev"}}, at: "gitops_repo", want: "is a repository on this machine"},
		"invalid YAML":                 {agent: map[string]any{"install": "a: ["}, at: "install", want: "install: document 1, from line 1:"},
		"a duplicate object":           {agent: map[string]any{"install": map[string]any{"a": "apiVersion: v1\nkind: Namespace\nmetadata: {name: x}\n", "b": "apiVersion: v1\nkind: Namespace\nmetadata: {name: x}\n"}}, at: "install", want: "Namespace x appears twice, first in install"},
		"credentials of two kinds":     {agent: map[string]any{"credentials_wo": map[string]any{"token": "canary", "bearer_token": "canary"}}, at: "credentials_wo", want: "credentials_wo has more than one of token"},
		"a string as credentials":      {agent: map[string]any{"credentials_wo": "canary"}, at: "credentials_wo", want: "Must be an object"},
		"a misspelt credential":        {agent: map[string]any{"credentials_wo": map[string]any{"tokn": "canary"}}, at: "credentials_wo", want: `did you mean "token"?`},
		"credentials twice":            {agent: map[string]any{"credentials": map[string]any{"secret": "x"}}, at: "credentials", want: "cannot be set together with credentials"},
		"a misspelt reference":         {agent: map[string]any{"credentials": map[string]any{"secrt": "x"}}, at: "credentials", want: `did you mean "secret"?`},
		"decryption by Argo CD":        {agent: map[string]any{"reconciler": "argocd", "decryption": map[string]any{"secret": "sops-age"}}, at: "decryption", want: "Decryption cannot be set: Argo CD decrypts nothing without a plugin"},
		"a misspelt key for SOPS":      {agent: map[string]any{"decryption": map[string]any{"secrt": "x"}}, at: "decryption", want: `did you mean "secret"?`},
		"a duration":                   {agent: map[string]any{"interval": "5"}, at: "interval", want: "interval"},
		"timeouts":                     {agent: map[string]any{"timeouts": map[string]any{"create": "x"}}, at: "timeouts", want: "must be a duration"},
		"another's object":             {at: "force", want: `Cluster "edge-1": Kustomization provider-bad/flotilla-cluster: spec.interval, spec.path, spec.sourceRef.name are managed by "kubetest".`},
		"an object that is refused":    {agent: map[string]any{"install": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: A_B, namespace: provider-bad}\n"}, at: "install", want: `Cluster "edge-1": the API server refuses ConfigMap provider-bad/A_B: ConfigMap "A_B" is invalid`},
		"a user without rights":        {cluster: nobody, at: "cluster", want: `Cluster "edge-1": the API server does not let these credentials get`},
		"a wrong token":                {cluster: wrong, at: "cluster", want: `Cluster "edge-1": the API server refuses the credentials (401 Unauthorized).`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.cluster == nil {
				c.cluster = connectionTo(server)
			}
			w := providertest.New(startProvider)
			_, diags := w.Plan(t.Context(), onCluster(c.cluster, agentAttributes("provider-bad", c.agent)))
			if diags.Err() == nil || !slices.ContainsFunc(diags, func(one providertest.Diagnostic) bool {
				return one.Error && one.At == fmt.Sprintf("AttributeName(%q)", c.at) && strings.Contains(one.Detail, c.want)
			}) {
				t.Errorf("got %s, want %q at %s", diags, c.want, c.at)
			}
			if strings.Contains(diags.String(), "canary") {
				t.Errorf("the diagnostics have a secret: %s", diags)
			}
		})
	}
}
