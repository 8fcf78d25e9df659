package provider_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/packet"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// aRunWithoutItsState plans and applies with another state. Then the former state takes the assignment back.
func aRunWithoutItsState(t *testing.T) {
	h, _ := planOnTokenHost(t)
	tip, ours := h.tip(), h.w
	h.w = providertest.New(startProvider)
	plan, diags := mustPlan(t, h.w, h.assigned(databaseFleet("one"), nil))
	if lines := strings.Join(linesOf(plan), "\n"); !strings.Contains(lines, "0 changed, 3 added, 0 removed") {
		t.Errorf("the plan has\n%s", lines)
	}
	if !diags.Has("Folders are there already") || !strings.Contains(diags.String(), "written last by commit "+tip[:12]) {
		t.Errorf("the plan says %s", diags)
	}
	h.w = ours
	h.expectEmptyPlan(h.assigned(databaseFleet("one"), nil))

	apply(t, providertest.New(startProvider), h.assigned(databaseFleet("one"), nil))
	if _, diags := h.w.Plan(t.Context(), h.assigned(databaseFleet("one"), nil)); diags.Err() == nil || !diags.Has(otherState) {
		t.Errorf("after the apply of another state, the plan says %s", diags)
	}
	apply(t, h.w, h.assigned(databaseFleet("one"), withAdopt))
	h.applyAndExpect("one")
}

// aStoppedDestroy stops a destroy before its state is saved. Then it keeps the fleet or destroys again.
func aStoppedDestroy(t *testing.T) {
	for _, keepFleet := range []bool{true, false} {
		p := newAssignmentPair(t)
		before := p.w.State.Clone()
		if _, diags := p.w.Apply(t.Context(), p.configuration("two"), providertest.Destroy()); diags.Err() != nil {
			t.Fatal(diags)
		}
		if left := files(t, repository{cloneURL: p.url}.clone(t, "dev")); len(left) >= len(p.wants) {
			t.Errorf("%d files are left of %d", len(left), len(p.wants))
		}
		p.w.State = before
		if keepFleet {
			p.recover()
			continue
		}
		if _, diags := p.w.Apply(t.Context(), p.configuration("two"), providertest.Destroy()); diags.Err() != nil || len(p.w.State) > 0 {
			t.Errorf("the second destroy reports %s", diags)
		}
	}
}

func aRebuiltCluster(t *testing.T) {
	api := &standInCluster{}
	url, certificate := api.start(t)
	configuration := onCluster(
		map[string]any{"host": url + "/a", "cluster_ca_certificate": certificate, "token": "a-token"}, agentAttributes("flux-system", nil),
	)
	w := providertest.New(startProvider)
	applyAgent(t, w, configuration)
	objectKeys := func() []string {
		api.mu.Lock()
		defer api.mu.Unlock()
		return slices.Sorted(maps.Keys(api.objects))
	}
	before := objectKeys()
	api.replace()
	plan := applyAgent(t, w, configuration)
	if lines := agentLines(plan); len(lines) != 1 || !strings.Contains(lines[0], "was replaced by another one") {
		t.Errorf("the plan has %q", lines)
	}
	if after := objectKeys(); !slices.Equal(after, before) || !strings.Contains(fmt.Sprint(after), "/secrets/") {
		t.Errorf("the cluster had %q and has %q", before, after)
	}
}

// aRenamedCluster renames a cluster in the fleet, then in the provider and its agent.
func aRenamedCluster(t *testing.T) {
	url, w := bare(t), providertest.New(startProvider)
	fleet := func(name string) providertest.Configuration {
		return assigned(url, fleetOf(map[string]any{
			"clusters":        []any{map[string]any{"name": name, "cluster_type": "large"}},
			"target_policies": []any{map[string]any{"name": "clusters", "cluster_selector": map[string]any{}}},
		}), nil)
	}
	apply(t, w, fleet("north"))
	plan, _ := mustPlan(t, w, fleet("south"))
	lines := strings.Join(linesOf(plan), "\n")
	if !strings.Contains(lines, "- clusters/north/app-core") || !strings.Contains(lines, "+ clusters/south/app-core") {
		t.Errorf("the plan has\n%s", lines)
	}

	api := &standInCluster{}
	host, certificate := api.start(t)
	named := func(name string, names ...string) providertest.Configuration {
		agent := agentAttributes("flux-system", map[string]any{"cluster": name})
		configuration, reach := onCluster(nil, agent), map[string]any{}
		for _, cluster := range append(names, name) {
			reach[cluster] = map[string]any{"host": host + "/a", "cluster_ca_certificate": certificate, "token": "a-token"}
		}
		configuration.Provider["clusters"] = reach
		return configuration
	}
	w = providertest.New(startProvider)
	applyAgent(t, w, named("north"))
	expectRefusal(t, w, named("south"), otherAgent, `of the agent of cluster "north"`)
	applyAgent(t, w, named("south", "north"))
}

