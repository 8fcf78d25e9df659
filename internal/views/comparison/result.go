package comparison

import (
	"encoding/json"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
)

// Result is a comparison.
type Result struct {
	Left  Seen `json:"left"`
	Right Seen `json:"right"`
	Counts
	// Targets lists the differing ones by name.
	Targets     []Target `json:"deployment_targets"`
	MoreTargets int      `json:"more_deployment_targets,omitempty"`
	// Notes has sentences about missing parts.
	Notes    []string `json:"notes,omitempty"`
	Unpaired []string `json:"-"`
}

// Seen describes one side.
type Seen struct {
	Name        string `json:"name"` // of the owner
	Branch      string `json:"branch"`
	Path        string `json:"path,omitempty"`
	Commit      string `json:"commit,omitempty"` // full id; "" without a branch
	Written     bool   `json:"written"`
	Hosts       int    `json:"hosts"`
	Assignments int    `json:"assignments"`
}

// Bounds limits a result.
type Bounds struct {
	Targets, Hosts, Keys, Values int // of each list
	Runes                        int // of a value
	ShowValues                   bool
}

// Within returns the result within bounds, with the number of omitted parts.
func (r *Result) Within(b Bounds) *Result {
	bounded := *r
	bounded.Targets, bounded.MoreTargets = first(r.Targets, b.Targets, r.MoreTargets)
	for i := range bounded.Targets {
		t := &bounded.Targets[i]
		t.Left, t.Right = t.Left.within(b), t.Right.within(b)
		t.Keys, t.MoreKeys = first(t.Keys, b.Keys, t.MoreKeys)
		for j := range t.Keys {
			k := &t.Keys[j]
			if !b.ShowValues {
				k.Left, k.Right, k.More = nil, nil, 0
				continue
			}
			k.Left, k.More = first(k.Left, b.Values, k.More)
			k.Right, k.More = first(k.Right, b.Values, k.More)
			for _, texts := range [][]string{k.Left, k.Right} {
				for at := range texts {
					texts[at] = shortened(texts[at], b.Runes)
				}
			}
		}
	}
	return &bounded
}

// WithoutValues removes the values of keys.
func (r *Result) WithoutValues() *Result {
	return r.Within(Bounds{Targets: math.MaxInt, Hosts: math.MaxInt, Keys: math.MaxInt})
}

func (p Part) within(b Bounds) Part {
	p.Versions, _ = first(p.Versions, b.Hosts, 0)
	for i := range p.Versions {
		v := &p.Versions[i]
		v.Hosts, v.MoreHosts = first(v.Hosts, b.Hosts, v.MoreHosts)
	}
	p.OnlyHosts, p.MoreHosts = first(p.OnlyHosts, b.Hosts, p.MoreHosts)
	p.OnlyPolicies, _ = first(p.OnlyPolicies, b.Hosts, 0)
	return p
}

func first[T any](list []T, most, more int) ([]T, int) {
	kept := min(len(list), most)
	return append([]T(nil), list[:kept]...), more + len(list) - kept
}

func shortened(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most]) + "…"
}

const (
	format      = "1"
	maxDocument = 128 << 10
)

type document struct {
	Format *string `json:"format"`
	*Result
}

// Marshal returns JSON of at most 128 KiB. It omits keys first, then deployment targets.
func (r *Result) Marshal(showValues bool) ([]byte, error) {
	b := Bounds{Targets: 200, Hosts: 20, Keys: 50, Values: 3, Runes: 200, ShowValues: showValues}
	for {
		text, err := json.Marshal(document{new(format), r.Within(b)})
		if err != nil || len(text) <= maxDocument || b.Targets == 0 {
			return text, err
		}
		if b.Keys > 5 {
			b.Keys, b.Runes = b.Keys/2, b.Runes/2
		} else {
			b.Targets /= 2
		}
	}
}

// Parse parses the JSON of Marshal.
func Parse(text []byte) (*Result, error) {
	result, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("the comparison is not what flotilla_comparison gives: %w", err)
	}
	return result, nil
}

func parse(text []byte) (*Result, error) {
	if len(text) > maxDocument {
		return nil, fmt.Errorf("it is longer than %d KiB", maxDocument>>10)
	}
	d := document{Result: &Result{}}
	if err := observe.DecodeDocument(text, &d, &d.Format, format); err != nil {
		return nil, err
	}
	return d.Result, nil
}
