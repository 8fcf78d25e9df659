package kube_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
)

// tunnel is a proxy that connects to wherever it is told, and hears who asks.
func tunnel(t *testing.T, heard chan<- string) *httptest.Server {
	t.Helper()
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		heard <- r.Method + " " + r.Host + " " + r.Header.Get("Proxy-Authorization")
		to, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", r.Host)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer to.Close()
		from, read, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer from.Close()
		_, _ = io.WriteString(from, "HTTP/1.1 200 Connection established\r\n\r\n")
		var both sync.WaitGroup
		both.Go(func() {
			_, _ = io.Copy(to, read) // what was read ahead comes first
			_ = to.Close()
		})
		both.Go(func() {
			_, _ = io.Copy(from, to)
			_ = from.Close()
		})
		both.Wait()
	}))
	t.Cleanup(proxy.Close)
	return proxy
}

func TestAClusterIsReachedThroughItsProxy(t *testing.T) {
	t.Parallel()
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) { answerList(w, "Kustomization", "v1", "", "a") })
	heard := make(chan string, 10)
	proxy := strings.Replace(tunnel(t, heard).URL, "http://", "http://me:canary@", 1)
	cluster := trusted(server)
	cluster.ProxyURL = proxy
	byKubeconfig := kube.Cluster{
		Kubeconfig: aKubeconfig(`{server: "`+server.URL+`", insecure-skip-tls-verify: true, proxy-url: "`+proxy+`"}`, `{token: t}`),
	}
	for name, cluster := range map[string]kube.Cluster{"a host": cluster, "a kubeconfig": byKubeconfig} {
		if found, err := askOne(t, cluster, time.Minute); err != nil || !slices.Equal(found, []string{"a"}) {
			t.Fatalf("%s: found is %q: %v", name, found, err)
		}
		if got, want := <-heard, "CONNECT "+strings.TrimPrefix(server.URL, "https://")+" Basic bWU6Y2FuYXJ5"; got != want {
			t.Errorf("%s: the proxy heard %q, want %q", name, got, want)
		}
	}
	cluster.Host = "https://127.0.0.1:1"
	if _, err := askOne(t, cluster, time.Minute); kube.ReasonOf(err) != kube.ReasonUnreachable || strings.Contains(err.Error(), "canary") {
		t.Errorf("the error is %v", err)
	}
}
