package provider_test

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/evidence"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/facts"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// factClusters serves clusters that report facts about themselves. The first path segment is the name of a cluster.
type factClusters struct {
	mu     sync.Mutex
	region map[string]string // by cluster; other clusters do not answer
	ready  bool
	// Secrets of Argo CD and ClusterProfiles on the cluster "hub"
	secrets, profiles string
}

const hubCanary = "hub-canary-9d21"

// start returns a function that configures the provider's clusters.
func (s *factClusters) start(t testing.TB) func(names ...string) map[string]any {
	t.Helper()
	server := httptest.NewUnstartedServer(s)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	authority := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	return func(names ...string) map[string]any {
		clusters := map[string]any{}
		for _, name := range names {
			clusters[name] = map[string]any{"host": server.URL + "/" + name, "cluster_ca_certificate": authority, "token": "secret-" + name}
		}
		return clusters
	}
}

// setRegion moves a cluster; "" silences it.
func (s *factClusters) setRegion(cluster, region string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.region[cluster] = region; region == "" {
		delete(s.region, cluster)
	}
}

func (s *factClusters) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	region, answers := s.region[name]
	w.Header().Set("Content-Type", "application/json")
	status := "True"
	if !s.ready {
		status = "False"
	}
	switch {
	case !answers:
		w.Header().Set("Retry-After", "0") // avoids a wait before the next try
		w.WriteHeader(http.StatusServiceUnavailable)
	case path == "version":
		fmt.Fprint(w, `{"gitVersion":"v1.31.2"}`)
	case path == "api/v1/nodes" && region == "forbidden":
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"kind":"Status","code":403,"message":"nodes is forbidden"}`)
	case path == "api/v1/nodes":
		fmt.Fprintf(
			w,
			`{"apiVersion":"v1","kind":"NodeList","items":[{"metadata":{"name":"n1","labels":{"topology.kubernetes.io/region":%q,"nvidia.com/gpu.present":"true"}},"spec":{"providerID":"aws:///x"},`+
				`"status":{"capacity":{"cpu":"4"},"nodeInfo":{"kubeletVersion":"v1.31.2","architecture":"amd64"},"conditions":[{"type":"Ready","status":%q,"lastTransitionTime":"2026-11-22T00:00:00Z"}]}}]}`,
			region,
			status,
		)
	case path == "api/v1/pods":
		fmt.Fprint(
			w,
			`{"apiVersion":"v1","kind":"PodList","items":[{"metadata":{"name":"p"},"spec":{"nodeName":"n1","containers":[{"resources":{"requests":{"cpu":"500m"}}}]}}]}`,
		)
	case strings.HasSuffix(path, "/argo/secrets") && name == "hub":
		fmt.Fprintf(w, `{"apiVersion":"v1","kind":"SecretList","items":[%s]}`, s.secrets)
	case strings.HasSuffix(path, "/clusterprofiles") && name == "hub":
		fmt.Fprintf(w, `{"apiVersion":"multicluster.x-k8s.io/v1alpha1","kind":"ClusterProfileList","items":[%s]}`, s.profiles)
	default:
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"kind":"Status","code":404}`)
	}
}

// readFacts plans the data source with a fixed time.
func readFacts(t *testing.T, clusters any, arguments map[string]any) (map[string]any, providertest.Diagnostics) {
	t.Helper()
	clock := &stoppedClock{now: time.Date(2026, 11, 22, 1, 0, 0, 0, time.UTC)}
	return providertest.New(provider.StartAt(clock)).
		PlanData(t.Context(), providertest.Configuration{Provider: map[string]any{"clusters": clusters}}, "flotilla_cluster_facts", arguments)
}

