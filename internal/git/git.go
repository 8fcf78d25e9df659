// Package git is a Git client without a clone and a work tree. A [Connector] opens the tip of a branch as a [Tip], fetches
// single trees and files, edits a [Tree] in memory, and moves one branch with one push, a compare-and-swap that is never
// forced.
//
// It speaks Git's protocol over http(s) and ssh, and to the git on PATH for local repositories, with the plumbing of go-git.
package git

import (
	"context"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/bounded"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wait"
)

// Hash is the id of an object. The zero value means none.
type Hash = plumbing.Hash

// Connector connects to repositories. It is safe for concurrent use.
type Connector struct {
	web transport.Transport // for http and https
	log Logger              // may be nil

	localTransport func(directory string) transport.Transport // may be nil

	appends bool // web is a boundedTransport
}

// ConnectorOptions configure a Connector.
type ConnectorOptions struct {
	// Over sends http and https requests. Default: the proxy of the environment, and timeouts until the response header.
	Over http.RoundTripper
	// UserAgent, in the form name/version, follows go-git's, by which servers recognize Git.
	UserAgent string
	// Log may be nil.
	Log Logger
	// Transport replaces Over, for tests without a server.
	Transport transport.Transport
	// Local replaces git for local repositories, unless it returns nil, in tests without processes.
	Local func(directory string) transport.Transport
}

// NewConnector returns a Connector that shares nothing with others.
func NewConnector(options ConnectorOptions) *Connector {
	if options.Transport != nil {
		return &Connector{web: options.Transport, log: options.Log, localTransport: options.Local}
	}
	if options.Over == nil {
		options.Over = bounded.NewGuarded(responseTimeout)
	}
	web := githttp.NewClientWithOptions(
		&http.Client{Transport: &boundedTransport{next: options.Over, product: options.UserAgent}},
		&githttp.ClientOptions{RedirectPolicy: githttp.FollowInitialRedirects},
	)
	return &Connector{web: web, appends: true, log: options.Log, localTransport: options.Local}
}

const (
	// maxTries counts attempts without a valid answer.
	maxTries  = 4
	firstWait = 50 * time.Millisecond
)

// waitToTry waits a random time, so that processes do not collide again. The limit doubles with each try.
func waitToTry(ctx context.Context, try int) error {
	return wait.For(ctx, rand.N(firstWait<<try+1))
}
