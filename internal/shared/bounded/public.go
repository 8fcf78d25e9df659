package bounded

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/access"
)

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
			access.ErrDenied,
			address,
		)
	}
	return nil
}
