package facts_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/evidence"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/facts"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

func parseObject(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	content, err := yaml.YAMLToJSON([]byte(text))
	object := &unstructured.Unstructured{}
	if err == nil {
		err = object.UnmarshalJSON(content)
	}
	if err != nil {
		t.Fatal(err, text)
	}
	return object
}

// newNode returns a node with 4 cores. further adds labels; the value "-" removes one.
func newNode(t testing.TB, name, ready, zone string, further map[string]string) *unstructured.Unstructured {
	t.Helper()
	node := parseObject(t, fmt.Sprintf(`{apiVersion: v1, kind: Node, metadata: {name: %s}, spec: {providerID: "aws:///eu-1a/i-1"}, status: {
  capacity: {cpu: "4", memory: 8Gi, pods: "110", nvidia.com/gpu: "1"}, allocatable: {cpu: 3920m, memory: 7Gi, pods: "110"},
  conditions: [{type: MemoryPressure, status: "False"}, {type: Ready, status: %q, lastTransitionTime: "2026-11-22T0%d:00:00Z"}],
  nodeInfo: {kubeletVersion: v1.31.2, osImage: Ubuntu 22.04.5 LTS, operatingSystem: linux, architecture: amd64, containerRuntimeVersion: containerd://1.7.25}}}`,
		name, ready, len(name)))
	labels := map[string]string{
		"kubernetes.io/hostname": name, "topology.kubernetes.io/region": "eu-1", "topology.kubernetes.io/zone": zone, "kubernetes.io/arch": "amd64", "named": name, "empty": "",
	}
	for key, value := range further {
		if labels[key] = value; value == "-" {
			delete(labels, key)
		}
	}
	node.SetLabels(labels)
	return node
}

func TestFactsOfNodes(t *testing.T) {
	t.Parallel()
	nodes := facts.NewNodes()
	nodes.Add(newNode(t, "n1", "True", "eu-1b", map[string]string{"pool": "a"}))
	other := newNode(t, "n22", "True", "eu-1a", map[string]string{"pool": "b"})
	_ = unstructured.SetNestedField(other.Object, "v1.9.11", "status", "nodeInfo", "kubeletVersion")
	_ = unstructured.SetNestedField(other.Object, "arm64", "status", "nodeInfo", "architecture")
	nodes.Add(other)
	known := (&facts.OwnFacts{Version: "v1.31.2-eks-abc", Nodes: nodes}).Known(100)
	want := map[string]any{
		"kubernetes_version": "1.31.2-eks-abc", "kubernetes_minor": "1.31", "nodes": 2.0, "nodes_ready": 2.0, "node_versions": []any{"1.9.11", "1.31.2"},
		"os_images": []any{
			"Ubuntu 22.04.5 LTS",
		}, "operating_systems": []any{"linux"}, "architectures": []any{"amd64", "arm64"}, "container_runtimes": []any{"containerd://1.7.25"},
		"provider": "aws", "region": "eu-1", "zones": []any{"eu-1a", "eu-1b"},
		"capacity":    map[string]any{"cpu": 8.0, "memory": float64(16 << 30), "pods": 220.0, "nvidia.com/gpu": 2.0},
		"allocatable": map[string]any{"cpu": 7.84, "memory": float64(14 << 30), "pods": 220.0},
		"labels":      map[string]any{"topology.kubernetes.io/region": "eu-1", "kubernetes.io/arch": "amd64", "empty": ""},
	}
	for name, value := range want {
		if !reflect.DeepEqual(known.Facts[name], value) {
			t.Errorf("%s is %v, want %v", name, known.Facts[name], value)
		}
	}
	if len(known.Facts) != len(want) {
		t.Errorf("%v", known.Facts)
	}
	if known.Verdict != verdict.Ready || known.Since.Hour() != 3 || known.Message != "2 nodes are ready" {
		t.Errorf("%+v", known.Status)
	}
}

