package fleet

// Placement chooses among the hosts of a target policy, for each deployment target.
type Placement struct {
	NumberOfHosts int          `json:"number_of_hosts"` // at least 1
	Prefer        []Preference `json:"prefer,omitempty"`
	Spread        []Spread     `json:"spread,omitempty"`
}

// Preference adds weight to hosts. More weight is chosen first.
type Preference struct {
	Selector *Selector `json:"selector"`
	Weight   int       `json:"weight"`
}

// Spread keeps the numbers of chosen hosts per value of a label at most MaxSkew apart while hosts are left. Hosts
// without the label count as one more value.
type Spread struct {
	Key     string `json:"key"`
	MaxSkew int    `json:"max_skew"` // at least 1
}

// maxWeight keeps sums from overflowing.
const maxWeight = 1000

var placementKind = defineKind(Table{
	Name: "placement",
	Meaning: "Chooses among the hosts that a target policy selects. Hosts of more weight come first. When a host is added or removed, as " +
		"few deployment " +
		"targets as possible move.",
}, func(p *Placement) []row {
	return []row{
		wholeAttribute(&p.NumberOfHosts, Attribute{
			Required: true, Least: 1, Most: maxWhole,
			Meaning: "How many hosts each deployment target goes to.",
		}),
		listAttribute(&p.Prefer, preferenceKind, Attribute{Meaning: "Which hosts come first."}),
		listAttribute(&p.Spread, spreadKind, Attribute{Meaning: "Over which labels hosts are spread."}),
	}
}).checkedBy(func(o *ObjectReader, _ *Placement) {
	o.Require("number_of_hosts", "is required: without placement, a policy assigns to every host that it selects")
})

var preferenceKind = defineKind(Table{
	Name:    "preference",
	Meaning: "Adds its weight to every host that its selector matches.",
}, func(p *Preference) []row {
	return []row{
		selectorAttribute(&p.Selector, Attribute{Required: true, Meaning: "Hosts with matching labels."}),
		wholeAttribute(&p.Weight, Attribute{
			Default: 1, Least: -maxWeight, Most: maxWeight,
			Meaning: "The weight that is added; hosts with a negative weight come last.",
		}),
	}
}).checkedBy(func(o *ObjectReader, _ *Preference) { o.Require("selector", "is required") })

var spreadKind = defineKind(Table{
	Name:    "spread",
	Meaning: "Keeps the numbers of hosts for each value of a label close to each other. Hosts without the label count as one more value.",
}, func(s *Spread) []row {
	return []row{
		textAttribute(&s.Key, Attribute{Required: true, Form: labelKeyForm, Meaning: "Key of the label."}),
		wholeAttribute(&s.MaxSkew, Attribute{Default: 1, Least: 1, Most: maxWhole, Meaning: "How far the numbers may be apart."}),
	}
})
