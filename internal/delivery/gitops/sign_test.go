package gitops_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"golang.org/x/crypto/ssh"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
)

// applySigned makes two signed commits, and one for a pull request.
func applySigned(t *testing.T, r *repository, key, passphrase string) (commits []string) {
	t.Helper()
	signer, err := git.NewSigner(key, passphrase)
	if err != nil {
		t.Fatal(err)
	}
	client := newClient(gitops.BranchOptions{Signer: signer})
	if printed := fmt.Sprintf("%v %+v %#v", signer, signer, signer); !strings.Contains(strings.ToLower(printed), "signer") ||
		len(printed) > 60 {
		t.Errorf("printed: %s", printed)
	}
	for i, head := range []string{"", "", "flotilla/dev"} {
		edit := devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", fmt.Sprint(i))})
		edit.Head, edit.Subject = head, "deploy\n\nwith a text of\n\nseveral paragraphs"
		result, err := client.Apply(context.Background(), r.remote, edit)
		if err != nil || !result.Committed {
			t.Fatalf("%+v, %v", result, err)
		}
		commit := result.Commit
		if head != "" {
			commit = result.HeadCommit
		}
		commits = append(commits, commit)
	}
	r.fsck()
	return commits
}

func TestACommitSignedWithOpenPGPIsVerifiedByGit(t *testing.T) {
	if _, err := exec.LookPath("gpg"); err != nil {
		t.Skip("needs gpg, which is not on PATH")
	}
	home, err := os.MkdirTemp("", "gpg") //nolint:usetesting // the agent's socket needs a short path
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GNUPGHOME", home)
	t.Cleanup(func() {
		_, _ = tryRun(t, "", "gpgconf", "--homedir", home, "--kill", "all")
		_ = os.RemoveAll(home)
	})
	for name, config := range map[string]*packet.Config{
		"ed25519": {Algorithm: packet.PubKeyAlgoEdDSA, Curve: packet.Curve25519},
		"rsa":     {Algorithm: packet.PubKeyAlgoRSA, RSABits: 2048},
	} {
		entity, err := openpgp.NewEntity("Fleet", "", "fleet@example.com", config)
		if err != nil {
			t.Fatal(err)
		}
		public := armorKey(t, openpgp.PublicKeyType, func(b *bytes.Buffer) error { return entity.Serialize(b) })
		file := filepath.Join(t.TempDir(), "public.asc")
		if err := os.WriteFile(file, []byte(public), 0o600); err != nil {
			t.Fatal(err)
		}
		run(t, "", "gpg", "--batch", "--quiet", "--import", file)
		for _, passphrase := range []string{"", canary} {
			if passphrase != "" {
				if err := entity.EncryptPrivateKeys([]byte(passphrase), nil); err != nil {
					t.Fatal(err)
				}
			}
			private := armorKey(t, openpgp.PrivateKeyType, func(b *bytes.Buffer) error { return entity.SerializePrivateWithoutSigning(b, nil) })
			r := newRepository(t, servings[0])
			for _, commit := range applySigned(t, r, private, passphrase) {
				if output := r.git("verify-commit", "-v", commit); !strings.Contains(output, "Good signature") {
					t.Errorf("%s: %s", name, output)
				}
			}
			for _, wrong := range []string{"", canary + "x"} {
				if _, err := git.NewSigner(private, wrong); passphrase != "" && (err == nil || strings.Contains(err.Error(), canary)) {
					t.Errorf("%s: passphrase %q: %v", name, wrong, err)
				}
			}
		}
	}
}

func armorKey(t *testing.T, kind string, write func(*bytes.Buffer) error) string {
	t.Helper()
	var key, text bytes.Buffer
	if err := write(&key); err != nil {
		t.Fatal(err)
	}
	w, err := armor.Encode(&text, kind, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(key.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

func TestACommitSignedWithAnSSHKeyIsVerifiedByGit(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("needs ssh-keygen, which is not on PATH")
	}
	_, ed, _ := ed25519.GenerateKey(rand.Reader)
	ec, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	rs, _ := rsa.GenerateKey(rand.Reader, 2048)
	for name, key := range map[string]crypto.Signer{"ed25519": ed, "ecdsa": ec, "rsa": rs} {
		for _, passphrase := range []string{"", canary} {
			if !acceptancetest.All() && (passphrase == "") != (name == "ecdsa") {
				continue
			}
			var block *pem.Block
			var err error
			if passphrase == "" {
				block, err = ssh.MarshalPrivateKey(key, "")
			} else {
				block, err = ssh.MarshalPrivateKeyWithPassphrase(key, "", []byte(passphrase))
			}
			if err != nil {
				t.Fatal(err)
			}
			public, err := ssh.NewPublicKey(key.Public())
			if err != nil {
				t.Fatal(err)
			}
			allowed := filepath.Join(t.TempDir(), "allowed")
			if err := os.WriteFile(allowed, append([]byte("fleet@example.com "), ssh.MarshalAuthorizedKey(public)...), 0o600); err != nil {
				t.Fatal(err)
			}
			r := newRepository(t, servings[0])
			for _, commit := range applySigned(t, r, string(pem.EncodeToMemory(block)), passphrase) {
				output := r.git("-c", "gpg.format=ssh", "-c", "gpg.ssh.allowedSignersFile="+allowed, "verify-commit", "-v", commit)
				if !strings.Contains(output, `Good "git" signature for fleet@example.com`) {
					t.Errorf("%s: %s", name, output)
				}
			}
		}
	}
}

func TestAnInvalidSigningKeyIsAClearError(t *testing.T) {
	t.Parallel()
	for _, key := range []string{
		"", canary, "-----BEGIN PGP PRIVATE KEY BLOCK-----\n" + canary, "-----BEGIN OPENSSH PRIVATE KEY-----\n" + canary + "\n-----END OPENSSH PRIVATE KEY-----\n",
	} {
		if _, err := git.NewSigner(key, canary); err == nil || strings.Contains(err.Error(), canary) {
			t.Errorf("%q: %v", key, err)
		}
	}
}
