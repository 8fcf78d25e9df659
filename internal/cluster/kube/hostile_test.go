package kube_test

import (
	"cmp"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
)

// maxHeap is the maximum growth of the heap that an answer may cause.
const maxHeap = 700 << 20

// measureCost runs a function and returns its time and the peak growth of the heap.
func measureCost(do func()) (took time.Duration, heap uint64) {
	defer debug.SetGCPercent(debug.SetGCPercent(100)) // `make test` sets a higher value
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var peak atomic.Uint64
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-done:
				return
			case <-time.After(10 * time.Millisecond):
				runtime.ReadMemStats(&now)
				peak.Store(max(peak.Load(), now.HeapAlloc))
			}
		}
	}()
	start := time.Now()
	do()
	took = time.Since(start)
	close(done)
	<-stopped
	return took, max(peak.Load(), before.HeapAlloc) - before.HeapAlloc
}

// countingWriter counts the bytes of an answer.
type countingWriter struct {
	http.ResponseWriter
	sent *atomic.Int64
}

func (c countingWriter) Write(text []byte) (int, error) {
	n, err := c.ResponseWriter.Write(text)
	c.sent.Add(int64(n))
	return n, err
}

// repeatText writes a text until size bytes are written or the client closes the connection.
func repeatText(w io.Writer, text string, size int) {
	text = strings.Repeat(text, max(1, (64<<10)/len(text)))
	for ; size > 0; size -= len(text) {
		if _, err := io.WriteString(w, text); err != nil {
			return
		}
	}
}

