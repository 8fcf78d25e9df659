// Package secret keeps credentials out of text that leaves the provider.
package secret

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/armor"
)

// Scrubber replaces credentials in every form that a URL, a header, a server or a library produces. The zero value replaces
// nothing.
type Scrubber []string

var escapePattern = regexp.MustCompile(`%[0-9A-F]{2}`)

// NewScrubber returns a Scrubber for secrets and the usernames sent beside them.
func NewScrubber(secrets []string, usernames ...string) Scrubber {
	forms := map[string]bool{}
	for _, secret := range secrets {
		if secret == "" {
			continue
		}
		for _, form := range inURLs(secret) {
			quoted := strconv.Quote(form)
			encoded, _ := json.Marshal(form) //nolint:errchkjson // a string always has a JSON form
			for _, written := range []string{
				form, quoted[1 : len(quoted)-1], string(encoded[1 : len(encoded)-1]), html.EscapeString(form),
				escapePattern.ReplaceAllStringFunc(form, strings.ToLower),
			} {
				forms[written] = true
				forms[strings.ReplaceAll(written, "/", `\/`)] = true // some JSON encoders escape slashes
			}
		}
		for _, username := range append(slices.Clone(usernames), "") {
			for _, plain := range []string{secret, username + ":" + secret} {
				for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
					forms[strings.TrimRight(encoding.EncodeToString([]byte(plain)), "=")] = true
				}
			}
		}
	}
	ordered := make(Scrubber, 0, len(forms))
	for form := range forms {
		ordered = append(ordered, form)
	}
	// A form may contain another, so replace longest first.
	slices.SortFunc(ordered, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
	return ordered
}

func inURLs(secret string) []string {
	return []string{
		secret, url.QueryEscape(secret), url.PathEscape(secret),
		url.UserPassword("", secret).String()[1:], (&url.URL{Path: "/" + secret}).EscapedPath()[1:],
	}
}

// Scrub replaces each secret in the text with three asterisks.
func (s Scrubber) Scrub(text string) string {
	for _, form := range s {
		text = strings.ReplaceAll(text, form, "***")
	}
	return text
}

// IsJWT reports whether a token is a signed JSON Web Token (RFC 7519), such as one of Microsoft Entra ID. Other tokens have no
// dots.
func IsJWT(token string) bool {
	parts := strings.Split(token, ".")
	if len(parts) != 3 || parts[1] == "" || parts[2] == "" {
		return false
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[0])
	if err != nil {
		return false
	}
	var header struct {
		Algorithm string `json:"alg"`
	}
	return json.Unmarshal(text, &header) == nil && header.Algorithm != ""
}

// KeyForms returns the secret texts of a private key in PEM: as given, as parsed, and each line, because an error may repeat one
// line.
func KeyForms(pem string) []string {
	normal := armor.Normalize(pem)
	forms := []string{pem, normal, strings.TrimSpace(normal)}
	for line := range strings.Lines(normal) {
		if line = strings.TrimSpace(line); len(line) > 16 && !strings.HasPrefix(line, "-----") {
			forms = append(forms, line)
		}
	}
	return forms
}
