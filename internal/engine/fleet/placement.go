package fleet

// Placement chooses among the hosts that a target policy selects, for each deployment target by itself.
type Placement struct {
	NumberOfHosts int          `json:"number_of_hosts"` // at least 1
	Prefer        []Preference `json:"prefer,omitempty"`
	Spread        []Spread     `json:"spread,omitempty"`
}

// Preference adds its weight to every host that its selector matches. Hosts with more weight are chosen
// first.
type Preference struct {
	Selector *Selector `json:"selector"`
	Weight   int       `json:"weight"` // from -1000 to 1000
}

// Spread keeps the numbers of chosen hosts per value of a label at most MaxSkew apart, as long as there are hosts left
// to choose from. Hosts without the label count as one more value.
type Spread struct {
	Key     string `json:"key"`
	MaxSkew int    `json:"max_skew"` // at least 1, the default
}

// maxWeight bounds weights, so that no sum of them overflows.
const maxWeight = 1000

func readPlacement(o *ObjectReader, attribute string) *Placement {
	return ReadObject(o, attribute, func(p *ObjectReader) *Placement {
		p.Require("number_of_hosts", "is required: without placement, a policy assigns to every host that it selects")
		return &Placement{
			NumberOfHosts: p.Int("number_of_hosts"),
			Prefer: ReadList(p, "prefer", func(preference *ObjectReader) Preference {
				preference.Require("selector", "is required")
				return Preference{Selector: ReadSelector(preference, "selector"), Weight: preference.Int("weight")}
			}),
			Spread: ReadList(p, "spread", func(spread *ObjectReader) Spread {
				key := readRequired(spread, "key")
				checkLabel(spread, "key", key, CheckLabelKey)
				return Spread{Key: key, MaxSkew: spread.Int("max_skew")}
			}),
		}
	})
}