// Endless and huge answers of a cluster cost bounded time and memory. They are an error of that cluster.
func TestAHostileClusterIsBounded(t *testing.T) { // not parallel, because it measures the heap
	if testing.Short() {
		t.Skip("reads gigabytes, which takes the race detector minutes")
	}
	const gigabyte = 1 << 30
	list := func(ctx context.Context, client *kube.ClusterClient) error {
		_, err := client.List(ctx, kustomizations, kube.ListOptions{})
		return err
	}
	trimmed := func(ctx context.Context, client *kube.ClusterClient) error {
		_, err := client.List(ctx, kustomizations, kube.ListOptions{Skip: map[string][]string{"": {"data"}}})
		return err
	}
	folded := func(ctx context.Context, client *kube.ClusterClient) error {
		_, err := client.List(
			ctx,
			kustomizations,
			kube.ListOptions{Fold: func() func(*unstructured.Unstructured) { return func(*unstructured.Unstructured) {} }},
		)
		return err
	}
	read := func(ctx context.Context, client *kube.ClusterClient) error {
		_, err := client.Read(ctx, kube.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "a", Name: "b"})
		return err
	}
	resources := func(ctx context.Context, client *kube.ClusterClient) error {
		_, _, err := client.Resources(ctx)
		return err
	}
	const kinds = `{"kind":"APIResourceList","resources":[{"name":"configmaps","kind":"ConfigMap","namespaced":true,"verbs":["list"]}]}`
	for _, c := range []struct {
		name   string
		query  func(context.Context, *kube.ClusterClient) error
		answer func(w io.Writer, r *http.Request, requests int64)
		gzip   bool
		// deadline is one minute by default.
		deadline time.Duration
		want     string // part of the error
		// hasEquivalent marks an answer that another case, TestAnAnswerIsBounded or discovery.TestFactsOfAHostileClusterAreBounded
		// also covers.
		hasEquivalent bool
	}{
		{name: "one object of a gigabyte", query: read, want: "can be read", answer: func(w io.Writer, r *http.Request, _ int64) {
			if r.URL.Path == "/api/v1" {
				_, _ = io.WriteString(w, kinds)
				return
			}
			_, _ = io.WriteString(w, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"},"data":{"x":"`)
			repeatText(w, "x", gigabyte)
		}},
		{name: "one object of many members", hasEquivalent: true, query: read, want: "can be read", answer: func(w io.Writer, r *http.Request, _ int64) {
			if r.URL.Path == "/api/v1" {
				_, _ = io.WriteString(w, kinds)
				return
			}
			_, _ = io.WriteString(w, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"},"data":[`)
			repeatText(w, "{},", gigabyte)
		}},
		{name: "one object of a gigabyte in a list", hasEquivalent: true, query: list, want: "can be read", answer: func(w io.Writer, _ *http.Request, _ int64) {
			_, _ = io.WriteString(w, `{"apiVersion":"v1","kind":"KustomizationList","items":[{"metadata":{"name":"b"},"data":{"x":"`)
			repeatText(w, "x", gigabyte)
		}},
		{name: "pages of numbers without end", query: list, want: "can be read", answer: func(w io.Writer, _ *http.Request, requests int64) {
			fmt.Fprintf(w, `{"apiVersion":"v1","kind":"KustomizationList","metadata":{"continue":"%d"},"items":[{"metadata":{"name":"b"},"data":[`, requests)
			repeatText(w, "1,", 1<<20) // each weighs 32 bytes
			_, _ = io.WriteString(w, `1]}]}`)
		}},
		{name: "pages of text without end", hasEquivalent: true, query: list, want: "can be read", answer: func(w io.Writer, _ *http.Request, requests int64) {
			fmt.Fprintf(w, `{"apiVersion":"v1","kind":"KustomizationList","metadata":{"continue":"%d"},"items":[{"metadata":{"name":"b"},"data":{"x":"`, requests)
			repeatText(w, "x", 1<<20)
			_, _ = io.WriteString(w, `"}}]}`)
		}},
		{name: "pages of trimmed objects without end", query: trimmed, deadline: 500 * time.Millisecond, want: "did not answer", answer: func(w io.Writer, _ *http.Request, requests int64) {
			fmt.Fprintf(w, `{"apiVersion":"v1","kind":"KustomizationList","metadata":{"continue":"%d"},"items":[{"metadata":{"name":"b"},"data":{"x":"`, requests)
			repeatText(w, "x", 1<<20)
			_, _ = io.WriteString(w, `"}}]}`)
		}},
		{name: "many folded objects", hasEquivalent: true, query: folded, want: "can be read", answer: func(w io.Writer, _ *http.Request, _ int64) {
			_, _ = io.WriteString(w, `{"apiVersion":"v1","kind":"KustomizationList","items":[`)
			repeatText(w, `{"metadata":{"name":"b"},"data":{"x":[{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}]}},`, gigabyte)
		}},
		{name: "a token of a gigabyte", hasEquivalent: true, query: list, want: "can be read", answer: func(w io.Writer, _ *http.Request, _ int64) {
			_, _ = io.WriteString(w, `{"apiVersion":"v1","kind":"KustomizationList","metadata":{"continue":"`)
			repeatText(w, "x", gigabyte)
		}},
		{name: "a gigabyte in a megabyte", query: list, gzip: true, want: "can be read", answer: func(w io.Writer, _ *http.Request, _ int64) {
			_, _ = io.WriteString(w, `{"apiVersion":"v1","kind":"KustomizationList","items":[{"metadata":{"name":"b"},"data":{"x":"`)
			repeatText(w, "x", gigabyte)
		}},
		{name: "kinds without end", query: resources, want: "can be read", answer: func(w io.Writer, r *http.Request, _ int64) {
			if r.URL.Path == "/apis" {
				_, _ = io.WriteString(w, `{"kind":"APIGroupList","groups":[{}`)
				for i := range 100_000 {
					fmt.Fprintf(w, `,{"preferredVersion":{"groupVersion":"g%d/v1"}}`, i)
				}
				_, _ = io.WriteString(w, `]}`)
				return
			}
			_, _ = io.WriteString(w, `{"kind":"APIResourceList","resources":[{"name":"a","kind":"A","verbs":["list"]}`)
			for i := range 10_000 {
				fmt.Fprintf(w, `,{"name":"a%d","kind":"A%d","verbs":["list"]}`, i, i)
			}
			_, _ = io.WriteString(w, `]}`)
		}},
		{name: "objects in objects", query: read, want: "", answer: func(w io.Writer, r *http.Request, _ int64) {
			if r.URL.Path == "/api/v1" {
				_, _ = io.WriteString(w, kinds)
				return
			}
			_, _ = io.WriteString(w, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"},"data":`+strings.Repeat(`{"a":`, 9_000)+"1"+strings.Repeat("}", 9_001))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.hasEquivalent {
				acceptancetest.Only(t)
			}
			var sent, requests atomic.Int64
			server := startServer(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				writer := io.Writer(countingWriter{w, &sent})
				if c.gzip {
					w.Header().Set("Content-Encoding", "gzip")
					compressed := gzip.NewWriter(writer)
					defer compressed.Close()
					writer = compressed
				}
				c.answer(writer, r, requests.Add(1))
			})
			var err error
			took, heap := measureCost(func() { err = queryHostile(t, server, c.deadline, c.query) })
			t.Logf("%d MiB sent, %d MiB of heap, %s: %v", sent.Load()>>20, heap>>20, took.Round(time.Millisecond), err)
			if heap > maxHeap || took > time.Minute {
				t.Errorf("%d MiB of heap, %s", heap>>20, took)
			}
			if err != nil && (len(err.Error()) > 1000 || !strings.Contains(err.Error(), c.want)) || err == nil && c.want != "" {
				t.Errorf("the error is %.1000v, want %q", err, c.want)
			}
		})
	}
}

