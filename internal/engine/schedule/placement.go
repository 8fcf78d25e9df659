package schedule

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

// chooser selects hosts for a policy with a placement.
type chooser struct {
	*fleet.Placement
	scheduler *scheduler
	weights   map[int32]int
	domains   [][]string // by spread and host: the value of the spread's label
}

func (s *scheduler) newChooser(p *policy) *chooser {
	c := &chooser{Placement: p.Placement, scheduler: s, weights: make(map[int32]int, len(p.hosts))}
	path := fleet.PathOf("target_policies", p.Name).Attribute("placement")
	for i, preference := range p.Placement.Prefer {
		selector := path.Attribute("prefer").Index(i).Attribute("selector")
		requirements, _ := preference.Selector.Compile() // the decoder reports findings
		matches := false
		for _, host := range p.hosts {
			if requirements.Matches(s.hosts[host].selectable) {
				matches = true
				c.weights[host] += preference.Weight
			}
		}
		if !matches && len(p.hosts) > 0 {
			s.warnings.Report(selector, "none of the hosts that the policy selects has %s: the weight has no effect", requirements)
		}
	}
	for i, spread := range p.Placement.Spread {
		values, found := make([]string, len(s.hosts)), false
		for _, host := range p.hosts {
			if value, has := s.hosts[host].selectable[spread.Key]; has {
				values[host], found = "="+value, true
			}
		}
		if !found && len(p.hosts) > 0 {
			s.warnings.Report(path.Attribute("spread").Index(i).Attribute("key"),
				"none of the hosts that the policy selects has label %q: the spread has no effect%s", spread.Key,
				fleet.DidYouMean(spread.Key, s.labelKeys(p.hosts)))
		}
		c.domains = append(c.domains, values)
	}
	return c
}

func (s *scheduler) labelKeys(hosts []int32) []string {
	keys := map[string]bool{}
	for _, host := range hosts {
		for key := range s.hosts[host].selectable {
			keys[key] = true
		}
	}
	return slices.Sorted(maps.Keys(keys))
}

// choose returns the hosts for one target by weight, then by rendezvous hashing, within the limits of the spreads. A
// new host attracts only targets for which it ranks first, and a removed host moves only its own.
func (c *chooser) choose(hosts []int32, target *Target) []int32 {
	if len(hosts) <= c.NumberOfHosts {
		return hosts
	}
	type candidate struct {
		host   int32
		weight int
		hash   uint64
	}
	candidates := make([]candidate, len(hosts))
	for i, host := range hosts {
		candidates[i] = candidate{host, c.weights[host], rendezvous(c.scheduler.hosts[host].FirstName(), target.Name)}
	}
	slices.SortFunc(candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(b.hash, a.hash), cmp.Compare(a.host, b.host))
	})
	ordered := make([]int32, len(candidates))
	for i := range candidates {
		ordered[i] = candidates[i].host
	}
	chosen := c.spread(ordered)
	slices.Sort(chosen)
	return chosen
}

// spread takes the first hosts within the maximum skew of every spread. If none qualifies, it drops the last spread
// first: number_of_hosts has priority.
func (c *chooser) spread(ordered []int32) []int32 {
	if len(c.domains) == 0 {
		return ordered[:c.NumberOfHosts:c.NumberOfHosts]
	}
	left := make([]map[string]int, len(c.domains)) // remaining hosts by value
	taken := make([]map[string]int, len(c.domains))
	for i, values := range c.domains {
		left[i], taken[i] = map[string]int{}, map[string]int{}
		for _, host := range ordered {
			left[i][values[host]]++
		}
	}
	// fits ignores values without remaining hosts, because they cannot gain any.
	fits := func(i int, host int32) bool {
		least := -1
		for value, count := range left[i] {
			if count > 0 && (least < 0 || taken[i][value] < least) {
				least = taken[i][value]
			}
		}
		return taken[i][c.domains[i][host]]+1-least <= c.Spread[i].MaxSkew
	}
	remaining := slices.Clone(ordered)
	var chosen []int32
	for len(chosen) < c.NumberOfHosts {
		next := -1
		for bounds := len(c.domains); next < 0; bounds-- {
			next = slices.IndexFunc(remaining, func(host int32) bool {
				for i := range bounds {
					if !fits(i, host) {
						return false
					}
				}
				return true
			})
		}
		host := remaining[next]
		remaining = slices.Delete(remaining, next, next+1)
		chosen = append(chosen, host)
		for i, values := range c.domains {
			left[i][values[host]]--
			taken[i][values[host]]++
		}
	}
	return chosen
}

// rendezvous hashes the names of host and target. Changing it would move targets.
func rendezvous(host, target string) uint64 {
	sum := sha256.Sum256([]byte(host + "\x00" + target))
	return binary.BigEndian.Uint64(sum[:8])
}
