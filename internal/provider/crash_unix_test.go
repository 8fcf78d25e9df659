//go:build unix

package provider_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// Terraform prints the stacks of all goroutines of a crashed plugin. The provider crashes while it sends its credentials to a
// Git server that does not answer.
func TestACrashShowsNoSecret(t *testing.T) {
	t.Parallel()
	const token = "t0ken-of-a-crash"
	authorizations := make(chan string, 16)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case authorizations <- r.Header.Get("Authorization"):
		default:
		}
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	p := &killRepository{t: t, repository: repository{url: server.URL + "/gitops.git"}, token: token}
	text, err := json.Marshal(p.inputFor(0))
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var stacks bytes.Buffer
	command := exec.CommandContext(t.Context(), self)
	command.Args, command.Env = []string{providerProcessName}, append(os.Environ(), "GOTRACEBACK=all")
	command.Stdin, command.Stdout, command.Stderr = bytes.NewReader(text), &stacks, &stacks
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	credentials := <-authorizations
	if err := command.Process.Signal(syscall.SIGQUIT); err != nil {
		t.Error(err)
	}
	if err := command.Wait(); err == nil {
		t.Error("the provider did not crash")
	}
	if output := stacks.String(); !strings.Contains(output, "goroutine ") || !strings.Contains(output, "internal/git.") {
		t.Errorf("the output has no stacks of the request: %s", output)
	}
	for _, secret := range []string{token, base64.StdEncoding.EncodeToString([]byte("git:" + token)), strings.TrimPrefix(credentials, "Basic ")} {
		if secret != "" && strings.Contains(stacks.String(), secret) {
			t.Errorf("the crash shows %q", secret)
		}
	}
	t.Logf("%d bytes of stacks; the server was sent credentials: %t", stacks.Len(), credentials != "")
}