func asJSON(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestFactsOfClusters(t *testing.T) {
	t.Parallel()
	servers := &factClusters{region: map[string]string{"eu": "eu-1", "shut": "forbidden"}, ready: true}
	clusters := servers.start(t)("eu", "shut", "gone")
	clusters["later"] = map[string]any{"host": providertest.Unknown{}}
	read, diags := readFacts(
		t,
		clusters,
		map[string]any{"requested": true, "sources": map[string]any{"clusters": map[string]any{"deadline": "20s", "parallel": 2}}},
	)
	if diags.Err() != nil || len(diags) > 0 {
		t.Fatal(diags)
	}
	all := read["clusters"].(map[string]any)
	eu := all["eu"].(map[string]any)
	for name, want := range map[string]string{
		"sources": `["cluster"]`, "verdict": `"ready"`, "since": `"2026-11-22T00:00:00Z"`, "message": `"1 node is ready"`, "missing_rights": `[]`, "without_labels": `null`,
		"facts": `{"allocatable":{},"architectures":["amd64"],"capacity":{"cpu":4},"container_runtimes":[],"kubernetes_minor":"1.31","kubernetes_version":"1.31.2",` +
			`"labels":{"nvidia.com/gpu.present":"true","topology.kubernetes.io/region":"eu-1"},"node_versions":["1.31.2"],"nodes":1,"nodes_ready":1,"operating_systems":[],"os_images":[],` +
			`"properties":null,"provider":"aws","region":"eu-1","registered_labels":null,"requested":{"cpu":0.5,"pods":1},"server":null,"zones":[]}`,
	} {
		if got := asJSON(t, eu[name]); got != want {
			t.Errorf("%s is\n%s, want\n%s", name, got, want)
		}
	}
	if got := len(eu["facts"].(map[string]any)); got != len(facts.All) {
		t.Errorf("%d facts, want %d", got, len(facts.All))
	}
	for name, want := range map[string]string{
		"shut":  `unknown ["list nodes"] 1.31.2 the credentials lack the right to list nodes at cluster scope`,
		"gone":  `unknown [] <nil> the API server answers 503 Service Unavailable`,
		"later": `unknown [] <nil> the connection to the cluster is not known yet`,
	} {
		cluster := all[name].(map[string]any)
		version := any(nil)
		if known, ok := cluster["facts"].(map[string]any); ok {
			version = known["kubernetes_version"]
		}
		if got := fmt.Sprint(cluster["verdict"], " ", asJSON(t, cluster["missing_rights"]), " ", version, " ", cluster["message"]); got != want {
			t.Errorf("%s is\n%s, want\n%s", name, got, want)
		}
	}
	if got := asJSON(t, read["summary"]); got != `{"clusters":4,"progressing":0,"ready":1,"unknown":3}` {
		t.Error(got)
	}
	document, err := evidence.ParseFacts([]byte(read["evidence"].(string)))
	if err != nil || read["time"] != "2026-11-22T01:00:00Z" || document.Time.Format(time.RFC3339) != read["time"] ||
		len(document.Clusters) != 4 ||
		document.Clusters["eu"].Facts["region"] != "eu-1" {
		t.Errorf("%v: %v %v", err, read["time"], document)
	}
	if asJSON(t, read["labels"]) != `{"eu":{},"gone":{},"later":{},"shut":{}}` {
		t.Error(read["labels"])
	}
	servers.ready = false
	read, _ = readFacts(t, clusters, map[string]any{"sources": map[string]any{"clusters": map[string]any{"names": []any{"eu"}}}})
	if got := asJSON(t, read["summary"]); got != `{"clusters":1,"progressing":1,"ready":0,"unknown":0}` {
		t.Error(got)
	}
	read, _ = readFacts(
		t,
		clusters,
		map[string]any{"sources": map[string]any{"clusters": map[string]any{"names": []any{"eu"}}}, "ready_nodes_percent": 0},
	)
	if got := asJSON(t, read["summary"]); got != `{"clusters":1,"progressing":0,"ready":1,"unknown":0}` {
		t.Error(got)
	}
	if read, diags := readFacts(t, clusters, map[string]any{"sources": map[string]any{"clusters": map[string]any{"names": []any{}}}}); diags.Err() != nil ||
		asJSON(t, read["clusters"]) != "{}" {
		t.Errorf("%v: %v", diags, read["clusters"])
	}
}

// No credential of the registered clusters may be returned.
func TestFactsOfClustersRegisteredByOthers(t *testing.T) {
	t.Parallel()
	data := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	servers := &factClusters{
		region: map[string]string{"eu": "eu-1", "hub": "eu-1"}, ready: true,
		secrets: fmt.Sprintf(
			`{"metadata":{"name":"a","namespace":"argo","labels":{"argocd.argoproj.io/secret-type":"cluster","team":"a"},"annotations":{"kubectl.kubernetes.io/last-applied-configuration":%q}},"data":{"name":%q,"server":%q,"config":%q}},`+
				`{"metadata":{"name":"b","namespace":"argo"},"data":{"name":%q}}`,
			hubCanary,
			data("eu"),
			data("https://me:"+hubCanary+"@eu.example.com"),
			data(hubCanary),
			data("argo-only"),
		),
		profiles: `{"metadata":{"name":"profile-only","namespace":"fleet"},"status":{"version":{"kubernetes":"1.30.1"},"conditions":[{"type":"ControlPlaneHealthy","status":"True"}]}}`,
	}
	clusters := servers.start(t)("eu", "hub")
	read, diags := readFacts(t, clusters, map[string]any{
		"sources": map[string]any{
			"clusters": map[string]any{"names": []any{"eu"}},
			"hub":      map[string]any{"name": "hub", "namespace": "argo", "argocd": true, "cluster_profiles": true},
		},
		"labels_from": map[string]any{"team": "registered_labels.team"},
	})
	if diags.Err() != nil || len(diags) > 0 {
		t.Fatal(diags)
	}
	var got []string
	for _, name := range slices.Sorted(maps.Keys(read["clusters"].(map[string]any))) {
		cluster := read["clusters"].(map[string]any)[name].(map[string]any)
		known := cluster["facts"].(map[string]any)
		got = append(
			got,
			fmt.Sprint(
				name,
				" ",
				cluster["sources"],
				" ",
				cluster["verdict"],
				" ",
				known["kubernetes_version"],
				" ",
				known["server"],
				" ",
				cluster["without_labels"],
			),
		)
	}
	want := []string{
		"argo-only [argocd] unknown <nil> <nil> map[team:the cluster has no registered_labels.team]",
		"eu [argocd cluster] ready 1.31.2 https://eu.example.com map[]",
		"profile-only [cluster_profiles] ready 1.30.1 <nil> map[team:the cluster has no registered_labels.team]",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %s, want\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if labels := asJSON(t, read["labels"]); labels != `{"argo-only":{},"eu":{"team":"a"},"profile-only":{}}` {
		t.Error(labels)
	}
	if all := asJSON(t, read) + fmt.Sprint(diags); strings.Contains(all, hubCanary) || strings.Contains(all, data(hubCanary)) {
		t.Errorf("a credential is shown: %s", all)
	}
	// If the hub does not answer, its clusters are unknown.
	servers.setRegion("hub", "")
	if _, diags := readFacts(t, clusters, map[string]any{"sources": map[string]any{"hub": "hub"}}); !strings.Contains(
		fmt.Sprint(diags),
		`The hub "hub": the API server answers 503`,
	) {
		t.Errorf("%v", diags)
	}
	// A hub that the same apply creates is no error. Its clusters keep their labels.
	clusters["hub"] = map[string]any{"host": providertest.Unknown{}}
	read, diags = readFacts(t, clusters, map[string]any{
		"sources": map[string]any{
			"hub": "hub",
		}, "labels_from": map[string]any{"team": "registered_labels.team"}, "label_defaults": map[string]any{"argo-only": map[string]any{"team": "c"}},
	})
	if diags.Err() != nil || !strings.Contains(fmt.Sprint(diags), "Clusters are not known yet") ||
		asJSON(t, read["labels"]) != `{"argo-only":{"team":"c"}}` {
		t.Errorf("%v: %v", diags, read["labels"])
	}
}

// A cluster that cannot be reached yet may have had labels before. The warning names the clusters without labels.
func TestClustersWithoutLabelsAreNamed(t *testing.T) {
	t.Parallel()
	servers := &factClusters{region: map[string]string{"eu": "eu-1"}, ready: true}
	clusters := servers.start(t)("eu")
	clusters["later"] = map[string]any{"host": providertest.Unknown{}}
	for name, test := range map[string]struct {
		defaults map[string]any
		labels   string
		warns    bool
	}{
		"without an entry":             {map[string]any{"eu": map[string]any{}}, `{"eu":{"region":"eu-1"},"later":{}}`, true},
		"with an entry":                {map[string]any{"later": map[string]any{"region": "us-1"}}, `{"eu":{"region":"eu-1"},"later":{"region":"us-1"}}`, false},
		"with an entry for all others": {map[string]any{"*": map[string]any{}}, `{"eu":{"region":"eu-1"},"later":{}}`, false},
	} {
		read, diags := readFacts(t, clusters, map[string]any{"labels_from": map[string]any{"region": "region"}, "label_defaults": test.defaults})
		warns := len(diags) == 1 && diags[0].At == `AttributeName("label_defaults")` &&
			strings.Contains(diags[0].Detail, "they lack these labels in this run") &&
			strings.Contains(diags[0].Detail, "later")
		if diags.Err() != nil || asJSON(t, read["labels"]) != test.labels || warns != test.warns || !test.warns && len(diags) > 0 {
			t.Errorf("%s: %v: %v", name, diags, read["labels"])
		}
	}
}

func TestMistakesOfClusterFacts(t *testing.T) {
	t.Parallel()
	servers := &factClusters{region: map[string]string{"eu": "eu-1"}, ready: true}
	clusters := servers.start(t)("eu", "us")
	labels := func(from string) map[string]any { return map[string]any{"labels_from": map[string]any{"a": from}} }
	sources := func(cluster any) map[string]any { return map[string]any{"sources": cluster} }
	for name, test := range map[string]struct {
		arguments map[string]any
		want      string // attribute and detail
	}{
		"a string as sources":           {sources("eu"), `sources: Must be an object`},
		"a misspelt source":             {sources(map[string]any{"cluster": true}), `sources: cluster: unknown attribute; did you mean "clusters"?`},
		"no source":                     {sources(map[string]any{}), `sources: There is nothing to ask`},
		"no enabled source":             {sources(map[string]any{"clusters": false}), `sources: There is nothing to ask`},
		"another name":                  {sources(map[string]any{"clusters": map[string]any{"names": []any{"ue"}}}), `clusters.names[0]: the provider's clusters have no entry "ue"; did you mean "eu"?`},
		"another hub":                   {sources(map[string]any{"hub": "ue"}), `hub: the provider's clusters have no entry "ue"; did you mean "eu"?`},
		"an empty hub":                  {sources(map[string]any{"hub": ""}), `must be the name of one of the provider's clusters`},
		"a hub without a name":          {sources(map[string]any{"hub": map[string]any{"argocd": false}}), `hub.name: is required`},
		"a hub without a source":        {sources(map[string]any{"hub": map[string]any{"name": "eu", "argocd": false, "cluster_profiles": false}}), `hub.cluster_profiles: is false as argocd is`},
		"a namespace":                   {sources(map[string]any{"hub": map[string]any{"name": "eu", "namespace": "A/B"}}), `"A/B" is not a DNS label`},
		"a deadline":                    {sources(map[string]any{"clusters": map[string]any{"deadline": "0s"}}), `must be a duration above zero`},
		"too parallel":                  {sources(map[string]any{"clusters": map[string]any{"parallel": 5000}}), `must be a whole number from 1 to 4096`},
		"a percentage":                  {map[string]any{"ready_nodes_percent": 101}, `ready_nodes_percent: It must be a whole number from 0 to 100, not 101.`},
		"an unknown fact":               {labels("regin"), `labels_from.a: There is no fact "regin"; did you mean "region"?`},
		"a map":                         {labels("labels"), `labels_from.a: The fact "labels" is a map of texts`},
		"a fact of hubs":                {labels("properties.x"), `labels_from.a: Only a hub knows "properties.x": set hub in sources.`},
		"a fact of pods":                {labels("requested.cpu"), `labels_from.a: "requested.cpu" is read only where requested is true.`},
		"an invalid label":              {map[string]any{"labels_from": map[string]any{"a b": "region"}}, `labels_from.a b: "a b" is not the key of a label`},
		"defaults without labels":       {map[string]any{"label_defaults": map[string]any{}}, `label_defaults: There are no labels_from`},
		"a default of an unknown label": {map[string]any{"labels_from": map[string]any{"a": "region"}, "label_defaults": map[string]any{"eu": map[string]any{"b": "c"}}}, `label_defaults.eu.b: There is no label "b" in labels_from; did you mean "a"?`},
		"a wrong default":               {map[string]any{"labels_from": map[string]any{"a": "region"}, "label_defaults": map[string]any{"eu": map[string]any{"a": "b c"}}}, `label_defaults.eu.a: "b c" is not the value of a label`},
		"a silent cluster":              {labels("region"), `label_defaults: Without their labels, policies would no longer select these clusters.`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, diags := readFacts(t, clusters, test.arguments)
			var all []string
			for _, one := range diags {
				all = append(all, strings.NewReplacer(`AttributeName("`, "", `").ElementKeyString("`, ".", `")`, "").Replace(one.At)+": "+one.Detail)
			}
			if text := strings.Join(all, "\n"); diags.Err() == nil || !strings.Contains(text, test.want) {
				t.Errorf("got %s, want %s", text, test.want)
			}
		})
	}
	for name, arguments := range map[string]map[string]any{
		"sources":        sources(providertest.Unknown{}),
		"a source":       sources(map[string]any{"clusters": providertest.Unknown{}, "hub": providertest.Unknown{}}),
		"labels_from":    {"labels_from": providertest.Unknown{}, "label_defaults": map[string]any{"eu": map[string]any{"a": "b"}}},
		"a label":        labels(""),
		"label_defaults": {"labels_from": map[string]any{"a": "region"}, "label_defaults": providertest.Unknown{}},
	} {
		if name == "a label" {
			arguments["labels_from"].(map[string]any)["a"] = providertest.Unknown{}
		}
		if _, diags := readFacts(t, servers.start(t)("eu"), arguments); diags.Err() != nil {
			t.Errorf("unknown %s: %v", name, diags)
		}
	}
}
