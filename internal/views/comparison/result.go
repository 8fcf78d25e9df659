package comparison

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
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

// FolderQuery is a folder to read for the values of a Config.
type FolderQuery struct {
	Config string
	Right  bool // its side
	Key    folder.Key
	Tree   string
}

// Asks returns the folders to read next, at most so many: one for each Config that may differ and lacks values; with again, all
// others with that Config, one of each deployment target, because some have no file of configuration.
func Asks(in Input, again bool, most int) []FolderQuery {
	var asks []FolderQuery
	asked := map[string]bool{}
	for _, p := range in.targets() {
		if !p.mayDiffer() {
			continue
		}
		own := map[string]bool{}
		for side, entries := range [][]entry{p.left, p.right} {
			for i := range entries {
				e := &entries[i]
				if in.Values[e.Config] != nil || own[e.Config] {
					continue
				}
				own[e.Config] = true
				if asked[e.Config] == again {
					asks = append(asks, FolderQuery{Config: e.Config, Right: side == 1, Key: e.key, Tree: e.Tree})
				}
				asked[e.Config] = true
			}
		}
		if len(asks) >= most {
			return asks[:most]
		}
	}
	return asks
}

func (p *pair) mayDiffer() bool {
	if len(p.left) == 0 || len(p.right) == 0 {
		return false
	}
	differ := !maps.Equal(configsOf(p.left), configsOf(p.right))
	p.both(func(left, right *entry) { differ = differ || left.Config != right.Config })
	return differ
}

func configsOf(entries []entry) map[string]bool {
	configs := make(map[string]bool, 1)
	for i := range entries {
		configs[entries[i].Config] = true
	}
	return configs
}

// compareValues sets the keys. Unknown values count as different.
func (p *pair) compareValues(values map[string]Values, target *Target) bool {
	if !p.mayDiffer() {
		return false
	}
	left, right := configsOf(p.left), configsOf(p.right)
	for _, configs := range []map[string]bool{left, right} {
		for config := range configs {
			if values[config] == nil {
				target.KeysUnknown = true
				return true
			}
		}
	}
	keys := keysOf(values, left, right)
	differ := map[string]bool{}
	for key, of := range keys {
		differ[key] = !maps.Equal(of[0], of[1])
	}
	compared := map[[2]string]bool{}
	p.both(func(l, r *entry) {
		configs := [2]string{l.Config, r.Config}
		if l.Config == r.Config || compared[configs] {
			return
		}
		compared[configs] = true
		one, other := values[l.Config], values[r.Config]
		for key := range keys {
			value, had := one[key]
			others, has := other[key]
			differ[key] = differ[key] || had != has || value != others
		}
	})
	for _, key := range slices.Sorted(maps.Keys(differ)) {
		if differ[key] {
			target.Keys = append(target.Keys, keyOf(key, keys[key]))
		}
	}
	return len(target.Keys) > 0
}

// value is a value of a key; zero means none.
type value struct {
	is   bool
	text string
}

func keysOf(values map[string]Values, left, right map[string]bool) map[string]*[2]map[value]bool {
	keys := map[string]*[2]map[value]bool{}
	sides := [2]map[string]bool{left, right}
	for _, configs := range sides {
		for config := range configs {
			for key := range values[config] {
				if keys[key] == nil {
					keys[key] = &[2]map[value]bool{{}, {}}
				}
			}
		}
	}
	for side, configs := range sides {
		for config := range configs {
			of := values[config]
			for key, found := range keys {
				text, is := of[key]
				found[side][value{is, text}] = true
			}
		}
	}
	return keys
}

func keyOf(key string, of *[2]map[value]bool) Key {
	found := Key{Key: key, State: Different, Left: textsOf(of[0]), Right: textsOf(of[1])}
	switch {
	case len(found.Right) == 0:
		found.State = OnlyLeft
	case len(found.Left) == 0:
		found.State = OnlyRight
	}
	return found
}

func textsOf(values map[value]bool) []string {
	var texts []string
	for v := range values {
		if v.is {
			texts = append(texts, v.text)
		}
	}
	slices.Sort(texts)
	return texts
}
