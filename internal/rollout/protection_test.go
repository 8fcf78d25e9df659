package rollout_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"

	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
)

// trees returns hosts with the given number of deployment targets each, such as "host=3".
func trees(hosts ...string) folder.Trees {
	result := folder.Trees{}
	for _, text := range hosts {
		host, number, _ := strings.Cut(text, "=")
		var count int
		if _, err := fmt.Sscan(number, &count); err != nil {
			panic(err)
		}
		result[host] = map[string]string{}
		for i := range count {
			result[host][fmt.Sprintf("target-%02d", i)] = "tree"
		}
	}
	return result
}

func number(n int64) *int64 { return &n }

func TestProtectionRefusesEachKindOfLargeRemoval(t *testing.T) {
	for name, test := range map[string]struct {
		deployed, after folder.Trees
		elsewhere       folder.Trees // removed from a former location
		protection      rollout.Protection
		want            string // a part of the refusal; "" if allowed
	}{
		"no removal":                     {deployed: trees("a=24"), after: trees("a=24")},
		"a few removals":                 {deployed: trees("a=24"), after: trees("a=20")},
		"half of the fleet":              {deployed: trees("a=24"), after: trees("a=12")},
		"more than half of the fleet":    {deployed: trees("a=24"), after: trees("a=11"), want: "13 of 24 assignments on 1 host, more than the default of 50 %"},
		"ten of a small fleet":           {deployed: trees("a=11"), after: trees("a=1")},
		"max_removed of zero":            {deployed: trees("a=24"), after: trees("a=23"), protection: rollout.Protection{MaxRemoved: number(0)}, want: "more than max_removed = 0"},
		"max_removed_percent of zero":    {deployed: trees("a=3"), after: trees("a=2"), protection: rollout.Protection{MaxRemovedPercent: number(0)}, want: "max_removed_percent = 34"},
		"a sufficient max_removed":       {deployed: trees("a=24"), after: trees("a=4"), protection: rollout.Protection{MaxRemoved: number(20)}},
		"a move of everything":           {after: trees("a=24"), elsewhere: trees("a=24"), want: "remove 24 of 24"},
		"a move to a mirror":             {deployed: trees("a=24"), after: trees("a=24"), elsewhere: trees("a=24"), want: "remove 24 of 24"},
		"an allowed move":                {after: trees("a=24"), elsewhere: trees("a=24"), protection: rollout.Protection{MaxRemoved: number(24)}},
		"a fleet without assignments":    {deployed: trees("a=2"), after: trees("a=0"), want: "allow_empty = true"},
		"an allowed empty fleet":         {deployed: trees("a=2"), after: trees("a=0"), protection: rollout.Protection{AllowEmpty: true}},
		"destroy of few":                 {deployed: trees("a=10"), after: nil},
		"destroy of many":                {deployed: trees("a=24"), after: nil, want: "apply that, and then destroy"},
		"an emptied host of the fleet":   {deployed: trees("a=5", "b=50"), after: trees("a=0", "b=50"), want: `emptied_hosts = ["a"]`},
		"an emptied host with only four": {deployed: trees("a=4", "b=50"), after: trees("a=0", "b=50")},
		"a host with one of five left":   {deployed: trees("a=5", "b=50"), after: trees("a=1", "b=50"), want: `"a" loses 4 of 5`},
		"a host outside the fleet":       {deployed: trees("a=5", "b=50"), after: trees("b=50")},
		"two emptied hosts, one named":   {deployed: trees("a=5", "b=6", "c=50"), after: trees("a=0", "b=0", "c=50"), protection: rollout.Protection{EmptiedHosts: []string{"a"}}, want: `"b" loses all 6`},
		"a limit without the host":       {deployed: trees("a=5", "b=50"), after: trees("a=0", "b=50"), protection: rollout.Protection{MaxRemoved: number(100)}, want: "A host"},
	} {
		t.Run(name, func(t *testing.T) {
			text := refusalText(test.protection.Check(rollout.RemovalOf(test.deployed, test.after, rollout.Fleet{}), nil))
			if test.elsewhere != nil {
				text += refusalText(test.protection.Check(rollout.ClearanceOf(test.elsewhere, test.after), nil))
			}
			if (text == "") != (test.want == "") || !strings.Contains(text, test.want) {
				t.Errorf("got refusal %q, want %q", text, test.want)
			}
		})
	}
}

