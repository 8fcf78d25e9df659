// Package signature checks the signatures that cosign makes with a key for artifacts in registries. It is pure: package
// origin fetches them. The forms are those of https://github.com/sigstore/cosign/blob/main/specs/SIGNATURE_SPEC.md and of
// Sigstore's bundles. Nothing is asked of a transparency log or a certificate authority.
package signature

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Media types and annotations of signatures in registries.
const (
	// PayloadType is the media type of a layer that is a payload, whose annotation SignatureAnnotation has the signature.
	PayloadType         = "application/vnd.dev.cosign.simplesigning.v1+json"
	SignatureAnnotation = "dev.cosignproject.cosign/signature"
	// PayloadsType is the type of an artifact that has such layers and refers to the signed artifact.
	PayloadsType = "application/vnd.dev.cosign.artifact.sig.v1+json"
	// BundleType begins the type of an artifact, and of its layer, that is a bundle.
	BundleType = "application/vnd.dev.sigstore.bundle"

	payloadKind   = "cosign container image signature"
	statementType = "application/vnd.in-toto+json"
	statementKind = "https://in-toto.io/Statement/v1"
	predicateKind = "https://sigstore.dev/cosign/sign/v1"
)

// payload is a payload in the form "simple signing".
type payload struct {
	Critical struct {
		Image struct {
			Digest string `json:"docker-manifest-digest"`
		} `json:"image"`
		Type string `json:"type"`
	} `json:"critical"`
}

var errOtherKey = errors.New("it is not of one of the trusted keys, or the content was changed after it was signed")

// VerifyPayload checks that one of the keys signed a payload, and that the payload is for a digest. signature is in base64.
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

// bundle is the part of a bundle that is needed.
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

// statement is the payload of the envelope of a bundle.
type statement struct {
	Type      string `json:"_type"`
	Predicate string `json:"predicateType"`
	Subject   []struct {
		Digest map[string]string `json:"digest"`
	} `json:"subject"`
}

// maxSignatures bounds the signatures of one envelope.
const maxSignatures = 16

// VerifyBundle checks that one of the keys signed the statement in a bundle, and that the statement is a signature for a digest.
// Attestations, which say something else of it, are not.
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
