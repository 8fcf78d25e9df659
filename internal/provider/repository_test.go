package provider_test

import (
	"bytes"
	"cmp"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/giteatest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/gittest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// repository is a GitOps repository that a test reads with git.
type repository struct {
	url      string // in the configuration
	provider string // provider block with credentials, or ""
	cloneURL string // with credentials, for git
	folder   string // path on this machine; reading it takes a tenth of the time of a clone
}

// onEveryServer tests with a local bare repository and, in `make acceptance`, with Gitea over http, where a push costs half a second of
// a processor.
func onEveryServer(t *testing.T, test func(t *testing.T, repo repository)) {
	t.Helper()
	t.Run("bare", func(t *testing.T) {
		t.Parallel()
		test(t, bareRepository(t))
	})
	t.Run("gitea", func(t *testing.T) {
		t.Parallel()
		test(t, giteaRepository(t))
	})
}

// bareRepository returns an unused path for a repository.
func bareRepository(t *testing.T) repository {
	t.Helper()
	path := filepath.ToSlash(filepath.Join(t.TempDir(), "gitops.git"))
	checkObjects(t, path)
	return repository{url: path, cloneURL: path}
}

// checkObjects checks all objects of a local repository after the test.
func checkObjects(t *testing.T, path string) {
	t.Cleanup(func() {
		if _, err := os.Stat(path); err != nil {
			return
		}
		if !gittest.GitServes {
			if err := gittest.Check(path); err != nil {
				t.Errorf("objects of %s: %v", path, err)
			}
			return
		}
		if output, err := exec.Command("git", "-C", path, "fsck", "--strict", "--no-dangling").CombinedOutput(); err != nil {
			t.Errorf("git fsck: %v\n%s", err, output)
		}
	})
}

// initHosted creates a bare repository with the settings of Git hosts.
func initHosted(t *testing.T, root, path, branch string) (bare string) {
	t.Helper()
	git(t, root, "init", "--quiet", "--bare", "--initial-branch="+branch, path)
	bare = filepath.Join(root, filepath.FromSlash(path))
	const settings = "[http]\n\treceivepack = true\n[uploadpack]\n\tallowFilter = true\n\tallowAnySHA1InWant = true\n"
	config := filepath.Join(bare, "config")
	writeFile(t, config, readFile(t, config)+settings)
	return bare
}

// httpBackend serves the repositories in a folder over http, for reading and pushing. [gittest.Backend] starts no process for a request.
func httpBackend(t *testing.T, root string) http.Handler {
	t.Helper()
	return gittest.Backend(root, gitBackend(t, root))
}

// gitBackend is httpBackend with git's own http-backend.
func gitBackend(t *testing.T, root string) http.Handler {
	t.Helper()
	folder, err := gitPrograms()
	if err != nil {
		t.Fatal(err)
	}
	return &cgi.Handler{
		Path:   filepath.Join(folder, "git-http-backend"),
		Env:    []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=test"},
		Stderr: io.Discard,
	}
}

var gitPrograms = sync.OnceValues(func() (string, error) {
	output, err := exec.Command("git", "--exec-path").Output()
	return strings.TrimSpace(string(output)), err
})

func giteaRepository(t *testing.T) repository {
	t.Helper()
	repo, _, _ := giteaWithUser(t)
	return repo
}

// giteaWithUser creates a repository on Gitea. The test runs only in `make acceptance`.
func giteaWithUser(t *testing.T) (repository, *giteatest.Gitea, giteatest.User) {
	t.Helper()
	acceptancetest.Only(t)
	return startGitea(t)
}

// startGitea is giteaWithUser in `make test`, too.
func startGitea(t *testing.T) (repository, *giteatest.Gitea, giteatest.User) {
	t.Helper()
	requireAcceptance(t)
	server := giteatest.Start(t)
	user := server.User(t)
	address := server.Repository(t, user, "gitops")
	parsed, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	parsed.User = url.UserPassword(user.Name, user.Token)
	folder := server.RepositoryFolder(user, "gitops")
	checkObjects(t, folder)
	return repository{
		url: address, cloneURL: parsed.String(), folder: folder,
		provider: fmt.Sprintf("provider \"flotilla\" {\n  git = { token = %q }\n}\n", user.Token),
	}, server, user
}

func requireAcceptance(t *testing.T) {
	t.Helper()
	if os.Getenv("TF_ACC") == "" {
		t.Skip("acceptance tests run with TF_ACC=1")
	}
}

// git runs git in a folder and returns its output. [gittest.Answer] answers the most frequent commands.
func git(t *testing.T, folder string, arguments ...string) string {
	t.Helper()
	if output, ok := gittest.Answer(folder, arguments...); ok {
		return strings.TrimSpace(output)
	}
	command := exec.CommandContext(t.Context(), "git", append([]string{
		"-c", "user.name=somebody", "-c", "user.email=somebody@example.com", "-c", "protocol.version=2",
		"-c", "maintenance.auto=false",
	}, arguments...)...)
	command.Dir = folder
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		t.Fatalf("git %s: %s\n%s", strings.Join(arguments, " "), err, stderr.String())
	}
	return strings.TrimSpace(string(output))
}

