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
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/armor"
)

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
