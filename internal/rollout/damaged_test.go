package rollout_test

import (
	"encoding/json"
	"maps"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
)

// kept is what a rollout of values has left in the middle.
func kept(t testing.TB) string {
	t.Helper()
	s := newValuesSite(t, nil)
	s.all("1.30")
	s.Released.All = "1.30"
	s.run()
	text, err := json.Marshal(s.Memory)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestADamagedStateIsAnError(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"targets":{"a":null}}`, `{"targets":{"a":{"hosts":{"b":null}}}}`, `{"targets":{"a":{"passed":-1}}}`, `{"targets":1}`,
	} {
		if err := json.Unmarshal([]byte(text), &rollout.StepState{}); err == nil {
			t.Errorf("%s is a state", text)
		}
	}
	if err := json.Unmarshal([]byte(`null`), &rollout.StepState{}); err != nil {
		t.Error(err)
	}
}

func TestADamagedMemoryIsAnError(t *testing.T) {
	t.Parallel()
	if err := json.Unmarshal([]byte(kept(t)), &rollout.Memory{}); err != nil {
		t.Fatal(err)
	}
	for name, damage := range map[string]func(m map[string]any){
		"nothing was given":      func(m map[string]any) { delete(m, "given") },
		"a gift without a value": func(m map[string]any) { m["given"].(map[string]any)["canary"] = nil },
		"a former value without content": func(m map[string]any) {
			target := m["rollout"].(map[string]any)["targets"].(map[string]any)[""]
			target.(map[string]any)["hosts"].(map[string]any)["canary"].(map[string]any)["from"] = "present"
		},
		"no contents":        func(m map[string]any) { m["contents"] = map[string]any{} },
		"a content of null":  func(m map[string]any) { m["contents"].(map[string]any)[""] = nil; m["released"] = "x" },
		"another content":    func(m map[string]any) { each(m["contents"], `"1.29"`) },
		"a state of null":    func(m map[string]any) { m["rollout"].(map[string]any)["targets"].(map[string]any)[""] = nil },
		"a stage before all": func(m map[string]any) { each(m["rollout"].(map[string]any)["targets"], map[string]any{"passed": -1}) },
	} {
		var m map[string]any
		if err := json.Unmarshal([]byte(kept(t)), &m); err != nil {
			t.Fatal(err)
		}
		damage(m)
		text, _ := json.Marshal(m)
		if err := json.Unmarshal(text, &rollout.Memory{}); err == nil {
			t.Errorf("%s: %s is a memory", name, text)
		}
	}
	if err := json.Unmarshal([]byte(`null`), &rollout.Memory{}); err == nil {
		t.Error("null is a memory")
	}
}

// each puts one value in place of all.
func each(of, value any) {
	for name := range of.(map[string]any) {
		of.(map[string]any)[name] = value
	}
}

// Whatever can be read of a memory, each cluster is given a value, and what comes of it can be read again.
func FuzzMemory(f *testing.F) {
	for _, seed := range []string{kept(f), `{"given":{}}`, `null`, `{"given":{},"rollout":{"targets":{"":{"hosts":{"canary":{}},"failed":true}}}}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		memory := &rollout.Memory{}
		if json.Unmarshal([]byte(text), memory) != nil {
			return
		}
		s := newValuesSite(t, map[string]any{"on_failure": "roll_back"})
		s.Memory = memory
		for range 3 {
			out := s.run()
			for cluster, value := range maps.All(out.Values) {
				if value == "" {
					t.Errorf("%s has no value", cluster)
				}
			}
			kept, _ := json.Marshal(out.Memory)
			if err := json.Unmarshal(kept, &rollout.Memory{}); err != nil {
				t.Errorf("%s: %s", err, kept)
			}
		}
	})
}
