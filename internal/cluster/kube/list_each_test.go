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

// each asks a cluster for several kinds; what it says of them is the number of objects, or a reason.
func each(t *testing.T, cluster kube.Cluster) []string {
	t.Helper()
	return kube.QueryAll(t.Context(), map[string]kube.Cluster{"one": cluster}, kube.QueryOptions{Deadline: time.Minute}, func(ctx context.Context, _ string, client *kube.ClusterClient) ([]string, error) {
		var said []string
		for _, listing := range client.ListEach(ctx, ofFlux, kube.ListOptions{}) {
			word := string(kube.ReasonOf(listing.Err))
			if listing.Err == nil {
				word = strings.Repeat("x", len(listing.Items))
			}
			said = append(said, word)
		}
		return said, nil
	})["one"].Value
}

// A server that answers late is asked for all that is left at once: this one answers nothing before it was asked for all.
func TestASlowClusterIsAskedForAllKindsAtOnce(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	all.Add(len(ofFlux))
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		all.Done()
		all.Wait()
		if strings.HasSuffix(r.URL.Path, "/"+ofFlux[0].Resource) {
			answerList(w, "Kustomization", "v1", "", "a", "b")
			return
		}
		answerList(w, "Other", "v1", "", "a")
	})
	if said, want := each(t, trusted(server)), []string{"xx", "x", "x", "x", "x"}; !slices.Equal(said, want) {
		t.Errorf("the cluster says %q, want %q", said, want)
	}
}

// What may not be listed does not end the question, and any other error does, however fast the cluster is.
func TestTheFirstErrorEndsAListOfKinds(t *testing.T) {
	t.Parallel()
	for name, delay := range map[string]time.Duration{"fast": 0, "slow": time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := serve(t, func(w http.ResponseWriter, r *http.Request) {
				time.Sleep(delay)
				switch {
				case strings.HasSuffix(r.URL.Path, "/"+ofFlux[1].Resource):
					answerStatus(w, http.StatusForbidden, "no", "")
				case strings.HasSuffix(r.URL.Path, "/"+ofFlux[3].Resource):
					answerStatus(w, http.StatusUnauthorized, "no", "")
				default:
					answerList(w, "Some", "v1", "", "a")
				}
			})
			want := []string{"x", string(kube.ReasonForbidden), "x", string(kube.ReasonUnauthorized)}
			if said := each(t, trusted(server)); !slices.Equal(said, want) {
				t.Errorf("the cluster says %q, want %q", said, want)
			}
		})
	}
}
