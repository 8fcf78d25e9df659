// Package gitops writes folders of rendered manifests into a branch of a Git
// repository, and reads what is there. It knows trees, commits, ownership,
// drift and history; it knows neither Terraform nor the fleet.
//
// Its words: an [Owner] is one flotilla_assignment; a host is a cluster type or a
// cluster, and has one folder for each deployment target; a record is the file
// that lists the folders that an owner has on a host; the marker is a file that
// keeps a host's folder from being empty; the tip is the newest commit of the
// branch. An [Edit] is what one owner wants, a [Branch] is the tip as it was read,
// and an [OwnerView] is the part of it that one owner needs.
//
// Package git does the rest: a [Client] opens the tip of a branch along the paths
// of one [Owner], edits its trees in memory, and pushes one commit as a
// compare-and-swap. What belongs to others is carried over by id and never read.
//
// Layout, below the owner's path:
//
//	<host>/<owner>.md                  the marker: keeps the host's folder existing
//	<host>/<deployment target>/...     an owned folder, flat
//	.flotilla/<owner>/<host>.json      the record of what is owned there
//	.flotilla/.claims/<claim>.json     the record of the clusters that a [Claim] has
//
// where a host is "<cluster type>" or "clusters/<cluster>".
package gitops

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/wait"
)

// Client reaches repositories. It is safe for concurrent use; edits that go to
// the same branch through one Client wait for each other, so that a process never
// races itself.
type Client struct {
	git    *git.Client
	now    func() time.Time
	sleep  func(context.Context, time.Duration) error
	jitter func(time.Duration) time.Duration
	signer *git.Signer // nil: commits are not signed

	signers *git.Verifier // nil: every record is believed

	branches wait.Locks // by URL and branch that is pushed to
}

// Option changes how a Client works.
type Option func(*Client)

// WithClock sets the clock that dates commits. Default: the machine's.
func WithClock(now func() time.Time) Option {
	return func(c *Client) { c.now = now }
}

// WithGit sets what reaches repositories. Default: git.NewClient without options.
func WithGit(client *git.Client) Option {
	return func(c *Client) { c.git = client }
}

// WithSigner makes every commit carry a signature. Default: none.
func WithSigner(signer *git.Signer) Option {
	return func(c *Client) { c.signer = signer }
}

// NewClient returns a Client. Nothing is shared between two of them.
func NewClient(options ...Option) *Client {
	c := &Client{
		now:    time.Now,
		sleep:  wait.For,
		jitter: fullJitter,
	}
	for _, option := range options {
		option(c)
	}
	if c.git == nil {
		c.git = git.NewClient()
	}
	return c
}

// fullJitter spreads waiting processes over the whole interval; backoff without
// it keeps those that collided once in step.
func fullJitter(limit time.Duration) time.Duration {
	return rand.N(limit + 1)
}
