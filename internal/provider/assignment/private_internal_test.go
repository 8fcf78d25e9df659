package assignment

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/pipeline"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/privatestate"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/fleettest"
)

func newPrivateState(t testing.TB, assignments int) (*assignmentPrivate, *pipeline.Rendering) {
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
	rendering := result.Render(t.Context(), pipeline.Destination{Owner: "all", Repo: &folder.Location{URL: "gitops.git", Branch: "main"}}, nil)
	m := &assignmentPrivate{SavedState: delivery.SavedState{Trees: rendering.Wanted(), Records: map[string]string{}}}
	for host := range m.Trees {
		m.Records[host] = fmt.Sprintf("%x", []byte(fmt.Sprintf("%-20.20s", host)))
	}
	m.noteFleet(&fleetGoal{result: result, gitopsRepo: "gitops.git#main:", release: "dev"})
	return m, rendering
}

// `make test` checks a fifth of the fleet against a fifth of the size.
func TestTheStateOfTheReferenceFleetIsUnder2MiB(t *testing.T) {
	if testing.Short() {
		t.Skip("computes 20,000 assignments")
	}
	t.Parallel()
	m, rendering := newPrivateState(t, acceptancetest.Count(fleettest.ReferenceAssignments/5, fleettest.ReferenceAssignments))
	for name, out := range map[string]*rollout.Outcome{"deployed": {State: &rollout.StepState{}}, "in the middle of a rollout of everything": rollingOut(t, m)} {
		m.Rollout = out.State
		noteAll(m)
		checkSize(t, name, m, rendering, out)
	}
	imported := &assignmentPrivate{SavedState: delivery.SavedState{Trees: m.Trees, Records: m.Records}}
	noteAll(imported)
	checkSize(t, "imported", imported, rendering, &rollout.Outcome{})
}

// noteAll notes records of all folders from 20 commits. A tenth has the new content, as in a first stage.
func noteAll(m *assignmentPrivate) {
	records := map[folder.Key]gitops.FolderRecord{}
	for i, key := range m.Trees.Keys() {
		before := sha256.Sum256([]byte(key.String()))
		records[key] = gitops.FolderRecord{
			Tree: m.Trees[key.Host][key.DeploymentTarget], TreeBefore: hex.EncodeToString(before[:20]), Changed: time.Unix(int64(1_800_000_000+i/1000*3601), 0).UTC(),
		}
	}
	if !m.isLost() {
		for i, key := range m.Trees.Keys() {
			if record := records[key]; i%10 > 0 {
				record.Tree = record.TreeBefore
				records[key] = record
			}
		}
	}
	m.Tip = "0123456789012345678901234567890123456789"
	m.noteWritten(records)
}

func rollingOut(t *testing.T, m *assignmentPrivate) *rollout.Outcome {
	t.Helper()
	settings := &rollout.Settings{Stages: []rollout.Stage{
		{Name: "a", Percent: 10, ReadyPercent: 100}, {Name: "b", Percent: 30, ReadyPercent: 100}, {Name: "c", Percent: 60, ReadyPercent: 100},
	}}
	in := rollout.StepInput{
		Now: time.Unix(1_800_000_000, 0).UTC(), Wanted: m.Trees, Deployed: m.Trees.Clone(), Hosts: map[string]*rollout.FleetHost{}, Settings: settings,
		State: &rollout.StepState{}, Tip: "0123456789012345678901234567890123456789", Back: map[string]folder.Trees{},
	}
	for _, key := range m.Trees.Keys() {
		in.Hosts[key.Host] = &rollout.FleetHost{}
		tree := sha256.Sum256([]byte(key.String()))
		in.Deployed[key.Host][key.DeploymentTarget] = hex.EncodeToString(tree[:20])
	}
	out := rollout.Advance(in)
	if len(out.State.Targets) == 0 {
		t.Fatal("the rollout has no deployment target")
	}
	return out
}

