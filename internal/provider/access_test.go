package provider_test

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// Attacks of a team that writes workloads and runs servers of its own. On loopback, another port is another origin.

// witness is a server that records its requests and their credentials.
type witness struct {
	*httptest.Server
	mutex       sync.Mutex
	requests    []string
	credentials []string
}

func newWitness(t *testing.T, answer http.HandlerFunc) *witness {
	t.Helper()
	w := &witness{}
	w.Server = httptest.NewServer(w.record(answer))
	t.Cleanup(w.Close)
	return w
}

func (w *witness) record(answer http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(response http.ResponseWriter, r *http.Request) {
		w.mutex.Lock()
		w.requests = append(w.requests, r.Method+" "+r.URL.Path)
		if credentials := r.Header.Get("Authorization") + r.Header.Get("Cookie"); credentials != "" {
			w.credentials = append(w.credentials, r.URL.Path+": "+credentials)
		}
		w.mutex.Unlock()
		if answer == nil {
			http.Error(response, "canary-of-the-answer", http.StatusUnauthorized)
			return
		}
		answer(response, r)
	})
}

func (w *witness) recorded() (requests, credentials []string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.requests, w.credentials
}

func (w *witness) address() string { return w.Listener.Addr().String() }

// plainCredentials returns every form of credentials for the GitOps repository.
func plainCredentials(t *testing.T) map[string]map[string]any {
	t.Helper()
	key, err := gitHubKey()
	if err != nil {
		t.Fatal(err)
	}
	private := string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
	app := map[string]any{"id": "7", "installation_id": "8", "private_key": private}
	return map[string]map[string]any{
		"a token":                 {"token": "canary"},
		"a password":              {"username": "robot", "password": "canary"},
		"an App":                  {"github_app": app},
		"an App with a url":       {"github_app": with(app, "url", "http://127.0.0.1:1/api/v3")},
		"an ssh key":              {"ssh_private_key": private, "token": "canary"},
		"credentials of a prefix": {"token": "canary", "credentials": []any{map[string]any{"url": "https://git.example.com", "token": "canary"}}},
	}
}

// teamManifests returns manifests in each storage that point to a server of the team.
func teamManifests(address string) map[string]map[string]any {
	return map[string]map[string]any{
		"Git":              {"storage": "git", "repo": "http://" + address + "/evil/x.git", "branch": "main"},
		"a commit":         {"storage": "git", "repo": "http://" + address + "/evil/x.git", "commit": aCommit},
		"ssh":              {"storage": "git", "repo": "ssh://git@" + address + "/evil/x.git", "branch": "main"},
		"chart repository": {"storage": "helm", "repo": "http://" + address + "/evil", "chart": "till", "version": "1.0.0"},
		"registry":         {"storage": "oci", "repo": "oci://" + address + "/evil", "chart": "till", "version": "1.0.0"},
	}
}

func teamWorkloads(manifests map[string]any) []any {
	return []any{
		map[string]any{
			"name":               "till",
			"workspace":          "team",
			"deployment_targets": map[string]any{"live": map[string]any{"environment": "dev", "manifests": manifests}},
		},
	}
}

