package discovery_test

import (
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/discovery"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/evidence"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/facts"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/webtest"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Main(m.Run)) }

const canary = "canary-secret-7f3a"

// profiles is a definition of ClusterProfile with the fields that Discover reads.
const profiles = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: clusterprofiles.multicluster.x-k8s.io, annotations: {api-approved.kubernetes.io: unapproved}}
spec:
  group: multicluster.x-k8s.io
  names: {kind: ClusterProfile, listKind: ClusterProfileList, plural: clusterprofiles, singular: clusterprofile}
  scope: Namespaced
  versions:
  - name: v1alpha1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, properties: {
      spec: {type: object, required: [clusterManager], properties: {clusterManager: {type: object, properties: {name: {type: string}}}, displayName: {type: string}}},
      status: {type: object, properties: {
        version: {type: object, properties: {kubernetes: {type: string}}},
        properties: {type: array, items: {type: object, required: [name, value], properties: {name: {type: string}, value: {type: string}}}},
        conditions: {type: array, items: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}}}}
`

// Discover reads the facts of a real API server, and names the missing rights.
func TestDiscoverReadsARealCluster(t *testing.T) {
	acceptancetest.Only(t)
	t.Parallel()
	server := kubetest.StartAnother(t, kubetest.Options{})
	server.Restore(t, `apiVersion: v1
kind: Node
metadata: {name: n1, labels: {topology.kubernetes.io/region: eu-1, topology.kubernetes.io/zone: eu-1a, kubernetes.io/hostname: n1}}
spec: {providerID: azure:///subscriptions/x}
status:
  capacity: {cpu: "4", memory: 16Gi, pods: "110"}
  allocatable: {cpu: 3900m, memory: 14Gi, pods: "110"}
  conditions: [{type: Ready, status: "True", lastTransitionTime: "2026-11-22T01:00:00Z", reason: KubeletReady, message: ""}]
  nodeInfo: {kubeletVersion: v1.31.2, osImage: Ubuntu, operatingSystem: linux, architecture: amd64, containerRuntimeVersion: "containerd://1.7.25",
    machineID: "", systemUUID: "", bootID: "", kernelVersion: "", kubeProxyVersion: ""}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: default, namespace: default}
