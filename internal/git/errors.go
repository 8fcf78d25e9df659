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

// What can be wrong with a repository; compare with errors.Is and errors.As.
// Errors of this package may hold credentials until Remote.Describe has removed
// them.
var (
	// ErrNotFound: the repository does not exist, or is hidden from this credential.
	ErrNotFound = errors.New("repository not found")
	// ErrUnauthorized: the server wants another credential (401, 403).
	ErrUnauthorized = errors.New("not authorized")
	// ErrKey: it is an ErrUnauthorized of ssh, which takes keys and no tokens.
	ErrKey = errors.New("the ssh key is not accepted")
	// ErrUnreachable: no answer, or none that makes sense: DNS, refused, timeout, TLS, 5xx.
	ErrUnreachable = errors.New("repository unreachable")
	// ErrRefused: the server rejected the push; the text has the server's reason.
	ErrRefused = errors.New("push refused")
	// ErrHostKey: the host key that the ssh server presented is not among the known ones.
	ErrHostKey = errors.New("host key not verified")
	// ErrTooLarge: the server sent more than this package accepts.
	ErrTooLarge = errors.New("too much data")
	// ErrCommit: nothing can be read or restored at that commit: it is not a commit, is
	// not in the history of the branch, or has nothing of the owner.
	ErrCommit = errors.New("the commit cannot be used")
	// ErrNoBranch: the repository has no such branch. The text begins with the branch.
	ErrNoBranch = errors.New("does not exist")
	// ErrUnknown: a push was sent, and the server did not answer whether it was applied.
	ErrUnknown = errors.New("is not known")
)

// BlockedError says that the repository has something else where a folder or a
// file has to be written: a symbolic link, a submodule, a file or a folder.
type BlockedError struct {
	Path string // from the root of the repository
	Kind string // what is there: "a symbolic link"
	Want string // what has to be there: "a folder"
}

func (e *BlockedError) Error() string {
	return fmt.Sprintf("%q in the repository is %s, where %s has to be", e.Path, e.Kind, e.Want)
}

// failure is an error as it leaves the package: its text without credentials, and
// the sentinel errors that it matches. It keeps no cause, because a cause could
// still be printed.
type failure struct {
	text  string
	kinds []error
}

func (f *failure) Error() string   { return f.text }
func (f *failure) Unwrap() []error { return f.kinds }

// Describe returns err in a form that may be shown: with the repository as its
// subject, without credentials, and matching the one of this package's errors, the
// context's error and those of more that err matches. A *BlockedError is returned
// unchanged.
func (r Remote) Describe(err error, more ...error) error {
	if err == nil {
		return nil
	}
	if blocked, ok := errors.AsType[*BlockedError](err); ok {
		return blocked
	}
	text := fmt.Sprintf("repository %q: %v", r.URL, err)
	if CheckURL(r.URL) != nil {
		text = fmt.Sprintf("repository: %v", err) // such a URL may hold a secret
	}
	described := &failure{text: wording.Visible(r.Credentials.Scrub(text))}
	if kind := Classify(err); kind != nil {
		described.kinds = append(described.kinds, kind)
		if _, isSSH := parseSSH(r.URL); isSSH && errors.Is(kind, ErrUnauthorized) {
			described.kinds = append(described.kinds, ErrKey)
		}
	}
	// These are about an edit or the App, not about the repository.
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

// Classify returns the error of this package, or of the context, that err
// matches; nil when it matches none.
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
