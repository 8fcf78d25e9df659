package provider_test

import (
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

const twoContextKubeconfig = `apiVersion: v1
kind: Config
current-context: eu-1
contexts:
- {name: eu-1, context: {cluster: eu, user: me}}
- {name: us-1, context: {cluster: us, user: me}}
clusters:
- {name: eu, cluster: {server: "https://eu.example.com"}}
- {name: us, cluster: {server: "https://us.example.com"}}
users:
- {name: me, user: {token: hunter2}}
`

// Validation names the attribute, and shows no secret.
func TestTheProvidersClustersAreReadStrictly(t *testing.T) {
	t.Parallel()
	cluster := func(attributes map[string]any) map[string]any { return map[string]any{"eu-1": attributes} }
	clusterWithHost := func(further map[string]any) map[string]any {
		attributes := map[string]any{"host": "https://eu.example.com"}
		maps.Copy(attributes, further)
		return cluster(attributes)
	}
	clusterWithExec := func(further map[string]any) map[string]any {
		attributes := map[string]any{"api_version": "client.authentication.k8s.io/v1", "command": "aws"}
		maps.Copy(attributes, further)
		return clusterWithHost(map[string]any{"exec": attributes})
	}
	unknown := providertest.Unknown{}
	for name, c := range map[string]struct {
		clusters any
		want     string
	}{
		"nothing":                    {},
		"none":                       {clusters: map[string]any{}},
		"a null":                     {clusters: map[string]any{"eu-1": nil}},
		"everything unknown":         {clusters: unknown},
		"an unknown entry":           {clusters: map[string]any{"eu-1": unknown}},
		"an unknown host":            {clusters: cluster(map[string]any{"host": unknown, "token": unknown})},
		"only an unknown kubeconfig": {clusters: cluster(map[string]any{"kubeconfig": unknown})},
		"an unknown context":         {clusters: cluster(map[string]any{"kubeconfig": twoContextKubeconfig, "context": unknown})},
		"an unknown exec":            {clusters: clusterWithHost(map[string]any{"exec": unknown})},
		"an unknown command":         {clusters: clusterWithExec(map[string]any{"command": unknown, "args": []any{unknown}, "env": map[string]any{"A": unknown, "B": nil}})},
		"unknown args":               {clusters: clusterWithExec(map[string]any{"args": unknown, "env": unknown, "api_version": unknown})},
		"a certificate, unknown key": {clusters: clusterWithHost(map[string]any{"client_certificate": unknown, "client_key": unknown})},
		"a host":                     {clusters: clusterWithHost(map[string]any{"token": "hunter2", "proxy_url": "http://proxy:3128", "tls_server_name": "eu"})},
		"a kubeconfig":               {clusters: cluster(map[string]any{"kubeconfig": twoContextKubeconfig, "context": "us-1", "host": nil})},
		"a command":                  {clusters: clusterWithExec(map[string]any{"args": []any{"eks", "get-token"}, "env": map[string]any{"AWS_PROFILE": "hunter2"}})},

		"no object":              {clusters: "hunter2", want: "Must be an object with an entry for each cluster"},
		"a list":                 {clusters: []any{map[string]any{"host": "https://x"}}, want: "Must be an object with an entry for each cluster"},
		"an entry, no object":    {clusters: map[string]any{"eu-1": "hunter2"}, want: `clusters["eu-1"] must be an object, not a string`},
		"a cluster of nothing":   {clusters: cluster(map[string]any{}), want: `clusters["eu-1"] has neither host nor kubeconfig`},
		"a cluster of no name":   {clusters: map[string]any{"": map[string]any{"host": "https://x"}}, want: `clusters[""] has no name`},
		"a misspelt key":         {clusters: clusterWithHost(map[string]any{"tokn": "hunter2"}), want: `clusters["eu-1"].tokn is an unknown attribute; did you mean "token"?`},
		"a number":               {clusters: clusterWithHost(map[string]any{"token": 5}), want: `clusters["eu-1"].token must be a string, not a number`},
		"a misspelt key in exec": {clusters: clusterWithExec(map[string]any{"arg": []any{}}), want: `clusters["eu-1"].exec.arg is an unknown attribute; did you mean "args"?`},
		"exec, no object":        {clusters: clusterWithHost(map[string]any{"exec": "hunter2"}), want: `clusters["eu-1"].exec must be an object, not a string`},
		"args, no list":          {clusters: clusterWithExec(map[string]any{"args": "hunter2"}), want: `clusters["eu-1"].exec.args must be a list of strings`},
		"an argument, no text":   {clusters: clusterWithExec(map[string]any{"args": []any{"a", 5}}), want: `clusters["eu-1"].exec.args[1] must be a string, not a number`},
		"env, no map":            {clusters: clusterWithExec(map[string]any{"env": []any{"hunter2"}}), want: `clusters["eu-1"].exec.env must be a map of strings`},
		"env of a number":        {clusters: clusterWithExec(map[string]any{"env": map[string]any{"A": true}}), want: `clusters["eu-1"].exec.env["A"] must be a string, not a bool`},
		"a command of nothing":   {clusters: clusterWithExec(map[string]any{"command": nil}), want: `clusters["eu-1"].exec.command is missing`},
		"both ways":              {clusters: clusterWithHost(map[string]any{"kubeconfig": twoContextKubeconfig}), want: `clusters["eu-1"].host cannot be set together with kubeconfig`},
		"a context, not there":   {clusters: cluster(map[string]any{"kubeconfig": twoContextKubeconfig, "context": "us-2"}), want: `clusters["eu-1"].context is "us-2", which the kubeconfig does not have; did you mean "us-1"?`},
		"a path":                 {clusters: cluster(map[string]any{"kubeconfig": "~/.kube/hunter2"}), want: `clusters["eu-1"].kubeconfig must be the text of a kubeconfig, but is a single line`},
		"no YAML":                {clusters: cluster(map[string]any{"kubeconfig": "a: b\nhunter2: [\n"}), want: `clusters["eu-1"].kubeconfig cannot be read: it is no YAML or JSON of the kind Config`},
		"plain http":             {clusters: cluster(map[string]any{"host": "http://eu.example.com", "token": "hunter2"}), want: `clusters["eu-1"].token would be sent over plain http`},
		"the key of nothing":     {clusters: clusterWithHost(map[string]any{"client_key": "hunter2"}), want: `clusters["eu-1"].client_key must be PEM`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := providertest.New(startProvider)
			_, diags := w.Plan(t.Context(), providertest.Configuration{Provider: map[string]any{"clusters": c.clusters}})
			if c.want == "" {
				if len(diags) > 0 {
					t.Errorf("got %s", diags)
				}
				return
			}
			if len(diags) == 0 || diags[0].At != `AttributeName("clusters")` || !strings.Contains(diags.String(), c.want) {
				t.Errorf("got %s, want %q", diags, c.want)
			}
			if strings.Contains(diags.String(), "hunter2") {
				t.Errorf("the diagnostics contain the secret: %s", diags)
			}
		})
	}
}

