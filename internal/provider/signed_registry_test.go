package provider_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

type signedRegistry struct {
	host  string
	paths map[string]blob
}

type blob struct {
	mediaType string
	data      []byte
}

func newSignedRegistry(t *testing.T) *signedRegistry {
	t.Helper()
	r := &signedRegistry{paths: map[string]blob{}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		found, has := r.paths[request.URL.Path]
		if !has {
			http.NotFound(w, request)
			return
		}
		w.Header().Set("Content-Type", found.mediaType)
		w.Header().Set("Docker-Content-Digest", digestOfData(found.data))
		http.ServeContent(w, request, "", time.Time{}, bytes.NewReader(found.data))
	}))
	t.Cleanup(server.Close)
	r.host = server.Listener.Addr().String()
	return r
}

func digestOfData(data []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(data)) }

const manifestType = "application/vnd.oci.image.manifest.v1+json"

// push adds an artifact of one layer, with an optional tag, and returns its digest and size.
func (r *signedRegistry) push(
	t *testing.T,
	name, tag string,
	layer blob,
	annotations map[string]string,
	further map[string]any,
) (digest string, size int) {
	t.Helper()
	manifest, err := json.Marshal(mergeMaps(map[string]any{
		"schemaVersion": 2, "mediaType": manifestType,
		"config": map[string]any{"mediaType": "application/vnd.oci.empty.v1+json", "digest": digestOfData([]byte("{}")), "size": 2},
		"layers": []any{
			map[string]any{"mediaType": layer.mediaType, "digest": digestOfData(layer.data), "size": len(layer.data), "annotations": annotations},
		},
	}, further))
	if err != nil {
		t.Fatal(err)
	}
	r.paths["/v2/"+name+"/blobs/"+digestOfData(layer.data)] = blob{"application/octet-stream", layer.data}
	r.paths["/v2/"+name+"/manifests/"+digestOfData(manifest)] = blob{manifestType, manifest}
	if tag != "" {
		r.paths["/v2/"+name+"/manifests/"+tag] = blob{manifestType, manifest}
	}
	return digestOfData(manifest), len(manifest)
}

func sigTag(digest string) string { return strings.Replace(digest, ":", "-", 1) + ".sig" }

func payloadFor(digest string) []byte {
	return fmt.Appendf(
		nil,
		`{"critical":{"identity":{"docker-reference":""},"image":{"docker-manifest-digest":%q},"type":"cosign container image signature"},"optional":null}`,
		digest,
	)
}

// sign adds the signature of a payload at the tag that cosign reads for an artifact.
func (r *signedRegistry) sign(t *testing.T, name, digest string, payload, signature []byte) {
	t.Helper()
	r.push(t, name, sigTag(digest), blob{"application/vnd.dev.cosign.simplesigning.v1+json", payload}, map[string]string{
		"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(signature),
	}, nil)
}

// attach adds a bundle that refers to an artifact and has a signature for signedDigest.
func (r *signedRegistry) attach(t *testing.T, name, digest, signedDigest string, key crypto.Signer) {
	t.Helper()
	const kind, bundle = "application/vnd.in-toto+json", "application/vnd.dev.sigstore.bundle.v0.3+json"
	statement := fmt.Sprintf(
		`{"_type":"https://in-toto.io/Statement/v1","subject":[{"digest":{"sha256":%q}}],"predicateType":"https://sigstore.dev/cosign/sign/v1"}`,
		strings.TrimPrefix(signedDigest, "sha256:"),
	)
	text, err := json.Marshal(map[string]any{"mediaType": bundle, "dsseEnvelope": map[string]any{
		"payload": []byte(statement), "payloadType": kind,
		"signatures": []any{
			map[string]any{"sig": signatureOf(t, key, fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(kind), kind, len(statement), statement))},
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	reference := map[string]any{"artifactType": bundle, "subject": map[string]any{"mediaType": manifestType, "digest": digest, "size": 1}}
	bundleDigest, size := r.push(t, name, "", blob{bundle, text}, nil, reference)
	index, err := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": []any{
		map[string]any{"mediaType": manifestType, "digest": bundleDigest, "size": size, "artifactType": bundle},
	}})
	if err != nil {
		t.Fatal(err)
	}
	r.paths["/v2/"+name+"/referrers/"+digest] = blob{"application/vnd.oci.image.index.v1+json", index}
}

func cosignKey(t *testing.T) (key *ecdsa.PrivateKey, public string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	return key, string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

func signatureOf(t *testing.T, key crypto.Signer, content []byte) []byte {
	t.Helper()
	sum := sha256.Sum256(content)
	signature, err := key.Sign(rand.Reader, sum[:], crypto.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	return signature
}
