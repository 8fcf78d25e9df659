package secret_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/secret"
)

func TestScrubberKnowsEveryForm(t *testing.T) {
	for _, canary := range []string{"canary", `a&b/c "d"+e`, "päss wörd%2F", "with\nline"} {
		scrubber := secret.NewScrubber([]string{"", canary}, "me")
		inJSON, err := json.Marshal(canary)
		if err != nil {
			t.Fatal(err)
		}
		pair := base64.StdEncoding.EncodeToString([]byte("me:" + canary))
		for name, text := range map[string]string{
			"plain":           canary,
			"in a query":      url.QueryEscape(canary),
			"in lower case":   regexp.MustCompile(`%..`).ReplaceAllStringFunc(url.QueryEscape(canary), strings.ToLower),
			"in a path":       url.PathEscape(canary),
			"as user info":    url.UserPassword("me", canary).String(),
			"quoted":          fmt.Sprintf("%q", canary),
			"in JSON":         string(inJSON),
			"in JSON, as PHP": strings.ReplaceAll(string(inJSON), "/", `\/`),
			"in HTML":         html.EscapeString(canary),
			"in a header":     "Authorization: Basic " + pair,
			"without padding": strings.TrimRight(pair, "="),
			"encoded alone":   base64.URLEncoding.EncodeToString([]byte(canary)),
		} {
			got := scrubber.Scrub("before " + text + " after")
			if !strings.Contains(got, "***") || strings.Contains(got, strings.Trim(text, `"`)) {
				t.Errorf("%s: %q", name, got)
			}
			if !strings.HasPrefix(got, "before ") || !strings.HasSuffix(got, " after") {
				t.Errorf("%s: more than the secret went: %q", name, got)
			}
		}
	}
}

func TestScrubberWithoutSecretsChangesNothing(t *testing.T) {
	if got := secret.NewScrubber([]string{"", ""}, "me").Scrub("any text"); got != "any text" {
		t.Errorf("%q", got)
	}
}
