package provider_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/gittest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// gitHub imitates a GitHub Enterprise Server with one repository and installation 8 of App 7, as GitHub documents it.
type gitHub struct {
	url          string
	bare         string // folder of the repository
	key          *rsa.PrivateKey
	mu           sync.Mutex
	tokens       []string
	statuses     []string // "<context> <state>"
	pullRequests []any
	// disturb may answer in place of next, the server. It then returns true.
	disturb func(w http.ResponseWriter, r *http.Request, next http.Handler) bool
}

// gitHubKey is one key for all servers, because its generation takes 0.1 s.
var gitHubKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

func startGitHub(t *testing.T) *gitHub {
	t.Helper()
	key, err := gitHubKey()
	if err != nil {
		t.Fatal(err)
	}
	g, root := &gitHub{key: key}, t.TempDir()
	bare := initHosted(t, root, "owner/gitops.git", "dev")
	gittest.Commit(t, bare, "dev", "dev", func(string) {})
	backend := httpBackend(t, root)
	server := httptest.NewUnstartedServer(nil)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // connections that a test drops
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/owner/gitops.git") {
			g.answer(w, r)
			return
		}
		if user, password, _ := r.BasicAuth(); user != "x-access-token" || !g.hasToken(password) {
			w.Header().Set("WWW-Authenticate", `Basic realm="GitHub"`)
			http.Error(w, "who asks?", http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(w, r)
	})
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		disturb := g.disturb
		g.mu.Unlock()
		if disturb == nil || !disturb(w, r, handler) {
			handler.ServeHTTP(w, r)
		}
	})
	server.Start()
	t.Cleanup(server.Close)
	g.bare, g.url = bare, server.URL+"/owner/gitops.git"
	return g
}

func (g *gitHub) hasToken(token string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Contains(g.tokens, token)
}

func (g *gitHub) answer(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	respond := func(status int, body any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(body)
	}
	bearer := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	path := strings.TrimPrefix(r.URL.Path, "/api/v3")
	if strings.HasPrefix(path, "/app/") {
		_, err := jwt.Parse(bearer, func(*jwt.Token) (any, error) { return &g.key.PublicKey, nil },
			jwt.WithValidMethods([]string{"RS256"}), jwt.WithIssuer("7"), jwt.WithIssuedAt(), jwt.WithExpirationRequired())
		switch {
		case err != nil:
			respond(http.StatusUnauthorized, map[string]any{"message": "A JSON web token could not be decoded"})
		case path != "/app/installations/8/access_tokens":
			respond(http.StatusNotFound, map[string]any{"message": "Not Found"})
		default:
			g.tokens = append(g.tokens, fmt.Sprintf("ghs_%d", len(g.tokens)))
			// The lifetime is so short that each request needs a new token.
			respond(
				http.StatusCreated,
				map[string]any{"token": g.tokens[len(g.tokens)-1], "expires_at": time.Now().Add(time.Minute).UTC().Format(time.RFC3339)},
			)
		}
		return
	}
	switch {
	case !slices.Contains(g.tokens, bearer):
		respond(http.StatusUnauthorized, map[string]any{"message": "Bad credentials"})
	case r.Method == http.MethodPost && strings.HasPrefix(path, "/repos/owner/gitops/statuses/"):
		var sent struct{ Context, State string }
		_ = json.NewDecoder(r.Body).Decode(&sent)
		g.statuses = append(g.statuses, sent.Context+" "+sent.State)
		respond(http.StatusCreated, map[string]any{"id": len(g.statuses), "context": sent.Context, "state": sent.State})
	case strings.HasSuffix(path, "/status"):
		var all []any
		for i, status := range g.statuses {
			name, state, _ := strings.Cut(status, " ")
			all = append(all, map[string]any{"id": i + 1, "context": name, "state": state})
		}
		respond(http.StatusOK, map[string]any{"state": "success", "statuses": append([]any{}, all...)})
	case path == "/repos/owner/gitops/pulls" && r.Method == http.MethodPost:
		var sent struct{ Base, Head, Title, Body string }
		_ = json.NewDecoder(r.Body).Decode(&sent)
		side := func(branch string) any {
			return map[string]any{"ref": branch, "repo": map[string]any{"id": 1}}
		}
		g.pullRequests = append(g.pullRequests, map[string]any{
			"number": len(g.pullRequests) + 1, "html_url": g.url + "/pull/1", "state": "open", "mergeable": true,
			"title": sent.Title, "body": sent.Body, "base": side(sent.Base), "head": side(sent.Head),
		})
		respond(http.StatusCreated, g.pullRequests[len(g.pullRequests)-1])
	case strings.HasPrefix(path, "/repos/owner/gitops/pulls/") && len(g.pullRequests) > 0:
		respond(http.StatusOK, g.pullRequests[0])
	case path == "/repos/owner/gitops/pulls":
		respond(http.StatusOK, append([]any{}, g.pullRequests...))
	default:
		respond(http.StatusOK, map[string]any{"sha": aCommit})
	}
}

