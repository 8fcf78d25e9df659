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
	"strings"
	"time"
)

// What can be wrong with a pull request. Every error that leaves a Host is one
// of these, a context's error, or a plain sentence about bad input; compare with
// errors.Is. The text has the host's own words where it said any.
var (
	// ErrNotFound: the repository, the branch or the request does not exist, or
	// is hidden from this credential.
	ErrNotFound = errors.New("not found")
	// ErrUnauthorized: the host wants another credential, or one that may do more
	// (401, 403).
	ErrUnauthorized = errors.New("not authorized")
	// ErrUnreachable: no answer, or none that makes sense: DNS, refused, timeout,
	// TLS, a redirect, a web page, 5xx.
	ErrUnreachable = errors.New("host unreachable")
	// ErrRateLimited: the host wants to be left alone for longer than WithPatience
	// or the context allows; the text says until when.
	ErrRateLimited = errors.New("rate limit exceeded")
	// ErrRefused: the host understood and said no.
	ErrRefused = errors.New("refused by the host")
	// ErrNotOwned: the request is not this owner's.
	ErrNotOwned = errors.New("pull request is not this assignment's")
	// ErrHeadMoved: the head is another commit than the one to be merged.
	ErrHeadMoved = errors.New("head of the pull request moved")
	// ErrNotMergeable: conflicts, branch protection, missing approvals, checks
	// that run or failed, a request that is closed.
	ErrNotMergeable = errors.New("pull request cannot be merged")
	// ErrReviewer: a reviewer does not exist, or may not review here.
	ErrReviewer = errors.New("not a possible reviewer")
)

// errBusy: the host has not made up its mind yet. It never leaves the package.
var errBusy = errors.New("the host is still checking the pull request")

// failure is an error as it leaves the package: scrubbed text, and the sentinel
// that it is. It keeps no cause, because a cause could still be printed.
type failure struct {
	text string
	kind error
}

func (f *failure) Error() string { return f.text }
func (f *failure) Unwrap() error { return f.kind }

// leaving makes of err what may leave the package: classified, with the
// repository as its subject, and without the credentials.
func (h *host) leaving(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	// net/http puts method and URL before what went wrong.
	if request := (*url.Error)(nil); errors.As(err, &request) {
		text = strings.Replace(text, request.Error(), request.Err.Error(), 1)
	}
	text = fmt.Sprintf("repository %q: %s", h.url, text)
	return &failure{text: h.secrets.Scrub(text), kind: classify(err)}
}

// kinded is an error of a certain kind, whose text does not repeat the kind's.
type kinded struct {
	error
	kind error
}

func (k *kinded) Unwrap() []error { return []error{k.kind, k.error} }

func failf(kind error, format string, args ...any) error {
	return &kinded{error: fmt.Errorf(format, args...), kind: kind}
}

var kinds = []error{
	context.Canceled, context.DeadlineExceeded,
	ErrReviewer, ErrHeadMoved, ErrNotMergeable, ErrNotOwned,
	ErrNotFound, ErrUnauthorized, ErrRateLimited, ErrRefused, ErrUnreachable,
}

// classify finds the sentinel for err; nil when it is none of them.
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

// answer is what a host answered instead of success.
type answer struct {
	status   int
	words    string // what the body says, scrubbed
	kindWord string // Azure's word for what kind of refusal it is; never shown
}

func (a *answer) Error() string {
	text := strings.TrimSpace(fmt.Sprintf("the host answered %d %s", a.status, http.StatusText(a.status)))
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

// answered reports whether a host answered with one of these statuses.
func answered(err error, statuses ...int) bool {
	said := (*answer)(nil)
	if !errors.As(err, &said) {
		return false
	}
	for _, status := range statuses {
		if said.status == status {
			return true
		}
	}
	return false
}

// says reports whether the host's words contain text, in any case.
func says(err error, text string) bool {
	said := (*answer)(nil)
	return errors.As(err, &said) && strings.Contains(strings.ToLower(said.words), strings.ToLower(text))
}

// limited is a host's wish to be left alone for a while.
type limited struct {
	answer
	wait time.Duration // 0: it does not say how long
}

func (l *limited) Error() string {
	text := "the host limits requests"
	if l.wait > 0 {
		text += fmt.Sprintf(", and asks to wait until %s (%s)", time.Now().Add(l.wait).UTC().Format("15:04:05 UTC"), l.wait.Round(time.Second))
	}
	if l.words != "" {
		text += ": " + l.words
	}
	return text
}

func (l *limited) Unwrap() error { return ErrRateLimited }
