package forge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// The errors of this package. Every error of a GitHost matches one of these, is a
// context's error, or is a plain sentence about bad input; compare with errors.Is.
// The text includes what the Git host answered.
var (
	// ErrNotFound: the repository, the branch or the request does not exist, or
	// is hidden from this credential.
	ErrNotFound = errors.New("not found")
	// ErrNoCommit: the repository does not have the commit, or no branch of it has where the Git host wants that.
	ErrNoCommit = errors.New("no such commit")
	// ErrUnauthorized: the Git host wants another credential, or one with more
	// permissions (401, 403).
	ErrUnauthorized = errors.New("not authorized")
	// ErrUnreachable: no answer, or no valid one: DNS, refused, timeout, TLS, a
	// redirect, a web page, 5xx.
	ErrUnreachable = errors.New("Git host unreachable")
	// ErrRateLimited: the Git host accepts no requests for longer than Options.Patience
	// or the context allows; the text says until when.
	ErrRateLimited = errors.New("rate limit exceeded")
	// ErrRefused: the Git host rejected the request.
	ErrRefused = errors.New("refused by the Git host")
	// ErrNotOwned: the pull request belongs to another owner, or to none.
	ErrNotOwned = errors.New("pull request does not belong to this assignment")
	// ErrHeadMoved: the head is another commit than the one to be merged.
	ErrHeadMoved = errors.New("head of the pull request moved")
	// ErrNotMergeable: conflicts, branch protection, missing approvals, checks
	// that run or failed, a request that is closed.
	ErrNotMergeable = errors.New("pull request cannot be merged")
	// ErrReviewer: a reviewer does not exist, or may not review here.
	ErrReviewer = errors.New("not a possible reviewer")
)

// errBusy: the Git host has not finished its checks yet. It never leaves the
// package.
var errBusy = errors.New("the Git host is still checking the pull request")

// errTooLong: an answer has more bytes than are read of one.
var errTooLong = failf(ErrUnreachable, "the Git host's answer is longer than %d MiB", maxAnswer>>20)

// describe returns err in the form in which this package returns errors: matching
// one of the errors above, with the repository as its subject, and without the
// credentials. It keeps no cause, because a cause could still be printed.
func (h *GitHost) describe(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	// net/http puts method and URL before the reason.
	if request := (*url.Error)(nil); errors.As(err, &request) {
		text = strings.Replace(text, request.Error(), request.Err.Error(), 1)
	}
	text = fmt.Sprintf("repository %q: %s", h.url, text)
	return failf(classify(err), "%s", wording.Visible(h.secrets.Scrub(text)))
}

// kinded is an error that matches a kind, unless that is nil, without repeating its text.
type kinded struct {
	error
	kind error
}

func (k *kinded) Unwrap() []error { return []error{k.kind, k.error} }

func failf(kind error, format string, args ...any) error {
	return &kinded{error: fmt.Errorf(format, args...), kind: kind}
}

var kinds = []error{
	context.Canceled, context.DeadlineExceeded, ErrGitHubApp,
	ErrReviewer, ErrHeadMoved, ErrNotMergeable, ErrNotOwned,
	ErrNoCommit, ErrNotFound, ErrUnauthorized, ErrRateLimited, ErrRefused, ErrUnreachable,
}

// classify returns the error above that err matches; nil when there is none.
func classify(err error) error {
	for _, kind := range kinds {
		if errors.Is(err, kind) {
			return kind
		}
	}
	if said := (*answer)(nil); errors.As(err, &said) {
		return said.kind()
	}
	var (
		network net.Error
		request *url.Error
		syntax  *json.SyntaxError
		types   *json.UnmarshalTypeError
	)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.As(err, &network), errors.As(err, &request), errors.As(err, &syntax), errors.As(err, &types):
		return ErrUnreachable
	}
	return nil
}

// answer is what a Git host answered instead of success.
type answer struct {
	status   int
	words    string // the text of the body, without credentials
	kindWord string // the Git host's name for the kind of the error; never shown
}

func (a *answer) Error() string {
	text := strings.TrimSpace(fmt.Sprintf("the Git host answered %d %s", a.status, http.StatusText(a.status)))
	if a.words != "" {
		text += ": " + a.words
	}
	return text
}

func (a *answer) kind() error {
	switch {
	case a.status == http.StatusUnauthorized, a.status == http.StatusForbidden:
		return ErrUnauthorized
	case a.status == http.StatusNotFound, a.status == http.StatusGone:
		return ErrNotFound
	case a.status >= http.StatusInternalServerError:
		return ErrUnreachable
	}
	return ErrRefused
}

// answered reports whether a Git host answered with one of these statuses.
func answered(err error, statuses ...int) bool {
	said, ok := errors.AsType[*answer](err)
	return ok && slices.Contains(statuses, said.status)
}

// says reports whether the Git host's answer contains text, ignoring case.
func says(err error, text string) bool {
	said, ok := errors.AsType[*answer](err)
	return ok && strings.Contains(strings.ToLower(said.words), strings.ToLower(text))
}

// limited is the error of a Git host that accepts no requests for a while.
type limited struct {
	answer
	wait time.Duration // 0: it does not say how long
}

func (l *limited) Error() string {
	text := "the Git host limits requests"
	if l.wait > 0 {
		text += fmt.Sprintf(", and asks to wait until %s (%s)", time.Now().Add(l.wait).UTC().Format("15:04:05 UTC"), l.wait.Round(time.Second))
	}
	if l.words != "" {
		text += ": " + l.words
	}
	return text
}

func (l *limited) Unwrap() error { return ErrRateLimited }
