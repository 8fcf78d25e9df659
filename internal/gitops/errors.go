package gitops

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/flotilla/terraform-provider-flotilla/internal/secret"
)

// What can be wrong with a repository. Every error that leaves this package is
// one of these, a context's error, an *OwnershipError, a *BlockedError, or a
// plain sentence about bad input; compare with errors.Is and errors.As.
var (
	// ErrNotFound: the repository does not exist, or is hidden from this credential.
	ErrNotFound = errors.New("repository not found")
	// ErrUnauthorized: the server wants another credential (401, 403).
	ErrUnauthorized = errors.New("not authorized")
	// ErrUnreachable: no answer, or none that makes sense: DNS, refused, timeout, TLS, 5xx.
	ErrUnreachable = errors.New("repository unreachable")
	// ErrRefused: the server took the push and said no; the text has its words.
	ErrRefused = errors.New("push refused")
	// ErrConflict: somebody else owns a folder, or foreign files are in its place.
	ErrConflict = errors.New("folder is not this assignment's")
	// ErrRace: others moved the branch each time, until the bound was reached.
	ErrRace = errors.New("branch kept moving")
	// ErrHostKey: ssh cannot tell that the host is who it says.
	ErrHostKey = errors.New("host key not verified")
	// ErrTooLarge: the server sent more than this package accepts.
	ErrTooLarge = errors.New("too much data")
	// ErrCommit: nobody can go back to that commit: it is none, is not in the
	// history of the branch, or has nothing of the owner.
	ErrCommit = errors.New("not a commit to go back to")
	// ErrUnknown: a push was sent, and nobody could be asked what came of it.
	ErrUnknown = errUnknown
)

// OwnershipError is an ErrConflict: it names every folder that is in the way,
// in order.
type OwnershipError struct {
	Conflicts []Conflict
}

// maxNamed is how many conflicts an error's text names; all are in the error.
const maxNamed = 10

func (e *OwnershipError) Error() string {
	var texts []string
	for _, conflict := range e.Conflicts[:min(len(e.Conflicts), maxNamed)] {
		texts = append(texts, conflict.String())
	}
	if more := len(e.Conflicts) - maxNamed; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, "; ")
}

// Unwrap makes errors.Is(err, ErrConflict) true.
func (e *OwnershipError) Unwrap() error { return ErrConflict }

// BlockedError says that something else stands where a folder or a file of ours
// has to be: a symbolic link, a submodule, a file or a folder.
type BlockedError struct {
	Path string // from the root of the repository
	Kind string // what is there: "a symbolic link"
	Want string // what has to be there: "a folder"
}

func (e *BlockedError) Error() string {
	return fmt.Sprintf("%q in the repository is %s, where %s has to be", e.Path, e.Kind, e.Want)
}

// failure is an error as it leaves the package: scrubbed text, and the sentinels
// that it is. It keeps no cause, because a cause could still be printed.
type failure struct {
	text  string
	kinds []error
}

func (f *failure) Error() string   { return f.text }
func (f *failure) Unwrap() []error { return f.kinds }

// leaving makes of err what may leave the package: classified, with the
// repository as its subject, and without the credentials.
func leaving(remote Remote, err error) error {
	if err == nil {
		return nil
	}
	var owned *OwnershipError
	if errors.As(err, &owned) {
		return owned
	}
	var blocked *BlockedError
	if errors.As(err, &blocked) {
		return blocked
	}
	text := fmt.Sprintf("repository %q: %v", remote.URL, err)
	if CheckURL(remote.URL) != nil {
		text = fmt.Sprintf("repository: %v", err) // such a URL may hold a secret
	}
	left := &failure{text: remote.Credentials.scrub(text)}
	if kind := classify(err); kind != nil {
		left.kinds = append(left.kinds, kind)
	}
	// These say what an edit came to, and not what the repository is like.
	for _, kind := range []error{ErrCommit, ErrUnknown} {
		if errors.Is(err, kind) {
			left.kinds = append(left.kinds, kind)
		}
	}
	return left
}

var kinds = []error{
	context.Canceled, context.DeadlineExceeded,
	ErrNotFound, ErrUnauthorized, ErrRefused, ErrRace, ErrHostKey, ErrTooLarge, ErrUnreachable,
}

// classify finds the sentinel for err; nil when it is none of them.
func classify(err error) error {
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
	var (
		status     *statusError
		network    net.Error
		request    *url.Error
		record     tls.RecordHeaderError
		authority  *tls.CertificateVerificationError
		unexpected = errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	)
	switch {
	case errors.As(err, &status):
		return status.kind()
	case unexpected, errors.As(err, &network), errors.As(err, &request),
		errors.As(err, &record), errors.As(err, &authority):
		return ErrUnreachable
	}
	return nil
}

// scrub replaces the credentials in text.
func (c Credentials) scrub(text string) string {
	username, _ := c.basic()
	secrets := []string{c.Password, c.Token, c.SSH.Key, c.SSH.Passphrase}
	for line := range strings.Lines(c.SSH.Key) {
		if line = strings.TrimSpace(line); len(line) > 16 && !strings.HasPrefix(line, "-----") {
			secrets = append(secrets, line)
		}
	}
	return secret.NewScrubber(secrets, username).Scrub(text)
}
