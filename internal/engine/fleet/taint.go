package fleet

// Taint keeps deployment targets off a host unless their policy tolerates it. Effect is "NoSchedule".
// https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/
type Taint struct {
	Key    string `json:"key"`
	Value  string `json:"value,omitempty"`
	Effect string `json:"effect"`
}

// Toleration allows a policy to assign to tainted hosts. An empty Key with operator Exists tolerates every taint, an
// empty Effect every effect.
type Toleration struct {
	Key      string `json:"key,omitempty"`
	Operator string `json:"operator"` // "Equal" or "Exists"
	Value    string `json:"value,omitempty"`
	Effect   string `json:"effect,omitempty"`
}

// Tolerates follows Kubernetes' rules.
func (t Toleration) Tolerates(taint Taint) bool {
	if t.Effect != "" && t.Effect != taint.Effect {
		return false
	}
	if t.Key != "" && t.Key != taint.Key {
		return false
	}
	return t.Operator == "Exists" || t.Value == taint.Value
}

func (t Taint) String() string {
	if t.Value == "" {
		return t.Key + ":" + t.Effect
	}
	return t.Key + "=" + t.Value + ":" + t.Effect
}

// taintEffects are the effects that have a meaning for scheduling.
var taintEffects = []string{"NoSchedule"}

func readTaints(o *ObjectReader, attribute string) []Taint {
	return ReadList(o, attribute, func(t *ObjectReader) Taint {
		taint := Taint{Key: readRequired(t, "key"), Value: readText(t, "value"), Effect: readOneOf(t, "effect")}
		checkTaint(t, taint.Key, taint.Value)
		return taint
	})
}

func readTolerations(o *ObjectReader, attribute string) []Toleration {
	return ReadList(o, attribute, func(t *ObjectReader) Toleration {
		toleration := Toleration{Key: readText(t, "key"), Operator: readOneOf(t, "operator"), Value: readText(t, "value"), Effect: readOneOf(t, "effect")}
		if toleration.Operator == "Exists" && isSet(toleration.Value) {
			t.Report("value", "must be empty with operator Exists")
		}
		if toleration.Key == "" && toleration.Operator == "Equal" {
			t.Report("operator", "must be Exists where there is no key")
		}
		checkTaint(t, toleration.Key, toleration.Value)
		return toleration
	})
}

func checkTaint(o *ObjectReader, key, value string) {
	checkLabel(o, "key", key, CheckLabelKey)
	checkLabel(o, "value", value, CheckLabelValue)
}

// checkLabel reports an attribute that is not the key, or the value, of a label.
func checkLabel(o *ObjectReader, name, text string, check func(string) string) {
	if problem := check(text); isSet(text) && problem != "" {
		o.Report(name, "%s", problem)
	}
}
