package evidence

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

const (
	format    = "1"
	kindFacts = "facts"
	maxDepth  = 16
)

type factsDocument struct {
	Format   *string                         `json:"format"`
	Kind     *string                         `json:"kind"`
	Time     *string                         `json:"time"`
	Clusters map[string]clusterFactsDocument `json:"clusters"`
}

type clusterFactsDocument struct {
	Verdict verdict.Verdict `json:"verdict"`
	Since   string          `json:"since,omitempty"`
	Message string          `json:"message,omitempty"`
	Facts   map[string]any  `json:"facts,omitempty"`
}

// Marshal encodes facts deterministically. Values must be types of ParseFacts, whole numbers, or lists and maps of
// texts.
func (f *Facts) Marshal() []byte {
	d := factsDocument{
		Format: new(format), Kind: new(kindFacts), Time: new(observe.FormatTime(f.Time)),
		Clusters: make(map[string]clusterFactsDocument, len(f.Clusters)),
	}
	for name, of := range f.Clusters {
		d.Clusters[name] = clusterFactsDocument{Verdict: of.Verdict, Since: observe.FormatTime(of.Since), Message: of.Message, Facts: of.Facts}
	}
	return observe.EncodeDocument(d)
}

// ParseFacts parses the output of [Facts.Marshal] in any order and indentation, with numbers as float64.
func ParseFacts(text []byte) (*Facts, error) {
	f, err := parseFacts(text)
	if err != nil {
		return nil, fmt.Errorf("the evidence is not what flotilla_cluster_facts gives: %w", err)
	}
	return f, nil
}

func parseFacts(text []byte) (*Facts, error) {
	var d factsDocument
	if err := observe.DecodeDocument(text, &d, &d.Format, format); err != nil {
		return nil, err
	}
	switch {
	case d.Kind == nil || *d.Kind != kindFacts:
		return nil, fmt.Errorf("its kind is not %q", kindFacts)
	case d.Time == nil || d.Clusters == nil:
		return nil, errors.New(`it has no "time", or no "clusters"`)
	}
	f := &Facts{Clusters: make(map[string]ClusterFacts, len(d.Clusters))}
	var err error
	if f.Time, err = observe.ParseTime(*d.Time); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(d.Clusters)) {
		if f.Clusters[name], err = d.Clusters[name].parse(name); err != nil {
			return nil, fmt.Errorf("%q: %w", name, err)
		}
	}
	return f, nil
}

func (d clusterFactsDocument) parse(name string) (of ClusterFacts, err error) {
	if name == "" {
		return of, errors.New("a cluster needs a name")
	}
	if err := verdict.Check(d.Verdict); err != nil {
		return of, err
	}
	of.Verdict, of.Message = d.Verdict, d.Message
	if d.Since != "" {
		if of.Since, err = observe.ParseTime(d.Since); err != nil {
			return of, err
		}
	}
	if err := observe.CheckText(name, d.Message); err != nil {
		return of, err
	}
	if d.Facts == nil {
		return of, nil
	}
	found, err := parseFact(d.Facts, 0)
	of.Facts, _ = found.(map[string]any)
	return of, err
}

func parseFact(value any, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("a fact is deeper than %d lists and maps", maxDepth)
	}
	var err error
	switch value := value.(type) {
	case bool:
		return value, nil
	case int64:
		return float64(value), nil
	case float64:
		if math.IsInf(value, 0) || math.IsNaN(value) {
			return nil, errors.New("a number is not finite")
		}
		return value, nil
	case string:
		return value, observe.CheckText(value)
	case []any:
		for i := range value {
			if value[i], err = parseFact(value[i], depth+1); err != nil {
				return nil, err
			}
		}
		return value, nil
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if _, err = parseFact(key, depth+1); err == nil {
				value[key], err = parseFact(value[key], depth+1)
			}
			if err != nil {
				return nil, err
			}
		}
		return value, nil
	}
	return nil, errors.New("a fact is null")
}