func checkSize(t *testing.T, name string, m *assignmentPrivate, rendering *pipeline.Rendering, out *rollout.Outcome) {
	t.Helper()
	text, err := privatestate.Seal(m)
	if err != nil {
		t.Fatal(err)
	}
	progress := len(rollout.MarshalProgress(out.Progress))
	share := min(1, float64(len(rendering.Trees))/20_000)
	if most := int(share * (400 << 10)); progress > most { // 2,000 entries of deployment targets
		t.Errorf("%s: progress takes %d bytes, more than %d", name, progress, most)
	}
	// The framework saves a JSON object of base64 values, and Terraform saves it as base64.
	private, err := json.Marshal(map[string][]byte{ownerEntry: text})
	if err != nil {
		t.Fatal(err)
	}
	size := base64.StdEncoding.EncodedLen(len(private)) + progress + 2*len(contentValue(rendering.Wanted()).ValueString())
	t.Logf(
		"%s: %d assignments: %d bytes of state, %d of them for %d bytes of model",
		name,
		len(rendering.Trees),
		size,
		len(text),
		len(m.Model),
	)
	if most := int(share * (2 << 20)); size > most {
		t.Errorf("%s: the state takes %d bytes, more than %d", name, size, most)
	}
}

func TestPrivateStateIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	m, _ := newPrivateState(t, 1000)
	m.Label = "first"
	first := m.Trees.Keys()[0]
	m.Drift = delivery.Drift{
		Trees: map[folder.Key]string{
			first: "",
		}, Since: map[folder.Key]string{first: "abc"}, Touched: []string{"large"}, Cause: delivery.RepositoryGone,
	}
	text, err := privatestate.Seal(m)
	if err != nil {
		t.Fatal(err)
	}
	again, err := unseal(text)
	if err != nil {
		t.Fatal(err)
	}
	drift := again.Drift
	if again.Label != "first" || again.Model != m.Model || !maps.Equal(again.Config, m.Config) || !maps.Equal(again.Records, m.Records) ||
		!maps.EqualFunc(again.Trees, m.Trees, maps.Equal[map[string]string, map[string]string]) ||
		drift.Trees[first] != "" || drift.Since[first] != "abc" || !drift.IsGone() || drift.Touched[0] != "large" {
		t.Errorf("got drift %+v", again.Drift)
	}
	if version := again.version(nil); version == nil || len(version.Schedule.Assignments) < 900 {
		t.Errorf("got version %v of the fleet", version)
	}
}

func TestRefreshWritesOnlyItsFindings(t *testing.T) {
	t.Parallel()
	first := folder.Key{Host: "large", DeploymentTarget: "web-all"}
	findings := func(change func(*delivery.OwnerState)) *delivery.OwnerState {
		known := &delivery.OwnerState{SavedState: delivery.SavedState{
			Trees: folder.Trees{"large": {"web-all": "1"}, "small": {}}, Records: map[string]string{"large": "2"},
			Drift: delivery.Drift{Trees: map[folder.Key]string{}},
		}}
		change(known)
		return known
	}
	unchanged := findings(func(*delivery.OwnerState) {})
	var none *assignmentPrivate
	before := none.refreshed(unchanged)
	before.Model, before.Label = "{}", "first"
	if none.equal(before) || before.equal(nil) {
		t.Error("a missing private state equals an existing one")
	}
	after := before.refreshed(unchanged)
	if !before.equal(after) || after.Model != "{}" || after.Label != "first" {
		t.Errorf("a refresh without findings changes %+v to %+v", before, after)
	}
	for name, change := range map[string]func(*delivery.OwnerState){
		"another tree":      func(k *delivery.OwnerState) { k.Trees["large"]["web-all"] = "3" },
		"another host":      func(k *delivery.OwnerState) { k.Trees["tiny"] = map[string]string{} },
		"another record":    func(k *delivery.OwnerState) { k.Records["large"] = "4" },
		"drift":             func(k *delivery.OwnerState) { k.Drift.Trees[first] = "5" },
		"drift by a commit": func(k *delivery.OwnerState) { k.Drift.Since = map[folder.Key]string{first: "6"} },
		"a touched host":    func(k *delivery.OwnerState) { k.Drift.Touched = []string{"large"} },
		"nothing there":     func(k *delivery.OwnerState) { k.Drift.Cause = delivery.BranchGone },
	} {
		if after := before.refreshed(findings(change)); before.equal(after) {
			t.Errorf("%s: a refresh does not write %+v", name, after)
		}
	}
}

