package git_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
)

func gitHubApp(t *testing.T, api string) *forge.GitHubApp {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	app, wrong := forge.NewGitHubApp(
		"7",
		"8",
		string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})),
		api,
	)
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	return app
}

// Servers other than GitHub get no request for a token. An unknown installation is not a missing repository, which a plan would
// create.
func TestAGitHubAppIsUsedOnlyForGitHub(t *testing.T) {
	t.Parallel()
	plain := git.Credentials{Login: git.Login{App: gitHubApp(t, "")}}
	for repository, want := range map[string]bool{
		"https://github.com/owner/gitops": true, "https://team.ghe.com/owner/gitops": false, "https://git.example.com/owner/gitops": false,
		"https://gitlab.com/owner/gitops": false, "https://codeberg.org/owner/gitops": false, "http://git.example.com/owner/gitops": false,
	} {
		if got := loginOf(plain, repository, repository).App != nil; got != want {
			t.Errorf("%s gets the App: %t", repository, got)
		}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v3/app/installations/8/access_tokens" {
			t.Errorf("%s was asked for without a token", r.URL.Path)
		}
		http.Error(w, `{"message": "Not Found"}`, http.StatusNotFound)
	}))
	t.Cleanup(server.Close)
	plain.App = gitHubApp(t, server.URL)
	remote := git.Remote{URL: server.URL + "/owner/gitops.git", Branch: "main", Credentials: plain, IsGitOps: true}
	_, err := git.NewConnector(git.ConnectorOptions{}).Open(t.Context(), remote, 0)
	err = remote.Describe(err)
	if !errors.Is(err, forge.ErrGitHubApp) || !errors.Is(err, git.ErrUnauthorized) || errors.Is(err, git.ErrNotFound) {
		t.Errorf("the error is %v", err)
	}
	if err != nil && !strings.Contains(err.Error(), "the provider's git.github_app: ") {
		t.Error(err)
	}
}
