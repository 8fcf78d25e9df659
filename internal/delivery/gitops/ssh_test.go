//go:build unix

package gitops_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
)

// newSSHKey returns a key as PEM text, and its public key as one line.
func newSSHKey(t testing.TB, passphrase string) (private, public string) {
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

// overGiteaSSH creates a repository of a new user with a key in Gitea. The repository in the directory mirrors it.
func overGiteaSSH(t testing.TB, directory string) git.Remote {
	t.Helper()
	return giteaSSH(t, directory, "")
}

func giteaSSH(t testing.TB, directory, passphrase string) git.Remote {
	t.Helper()
	server := gitea(t)
	user := mirrorFromGitea(t, server, directory)
	private, public := newSSHKey(t, passphrase)
	server.API(t, user, "POST", "/user/keys", map[string]any{"title": "test", "key": public}, nil)
	host, port, err := net.SplitHostPort(server.SSHAddr)
	if err != nil {
		t.Fatal(err)
	}
	return git.Remote{
		IsGitOps: true, URL: fmt.Sprintf("ssh://git@%s/%s/gitops.git", server.SSHAddr, user.Name),
		Credentials: git.Credentials{Login: git.Login{SSH: git.SSHCredentials{
			Key: private, Passphrase: passphrase, KnownHosts: fmt.Sprintf("[%s]:%s %s\n", host, port, server.SSHHostKey),
		}}},
	}
}

// newGiteaRepository returns a repository in Gitea over SSH, and a function that runs git in its mirror.
func newGiteaRepository(t *testing.T, passphrase string) (remote git.Remote, runGit func(args ...string) string) {
	t.Helper()
	r := newRepository(t, serving{name: "Gitea over ssh", mirror: true, remote: func(t testing.TB, directory string) git.Remote {
		return giteaSSH(t, directory, passphrase)
	}})
	return r.remote, func(args ...string) string {
		t.Helper()
		r.fsck()
		return r.git(args...)
	}
}

func TestSSHSupportsAllOperations(t *testing.T) {
	t.Parallel()
	for name, passphrase := range map[string]string{"a key": "", "a key with a passphrase": canary} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			remote, runGit := newGiteaRepository(t, passphrase)
			client := newClient(gitops.BranchOptions{})
			edit := devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", "1"), "large/": {}})
			first, err := client.Apply(context.Background(), remote, edit)
			if err != nil || !first.Committed || first.Pushes != 1 {
				t.Fatalf("first: %+v, %v", first, err)
			}
			if again, err := client.Apply(context.Background(), remote, edit); err != nil || again.Committed || again.Commit != first.Commit {
				t.Errorf("again: %+v, %v", again, err)
			}
			view, err := readOwnerWith(context.Background(), client, remote, dev)
			if err != nil || sprint(readTrees(t, view, treesOf(edit))) != sprint(treesOf(edit)) {
				t.Errorf("view: %+v, %v", view, err)
			}
			if owned, err := readOwned(view); err != nil || sprint(owned) != sprint(treesOf(edit)) {
				t.Errorf("owned: %v, %v", owned, err)
			}
			edit.Hosts["drone"]["app"] = newFolder(t, "a", "2")
			edit.Head = "flotilla/dev"
			for _, content := range []string{"2", "3"} {
				edit.Hosts["drone"]["app"] = newFolder(t, "a", content)
				if proposed, err := client.Apply(context.Background(), remote, edit); err != nil || !proposed.Committed {
					t.Errorf("proposed: %+v, %v", proposed, err)
				}
			}
			if got := runGit("show", "flotilla/dev:dev/drone/app/a"); got != "3" {
				t.Errorf("on the head: %q", got)
			}
			if got := runGit("rev-parse", "main"); got != first.Commit {
				t.Errorf("main: got %s, want %s", got, first.Commit)
			}
			edit.Head = ""
			second, err := client.Apply(context.Background(), remote, edit)
			if err != nil || !second.Committed {
				t.Errorf("second: %+v, %v", second, err)
			}
			former, err := view.ReadFoldersAt(context.Background(), first.Commit)
			if err != nil {
				t.Errorf("read folders: %v", err)
			}
			if rollback, err := client.Apply(context.Background(), remote, gitops.Edit{Owner: dev, Hosts: former}); err != nil || !rollback.Committed {
				t.Errorf("rollback: %+v, %v", rollback, err)
			}
			if got := runGit("show", "main:dev/drone/app/a"); got != "1" {
				t.Errorf("after the rollback: got %q, want 1", got)
			}
			branch, err := client.ReadBranch(context.Background(), remote)
			if err != nil {
				t.Fatal(err)
			}
			read, err := branch.ReadHistory(context.Background(), dev, gitops.HistoryFilter{})
			if err != nil || len(read.Commits) != 3 || read.Commits[1].Commit != second.Commit || read.Commits[2].Commit != first.Commit {
				t.Errorf("history: %+v, %v", read, err)
			}
			short, cancel := context.WithTimeout(context.Background(), time.Millisecond)
			if _, err := readOwnerWith(short, client, remote, dev); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a short deadline: %v", err)
			}
			cancel()
		})
	}
}

func TestSSHEndsWithItsContextWhenTheServerStopsAnswering(t *testing.T) {
	t.Parallel()
	r := newRepository(t, serving{name: "ssh", remote: func(t testing.TB, directory string) git.Remote {
		return overSSHWith(t, directory, "exec sleep 600 # ")
	}})
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_, readErr := readOwnerWith(ctx, newClient(gitops.BranchOptions{}), r.remote, dev)
	_, applyErr := newClient(gitops.BranchOptions{}).Apply(ctx, r.remote, devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", "1")}))
	for _, err := range []error{readErr, applyErr} {
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("err = %v", err)
		}
	}
}

