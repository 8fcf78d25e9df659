package kube_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
)

// listNames returns the names of all Kustomizations.
func listNames(ctx context.Context, _ string, client *kube.ClusterClient) ([]string, error) {
	list, err := client.List(ctx, kustomizations, kube.ListOptions{})
	if err == nil && !list.Served {
		return []string{"(no such kind)"}, nil
	}
	var found []string
	for _, item := range list.Items {
		found = append(found, item.GetName())
	}
	return found, err
}

// The error comes after 4 s, long before the deadline.
func TestAServerThatAcceptsNoConnectionIsUnreachable(t *testing.T) {
	t.Parallel()
	_, err := askOne(t, kube.Cluster{Host: "https://" + listenSilently(t)}, time.Minute)
	if kube.ReasonOf(err) != kube.ReasonUnreachable || err.Error() != "the API server cannot be reached: no connection within 4s" {
		t.Errorf("the error is %v", err)
	}
}

// askOne returns the names of the Kustomizations of one cluster.
func askOne(t *testing.T, cluster kube.Cluster, deadline time.Duration) ([]string, error) {
	t.Helper()
	answer := kube.QueryAll(t.Context(), map[string]kube.Cluster{"one": cluster}, kube.QueryOptions{Deadline: deadline}, listNames)["one"]
	return answer.Value, answer.Err
}

func TestObjectsAreListed(t *testing.T) {
	t.Parallel()
	var agent, authorization atomic.Value
	server := startServer(t, func(w http.ResponseWriter, r *http.Request) {
		agent.Store(r.UserAgent())
		authorization.Store(r.Header.Get("Authorization"))
		if r.URL.Path != kustomizationsV1 || r.URL.Query().Get("limit") != "500" || r.Proto != "HTTP/1.1" {
			t.Errorf("got a request for %s by %s", r.URL, r.Proto)
		}
		answerList(w, "Kustomization", "kustomize.toolkit.fluxcd.io/v1", "", "b", "a")
	})
	found, err := askOne(t, clusterAt(server), time.Minute)
	if err != nil || !slices.Equal(found, []string{"a", "b"}) {
		t.Errorf("got %q: %v", found, err)
	}
	if agent.Load() != "terraform-provider-flotilla" || authorization.Load() != "Bearer canary-token-3f9a" {
		t.Errorf("got the user agent %q and the authorization %q", agent.Load(), authorization.Load())
	}
}

