// Package bounded limits the size and duration of server responses.
package bounded

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/access"
)

// Reader returns TooLong after more than Left bytes. Callers may raise Left between reads.
type Reader struct {
	From    io.Reader
	Left    int64 // bytes; negative after the limit
	TooLong error
}

func (r *Reader) Read(p []byte) (int, error) {
	if r.Left < 0 {
		return 0, r.TooLong
	}
	if int64(len(p)) > r.Left+1 { // one more byte shows the excess
		p = p[:r.Left+1]
	}
	n, err := r.From.Read(p)
	if r.Left -= int64(n); r.Left < 0 {
		return n, r.TooLong
	}
	return n, err
}

// Body limits a response body to most bytes.
func Body(body io.ReadCloser, most int64, tooLong error) io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{&Reader{From: body, Left: most, TooLong: tooLong}, body}
}

// Limits of connecting, and of the TLS or ssh handshake.
const (
	DialTimeout      = 30 * time.Second
	HandshakeTimeout = 15 * time.Second
)

// KeepAlive is the interval between probes of an idle connection.
const KeepAlive = 30 * time.Second

// Transport returns a transport that uses the proxy of the environment and limits the time until a response begins.
func Transport(responseTimeout time.Duration) *http.Transport {
	dialer := &net.Dialer{Timeout: DialTimeout, KeepAlive: KeepAlive}
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dialer.DialContext,
		ForceAttemptHTTP2:      true,
		MaxIdleConnsPerHost:    4,
		IdleConnTimeout:        90 * time.Second,
		TLSHandshakeTimeout:    HandshakeTimeout,
		ResponseHeaderTimeout:  responseTimeout,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: 1 << 20,
	}
}

type publicKey struct{}

// PublicOnly forbids requests with this context to reach private and loopback addresses, by a [Guarded] transport.
func PublicOnly(ctx context.Context) context.Context {
	return context.WithValue(ctx, publicKey{}, true)
}

// Guarded is a pair of transports. It sends requests with [PublicOnly] over separate connections and checks their address at
// connection time, so no name leads elsewhere. Behind a proxy, which resolves names itself, it checks nothing: package access has
// checked the name.
type Guarded struct{ any, public *http.Transport }

// NewGuarded returns a pair of transports with the limits of [Transport].
func NewGuarded(responseTimeout time.Duration) *Guarded {
	public := Transport(responseTimeout)
	public.Proxy = nil
	dialer := &net.Dialer{Timeout: DialTimeout, KeepAlive: KeepAlive, Control: controlPublic}
	public.DialContext = dialer.DialContext
	return &Guarded{any: Transport(responseTimeout), public: public}
}

// Each calls change for both transports.
func (g *Guarded) Each(change func(*http.Transport)) {
	change(g.any)
	change(g.public)
}

// RoundTrip implements http.RoundTripper.
func (g *Guarded) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Context().Value(publicKey{}) == nil {
		return g.any.RoundTrip(request)
	}
	if proxy, err := g.any.Proxy(request); err == nil && proxy != nil {
		return g.any.RoundTrip(request)
	}
	return g.public.RoundTrip(request)
}

// CloseIdleConnections closes the idle connections of both transports.
func (g *Guarded) CloseIdleConnections() { g.Each((*http.Transport).CloseIdleConnections) }

func controlPublic(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || !access.IsPublic(at.Addr()) {
		return fmt.Errorf(
			"%w: an answer of another server led to %s, which is not a public address; if it is meant to, add its URL to the sources of the "+
				"workspace, or to git.credentials of the provider",
			access.ErrDenied, address,
		)
	}
	return nil
}
