package forge_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"html"
	"net/url"
	"strings"
	"testing"
)

// canary is a secret with all characters that any encoding escapes.
const canary = "c4n4ry s3cr3t/+&%?\"<\\"

// canaryForms returns the encodings of the canary in answers of a server.
func canaryForms(username string) []string {
	return []string{
		canary, url.QueryEscape(canary), url.PathEscape(canary), url.UserPassword("", canary).String(), html.EscapeString(canary),
		strings.ToLower(url.QueryEscape(canary)), fmt.Sprintf("%q", canary),
		`c4n4ry s3cr3t\/+\u0026%?\"\u003c\\`, `c4n4ry s3cr3t\/+&%?\"<\\`,
		base64.StdEncoding.EncodeToString([]byte(canary)), base64.RawURLEncoding.EncodeToString([]byte(canary)),
		base64.StdEncoding.EncodeToString([]byte(username + ":" + canary)), base64.URLEncoding.EncodeToString([]byte(":" + canary)),
	}
}

// wantNoCanary checks all ways to print an error.
func wantNoCanary(t *testing.T, err error) {
	t.Helper()
	for e := err; e != nil; e = errors.Unwrap(e) {
		text := fmt.Sprintf("%v %+v %#v %q", e, e, e, e)
		for _, form := range append(canaryForms("person"), "c4n4ry", base64.StdEncoding.EncodeToString([]byte("c4n4ry s3cr3t"))) {
			if strings.Contains(text, form) {
				t.Errorf("the error contains %q: %s", form, text)
				return
			}
		}
	}
}
