// Package signature verifies cosign signatures made with a key:
// https://github.com/sigstore/cosign/blob/main/specs/SIGNATURE_SPEC.md and Sigstore bundles. It is pure, and consults no
// transparency log or certificate authority.
package signature

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/armor"
)

// Media types and annotations of signatures in registries.
const (
	// PayloadType is the media type of a layer that is signed by its SignatureAnnotation.
	PayloadType         = "application/vnd.dev.cosign.simplesigning.v1+json"
	SignatureAnnotation = "dev.cosignproject.cosign/signature"
	// PayloadsType is the type of an artifact with such layers.
	PayloadsType = "application/vnd.dev.cosign.artifact.sig.v1+json"
	// BundleType begins the type of a bundle and of its layer.
	BundleType = "application/vnd.dev.sigstore.bundle"

	payloadKind   = "cosign container image signature"
	statementType = "application/vnd.in-toto+json"
	statementKind = "https://in-toto.io/Statement/v1"
	predicateKind = "https://sigstore.dev/cosign/sign/v1"
)

// payload is "simple signing".
type payload struct {
	Critical struct {
		Image struct {
			Digest string `json:"docker-manifest-digest"`
		} `json:"image"`
		Type string `json:"type"`
	} `json:"critical"`
}

var errOtherKey = errors.New("it is not of one of the trusted keys, or the content was changed after it was signed")

// VerifyPayload checks that a key signed the payload and that it names the digest. signature is in base64.
func (k *Keys) VerifyPayload(content []byte, signature, digest string) error {
	raw, err := base64.StdEncoding.DecodeString(signature)
	if err != nil || len(raw) == 0 {
		return errors.New("it is not in base64")
	}
	if !k.verify(content, raw) {
		return errOtherKey
	}
	var read payload
	if err := json.Unmarshal(content, &read); err != nil {
		return errors.New("its payload is not JSON")
	}
	switch {
	case read.Critical.Type != payloadKind:
		return fmt.Errorf("its payload is for something else than an artifact: its type is %.80q", read.Critical.Type)
	case read.Critical.Image.Digest != digest:
		return fmt.Errorf("it is for another digest, %.80q", read.Critical.Image.Digest)
	}
	return nil
}

type bundle struct {
	MediaType string `json:"mediaType"`
	Envelope  *struct {
		Payload     []byte `json:"payload"`
		PayloadType string `json:"payloadType"`
		Signatures  []struct {
			Signature []byte `json:"sig"`
		} `json:"signatures"`
	} `json:"dsseEnvelope"`
}

type statement struct {
	Type      string `json:"_type"`
	Predicate string `json:"predicateType"`
	Subject   []struct {
		Digest map[string]string `json:"digest"`
	} `json:"subject"`
}

const maxSignatures = 16

// VerifyBundle checks that a key signed a signature of the digest, and no other attestation.
func (k *Keys) VerifyBundle(content []byte, digest string) error {
	var read bundle
	if err := json.Unmarshal(content, &read); err != nil {
		return errors.New("its bundle is not JSON")
	}
	envelope := read.Envelope
	switch {
	case !strings.HasPrefix(read.MediaType, BundleType):
		return fmt.Errorf("its bundle has the media type %.80q", read.MediaType)
	case envelope == nil || envelope.PayloadType != statementType:
		return errors.New("its bundle has no statement in an envelope")
	case len(envelope.Signatures) > maxSignatures:
		return fmt.Errorf("its bundle has more than %d signatures", maxSignatures)
	}
	// https://github.com/secure-systems-lab/dsse/blob/master/protocol.md
	signed := fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(envelope.PayloadType), envelope.PayloadType, len(envelope.Payload), envelope.Payload)
	isSigned := false
	for _, one := range envelope.Signatures {
		isSigned = isSigned || k.verify(signed, one.Signature)
	}
	if !isSigned {
		return errOtherKey
	}
	var says statement
	if err := json.Unmarshal(envelope.Payload, &says); err != nil {
		return errors.New("its statement is not JSON")
	}
	if says.Type != statementKind || says.Predicate != predicateKind {
		return fmt.Errorf("its statement is an attestation, and no signature: its predicate is %.80q", says.Predicate)
	}
	for _, subject := range says.Subject {
		if "sha256:"+subject.Digest["sha256"] == digest {
			return nil
		}
	}
	return errors.New("it is for another digest")
}

// Keys are trusted public keys; a signature by any one is enough.
type Keys struct{ keys []crypto.PublicKey }

const minRSA = 2048 // bits

// Add adds a public key in PEM: ECDSA on a NIST curve, RSA or Ed25519. The error omits the text, which may be a private key.
func (k *Keys) Add(text string) error {
	block, rest := pem.Decode([]byte(armor.Normalize(text)))
	if block == nil || len(strings.TrimSpace(string(rest))) > 0 {
		return errors.New("the key cannot be read; it is one public key in PEM, such as the file cosign.pub")
	}
	if strings.Contains(block.Type, "PRIVATE KEY") {
		return errors.New("this is a private key; give the public one, such as the file cosign.pub")
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return errors.New("the key cannot be read; it is one public key in PEM, such as the file cosign.pub")
	}
	switch public := key.(type) {
	case *ecdsa.PublicKey:
		if public.Curve == elliptic.P224() {
			return errors.New("the key is on the curve P-224; use P-256, P-384 or P-521")
		}
	case *rsa.PublicKey:
		if public.N.BitLen() < minRSA {
			return fmt.Errorf("the key is of RSA with less than %d bits", minRSA)
		}
	case ed25519.PublicKey:
	default:
		return errors.New("the key is none of ECDSA, RSA and Ed25519")
	}
	k.keys = append(k.keys, key)
	return nil
}

func (k *Keys) verify(content, signature []byte) bool {
	sum := sha256.Sum256(content)
	for _, key := range k.keys {
		isOf := false
		switch public := key.(type) {
		case *ecdsa.PublicKey:
			isOf = ecdsa.VerifyASN1(public, sum[:], signature) || verifyLonger(public, content, signature)
		case *rsa.PublicKey:
			isOf = rsa.VerifyPKCS1v15(public, crypto.SHA256, sum[:], signature) == nil
		case ed25519.PublicKey:
			isOf = ed25519.Verify(public, content, signature)
		}
		if isOf {
			return true
		}
	}
	return false
}

// verifyLonger checks with a hash as long as the curve, as cosign does for bundles.
func verifyLonger(public *ecdsa.PublicKey, content, signature []byte) bool {
	switch public.Curve {
	case elliptic.P384():
		sum := sha512.Sum384(content)
		return ecdsa.VerifyASN1(public, sum[:], signature)
	case elliptic.P521():
		sum := sha512.Sum512(content)
		return ecdsa.VerifyASN1(public, sum[:], signature)
	}
	return false
}
