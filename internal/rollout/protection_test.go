package rollout_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"

	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
)

// trees has hosts with so many deployment targets each, "host=3".
func trees(hosts ...string) folder.Trees {
	made := folder.Trees{}
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
		deployed, after folder.Trees
		elsewhere       folder.Trees // cleared at another place
		protection      rollout.Protection
		want            string // a part of the refusal; "": it is allowed
	}{
		"nothing goes":                   {deployed: trees("a=24"), after: trees("a=24")},
		"a few go":                       {deployed: trees("a=24"), after: trees("a=20")},
		"half goes":                      {deployed: trees("a=24"), after: trees("a=12")},
		"more than half goes":            {deployed: trees("a=24"), after: trees("a=11"), want: "13 of 24 assignments on 1 host, more than the default of 50 %"},
		"ten of a small fleet go":        {deployed: trees("a=11"), after: trees("a=1")},
		"none may go":                    {deployed: trees("a=24"), after: trees("a=23"), protection: rollout.Protection{MaxRemoved: number(0)}, want: "more than max_removed = 0"},
		"a percentage of none":           {deployed: trees("a=3"), after: trees("a=2"), protection: rollout.Protection{MaxRemovedPercent: number(0)}, want: "max_removed_percent = 34"},
		"enough may go":                  {deployed: trees("a=24"), after: trees("a=4"), protection: rollout.Protection{MaxRemoved: number(20)}},
		"everything moves":               {after: trees("a=24"), elsewhere: trees("a=24"), want: "remove 24 of 24"},
		"everything moves to a mirror":   {deployed: trees("a=24"), after: trees("a=24"), elsewhere: trees("a=24"), want: "remove 24 of 24"},
		"everything moves, allowed":      {after: trees("a=24"), elsewhere: trees("a=24"), protection: rollout.Protection{MaxRemoved: number(24)}},
		"a fleet that assigns nothing":   {deployed: trees("a=2"), after: trees("a=0"), want: "allow_empty = true"},
		"and is meant":                   {deployed: trees("a=2"), after: trees("a=0"), protection: rollout.Protection{AllowEmpty: true}},
		"destroy of few":                 {deployed: trees("a=10"), after: nil},
		"destroy of many":                {deployed: trees("a=24"), after: nil, want: "apply that, and then destroy"},
		"a host that stays loses all":    {deployed: trees("a=5", "b=50"), after: trees("a=0", "b=50"), want: `emptied_hosts = ["a"]`},
		"four are few":                   {deployed: trees("a=4", "b=50"), after: trees("a=0", "b=50")},
		"a host that loses all but one":  {deployed: trees("a=5", "b=50"), after: trees("a=1", "b=50"), want: `"a" loses 4 of 5`},
		"a host leaves the fleet":        {deployed: trees("a=5", "b=50"), after: trees("b=50")},
		"two hosts, one is named":        {deployed: trees("a=5", "b=6", "c=50"), after: trees("a=0", "b=0", "c=50"), protection: rollout.Protection{EmptiedHosts: []string{"a"}}, want: `"b" loses all 6`},
		"a limit does not name the host": {deployed: trees("a=5", "b=50"), after: trees("a=0", "b=50"), protection: rollout.Protection{MaxRemoved: number(100)}, want: "A host"},
	} {
		t.Run(name, func(t *testing.T) {
			text := textOf(test.protection.Check(rollout.RemovalOf(test.deployed, test.after, rollout.Fleet{}), nil))
			if test.elsewhere != nil {
				text += textOf(test.protection.Check(rollout.ClearanceOf(test.elsewhere, test.after), nil))
			}
			if (text == "") != (test.want == "") || !strings.Contains(text, test.want) {
				t.Errorf("the refusal does not say %q: %q", test.want, text)
			}
		})
	}
}

// textOf is all that a refusal says; "" for none.
func textOf(refusal *rollout.Refusal) string {
	if refusal == nil {
		return ""
	}
	return refusal.Summary + "\n" + refusal.Detail + "\n" + refusal.Remedy
}

func percent(n int64) rollout.Protection { return rollout.Protection{MaxRemovedPercent: number(n)} }

// workloads are those of the targets that trees makes.
func workloads() map[string]string {
	of := map[string]string{"other-of-00": "w-00"}
	for i := range 60 {
		of[fmt.Sprintf("target-%02d", i)] = fmt.Sprintf("w-%02d", i)
	}
	return of
}