// If nodes disagree, the fact is empty. A node without labels or provider, such as a new node, does not count.
func TestFactsOfDisagreeingNodesAreEmpty(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		labels                       map[string]string
		id, wantRegion, wantProvider string
	}{
		{nil, "", "eu-1", "aws"},
		{map[string]string{"topology.kubernetes.io/region": ""}, "manual", "eu-1", "aws"},
		{map[string]string{"topology.kubernetes.io/region": "us-1"}, "gce://x", "", ""},
	} {
		nodes := facts.NewNodes()
		nodes.Add(newNode(t, "n1", "True", "a", nil))
		node := newNode(t, "n2", "True", "a", nil)
		node.SetLabels(test.labels)
		_ = unstructured.SetNestedField(node.Object, test.id, "spec", "providerID")
		nodes.Add(node)
		got := (&facts.OwnFacts{Nodes: nodes}).Known(100).Facts
		if got["region"] != test.wantRegion || got["provider"] != test.wantProvider || len(got["labels"].(map[string]any)) != 0 {
			t.Errorf("%v, %s: %v", test.labels, test.id, got)
		}
		if _, known := got["kubernetes_version"]; known {
			t.Errorf("%v", got)
		}
	}
	one := facts.NewNodes()
	one.Add(newNode(t, "n1", "True", "a", nil))
	if labels := fmt.Sprint((&facts.OwnFacts{Nodes: one}).Known(100).Facts["labels"]); labels != "map[empty: kubernetes.io/arch:amd64 topology.kubernetes.io/region:eu-1 topology.kubernetes.io/zone:a]" {
		t.Errorf("got labels %s of one node, want all but the labels with its name", labels)
	}
	got := (&facts.OwnFacts{Nodes: facts.NewNodes()}).Known(0)
	if got.Verdict != verdict.Ready || got.Message != "there are no nodes" || got.Facts["region"] != "" || got.Facts["nodes"] != 0.0 {
		t.Errorf("%+v", got)
	}
}

// Node Feature Discovery labels a node with two hundred features. Labels after them in the alphabet must not be cut off.
func TestNodesWithManyFeaturesKeepTheirLabels(t *testing.T) {
	t.Parallel()
	features := map[string]string{"nvidia.com/gpu.present": "true"}
	for i := range 200 {
		features[fmt.Sprintf("feature.node.kubernetes.io/cpu-cpuid.%03d", i)] = "true"
	}
	nodes := facts.NewNodes()
	nodes.Add(newNode(t, "n1", "True", "a", features))
	nodes.Add(newNode(t, "n22", "True", "a", features))
	labels := (&facts.OwnFacts{Nodes: nodes}).Known(100).Facts["labels"].(map[string]any)
	if labels["nvidia.com/gpu.present"] != "true" || labels["topology.kubernetes.io/region"] != "eu-1" {
		t.Errorf("%d labels: %v", len(labels), labels)
	}
}

func TestAClusterIsReadyIfItsNodesAreReady(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		nodes   string // "+" for each ready node, "-" for each other; "no" if nodes were not listed
		percent int
		lost    string
		lacks   []string
		verdict verdict.Verdict
		since   string
		message string
	}{
		{nodes: "++", percent: 100, verdict: verdict.Ready, since: "03", message: "2 nodes are ready"},
		{nodes: "+", percent: 100, verdict: verdict.Ready, since: "02", message: "1 node is ready"},
		{nodes: "+-", percent: 100, verdict: verdict.Progressing, since: "03", message: "1 of 2 nodes are not ready: n22"},
		{nodes: "+++", percent: 100, verdict: verdict.Ready, since: "03", message: "3 nodes are ready"}, // the third node has just joined
		{nodes: "++++", percent: 100, verdict: verdict.Ready, since: "04", message: "4 nodes are ready"},
		{nodes: "+-", percent: 50, verdict: verdict.Ready, since: "02", message: "1 of 2 nodes are not ready: n22"},
		{nodes: "+-", percent: 51, verdict: verdict.Progressing, since: "03", message: "1 of 2 nodes are not ready: n22"},
		{nodes: "-----", percent: 1, verdict: verdict.Progressing, since: "06", message: "5 of 5 nodes are not ready: n1, n22, n333 and 2 more"},
		{nodes: "", percent: 100, verdict: verdict.Progressing, message: "there are no nodes"},
		{nodes: "+", percent: 100, lost: "the API server did not answer within 10s", verdict: verdict.Unknown, message: "the API server did not answer within 10s"},
		{nodes: "no", percent: 100, lacks: []string{"list nodes"}, verdict: verdict.Unknown, message: "the credentials lack the right to list nodes at cluster scope"},
		{nodes: "no", percent: 100, lacks: []string{"get /version", "list nodes"}, verdict: verdict.Unknown, message: "the credentials lack the rights to get /version and to list nodes at cluster scope"},
		{nodes: "+", percent: 100, lacks: []string{"list pods"}, verdict: verdict.Ready, since: "02", message: "1 node is ready; the credentials lack the right to list pods at cluster scope"},
	} {
		own := facts.OwnFacts{Version: "v1.31.2", Lost: test.lost, Forbidden: test.lacks}
		if test.nodes != "no" {
			own.Nodes = facts.NewNodes()
			for i, one := range test.nodes {
				own.Nodes.Add(newNode(t, "n"+strings.Repeat(fmt.Sprint(i+1), i+1), map[rune]string{'+': "True", '-': "Unknown"}[one], "a", nil))
			}
		}
		known := own.Known(test.percent)
		since := ""
		if !known.Since.IsZero() {
			since = known.Since.Format("15")
		}
		if known.Verdict != test.verdict || since != test.since || known.Message != test.message ||
			known.Facts["kubernetes_version"] != "1.31.2" ||
			!slices.Equal(known.Missing, test.lacks) {
			t.Errorf("%q, %d %%: %+v", test.nodes, test.percent, known.Status)
		}
	}
}

