package rollout_test

import (
	"encoding/json"
	"maps"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
)

// memoryText returns the memory of a rollout of values in its first stage.
func memoryText(t testing.TB) string {
	t.Helper()
	s := newValuesSite(t, nil)
	s.reportAll("1.30")
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
			t.Errorf("%s is read as a state", text)
		}
	}
	if err := json.Unmarshal([]byte(`null`), &rollout.StepState{}); err != nil {
		t.Error(err)
	}
}

func TestADamagedMemoryIsAnError(t *testing.T) {
	t.Parallel()
	if err := json.Unmarshal([]byte(memoryText(t)), &rollout.Memory{}); err != nil {
		t.Fatal(err)
	}
	for name, damage := range map[string]func(m map[string]any){
		"no assigned values": func(m map[string]any) { delete(m, "given") },
		"an assigned null":   func(m map[string]any) { m["given"].(map[string]any)["canary"] = nil },
		"a former value without content": func(m map[string]any) {
			target := m["rollout"].(map[string]any)["targets"].(map[string]any)[""]
			target.(map[string]any)["hosts"].(map[string]any)["canary"].(map[string]any)["from"] = "present"
		},
		"no contents":       func(m map[string]any) { m["contents"] = map[string]any{} },
		"a content of null": func(m map[string]any) { m["contents"].(map[string]any)[""] = nil; m["released"] = "x" },
		"other contents":    func(m map[string]any) { replaceAll(m["contents"], `"1.29"`) },
		"a state of null":   func(m map[string]any) { m["rollout"].(map[string]any)["targets"].(map[string]any)[""] = nil },
		"a negative stage": func(m map[string]any) {
			replaceAll(m["rollout"].(map[string]any)["targets"], map[string]any{"passed": -1})
		},
	} {
		var m map[string]any
		if err := json.Unmarshal([]byte(memoryText(t)), &m); err != nil {
			t.Fatal(err)
		}
		damage(m)
		text, _ := json.Marshal(m)
		if err := json.Unmarshal(text, &rollout.Memory{}); err == nil {
			t.Errorf("%s: %s is read as a memory", name, text)
		}
	}
	if err := json.Unmarshal([]byte(`null`), &rollout.Memory{}); err == nil {
		t.Error("null is read as a memory")
	}
}

// replaceAll replaces every value of an object.
func replaceAll(object, value any) {
	for name := range object.(map[string]any) {
		object.(map[string]any)[name] = value
	}
}

// FuzzMemory expects each readable memory to give every cluster a value, and to stay readable.
func FuzzMemory(f *testing.F) {
	for _, seed := range []string{memoryText(f), `{"given":{}}`, `null`, `{"given":{},"rollout":{"targets":{"":{"hosts":{"canary":{}},"failed":true}}}}`} {
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
