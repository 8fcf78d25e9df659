package giteatest_test

import (
	"bytes"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/giteatest"
)

func TestMain(m *testing.M) { os.Exit(giteatest.Main(m)) }

func TestRepositoryIsEmptyAndAcceptsAPush(t *testing.T) {
	acceptancetest.Only(t)
	server := giteatest.Start(t)
	t.Parallel()
	user := server.User(t)
	repository := server.Repository(t, user, "gitops")
	remote := withPassword(t, repository, user.Name, user.Token)

	first := t.TempDir()
	git(t, first, "clone", "--quiet", remote, ".")
	if heads := git(t, first, "ls-remote", "--heads", remote); heads != "" {
		t.Fatalf("a new repository has branches: %s", heads)
	}
	if err := os.WriteFile(filepath.Join(first, "README.md"), []byte("hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	git(t, first, "add", ".")
	git(t, first, "commit", "--quiet", "-m", "Say hello")
	git(t, first, "push", "--quiet", "origin", "HEAD:main")

	second := t.TempDir()
	git(t, second, "clone", "--quiet", withPassword(t, repository, user.Name, user.Password), ".")
	content, err := os.ReadFile(filepath.Join(second, "README.md"))
	if err != nil || string(content) != "hello\n" {
		t.Fatalf("got README.md %q, %v", content, err)
	}

	var branch struct{ Name string }
	server.API(t, user, "GET", "/repos/"+user.Name+"/gitops/branches/main", nil, &branch)
	if branch.Name != "main" {
		t.Fatalf("got the branch %q of the API", branch.Name)
	}
}

func TestRepositoryRefusesOthers(t *testing.T) {
	acceptancetest.Only(t)
	server := giteatest.Start(t)
	t.Parallel()
	owner, other := server.User(t), server.User(t)
	repository := server.Repository(t, owner, "gitops")

	for name, remote := range map[string]string{
		"nobody":        repository,
		"another user":  withPassword(t, repository, other.Name, other.Token),
		"a wrong token": withPassword(t, repository, owner.Name, strings.Repeat("0", 40)),
	} {
		if output, err := gitCommand(t, t.TempDir(), "ls-remote", remote).CombinedOutput(); err == nil {
			t.Errorf("%s may read a private repository: %s", name, output)
		}
	}
}

func TestServerListensOnLoopbackWithItsHostKey(t *testing.T) {
	acceptancetest.Only(t)
	server := giteatest.Start(t)
	t.Parallel()
	if !strings.HasPrefix(server.URL, "http://127.0.0.1:") {
		t.Errorf("got the URL %s", server.URL)
	}
	if !strings.HasPrefix(server.SSHHostKey, "ssh-ed25519 AAAA") {
		t.Errorf("got the host key %q", server.SSHHostKey)
	}
	conn, err := net.Dial("tcp", server.SSHAddr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	banner := make([]byte, 8)
	if _, err := conn.Read(banner); err != nil || !bytes.HasPrefix(banner, []byte("SSH-2.0")) {
		t.Errorf("got the SSH banner %q, %v", banner, err)
	}
}

func withPassword(t *testing.T, repository, name, password string) string {
	t.Helper()
	parsed, err := url.Parse(repository)
	if err != nil {
		t.Fatal(err)
	}
	parsed.User = url.UserPassword(name, password)
	return parsed.String()
}

func git(t *testing.T, folder string, args ...string) string {
	t.Helper()
	cmd := gitCommand(t, folder, args...)
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, output)
	}
	return string(output)
}

func gitCommand(t *testing.T, folder string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(),
		"GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=Test", "GIT_AUTHOR_EMAIL=test@example.com",
		"GIT_COMMITTER_NAME=Test", "GIT_COMMITTER_EMAIL=test@example.com")
	return cmd
}
