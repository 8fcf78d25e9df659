package provider

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/fleet/fleettest"
	"github.com/flotilla/terraform-provider-flotilla/internal/pipeline"
	"github.com/flotilla/terraform-provider-flotilla/internal/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
)

// remembered is what is kept of a fleet of the generator.
func remembered(t testing.TB, assignments int) (*memory, *pipeline.Rendering) {
	t.Helper()
	decoded, findings := fleet.Decode(fleettest.Input(fleettest.Reference(assignments, 1)))
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	value, err := decoded.Value()
	if err != nil {
		t.Fatal(err)
	}
	result, found := pipeline.Compute(value)
	if len(found) > 0 {
		t.Fatal(found)
	}
	rendering := result.Render(pipeline.Destination{Owner: "all", Repo: &render.Repo{URL: "gitops.git", Branch: "main"}}, nil)
	m := &memory{Trees: rendering.Wanted(), Records: map[string]string{}}
	for host := range m.Trees {
		m.Records[host] = fmt.Sprintf("%x", []byte(fmt.Sprintf("%-20.20s", host)))
	}
	m.remember(result, "gitops.git#main:", "dev")
	return m, rendering
}

func TestTheStateOfTheReferenceFleetIsUnder2MiB(t *testing.T) {
	if testing.Short() {
		t.Skip("computes 20,000 assignments")
	}
	t.Parallel()
	m, rendering := remembered(t, fleettest.ReferenceAssignments)
	text, err := m.seal()
	if err != nil {
		t.Fatal(err)
	}
	// The framework keeps a JSON object of base64 values, and Terraform the base64 of that.
	private, err := json.Marshal(map[string][]byte{memoryKey: text})
	if err != nil {
		t.Fatal(err)
	}
	size := base64.StdEncoding.EncodedLen(len(private)) + 2*len(deployedValue(rendering.Wanted()).String())
	t.Logf("%d assignments: %d bytes of state, %d of them for %d bytes of model", len(rendering.Trees), size, len(text), len(m.Model))
	if size > 2<<20 {
		t.Errorf("the state takes %d bytes, more than 2 MiB", size)
	}
}

func TestMemoryIsWhatItWas(t *testing.T) {
	t.Parallel()
	m, _ := remembered(t, 1000)
	m.Label = "first"
	first := m.Trees.Keys()[0]
	m.setDrift(delivery.Drift{
		Trees: map[rollout.Key]string{first: ""}, Since: map[rollout.Key]string{first: "abc"}, Touched: []string{"large"}, Gone: true,
	})
	text, err := m.seal()
	if err != nil {
		t.Fatal(err)
	}
	again, err := openMemory(text)
	if err != nil {
		t.Fatal(err)
	}
	drift := again.drift()
	if again.Label != "first" || again.Model != m.Model || !maps.Equal(again.Config, m.Config) || !maps.Equal(again.Records, m.Records) ||
		!maps.EqualFunc(again.Trees, m.Trees, maps.Equal[map[string]string, map[string]string]) ||
		drift.Trees[first] != "" || drift.Since[first] != "abc" || !drift.Gone || drift.Touched[0] != "large" {
		t.Errorf("read back: %+v", again.Drift)
	}
	if version := again.version(); version == nil || len(version.Assignments) < 900 {
		t.Errorf("the fleet of then is %v", version)
	}
}

func TestARefreshWritesWhatItFoundAndNothingElse(t *testing.T) {
	t.Parallel()
	first := rollout.Key{Host: "large", DeploymentTarget: "web-all"}
	found := func(change func(*delivery.Known)) *delivery.Known {
		known := &delivery.Known{
			Trees: rollout.Trees{"large": {"web-all": "1"}, "small": {}}, Records: map[string]string{"large": "2"},
			Drift: delivery.Drift{Trees: map[rollout.Key]string{}},
		}
		change(known)
		return known
	}
	nothing := found(func(*delivery.Known) {})
	var none *memory
	before := none.refreshed(nothing)
	before.Model, before.Label = "{}", "first"
	if none.equal(before) || before.equal(nil) {
		t.Error("no memory is the same as one")
	}
	after := before.refreshed(nothing)
	if !before.equal(after) || after.Model != "{}" || after.Label != "first" {
		t.Errorf("nothing was found, and %+v became %+v", before, after)
	}
	for name, change := range map[string]func(*delivery.Known){
		"another tree":      func(k *delivery.Known) { k.Trees["large"]["web-all"] = "3" },
		"another host":      func(k *delivery.Known) { k.Trees["tiny"] = map[string]string{} },
		"another record":    func(k *delivery.Known) { k.Records["large"] = "4" },
		"drift":             func(k *delivery.Known) { k.Drift.Trees[first] = "5" },
		"drift by a commit": func(k *delivery.Known) { k.Drift.Since = map[rollout.Key]string{first: "6"} },
		"a touched host":    func(k *delivery.Known) { k.Drift.Touched = []string{"large"} },
		"nothing there":     func(k *delivery.Known) { k.Drift.Gone = true },
	} {
		if after := before.refreshed(found(change)); before.equal(after) {
			t.Errorf("%s: nothing is written of %+v", name, after)
		}
	}
}

func TestMemoryHoldsNoValue(t *testing.T) {
	t.Parallel()
	m := &memory{}
	value := fleet.Value{Format: fleet.Format, Environment: "dev", Model: "{}", Config: map[string]string{"all": `{"KEY":"canary-value"}`}}
	m.remember(&pipeline.Result{Value: value}, "", "")
	if text := fmt.Sprint(m); strings.Contains(text, "canary-value") {
		t.Error(text)
	}
}

func TestAMemoryThatCannotBeReadIsAnError(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"no JSON": "{", "another format": `{"format":2,"data":""}`, "no base64": `{"format":1,"data":"!"}`,
		"not packed": `{"format":1,"data":"aGVsbG8="}`,
	} {
		if _, err := openMemory([]byte(text)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