// A wrong answer of a server is an error with a reason in plain words, never a value.
func TestAWrongAnswerHasAReason(t *testing.T) {
	t.Parallel()
	text := func(kind, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			fmt.Fprint(w, body)
		}
	}
	asJSON := func(body string) http.HandlerFunc { return text("application/json", body) }
	status := func(code int, message string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { answerStatus(w, code, message, "") }
	}
	const head = `{"kind":"KustomizationList","apiVersion":"kustomize.toolkit.fluxcd.io/v1","metadata":{},`
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		reason kube.Reason
		want   string
	}{
		"401":                          {status(401, "Unauthorized"), kube.ReasonUnauthorized, "the API server refuses the credentials (401 Unauthorized)"},
		"403":                          {status(403, `User "flotilla" cannot list`), kube.ReasonForbidden, `the API server does not let these credentials list kustomizations.kustomize.toolkit.fluxcd.io (403 Forbidden): User "flotilla" cannot list`},
		"403, a secret in its message": {status(403, "no canary-token-3f9a"), kube.ReasonForbidden, `the API server does not let these credentials list kustomizations.kustomize.toolkit.fluxcd.io (403 Forbidden): no ***`},
		"500":                          {status(500, "etcd is gone"), kube.ReasonServer, "the API server answers 500 Internal Server Error: etcd is gone"},
		"429":                          {status(429, "too many"), kube.ReasonServer, "the API server answers 429 Too Many Requests: too many"},
		"400":                          {status(400, "bad"), kube.ReasonServer, "the API server answers 400 Bad Request: bad"},
		"400, not of Kubernetes": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "canary-token-3f9a", 400) }, kube.ReasonGarbage,
			"the API server answers 400 Bad Request, which is not the answer of a Kubernetes API server; check its URL"},
		"502 of a proxy": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "<html>", http.StatusBadGateway) }, kube.ReasonServer, "the API server answers 502 Bad Gateway"},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://evil.example/x", http.StatusFound)
		}, kube.ReasonUnreachable, `the API server redirects to "https://evil.example", and redirects are not followed; the host must be the URL of the API server itself`},
		"a redirect to nowhere":  {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(302) }, kube.ReasonUnreachable, "the API server redirects, and redirects"},
		"a web page":             {text("text/html", "<html>"), kube.ReasonGarbage, "the API server does not answer like a Kubernetes API server; check its URL"},
		"404 of a web server":    {func(w http.ResponseWriter, _ *http.Request) { http.NotFound(w, nil) }, kube.ReasonGarbage, "the API server does not answer like"},
		"404, a web page":        {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "<html>", 404) }, kube.ReasonGarbage, "the API server answers 404 Not Found, which is not"},
		"garbage":                {asJSON("garbage"), kube.ReasonGarbage, "the API server does not answer like"},
		"a list":                 {asJSON("[]"), kube.ReasonGarbage, "the API server does not answer like"},
		"an empty object":        {asJSON("{}"), kube.ReasonGarbage, "the API server does not answer like"},
		"another kind":           {asJSON(`{"kind":"Status","apiVersion":"v1","status":"Failure"}`), kube.ReasonGarbage, "the API server does not answer like"},
		"invalid items":          {asJSON(head + `"items":{}}`), kube.ReasonGarbage, "the API server does not answer like"},
		"an invalid item":        {asJSON(head + `"items":[5]}`), kube.ReasonGarbage, "the API server does not answer like"},
		"an item without a name": {asJSON(head + `"items":[{}]}`), kube.ReasonGarbage, "the API server does not answer like"},
		"invalid metadata":       {asJSON(head + `"metadata":5}`), kube.ReasonGarbage, "the API server does not answer like"},
		"half of a list":         {asJSON(head + `"items":[{"metadata":{"name":"a"}},{"meta`), kube.ReasonIncomplete, "the API server closed the connection in the middle of its answer"},
		"a list without its end": {asJSON(head + `"items":[{"metadata":{"name":"a"}}]`), kube.ReasonIncomplete, "the API server closed the connection in the middle of its answer"},
		"nothing":                {asJSON(""), kube.ReasonIncomplete, "the API server closed the connection in the middle of its answer"},
		"a connection that ends": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, kube.ReasonIncomplete, "the API server closed the connection before it answered"},
		"a body that ends": {func(w http.ResponseWriter, r *http.Request) {
			asJSON(head+`"items":[`)(w, r)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, kube.ReasonIncomplete, "the API server closed the connection in the middle of its answer"},
		"pages that never end":    {func(w http.ResponseWriter, _ *http.Request) { answerList(w, "Kustomization", "v1", "again", "a") }, kube.ReasonGarbage, "the API server lists kustomizations.kustomize.toolkit.fluxcd.io in too many pages"},
		"a list that always ends": {status(410, "expired"), kube.ReasonServer, "the API server does not finish a list"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, err := askOne(t, clusterAt(startServer(t, c.answer)), time.Minute)
			if err == nil || kube.ReasonOf(err) != c.reason || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got %q, error %v, reason %q; want %q: %q", found, err, kube.ReasonOf(err), c.reason, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "canary") {
				t.Errorf("the error contains the secret: %v", err)
			}
		})
	}
}