// queryHostile queries one cluster.
func queryHostile(t *testing.T, server *httptest.Server, deadline time.Duration, query func(context.Context, *kube.ClusterClient) error) error {
	t.Helper()
	return kube.QueryAll(t.Context(), map[string]kube.Cluster{"one": clusterAt(server)}, kube.QueryOptions{Deadline: cmp.Or(deadline, time.Minute)},
		func(ctx context.Context, _ string, client *kube.ClusterClient) (struct{}, error) {
			return struct{}{}, query(ctx, client)
		})["one"].Err
}

// Texts of a cluster contain no control characters and are short enough for a state.
func TestTextsOfAClusterArePrintable(t *testing.T) {
	t.Parallel()
	const evil = `\u001b[2J\u202eApply complete!\u0007`
	object := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b","namespace":"a","labels":{"` + evil + `":"` + evil + `"}},"data":{"` + evil + `":"` + evil + `","lines":"a\nb\tc"},"status":{"conditions":[{"message":"` + evil + `"}]}}`
	for name, c := range map[string]struct {
		code int
		body string
	}{
		"an object":    {http.StatusOK, object},
		"a refusal":    {http.StatusForbidden, `{"kind":"Status","message":"User ` + evil + strings.Repeat("x", 60_000) + `"}`},
		"a conflict":   {http.StatusConflict, `{"kind":"Status","reason":"Conflict","details":{"causes":[{"reason":"FieldManagerConflict","message":"conflict with \"` + evil + `\" using v1","field":".` + evil + `"}]}}`},
		"another name": {http.StatusOK, strings.Replace(object, `"name":"b"`, `"name":"b\nError: x"`, 1)},
		"a long uid":   {http.StatusOK, strings.Replace(object, `"name":"b"`, `"name":"b","uid":"`+strings.Repeat("x", 100_000)+`"`, 1)},
		"HTML":         {http.StatusInternalServerError, `<html><script>alert(1)</script>` + "\x1b[2J"},
	} {
		server := startServer(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			switch {
			case r.URL.Path == "/api/v1":
				fmt.Fprint(w, `{"kind":"APIResourceList","resources":[{"name":"configmaps","kind":"ConfigMap","namespaced":true,"verbs":["list"]}]}`)
			case r.URL.Path == "/api/v1/configmaps" && c.code == http.StatusOK:
				fmt.Fprintf(w, `{"apiVersion":"v1","kind":"ConfigMapList","items":[%s]}`, c.body)
			default:
				w.WriteHeader(c.code)
				fmt.Fprint(w, c.body)
			}
		})
		var texts []string
		ref := kube.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "a", Name: "b"}
		err := queryHostile(t, server, 0, func(ctx context.Context, client *kube.ClusterClient) error {
			read, err := client.Read(ctx, ref)
			listed, listErr := client.List(ctx, kube.ResourceKind{Versions: "v1", Resource: "configmaps"}, kube.ListOptions{})
			applied, applyErr := client.Apply(
				ctx,
				&unstructured.Unstructured{
					Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "b", "namespace": "a"}},
				},
				kube.ApplyOptions{},
			)
			texts = append(
				texts,
				fmt.Sprint(read),
				fmt.Sprint(listed.Items),
				fmt.Sprint(applied.Object),
				fmt.Sprint(err),
				fmt.Sprint(listErr),
				fmt.Sprint(applyErr),
				fmt.Sprint(kube.ConflictsOf(applyErr)),
			)
			if name == "an object" &&
				(err != nil || listErr != nil || applyErr != nil || read.Object["data"].(map[string]any)["lines"] != "a\nb\tc") {
				t.Errorf("%s: %v, %v, %v: %v", name, err, listErr, applyErr, read)
			}
			if (name == "another name" || name == "a long uid") && (err == nil || listErr == nil || applyErr == nil) {
				t.Errorf("%s: got %v, %v, %v, want errors", name, err, listErr, applyErr)
			}
			return err
		})
		for _, text := range append(texts, fmt.Sprint(err)) {
			if strings.ContainsAny(text, "\x1b\x07\u202e") || len(text) > 2000 {
				t.Errorf("%s: got %.300q, %d bytes", name, text, len(text))
			}
		}
	}
}