// A server outside of the team's sources gets no request at all.
func TestAWorkloadCannotHaveCredentialsSentToItsServer(t *testing.T) {
	t.Parallel()
	bounded := []any{map[string]any{"name": "team", "service_account": "team", "sources": []any{"https://git.example.com/team"}}}
	for login, git := range plainCredentials(t) {
		for kind := range teamManifests("") {
			t.Run(login+", "+kind, func(t *testing.T) {
				t.Parallel()
				evil := newWitness(t, nil)
				configuration := providertest.Configuration{Provider: map[string]any{"git": git}}
				manifests := teamManifests(evil.address())[kind]
				read := func(name string, attributes map[string]any) string {
					_, diags := providertest.New(startProvider).ReadData(t.Context(), configuration, name, attributes)
					return fmt.Sprint(diags)
				}
				message := read("flotilla_artifacts", map[string]any{"workloads": teamWorkloads(manifests), "workspaces": bounded})
				if !strings.Contains(message, "is not among the sources of the workspace, which are https://git.example.com/team") ||
					!strings.Contains(message, `"till-live"`) {
					t.Errorf("artifacts outside of the sources: %s", message)
				}
				fleet := map[string]any{
					"workspaces": bounded, "workloads": teamWorkloads(manifests), "target_policies": []any{map[string]any{"name": "all", "cluster_type_selector": map[string]any{}}},
					"cluster_types": []any{map[string]any{"name": "store", "render": "preview", "kubernetes_version": "1.33"}},
				}
				message = read("flotilla_manifests", map[string]any{"fleet": fleetOf(fleet)})
				if kind == "a commit" && !strings.Contains(message, "sources") {
					t.Errorf("rendering outside of the sources: %s", message)
				}
				if requests, _ := evil.recorded(); len(requests) > 0 {
					t.Errorf("a server outside of the sources got requests %q", requests)
				}
				message = read("flotilla_artifacts", map[string]any{"workloads": teamWorkloads(manifests)})
				fleet["workspaces"] = []any{map[string]any{"name": "team"}}
				message += read("flotilla_manifests", map[string]any{"fleet": fleetOf(fleet)})
				requests, credentials := evil.recorded()
				if len(credentials) > 0 {
					t.Errorf("without sources, the server got credentials %q", credentials)
				}
				if kind != "ssh" && len(requests) == 0 {
					t.Errorf("without sources, the server got no request: %s", message)
				}
				if kind != "a commit" && !strings.Contains(message, "git.credentials") {
					t.Errorf("the error has no remedy: %s", message)
				}
			})
		}
	}
}

// A team may influence the URLs of files and statuses.
func TestAURLOfATeamGetsNoPlainCredentials(t *testing.T) {
	t.Parallel()
	for login, git := range plainCredentials(t) {
		t.Run(login, func(t *testing.T) {
			t.Parallel()
			evil := newWitness(t, nil)
			configuration := providertest.Configuration{Provider: map[string]any{"git": git}}
			for _, sources := range [][]any{{"https://git.example.com/team"}, {}} {
				_, diags := providertest.New(startProvider).ReadData(t.Context(), configuration, "flotilla_repository_files",
					map[string]any{"url": evil.URL + "/evil/x.git", "sources": sources})
				if !diags.Has("URL is outside of the sources") {
					t.Errorf("files outside of the sources %q: %s", sources, diags)
				}
			}
			if requests, _ := evil.recorded(); len(requests) > 0 {
				t.Errorf("a server outside of the sources got requests %q", requests)
			}
			_, diags := providertest.New(startProvider).
				ReadData(t.Context(), configuration, "flotilla_repository_files", map[string]any{"url": evil.URL + "/evil/x.git"})
			if !strings.Contains(diags.String(), "git.credentials") {
				t.Errorf("the error has no remedy: %s", diags)
			}
			configuration.Resources = map[string]providertest.Resource{statusAddress: {Attributes: map[string]any{
				"url": evil.URL + "/evil/x.git", "forge": "github", "commit": aCommit, "context": "flotilla/dev", "state": "success",
			}}}
			_, diags = providertest.New(startProvider).Apply(t.Context(), configuration)
			if !strings.Contains(diags.String(), "git.credentials") {
				t.Errorf("the error has no remedy: %s", diags)
			}
			requests, credentials := evil.recorded()
			if len(requests) == 0 || len(credentials) > 0 {
				t.Errorf("the server got requests %q and credentials %q", requests, credentials)
			}
		})
	}
}

// newListener counts and closes connections.
func newListener(t *testing.T) (address string, connected *atomic.Int32) {
	t.Helper()
	connected = &atomic.Int32{}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			connected.Add(1)
			_ = connection.Close()
		}
	}()
	t.Cleanup(func() { _ = listener.Close(); <-done })
	return listener.Addr().String(), connected
}

