package forge_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/webtest"

	"github.com/golang-jwt/jwt/v5"

	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
)

var appKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

func encodePEM(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func appPEM() string { return encodePEM("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(appKey())) }

// appServer implements GitHub's documented operation "Create an installation access token for an app": 201 for a JSON Web Token of
// the App, 401 for another one, 404 for an unknown installation. App 7 has installation 8.
type appServer struct {
	lifetime time.Duration
	mu       sync.Mutex
	requests int
	paths    []string

	bodies string
}

func (s *appServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	s.paths = append(s.paths, r.Method+" "+r.Host+r.URL.Path)
	body, _ := io.ReadAll(r.Body)
	s.bodies += strings.TrimSpace(string(body))
	answer := func(status int, body any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(body)
	}
	bearer := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	claims := jwt.RegisteredClaims{}
	_, err := jwt.ParseWithClaims(bearer, &claims, func(*jwt.Token) (any, error) { return &appKey().PublicKey, nil },
		jwt.WithValidMethods([]string{"RS256"}), jwt.WithIssuedAt(), jwt.WithExpirationRequired())
	switch {
	case err != nil:
		answer(http.StatusUnauthorized, fields{"message": "A JSON web token could not be decoded " + bearer})
	case claims.ExpiresAt.Sub(claims.IssuedAt.Time) > 10*time.Minute || claims.Issuer != "7":
		answer(http.StatusNotFound, fields{"message": "Integration not found"})
	case strings.HasSuffix(r.URL.Path, "/app/installations/8/access_tokens"):
		answer(http.StatusCreated, fields{
			"token": fmt.Sprintf(
				"ghs_%d",
				s.requests,
			), "expires_at": time.Now().Add(s.lifetime).UTC().Format(time.RFC3339), "permissions": fields{"contents": "write"},
		})
	case strings.HasSuffix(r.URL.Path, "/app/installations/9/access_tokens"):
		answer(http.StatusForbidden, fields{"message": "This installation has been suspended"})
	default:
		answer(http.StatusNotFound, fields{"message": "Not Found"})
	}
}

// fixedServerTransport sends all requests to one server.
type fixedServerTransport struct{ server *url.URL }

func (a fixedServerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	redirected := r.Clone(r.Context())
	redirected.Host, redirected.URL.Host, redirected.URL.Scheme = r.URL.Host, a.server.Host, "http"
	return webtest.Transport.RoundTrip(redirected)
}

func startAppServer(t *testing.T, lifetime time.Duration) (*appServer, http.RoundTripper) {
	t.Helper()
	s := &appServer{lifetime: lifetime}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return s, fixedServerTransport{address}
}

func newApp(t *testing.T, id, installation, key, api string) *forge.GitHubApp {
	t.Helper()
	app, mistakes := forge.NewGitHubApp(id, installation, key, api)
	if len(mistakes) > 0 {
		t.Fatal(mistakes)
	}
	return app
}

func fetchToken(ctx context.Context, app *forge.GitHubApp, repository string, over http.RoundTripper) (string, error) {
	address, err := url.Parse(repository)
	if err != nil {
		return "", err
	}
	return app.Token(ctx, address, over)
}

// A token is replaced minutes before it expires. Concurrent callers share one request.
func TestAGitHubAppReusesATokenUntilShortlyBeforeItExpires(t *testing.T) {
	t.Parallel()
	for lifetime, want := range map[time.Duration]int{time.Hour: 1, 4 * time.Minute: 8} {
		s, over := startAppServer(t, lifetime)
		app := newApp(t, "7", "8", appPEM(), "")
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				if token, err := fetchToken(t.Context(), app, "https://github.com/owner/gitops.git", over); err != nil ||
					!strings.HasPrefix(token, "ghs_") {
					t.Errorf("got token %q, %v", token, err)
				}
			})
		}
		group.Wait()
		if s.requests != want {
			t.Errorf("with a token for %s: got %d requests, want %d", lifetime, s.requests, want)
		}
	}
}