func (g *gitHub) pem() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(g.key)}))
}

func (g *gitHub) api() string { return strings.TrimSuffix(g.url, "/owner/gitops.git") + "/api/v3" }

func (g *gitHub) app(changes ...any) map[string]any {
	return with(map[string]any{"id": "7", "installation_id": "8", "private_key": g.pem(), "url": g.api()}, changes...)
}

// configuration has an assignment, which uses Git, and a status, which uses the API.
func (g *gitHub) configuration(git map[string]any) providertest.Configuration {
	return providertest.Configuration{
		Provider: map[string]any{"git": git},
		Resources: map[string]providertest.Resource{
			"flotilla_assignment.test": {Attributes: map[string]any{
				"name": "dev", "fleet": fleetOf(nil), "gitops_repo": map[string]any{"url": g.url, "branch": "dev"},
			}},
			statusAddress: {
				Attributes: map[string]any{"url": g.url, "forge": "github", "commit": aCommit, "context": "flotilla/dev", "state": "success"},
			},
		},
	}
}

// An installation token, renewed as needed, gives access to Git and to the API.
func TestAGitHubAppGivesTheProviderAccess(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string]func(g *gitHub) map[string]any{
		"plain": func(g *gitHub) map[string]any { return map[string]any{"github_app": g.app()} },
		"for a URL": func(g *gitHub) map[string]any {
			return map[string]any{"token": "another", "credentials": []any{map[string]any{"url": strings.TrimSuffix(g.url, "/gitops.git"), "github_app": g.app()}}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := startGitHub(t)
			w, configuration, statuses := providertest.New(startProvider), g.configuration(settings(g)), []string{"flotilla/dev success"}
			if name == "plain" { // GitOps repository only
				delete(configuration.Resources, statusAddress)
				statuses = nil
			}
			if _, diags := w.Apply(t.Context(), configuration); diags.Err() != nil {
				t.Fatal(diags)
			}
			if !slices.Equal(g.statuses, statuses) || len(g.tokens) < 3 {
				t.Errorf("got statuses %q with %d tokens", g.statuses, len(g.tokens))
			}
			if state := fmt.Sprintf("%+v", w.State); strings.Contains(state, "ghs_") || strings.Contains(state, "PRIVATE KEY") {
				t.Error("the state contains a credential")
			}
		})
	}
}

func TestAGitHubAppOpensAPullRequest(t *testing.T) {
	acceptancetest.Only(t)
	t.Parallel()
	for name, tool := range tools(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := startGitHub(t)
			access := "provider \"flotilla\" {\n  git = { github_app = { id = \"7\", installation_id = \"8\", private_key = file(\"app.pem\"), url = \"" + g.api() + "\" } }\n}\n"
			proposed := small{extra: `delivery = { mode = "pull_request", forge = "github" }`}.config(repository{url: g.url, provider: access})
			w := newWorkdir(t, tool, map[string]string{"required_providers.tf": requiredProviders, "main.tf": proposed})
			writeFile(t, filepath.Join(w.path, "app.pem"), g.pem())
			w.run("apply", "-auto-approve", "-input=false")
			if len(g.pullRequests) != 1 {
				t.Fatalf("%d pull requests are open, want one", len(g.pullRequests))
			}
			if state := w.run("show", "-json"); strings.Contains(state, "ghs_") || strings.Contains(state, "PRIVATE KEY") ||
				!strings.Contains(state, g.url+"/pull/1") {
				t.Errorf("the state contains a credential or lacks the pull request:\n%s", state)
			}
		})
	}
}