// One warning names all clusters whose kubeconfig turns certificate checks off.
func TestUncheckedCertificatesAreWarnings(t *testing.T) {
	t.Parallel()
	unverified := strings.ReplaceAll(
		twoContextKubeconfig,
		`{server: "https://eu.example.com"}`,
		`{server: "https://eu.example.com", insecure-skip-tls-verify: true}`,
	)
	clusters := map[string]any{
		"eu-1": map[string]any{"kubeconfig": unverified}, "eu-2": map[string]any{"kubeconfig": unverified},
		"us-1": map[string]any{"kubeconfig": unverified, "context": "us-1"}, "us-2": map[string]any{"kubeconfig": twoContextKubeconfig},
	}
	_, diags := providertest.New(startProvider).Plan(t.Context(), providertest.Configuration{Provider: map[string]any{"clusters": clusters}})
	if len(diags) != 1 || diags[0].Error || diags[0].At != `AttributeName("clusters")` ||
		!strings.Contains(diags[0].Detail, "The kubeconfigs of eu-1, eu-2 set insecure-skip-tls-verify.") {
		t.Errorf("got %s", diags)
	}
}

func TestDocumentationStatesTheDeadlineOfClusterRequests(t *testing.T) {
	t.Parallel()
	guide := strings.Join(
		strings.Fields(readFile(t, filepath.Join("..", "..", "templates", "guides", "reference-observing.md.tmpl"))),
		" ",
	)
	if want := fmt.Sprintf("each for %d seconds at most", int(kube.DefaultDeadline.Seconds())); !strings.Contains(guide, want) {
		t.Errorf("the guide does not say %q", want)
	}
}

