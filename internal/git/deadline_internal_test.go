//go:build unix

package git

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
)

// soon bounds the wait for an immediate end, on a busy machine.
const soon = time.Minute

// requireEndWithContext runs do with a context that ends in the middle.
func requireEndWithContext(t *testing.T, do func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- do(ctx) }()
	select {
	case err := <-done:
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("err = %v", err)
		}
	case <-time.After(soon):
		t.Fatal("the call outlives its context")
	}
}

// The git of this test starts a process that outlives it and holds its input and output.
func TestALocalGitThatHangsEndsWithTheContext(t *testing.T) {
	folder := t.TempDir()
	script := "#!/bin/sh\n(trap '' TERM; sleep 600 & echo $! >> '" + folder + "/pids'; wait) &\nwait\n"
	if err := os.WriteFile(filepath.Join(folder, "git"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Cleanup(func() { endAll(t, filepath.Join(folder, "pids")) })
	hanging := func() *streamWire {
		return &streamWire{server: &localGitServer{directory: folder, patience: 100 * time.Millisecond}}
	}
	requireEndWithContext(t, func(ctx context.Context) error {
		_, err := hanging().references(ctx)
		return err
	})
	requireEndWithContext(t, func(ctx context.Context) error {
		_, err := hanging().push(ctx, nil, func(*packp.AdvRefs) (*packp.ReferenceUpdateRequest, error) { return nil, errMoved })
		return err
	})
}

func TestASilentSSHAgentOrServerEndsWithTheContext(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	folder, err := os.MkdirTemp("", "agent") //nolint:usetesting // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	agent, err := net.Listen("unix", filepath.Join(folder, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = agent.Close() })
	t.Setenv("SSH_AUTH_SOCK", agent.Addr().String())
	remote := Remote{IsGitOps: true, URL: "ssh://git@" + server.Addr().String() + "/r", Branch: "main"}
	requireEndWithContext(t, func(ctx context.Context) error {
		_, err := NewConnector(ConnectorOptions{}).Open(ctx, remote, 1)
		return err
	})
	// The handshake asks the agent directly.
	method, done, err := SSHCredentials{}.method(t.Context())
	if err != nil || method == nil {
		t.Fatal(err)
	}
	done()
}

func TestAServerThatTricklesEndsWithTheContext(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
		_, _ = io.WriteString(w, "001e# service=git-upload-pack\n0000")
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, "1")
			_ = http.NewResponseController(w).Flush()
			time.Sleep(20 * time.Millisecond)
		}
	}))
	t.Cleanup(server.Close)
	requireEndWithContext(t, func(ctx context.Context) error {
		_, err := NewConnector(ConnectorOptions{}).OpenPatiently(ctx, Remote{IsGitOps: true, URL: server.URL + "/r", Branch: "main"}, 1)
		return err
	})
}

// endAll ends the processes whose ids are in a file.
func endAll(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Error(err)
	}
	for _, field := range strings.Fields(string(text)) {
		id, err := strconv.Atoi(field)
		if err != nil {
			t.Error(err)
			continue
		}
		_ = syscall.Kill(id, syscall.SIGKILL)
	}
}
