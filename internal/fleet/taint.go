package fleet

// Taint keeps deployment targets off a host unless their policy tolerates it. Effect is "NoSchedule".
// https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/
type Taint struct {
	Key    string `json:"key"`
	Value  string `json:"value,omitempty"`
	Effect string `json:"effect"`
}

// Toleration lets a policy's assignments stand on tainted hosts. An empty Key with operator Exists
// tolerates every taint, an empty Effect every effect.
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
