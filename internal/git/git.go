// Package git is a Git client without a clone and without a work tree. A [Connector] opens the tip of a
// branch as a [Tip], fetches single trees and files, edits a [Tree] in memory, and moves one branch with one
// push, a compare-and-swap that is never forced. It does not know owners or records; package gitops does.
//
// It speaks Git's protocol over http(s) and ssh, and to the git on PATH for local repositories. It uses only
// the plumbing of go-git.
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

// Hash is the id of an object. The zero value means no object.
type Hash = plumbing.Hash

// Connector connects to repositories. It is safe for concurrent use.
type Connector struct {
	web transport.Transport // for http and https
	log Logger              // may be nil

	localTransport func(directory string) transport.Transport // nil: git serves local repositories

	appends bool // web is a boundedTransport, which appends packs to requests
}

// ConnectorOptions are the settings of a Connector. The zero value has the defaults.
type ConnectorOptions struct {
	// Over sends http and https requests, for a custom CA (see NewHTTPTransport) or a test. Default: the
	// proxy from the environment, and timeouts for dialling, the TLS handshake and the response header.
	Over http.RoundTripper
	// UserAgent is added to the user agent of http requests, in the form name/version. Servers recognize a
	// Git client by the product before it, which is go-git's.
	UserAgent string
	// Log receives log messages. It may be nil.
	Log Logger
	// Transport replaces Over for every http and https URL, for a test without a server.
	Transport transport.Transport
	// Local replaces git for a local repository unless it returns nil, for a test without processes.
	Local func(directory string) transport.Transport
}

// NewConnector returns a Connector. Two Connectors share nothing, and go-git's package-level protocol table
// stays unchanged.
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
	// maxTries limits the attempts of a request that ends without a valid answer.
	maxTries  = 4
	firstWait = 50 * time.Millisecond
)

// waitToTry waits a random time before the next attempt. The limit doubles. Without randomness, processes
// that collided once would collide again.
func waitToTry(ctx context.Context, try int) error {
	return wait.For(ctx, rand.N(firstWait<<try+1))
}
