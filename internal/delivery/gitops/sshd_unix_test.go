//go:build unix

package gitops_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
)

// overSSH serves a repository by an SSH server that runs git and accepts one key.
func overSSH(t testing.TB, directory string) git.Remote {
	t.Helper()
	return overSSHWith(t, directory, "exec ")
}

// overSSHWith is overSSH with a shell prefix before each command.
func overSSHWith(t testing.TB, directory, prefix string) git.Remote {
	t.Helper()
	private, public := newSSHKey(t, "")
	_, hostKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	host, err := ssh.NewSignerFromKey(hostKey)
	if err != nil {
		t.Fatal(err)
	}
	config := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))) != public {
			return nil, fmt.Errorf("an unknown key")
		}
		return nil, nil
	}}
	config.AddHostKey(host)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	ctx := t.Context()
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go serveSSH(ctx, connection, config, prefix)
		}
	}()
	address := listener.Addr().(*net.TCPAddr)
	return git.Remote{
		IsGitOps: true, URL: fmt.Sprintf("ssh://git@%s%s", address, filepath.ToSlash(directory)),
		Credentials: git.Credentials{Login: git.Login{SSH: git.SSHCredentials{
			Key:        private,
			KnownHosts: fmt.Sprintf("[%s]:%d %s", address.IP, address.Port, ssh.MarshalAuthorizedKey(host.PublicKey())),
		}}},
	}
}

func serveSSH(ctx context.Context, connection net.Conn, config *ssh.ServerConfig, prefix string) {
	defer func() { _ = connection.Close() }()
	_, channels, requests, err := ssh.NewServerConn(connection, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for offered := range channels {
		channel, requests, err := offered.Accept()
		if err != nil {
			return
		}
		go func() {
			defer func() { _ = channel.Close() }()
			for request := range requests {
				_ = request.Reply(request.Type == "exec", nil)
				if request.Type == "exec" {
					status := runForSSH(ctx, channel, prefix+string(request.Payload[4:]))
					_, _ = channel.SendRequest("exit-status", false, binary.BigEndian.AppendUint32(nil, uint32(status)))
					return
				}
			}
		}()
	}
}

func runForSSH(ctx context.Context, channel ssh.Channel, text string) (status int) {
	command := exec.CommandContext(ctx, "sh", "-c", text)
	command.Stdout, command.Stderr = channel, channel.Stderr()
	input, err := command.StdinPipe() // closed by a copy that Wait does not wait for
	if err != nil || command.Start() != nil {
		return 1
	}
	go func() {
		buffer := make([]byte, 32<<10)
		for {
			n, err := channel.Read(buffer)
			if n > 0 {
				if _, err := input.Write(buffer[:n]); err != nil {
					return
				}
			}
			if err != nil {
				_ = input.Close()
				return
			}
		}
	}()
	if command.Wait() != nil {
		return 1
	}
	return 0
}
