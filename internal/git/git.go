// Package git is a Git client without a clone and a work tree. A [Connector] opens the tip of a branch as a [Tip], fetches
// single trees and files, edits a [Tree] in memory, and moves one branch with one push, a compare-and-swap that is never
// forced.
//
// It speaks Git's protocol over http(s) and ssh, and to the git on PATH for local repositories, with the plumbing of go-git.
package git

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/access"
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

// Errors may contain credentials until Remote.Describe removes them.
var (
	// ErrNotFound means that the repository is missing, or hidden from this credential.
	ErrNotFound     = errors.New("repository not found")
	ErrUnauthorized = errors.New("not authorized")
	// ErrKey is an ErrUnauthorized of ssh.
	ErrKey = errors.New("the ssh key is not accepted")
	// ErrUnreachable means no valid answer: DNS, refused, timeout, TLS, 5xx.
	ErrUnreachable = errors.New("repository unreachable")
	ErrRefused     = errors.New("push refused")
	ErrHostKey     = errors.New("host key not verified")
	ErrTooLarge    = errors.New("too much data")
	// ErrCommit means that a commit is none, is not in the branch's history, or has no files of the owner.
	ErrCommit = errors.New("the commit cannot be used")
	// ErrNoBranch follows the name of a missing branch.
	ErrNoBranch = errors.New("does not exist")
	// ErrUnknown means that a push was sent, without a known result.
	ErrUnknown = errors.New("is not known")
)

// BlockedError means that an entry of another kind is at the path.
type BlockedError struct {
	Path string // from the root of the repository
	Kind string // of the existing entry: "a symbolic link"
	Want string // the required kind: "a folder"
}

func (e *BlockedError) Error() string {
	return fmt.Sprintf("%q in the repository is %s, where %s has to be", e.Path, e.Kind, e.Want)
}

// failure has no credentials, so it does not wrap its cause.
type failure struct {
	text  string
	kinds []error
}

func (f *failure) Error() string   { return f.text }
func (f *failure) Unwrap() []error { return f.kinds }

// Describe returns an error for users: about the repository, without credentials, and matching those errors of this package, of
// the context and of more that err matches.
func (r Remote) Describe(err error, more ...error) error {
	if err == nil {
		return nil
	}
	if blocked, ok := errors.AsType[*BlockedError](err); ok {
		return blocked
	}
	text := fmt.Sprintf("repository %q: %v", r.URL, err)
	if CheckURL(r.URL) != nil {
		text = fmt.Sprintf("repository: %v", err) // the URL may contain a secret
	}
	described := &failure{text: wording.Visible(r.Credentials.Scrub(text))}
	if kind := Classify(err); kind != nil {
		described.kinds = append(described.kinds, kind)
		if _, isSSH := parseSSH(r.URL); isSSH && errors.Is(kind, ErrUnauthorized) {
			described.kinds = append(described.kinds, ErrKey)
		}
	}
	// These are not about the repository.
	for _, kind := range append([]error{ErrCommit, ErrUnknown, ErrNoBranch, forge.ErrGitHubApp}, more...) {
		if errors.Is(err, kind) {
			described.kinds = append(described.kinds, kind)
		}
	}
	return described
}

var kinds = []error{
	context.Canceled, context.DeadlineExceeded,
	access.ErrDenied, ErrNotFound, ErrUnauthorized, ErrRefused, ErrHostKey, ErrTooLarge, ErrUnreachable,
}

// Classify returns the error of this package or of the context that err matches.
func Classify(err error) error {
	if errors.As(err, new(*slowError)) {
		return ErrUnreachable
	}
	for _, kind := range kinds {
		if errors.Is(err, kind) {
			return kind
		}
	}
	if status, ok := errors.AsType[*statusError](err); ok {
		return KindOfStatus(status.code)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, new(net.Error)) ||
		errors.As(err, new(tls.RecordHeaderError)) || errors.As(err, new(*tls.CertificateVerificationError)) {
		return ErrUnreachable
	}
	return nil
}
