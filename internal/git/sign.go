package git

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"golang.org/x/crypto/ssh"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/armor"
)

// Signer signs commits for `git verify-commit`.
type Signer struct {
	sign func(commit []byte, at time.Time) (string, error)
}

// NewSigner reads a private key: OpenPGP, armored, or ssh, PEM. Its errors contain no secret.
func NewSigner(key, passphrase string) (*Signer, error) {
	if strings.Contains(key, "-----BEGIN PGP ") {
		return newOpenPGPSigner(key, passphrase)
	}
	signer, err := parseSSHKey(key, passphrase)
	if err != nil {
		return nil, err
	}
	return &Signer{sign: func(commit []byte, _ time.Time) (string, error) { return signSSH(signer, commit) }}, nil
}

// Format hides the secrets from every verb.
func (*Signer) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "(signer)") }

func newOpenPGPSigner(key, passphrase string) (*Signer, error) {
	unreadable := errors.New("the signing key cannot be read; it is what gpg --armor --export-secret-keys prints for one key")
	entities, err := openpgp.ReadArmoredKeyRing(strings.NewReader(armor.Normalize(key)))
	if err != nil || len(entities) != 1 || entities[0].PrivateKey == nil {
		return nil, unreadable
	}
	entity := entities[0]
	private := []*packet.PrivateKey{entity.PrivateKey}
	for _, subkey := range entity.Subkeys {
		if subkey.PrivateKey != nil {
			private = append(private, subkey.PrivateKey)
		}
	}
	for _, key := range private {
		switch {
		case key.Dummy() || !key.Encrypted:
		case passphrase == "":
			return nil, errors.New("the signing key has a passphrase; give it, too")
		case key.Decrypt([]byte(passphrase)) != nil:
			return nil, errors.New("the signing key's passphrase is wrong")
		}
	}
	if _, ok := entity.SigningKey(time.Now()); !ok {
		return nil, errors.New("the signing key has expired, was revoked, or is not a key for signing")
	}
	return &Signer{sign: func(commit []byte, at time.Time) (string, error) {
		var signature bytes.Buffer
		config := &packet.Config{Time: func() time.Time { return at }}
		if err := openpgp.ArmoredDetachSign(&signature, entity, bytes.NewReader(commit), config); err != nil {
			return "", errors.New("the commit cannot be signed: the signing key is not valid at this time")
		}
		return signature.String(), nil
	}}, nil
}

// The format of OpenSSH's PROTOCOL.sshsig, as git uses it.
const (
	sshsigMagic     = "SSHSIG"
	sshsigVersion   = 1
	sshsigNamespace = "git"
	sshsigHash      = "sha512"
)

// sshsigSigned is signed after the magic words.
type sshsigSigned struct{ Namespace, Reserved, HashAlgorithm, Hash string }

// sshsigBlob follows the magic words.
type sshsigBlob struct {
	Version                                                    uint32
	PublicKey, Namespace, Reserved, HashAlgorithm, SignatureOf string
}

func signSSH(signer ssh.Signer, commit []byte) (string, error) {
	hash := sha512.Sum512(commit)
	signed := ssh.Marshal(sshsigSigned{sshsigNamespace, "", sshsigHash, string(hash[:])})
	signature, err := signSSHBlob(signer, append([]byte(sshsigMagic), signed...))
	if err != nil {
		return "", errors.New("the commit cannot be signed with the ssh key")
	}
	blob := ssh.Marshal(sshsigBlob{
		sshsigVersion, string(signer.PublicKey().Marshal()), sshsigNamespace, "", sshsigHash, string(ssh.Marshal(signature)),
	})
	return string(pem.EncodeToMemory(&pem.Block{Type: "SSH SIGNATURE", Bytes: append([]byte(sshsigMagic), blob...)})), nil
}

// signSSHBlob avoids RSA with SHA-1, which the format forbids.
func signSSHBlob(signer ssh.Signer, blob []byte) (*ssh.Signature, error) {
	if with, ok := signer.(ssh.AlgorithmSigner); ok && signer.PublicKey().Type() == ssh.KeyAlgoRSA {
		return with.SignWithAlgorithm(rand.Reader, blob, ssh.KeyAlgoRSASHA512)
	}
	return signer.Sign(rand.Reader, blob)
}

func withSignature(commit []byte, signature string) []byte {
	header, message, _ := bytes.Cut(commit, []byte("\n\n"))
	lines := strings.ReplaceAll(strings.TrimRight(signature, "\n"), "\n", "\n ")
	return slices.Concat(header, []byte("\ngpgsig "+lines+"\n\n"), message)
}

// Verifier recognizes commits signed by certain keys.
type Verifier struct {
	openPGP openpgp.EntityList
	ssh     []ssh.PublicKey
}

// Add adds a public key: OpenPGP, armored, or the line of an ssh .pub file. The error does not repeat it: it may be private.
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
