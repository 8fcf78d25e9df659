package git_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
)

// packet returns a packet line.
func packet(text string) string { return fmt.Sprintf("%04x%s", len(text)+4, text) }

// evil clears the screen, sets the title, and imitates Terraform's output.
const evil = "\x1b[2J\x1b]0;owned\x07\r\n\u202eApply complete!\nResources: 0 added\u2028\u009b"

const service = "# service=git-upload-pack\n"

// advertises answers like a server with one branch.
func advertises(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
	fmt.Fprint(w, packet(service), "0000",
		packet("0123456789012345678901234567890123456789 refs/heads/main\x00side-band-64k agent=git/2\n"), "0000")
}

// Errors quote servers, and terminals show errors.
func TestServerMessagesCannotControlATerminal(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(w http.ResponseWriter, r *http.Request){
		"an ERR packet in place of the refs": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, packet(service), "0000", packet("ERR "+evil))
		},
		"an ERR packet at once": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, packet("ERR "+evil)) },
		"no packet":             func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, evil) },
		"a ref":                 func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, packet(service), "0000", packet(evil)) },
		"a status":              func(w http.ResponseWriter, _ *http.Request) { http.Error(w, evil, http.StatusTeapot) },
		"an ERR packet in place of a pack": func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				fmt.Fprint(w, packet("ERR "+evil))
				return
			}
			advertises(w)
		},
		"side-band 3": func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				fmt.Fprint(w, packet("NAK\n"), packet("\x03"+evil))
				return
			}
			advertises(w)
		},
		"a side-band that does not exist": func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				fmt.Fprint(w, packet("NAK\n"), packet("\x09"+evil+strings.Repeat("x", 60_000)))
				return
			}
			advertises(w)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(answer))
			t.Cleanup(server.Close)
			remote := git.Remote{IsGitOps: true, URL: server.URL + "/r", Branch: "main"}
			var logged []string
			client := git.NewConnector(git.ConnectorOptions{Log: func(_ context.Context, _ string, fields map[string]any) {
				logged = append(logged, fmt.Sprint(fields))
			}})
			_, err := client.Open(t.Context(), remote, 1)
			if err == nil {
				t.Fatal("no error")
			}
			if text := err.Error(); !strings.Contains(text, "owned") && !strings.Contains(text, "not that of a Git server") {
				t.Errorf("the error does not quote the server: %s", text)
			}
			for _, text := range append(logged, err.Error(), remote.Describe(err).Error()) {
				if strings.ContainsFunc(text, func(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl) }) || len(text) > 2000 {
					t.Errorf("%d bytes: %q", len(text), text)
				}
			}
		})
	}
}

func TestARefusalAfterARedirectNamesBothServers(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("the credentials were sent")
		}
		http.Error(w, "who are you", http.StatusUnauthorized)
	}))
	t.Cleanup(elsewhere.Close)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL+r.URL.RequestURI(), http.StatusMovedPermanently)
	}))
	t.Cleanup(server.Close)
	_, err := git.NewConnector(git.ConnectorOptions{}).
		Open(t.Context(), git.Remote{IsGitOps: true, URL: server.URL + "/r", Branch: "main", Credentials: git.Credentials{
			Login: git.Login{Token: "t0k3n"}, ByURL: []git.URLCredentials{{URL: elsewhere.URL}},
		}}, 1)
	want := fmt.Sprintf(
		"%s redirects to %s, which was not sent the credentials; if the repository has moved, set its new URL",
		strings.TrimPrefix(server.URL, "http://"),
		elsewhere.URL,
	)
	if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "who are you") {
		t.Errorf("%v", err)
	}
}

func TestALoginPageIsDescribedInWords(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>Sign in</html>") }))
	t.Cleanup(server.Close)
	_, err := git.NewConnector(git.ConnectorOptions{}).Open(t.Context(), git.Remote{IsGitOps: true, URL: server.URL + "/r", Branch: "main"}, 1)
	if err == nil || strings.Contains(err.Error(), "pkt") ||
		!strings.Contains(err.Error(), "not that of a Git server; is this the URL of a repository, and does it need credentials?") {
		t.Errorf("%v", err)
	}
}

func TestARefusedSSHKeyIsAnErrorOfItsOwn(t *testing.T) {
	t.Parallel()
	for url, isKey := range map[string]bool{"git@git.example.com:r": true, "ssh://git.example.com/r": true, "https://git.example.com/r": false} {
		err := git.Remote{IsGitOps: true, URL: url, Branch: "main"}.Describe(fmt.Errorf("%w: no", git.ErrUnauthorized))
		if !errors.Is(err, git.ErrUnauthorized) || errors.Is(err, git.ErrKey) != isKey {
			t.Errorf("%s: %v", url, err)
		}
	}
}
