package git

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/pem"
	"errors"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"golang.org/x/crypto/ssh"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/armor"
)

// Verifier recognizes commits signed by certain keys.
type Verifier struct {
	openPGP openpgp.EntityList
	ssh     []ssh.PublicKey
}

// Add adds a public key: OpenPGP, armored, or the line of an ssh .pub file. The error does not repeat it: it may be a private
// key.
func (v *Verifier) Add(key string) error {
	if strings.Contains(key, "-----BEGIN PGP ") {
		entities, err := openpgp.ReadArmoredKeyRing(strings.NewReader(armor.Normalize(key)))
		if err != nil || len(entities) == 0 {
			return errors.New("the key cannot be read; it is what gpg --armor --export prints")
		}
		for _, entity := range entities {
			if entity.PrivateKey != nil {
				return errors.New("this is a private key; give the public one, which gpg --armor --export prints")
			}
		}
		v.openPGP = append(v.openPGP, entities...)
		return nil
	}
	public, _, _, rest, err := ssh.ParseAuthorizedKey([]byte(key))
	if err != nil || len(bytes.TrimSpace(rest)) > 0 {
		return errors.New(
			"the key cannot be read; it is an OpenPGP public key, armored, or the one line of an ssh public key, such as \"ssh-ed25519 AAAA...\"",
		)
	}
	v.ssh = append(v.ssh, public)
	return nil
}

// Accepts reports whether a signer's commits verify.
func (v *Verifier) Accepts(signer *Signer) bool {
	commit := []byte("tree of nothing\n\nto see which key it is")
	signature, err := signer.sign(commit, time.Now())
	return err == nil && v.verify(commit, signature)
}

// Verify reports whether one of the keys has signed a commit.
func (v *Verifier) Verify(commit []byte) bool {
	signed, signature, ok := cutSignature(commit)
	return ok && v.verify(signed, signature)
}

func (v *Verifier) verify(signed []byte, signature string) bool {
	if strings.HasPrefix(signature, "-----BEGIN SSH SIGNATURE-----") {
		return v.verifySSH(signed, signature)
	}
	_, err := openpgp.CheckArmoredDetachedSignature(v.openPGP, bytes.NewReader(signed), strings.NewReader(signature), nil)
	return err == nil
}

// cutSignature reverses withSignature. A commit with two signatures has none.
func cutSignature(commit []byte) (signed []byte, signature string, ok bool) {
	header, message, _ := bytes.Cut(commit, []byte("\n\n"))
	var rest [][]byte
	var lines []string
	inside, count := false, 0
	for _, line := range bytes.Split(header, []byte("\n")) {
		first, begins := bytes.CutPrefix(line, []byte("gpgsig "))
		more, continues := bytes.CutPrefix(line, []byte(" "))
		switch {
		case begins:
			inside, lines = true, append(lines, string(first))
			count++
		case inside && continues:
			lines = append(lines, string(more))
		default:
			inside, rest = false, append(rest, line)
		}
	}
	signed = append(append(bytes.Join(rest, []byte("\n")), "\n\n"...), message...)
	return signed, strings.Join(lines, "\n") + "\n", count == 1
}

func (v *Verifier) verifySSH(commit []byte, text string) bool {
	block, rest := pem.Decode([]byte(text))
	if block == nil || len(bytes.TrimSpace(rest)) > 0 {
		return false
	}
	content, ok := bytes.CutPrefix(block.Bytes, []byte(sshsigMagic))
	var blob sshsigBlob
	var signature ssh.Signature
	if !ok || ssh.Unmarshal(content, &blob) != nil || blob.Version != sshsigVersion || blob.Namespace != sshsigNamespace ||
		ssh.Unmarshal([]byte(blob.SignatureOf), &signature) != nil || signature.Format == ssh.KeyAlgoRSA {
		return false
	}
	var hash []byte
	switch blob.HashAlgorithm {
	case sshsigHash:
		sum := sha512.Sum512(commit)
		hash = sum[:]
	case "sha256":
		sum := sha256.Sum256(commit)
		hash = sum[:]
	default:
		return false
	}
	signed := append([]byte(sshsigMagic), ssh.Marshal(sshsigSigned{blob.Namespace, blob.Reserved, blob.HashAlgorithm, string(hash)})...)
	for _, key := range v.ssh {
		if string(key.Marshal()) == blob.PublicKey {
			return key.Verify(signed, &signature) == nil
		}
	}
	return false
}
