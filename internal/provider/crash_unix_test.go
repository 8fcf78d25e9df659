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

// Terraform prints what a plugin says when it crashes: the stacks of all goroutines. The process is ended with that
// output while it sends its credentials to a Git server that does not answer.
func TestACrashShowsNoSecret(t *testing.T) {
	t.Parallel()
	const token = "t0ken-of-a-crash"
	asked := make(chan string, 16)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case asked <- r.Header.Get("Authorization"):
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
	var said bytes.Buffer
	command := exec.CommandContext(t.Context(), self)
	command.Args, command.Env = []string{providerProcessName}, append(os.Environ(), "GOTRACEBACK=all")
	command.Stdin, command.Stdout, command.Stderr = bytes.NewReader(text), &said, &said
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	credentials := <-asked
	if err := command.Process.Signal(syscall.SIGQUIT); err != nil {
		t.Error(err)
	}
	if err := command.Wait(); err == nil {
		t.Error("the provider did not crash")
	}
	if output := said.String(); !strings.Contains(output, "goroutine ") || !strings.Contains(output, "internal/git.") {
		t.Errorf("no stacks of the request are said: %s", output)
	}
	for _, secret := range []string{token, base64.StdEncoding.EncodeToString([]byte("git:" + token)), strings.TrimPrefix(credentials, "Basic ")} {
		if secret != "" && strings.Contains(said.String(), secret) {
			t.Errorf("the crash says %q", secret)
		}
	}
	t.Logf("%d bytes of stacks; the server was sent credentials: %t", said.Len(), credentials != "")
}
