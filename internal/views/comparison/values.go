package comparison

import (
	"maps"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

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