func TestAShareOfEachHostAndEachWorkloadCounts(t *testing.T) {
	everywhere, elsewhere := []string{}, []string{}
	for i := range 20 {
		everywhere, elsewhere = append(everywhere, fmt.Sprintf("h%02d=4", i)), append(elsewhere, fmt.Sprintf("h%02d=3", i))
	}
	moved := trees("a=4", "b=4")
	delete(moved["a"], "target-00")
	moved["a"]["other-of-00"] = "tree"
	for name, test := range map[string]struct {
		deployed, after folder.Trees
		gone            []string // deployment targets that the fleet has no more
		protection      rollout.Protection
		want            string
	}{
		"a region of forty":             {deployed: trees("a=4", "b=37"), after: trees("a=0", "b=37"), protection: percent(10), want: `"a" loses all 4`},
		"its only workload":             {deployed: trees("a=1", "b=40"), after: trees("a=0", "b=40"), protection: percent(10), want: `set protection = { emptied_hosts = ["a"] }`},
		"and is meant":                  {deployed: trees("a=1", "b=40"), after: trees("a=0", "b=40"), protection: rollout.Protection{MaxRemovedPercent: number(10), EmptiedHosts: []string{"a"}}},
		"the only one of a cluster":     {deployed: trees("clusters/a=1", "b=40"), after: trees("clusters/a=0", "b=40"), protection: percent(10)},
		"two of a cluster":              {deployed: trees("clusters/a=2", "b=40"), after: trees("clusters/a=0", "b=40"), protection: percent(10), want: `"clusters/a" loses all 2`},
		"one of four":                   {deployed: trees("a=4", "b=40"), after: trees("a=3", "b=40"), protection: percent(10)},
		"two of four":                   {deployed: trees("a=4", "b=40"), after: trees("a=2", "b=40"), protection: percent(10), want: "A host would lose too much"},
		"two of four, within the limit": {deployed: trees("a=4", "b=40"), after: trees("a=2", "b=40"), protection: percent(50)},
		"what the fleet has given up":   {deployed: trees("a=4", "b=40"), after: trees("a=2", "b=40"), gone: []string{"target-02", "target-03"}, protection: percent(10)},
		"a host that leaves the fleet":  {deployed: trees("a=4", "b=40"), after: trees("b=40"), protection: percent(10)},
		"a workload":                    {deployed: trees(everywhere...), after: trees(elsewhere...), protection: percent(30), want: `"w-03" leaves 20 of 20`},
		"a workload, by default":        {deployed: trees(everywhere...), after: trees(elsewhere...), want: "set protection = { max_removed = 20 }"},
		"a workload, by number":         {deployed: trees(everywhere...), after: trees(elsewhere...), protection: rollout.Protection{MaxRemoved: number(20)}},
		"a workload of few hosts":       {deployed: trees("a=4", "b=4", "c=4"), after: trees("a=3", "b=3", "c=4")},
		"and with a limit":              {deployed: trees("a=4", "b=4", "c=4"), after: trees("a=3", "b=3", "c=4"), protection: percent(20), want: `"w-03" leaves 2 of 3`},
		"a workload of one host":        {deployed: trees("a=4", "b=3"), after: trees("a=3", "b=3"), protection: percent(10), want: `"w-03" leaves 1 of 1`},
		"a workload that moves":         {deployed: trees("a=4", "b=3"), after: trees("a=3", "b=4"), protection: percent(10)},
		"another deployment target":     {deployed: trees("a=4", "b=4"), after: moved, protection: percent(20)},
		"nine of a small fleet":         {deployed: trees("a=5", "b=5", "c=2"), after: trees("a=2", "b=1"), protection: percent(10), want: "remove 9 of 12 assignments"},
		"one of a small fleet":          {deployed: trees("a=3", "b=3"), after: trees("a=2", "b=3"), protection: percent(10)},
		"a fleet without assignments":   {deployed: trees("a=3"), after: trees("a=0"), protection: rollout.Protection{MaxRemovedPercent: number(100), AllowEmpty: true}},
	} {
		t.Run(name, func(t *testing.T) {
			of := rollout.Fleet{Workloads: workloads()}
			for _, target := range test.gone {
				delete(of.Workloads, target)
			}
			text := textOf(test.protection.Check(rollout.RemovalOf(test.deployed, test.after, of), nil))
			if (text == "") != (test.want == "") || !strings.Contains(text, test.want) {
				t.Errorf("the refusal does not say %q: %q", test.want, text)
			}
		})
	}
}