func TestARedirectDoesNotSendTheToken(t *testing.T) {
	t.Parallel()
	var wasRequested atomic.Bool
	other := startServer(t, func(http.ResponseWriter, *http.Request) { wasRequested.Store(true) })
	server := startServer(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
	})
	if _, err := askOne(t, clusterAt(server), time.Minute); kube.ReasonOf(err) != kube.ReasonUnreachable || wasRequested.Load() {
		t.Errorf("the other server received a request: %t; error %v", wasRequested.Load(), err)
	}
}

func TestAClusterWithoutTheKindIsNoError(t *testing.T) {
	t.Parallel()
	for name, missing := range map[string]http.HandlerFunc{
		"an unserved group": func(w http.ResponseWriter, _ *http.Request) { http.NotFound(w, nil) },
		"a status": func(w http.ResponseWriter, _ *http.Request) {
			answerStatus(w, 404, "the server could not find the requested resource", "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := startServer(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/version" {
					answerVersion(w)
					return
				}
				missing(w, r)
			})
			found, err := askOne(t, clusterAt(server), time.Minute)
			if err != nil || !slices.Equal(found, []string{"(no such kind)"}) {
				t.Errorf("got %q: %v", found, err)
			}
		})
	}
}

func TestTheFirstServedVersionIsUsed(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	server := startServer(t, func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		if !strings.Contains(r.URL.Path, "/v1beta2/") {
			http.NotFound(w, r)
			return
		}
		answerList(w, "Kustomization", "kustomize.toolkit.fluxcd.io/v1beta2", "", "a")
	})
	answer := kube.QueryAll(t.Context(), map[string]kube.Cluster{"one": clusterAt(server)}, kube.QueryOptions{}, func(ctx context.Context, _ string, client *kube.ClusterClient) (string, error) {
		first, err := client.List(ctx, kustomizations, kube.ListOptions{})
		if err != nil {
			return "", err
		}
		second, err := client.List(ctx, kustomizations, kube.ListOptions{Namespace: "flux-system", LabelSelector: "a=b"})
		return first.Version + " " + second.Version, err
	})["one"]
	if answer.Err != nil || answer.Value != "v1beta2 v1beta2" || requests.Load() != 3 {
		t.Errorf("got %v after %d requests", answer, requests.Load())
	}
}

// All requests to a cluster use one connection.
func TestAClusterIsAskedOverOneConnection(t *testing.T) {
	t.Parallel()
	var connections atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != kustomizationsV1:
			answerStatus(w, http.StatusNotFound, "no such thing", "x")
		case r.URL.Query().Get("continue") == "":
			answerList(w, "Kustomization", "v1", "2", "a")
		default:
			answerList(w, "Kustomization", "v1", "", "b")
		}
		fmt.Fprintln(w)
		w.(http.Flusher).Flush() // in chunks, like a real server
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.StartTLS()
	defer server.Close()
	answer := kube.QueryAll(t.Context(), map[string]kube.Cluster{"one": clusterAt(server)}, kube.QueryOptions{}, func(ctx context.Context, _ string, client *kube.ClusterClient) (int, error) {
		list, err := client.List(ctx, kustomizations, kube.ListOptions{})
		if err == nil {
			_, err = client.Read(ctx, kube.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "a", Name: "x"})
		}
		return len(list.Items), err
	})["one"]
	if answer.Err != nil || answer.Value != 2 || connections.Load() != 1 {
		t.Errorf("got %v after %d connections", answer, connections.Load())
	}
}