func TestRequestsOfPodsAreCountedAsByTheScheduler(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, spec, want string
	}{
		{"containers together", `containers: [{resources: {requests: {cpu: 100m, memory: 1Mi}}}, {resources: {requests: {cpu: 0.5}}}, {}]`, `{"cpu":0.6,"memory":1048576,"pods":1}`},
		{"an init container needs more", `initContainers: [{resources: {requests: {cpu: 2}}}], containers: [{resources: {requests: {cpu: 1, memory: 1}}}]`, `{"cpu":2,"memory":1,"pods":1}`},
		{"a sidecar stays", `initContainers: [{restartPolicy: Always, resources: {requests: {cpu: 1}}}, {resources: {requests: {cpu: 2}}}], containers: [{resources: {requests: {cpu: 1}}}]`, `{"cpu":3,"pods":1}`},
		{"overhead", `overhead: {cpu: 250m}, containers: [{resources: {requests: {cpu: 1}}}]`, `{"cpu":1.25,"pods":1}`},
		{"requests of the pod", `resources: {requests: {cpu: 4}}, containers: [{resources: {requests: {cpu: 1, memory: 1}}}]`, `{"cpu":4,"memory":1,"pods":1}`},
		{"nothing", `containers: [{}]`, `{"pods":1}`},
		{"invalid quantities", `containers: [{resources: {requests: {cpu: a, memory: -1, x: {}}}}]`, `{"pods":1}`},
	} {
		pods := facts.NewPods()
		for _, text := range []string{
			`{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {nodeName: n1, ` + test.spec + `}, status: {phase: Running}}`,
			`{apiVersion: v1, kind: Pod, metadata: {name: b}, spec: {` + test.spec + `}, status: {phase: Pending}}`,
			`{apiVersion: v1, kind: Pod, metadata: {name: c}, spec: {nodeName: n1, ` + test.spec + `}, status: {phase: Failed}}`,
			`{apiVersion: v1, kind: Pod, metadata: {name: d}, spec: {nodeName: n1, ` + test.spec + `}, status: {phase: Succeeded}}`,
		} {
			pods.Add(parseObject(t, text))
		}
		got, err := json.Marshal((&facts.OwnFacts{Pods: pods}).Known(100).Facts["requested"])
		if err != nil || string(got) != test.want {
			t.Errorf("%s: %s, want %s: %v", test.name, got, test.want, err)
		}
	}
}

const canary = "canary-secret-7f3a"

func newSecret(t testing.TB, name, server, labels string) *unstructured.Unstructured {
	t.Helper()
	data := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	return parseObject(
		t,
		fmt.Sprintf(
			`{apiVersion: v1, kind: Secret, metadata: {name: cluster-1, namespace: argocd, labels: {argocd.argoproj.io/secret-type: cluster, %s},
  annotations: {kubectl.kubernetes.io/last-applied-configuration: %q}}, data: {name: %q, server: %q, config: %q}}`,
			labels,
			canary,
			data(name),
			data(server),
			data(`{"bearerToken":"`+canary+`"}`),
		),
	)
}

func newProfile(t testing.TB, name, status string) *unstructured.Unstructured {
	t.Helper()
	return parseObject(
		t,
		fmt.Sprintf(
			`{apiVersion: multicluster.x-k8s.io/v1alpha1, kind: ClusterProfile, metadata: {name: %s, namespace: fleet, labels: {team: b, x: "z"}}, status: %s}`,
			name,
			status,
		),
	)
}

