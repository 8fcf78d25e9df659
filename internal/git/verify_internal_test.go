package git

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"golang.org/x/crypto/ssh"
)

// signers are a signer of each kind with its public key.
func signers(t testing.TB) map[string]struct {
	signer *Signer
	public string
} {
	t.Helper()
	found := map[string]struct {
		signer *Signer
		public string
	}{}
	add := func(name, private, public string) {
		signer, err := NewSigner(private, "")
		if err != nil {
			t.Fatal(err)
		}
		found[name] = struct {
			signer *Signer
			public string
		}{signer, public}
	}
	_, ed, _ := ed25519.GenerateKey(rand.Reader)
	ec, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	rs, _ := rsa.GenerateKey(rand.Reader, 2048)
	for name, key := range map[string]crypto.Signer{"ed25519": ed, "ecdsa": ec, "rsa": rs} {
		block, err := ssh.MarshalPrivateKey(key, "")
		if err != nil {
			t.Fatal(err)
		}
		public, err := ssh.NewPublicKey(key.Public())
		if err != nil {
			t.Fatal(err)
		}
		add(name, string(pem.EncodeToMemory(block)), string(ssh.MarshalAuthorizedKey(public)))
	}
	for _, name := range []string{"openpgp", "another openpgp"} {
		entity, err := openpgp.NewEntity("Fleet", "", "fleet@example.com", nil)
		if err != nil {
			t.Fatal(err)
		}
		text := func(kind string, write func(*bytes.Buffer) error) string {
			var key, armored bytes.Buffer
			if err := write(&key); err != nil {
				t.Fatal(err)
			}
			w, err := armor.Encode(&armored, kind, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = w.Write(key.Bytes())
			_ = w.Close()
			return armored.String()
		}
		add(name, text(openpgp.PrivateKeyType, func(b *bytes.Buffer) error { return entity.SerializePrivateWithoutSigning(b, nil) }),
			text(openpgp.PublicKeyType, func(b *bytes.Buffer) error { return entity.Serialize(b) }))
	}
	return found
}

const unsignedCommit = "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nauthor x <x> 1700000000 +0000\ncommitter x <x> 1700000000 +0000\n\nsubject\n\ngpgsig no header\n"

func TestOnlyCommitsWithKnownKeysVerify(t *testing.T) {
	t.Parallel()
	all := signers(t)
	for name, one := range all {
		known, others := &Verifier{}, &Verifier{}
		for other, key := range all {
			to := others
			if other == name {
				to = known
			}
			if err := to.Add(key.public); err != nil {
				t.Fatalf("%s: %v", other, err)
			}
		}
		signature, err := one.signer.sign([]byte(unsignedCommit), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		commit := withSignature([]byte(unsignedCommit), signature)
		if !known.Verify(commit) || !known.Accepts(one.signer) {
			t.Errorf("%s: its own commit does not verify", name)
		}
		if others.Verify(commit) || others.Accepts(one.signer) || (&Verifier{}).Verify(commit) {
			t.Errorf("%s: it verifies with other keys", name)
		}
		for what, changed := range map[string][]byte{
			"unsigned":         []byte(unsignedCommit),
			"another tree":     bytes.Replace(commit, []byte("tree 4b"), []byte("tree 4c"), 1),
			"another message":  append(bytes.Clone(commit), '.'),
			"two signatures":   withSignature(commit, signature),
			"cut":              commit[:len(commit)/2],
			"a line more":      bytes.Replace(commit, []byte("\ngpgsig"), []byte("\nencoding x\ngpgsig"), 1),
			"in the message":   []byte(unsignedCommit + "gpgsig " + strings.ReplaceAll(signature, "\n", "\n ")),
			"nothing":          nil,
			"another's header": bytes.Replace(commit, []byte("author x"), []byte("author y"), 1),
		} {
			if known.Verify(changed) {
				t.Errorf("%s: %s verifies", name, what)
			}
		}
	}
}

func TestAPublicKeyThatCannotBeReadIsAClearErrorWithoutIt(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"", "hunter2", "ssh-ed25519 hunter2", "-----BEGIN PGP PUBLIC KEY BLOCK-----\nhunter2"} {
		if err := (&Verifier{}).Add(key); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", key, err)
		}
	}
}

func FuzzVerify(f *testing.F) {
	v := &Verifier{}
	for _, one := range signers(f) {
		if err := v.Add(one.public); err != nil {
			f.Fatal(err)
		}
		signature, err := one.signer.sign([]byte(unsignedCommit), time.Now())
		if err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(signature))
	}
	f.Fuzz(func(t *testing.T, signature []byte) {
		if v.Verify(withSignature([]byte(unsignedCommit+"."), string(signature))) {
			t.Errorf("%q verifies", signature)
		}
	})
}

// TestAnExpiredKeyIsUntrustedUntilItIsExtended verifies a commit that was signed while its key was valid.
func TestAnExpiredKeyIsUntrustedUntilItIsExtended(t *testing.T) {
	t.Parallel()
	made := time.Now().Add(-2 * time.Hour)
	config := &packet.Config{KeyLifetimeSecs: 3600, Time: func() time.Time { return made }}
	entity, err := openpgp.NewEntity("Fleet", "", "fleet@example.com", config)
	if err != nil {
		t.Fatal(err)
	}
	commit := []byte("tree of nothing\n\nmessage")
	var signature bytes.Buffer
	if err := openpgp.ArmoredDetachSign(&signature, entity, bytes.NewReader(commit), config); err != nil {
		t.Fatal(err)
	}
	verifier := &Verifier{openPGP: openpgp.EntityList{entity}}
	if verifier.verify(commit, signature.String()) {
		t.Error("an expired key is trusted")
	}
	extended := uint32(24 * 3600)
	for _, identity := range entity.Identities {
		identity.SelfSignature.KeyLifetimeSecs = &extended
	}
	if entity.SelfSignature != nil {
		entity.SelfSignature.KeyLifetimeSecs = &extended
	}
	if !verifier.verify(commit, signature.String()) {
		t.Error("an extended key is not trusted")
	}
}