func TestAGitHubAppServesOnlyRepositoriesOfItsServer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ repository, api, want string }{
		"github.com":              {"https://github.com/owner/gitops.git", "", "api.github.com"},
		"its API":                 {"https://api.github.com/repos/owner/gitops", "", "api.github.com"},
		"ghe.com":                 {"https://team.ghe.com/owner/gitops", "https://api.team.ghe.com", "api.team.ghe.com"},
		"a server":                {"https://git.example.com/owner/gitops", "https://git.example.com", "git.example.com/api/v3"},
		"one with /api/":          {"https://git.example.com/owner/gitops", "https://git.example.com/api/v3/", "git.example.com/api/v3"},
		"ghe.com without url":     {"https://team.ghe.com/owner/gitops", "", ""},
		"a server without url":    {"https://git.example.com/owner/gitops", "", ""},
		"another server":          {"https://evil.example/owner/gitops", "https://git.example.com", ""},
		"another port":            {"https://git.example.com:8443/owner/gitops", "https://git.example.com", ""},
		"by http":                 {"http://github.com/owner/gitops", "", ""},
		"a name with the suffix":  {"https://evilgithub.com/owner/gitops", "", ""},
		"a name with the prefix":  {"https://github.com.evil.example/owner/gitops", "", ""},
		"on this machine":         {"http://127.0.0.1:9601/owner/gitops", "", ""},
		"a server of another API": {"https://git.example.com/owner/gitops", "https://api.example.com", ""},
	} {
		s, over := startAppServer(t, time.Hour)
		_, err := fetchToken(t.Context(), newApp(t, "7", "8", appPEM(), c.api), c.repository, over)
		if c.want == "" {
			if !errors.Is(err, forge.ErrGitHubApp) || !strings.Contains(err.Error(), "set url of github_app") || len(s.paths) > 0 {
				t.Errorf("%s: got %v, requests %q", name, err, s.paths)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if want := []string{"POST " + c.want + "/app/installations/8/access_tokens"}; !slices.Equal(s.paths, want) {
			t.Errorf("%s: got requests %q, want %q", name, s.paths, want)
		}
		if s.bodies != "null" { // a body would limit permissions or repositories
			t.Errorf("%s: got body %s", name, s.bodies)
		}
	}
}

func TestErrorsOfAGitHubAppHaveNoSecrets(t *testing.T) {
	t.Parallel()
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	otherPEM := encodePEM("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(other))
	for name, c := range map[string]struct{ id, installation, key, want string }{
		"no such installation": {"7", "10", appPEM(), "api.github.com gives installation 10 of GitHub App 7 no token: the Git host answered 404 Not Found: Not Found: the App or its installation does not exist there"},
		"no such App":          {"6", "8", appPEM(), "Integration not found: the App or its installation does not exist there"},
		"another key":          {"7", "8", otherPEM, "A JSON web token could not be decoded ***: is the private key one of this App, and does the clock of this machine go right?"},
		"suspended":            {"7", "9", appPEM(), "answered 403 Forbidden: This installation has been suspended"},
	} {
		_, over := startAppServer(t, time.Hour)
		_, err := fetchToken(t.Context(), newApp(t, c.id, c.installation, c.key, ""), "https://github.com/owner/gitops.git", over)
		if !errors.Is(err, forge.ErrGitHubApp) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && strings.Contains(err.Error(), "eyJ") {
			t.Errorf("%s: the error contains a JSON Web Token: %v", name, err)
		}
	}
	// An unreachable server is not a mistake in the App.
	const unreachable = "http://127.0.0.1:1"
	if _, err := fetchToken(t.Context(), newApp(t, "7", "8", appPEM(), unreachable), unreachable+"/owner/gitops", webtest.Transport); !errors.Is(
		err,
		forge.ErrUnreachable,
	) {
		t.Errorf("no server: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := fetchToken(ctx, newApp(t, "7", "8", appPEM(), unreachable), unreachable+"/owner/gitops", webtest.Transport); !errors.Is(
		err,
		context.Canceled,
	) {
		t.Errorf("interrupted: %v", err)
	}
}

func TestEachMistakeInAGitHubAppIsFound(t *testing.T) {
	t.Parallel()
	pkcs8, err := x509.MarshalPKCS8PrivateKey(appKey())
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		id, installation, key, api string
		want                       []string
	}{
		"GitHub's format":   {"1", "2", appPEM(), "", nil},
		"as PKCS #8":        {"1", "2", encodePEM("PRIVATE KEY", pkcs8), "https://github.example.com/api/v3", nil},
		"nothing":           {"", "", "", "", []string{"id", "installation_id", "private_key"}},
		"a client ID":       {"Iv23li", "-2", appPEM(), "", []string{"id", "installation_id"}},
		"a cut key":         {"1", "2", appPEM()[:900], "", []string{"private_key"}},
		"a public key":      {"1", "2", encodePEM("PUBLIC KEY", x509.MarshalPKCS1PublicKey(&appKey().PublicKey)), "", []string{"private_key"}},
		"a URL with a user": {"1", "2", appPEM(), "https://me:hunter2@github.example.com", []string{"url"}},
		"no URL":            {"1", "2", appPEM(), "github.example.com", []string{"url"}},
		"a URL of http":     {"1", "2", appPEM(), "http://github.example.com/api/v3", []string{"url"}},
	} {
		app, mistakes := forge.NewGitHubApp(c.id, c.installation, c.key, c.api)
		if got := slices.Sorted(maps.Keys(mistakes)); !slices.Equal(got, c.want) {
			t.Errorf("%s: got mistakes %q, want %q", name, mistakes, c.want)
		}
		if shown := fmt.Sprintf("%v %+v %#v %v", app, app, app, mistakes); strings.Contains(shown, "MII") || strings.Contains(shown, "hunter2") {
			t.Errorf("%s: got a secret in %s", name, shown)
		}
	}
}

// Other Git hosts get neither a token of GitHub nor a JSON Web Token of the App.
func TestAGitHubAppIsRefusedForOtherGitHosts(t *testing.T) {
	t.Parallel()
	_, err := forge.NewGitHost(forge.HostedRepository{
		URL: "https://git.example.com/owner/gitops.git", Forge: forge.Gitea, Credentials: forge.Credentials{App: newApp(t, "7", "8", appPEM(), "")},
	}, forge.HTTPOptions{})
	if err == nil || !strings.Contains(err.Error(), "the provider's git.github_app is for GitHub, and the repository is on Gitea") {
		t.Error(err)
	}
	_, err = forge.NewGitHost(forge.HostedRepository{
		URL: "https://git.example.com/owner/gitops.git", Forge: forge.GitHub, Credentials: forge.Credentials{App: newApp(t, "7", "8", appPEM(), "")},
	}, forge.HTTPOptions{})
	if err == nil || !strings.Contains(err.Error(), "set url of github_app") {
		t.Errorf("another GitHub: %v", err)
	}
}
