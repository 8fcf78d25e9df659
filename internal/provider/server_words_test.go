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

// What a Git server says is printed by Terraform as it comes.
func TestWordsOfAGitServerAreShownAsTheyAre(t *testing.T) {
	t.Parallel()
	requireAcceptance(t)
	const evil = "\x1b[2J\x1b]0;owned\x07\u202eApply complete!\nResources: 0 added"
	packet := func(text string) string { return fmt.Sprintf("%04x%s", len(text)+4, text) }
	for name, test := range map[string]struct {
		answer func(w http.ResponseWriter)
		says   []string
		not    string
	}{
		"an ERR packet": {
			func(w http.ResponseWriter) {
				fmt.Fprint(w, packet("# service=git-upload-pack\n"), "0000", packet("ERR "+evil))
			},
			[]string{"the server says:", "Apply complete! Resources: 0 added"}, "",
		},
		"a server that is busy": {
			func(w http.ResponseWriter) { http.Error(w, evil, http.StatusServiceUnavailable) },
			[]string{"503", "If it answers by then, the apply succeeds; otherwise it fails."}, "If this run creates it",
		},
		"one that is not there yet": {
			func(w http.ResponseWriter) { http.Error(w, evil, http.StatusNotFound) },
			[]string{"404", "If this run creates it, the apply succeeds; otherwise it fails."}, "If it answers",
		},
		"one that wants credentials": {
			func(w http.ResponseWriter) { http.Error(w, evil, http.StatusUnauthorized) },
			[]string{"401", "Set the provider's git.token"}, "ssh",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { test.answer(w) }))
			t.Cleanup(server.Close)
			_, said := providertest.New(startProvider).
				Plan(t.Context(), moduleOf(t, small{}.config(repository{url: server.URL + "/r"})).Configuration)
			text := said.String()
			for _, want := range test.says {
				if !words(want).MatchString(text) {
					t.Errorf("the plan does not say %q: %q", want, text)
				}
			}
			if test.not != "" && strings.Contains(text, test.not) {
				t.Errorf("the plan says %q: %q", test.not, text)
			}
			if strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && unicode.In(r, unicode.Cc, unicode.Cf) }) {
				t.Errorf("the plan steers the terminal: %q", text)
			}
		})
	}
}

func TestCredentialsOfSSHAreAKey(t *testing.T) {
	requireAcceptance(t)
	t.Setenv("SSH_AUTH_SOCK", "") // not parallel
	_, said := providertest.New(startProvider).
		Plan(t.Context(), moduleOf(t, small{}.config(repository{url: "ssh://git@127.0.0.1:1/r"})).Configuration)
	if text := said.String(); !words("Set the provider's git.ssh_private_key").MatchString(text) || strings.Contains(text, "TOKEN") {
		t.Errorf("the plan says %q", text)
	}
}
