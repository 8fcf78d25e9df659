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

func (o *Object) placement(attribute string) *Placement {
	var placement *Placement
	if p := o.Object(attribute); p != nil {
		placement = &Placement{NumberOfHosts: p.Int("number_of_hosts")}
		p.require("number_of_hosts", "is required: without placement, a policy assigns to every host that it selects")
		for _, preference := range p.List("prefer") {
			selector := preference.Selector("selector")
			preference.require("selector", "is required")
			placement.Prefer = append(placement.Prefer, Preference{
				Selector: selector, Weight: preference.Int("weight"),
			})
			preference.Finish()
		}
		for _, spread := range p.List("spread") {
			key := spread.required("key")
			if problem := CheckLabelKey(key); problem != "" && isSet(key) {
				spread.Report("key", "%s", problem)
			}
			placement.Spread = append(placement.Spread, Spread{Key: key, MaxSkew: spread.Int("max_skew")})
			spread.Finish()
		}
		p.Finish()
	}
	return placement
}
