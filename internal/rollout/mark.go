package rollout

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"reflect"
)

// mark identifies the stages. What has its default is left out, so that a version of the provider that knows more of a
// stage identifies the same stages as this one, and starts no rollout again.
func (s *Settings) mark() string {
	stages := make([]map[string]any, len(s.Stages))
	for i := range s.Stages {
		stages[i] = s.Stages[i].parts()
	}
	text, err := json.Marshal(stages) // keys in order
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:6])
}

// parts are what of a stage is not its default.
func (s *Stage) parts() map[string]any {
	parts := map[string]any{}
	add := func(name string, value any, is bool) {
		if is {
			parts[name] = value
		}
	}
	add("name", s.Name, s.Name != "")
	add("cluster_type_selector", withoutDefaults(s.ClusterTypeSelector), s.ClusterTypeSelector != nil)
	add("cluster_selector", withoutDefaults(s.ClusterSelector), s.ClusterSelector != nil)
	add("hosts", s.Hosts, s.Hosts != nil)
	add("percent", s.Percent, s.Percent != 0)
	add("max_concurrent", s.MaxConcurrent, s.MaxConcurrent != 0)
	add("ready_percent", s.ReadyPercent, s.ReadyPercent != 100)
	add("max_failed", s.MaxFailed, s.MaxFailed != 0)
	add("soak", s.Soak.String(), s.Soak != 0)
	add("approval", true, s.Approval)
	return parts
}

// withoutDefaults is a value as JSON has it, without members that are empty.
func withoutDefaults(value any) any {
	text, err := json.Marshal(value)
	if err != nil {
		return nil
	}
	var plain any
	if json.Unmarshal(text, &plain) != nil {
		return nil
	}
	return pruned(plain)
}

func pruned(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			if member = pruned(member); isEmpty(member) {
				delete(value, name)
			} else {
				value[name] = member
			}
		}
	case []any:
		for i := range value {
			value[i] = pruned(value[i])
		}
	}
	return value
}

func isEmpty(value any) bool {
	of := reflect.ValueOf(value)
	switch {
	case value == nil:
		return true
	case of.Kind() == reflect.Map, of.Kind() == reflect.Slice:
		return of.Len() == 0
	}
	return of.IsZero()
}