func TestProtectionLeavesOutAdditionsOfARollout(t *testing.T) {
	of := rollout.Fleet{IsAddition: func(key folder.Key) bool { return key.DeploymentTarget == "target-02" }}
	removal := rollout.RemovalOf(trees("a=3", "b=3", "c=3"), trees("a=2", "b=2", "c=1"), of)
	if removal.Total != 6 || len(removal.Keys) != 1 || removal.Keys[0].String() != "c/target-01" {
		t.Errorf("counted as removed: %v of %d", removal.Keys, removal.Total)
	}
	if refusal := percent(0).Check(rollout.RemovalOf(trees("a=3"), trees("a=2"), of), nil); refusal != nil {
		t.Errorf("a rollback is held: %v", refusal)
	}
}

func TestTheRemedyOfARefusalLetsTheRemovalPass(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	held := 0
	for range 2000 {
		deployed, after := folder.Trees{}, folder.Trees{}
		for host := range random.IntN(6) + 1 {
			name := fmt.Sprint("h", host)
			deployed[name], after[name] = map[string]string{}, map[string]string{}
			lives := random.IntN(4)
			for target := range random.IntN(9) {
				deployed[name][fmt.Sprintf("target-%02d", target)] = "tree"
				if random.IntN(4) < lives {
					after[name][fmt.Sprintf("target-%02d", target)] = "tree"
				}
			}
			if random.IntN(6) == 0 {
				delete(after, name)
			}
		}
		protection := rollout.Protection{}
		if random.IntN(2) == 0 {
			protection.MaxRemovedPercent = number(int64(random.IntN(101)))
		}
		if random.IntN(3) == 0 {
			protection.MaxRemoved = number(int64(random.IntN(12)))
		}
		removal := rollout.RemovalOf(deployed, after, rollout.Fleet{Workloads: workloads()})
		refusal := protection.Check(removal, nil)
		if refusal == nil {
			continue
		}
		held++
		if again := protectedWith(t, protection, refusal.Remedy).Check(removal, nil); again != nil {
			t.Fatalf("%+v: %v\nis held after %q: %v", protection, removal, refusal.Remedy, again)
		}
	}
	if held < 100 {
		t.Errorf("only %d removals were held", held)
	}
}

// protectedWith is a protection with the settings that a remedy names.
func protectedWith(t *testing.T, p rollout.Protection, remedy string) rollout.Protection {
	t.Helper()
	_, settings, found := strings.Cut(remedy, "protection = {")
	if !found {
		t.Fatalf("the remedy names no setting: %q", remedy)
	}
	for name, to := range map[string]**int64{"max_removed =": &p.MaxRemoved, "max_removed_percent =": &p.MaxRemovedPercent} {
		if _, value, ok := strings.Cut(settings, name); ok {
			*to = new(int64)
			if _, err := fmt.Sscan(strings.TrimRight(strings.Fields(value)[0], ","), *to); err != nil {
				t.Fatal(err)
			}
		}
	}
	p.AllowEmpty = p.AllowEmpty || strings.Contains(settings, "allow_empty = true")
	for i := range 6 {
		if host := fmt.Sprint("h", i); strings.Contains(settings, `"`+host+`"`) {
			p.EmptiedHosts = append(p.EmptiedHosts, host)
		}
	}
	return p
}

func TestProtectionCountsClusters(t *testing.T) {
	refusal := (rollout.Protection{}).Check(rollout.RemovalOf(trees("a=24"), nil, rollout.Fleet{}), []string{"c1", "c2"})
	if !strings.Contains(textOf(refusal), "1 host with 2 clusters") {
		t.Error(refusal)
	}
}

func TestDecide(t *testing.T) {
	wanted, back := folder.Trees{"a": {"x": "1", "y": ""}, "b": {}}, folder.Trees{"a": {"z": "9"}}
	forth := rollout.Decide(wanted, rollout.Write)
	if got := forth["a"]["x"]; got != (rollout.Decision{Action: rollout.Write, Tree: "1"}) {
		t.Error(got)
	}
	if _, ok := forth["b"]; !ok {
		t.Error("a host without deployment targets is gone")
	}
	if got := rollout.Decide(back, rollout.RollBack); len(got) != 1 ||
		got["a"]["z"] != (rollout.Decision{Action: rollout.RollBack, Tree: "9"}) {
		t.Error(got)
	}
	kept := rollout.Decisions{"a": {"x": {Action: rollout.Keep}, "y": {Action: rollout.Write, Tree: "2"}}}
	if got := kept.Trees(folder.Trees{"a": {"x": "0"}}); got["a"]["x"] != "0" || got["a"]["y"] != "2" {
		t.Error(got)
	}
}
