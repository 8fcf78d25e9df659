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

// TestReliabilityClaims lets independent processes claim from one pool. It has just enough clusters for all.
func TestReliabilityClaims(t *testing.T) {
	runParallel(t)
	names := []string{"path", "http any object"} // TestReliabilityRaces races over HTTP
	for i, name := range names[:acceptancetest.Count(1, 2)] {
		server := map[string]string{"path": "bare repository, local path", "http any object": "git http-backend"}[name]
		t.Run(name, func(t *testing.T) {
			runParallel(t)
			serving := servings[slices.IndexFunc(servings, func(s serving) bool { return s.name == name })]
			processes, rounds := reliabilitytest.Count(4, 16), reliabilitytest.Count(2, 100)
			r, clusters := newRepository(t, serving), pool(processes*maxClaimed)
			start := time.Now()
			orders := make([]claimOrder, processes)
			for i := range orders {
				orders[i] = claimOrder{Remote: r.remote, Name: fmt.Sprintf("claim-%d", i), Index: i, Rounds: rounds, Pool: clusters}
			}
			outputs := runProcesses(t, "claim", processes, func(i int) any { return orders[i] })
			pushes, commits := 0, map[string]bool{}
			reported := map[string]map[string][]string{} // clusters by commit and claim
			for i, output := range outputs {
				reports := decodeAll[claimReport](t, output)
				if len(reports) != rounds {
					t.Errorf("process %d: %d rounds, want %d", i, len(reports), rounds)
				}
				for _, c := range reports {
					if want := orders[i].wantedNumber(c.Round); c.Error != "" || len(c.Clusters) != want {
						t.Fatalf("process %d: %+v, want %d", i, c, want)
					}
					if pushes += c.Pushes; reported[c.Commit] == nil {
						reported[c.Commit] = map[string][]string{}
					}
					reported[c.Commit][orders[i].Name], commits[c.Commit] = c.Clusters, true
				}
			}
			t.Logf("%s for %d commits", time.Since(start).Round(time.Millisecond), len(commits))
			checkClaims(t, r, orders, reported)
			reliabilitytest.Report(t, fmt.Sprintf("15-claims-%d", i),
				fmt.Sprintf("processes claim from one pool of %d clusters", len(clusters)), server, fmt.Sprintf("%d × %d", processes, rounds),
				fmt.Sprintf("no cluster twice, none lost; pushes per commit: %.2f on average", float64(pushes)/float64(len(commits))))
		})
	}
}

// checkClaims compares the claims in each commit of the branch with the reports of the processes. No cluster may belong to two
// claims, and each must belong to a claim at the end.
func checkClaims(t *testing.T, r *repository, orders []claimOrder, reported map[string]map[string][]string) {
	t.Helper()
	history := strings.Fields(r.git("rev-list", "--reverse", "main"))
	var questions strings.Builder
	for _, commit := range history {
		for _, order := range orders {
			fmt.Fprintf(&questions, "%s:prod/.flotilla/.claims/%s.json\n", commit, order.Name)
		}
	}
	answer := feed(t, r.directory, []byte(questions.String()), "cat-file", "--batch")
	found := 0
	for _, commit := range history {
		claimOf := map[string]string{}
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
				if other, twice := claimOf[cluster.Name]; twice {
					t.Fatalf("commit %s: %s belongs to %s and %s", commit, cluster.Name, other, order.Name)
				}
				claimOf[cluster.Name], names = order.Name, append(names, cluster.Name)
			}
			if want, ok := reported[commit][order.Name]; ok {
				if found++; !slices.Equal(want, names) {
					t.Errorf("commit %s: %s: got %v, want %v", commit, order.Name, names, want)
				}
			}
		}
		if commit == history[len(history)-1] && len(claimOf) != len(orders)*maxClaimed {
			t.Errorf("got %d claimed clusters at the end, want %d", len(claimOf), len(orders)*maxClaimed)
		}
	}
	want := 0
	for _, claims := range reported {
		want += len(claims)
	}
	if found != want {
		t.Errorf("the history has %d of %d reported claims", found, want)
	}
	r.fsck()
}
