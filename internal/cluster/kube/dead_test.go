package kube_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/webtest"
)

// A cluster that never answers fails at its deadline and delays no other cluster.
func TestADeadClusterDoesNotDelayOthers(t *testing.T) {
	t.Parallel()
	silent := listenSilently(t)
	release := make(chan struct{})
	slow := startServer(t, func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	half := startServer(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"kind":"KustomizationList",`)
		w.(http.Flusher).Flush()
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	t.Cleanup(func() { close(release) })
	alive := startServer(t, func(w http.ResponseWriter, _ *http.Request) { answerList(w, "Kustomization", "v1", "", "a") })
	clusters := map[string]kube.Cluster{
		"silent": {Host: "https://" + silent}, "slow": clusterAt(slow), "half": clusterAt(half), "untrusted": {Host: alive.URL},
		"gone": {Host: "https://127.0.0.1:1"}, "no name": {Host: "https://cluster.invalid"},
	}
	for i := range 20 {
		clusters[fmt.Sprintf("alive-%d", i)] = clusterAt(alive)
	}
	webtest.GrowDeadline(t, func(deadline time.Duration) error { return checkLiving(t, clusters, deadline) })
}

// checkLiving returns an error unless every living cluster has answered and every other cluster has its reason.
func checkLiving(t *testing.T, clusters map[string]kube.Cluster, deadline time.Duration) (wrong error) {
	t.Helper()
	answers := kube.QueryAll(t.Context(), clusters, kube.QueryOptions{Deadline: deadline, Parallel: 4}, listNames)
	type failure struct {
		reason kube.Reason
		text   string
	}
	late := failure{kube.ReasonTimeout, "the API server did not answer within " + deadline.String()}
	silent := late
	if deadline > 4*time.Second {
		silent = failure{kube.ReasonUnreachable, "the API server cannot be reached: no connection within 4s"}
	}
	for name, want := range map[string]failure{
		"silent":    silent,
		"slow":      late,
		"half":      late,
		"gone":      {kube.ReasonUnreachable, "the API server cannot be reached: dial 127.0.0.1:1: connect: connection refused"},
		"untrusted": {kube.ReasonUnreachable, "the API server cannot be reached: its certificate is not trusted: x509: certificate signed by unknown authority"},
	} {
		if err := answers[name].Err; kube.ReasonOf(err) != want.reason || err.Error() != want.text {
			wrong = errors.Join(wrong, fmt.Errorf("%s: %w", name, err))
		}
	}
	if !errors.Is(answers["slow"].Err, context.DeadlineExceeded) {
		wrong = errors.Join(wrong, fmt.Errorf("slow: %w", answers["slow"].Err))
	}
	if err := answers["no name"].Err; err == nil {
		t.Error("got an answer of a cluster with an unknown host name")
	}
	for i := range 20 {
		if answer := answers[fmt.Sprintf("alive-%d", i)]; answer.Err != nil || len(answer.Value) != 1 {
			wrong = errors.Join(wrong, fmt.Errorf("alive-%d: %v", i, answer))
		}
	}
	if got := slices.Sorted(maps.Keys(answers)); !reflect.DeepEqual(got, slices.Sorted(maps.Keys(clusters))) {
		t.Errorf("got answers of %q", got)
	}
	return wrong
}

// listenSilently returns the address of a listener that accepts no connection until the test ends.
func listenSilently(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().String()
}