func (r repository) clone(t *testing.T, branch string) string {
	t.Helper()
	folder := t.TempDir()
	git(t, folder, "clone", "--quiet", "--shared", "--branch", branch, cmp.Or(r.folder, r.cloneURL), ".")
	return folder
}

func (r repository) commits(t *testing.T, branch string) int {
	t.Helper()
	number, err := strconv.Atoi(git(t, cmp.Or(r.folder, r.cloneURL), "rev-list", "--count", branch))
	if err != nil {
		t.Fatal(err)
	}
	return number
}

func (r repository) tip(t *testing.T, branch string) string {
	t.Helper()
	return git(t, cmp.Or(r.folder, r.cloneURL), "rev-parse", branch)
}

// read returns the files of a branch by path.
func (r repository) read(t *testing.T, branch string) map[string]string {
	t.Helper()
	if at := cmp.Or(r.folder, r.cloneURL); !gittest.GitServes && gittest.Local(at) != nil {
		if found := gittest.Files(t, at, branch); found != nil {
			return found
		}
	}
	return files(t, r.clone(t, branch))
}

// change commits the edit of a branch's files.
func (r repository) change(t *testing.T, branch string, edit func(folder string)) {
	t.Helper()
	if !gittest.GitServes && gittest.Local(r.cloneURL) != nil {
		gittest.Commit(t, r.cloneURL, branch, branch, edit)
		return
	}
	r.changeByGit(t, branch, edit)
}

// changeByGit is change in a clone, for links, submodules and git commands.
func (r repository) changeByGit(t *testing.T, branch string, edit func(folder string)) {
	t.Helper()
	folder := r.clone(t, branch)
	edit(folder)
	git(t, folder, "add", "--all")
	git(t, folder, "commit", "--quiet", "--message", "By hand")
	git(t, folder, "push", "--quiet", r.cloneURL, "HEAD:"+branch)
}

// files returns the files below a folder except .git, by slash-separated path.
func files(t *testing.T, folder string) map[string]string {
	t.Helper()
	contents := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if entry.Name() == ".git" {
				return filepath.SkipDir
			}
			return nil
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		contents[filepath.ToSlash(name)] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return contents
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func removeAll(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

// sshKey generates a pair of keys: PEM, and a line of authorized_keys.
func sshKey(t *testing.T, passphrase string) (private, public string) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	var block *pem.Block
	if passphrase == "" {
		block, err = ssh.MarshalPrivateKey(key, "")
	} else {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(key, "", []byte(passphrase))
	}
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromSigner(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(block)), strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey())))
}

// ~ in gitops_repo is another notation of the home directory.
func TestARepositoryBelowTheHomeDirectory(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	w := providertest.New(startProvider)
	configurationAt := func(url string) providertest.Configuration {
		return claims(claimOn(url, "web", 1, poolFleet("pool-1")))
	}
	apply(t, w, configurationAt("~/gitops.git"))
	if got := countCommits(t, filepath.Join(home, "gitops.git"), "prod"); got != "1" {
		t.Errorf("got %s commits, want 1", got)
	}
	apply(t, w, configurationAt(filepath.ToSlash(home)+"/gitops.git"))
	if got := countCommits(t, filepath.Join(home, "gitops.git"), "prod"); got != "1" {
		t.Errorf("got %s commits after an apply with the other path, want 1", got)
	}
}