// If the token of a page has expired, the list begins again.
func TestAListIsReadInPages(t *testing.T) {
	t.Parallel()
	for name, expires := range map[string]int32{"no expired page": 0, "one expired page": 1, "only expired pages": 100} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var expired atomic.Int32
			server := startServer(t, func(w http.ResponseWriter, r *http.Request) {
				query := r.URL.Query()
				if query.Get("labelSelector") != "flotilla.dev/owner=dev" || query.Get("fieldSelector") != "metadata.name!=d" {
					t.Errorf("got a request for %s", r.URL)
				}
				switch {
				case query.Get("limit") == "":
					answerList(w, "Kustomization", "v1", "", "a", "b", "c")
				case query.Get("continue") == "":
					answerList(w, "Kustomization", "v1", "2", "c")
				case query.Get("continue") == "2":
					answerList(w, "Kustomization", "v1", "3", "b")
				case expired.Add(1) <= expires:
					answerStatus(w, 410, "The provided continue parameter is too old", "")
				default:
					answerList(w, "Kustomization", "v1", "", "a")
				}
			})
			answer := kube.QueryAll(t.Context(), map[string]kube.Cluster{"one": clusterAt(server)}, kube.QueryOptions{}, func(ctx context.Context, _ string, client *kube.ClusterClient) (string, error) {
				options := kube.ListOptions{LabelSelector: "flotilla.dev/owner=dev", FieldSelector: "metadata.name!=d"}
				list, err := client.List(ctx, kustomizations, options)
				var found strings.Builder
				for _, item := range list.Items {
					found.WriteString(item.GetName())
					if item.GetManagedFields() != nil || item.Object["spec"].(map[string]any)["n"] != int64(1) {
						t.Errorf("got the item %v", item)
					}
				}
				expired.Store(0)
				var folded int
				options.Fold = func() func(*unstructured.Unstructured) {
					folded = 0
					return func(item *unstructured.Unstructured) {
						folded++
						if spec := item.Object["spec"].(map[string]any); len(spec) > 0 || item.GetManagedFields() != nil {
							t.Errorf("a skipped field is in %v", item)
						}
					}
				}
				options.Skip = map[string][]string{"spec": {"n"}}
				if list, err := client.List(ctx, kustomizations, options); err != nil || folded != 3 || !list.Served || len(list.Items) > 0 {
					t.Errorf("%d objects are folded, %d are kept: %v", folded, len(list.Items), err)
				}
				return found.String(), err
			})["one"]
			if answer.Err != nil || answer.Value != "abc" {
				t.Errorf("got %v", answer)
			}
		})
	}
}

// A query repeats a request that the server answers with 429 Too Many Requests.
func TestABusyServerIsAskedAgain(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	server := startServer(t, func(w http.ResponseWriter, _ *http.Request) {
		if requests.Add(1) < 3 {
			w.Header().Set("Retry-After", "0")
			answerStatus(w, 429, "too many requests", "")
			return
		}
		answerList(w, "Kustomization", "v1", "", "a")
	})
	if found, err := askOne(t, clusterAt(server), time.Minute); err != nil || len(found) != 1 {
		t.Errorf("got %q: %v", found, err)
	}
}

func TestCancellationEndsAllQueries(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	server := startServer(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	answers := kube.QueryAll(ctx, map[string]kube.Cluster{"a": clusterAt(server), "b": clusterAt(server)}, kube.QueryOptions{Parallel: 1}, listNames)
	for name, answer := range answers {
		if kube.ReasonOf(answer.Err) != kube.ReasonCanceled || !errors.Is(answer.Err, context.Canceled) {
			t.Errorf("%s: %v", name, answer.Err)
		}
	}
}

func TestErrorsOfTheCallerHideSecrets(t *testing.T) {
	t.Parallel()
	server := startServer(t, func(http.ResponseWriter, *http.Request) {})
	answer := kube.QueryAll(t.Context(), map[string]kube.Cluster{"a": clusterAt(server)}, kube.QueryOptions{}, func(context.Context, string, *kube.ClusterClient) (int, error) {
		return 5, errors.New("no canary-token-3f9a")
	})["a"]
	if answer.Value != 5 || answer.Err == nil || answer.Err.Error() != "no ***" || kube.ReasonOf(answer.Err) != kube.ReasonOther {
		t.Errorf("got %v", answer)
	}
}

// Secrets in the message of a server are hidden before the message is shortened, also in errors that the caller formats.
func TestNoPartOfASecretIsShown(t *testing.T) {
	t.Parallel()
	for length := 270; length < 310; length++ {
		server := startServer(t, func(w http.ResponseWriter, _ *http.Request) {
			answerStatus(w, http.StatusForbidden, strings.Repeat("x", length)+"canary-token-3f9a", "")
		})
		answer := kube.QueryAll(t.Context(), map[string]kube.Cluster{"a": clusterAt(server)}, kube.QueryOptions{}, func(ctx context.Context, _ string, client *kube.ClusterClient) (string, error) {
			_, err := client.List(ctx, kustomizations, kube.ListOptions{})
			_, getErr := client.Read(ctx, kube.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "a", Name: "b"})
			return fmt.Sprintf("%v %+v %#v %v", err, err, err, getErr), err
		})["a"]
		if kube.ReasonOf(answer.Err) != kube.ReasonForbidden || strings.Contains(answer.Value+answer.Err.Error(), "can") {
			t.Fatalf("got %v", answer)
		}
	}
}

