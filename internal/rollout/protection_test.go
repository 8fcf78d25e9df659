package rollout_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
)

// trees has hosts with so many deployment targets each, "host=3".
func trees(hosts ...string) rollout.Trees {
	made := rollout.Trees{}
	for _, text := range hosts {
		host, number, _ := strings.Cut(text, "=")
		var count int
		if _, err := fmt.Sscan(number, &count); err != nil {
			panic(err)
		}
		made[host] = map[string]string{}
		for i := range count {
			made[host][fmt.Sprintf("target-%02d", i)] = "tree"
		}
	}
	return made
}

func number(n int64) *int64 { return &n }

func TestProtectionHoldsEachWayInWhichFoldersGo(t *testing.T) {
	for name, test := range map[string]struct {
		deployed, after rollout.Trees
		elsewhere       rollout.Trees // cleared at another place
		protection      rollout.Protection
		want            []string // what each refusal must say
	}{
		"nothing goes":                   {deployed: trees("a=24"), after: trees("a=24")},
		"a few go":                       {deployed: trees("a=24"), after: trees("a=20")},
		"half goes":                      {deployed: trees("a=24"), after: trees("a=12")},
		"more than half goes":            {deployed: trees("a=24"), after: trees("a=11"), want: []string{"13 of 24 assignments on 1 host, more than the default of 50 %"}},
		"ten of a small fleet go":        {deployed: trees("a=11"), after: trees("a=1")},
		"none may go":                    {deployed: trees("a=24"), after: trees("a=23"), protection: rollout.Protection{MaxRemoved: number(0)}, want: []string{"more than max_removed = 0"}},
		"a percentage of none":           {deployed: trees("a=3"), after: trees("a=2"), protection: rollout.Protection{MaxRemovedPercent: number(0)}, want: []string{"max_removed_percent = 34"}},
		"enough may go":                  {deployed: trees("a=24"), after: trees("a=4"), protection: rollout.Protection{MaxRemoved: number(20)}},
		"everything moves":               {after: trees("a=24"), elsewhere: trees("a=24"), want: []string{"remove 24 of 24"}},
		"everything moves to a mirror":   {deployed: trees("a=24"), after: trees("a=24"), elsewhere: trees("a=24"), want: []string{"remove 24 of 24"}},
		"everything moves, allowed":      {after: trees("a=24"), elsewhere: trees("a=24"), protection: rollout.Protection{MaxRemoved: number(24)}},
		"a fleet that assigns nothing":   {deployed: trees("a=2"), after: trees("a=0"), want: []string{"allow_empty = true"}},
		"and is meant":                   {deployed: trees("a=2"), after: trees("a=0"), protection: rollout.Protection{AllowEmpty: true}},
		"destroy of few":                 {deployed: trees("a=10"), after: nil},
		"destroy of many":                {deployed: trees("a=24"), after: nil, want: []string{"apply that, and then destroy"}},
		"a host that stays loses all":    {deployed: trees("a=5", "b=50"), after: trees("a=0", "b=50"), want: []string{`emptied_hosts = ["a"]`}},
		"four are few":                   {deployed: trees("a=4", "b=50"), after: trees("a=0", "b=50")},
		"a host that loses all but one":  {deployed: trees("a=5", "b=50"), after: trees("a=1", "b=50")},
		"a host leaves the fleet":        {deployed: trees("a=5", "b=50"), after: trees("b=50")},
		"two hosts, one is named":        {deployed: trees("a=5", "b=6", "c=50"), after: trees("a=0", "b=0", "c=50"), protection: rollout.Protection{EmptiedHosts: []string{"a"}}, want: []string{`"b" loses all 6`}},
		"a limit does not name the host": {deployed: trees("a=5", "b=50"), after: trees("a=0", "b=50"), protection: rollout.Protection{MaxRemoved: number(100)}, want: []string{"A host"}},
	} {
		t.Run(name, func(t *testing.T) {
			removal := rollout.RemovalOf(test.deployed, test.after, nil)
			got := test.protection.Check(removal, nil)
			if test.elsewhere != nil {
				got = append(got, test.protection.Check(rollout.ClearanceOf(test.elsewhere, test.after), nil)...)
			}
			if len(got) != len(test.want) {
				t.Fatalf("%d refusals, want %d: %v", len(got), len(test.want), got)
			}
			for i, refusal := range got {
				if text := refusal.Summary + "\n" + refusal.Detail + "\n" + refusal.Remedy; !strings.Contains(text, test.want[i]) {
					t.Errorf("refusal does not say %q:\n%s", test.want[i], text)
				}
			}
		})
	}
}

func TestWhatARefusalSaysLetsTheRemovalPass(t *testing.T) {
	deployed := trees("a=30", "b=8")
	for name, after := range map[string]rollout.Trees{
		"most": trees("a=2", "b=8"), "a host": trees("a=30", "b=0"), "both": trees("a=2", "b=0"),
	} {
		removal := rollout.RemovalOf(deployed, after, nil)
		if len((rollout.Protection{}).Check(removal, nil)) == 0 {
			t.Errorf("%s: is not held", name)
		}
		allowed := rollout.Protection{MaxRemoved: number(int64(len(removal.Keys))), EmptiedHosts: []string{"b"}}
		if refusals := allowed.Check(removal, nil); len(refusals) > 0 {
			t.Errorf("%s: is held with the limits that were named: %v", name, refusals)
		}
	}
}

func TestProtectionCountsClusters(t *testing.T) {
	refusals := (rollout.Protection{}).Check(rollout.RemovalOf(trees("a=24"), nil, nil), []string{"c1", "c2"})
	if len(refusals) != 1 || !strings.Contains(refusals[0].Detail, "1 host with 2 clusters") {
		t.Error(refusals)
	}
}

func TestDecide(t *testing.T) {
	wanted, back := rollout.Trees{"a": {"x": "1", "y": ""}, "b": {}}, rollout.Trees{"a": {"z": "9"}}
	forth := rollout.Decide(wanted, rollout.Write)
	if got := forth["a"]["x"]; got != (rollout.Decision{Action: rollout.Write, Tree: "1"}) {
		t.Error(got)
	}
	if _, ok := forth["b"]; !ok {
		t.Error("a host without deployment targets is gone")
	}
	if got := rollout.Decide(back, rollout.RollBack); len(got) != 1 || got["a"]["z"] != (rollout.Decision{Action: rollout.RollBack, Tree: "9"}) {
		t.Error(got)
	}
	kept := rollout.Decisions{"a": {"x": {Action: rollout.Keep}, "y": {Action: rollout.Write, Tree: "2"}}}
	if got := kept.Trees(rollout.Trees{"a": {"x": "0"}}); got["a"]["x"] != "0" || got["a"]["y"] != "2" {
		t.Error(got)
	}
}