// A mistake in many clusters is reported once.
func TestEveryMistakeInTheProvidersClustersIsReported(t *testing.T) {
	t.Parallel()
	clusters := map[string]any{
		"a": map[string]any{"host": "eu.example.com", "client_certificate": "x", "tls_server_name": "a:b"},
		"b": map[string]any{"kubeconfig": twoContextKubeconfig, "context": "zzz"},
	}
	for i := range 50 {
		clusters[fmt.Sprintf("many-%02d", i)] = map[string]any{"host": "https://x", "tokn": "y"}
	}
	w := providertest.New(startProvider)
	_, diags := w.Plan(t.Context(), providertest.Configuration{Provider: map[string]any{"clusters": clusters}})
	if len(diags) != 6 {
		t.Errorf("got %d diagnostics, want 6: %s", len(diags), diags)
	}
	want := `clusters["many-00"].tokn is an unknown attribute; did you mean "token"? The same error is in 49 other clusters: many-01, many-02,`
	if !strings.Contains(diags.String(), want) {
		t.Errorf("got %s, want %q", diags, want)
	}
}

// Each cluster receives only its own objects, with its own credentials.
func TestOneProviderBlockServesAllClusters(t *testing.T) {
	t.Parallel()
	clusters, standIns := map[string]any{}, map[string]*standInCluster{}
	configuration := providertest.Configuration{Provider: map[string]any{"clusters": clusters}, Resources: map[string]providertest.Resource{}}
	for _, name := range []string{"drone-1", "drone-2"} {
		standIn := &standInCluster{objects: map[string]map[string]any{}}
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if got := r.Header.Get("Authorization"); got != "Bearer t0ken-of-"+name {
				t.Errorf("%s: got Authorization %q", name, got)
			}
			standIn.ServeHTTP(w, r)
		}))
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		server.StartTLS()
		t.Cleanup(server.Close)
		standIns[name] = standIn
		certificate := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
		clusters[name] = map[string]any{
			"host":                   server.URL + "/api-of-" + name,
			"cluster_ca_certificate": certificate,
			"token":                  "t0ken-of-" + name,
		}
		configuration.Resources[fmt.Sprintf("flotilla_agent.all[%q]", name)] = providertest.Resource{
			Attributes: agentAttributes("flux-system", map[string]any{"cluster": name}),
		}
	}
	w := providertest.New(startProvider)
	if _, diags := w.Apply(t.Context(), configuration); diags.Err() != nil {
		t.Fatal(diags)
	}
	if plan := planAgent(t, w, configuration); !plan.Empty() {
		t.Error("the next plan is not empty")
	}
	for name, standIn := range standIns {
		standIn.mu.Lock()
		root := standIn.objects["api-of-"+name+"/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/flux-system/kustomizations/flotilla-cluster"]
		if got := fmt.Sprint(root["spec"]); !strings.Contains(got, "clusters/"+name) {
			t.Errorf("%s: got Kustomization %s", name, got)
		}
		standIn.requests = 0
		standIn.mu.Unlock()
	}
	url := bare(t)
	apply(t, providertest.New(startProvider), assigned(url, fleetWithClusters(nil), nil))
	if _, diags := readCompliance(t, url, configuration.Provider, map[string]any{"feedback": map[string]any{"clusters": true}}); diags.Err() != nil {
		t.Fatal(diags)
	}
	for name, standIn := range standIns {
		standIn.mu.Lock()
		if standIn.requests == 0 {
			t.Errorf("%s was not read", name)
		}
		standIn.mu.Unlock()
	}
}