func aValueWithoutEffect(t *testing.T) {
	url, w := bare(t), providertest.New(startProvider)
	fleet := func(value string) providertest.Call {
		return fleetOf(map[string]any{"config_containers": []any{
			map[string]any{"name": "all", "data": map[string]any{"LOG_LEVEL": value}},
			map[string]any{"name": "core", "labels": map[string]any{"workload": "app"}, "data": map[string]any{"LOG_LEVEL": "warn"}},
			map[string]any{"name": "typo", "labels": map[string]any{"region": "esat"}, "data": map[string]any{"REGION": value}},
		}})
	}
	apply(t, w, assigned(url, fleet("info"), nil))
	if plan, diags := mustPlan(t, w, assigned(url, fleet("debug"), nil)); !plan.Empty() {
		t.Errorf("the plan has %q: %s", linesOf(plan), diags)
	}
	values, diags := w.ReadData(t.Context(), providertest.Configuration{}, "flotilla_config_snapshots", map[string]any{
		"fleet": fleet("debug"), "key": "/LOG_LEVEL",
	})
	if text := fmt.Sprint(values["snapshots"]); diags.Err() != nil || !strings.Contains(text, "container:core") ||
		!strings.Contains(text, "overridden:[all]") {
		t.Errorf("the snapshots are %s: %s", text, diags)
	}
	back := map[string]any{"rollback_to": git(t, url, "rev-parse", "dev")}
	apply(t, w, assigned(url, fleet("info"), back))
	plan, warned := mustPlan(t, w, assigned(url, databaseFleet("mysql://new"), back))
	if !plan.Empty() || !warned.Has("Assignment is rolled back") {
		t.Errorf("with rollback_to the plan has %q: %s", linesOf(plan), warned)
	}
}

func twoWorkloadsOfOneName(t *testing.T) {
	url := bare(t)
	workload := func(workspace string) map[string]any {
		return map[string]any{"name": "app", "workspace": workspace, "deployment_targets": map[string]any{
			"core": map[string]any{"environment": "dev", "manifests": map[string]any{"repo": "https://git.example.com/" + workspace}},
		}}
	}
	fleet := func(workloads ...any) providertest.Call {
		return fleetOf(map[string]any{
			"workspaces": []any{map[string]any{"name": "one"}, map[string]any{"name": "two"}}, "workloads": workloads,
			"target_policies": []any{map[string]any{"name": "types", "cluster_type_selector": map[string]any{}}},
		})
	}
	_, diags := providertest.New(startProvider).Plan(t.Context(), assigned(url, fleet(workload("one"), workload("two")), nil))
	if !strings.Contains(diags.String(), `"app" is also the name of workloads[0]`) {
		t.Errorf("with one fleet the plan reports %s", diags)
	}
	apply(t, providertest.New(startProvider), assigned(url, fleet(workload("one")), nil))
	_, diags = providertest.New(startProvider).Plan(t.Context(), assigned(url, fleet(workload("two")), map[string]any{"name": "other"}))
	if diags.Err() == nil || !diags.Has("Folder does not belong to this assignment") {
		t.Errorf("with two fleets the plan reports %s", diags)
	}
}

func aMovedRepository(t *testing.T) {
	p := newAssignmentPair(t)
	moved := p.url + ".moved.git"
	git(t, "", "clone", "--quiet", "--mirror", p.url, moved)
	tip := git(t, p.url, "rev-parse", "dev")
	former := p.url
	p.url = moved
	p.recover()
	for _, url := range []string{former, moved} {
		if got := git(t, url, "rev-parse", "dev"); got != tip {
			t.Errorf("the apply changes %s", url)
		}
	}
}

