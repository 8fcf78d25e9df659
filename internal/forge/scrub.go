package forge

import (
	"encoding/base64"
	"encoding/json"
	"html"
	"net/url"
	"regexp"
	"sort"
	"strconv"
	"strings"
)

// scrubber replaces credentials in text, in every form in which a URL, a header,
// a host or an SDK can have put them there.
type scrubber []string

var escapePattern = regexp.MustCompile(`%[0-9A-F]{2}`)

func newScrubber(c Credentials) scrubber {
	forms := map[string]bool{}
	for _, secret := range []string{c.Password, c.Token} {
		if secret == "" {
			continue
		}
		for _, form := range []string{secret, url.QueryEscape(secret), url.PathEscape(secret), url.UserPassword("", secret).String()[1:], (&url.URL{Path: "/" + secret}).EscapedPath()[1:]} {
			quoted := strconv.Quote(form)
			encoded, _ := json.Marshal(form)
			for _, written := range []string{
				form, quoted[1 : len(quoted)-1], string(encoded[1 : len(encoded)-1]), html.EscapeString(form),
				escapePattern.ReplaceAllStringFunc(form, strings.ToLower),
			} {
				forms[written] = true
				forms[strings.ReplaceAll(written, "/", `\/`)] = true // as some write JSON
			}
		}
		for _, username := range []string{c.Username, "x-access-token", "oauth2"} {
			for _, plain := range []string{secret, ":" + secret, username + ":" + secret} {
				for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
					forms[strings.TrimRight(encoding.EncodeToString([]byte(plain)), "=")] = true
				}
			}
		}
	}
	ordered := make(scrubber, 0, len(forms))
	for form := range forms {
		ordered = append(ordered, form)
	}
	// The longest first: a form may contain another.
	sort.Slice(ordered, func(i, j int) bool {
		if len(ordered[i]) != len(ordered[j]) {
			return len(ordered[i]) > len(ordered[j])
		}
		return ordered[i] < ordered[j]
	})
	return ordered
}

func (s scrubber) scrub(text string) string {
	for _, form := range s {
		text = strings.ReplaceAll(text, form, "***")
	}
	return text
}
