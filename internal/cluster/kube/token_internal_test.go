package kube

import "testing"

// FuzzToken reads random answers: each gives a token with its expiry, or an error.
func FuzzToken(f *testing.F) {
	f.Add(
		`{"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1","status":{"token":"t","expirationTimestamp":"2026-01-01T00:00:00Z"}}`,
	)
	f.Add(`{"kind":"TokenRequest","status":{"token":5}}`)
	f.Fuzz(func(t *testing.T, text string) {
		token, err := readToken([]byte(text))
		if (err == nil) == (token.Text == "" || token.Expires.IsZero()) {
			t.Errorf("%q gives %v, %v", text, token, err)
		}
	})
}