// refusalText returns the whole text of a refusal, "" for none.
func refusalText(refusal *rollout.Refusal) string {
	if refusal == nil {
		return ""
	}
	return refusal.Summary + "\n" + refusal.Detail + "\n" + refusal.Remedy
}

func maxRemovedPercent(n int64) rollout.Protection {
	return rollout.Protection{MaxRemovedPercent: number(n)}
}

// workloads returns the workloads of the deployment targets in trees.
func workloads() map[string]string {
	byTarget := map[string]string{"other-of-00": "w-00"}
	for i := range 60 {
		byTarget[fmt.Sprintf("target-%02d", i)] = fmt.Sprintf("w-%02d", i)
	}
	return byTarget
}

func TestProtectionLimitsTheShareOfEachHostAndWorkload(t *testing.T) {
	everywhere, elsewhere := []string{}, []string{}
	for i := range 20 {
		everywhere, elsewhere = append(everywhere, fmt.Sprintf("h%02d=4", i)), append(elsewhere, fmt.Sprintf("h%02d=3", i))
	}
	moved := trees("a=4", "b=4")
	delete(moved["a"], "target-00")
	moved["a"]["other-of-00"] = "tree"
	for name, test := range map[string]struct {
		deployed, after folder.Trees
		dropped         []string // deployment targets that left the fleet
		protection      rollout.Protection
		want            string
	}{
		"a region of forty":             {deployed: trees("a=4", "b=37"), after: trees("a=0", "b=37"), protection: maxRemovedPercent(10), want: `"a" loses all 4`},
		"a region with one workload":    {deployed: trees("a=1", "b=40"), after: trees("a=0", "b=40"), protection: maxRemovedPercent(10), want: `set protection = { emptied_hosts = ["a"] }`},
		"a region in emptied_hosts":     {deployed: trees("a=1", "b=40"), after: trees("a=0", "b=40"), protection: rollout.Protection{MaxRemovedPercent: number(10), EmptiedHosts: []string{"a"}}},
		"the only folder of a cluster":  {deployed: trees("clusters/a=1", "b=40"), after: trees("clusters/a=0", "b=40"), protection: maxRemovedPercent(10)},
		"two folders of a cluster":      {deployed: trees("clusters/a=2", "b=40"), after: trees("clusters/a=0", "b=40"), protection: maxRemovedPercent(10), want: `"clusters/a" loses all 2`},
		"one of four":                   {deployed: trees("a=4", "b=40"), after: trees("a=3", "b=40"), protection: maxRemovedPercent(10)},
		"two of four":                   {deployed: trees("a=4", "b=40"), after: trees("a=2", "b=40"), protection: maxRemovedPercent(10), want: "A host would lose too much"},
		"two of four, within the limit": {deployed: trees("a=4", "b=40"), after: trees("a=2", "b=40"), protection: maxRemovedPercent(50)},
		"dropped deployment targets":    {deployed: trees("a=4", "b=40"), after: trees("a=2", "b=40"), dropped: []string{"target-02", "target-03"}, protection: maxRemovedPercent(10)},
		"a host outside the fleet":      {deployed: trees("a=4", "b=40"), after: trees("b=40"), protection: maxRemovedPercent(10)},
		"a workload":                    {deployed: trees(everywhere...), after: trees(elsewhere...), protection: maxRemovedPercent(30), want: `"w-03" leaves 20 of 20`},
		"a workload, by default":        {deployed: trees(everywhere...), after: trees(elsewhere...), want: "set protection = { max_removed = 20 }"},
		"a workload, by number":         {deployed: trees(everywhere...), after: trees(elsewhere...), protection: rollout.Protection{MaxRemoved: number(20)}},
		"a workload of few hosts":       {deployed: trees("a=4", "b=4", "c=4"), after: trees("a=3", "b=3", "c=4")},
		"a workload with a limit":       {deployed: trees("a=4", "b=4", "c=4"), after: trees("a=3", "b=3", "c=4"), protection: maxRemovedPercent(20), want: `"w-03" leaves 2 of 3`},
		"a workload of one host":        {deployed: trees("a=4", "b=3"), after: trees("a=3", "b=3"), protection: maxRemovedPercent(10), want: `"w-03" leaves 1 of 1`},
		"a workload on another host":    {deployed: trees("a=4", "b=3"), after: trees("a=3", "b=4"), protection: maxRemovedPercent(10)},
		"another deployment target":     {deployed: trees("a=4", "b=4"), after: moved, protection: maxRemovedPercent(20)},
		"nine of a small fleet":         {deployed: trees("a=5", "b=5", "c=2"), after: trees("a=2", "b=1"), protection: maxRemovedPercent(10), want: "remove 9 of 12 assignments"},
		"one of a small fleet":          {deployed: trees("a=3", "b=3"), after: trees("a=2", "b=3"), protection: maxRemovedPercent(10)},
		"a fleet without assignments":   {deployed: trees("a=3"), after: trees("a=0"), protection: rollout.Protection{MaxRemovedPercent: number(100), AllowEmpty: true}},
	} {
		t.Run(name, func(t *testing.T) {
			fleet := rollout.Fleet{Workloads: workloads()}
			for _, target := range test.dropped {
				delete(fleet.Workloads, target)
			}
			text := refusalText(test.protection.Check(rollout.RemovalOf(test.deployed, test.after, fleet), nil))
			if (text == "") != (test.want == "") || !strings.Contains(text, test.want) {
				t.Errorf("got refusal %q, want %q", text, test.want)
			}
		})
	}
}

