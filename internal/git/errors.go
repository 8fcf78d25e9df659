package git

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/access"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Compare these with errors.Is. Errors of this package may contain credentials until Remote.Describe removes them.
var (
	// ErrNotFound means that the repository is missing, or hidden from this credential.
	ErrNotFound = errors.New("repository not found")
	// ErrUnauthorized means that the server requires another credential (401, 403).
	ErrUnauthorized = errors.New("not authorized")
	// ErrKey is an ErrUnauthorized of ssh.
	ErrKey = errors.New("the ssh key is not accepted")
	// ErrUnreachable means no valid answer: DNS, refused, timeout, TLS, 5xx.
	ErrUnreachable = errors.New("repository unreachable")
	// ErrRefused means that the server rejected the push, with its reason.
	ErrRefused = errors.New("push refused")
	// ErrHostKey means that the ssh server has an unknown host key.
	ErrHostKey = errors.New("host key not verified")
	// ErrTooLarge means that the server sent more than this package accepts.
	ErrTooLarge = errors.New("too much data")
	// ErrCommit means that a commit is no commit, is not in the history of the branch, or has no files of the owner.
	ErrCommit = errors.New("the commit cannot be used")
	// ErrNoBranch means that the branch is missing. The text begins with its name.
	ErrNoBranch = errors.New("does not exist")
	// ErrUnknown means that a push was sent, and its result is unknown.
	ErrUnknown = errors.New("is not known")
)

// BlockedError means that another kind of entry is in the place of a folder or a file.
type BlockedError struct {
	Path string // from the root of the repository
	Kind string // of the existing entry: "a symbolic link"
	Want string // the required kind: "a folder"
}

func (e *BlockedError) Error() string {
	return fmt.Sprintf("%q in the repository is %s, where %s has to be", e.Path, e.Kind, e.Want)
}

// failure is an error without credentials. It does not wrap its cause, which could be printed.
type failure struct {
	text  string
	kinds []error
}

func (f *failure) Error() string   { return f.text }
func (f *failure) Unwrap() []error { return f.kinds }

// Describe returns an error for users: about the repository, without credentials, and matching those errors of this package, of
// the context and of more that err matches. It returns a *BlockedError unchanged.
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

// Classify returns the error of this package or of the context that err matches, or nil.
func Classify(err error) error {
	if errors.As(err, new(*slowError)) {
		return ErrUnreachable
	}
	for _, kind := range kinds {
		if errors.Is(err, kind) {
			return kind
		}
	}
	switch {
	case errors.Is(err, transport.ErrRepositoryNotFound):
		return ErrNotFound
	case errors.Is(err, transport.ErrAuthenticationRequired), errors.Is(err, transport.ErrAuthorizationFailed):
		return ErrUnauthorized
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