func TestOneObjectIsRead(t *testing.T) {
	t.Parallel()
	server := startServer(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/version":
			answerVersion(w)
		case "/api/v1":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"kind":"APIResourceList","resources":[{"name":"configmaps","kind":"ConfigMap","namespaced":true}]}`)
		case "/api/v1/namespaces/a/configmaps/x":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"a"}}`)
		case "/api/v1/namespaces/a/configmaps/page":
			fmt.Fprint(w, `<html>`)
		case "/api/v1/namespaces/a/configmaps/forbidden":
			answerStatus(w, 403, `User "x" cannot get it`, "forbidden")
		case "/api/v1/namespaces/a/configmaps/gone":
			answerStatus(w, 404, `configmaps "gone" not found`, "gone")
		default:
			http.NotFound(w, r)
		}
	})
	for _, c := range []struct {
		apiVersion, kind, name string
		exists                 bool
		want                   string
	}{
		{"v1", "ConfigMap", "x", true, ""},
		{"v1", "ConfigMap", "gone", false, ""},
		{"argoproj.io/v1alpha1", "Application", "x", false, ""},
		{"v1", "ConfigMap", "forbidden", false, `does not let these credentials get ConfigMap a/forbidden (403 Forbidden): User "x" cannot get it`},
		{"v1", "ConfigMap", "page", false, "does not answer like"},
	} {
		answer := kube.QueryAll(t.Context(), map[string]kube.Cluster{"a": clusterAt(server)}, kube.QueryOptions{}, func(ctx context.Context, _ string, client *kube.ClusterClient) (bool, error) {
			object, err := client.Read(ctx, kube.Ref{APIVersion: c.apiVersion, Kind: c.kind, Namespace: "a", Name: c.name})
			return object != nil, err
		})["a"]
		if answer.Value != c.exists || (answer.Err == nil) != (c.want == "") ||
			answer.Err != nil && !strings.Contains(answer.Err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, answer, c.want)
		}
	}
}

// A version is one line. A server without a version is no API server.
func TestTheVersionOfAServer(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"gitVersion":"v1.31.2"}`:           "v1.31.2",
		`{"gitVersion":"v1.31.2\nError: x"}`: "does not answer like a Kubernetes API server",
		`{}`:                                 "does not answer like a Kubernetes API server",
		`[]`:                                 "does not answer like a Kubernetes API server",
	} {
		server := startServer(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, body)
		})
		answer := kube.QueryAll(t.Context(), map[string]kube.Cluster{"one": clusterAt(server)}, kube.QueryOptions{}, func(ctx context.Context, _ string, client *kube.ClusterClient) (string, error) {
			return client.ServerVersion(ctx)
		})["one"]
		if got := fmt.Sprint(answer.Value, answer.Err); !strings.Contains(got, want) {
			t.Errorf("%s: %s", body, got)
		}
	}
}
