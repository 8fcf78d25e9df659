package kube_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
)

// listEach lists several kinds of a cluster. For each kind it returns an x per object, or the reason of the error.
func listEach(t *testing.T, cluster kube.Cluster) []string {
	t.Helper()
	return kube.QueryAll(t.Context(), map[string]kube.Cluster{"one": cluster}, kube.QueryOptions{Deadline: time.Minute}, func(ctx context.Context, _ string, client *kube.ClusterClient) ([]string, error) {
		var results []string
		for _, listing := range client.ListEach(ctx, fluxKinds, kube.ListOptions{}) {
			word := string(kube.ReasonOf(listing.Err))
			if listing.Err == nil {
				word = strings.Repeat("x", len(listing.Items))
			}
			results = append(results, word)
		}
		return results, nil
	})["one"].Value
}

// A slow server receives the requests for all kinds at once: this one answers only after it has received all of them.
func TestASlowClusterIsAskedForAllKindsAtOnce(t *testing.T) {
	t.Parallel()
	var remaining sync.WaitGroup
	remaining.Add(len(fluxKinds))
	server := startServer(t, func(w http.ResponseWriter, r *http.Request) {
		remaining.Done()
		remaining.Wait()
		if strings.HasSuffix(r.URL.Path, "/"+fluxKinds[0].Resource) {
			answerList(w, "Kustomization", "v1", "", "a", "b")
			return
		}
		answerList(w, "Other", "v1", "", "a")
	})
	if results, want := listEach(t, clusterAt(server)), []string{"xx", "x", "x", "x", "x"}; !slices.Equal(results, want) {
		t.Errorf("got %q, want %q", results, want)
	}
}

// A forbidden kind does not end the query. Any other error ends it, on a fast and on a slow cluster.
func TestTheFirstErrorEndsAListOfKinds(t *testing.T) {
	t.Parallel()
	for name, delay := range map[string]time.Duration{"fast": 0, "slow": time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := startServer(t, func(w http.ResponseWriter, r *http.Request) {
				time.Sleep(delay)
				switch {
				case strings.HasSuffix(r.URL.Path, "/"+fluxKinds[1].Resource):
					answerStatus(w, http.StatusForbidden, "no", "")
				case strings.HasSuffix(r.URL.Path, "/"+fluxKinds[3].Resource):
					answerStatus(w, http.StatusUnauthorized, "no", "")
				default:
					answerList(w, "Some", "v1", "", "a")
				}
			})
			want := []string{"x", string(kube.ReasonForbidden), "x", string(kube.ReasonUnauthorized)}
			if results := listEach(t, clusterAt(server)); !slices.Equal(results, want) {
				t.Errorf("got %q, want %q", results, want)
			}
		})
	}
}
