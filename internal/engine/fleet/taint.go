package fleet

// Taint keeps deployment targets off a host unless their policy tolerates it.
// https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/
type Taint struct {
	Key    string `json:"key"`
	Value  string `json:"value,omitempty"`
	Effect string `json:"effect"`
}

// Toleration lets a policy assign to tainted hosts. An empty Key with Exists, or an empty Effect, tolerates all.
type Toleration struct {
	Key      string `json:"key,omitempty"`
	Operator string `json:"operator"` // "Equal" or "Exists"
	Value    string `json:"value,omitempty"`
	Effect   string `json:"effect,omitempty"`
}

// Tolerates implements Kubernetes' rules.
func (t Toleration) Tolerates(taint Taint) bool {
	return (t.Effect == "" || t.Effect == taint.Effect) &&
		(t.Key == "" || t.Key == taint.Key) &&
		(t.Operator == "Exists" || t.Value == taint.Value)
}

func (t Taint) String() string {
	if t.Value == "" {
		return t.Key + ":" + t.Effect
	}
	return t.Key + "=" + t.Value + ":" + t.Effect
}

var taintEffects = []string{"NoSchedule"}

var taintKind = defineKind(Table{
	Name:    "taint",
	Meaning: "Keeps deployment targets off a host unless their policy tolerates it.",
}, func(t *Taint) []row {
	return []row{
		textAttribute(&t.Key, Attribute{Required: true, Form: labelKeyForm, Meaning: "Key of the taint."}),
		textAttribute(&t.Value, Attribute{Form: labelValueForm, Meaning: "Value of the taint. Unset: empty."}),
		textAttribute(&t.Effect, Attribute{Default: taintEffects[0], Allowed: taintEffects, Meaning: "The effect of the taint."}),
	}
})

var tolerationKind = defineKind(Table{
	Name:    "toleration",
	Meaning: "Lets a policy assign to hosts with a taint.",
}, func(t *Toleration) []row {
	return []row{
		textAttribute(&t.Key, Attribute{Form: labelKeyForm, Meaning: "Key of the taint. Unset, with `operator` `Exists`: every taint."}),
		textAttribute(&t.Operator, Attribute{
			Default: "Equal", Allowed: []string{"Equal", "Exists"}, Meaning: "`Equal` compares the value, too.",
		}),
		textAttribute(&t.Value, Attribute{Form: labelValueForm, Meaning: "Value of the taint, for `Equal`."}),
		textAttribute(&t.Effect, Attribute{Allowed: taintEffects, Meaning: "Effect of the taint. Unset: every effect."}),
	}
}).checkedBy(func(o *ObjectReader, t *Toleration) {
	if t.Operator == "Exists" && isSet(t.Value) {
		o.Report("value", "must be empty with operator Exists")
	}
	if t.Key == "" && t.Operator == "Equal" {
		o.Report("operator", "must be Exists where there is no key")
	}
})