// aRestoredState restores a state that is older than added, changed and removed folders, and an older state of a promotion.
func aRestoredState(t *testing.T) {
	for name, fleets := range map[string][2]providertest.Call{
		"added": {coreFleet("one"), databaseFleet("two")}, "removed": {databaseFleet("one"), coreFleet("two")},
	} {
		url, w := bare(t), providertest.New(startProvider)
		apply(t, w, assigned(url, fleets[0], nil))
		backup := w.State.Clone()
		newest := assigned(url, fleets[1], nil)
		apply(t, w, newest)
		tip := git(t, url, "rev-parse", "dev")
		w.State = backup
		plan, diags := mustPlan(t, w, newest)
		if lines := strings.Join(linesOf(plan), "\n"); !plan.Empty() && !strings.Contains(lines, "0 changed, 0 added, 0 removed") {
			t.Errorf("%s: the plan has\n%s: %s", name, lines, diags)
		}
		apply(t, w, newest)
		if plan, _ := mustPlan(t, w, newest); !plan.Empty() || git(t, url, "rev-parse", "dev") != tip {
			t.Errorf("%s: after the apply, the plan has %q, and the branch is at %s", name, linesOf(plan), git(t, url, "rev-parse", "dev"))
		}
	}

	promotes := providertest.New(startProvider)
	apply(t, promotes, promotionConfig(map[string]any{"candidate": "a"}))
	apply(t, promotes, promotionConfig(map[string]any{"candidate": "a"}))
	older := promotes.State.Clone()
	apply(t, promotes, promotionConfig(map[string]any{"candidate": "b"}))
	apply(t, promotes, promotionConfig(map[string]any{"candidate": "b"}))
	requirePromoted := func(want string) {
		t.Helper()
		if value := fmt.Sprint(promotes.State.Values(promotion)["promoted"]); !strings.Contains(value, "value:"+want) {
			t.Errorf("got promoted %s, want %s", value, want)
		}
	}
	requirePromoted("b")
	promotes.State = older
	requirePromoted("a")
	promotes.Lose(promotion)
	if diags := promotes.Import(t.Context(), promotionConfig(map[string]any{"candidate": "b"}), promotion, `"b"`); diags.Err() != nil {
		t.Fatal(diags)
	}
	requirePromoted("b")
}

// anExpiredSigningKey signs with a key that expired an hour ago. TestAnExpiredKeyIsUntrustedUntilItIsExtended verifies such keys.
func anExpiredSigningKey(t *testing.T) {
	created := time.Now().Add(-2 * time.Hour)
	entity, err := openpgp.NewEntity("Fleet", "", "fleet@example.com", &packet.Config{
		Algorithm: packet.PubKeyAlgoEdDSA, KeyLifetimeSecs: 3600, Time: func() time.Time { return created },
	})
	if err != nil {
		t.Fatal(err)
	}
	expired, _ := armoredKeys(t, entity)
	valid, public := openPGPKey(t)
	url, w := bare(t), providertest.New(startProvider)
	signing := func(key string) providertest.Configuration {
		c := assigned(url, databaseFleet("one"), nil)
		c.Provider = map[string]any{"git": map[string]any{"signing_key": key, "allowed_signers": []any{public}}}
		return c
	}
	_, diags := w.Plan(t.Context(), signing(expired))
	if diags.Err() == nil || !strings.Contains(diags.String(), "the signing key has expired") {
		t.Errorf("the plan says %s", diags)
	}
	apply(t, w, signing(valid))
}

// aTimeoutOfAPush gets no answer to a push. The server accepts it later, or never.
func aTimeoutOfAPush(t *testing.T) {
	for _, isAccepted := range []bool{true, false} {
		h, _ := planOnTokenHost(t)
		before, pushes := h.tip(), make(chan func(), 3)
		h.setDisturbance(func(_ http.ResponseWriter, r *http.Request, next http.Handler) bool {
			if !isPush(r) || r.Method != http.MethodPost {
				return false
			}
			body, _ := io.ReadAll(r.Body)
			push := r.Clone(context.WithoutCancel(r.Context()))
			pushes <- func() {
				push.Body = io.NopCloser(bytes.NewReader(body))
				next.ServeHTTP(httptest.NewRecorder(), push)
			}
			<-r.Context().Done()
			return true
		})
		for _, update := range []string{"1s", "5s", "30s"} { // a busy machine may need more time before it pushes
			_, diags := h.w.Apply(t.Context(), h.assigned(databaseFleet("two"), map[string]any{"timeouts": map[string]any{"update": update}}))
			if len(pushes) > 0 || update == "30s" {
				expectError(t, diags, "Timeout", "timeouts", `The operation took longer than timeouts.update = "`+update+`" allows`,
					"if a slow server still accepts the commit, the next plan shows it")
				break
			}
		}
		h.endDisturbance()
		if isAccepted && len(pushes) > 0 {
			(<-pushes)()
		}
		if isAccepted == (h.tip() == before) {
			t.Errorf("the branch is unchanged, although the server accepted the push, or the reverse: accepted is %t", isAccepted)
		}
		h.applyAndExpect("two")
	}
}
