package provider_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// The guide lists keys as "{ username, password }". The test gives each a value.
func TestTheGuideOnOnboardingListsCredentialsThatFit(t *testing.T) {
	t.Parallel()
	certificate, key := kubetest.SelfSigned(t)
	private, public := sshKey(t, "")
	values := map[string]string{
		"id": "1", "installation_id": "2", "private_key": key, "ssh_private_key": private, "ssh_known_hosts": "git.example.com " + public, "ca_certificates": certificate,
	}
	_, table, _ := strings.Cut(guideText(t, onboardingGuide), "| repository | keys |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := strings.Split(table, "\n")
	if len(rows) < 6 {
		t.Fatalf("the table is\n%s", table)
	}
	w := providertest.New(startProvider)
	objects := func(reconciler, url, credentials string) (string, error) {
		t.Helper()
		rendered, err := w.Evaluate(t.Context(), moduleOf(t, fmt.Sprintf(`output "objects" {
  value = provider::flotilla::agent_manifests({
    cluster = "store-17", cluster_type = "store", reconciler = %q, gitops_repo = { url = %q, branch = "prod" }, credentials = { %s }
  })
}`, reconciler, url, credentials)).Outputs["objects"])
		return fmt.Sprint(rendered), err
	}
	code, name := regexp.MustCompile("`([^`]+)`"), regexp.MustCompile(`(\w+)(,| }|$)`)
	for _, row := range rows {
		cells := strings.Split(row, "|")
		url := "https://git.example.com/platform/gitops"
		switch {
		case strings.Contains(cells[1], "GitHub"):
			url = "https://github.com/platform/gitops"
		case strings.Contains(cells[1], "ssh"):
			url = "git@git.example.com:platform/gitops.git"
		}
		// The first code span of the cell has the required keys. Later ones are optional.
		codes := code.FindAllStringSubmatch(cells[2], -1)
		credentials := strings.TrimSuffix(strings.TrimPrefix(codes[0][1], "{ "), " }")
		if strings.Contains(cells[2], "and `username`") {
			credentials += ", username"
		}
		if strings.Contains(cells[1], "CA") {
			credentials += ", token"
		}
		assignments := name.ReplaceAllStringFunc(credentials, func(match string) string {
			parts := name.FindStringSubmatch(match)
			value, known := values[parts[1]]
			if !known {
				value = "canary-" + parts[1]
			}
			return fmt.Sprintf("%s = %q%s", parts[1], value, parts[2])
		})
		for _, reconciler := range []string{"flux", "argocd", "fleet"} {
			rendered, err := objects(reconciler, url, assignments)
			if fits := reconciler != "fleet" || !strings.Contains(row, "for Flux and Argo CD"); fits != (err == nil) {
				t.Errorf("%s, %s: %v", reconciler, credentials, err)
			} else if fits && !strings.Contains(rendered, "kind: Secret") {
				t.Errorf("%s, %s: there is no Secret in\n%s", reconciler, credentials, rendered)
			}
		}
	}
}

func TestTheGuideOnOnboardingIsRightAboutForeignSecretsAndAgents(t *testing.T) {
	t.Parallel()
	api := &standInCluster{}
	url, certificate := api.start(t)
	cluster := map[string]any{"host": url + "/a", "cluster_ca_certificate": certificate, "token": "t"}
	secretName := regexp.MustCompile("name it: `credentials = { secret = \"(.*)\" }`").FindStringSubmatch(guideText(t, onboardingGuide))
	if secretName == nil {
		t.Fatal("the guide does not say how a Secret is named")
	}
	w := providertest.New(startProvider)
	applyAgent(
		t,
		w,
		onCluster(cluster, agentAttributes("flux-system", map[string]any{"credentials_wo": nil, "credentials": map[string]any{"secret": secretName[1]}})),
	)
	api.mu.Lock()
	spec := fmt.Sprint(api.objects["a/apis/source.toolkit.fluxcd.io/v1/namespaces/flux-system/gitrepositories/flotilla"]["spec"])
	if _, rendered := api.objects["a/api/v1/namespaces/flux-system/secrets/flotilla-repository"]; rendered ||
		!strings.Contains(spec, "secretRef:map[name:"+secretName[1]+"]") {
		t.Errorf("created a Secret: %v, want false; got repository %s", rendered, spec)
	}
	api.mu.Unlock()

	// A cluster without the kinds: the stand-in has no Rancher Fleet.
	w = providertest.New(startProvider)
	plan, diags := w.Plan(t.Context(), onCluster(cluster, agentAttributes("fleet-local", map[string]any{"reconciler": "fleet"})))
	if diags.Err() != nil || !diags.Has("Agent is not installed") {
		t.Fatalf("the plan: got %s, want a warning", diags)
	}
	if diags := w.ApplyPlan(t.Context(), plan); diags.Err() == nil || !diags.Has("Agent is not installed") {
		t.Errorf("the apply: got %s, want an error", diags)
	}
}

// Environments share the objects of one name on a hub, even if their repositories differ.
func TestTheGuideOnOnboardingIsRightAboutNamesOnAHub(t *testing.T) {
	acceptancetest.Only(t)
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	for _, kind := range []string{"AppProject", "ApplicationSet", "Application"} { // waits until the API serves the kinds
		server.Get(t, "argoproj.io/v1alpha1", kind, "default", "none")
	}
	configuration := func(environment string, further map[string]any) providertest.Configuration {
		agent := map[string]any{
			"namespace": "provider-hub-names", "reconciler": "argocd-hub", "hub": "hub", "environment": environment,
			"gitops_repo":    map[string]any{"url": "https://git.example.com/" + environment, "branch": "main"},
			"credentials_wo": map[string]any{"token": "x", "registration": map[string]any{"token": "y"}},
		}
		for key, value := range further {
			agent[key] = value
		}
		return onHub(server, agent)
	}
	dev, prod := providertest.New(startProvider), providertest.New(startProvider)
	applyAgent(t, dev, configuration("dev", nil))
	applyAgent(t, prod, configuration("prod", map[string]any{"name": "other"}))
	if plan := planAgent(t, dev, configuration("dev", nil)); !plan.Empty() {
		t.Errorf("beside an environment of another name, the plan is not empty: %q", agentLines(plan))
	}
	applyAgent(t, providertest.New(startProvider), configuration("stage", nil))
	if secret := server.Get(t, "v1", "Secret", "provider-hub-names", "flotilla-repository"); decodeSecret(
		t,
		secret,
		"url",
	) != "https://git.example.com/stage" {
		t.Errorf("got a repository Secret of %s, want stage", decodeSecret(t, secret, "url"))
	}
	if lines := strings.Join(agentLines(planAgent(t, dev, configuration("dev", nil))), "\n"); !strings.Contains(
		lines,
		"AppProject provider-hub-names/flotilla on the hub: spec.sourceRepos",
	) {
		t.Errorf("beside an environment of the same name, the plan does not show the drift:\n%s", lines)
	}
}
