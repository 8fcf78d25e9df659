// Package git is a Git client without a clone and without a work tree. A
// [Client] opens the tip of a branch as a [Tip], fetches of its trees and files
// only what is asked for, edits a [Tree] in memory, and moves one branch by
// one push, as a compare-and-swap that is never forced. It knows neither owners
// nor records: package gitops does.
//
// It speaks Git's protocol over http(s) and ssh, and to the git on PATH for
// local repositories. Of go-git it uses the plumbing alone.
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

// Hash is the id of an object; the zero value is none.
type Hash = plumbing.Hash

// Client reaches repositories. It is safe for concurrent use.
type Client struct {
	web transport.Transport // for http and https
	log Logger              // nil: nothing is logged

	localTransport func(directory string) transport.Transport // nil: git serves local repositories

	appends bool // web is boundedTransport, which appends packs to requests
}

// Options are the settings of a Client. The zero value has the defaults.
type Options struct {
	// Over is what http and https requests go through, for a custom CA (see NewHTTPTransport) or a test. Default: proxy from
	// the environment, and timeouts on dialling, on the TLS handshake and on the response header.
	Over http.RoundTripper
	// UserAgent is a product that http requests add to what they say of who asks, in the form name/version. Servers know a
	// Git client by the product before it, which is go-git's.
	UserAgent string
	// Log is where the client logs what it does. Default: nowhere.
	Log Logger
	// Transport reaches every http and https URL in place of Over, for a test that does without a server.
	Transport transport.Transport
	// Local reaches a local repository in place of git, unless it returns nil, for a test that does without processes.
	Local func(directory string) transport.Transport
}

// NewClient returns a Client. Nothing is shared between two of them, and
// go-git's package-level protocol table is left alone.
func NewClient(options Options) *Client {
	if options.Transport != nil {
		return &Client{web: options.Transport, log: options.Log, localTransport: options.Local}
	}
	if options.Over == nil {
		options.Over = bounded.NewGuarded(responseTimeout)
	}
	web := githttp.NewClientWithOptions(
		&http.Client{Transport: &boundedTransport{next: options.Over, product: options.UserAgent}},
		&githttp.ClientOptions{RedirectPolicy: githttp.FollowInitialRedirects},
	)
	return &Client{web: web, appends: true, log: options.Log, localTransport: options.Local}
}

const (
	// maxTries bounds how often in a row a request is repeated that ends without a
	// valid answer.
	maxTries  = 4
	firstWait = 50 * time.Millisecond
)

// waitToTry is a random wait before a request is tried once more; its bound doubles.
// Without randomness, processes that collided once would collide again.
func waitToTry(ctx context.Context, try int) error {
	return wait.For(ctx, rand.N(firstWait<<try+1))
}
