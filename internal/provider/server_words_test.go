package provider_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// Terraform prints error texts unchanged, so the provider has to clean the texts of a server.
func TestMessagesOfAGitServerLoseControlCharacters(t *testing.T) {
	t.Parallel()
	requireAcceptance(t)
	const evil = "\x1b[2J\x1b]0;owned\x07\u202eApply complete!\nResources: 0 added"
	packet := func(text string) string { return fmt.Sprintf("%04x%s", len(text)+4, text) }
	for name, test := range map[string]struct {
		answer func(w http.ResponseWriter)
		want   []string
		absent string
	}{
		"an ERR packet": {
			func(w http.ResponseWriter) {
				fmt.Fprint(w, packet("# service=git-upload-pack\n"), "0000", packet("ERR "+evil))
			},
			[]string{"the server says:", "Apply complete! Resources: 0 added"}, "",
		},
		"a busy server": {
			func(w http.ResponseWriter) { http.Error(w, evil, http.StatusServiceUnavailable) },
			[]string{"503", "If it answers by then, the apply succeeds; otherwise it fails."}, "If this run creates it",
		},
		"a missing repository": {
			func(w http.ResponseWriter) { http.Error(w, evil, http.StatusNotFound) },
			[]string{"404", "If this run creates it, the apply succeeds; otherwise it fails."}, "If it answers",
		},
		"missing credentials": {
			func(w http.ResponseWriter) { http.Error(w, evil, http.StatusUnauthorized) },
			[]string{"401", "Set the provider's git.token"}, "ssh",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { test.answer(w) }))
			t.Cleanup(server.Close)
			_, diags := providertest.New(startProvider).
				Plan(t.Context(), moduleOf(t, small{}.config(repository{url: server.URL + "/r"})).Configuration)
			text := diags.String()
			for _, want := range test.want {
				if !words(want).MatchString(text) {
					t.Errorf("the plan does not say %q: %q", want, text)
				}
			}
			if test.absent != "" && strings.Contains(text, test.absent) {
				t.Errorf("the plan says %q: %q", test.absent, text)
			}
			if strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && unicode.In(r, unicode.Cc, unicode.Cf) }) {
				t.Errorf("the plan has control characters: %q", text)
			}
		})
	}
}

func TestErrorsOfSSHNameThePrivateKey(t *testing.T) {
	requireAcceptance(t)
	t.Setenv("SSH_AUTH_SOCK", "") // not parallel
	_, diags := providertest.New(startProvider).
		Plan(t.Context(), moduleOf(t, small{}.config(repository{url: "ssh://git@127.0.0.1:1/r"})).Configuration)
	if text := diags.String(); !words("Set the provider's git.ssh_private_key").MatchString(text) || strings.Contains(text, "TOKEN") {
		t.Errorf("the plan says %q", text)
	}
}
