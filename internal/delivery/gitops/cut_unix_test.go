//go:build unix

package gitops_test

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/reliabilitytest"
)

// cutter forwards connections to an address. It cuts all of them once, after a number of bytes.
type cutter struct {
	address string

	mu      sync.Mutex
	passed  int
	cutAt   int // 0 for never
	open    []net.Conn
	waiting sync.WaitGroup
}

// listen returns the cutter's own address. It listens until the test ends.
func (c *cutter) listen(t *testing.T) *net.TCPAddr {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = listener.Close()
		c.cut()
		c.waiting.Wait()
	})
	c.waiting.Go(func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			to, err := new(net.Dialer).DialContext(t.Context(), "tcp", c.address)
			if err != nil {
				_ = from.Close()
				continue
			}
			c.mu.Lock()
			c.open = append(c.open, from, to)
			c.mu.Unlock()
			c.waiting.Go(func() { c.pass(from, to) })
			c.waiting.Go(func() { c.pass(to, from) })
		}
	})
	return listener.Addr().(*net.TCPAddr)
}

func (c *cutter) pass(from, to net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		c.mu.Lock()
		cut := c.cutAt > 0 && c.passed < c.cutAt && c.passed+n >= c.cutAt
		if cut {
			n = c.cutAt - c.passed
		}
		c.passed += n
		c.mu.Unlock()
		_, writeErr := to.Write(buffer[:n])
		if cut {
			c.cut()
		}
		if err != nil || writeErr != nil || cut {
			_ = to.Close()
			return
		}
	}
}

func (c *cutter) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, connection := range c.open {
		_ = connection.Close()
	}
	c.open = nil
}

// proxy returns the remote with an address behind the cutter.
func (c *cutter) proxy(t *testing.T, remote git.Remote) git.Remote {
	t.Helper()
	parsed, err := url.Parse(remote.URL)
	if err != nil {
		t.Fatal(err)
	}
	c.address = parsed.Host
	host, port, err := net.SplitHostPort(parsed.Host)
	if err != nil {
		t.Fatal(err)
	}
	address := c.listen(t)
	parsed.Host = address.String()
	remote.URL = parsed.String()
	knownHosts := &remote.Credentials.SSH.KnownHosts
	*knownHosts = strings.Replace(*knownHosts, fmt.Sprintf("[%s]:%s", host, port), fmt.Sprintf("[%s]:%d", address.IP, address.Port), 1)
	return remote
}

// TestReliabilityCutConnections cuts the connections of an apply once, after many different numbers of bytes: in the handshake, and
// before, during and after the fetch and the push. Each apply succeeds in spite of the cut.
func TestReliabilityCutConnections(t *testing.T) {
	t.Parallel()
	for i, serving := range reliabilityServers[1:] {
		points := reliabilitytest.Count(8, 100)
		if serving.name == "git over ssh" { // six processes each
			points = reliabilitytest.Count(2, 100)
		}
		if serving.mirror && points < 100 {
			continue
		}
		t.Run(serving.name, func(t *testing.T) {
			total, converged, failed := 0, 0, 0
			for point := range points + 1 { // the first is not cut, and counts the bytes
				r := newRepository(t, serving)
				r.commitFirst("README.md", "x")
				tip := r.tip()
				c := &cutter{cutAt: total * point / (points + 1)}
				edit := devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", "b")})
				result, err := gitops.NewBranchClient(gitops.BranchOptions{}).Apply(context.Background(), c.proxy(t, r.remote), edit)
				checkOutcome(t, r, tip, result, err)
				switch {
				case point == 0:
					c.mu.Lock()
					total = c.passed
					c.mu.Unlock()
				case err == nil:
					converged++
				default:
					failed++
					t.Errorf("cut after %d of %d bytes: %v", c.cutAt, total, err)
				}
			}
			reliabilitytest.Report(t, fmt.Sprintf("31-cut-%d", i),
				"all connections are cut once, after so many bytes", serving.name, fmt.Sprint(points),
				fmt.Sprintf("%d converged, %d a clear error, %d otherwise; 0 lost updates", converged, failed, points-converged-failed))
		})
	}
}