---
apiVersion: v1
kind: Pod
metadata: {name: on-a-node, namespace: default}
spec: {nodeName: n1, automountServiceAccountToken: false, containers: [{name: a, image: a, resources: {requests: {cpu: 250m, memory: 1Gi}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: pending, namespace: default}
spec: {automountServiceAccountToken: false, containers: [{name: a, image: a, resources: {requests: {cpu: 250m, memory: 1Gi}}}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: nodes-only}
rules: [{apiGroups: [""], resources: [nodes], verbs: [list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: nodes-only}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: nodes-only}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: nodes-only}]
`)
	clusterAs := func(user string) kube.Cluster {
		certificate, key := server.ClientCertificate(t, user)
		return kube.Cluster{Host: server.Host, ClusterCACertificate: server.CA, ClientCertificate: certificate, ClientKey: key}
	}
	known, _, err := discovery.Discover(t.Context(), discovery.Question{
		Reach: map[string]kube.Cluster{
			"all":     {Host: server.Host, ClusterCACertificate: server.CA, Token: server.Token},
			"nodes":   clusterAs("nodes-only"),
			"nothing": clusterAs("nobody"),
		},
		Waiting: []string{"later"}, ReadyPercent: 100, Requested: true, Options: kube.QueryOptions{Deadline: time.Minute},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"all":     "ready 1 1 azure eu-1 map[cpu:0.25 memory:1.073741824e+09 pods:1] [] 1 node is ready",
		"nodes":   "ready 1 1 azure eu-1 <nil> [list pods] 1 node is ready; the credentials lack the right to list pods at cluster scope",
		"nothing": "unknown <nil> <nil> <nil> <nil> <nil> [list nodes list pods] the credentials lack the rights to list nodes and to list pods at cluster scope",
		"later":   "unknown <nil> <nil> <nil> <nil> <nil> [] the connection to the cluster is not known yet",
	} {
		found := known[name]
		got := fmt.Sprint(
			found.Verdict,
			" ",
			found.Facts["nodes"],
			" ",
			found.Facts["nodes_ready"],
			" ",
			found.Facts["provider"],
			" ",
			found.Facts["region"],
			" ",
			found.Facts["requested"],
			" ",
			found.Missing,
			" ",
			found.Message,
		)
		if got != want {
			t.Errorf("%s: got\n%s, want\n%s", name, got, want)
		}
		if version, _ := found.Facts["kubernetes_version"].(string); !strings.HasPrefix(version, "1.") && name != "later" {
			t.Errorf("%s: got the version %q", name, version)
		}
	}
}

// Discover finds the clusters that others registered on a real hub, without their credentials.
func TestClustersOfARealHub(t *testing.T) {
	acceptancetest.Only(t)
	t.Parallel()
	server := kubetest.StartAnother(t, kubetest.Options{})
	reach := kube.Cluster{Host: server.Host, ClusterCACertificate: server.CA, Token: server.Token}
	discoverHub := func(hub *discovery.Hub) (map[string]facts.KnownFacts, []string, error) {
		return discovery.Discover(t.Context(), discovery.Question{Hub: hub, ReadyPercent: 100, Options: kube.QueryOptions{Deadline: time.Minute}})
	}
	both := &discovery.Hub{Name: "hub", Reach: reach, ArgoCD: "argocd", ClusterProfiles: true}
	if known, _, err := discoverHub(both); err != nil || len(known) > 0 { // neither Argo CD nor ClusterProfiles
		t.Errorf("%v: %v", known, err)
	}
	data := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	server.Apply(t, profiles)
	server.Apply(t, `{apiVersion: v1, kind: Namespace, metadata: {name: argocd}}
---
apiVersion: v1
kind: Secret
metadata: {name: cluster-large, namespace: argocd, labels: {argocd.argoproj.io/secret-type: cluster, team: a}, annotations: {kubectl.kubernetes.io/last-applied-configuration: `+canary+`}}
data: {name: `+data("large-1")+`, server: `+data("https://large.example.com")+`, config: `+data(`{"bearerToken":"`+canary+`"}`)+`}
---
apiVersion: v1
kind: Secret
metadata: {name: repository, namespace: argocd, labels: {argocd.argoproj.io/secret-type: repository}}
data: {name: `+data("other")+`, password: `+data(canary)+`}
`)
	server.Restore(t, `apiVersion: multicluster.x-k8s.io/v1alpha1
kind: ClusterProfile
metadata: {name: edge-1, namespace: default, labels: {team: b}}
spec: {clusterManager: {name: ocm}}
status:
  version: {kubernetes: v1.31.2}
  properties: [{name: location, value: eu}]
  conditions: [{type: ControlPlaneHealthy, status: "True", lastTransitionTime: "2026-11-22T01:00:00Z", reason: Fine, message: ""}]
`)
	known, _, err := discoverHub(both)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%v", known["large-1"].Facts); got != "map[properties:map[] registered_labels:map[team:a] server:https://large.example.com]" {
		t.Errorf("%s", got)
	}
	if got := fmt.Sprintf("%v %s", known["edge-1"].Facts, known["edge-1"].Verdict); got != "map[kubernetes_minor:1.31 kubernetes_version:1.31.2 properties:map[location:eu] registered_labels:map[team:b]] ready" {
		t.Errorf("%s", got)
	}
	if len(known) != 2 || strings.Contains(fmt.Sprintf("%+v", known), canary) {
		t.Errorf("%+v", known)
	}
	certificate, key := server.ClientCertificate(t, "nobody")
	nobody := kube.Cluster{Host: server.Host, ClusterCACertificate: server.CA, ClientCertificate: certificate, ClientKey: key}
	for want, hub := range map[string]*discovery.Hub{
		"let these credentials list secrets (403 Forbidden)":                               {Name: "hub", Reach: nobody, ArgoCD: "argocd"},
		"let these credentials list clusterprofiles.multicluster.x-k8s.io (403 Forbidden)": {Name: "hub", Reach: nobody, ClusterProfiles: true},
	} {
		if _, _, err := discoverHub(hub); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// startServer starts an API server with a handler.
func startServer(t *testing.T, handler http.HandlerFunc) kube.Cluster {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	authority := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	return kube.Cluster{Host: server.URL, ClusterCACertificate: authority, Token: canary}
}

// Discover keeps the facts that a cluster reported before it fell silent, and the reason for the missing facts.
func TestAClusterThatFallsSilentIsUnknown(t *testing.T) {
	t.Parallel()
	answer := func(failure string) kube.Cluster {
		return startServer(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			switch {
			case r.URL.Path == "/version":
				fmt.Fprint(w, `{"gitVersion":"v1.31.2"}`)
			case failure == "unauthorized":
				w.WriteHeader(http.StatusUnauthorized)
			case failure == "no nodes":
				http.NotFound(w, r)
			case failure == "no pods" && r.URL.Path == "/api/v1/nodes":
				fmt.Fprint(w, `{"apiVersion":"v1","kind":"NodeList","items":[{"metadata":{"name":"a"}}]}`)
			default:
				<-r.Context().Done()
			}
		})
	}
	question := discovery.Question{
		Reach:        map[string]kube.Cluster{"gone": {Host: "https://127.0.0.1:1"}},
		ReadyPercent: 100, Requested: true,
	}
	for _, failure := range []string{"hangs", "unauthorized", "no nodes", "no pods"} {
		question.Reach[failure] = answer(failure)
	}
	webtest.GrowDeadline(t, func(deadline time.Duration) error {
		question.Options.Deadline = deadline
		known, _, err := discovery.Discover(t.Context(), question)
		for name, want := range map[string]string{
			"hangs":        "1.31.2 <nil> the API server did not answer within " + deadline.String(),
			"unauthorized": "1.31.2 <nil> the API server refuses the credentials (401 Unauthorized)",
			"no nodes":     "1.31.2 <nil> the API server has no nodes",
			"no pods":      "1.31.2 1 the API server did not answer within " + deadline.String(),
			"gone":         "<nil> <nil> the API server cannot be reached: dial 127.0.0.1:1: connect: connection refused",
		} {
			found := known[name]
			if got := fmt.Sprint(found.Facts["kubernetes_version"], " ", found.Facts["nodes"], " ", found.Message); got != want || found.Verdict != "unknown" {
				err = errors.Join(err, fmt.Errorf("%s is %s\n%s, want\n%s", name, found.Verdict, got, want))
			}
		}
		if strings.Contains(fmt.Sprintf("%+v", known), canary) {
			t.Error("the facts contain a credential")
		}
		return err
	})
}

// A slow cluster gets all requests at once: this one answers only after it has received all of them.
func TestASlowClusterGetsAllRequestsAtOnce(t *testing.T) {
	t.Parallel()
	for _, requested := range []bool{false, true} {
		var remaining sync.WaitGroup
		remaining.Add(map[bool]int{false: 2, true: 3}[requested])
		slow := startServer(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			remaining.Done()
			remaining.Wait()
			switch r.URL.Path {
			case "/version":
				fmt.Fprint(w, `{"gitVersion":"v1.31.2"}`)
			case "/api/v1/nodes":
				fmt.Fprint(w, `{"apiVersion":"v1","kind":"NodeList","items":[{"metadata":{"name":"a"}}]}`)
			default:
				w.WriteHeader(http.StatusForbidden)
				fmt.Fprint(w, `{"kind":"Status","code":403,"message":"no"}`)
			}
		})
		known, _, err := discovery.Discover(
			t.Context(),
			discovery.Question{Reach: map[string]kube.Cluster{"a": slow}, Requested: requested, Options: kube.QueryOptions{Deadline: time.Minute}},
		)
		if found := known["a"]; err != nil || fmt.Sprintf("%v %v", found.Facts["kubernetes_version"], found.Facts["nodes"]) != "1.31.2 1" ||
			(len(found.Missing) == 1) != requested {
			t.Errorf("%v: %+v", err, known)
		}
	}
}

// A silent hub is an error, because its clusters are unknown. Too many clusters and too long names are errors, too.
func TestAHubThatDoesNotAnswerIsAnError(t *testing.T) {
	t.Parallel()
	many := startServer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(
			w,
			`{"apiVersion":"v1","kind":"SecretList","items":[{"metadata":{"name":"a"}}`+strings.Repeat(`,{"metadata":{"name":"a"}}`, 20_001)+`]}`,
		)
	})
	strange := startServer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(
			w,
			`{"apiVersion":"v1","kind":"ClusterProfileList","items":[{"metadata":{"name":"`+strings.Repeat("x", 5000)+`"}}]}`,
		)
	})
	for want, reach := range map[string]kube.Cluster{
		`the hub "hub": the API server cannot be reached`:          {Host: "https://127.0.0.1:1"},
		`the hub "hub" has more than 20000 clusters`:               many,
		`the hub "hub": the API server does not answer like a Kub`: strange,
	} {
		_, _, err := discovery.Discover(
			t.Context(),
			discovery.Question{
				Hub:     &discovery.Hub{Name: "hub", Reach: reach, ArgoCD: "argocd", ClusterProfiles: reach == strange},
				Options: kube.QueryOptions{Deadline: 20 * time.Second},
			},
		)
		if err == nil || !strings.HasPrefix(err.Error(), want) || len(err.Error()) > 500 {
			t.Errorf("%.300v, want %s", err, want)
		}
	}
}

// Facts of a hostile cluster make a small document that can be parsed.
func TestFactsOfAHostileClusterAreBounded(t *testing.T) {
	t.Parallel()
	answer := func(nodes int, node func(i int) string) kube.Cluster {
		return startServer(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if r.URL.Path == "/version" {
				fmt.Fprint(w, `{"gitVersion":"v1.31.2"}`)
				return
			}
			_, _ = io.WriteString(w, `{"apiVersion":"v1","kind":"NodeList","items":[{"metadata":{"name":"first"}}`)
			for i := range nodes {
				_, _ = io.WriteString(w, ","+node(i))
			}
			_, _ = io.WriteString(w, `]}`)
		})
	}
	labels := func(int) string {
		var text strings.Builder
		for i := range 5_000 {
			fmt.Fprintf(&text, `,"label-%05d":"%s"`, i, strings.Repeat("v", 100))
		}
		return `{"metadata":{"name":"a","labels":{"a":"b"` + text.String() + `}},"status":{"capacity":{"a":"1"` + strings.ReplaceAll(
			text.String(),
			strings.Repeat("v", 100),
			"1",
		) + `}}}`
	}
	known, _, err := discovery.Discover(t.Context(), discovery.Question{
		Reach: map[string]kube.Cluster{
			"many nodes": answer(5_000, func(i int) string {
				return fmt.Sprintf(
					`{"metadata":{"name":"n%d","labels":{"topology.kubernetes.io/zone":"z%[1]d"}},"spec":{"providerID":"p%[1]d://x"},"status":{"nodeInfo":{"kubeletVersion":"v1.%[1]d.0","osImage":%[2]q}}}`,
					i,
					strings.Repeat("x", 900)+fmt.Sprint(i),
				)
			}),
			"many labels":    answer(3, labels),
			"too many nodes": answer(200_000, func(int) string { return `{"metadata":{"name":"a"}}` }),
		},
		ReadyPercent: 100, Options: kube.QueryOptions{Deadline: 5 * time.Minute},
	})
	if err != nil {
		t.Fatal(err)
	}
	document := evidence.Facts{Time: time.Unix(1, 0), Clusters: map[string]evidence.ClusterFacts{}}
	for name, found := range known {
		if document.Clusters[name] = found.ClusterFacts; len(found.Message) > 2000 {
			t.Errorf("%s: the message has %d bytes", name, len(found.Message))
		}
	}
	text := document.Marshal()
	if _, err := evidence.ParseFacts(text); err != nil || len(text) > 1<<20 {
		t.Errorf("the document has %d bytes: %v", len(text), err)
	}
	for name, want := range map[string]string{
		"many nodes":     "progressing 5001 of 5001 nodes are not ready: first, n0, n1 and 4998 more",
		"many labels":    "progressing 4 of 4 nodes are not ready: first, a, a and 1 more",
		"too many nodes": "unknown the API server has more nodes than can be read (200000 objects, 256 MiB)",
	} {
		if got := fmt.Sprint(known[name].Verdict, " ", known[name].Message); got != want {
			t.Errorf("%s: %.300s, want %s", name, got, want)
		}
	}
}
