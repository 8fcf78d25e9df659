// Package giteatest gives tests a real Git server: Gitea, built from the module tools/gitea. Each test binary starts its own, which
// takes half a second of a processor.
//
// A package that uses it calls [Main], which stops the server:
//
//	func TestMain(m *testing.M) { os.Exit(giteatest.Main(m)) }
//
//	func TestPush(t *testing.T) {
//		server := giteatest.Start(t)
//		user := server.User(t)
//		url := server.Repository(t, user, "gitops")
//		...
//	}
package giteatest

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/webtest"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/processtest"
)

// Gitea is a running server. Its methods may be called from parallel tests.
type Gitea struct {
	// URL has no trailing slash.
	URL string

	// SSHAddr is the host:port for the user "git".
	SSHAddr string

	// SSHHostKey is the line of known_hosts without the host: "ssh-ed25519 AAAA...".
	SSHHostKey string

	admin    User
	folder   string
	database string // folder
	process  *processtest.Process
}

// User is a new account.
type User struct {
	Name     string
	Password string

	// Token has every scope.
	Token string
}

// shared is package state, the only state that tests of a binary share.
var shared struct {
	once    sync.Once
	managed bool
	server  *Gitea
	err     error
}

// Main runs the tests, stops the server, and returns the exit code.
func Main(m *testing.M) int {
	shared.managed = true
	defer func() {
		if shared.server != nil {
			shared.server.stop()
		}
	}()
	return m.Run()
}

// Start returns the server, starting it first if needed: three seconds, or minutes with a build. FLOTILLA_GITEA names another
// binary. With -short the test is skipped.
func Start(t testing.TB) *Gitea {
	t.Helper()
	if testing.Short() {
		t.Skip("needs Gitea, which -short leaves out")
	}
	if !shared.managed {
		t.Fatal("giteatest: TestMain must call giteatest.Main, which stops the server")
	}
	shared.once.Do(func() {
		// The server outlives this test.
		shared.server, shared.err = launch(context.WithoutCancel(t.Context()))
	})
	if shared.err != nil {
		t.Fatalf("giteatest: %v", shared.err)
	}
	return shared.server
}

// User creates an account.
func (s *Gitea) User(t testing.TB) User {
	t.Helper()
	user := newUser("user")
	err := s.call(t.Context(), s.admin, "POST", "/admin/users", map[string]any{
		"username":             user.Name,
		"password":             user.Password,
		"email":                user.email(),
		"must_change_password": false,
	}, nil)
	if err == nil {
		user.Token, err = s.token(t.Context(), user)
	}
	if err != nil {
		t.Fatalf("giteatest: %v", err)
	}
	return user
}

// Repository creates an empty private repository with the default branch main, and returns its clone URL, without credentials.
func (s *Gitea) Repository(t testing.TB, owner User, name string) string {
	t.Helper()
	err := s.call(t.Context(), owner, "POST", "/user/repos", map[string]any{
		"name":           name,
		"private":        true,
		"default_branch": "main",
	}, nil)
	if err != nil {
		t.Fatalf("giteatest: %v", err)
	}
	return fmt.Sprintf("%s/%s/%s.git", s.URL, owner.Name, name)
}

// RepositoryFolder returns the folder of a bare repository.
func (s *Gitea) RepositoryFolder(owner User, name string) string {
	return filepath.Join(s.folder, "data", "gitea-repositories", strings.ToLower(owner.Name), strings.ToLower(name)+".git")
}

// API calls Gitea's API, /api/v1, with in as JSON unless nil, and decodes the answer into out unless nil. Answers but 2xx fail
// the test.
func (s *Gitea) API(t testing.TB, user User, method, path string, in, out any) {
	t.Helper()
	if err := s.call(t.Context(), user, method, path, in, out); err != nil {
		t.Fatalf("giteatest: %v", err)
	}
}

func newUser(prefix string) User {
	return User{
		Name:     prefix + "-" + strings.ToLower(rand.Text()[:12]),
		Password: rand.Text(),
	}
}

func (u User) email() string { return u.Name + "@example.com" }

// token creates a user's first access token, by password.
func (s *Gitea) token(ctx context.Context, user User) (string, error) {
	var token struct {
		SHA1 string `json:"sha1"`
	}
	err := s.call(ctx, user, "POST", "/users/"+user.Name+"/tokens", map[string]any{
		"name":   "test",
		"scopes": []string{"all"},
	}, &token)
	return token.SHA1, err
}

func (s *Gitea) call(ctx context.Context, user User, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("%s %s: %w", method, path, err)
		}
		body = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, s.URL+"/api/v1"+path, body)
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	if user.Token == "" {
		request.SetBasicAuth(user.Name, user.Password)
	} else {
		request.Header.Set("Authorization", "token "+user.Token)
	}
	response, err := webtest.Client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: Gitea answered %s: %s", method, path, response.Status, text)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(text, out); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return nil
}