func TestRegistrationsAreReadWithoutCredentials(t *testing.T) {
	t.Parallel()
	secret, ok := facts.ReadSecret(newSecret(t, "large-1", "https://me:"+canary+"@large.example.com:6443/a?token="+canary, "team: a"))
	if want := map[string]any{"server": "https://large.example.com:6443/a", "registered_labels": map[string]any{"team": "a"}}; !ok ||
		secret.Name != "large-1" ||
		!reflect.DeepEqual(secret.Facts, want) {
		t.Errorf("%+v", secret)
	}
	if strings.Contains(fmt.Sprintf("%+v", secret), canary) {
		t.Error("the registration has a credential")
	}
	if unnamed, ok := facts.ReadSecret(newSecret(t, "", "", "")); !ok || unnamed.Name != "cluster-1" {
		t.Errorf("%+v", unnamed)
	}
	if _, ok := facts.ReadSecret(newSecret(t, "a\nb", "", "")); !ok { // falls back to the name of the Secret
		t.Error("the registration has no name")
	}
	for conditions, want := range map[string]verdict.Status{
		`[{type: Joined, status: "True"}, {type: ControlPlaneHealthy, status: "True", lastTransitionTime: "2026-11-22T01:00:00Z"}]`: {
			Verdict: verdict.Ready, Since: time.Date(2026, 11, 22, 1, 0, 0, 0, time.UTC), Message: "ClusterProfile fleet/large-1 says that the control plane is healthy",
		},
		`[{type: ControlPlaneHealthy, status: "False", reason: Down, message: "no\nAPI"}]`: {
			Verdict: verdict.Progressing, Message: "ClusterProfile fleet/large-1 says that the control plane is not healthy: Down no API",
		},
		`[]`: {Verdict: verdict.Unknown, Message: "ClusterProfile fleet/large-1 does not say whether the control plane is healthy"},
	} {
		profile, ok := facts.ReadClusterProfile(
			newProfile(
				t,
				"large-1",
				`{version: {kubernetes: 1.31.2}, properties: [{name: location, value: eu}, {name: 5}], conditions: `+conditions+`}`,
			),
		)
		facts := map[string]any{
			"kubernetes_version": "1.31.2", "kubernetes_minor": "1.31", "properties": map[string]any{"location": "eu"}, "registered_labels": map[string]any{"team": "b", "x": "z"},
		}
		if !ok || profile.Status != want || !reflect.DeepEqual(profile.Facts, facts) {
			t.Errorf("%s: %+v", conditions, profile)
		}
	}
}

// Objects with the same name are the same cluster. Facts reported by the cluster override those from a hub.
func TestFactsOfSeveralSourcesAreMerged(t *testing.T) {
	t.Parallel()
	nodes := facts.NewNodes()
	nodes.Add(newNode(t, "n1", "True", "a", nil))
	own := map[string]facts.KnownFacts{
		"both":   (&facts.OwnFacts{Version: "v1.32.0", Nodes: nodes}).Known(100),
		"silent": (&facts.OwnFacts{Lost: "it is gone"}).Known(100),
		"alone":  (&facts.OwnFacts{Version: "v1.32.0", Nodes: nodes}).Known(100),
		"waiting": {
			Waiting:      true,
			Sources:      []facts.Source{facts.Cluster},
			ClusterFacts: evidence.ClusterFacts{Status: verdict.Status{Verdict: verdict.Unknown, Message: "not yet"}},
		},
	}
	registration := func(name string) facts.Registration {
		r, _ := facts.ReadSecret(newSecret(t, name, "https://"+name, "team: a"))
		return r
	}
	profile := func(name string) facts.Registration {
		r, _ := facts.ReadClusterProfile(
			newProfile(t, name, `{version: {kubernetes: v1.31.2}, conditions: [{type: ControlPlaneHealthy, status: "True"}]}`),
		)
		return r
	}
	all := facts.Merge(own, []facts.Registration{
		registration(
			"both",
		), registration("silent"), registration("argo"), registration("twice"), registration("twice"), profile("both"), profile("profile"), profile("silent"),
	}, []facts.Source{facts.ArgoCD, facts.ClusterProfiles})
	for name, want := range map[string]string{
		"both":    "[argocd cluster cluster_profiles] ready 1.32.0 https://both map[team:b x:z] 1 node is ready",
		"silent":  "[argocd cluster cluster_profiles] unknown 1.31.2 https://silent map[team:b x:z] it is gone",
		"alone":   "[cluster] ready 1.32.0 <nil> map[] 1 node is ready",
		"waiting": "[cluster] unknown <nil> <nil> map[] not yet",
		"argo":    "[argocd] unknown <nil> https://argo map[team:a] the provider's clusters have no entry of this name, so that the cluster itself was not asked",
		"twice":   "[argocd] unknown <nil> <nil> <nil> several objects of the hub have this name, and none counts: Secret argocd/cluster-1, Secret argocd/cluster-1",
		"profile": "[cluster_profiles] ready 1.31.2 <nil> map[team:b x:z] ClusterProfile fleet/profile says that the control plane is healthy",
	} {
		known := all[name]
		got := fmt.Sprint(
			known.Sources,
			" ",
			known.Verdict,
			" ",
			known.Facts["kubernetes_version"],
			" ",
			known.Facts["server"],
			" ",
			known.Facts["registered_labels"],
			" ",
			known.Message,
		)
		if got != want {
			t.Errorf("%s is\n%s, want\n%s", name, got, want)
		}
	}
	if len(all) != 7 {
		t.Errorf("got %d clusters, want 7", len(all))
	}
	if alone := facts.Merge(own, nil, nil)["silent"]; alone.Facts != nil {
		t.Errorf("%+v", alone)
	}
}