func TestTreesAreReusedOnlyIfThisReleaseRenderedThemAll(t *testing.T) {
	t.Parallel()
	m, rendering := newPrivateState(t, 100)
	to, release := rendering.Destination, "1.0.0"
	if m.rendering(rendering.Computation, to, release) != nil {
		t.Error("trees without a fingerprint, from an older release, are reused")
	}
	m.noteRendering(rendering, release)
	if again := m.rendering(rendering.Computation, to, release); again == nil ||
		!maps.EqualFunc(again.Wanted(), rendering.Wanted(), maps.Equal[map[string]string]) {
		t.Error("trees are not reused")
	}
	text, err := privatestate.Seal(m)
	if err != nil {
		t.Fatal(err)
	}
	if read, err := unseal(text); err != nil || read.rendering(rendering.Computation, to, release) == nil {
		t.Errorf("private state has no fingerprint: %v", err)
	}
	if after := m.refreshed(&delivery.OwnerState{SavedState: delivery.SavedState{Trees: m.Trees, Records: m.Records}}); after.rendering(rendering.Computation, to, release) == nil {
		t.Error("a refresh loses the fingerprint")
	}
	lost := *m
	lost.Trees = nil
	if after := lost.refreshed(&delivery.OwnerState{SavedState: delivery.SavedState{Trees: m.Trees, Records: m.Records}}); after.rendering(rendering.Computation, to, release) != nil {
		t.Error("trees from records are reused")
	}

	none := &assignmentPrivate{}
	for name, rendering := range map[string]*pipeline.Rendering{
		"no private state":    none.rendering(rendering.Computation, to, release),
		"no provider":         m.rendering(rendering.Computation, to, ""),
		"another release":     m.rendering(rendering.Computation, to, "1.0.1"),
		"another destination": m.rendering(rendering.Computation, pipeline.Destination{Owner: "other", Repo: to.Repo}, release),
	} {
		if rendering != nil {
			t.Errorf("%s: trees are reused", name)
		}
	}
	for name, change := range map[string]func(m *assignmentPrivate, release *string){
		"a development build": func(_ *assignmentPrivate, release *string) { *release = "dev" },
		"a held folder": func(m *assignmentPrivate, _ *string) {
			m.Trees = m.Trees.Clone()
			m.Trees[m.Trees.Keys()[0].Host] = nil
		},
		"a host of another owner": func(m *assignmentPrivate, _ *string) { m.Trees = m.Trees.Clone(); m.Trees["more"] = nil },
	} {
		m, release := *m, release
		change(&m, &release)
		m.noteRendering(rendering, release)
		if m.rendering(rendering.Computation, to, release) != nil {
			t.Errorf("%s: trees are reused", name)
		}
	}
}

func TestPrivateStateHoldsNoValue(t *testing.T) {
	t.Parallel()
	m := &assignmentPrivate{}
	value := fleet.Value{Format: fleet.Format, Environment: "dev", Model: "{}", Config: map[string]string{"all": `{"KEY":"canary-value"}`}}
	m.noteFleet(&fleetGoal{result: &pipeline.Computation{Value: value}})
	if text := fmt.Sprint(m); strings.Contains(text, "canary-value") {
		t.Errorf("private state has a value: %s", text)
	}
}

func TestPrivateStateThatCannotBeReadIsAnError(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"no JSON": "{", "another format": `{"format":2,"data":""}`, "no ascii85": `{"format":1,"data":"!"}`,
		"not packed": `{"format":1,"data":"aGVsbG8="}`,
	} {
		if _, err := unseal([]byte(text)); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}

func unseal(text []byte) (*assignmentPrivate, error) {
	m := &assignmentPrivate{}
	return m, privatestate.Unseal(text, m)
}

func TestADamagedPrivateStateIsAnError(t *testing.T) {
	t.Parallel()
	for _, content := range []string{`{"rollout":{"targets":{"app":null}}}`, `{"rollout":{"targets":{"app":{"hosts":{"edge":null}}}}}`, `[]`} {
		text, err := privatestate.Seal(json.RawMessage(content))
		if err != nil {
			t.Fatal(err)
		}
		if again, err := unseal(text); err == nil {
			t.Errorf("%s is read as %+v", content, again)
		}
	}
	if (&assignmentPrivate{Model: "{}"}).needsRecords() {
		t.Error("a private state without a rollout needs records")
	}
}
