package values

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/privatestate"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
)

func TestMemoryOfManyClustersIsSmall(t *testing.T) {
	t.Parallel()
	stores := &fleet.Fleet{Environment: "prod", ClusterTypes: []fleet.ClusterType{{Name: "store"}}}
	for i := range 3000 {
		stores.Clusters = append(stores.Clusters, fleet.Cluster{Name: fmt.Sprintf("store-%04d", i), ClusterType: "store"})
	}
	settings, _, _ := rollout.Decode(map[string]any{"stages": []any{map[string]any{"name": "first", "hosts": []any{"store-0000"}}}})
	in := rollout.Values{
		Name: "kubernetes", Now: time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC), Wanted: rollout.ByCluster{All: `"1.31"`},
		Released: rollout.ByCluster{All: `"1.30"`}, Hosts: hostsOf(stores), Settings: settings,
	}
	for range 3 {
		out := rollout.AdvanceValues(in)
		in.Memory, in.Now = out.Memory, in.Now.Add(time.Hour)
	}
	text, err := privatestate.Seal(in.Memory)
	if err != nil || len(text) > 100<<10 {
		t.Errorf("the memory has %d bytes, want at most 100 KiB: %v", len(text), err)
	}
	read := &rollout.Memory{}
	if err := privatestate.Unseal(text, read); err != nil || len(read.Assigned) != 3000 || !reflect.DeepEqual(read.Rollout, in.Memory.Rollout) {
		t.Errorf("got %d assigned values, want 3000: %v", len(read.Assigned), err)
	}
}

func TestADamagedPrivateStateIsAWarning(t *testing.T) {
	t.Parallel()
	for _, content := range []string{`null`, `{"given":{"a":{"value":"x"}},"contents":{}}`, `{"given":{},"rollout":{"targets":{"":{"hosts":{"a":null}}}}}`} {
		text, err := privatestate.Seal(json.RawMessage(content))
		if err != nil {
			t.Fatal(err)
		}
		var diagnostics diag.Diagnostics
		if memory := load(t.Context(), entry(text), &diagnostics); memory != nil || diagnostics.WarningsCount() != 1 {
			t.Errorf("%s is read as %+v: %v", content, memory, diagnostics)
		}
	}
}

// Terraform saves a null for a value that an apply left unknown.
func TestNullsInTheStateAreNoValues(t *testing.T) {
	t.Parallel()
	values, err := parseID(`{"a":"1.30"}`)
	if err != nil {
		t.Fatal(err)
	}
	values["b"] = types.StringNull()
	before := past{state: rolloutModel{Values: types.DynamicValue(mapOf(t.Context(), values))}}
	if former := before.addTo(rollout.ByCluster{All: `"1.29"`}); former.Value("a") != `"1.30"` || former.Value("b") != `"1.29"` {
		t.Errorf("got former values %+v", former)
	}
}

type entry []byte

// GetKey implements [privatestate.State].
func (e entry) GetKey(context.Context, string) ([]byte, diag.Diagnostics) { return e, nil }

// SetKey implements [privatestate.State].
func (e entry) SetKey(context.Context, string, []byte) diag.Diagnostics { return nil }

// FuzzParseID checks that the imported value of each cluster equals the value in the ID.
func FuzzParseID(f *testing.F) {
	for _, seed := range []string{
		`{"edge-1":"1.30","edge-2":"1.31"}`, `{}`, `{"a":{"ports":[443,null]},"b":[],"c":true,"d":1.50}`, `{"a":null}`, `{"a":1e400}`, `{"a":1e-400}`, `{"a":1e99999999999}`, `{"a":1e9870}`,
		`{"a":"\u0000\ud800"}`, `{"a":"x","a":1}`, `"1.30"`, `{`, "{\"\xff\":{\"\":\"\xff\"}}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, id string) {
		elements, err := parseID(id)
		if err != nil {
			return
		}
		value, err := fleet.ParseJSON(id)
		if err != nil {
			t.Fatal(err)
		}
		for cluster, given := range entriesOf(mapOf(t.Context(), elements)) {
			text, err := fleet.CanonicalJSON(tfvalue.Plain(given))
			want, wantErr := fleet.CanonicalJSON(value.(map[string]any)[cluster])
			if err != nil || wantErr != nil || text != want {
				t.Errorf("%q is imported as %s, want %s: %v, %v", cluster, text, want, err, wantErr)
			}
		}
	})
}