func TestAGitHubAppWithoutATokenIsAnErrorAtPlan(t *testing.T) {
	t.Parallel()
	g := startGitHub(t)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	other := &gitHub{key: key}
	for name, c := range map[string]struct {
		app  map[string]any
		want string
	}{
		"no such installation": {g.app("installation_id", "9"), "gives installation 9 of GitHub App 7 no token"},
		"another key":          {g.app("private_key", other.pem()), "is the private key one of this App"},
	} {
		_, diags := providertest.New(startProvider).Plan(t.Context(), g.configuration(map[string]any{"github_app": c.app}))
		text := diags.String()
		if diags.Err() == nil || !strings.Contains(text, c.want) || !strings.Contains(text, "GitHub App gets no token") ||
			!strings.Contains(text, "gitops_repo") {
			t.Errorf("%s: got diagnostics %s", name, text)
		}
		if strings.Contains(text, "eyJ") || strings.Contains(text, "PRIVATE KEY-----") {
			t.Errorf("%s: the text contains a secret: %s", name, text)
		}
	}
}

// Any configured or environment token overrides the App.
func TestAGitHubAppFromTheEnvironment(t *testing.T) {
	g := startGitHub(t)
	t.Setenv("FLOTILLA_GITHUB_APP_ID", "7")
	t.Setenv("FLOTILLA_GITHUB_APP_INSTALLATION_ID", "8")
	t.Setenv("FLOTILLA_GITHUB_APP_PRIVATE_KEY", g.pem())
	assignmentOnly := func(settings map[string]any) providertest.Configuration {
		configuration := g.configuration(settings)
		delete(configuration.Resources, statusAddress)
		return configuration
	}
	_, diags := providertest.New(startProvider).Plan(t.Context(), assignmentOnly(nil))
	if !strings.Contains(diags.String(), "set url of github_app") ||
		len(g.tokens) > 0 {
		t.Errorf("without the URL of the API: got %d tokens and diagnostics %s", len(g.tokens), diags)
	}
	t.Setenv("FLOTILLA_GITHUB_APP_URL", g.api())
	if _, diags := providertest.New(startProvider).Apply(t.Context(), assignmentOnly(nil)); diags.Err() != nil {
		t.Fatal(diags)
	}
	tokens := len(g.tokens)
	for _, settings := range []map[string]any{{"token": "x"}, {"password": "x"}} {
		if _, diags := providertest.New(startProvider).Plan(t.Context(), assignmentOnly(settings)); !strings.Contains(
			diags.String(),
			"Repository refuses the credentials",
		) {
			t.Errorf("got diagnostics %s", diags)
		}
	}
	t.Setenv("FLOTILLA_GIT_TOKEN", "x")
	if _, diags := providertest.New(startProvider).Plan(t.Context(), assignmentOnly(nil)); !strings.Contains(
		diags.String(),
		"Repository refuses the credentials",
	) ||
		len(g.tokens) != tokens {
		t.Errorf("got %d tokens and diagnostics %s", len(g.tokens)-tokens, diags)
	}
	os.Unsetenv("FLOTILLA_GIT_TOKEN")
	t.Setenv("FLOTILLA_GITHUB_APP_ID", "hunter2")
	_, diags = providertest.New(startProvider).Plan(t.Context(), assignmentOnly(nil))
	if !strings.Contains(diags.String(), "FLOTILLA_GITHUB_APP_ID must be a number") || strings.Contains(diags.String(), "hunter2") {
		t.Errorf("got diagnostics %s", diags)
	}
}
