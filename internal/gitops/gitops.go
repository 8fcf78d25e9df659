// Package gitops writes folders of rendered manifests into a branch of a Git
// repository, and tells what is there. It knows trees, commits, ownership,
// drift and pushes; it knows neither Terraform nor the fleet.
//
// There is no work tree and no clone. A [Client] fetches the trees of the
// branch's tip along the paths that one [Owner] has to do with, edits those
// trees in memory, and pushes one commit as a compare-and-swap. What belongs to
// others is carried over by id and never read.
//
// Layout, below the owner's path:
//
//	<host>/<owner>.md                  the marker: keeps the host's folder existing
//	<host>/<deployment target>/...     an owned folder, flat
//	.flotilla/<owner>/<host>.json      the record of what is owned there
//
// where a host is "<cluster type>" or "clusters/<cluster>".
package gitops

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
)

// Client reaches repositories. It is safe for concurrent use; edits that go to
// the same branch through one Client wait for each other and share commits, so
// that a process never races itself.
type Client struct {
	now     func() time.Time
	sleep   func(context.Context, time.Duration) error
	jitter  func(time.Duration) time.Duration
	overWeb transport.Transport
	signer  *Signer // nil: commits are not signed

	mu       sync.Mutex
	branches map[branchKey]chan struct{}
	queues   map[queueKey][]*waiting
}

type branchKey struct{ url, branch string }

// Option changes how a Client works.
type Option func(*Client)

// WithClock sets the clock that dates commits. Default: the machine's.
func WithClock(now func() time.Time) Option {
	return func(c *Client) { c.now = now }
}

// WithHTTPTransport sets what http and https requests go through, for a custom
// CA (see NewHTTPTransport) or a test. Default: proxy from the environment, and timeouts on dialling,
// on the TLS handshake and on the response header.
func WithHTTPTransport(rt http.RoundTripper) Option {
	return func(c *Client) { c.overWeb = newHTTPTransport(rt) }
}

// NewClient returns a Client. Nothing is shared between two of them, and
// go-git's package-level protocol table is left alone.
func NewClient(options ...Option) *Client {
	c := &Client{
		now:      time.Now,
		sleep:    sleep,
		jitter:   fullJitter,
		branches: map[branchKey]chan struct{}{},
		queues:   map[queueKey][]*waiting{},
	}
	for _, option := range options {
		option(c)
	}
	if c.overWeb == nil {
		c.overWeb = newHTTPTransport(defaultRoundTripper())
	}
	return c
}

func newHTTPTransport(rt http.RoundTripper) transport.Transport {
	return githttp.NewClientWithOptions(
		&http.Client{Transport: &boundedTransport{next: rt}},
		&githttp.ClientOptions{RedirectPolicy: githttp.FollowInitialRedirects},
	)
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// fullJitter spreads waiting processes over the whole interval; backoff without
// it keeps those that collided once in step.
func fullJitter(limit time.Duration) time.Duration {
	return rand.N(limit + 1)
}
