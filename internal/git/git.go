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
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/bounded"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wait"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Hash is the id of an object. The zero value means none.
type Hash = plumbing.Hash

// Connector connects to repositories. It is safe for concurrent use.
type Connector struct{ options ConnectorOptions }

// ConnectorOptions configure a Connector.
type ConnectorOptions struct {
	// Over sends http and https requests. Default: the proxy of the environment, and timeouts until the response header.
	Over http.RoundTripper
	// UserAgent has the form name/version. Requests have it behind go-git's, which servers recognize as Git.
	UserAgent string
	// Log may be nil.
	Log Logger
	// Local serves local repositories over http in place of git, unless it returns nil, in tests without processes.
	Local func(directory string) http.RoundTripper
	// Init replaces `git init --bare` in these tests.
	Init func(directory string) error
}

// NewConnector returns a Connector that shares nothing with others.
func NewConnector(options ConnectorOptions) *Connector {
	if options.Over == nil {
		options.Over = bounded.NewGuarded(responseTimeout)
	}
	return &Connector{options}
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

// Logger receives texts, numbers and booleans without credentials.
type Logger func(ctx context.Context, message string, fields map[string]any)

func (c *Connector) logAbout(remote Remote) Logger {
	return func(ctx context.Context, message string, fields map[string]any) { c.Log(ctx, remote, message, fields) }
}

// Log adds the remote's URL and branch, and describes errors among the fields.
func (c *Connector) Log(ctx context.Context, remote Remote, message string, fields map[string]any) {
	if c.options.Log == nil {
		return
	}
	told := make(map[string]any, len(fields)+2)
	for name, value := range fields {
		switch value := value.(type) {
		case error:
			told[name] = remote.Describe(value).Error()
		case string:
			told[name] = wording.Visible(remote.Credentials.Scrub(value))
		case time.Duration:
			told[name+"_ms"] = value.Milliseconds()
		default:
			told[name] = value
		}
	}
	told["repository"], told["branch"] = loggedURL(remote.URL), remote.Branch
	c.options.Log(ctx, message, told)
}

// loggedURL returns the URL without secrets.
func loggedURL(raw string) string {
	if CheckURL(raw) != nil {
		return "(not a URL of a repository)"
	}
	if at, ok := parseSSH(raw); ok && at.user != "" {
		return strings.Replace(raw, at.user+"@", "", 1)
	}
	return raw
}
