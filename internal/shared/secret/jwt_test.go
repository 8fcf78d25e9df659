package secret_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/secret"
)

func TestIsJWTAcceptsOnlySignedTokens(t *testing.T) {
	t.Parallel()
	part := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	header, body := part(`{"typ":"JWT","alg":"RS256","kid":"x"}`), part(`{"aud":"499b84ac-1321-427f-aa17-267ca6975798"}`)
	for token, want := range map[string]bool{
		header + "." + body + ".c2ln":                true,
		"":                                           false,
		strings.Repeat("a", 52):                      false, // a personal access token
		strings.Repeat("a", 84):                      false,
		header + "." + body:                          false,
		header + "." + body + ".":                    false,
		header + ".." + "c2ln":                       false,
		header + "." + body + ".c2ln.x":              false,
		part(`{"typ":"JWT"}`) + "." + body + ".c2ln": false,
		part(`"alg"`) + "." + body + ".c2ln":         false,
		"not base64!." + body + ".c2ln":              false,
		"a.b.c":                                      false,
		"..":                                         false,
		" " + header + "." + body + ".c2ln":          false,
		strings.ToUpper(header) + "." + body + ".c2ln": false,
	} {
		if got := secret.IsJWT(token); got != want {
			t.Errorf("IsJWT(%q) = %t", token, got)
		}
	}
}

func FuzzIsJWT(f *testing.F) {
	f.Add("eyJhbGciOiJSUzI1NiJ9.e30.c2ln")
	f.Add("a.b.c")
	f.Fuzz(func(t *testing.T, token string) {
		if secret.IsJWT(token) && strings.Count(token, ".") != 2 {
			t.Errorf("IsJWT(%q)", token)
		}
	})
}
