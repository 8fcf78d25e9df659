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

// startTunnel starts a proxy that connects to any address and sends each request line to a channel.
func startTunnel(t *testing.T, requests chan<- string) *httptest.Server {
	t.Helper()
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests <- r.Method + " " + r.Host + " " + r.Header.Get("Proxy-Authorization")
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
			_, _ = io.Copy(to, read) // begins with the text that the server has read ahead
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
	server := startServer(t, func(w http.ResponseWriter, _ *http.Request) { answerList(w, "Kustomization", "v1", "", "a") })
	requests := make(chan string, 10)
	proxy := strings.Replace(startTunnel(t, requests).URL, "http://", "http://me:canary@", 1)
	cluster := clusterAt(server)
	cluster.ProxyURL = proxy
	byKubeconfig := kube.Cluster{
		Kubeconfig: newKubeconfig(`{server: "`+server.URL+`", insecure-skip-tls-verify: true, proxy-url: "`+proxy+`"}`, `{token: t}`),
	}
	for name, cluster := range map[string]kube.Cluster{"a host": cluster, "a kubeconfig": byKubeconfig} {
		if found, err := askOne(t, cluster, time.Minute); err != nil || !slices.Equal(found, []string{"a"}) {
			t.Fatalf("%s: got %q: %v", name, found, err)
		}
		if got, want := <-requests, "CONNECT "+strings.TrimPrefix(server.URL, "https://")+" Basic bWU6Y2FuYXJ5"; got != want {
			t.Errorf("%s: the proxy received %q, want %q", name, got, want)
		}
	}
	cluster.Host = "https://127.0.0.1:1"
	if _, err := askOne(t, cluster, time.Minute); kube.ReasonOf(err) != kube.ReasonUnreachable || strings.Contains(err.Error(), "canary") {
		t.Errorf("the error is %v", err)
	}
}