func TestProtectionIgnoresTheRollbackOfAdditions(t *testing.T) {
	fleet := rollout.Fleet{IsAddition: func(key folder.Key) bool { return key.DeploymentTarget == "target-02" }}
	removal := rollout.RemovalOf(trees("a=3", "b=3", "c=3"), trees("a=2", "b=2", "c=1"), fleet)
	if removal.Total != 6 || len(removal.Keys) != 1 || removal.Keys[0].String() != "c/target-01" {
		t.Errorf("got removal of %v of %d", removal.Keys, removal.Total)
	}
	if refusal := maxRemovedPercent(0).Check(rollout.RemovalOf(trees("a=3"), trees("a=2"), fleet), nil); refusal != nil {
		t.Errorf("the rollback is refused: %v", refusal)
	}
}

func TestTheRemedyOfARefusalLetsTheRemovalPass(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	refused := 0
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
		refused++
		if again := applyRemedy(t, protection, refusal.Remedy).Check(removal, nil); again != nil {
			t.Fatalf("%+v: %v\nis refused after %q: %v", protection, removal, refusal.Remedy, again)
		}
	}
	if refused < 100 {
		t.Errorf("only %d removals were refused", refused)
	}
}

// applyRemedy adds the settings of a remedy to a protection.
func applyRemedy(t *testing.T, p rollout.Protection, remedy string) rollout.Protection {
	t.Helper()
	_, settings, found := strings.Cut(remedy, "protection = {")
	if !found {
		t.Fatalf("the remedy names no setting: %q", remedy)
	}
	for name, field := range map[string]**int64{"max_removed =": &p.MaxRemoved, "max_removed_percent =": &p.MaxRemovedPercent} {
		if _, value, ok := strings.Cut(settings, name); ok {
			*field = new(int64)
			if _, err := fmt.Sscan(strings.TrimRight(strings.Fields(value)[0], ","), *field); err != nil {
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
	if !strings.Contains(refusalText(refusal), "1 host with 2 clusters") {
		t.Error(refusal)
	}
}

func TestDecide(t *testing.T) {
	wanted, former := folder.Trees{"a": {"x": "1", "y": ""}, "b": {}}, folder.Trees{"a": {"z": "9"}}
	writes := rollout.Decide(wanted, rollout.Write)
	if got := writes["a"]["x"]; got != (rollout.Decision{Action: rollout.Write, Tree: "1"}) {
		t.Error(got)
	}
	if _, ok := writes["b"]; !ok {
		t.Error("the host without deployment targets is missing")
	}
	if got := rollout.Decide(former, rollout.RollBack); len(got) != 1 ||
		got["a"]["z"] != (rollout.Decision{Action: rollout.RollBack, Tree: "9"}) {
		t.Error(got)
	}
	kept := rollout.Decisions{"a": {"x": {Action: rollout.Keep}, "y": {Action: rollout.Write, Tree: "2"}}}
	if got := kept.Trees(folder.Trees{"a": {"x": "0"}}); got["a"]["x"] != "0" || got["a"]["y"] != "2" {
		t.Error(got)
	}
}