func TestSSHUsesTheKeysOfAnAgent(t *testing.T) {
	remote, _ := newGiteaRepository(t, "")
	key, err := ssh.ParseRawPrivateKey([]byte(remote.Credentials.SSH.Key))
	if err != nil {
		t.Fatal(err)
	}
	remote.Credentials.SSH.Key = ""
	t.Setenv("SSH_AUTH_SOCK", "")
	if _, err := readOwnerWith(context.Background(), newClient(gitops.BranchOptions{}), remote, dev); !errors.Is(err, git.ErrUnauthorized) ||
		!strings.Contains(err.Error(), "SSH_AUTH_SOCK") {
		t.Errorf("no agent: %v", err)
	}
	keyring := agent.NewKeyring()
	if err := keyring.Add(agent.AddedKey{PrivateKey: key}); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { _ = agent.ServeAgent(keyring, connection) }()
		}
	}()
	t.Setenv("SSH_AUTH_SOCK", socket)
	edit := devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", "1")})
	if result, err := newClient(gitops.BranchOptions{}).Apply(context.Background(), remote, edit); err != nil || !result.Committed {
		t.Errorf("%+v, %v", result, err)
	}
}

func TestSSHErrorsHaveRemediesAndNoSecrets(t *testing.T) {
	t.Parallel()
	remote, _ := newGiteaRepository(t, "")
	encrypted, _ := newSSHKey(t, canary)
	_, other := newSSHKey(t, "")
	stranger, _ := newSSHKey(t, "")
	host, port, _ := net.SplitHostPort(strings.TrimPrefix(strings.Split(remote.URL, "/")[2], "git@"))
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(strings.SplitN(remote.Credentials.SSH.KnownHosts, " ", 2)[1]))
	if err != nil {
		t.Fatal(err)
	}
	fingerprint := ssh.FingerprintSHA256(key)
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts without an answer
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	for name, test := range map[string]struct {
		change func(*git.Remote)
		kind   error
		texts  []string
	}{
		"an unknown host": {
			func(r *git.Remote) { r.Credentials.SSH.KnownHosts = "elsewhere " + other },
			git.ErrHostKey, []string{"ssh-ed25519", fingerprint, "add this line", "[" + host + "]:" + port},
		},
		"no known hosts": {
			func(r *git.Remote) {
				r.Credentials.SSH.KnownHosts, r.Credentials.SSH.KnownHostsFile = "", os.DevNull
			},
			git.ErrHostKey, []string{fingerprint},
		},
		"another key": {
			func(r *git.Remote) {
				r.Credentials.SSH.KnownHosts = fmt.Sprintf("[%s]:%s %s\n", host, port, other)
			},
			git.ErrHostKey, []string{fingerprint, "has another", "the connection is intercepted"},
		},
		"a revoked key": {
			func(r *git.Remote) { r.Credentials.SSH.KnownHosts = "@revoked " + r.Credentials.SSH.KnownHosts },
			git.ErrHostKey, []string{fingerprint, "revoked"},
		},
		"broken known hosts": {
			func(r *git.Remote) { r.Credentials.SSH.KnownHosts = "x y z\n" }, nil, []string{"known hosts cannot be read"},
		},
		"an unknown user key": {
			func(r *git.Remote) { r.Credentials.SSH.Key, r.Credentials.SSH.Passphrase = stranger, canary },
			git.ErrUnauthorized, []string{"none of the ssh keys"},
		},
		"no passphrase":      {func(r *git.Remote) { r.Credentials.SSH.Key = encrypted }, nil, []string{"give it, too"}},
		"a wrong passphrase": {func(r *git.Remote) { r.Credentials.SSH.Key, r.Credentials.SSH.Passphrase = encrypted, canary+"x" }, nil, []string{"passphrase is wrong"}},
		"no key":             {func(r *git.Remote) { r.Credentials.SSH.Key = canary }, nil, []string{"cannot be read"}},
		"no such repository": {func(r *git.Remote) { r.URL = strings.Replace(r.URL, "gitops.git", "no.git", 1) }, git.ErrNotFound, nil},
		"no server":          {func(r *git.Remote) { r.URL = "ssh://git@127.0.0.1:1/o/r" }, git.ErrUnreachable, []string{"refused"}},
		"a silent server": {
			func(r *git.Remote) { r.URL = "ssh://git@" + silent.Addr().String() + "/o/r" }, context.DeadlineExceeded, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			changed := remote
			test.change(&changed)
			timeout := 2 * time.Minute
			if errors.Is(test.kind, context.DeadlineExceeded) {
				timeout = 2 * time.Second
			}
			ctx, cancel := context.WithTimeout(context.Background(), timeout)
			defer cancel()
			_, readErr := readOwnerWith(ctx, newClient(gitops.BranchOptions{}), changed, dev)
			_, applyErr := newClient(gitops.BranchOptions{}).Apply(ctx, changed, devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", "1")}))
			for _, err := range []error{readErr, applyErr} {
				if err == nil || test.kind != nil && !errors.Is(err, test.kind) {
					t.Fatalf("err = %v", err)
				}
				for _, text := range test.texts {
					if !strings.Contains(err.Error(), text) {
						t.Errorf("err = %v, without %q", err, text)
					}
				}
				printed := fmt.Sprintf("%v %+v %#v %v %#v", err, changed, changed, changed.Credentials.SSH, changed.Credentials)
				if strings.Contains(printed, canary) || strings.Contains(printed, "PRIVATE KEY") && name != "no key" {
					t.Errorf("got a secret in %s", printed)
				}
			}
		})
	}
}
