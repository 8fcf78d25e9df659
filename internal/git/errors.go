package git

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/access"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

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
