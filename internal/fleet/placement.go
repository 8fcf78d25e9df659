package fleet

import (
	"math"
	"strconv"
)

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

func (o *object) placement(attribute string) *Placement {
	var placement *Placement
	o.attribute(attribute, func(p *object) {
		placement = &Placement{NumberOfHosts: p.integer("number_of_hosts", 0, 1, math.MaxInt32)}
		if p.fields["number_of_hosts"] == nil {
			p.report("number_of_hosts", "is required: without placement, a policy assigns to every host that it selects")
		}
		p.objects("prefer", func(preference *object) {
			selector := preference.selector("selector")
			if preference.fields["selector"] == nil {
				preference.report("selector", "is required")
			}
			placement.Prefer = append(placement.Prefer, Preference{
				Selector: selector, Weight: preference.integer("weight", 1, -maxWeight, maxWeight),
			})
			preference.finish()
		})
		p.objects("spread", func(spread *object) {
			key := spread.required("key")
			if problem := CheckLabelKey(key); problem != "" && key != "" && key != unknownText {
				spread.report("key", "%s", problem)
			}
			placement.Spread = append(placement.Spread, Spread{Key: key, MaxSkew: spread.integer("max_skew", 1, 1, math.MaxInt32)})
			spread.finish()
		})
		p.finish()
	})
	return placement
}

// integer reads a whole number of a range; the default where it is absent or unknown.
func (o *object) integer(attribute string, byDefault, least, most int) int {
	number := o.number(attribute)
	if o.fields[attribute] == nil || o.fields[attribute] == (Unknown{}) {
		return byDefault
	}
	if number == "" {
		number = "0"
	}
	parsed, err := strconv.Atoi(string(number))
	if err != nil || parsed < least || parsed > most {
		o.report(attribute, "must be a whole number from %d to %d", least, most)
		return byDefault
	}
	return parsed
}
