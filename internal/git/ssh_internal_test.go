package git

import (
	"context"
	"crypto/ed25519"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/bounded"
)

// wireEnd is one end of a connection in memory. Writes do not wait for reads, because both sides of SSH write first.
type wireEnd struct {
	net.Conn // for unused methods
	in       <-chan []byte
	out      chan<- []byte
	rest     []byte
	closed   chan struct{} // of both ends
	close    func()
}

func connectedEnds() (one, other *wireEnd) {
	there, back, closed := make(chan []byte, 1000), make(chan []byte, 1000), make(chan struct{})
	shut := sync.OnceFunc(func() { close(closed) })
	return &wireEnd{in: back, out: there, closed: closed, close: shut}, &wireEnd{in: there, out: back, closed: closed, close: shut}
}

func (c *wireEnd) Read(p []byte) (int, error) {
	if len(c.rest) == 0 {
		select {
		case c.rest = <-c.in:
		case <-c.closed:
			return 0, io.EOF
		}
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

func (c *wireEnd) Write(p []byte) (int, error) {
	select {
	case c.out <- append([]byte(nil), p...):
		return len(p), nil
	case <-c.closed:
		return 0, net.ErrClosed
	}
}

func (c *wireEnd) Close() error         { c.close(); return nil }
func (c *wireEnd) RemoteAddr() net.Addr { return &net.TCPAddr{} }
func (c *wireEnd) LocalAddr() net.Addr  { return &net.TCPAddr{} }

// silentServer connects to an SSH server that authenticates and then answers nothing.
func silentServer(t *testing.T) *ssh.Client {
	t.Helper()
	signer, err := ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	if err != nil {
		t.Fatal(err)
	}
	settings := &ssh.ServerConfig{NoClientAuth: true}
	settings.AddHostKey(signer)
	ours, theirs := connectedEnds()
	go func() { _, _, _, _ = ssh.NewServerConn(theirs, settings) }()
	connection, channels, requests, err := ssh.NewClientConn(
		ours,
		"",
		&ssh.ClientConfig{HostKeyCallback: ssh.FixedHostKey(signer.PublicKey())},
	)
	if err != nil {
		t.Fatal(err)
	}
	return ssh.NewClient(connection, channels, requests)
}

func TestTheWaitForAnSSHSessionIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		operation, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		client, began := silentServer(t), time.Now()
		_, err := openSession(operation, client)
		if !errors.Is(err, ErrUnreachable) {
			t.Errorf("error is %v", err)
		}
		if took := time.Since(began); took != bounded.DialTimeout+bounded.HandshakeTimeout {
			t.Errorf("the wait took %s", took)
		}
		if client.Wait() == nil {
			t.Error("the connection is still open")
		}
	})
}

func TestTheEndOfAnOperationEndsTheWaitForASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		operation, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err := openSession(operation, silentServer(t))
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("error is %v after %s", err, time.Since(began))
		}
	})
}
