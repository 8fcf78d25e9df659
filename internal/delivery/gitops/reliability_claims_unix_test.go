//go:build unix

package gitops_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/reliabilitytest"
)

// TestReliabilityClaims lets processes that know nothing of each other claim from one pool, which has just as many
// clusters as they want at most.
func TestReliabilityClaims(t *testing.T) {
	atOnce(t)
	names := []string{"path", "http any object"} // TestReliabilityRaces races over HTTP
	for i, name := range names[:acceptancetest.Count(1, 2)] {
		server := map[string]string{"path": "bare repository, local path", "http any object": "git http-backend"}[name]
		t.Run(name, func(t *testing.T) {
			atOnce(t)
			serving := servings[slices.IndexFunc(servings, func(s serving) bool { return s.name == name })]
			processes, rounds := reliabilitytest.Count(4, 16), reliabilitytest.Count(2, 100)
			r, from := newRepository(t, serving), pool(processes*mostClaimed)
			start := time.Now()
			orders := make([]claimOrder, processes)
			for i := range orders {
				orders[i] = claimOrder{Remote: r.remote, Name: fmt.Sprintf("claim-%d", i), Index: i, Rounds: rounds, Pool: from}
			}
			outputs := runApart(t, "claim", processes, func(i int) any { return orders[i] })
			pushes, commits := 0, map[string]bool{}
			said := map[string]map[string][]string{} // by commit and claim
			for i, output := range outputs {
				came := decodeAll[claimedNow](t, output)
				if len(came) != rounds {
					t.Errorf("process %d: %d rounds, want %d", i, len(came), rounds)
				}
				for _, c := range came {
					if want := orders[i].number(c.Round); c.Error != "" || len(c.Clusters) != want {
						t.Fatalf("process %d: %+v, want %d", i, c, want)
					}
					if pushes += c.Pushes; said[c.Commit] == nil {
						said[c.Commit] = map[string][]string{}
					}
					said[c.Commit][orders[i].Name], commits[c.Commit] = c.Clusters, true
				}
			}
			t.Logf("%s for %d commits", time.Since(start).Round(time.Millisecond), len(commits))
			checkClaims(t, r, orders, said)
			reliabilitytest.Report(t, fmt.Sprintf("15-claims-%d", i),
				fmt.Sprintf("processes claim from one pool of %d clusters", len(from)), server, fmt.Sprintf("%d × %d", processes, rounds),
				fmt.Sprintf("no cluster twice, none lost; pushes per commit: %.2f on average", float64(pushes)/float64(len(commits))))
		})
	}
}

// checkClaims reads what every commit of the branch says of every claim: it is what the processes were told, no
// cluster is there twice, and at the end each is there once.
func checkClaims(t *testing.T, r *repository, orders []claimOrder, said map[string]map[string][]string) {
	t.Helper()
	history := strings.Fields(r.git("rev-list", "--reverse", "main"))
	var asked strings.Builder
	for _, commit := range history {
		for _, order := range orders {
			fmt.Fprintf(&asked, "%s:prod/.flotilla/.claims/%s.json\n", commit, order.Name)
		}
	}
	answer := feed(t, r.directory, []byte(asked.String()), "cat-file", "--batch")
	found := 0
	for _, commit := range history {
		has := map[string]string{}
		for _, order := range orders {
			var head string
			head, answer, _ = strings.Cut(answer, "\n")
			var record struct{ Clusters []struct{ Name string } }
			if !strings.HasSuffix(head, " missing") {
				var size int
				if _, err := fmt.Sscanf(head[strings.LastIndexByte(head, ' ')+1:], "%d", &size); err != nil {
					t.Fatalf("%q: %v", head, err)
				}
				if err := json.Unmarshal([]byte(answer[:size]), &record); err != nil {
					t.Fatal(err)
				}
				answer = answer[size+1:]
			}
			var names []string
			for _, cluster := range record.Clusters {
				if other, twice := has[cluster.Name]; twice {
					t.Fatalf("commit %s: %s is of %s and of %s", commit, cluster.Name, other, order.Name)
				}
				has[cluster.Name], names = order.Name, append(names, cluster.Name)
			}
			if told, ok := said[commit][order.Name]; ok {
				if found++; !slices.Equal(told, names) {
					t.Errorf("commit %s: %s was told %v, and has %v", commit, order.Name, told, names)
				}
			}
		}
		if commit == history[len(history)-1] && len(has) != len(orders)*mostClaimed {
			t.Errorf("%d clusters are claimed in the end, want %d", len(has), len(orders)*mostClaimed)
		}
	}
	want := 0
	for _, claims := range said {
		want += len(claims)
	}
	if found != want {
		t.Errorf("%d of %d answers are in the history", found, want)
	}
	r.fsck()
}