func TestEveryFactIsInTheTable(t *testing.T) {
	t.Parallel()
	nodes, pods := facts.NewNodes(), facts.NewPods()
	nodes.Add(newNode(t, "n1", "True", "a", nil))
	own := map[string]facts.KnownFacts{"a": (&facts.OwnFacts{Version: "v1.31.2", Nodes: nodes, Pods: pods}).Known(100)}
	secret, _ := facts.ReadSecret(newSecret(t, "a", "https://a", "team: a"))
	profile, _ := facts.ReadClusterProfile(newProfile(t, "a", `{}`))
	found := facts.Merge(own, []facts.Registration{secret, profile}, []facts.Source{facts.ArgoCD, facts.ClusterProfiles})["a"].Facts
	for _, fact := range facts.All {
		value, ok := found[fact.Name]
		delete(found, fact.Name)
		shape := map[facts.FactKind]string{
			facts.Text: "string", facts.Number: "float64", facts.Texts: "[]interface {}", facts.TextsByName: "map[string]interface {}", facts.NumbersByName: "map[string]interface {}",
		}[fact.Kind]
		if !ok || fmt.Sprintf("%T", value) != shape {
			t.Errorf("%s is a %T, want a %s", fact.Name, value, fact.Kind)
		}
		if values, ok := value.(map[string]any); ok {
			for name, one := range values {
				if _, isText := one.(string); isText != (fact.Kind == facts.TextsByName) {
					t.Errorf("%s of %s is a %T", name, fact.Name, one)
				}
			}
		}
		if fact.Right == "" == slices.Contains(fact.From, facts.Cluster) {
			t.Errorf("%s needs the right %q", fact.Name, fact.Right)
		}
	}
	if len(found) > 0 {
		t.Errorf("the table lacks %v", found)
	}
}

// FuzzObjects reads any object as a node, a pod, a Secret and a ClusterProfile. The resulting facts are bounded and can be parsed.
func FuzzObjects(f *testing.F) {
	f.Add(
		[]byte(
			`{"metadata":{"name":"a","labels":{"a":"b"}},"spec":{"nodeName":"n","providerID":"a://b","containers":[{"resources":{"requests":{"cpu":"1e400"}}}]},"data":{"name":"YQ==","server":"aHR0cHM6Ly9h"}}`,
		),
	)
	f.Add(
		[]byte(
			`{"metadata":{"name":"a"},"status":{"capacity":{"cpu":"999999999999999999E","memory":1},"nodeInfo":{"kubeletVersion":"v1"},"conditions":[{"type":"Ready","status":"True","lastTransitionTime":"0001-01-01T00:00:00Z"}],"properties":[{"name":"a","value":"b"}]}}`,
		),
	)
	f.Fuzz(func(t *testing.T, text []byte) {
		var content map[string]any
		if json.Unmarshal(text, &content) != nil || content == nil {
			return
		}
		object := &unstructured.Unstructured{Object: content}
		nodes, pods := facts.NewNodes(), facts.NewPods()
		nodes.Add(object)
		nodes.Add(object)
		pods.Add(object)
		registered := []facts.Registration{}
		if profile, ok := facts.ReadClusterProfile(object); ok {
			registered = append(registered, profile)
		}
		if secret, ok := facts.ReadSecret(object); ok {
			registered = append(registered, secret)
		}
		known := facts.Merge(
			map[string]facts.KnownFacts{"a": (&facts.OwnFacts{Version: "v1.31.2", Nodes: nodes, Pods: pods}).Known(100)},
			registered,
			[]facts.Source{facts.ArgoCD, facts.ClusterProfiles},
		)
		document := evidence.Facts{Time: time.Unix(1, 0), Clusters: map[string]evidence.ClusterFacts{}}
		for name, cluster := range known {
			document.Clusters[name] = cluster.ClusterFacts
		}
		written := document.Marshal()
		if _, err := evidence.ParseFacts(written); err != nil || len(written) > 1<<20 {
			t.Fatalf("%d bytes: %v", len(written), err)
		}
	})
}
