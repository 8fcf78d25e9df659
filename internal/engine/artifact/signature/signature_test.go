package signature_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact/signature"
)

var (
	digest  = "sha256:" + strings.Repeat("a1", 32)
	other   = "sha256:" + strings.Repeat("b2", 32)
	content = payloadOf(digest, "cosign container image signature")
)

func payloadOf(digest, kind string) []byte {
	return fmt.Appendf(
		nil,
		`{"critical":{"identity":{"docker-reference":"r"},"image":{"docker-manifest-digest":%q},"type":%q},"optional":null}`,
		digest,
		kind,
	)
}

// signers returns a private key of each kind.
func signers(t testing.TB) map[string]crypto.Signer {
	t.Helper()
	all := map[string]crypto.Signer{}
	for name, curve := range map[string]elliptic.Curve{"P-256": elliptic.P256(), "P-384": elliptic.P384(), "P-521": elliptic.P521()} {
		key, err := ecdsa.GenerateKey(curve, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = key
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	all["RSA"], all["Ed25519"] = rsaKey, ed
	return all
}

func signContent(t testing.TB, key crypto.Signer, content []byte, hash crypto.Hash) []byte {
	t.Helper()
	message := content
	switch {
	case isEd25519(key):
		hash = 0
	case hash == crypto.SHA384:
		sum := sha512.Sum384(content)
		message = sum[:]
	case hash == crypto.SHA512:
		sum := sha512.Sum512(content)
		message = sum[:]
	default:
		sum := sha256.Sum256(content)
		message = sum[:]
	}
	signed, err := key.Sign(rand.Reader, message, hash)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

func isEd25519(key crypto.Signer) bool { _, is := key.(ed25519.PrivateKey); return is }

func encodePEM(t testing.TB, public crypto.PublicKey) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

func keysOf(t testing.TB, all ...crypto.Signer) *signature.Keys {
	t.Helper()
	keys := &signature.Keys{}
	for _, key := range all {
		if err := keys.Add(encodePEM(t, key.Public())); err != nil {
			t.Fatal(err)
		}
	}
	return keys
}

// bundleOf returns a bundle in the format of cosign 3.
func bundleOf(t testing.TB, key crypto.Signer, hash crypto.Hash, statement string) []byte {
	t.Helper()
	const kind = "application/vnd.in-toto+json"
	pae := fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(kind), kind, len(statement), statement)
	text, err := json.Marshal(map[string]any{
		"mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json", "verificationMaterial": map[string]any{"publicKey": map[string]any{"hint": "x"}},
		"dsseEnvelope": map[string]any{
			"payload": []byte(statement), "payloadType": kind, "signatures": []any{map[string]any{"sig": signContent(t, key, pae, hash)}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func statementOf(digest, predicate string) string {
	return fmt.Sprintf(`{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":{"sha256":%q}}],"predicateType":%q,"predicate":{}}`,
		strings.TrimPrefix(digest, "sha256:"), predicate)
}

const predicate = "https://sigstore.dev/cosign/sign/v1"

func TestSignatureOfEachKindOfKeyIsAccepted(t *testing.T) {
	t.Parallel()
	all := signers(t)
	for name, key := range all {
		keys := keysOf(t, all["P-256"], key)
		if err := keys.VerifyPayload(content, base64.StdEncoding.EncodeToString(signContent(t, key, content, crypto.SHA256)), digest); err != nil {
			t.Errorf("%s, payload: %v", name, err)
		}
		hash := map[string]crypto.Hash{"P-384": crypto.SHA384, "P-521": crypto.SHA512}[name]
		if hash == 0 {
			hash = crypto.SHA256
		}
		if err := keys.VerifyBundle(bundleOf(t, key, hash, statementOf(digest, predicate)), digest); err != nil {
			t.Errorf("%s, bundle: %v", name, err)
		}
	}
}

func TestInvalidSignaturesAreRefused(t *testing.T) {
	t.Parallel()
	all := signers(t)
	key, untrusted := all["P-256"], all["Ed25519"]
	keys := keysOf(t, key, all["RSA"])
	sign := func(key crypto.Signer, content []byte) string {
		return base64.StdEncoding.EncodeToString(signContent(t, key, content, crypto.SHA256))
	}
	tampered := []byte(strings.Replace(string(content), `"r"`, `"s"`, 1))
	for name, test := range map[string]struct {
		content   []byte
		signature string
		want      string
	}{
		"another key":        {content, sign(untrusted, content), "not of one of the trusted keys"},
		"another digest":     {payloadOf(other, "cosign container image signature"), sign(key, payloadOf(other, "cosign container image signature")), "for another digest"},
		"another type":       {payloadOf(digest, "x"), sign(key, payloadOf(digest, "x")), "for something else"},
		"a changed payload":  {tampered, sign(key, content), "the content was changed"},
		"no signature":       {content, "", "not in base64"},
		"no base64":          {content, "%", "not in base64"},
		"no JSON":            {[]byte("x"), sign(key, []byte("x")), "not JSON"},
		"an empty object":    {[]byte("{}"), sign(key, []byte("{}")), "for something else"},
		"a list as a digest": {[]byte(`{"critical":{"image":{"docker-manifest-digest":[]}}}`), sign(key, []byte(`{"critical":{"image":{"docker-manifest-digest":[]}}}`)), "not JSON"},
	} {
		if err := keys.VerifyPayload(test.content, test.signature, digest); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
	ok := string(bundleOf(t, key, crypto.SHA256, statementOf(digest, predicate)))
	for name, test := range map[string]struct{ bundle, want string }{
		"another key":           {string(bundleOf(t, untrusted, crypto.SHA256, statementOf(digest, predicate))), "not of one of the trusted keys"},
		"another digest":        {string(bundleOf(t, key, crypto.SHA256, statementOf(other, predicate))), "another digest"},
		"an attestation":        {string(bundleOf(t, key, crypto.SHA256, statementOf(digest, "https://slsa.dev/provenance/v1"))), "an attestation, and no signature"},
		"another type":          {strings.Replace(ok, "in-toto+json", "x", 1), "no statement"},
		"another media type":    {strings.Replace(ok, "sigstore.bundle", "x", 1), "media type"},
		"a signature of a blob": {`{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json","messageSignature":{}}`, "no statement"},
		"no JSON":               {"x", "not JSON"},
		"no signature":          {strings.Replace(ok, `"sig":`, `"x":`, 1), "not of one of the trusted keys"},
		"too many": {
			`{"mediaType":"application/vnd.dev.sigstore.bundle","dsseEnvelope":{"payloadType":"application/vnd.in-toto+json","signatures":[` +
				strings.Repeat(`{},`, 16) + `{}]}}`, "more than 16 signatures",
		},
		"a statement that is no JSON": {string(bundleOf(t, key, crypto.SHA256, "x")), "not JSON"},
	} {
		if err := keys.VerifyBundle([]byte(test.bundle), digest); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("bundle, %s: %v, want %q", name, err, test.want)
		}
	}
	if err := new(signature.Keys).VerifyPayload(content, sign(key, content), digest); err == nil {
		t.Error("a signature is accepted without keys")
	}
}

func TestInvalidPublicKeysAreRefused(t *testing.T) {
	t.Parallel()
	small, err := rsa.GenerateKey(rand.Reader, 1024) //nolint:gosec // the test expects its refusal
	if err != nil {
		t.Fatal(err)
	}
	p224Key, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	good := encodePEM(t, signers(t)["P-256"].Public())
	for name, test := range map[string]struct{ text, want string }{
		"a private key":    {"-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\nY2FuYXJ5\n-----END ENCRYPTED SIGSTORE PRIVATE KEY-----\n", "private key; give the public one"},
		"an ssh key":       {"ssh-ed25519 AAAA canary", "cannot be read"},
		"two keys":         {good + good, "cannot be read"},
		"a broken key":     {"-----BEGIN PUBLIC KEY-----\nY2FuYXJ5\n-----END PUBLIC KEY-----\n", "cannot be read"},
		"a small key":      {encodePEM(t, small.Public()), "less than 2048 bits"},
		"a curve too weak": {encodePEM(t, p224Key.Public()), "P-224"},
		"an empty text":    {"", "cannot be read"},
	} {
		err := new(signature.Keys).Add(test.text)
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "canary") ||
			strings.Contains(err.Error(), "Y2FuYXJ5") {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

// FuzzVerify checks that content without a trusted signature is refused.
func FuzzVerify(f *testing.F) {
	all := signers(f)
	keys := keysOf(f, all["P-256"], all["RSA"], all["Ed25519"])
	untrusted := all["P-384"]
	f.Add(content, base64.StdEncoding.EncodeToString(signContent(f, untrusted, content, crypto.SHA256)))
	f.Add(bundleOf(f, untrusted, crypto.SHA256, statementOf(digest, predicate)), "")
	f.Add([]byte(`{"critical":null}`), "AAAA")
	f.Fuzz(func(t *testing.T, content []byte, text string) {
		if keys.VerifyPayload(content, text, digest) == nil || keys.VerifyBundle(content, digest) == nil {
			t.Errorf("content %q is accepted with signature %q", content, text)
		}
		trusted := base64.StdEncoding.EncodeToString(signContent(t, all["Ed25519"], content, 0))
		if keys.VerifyPayload(content, trusted, digest) == nil && keys.VerifyPayload(content, trusted, other) == nil {
			t.Errorf("%q is accepted for two digests", content)
		}
	})
}

func FuzzKey(f *testing.F) {
	f.Add(encodePEM(f, signers(f)["P-256"].Public()))
	f.Add("-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----\n")
	f.Fuzz(func(t *testing.T, text string) {
		keys := &signature.Keys{}
		if keys.Add(text) == nil && keys.VerifyPayload(content, "AAAA", digest) == nil {
			t.Errorf("with key %q, an invalid signature is accepted", text)
		}
	})
}