// Ssh cannot connect without a key for the server.
func TestSSHDoesNotConnectToAServerOfATeam(t *testing.T) {
	t.Parallel()
	server, connected := newListener(t)
	configuration := providertest.Configuration{Provider: map[string]any{"git": plainCredentials(t)["an ssh key"]}}
	address := "ssh://git@" + server + "/evil/x.git"
	for name, attributes := range map[string]map[string]any{
		"flotilla_artifacts":        {"workloads": teamWorkloads(map[string]any{"storage": "git", "repo": address, "branch": "main"})},
		"flotilla_repository_files": {"url": address},
	} {
		_, diags := providertest.New(startProvider).ReadData(t.Context(), configuration, name, attributes)
		if !strings.Contains(diags.String(), "ssh has no key") || !strings.Contains(diags.String(), "git.credentials") {
			t.Errorf("%s: got diagnostics %s", name, diags)
		}
	}
	if n := connected.Load(); n > 0 {
		t.Errorf("the server got %d connections", n)
	}
}

// TestAnAnswerOfATeamsServerTakesNoCredentialsElsewhere answers with an index, a redirect, a next page or a realm at another
// server. That server gets no credentials, and no request at all if it is outside of the sources.
func TestAnAnswerOfATeamsServerTakesNoCredentialsElsewhere(t *testing.T) {
	t.Parallel()
	const chart = "entries: {till: [{version: 1.0.0, urls: [%q]}]}"
	for name, answer := range map[string]func(w http.ResponseWriter, r *http.Request, victim string){
		"index": func(w http.ResponseWriter, _ *http.Request, victim string) {
			fmt.Fprintf(w, chart, victim+"/private/till.tgz")
		},
		"redirect of an index": func(w http.ResponseWriter, r *http.Request, victim string) {
			http.Redirect(w, r, victim+"/private/index.yaml", http.StatusFound)
		},
		"redirect of Git": func(w http.ResponseWriter, r *http.Request, victim string) {
			http.Redirect(w, r, victim+"/private/x.git/info/refs?service=git-upload-pack", http.StatusFound)
		},
		"realm": func(w http.ResponseWriter, _ *http.Request, victim string) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="`+victim+`/private/token",service="x",scope="repository:evil/till:pull"`)
			w.WriteHeader(http.StatusUnauthorized)
		},
		"next page": func(w http.ResponseWriter, _ *http.Request, victim string) {
			w.Header().Set("Link", "<"+victim+`/v2/private/till/tags/list?n=1>; rel="next"`)
			fmt.Fprint(w, `{"name": "evil/till", "tags": ["1.0.0"]}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			victim := newWitness(t, nil)
			evil := newWitness(t, func(w http.ResponseWriter, r *http.Request) { answer(w, r, victim.URL) })
			manifests := map[string]any{"storage": "helm", "repo": evil.URL + "/evil", "chart": "till", "version": "1.0.0"}
			switch name {
			case "redirect of Git":
				manifests = teamManifests(evil.address())["Git"]
			case "realm", "next page":
				manifests = map[string]any{"storage": "oci", "repo": "oci://" + evil.address() + "/evil", "chart": "till", "version": "1.x"}
			}
			git := map[string]any{"token": "canary", "credentials": []any{
				map[string]any{
					"url":      victim.URL + "/private",
					"username": "robot",
					"password": "canary",
				}, map[string]any{"url": evil.URL + "/evil", "token": "of-the-team"},
			}}
			configuration := providertest.Configuration{Provider: map[string]any{"git": git}}
			read := func(attributes map[string]any) string {
				attributes["workloads"] = teamWorkloads(manifests)
				_, diags := providertest.New(startProvider).ReadData(t.Context(), configuration, "flotilla_artifacts", attributes)
				if diags.Err() == nil {
					t.Errorf("there is no error: %s", diags)
				}
				return diags.String()
			}
			within := []any{map[string]any{"name": "team", "sources": []any{evil.URL + "/evil", "oci://" + evil.address() + "/evil"}}}
			if message := read(map[string]any{"workspaces": within}); !strings.Contains(message, "sources") &&
				!strings.Contains(message, "not the same origin") {
				t.Errorf("outside of the sources: %s", message)
			}
			if requests, _ := victim.recorded(); len(requests) > 0 {
				t.Errorf("outside of the sources, the other server got requests %q", requests)
			}
			message := read(map[string]any{})
			if _, credentials := victim.recorded(); len(credentials) > 0 {
				t.Errorf("the other server got credentials %q", credentials)
			}
			if strings.Contains(message, "canary") {
				t.Errorf("the error repeats the answer of another server: %s", message)
			}
		})
	}
}
