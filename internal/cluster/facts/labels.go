package facts

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

// Choice derives a label from a fact.
type Choice struct {
	Label string
	fact  Fact
	key   string // of a map; else ""
}

// ParseChoice parses a fact's name, and for maps a point and a key.
func ParseChoice(label, from string) (Choice, error) {
	if problem := fleet.CheckLabelKey(label); problem != "" {
		return Choice{}, fmt.Errorf("%s", problem)
	}
	name, key, hasKey := strings.Cut(from, ".")
	fact, ok := FindFact(name)
	isMap := fact.Kind == TextsByName || fact.Kind == NumbersByName
	switch {
	case !ok:
		return Choice{}, fmt.Errorf("there is no fact %q%s", name, fleet.DidYouMean(name, Names()))
	case isMap && key == "":
		return Choice{}, fmt.Errorf("the fact %q is a %s: add a point and the name of one, as in %q", name, fact.Kind, name+".example")
	case hasKey && !isMap:
		return Choice{}, fmt.Errorf("the fact %q is a %s, which has no %q", name, fact.Kind, key)
	}
	return Choice{Label: label, fact: fact, key: key}, nil
}

// IsOfHub reports that only a hub has the fact.
func (c Choice) IsOfHub() bool { return !slices.Contains(c.fact.From, Cluster) }

// IsRequested reports that the fact is about pods.
func (c Choice) IsRequested() bool { return c.fact.Right == RightPods }

// String returns the form that ParseChoice parses.
func (c Choice) String() string {
	if c.key == "" {
		return c.fact.Name
	}
	return c.fact.Name + "." + c.key
}

func (c Choice) value(facts map[string]any) (value string, known bool, err error) {
	fact, known := facts[c.fact.Name]
	if isSilent := facts["nodes"] == 0.0 && c.fact.Right == RightNodes && c.fact.Kind != Number; !known || isSilent {
		return "", false, nil // without nodes, these facts are unknown
	}
	if c.key != "" {
		values, _ := fact.(map[string]any)
		if fact, known = values[c.key]; !known {
			return "", true, fmt.Errorf("the cluster has no %s", c)
		}
	}
	if list, isList := fact.([]any); isList {
		if len(list) != 1 {
			return "", true, fmt.Errorf("%s has %d values, and a label has one", c, len(list))
		}
		fact = list[0]
	}
	switch fact := fact.(type) {
	case float64:
		value = strconv.FormatFloat(fact, 'f', -1, 64)
	case string:
		value = fact
	}
	if value == "" && c.key == "" {
		return "", true, fmt.Errorf("the cluster does not say its %s", c)
	}
	if problem := fleet.CheckLabelValue(value); problem != "" {
		return "", true, fmt.Errorf("%s: %s", c, problem)
	}
	return value, true, nil
}

// AllOthers is the key, in defaults, for clusters that are not named.
const AllOthers = "*"

// Labels are derived labels of clusters.
type Labels struct {
	Of map[string]map[string]string // by cluster
	// Without explains a missing label, or one not from facts, by cluster and label.
	Without map[string]map[string]string
	Silent  []string // clusters with unknown facts and without defaults, sorted; not in Of
	Waiting []string // waiting clusters without defaults, sorted
}

// Label derives labels of clusters from facts; defaults replace unknown ones. A waiting cluster needs none, because it
// runs nothing yet. Unless clusters is complete, other clusters in defaults get labels, too.
func Label(clusters map[string]KnownFacts, choices []Choice, defaults map[string]map[string]string, complete bool) Labels {
	made := Labels{Of: map[string]map[string]string{}, Without: map[string]map[string]string{}}
	for _, name := range slices.Sorted(maps.Keys(clusters)) {
		of := clusters[name]
		others, hasDefaults := defaults[name]
		if !hasDefaults {
			others, hasDefaults = defaults[AllOthers]
		}
		labels, without, isSilent := map[string]string{}, map[string]string{}, false
		for _, choice := range choices {
			value, known, err := choice.value(of.Facts)
			switch {
			case err != nil:
				without[choice.Label] = err.Error()
			case known:
				labels[choice.Label] = value
			default:
				isSilent = true
				without[choice.Label] = fmt.Sprintf("%s is not known: %s", choice, of.explainUnknown(choice.fact))
				if value, ok := others[choice.Label]; ok {
					labels[choice.Label] = value
					without[choice.Label] += "; its value is that of defaults"
				}
			}
		}
		made.Of[name], made.Without[name] = labels, without
		switch {
		case !isSilent || hasDefaults:
		case of.Waiting:
			made.Waiting = append(made.Waiting, name)
		default:
			made.Silent = append(made.Silent, name)
			delete(made.Of, name)
		}
	}
	for name, labels := range defaults {
		if _, known := clusters[name]; known || complete || name == AllOthers {
			continue
		}
		made.Of[name] = map[string]string{}
		for _, choice := range choices {
			if value, ok := labels[choice.Label]; ok {
				made.Of[name][choice.Label] = value
			}
		}
	}
	return made
}

func (k *KnownFacts) explainUnknown(fact Fact) string {
	switch isOfCluster := slices.Contains(fact.From, Cluster); {
	case slices.Contains(k.Missing, fact.Right):
		return describeMissing([]string{fact.Right})
	case !isOfCluster && k.ambiguous != "":
		return k.ambiguous
	case !isOfCluster:
		return "no hub has said it"
	}
	return k.Message
}
