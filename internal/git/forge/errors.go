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

// Errors of a GitHost match one of these or a context's error, or are about bad input.
var (
	// ErrNotFound means a missing or hidden repository, branch or request.
	ErrNotFound = errors.New("not found")
	// ErrNoCommit means a missing commit. Some Git hosts require it on a branch.
	ErrNoCommit = errors.New("no such commit")
	// ErrUnauthorized means that the Git host requires another credential (401, 403).
	ErrUnauthorized = errors.New("not authorized")
	// ErrUnreachable means no valid answer: DNS, timeout, TLS, a redirect, a web page, 5xx.
	ErrUnreachable = errors.New("Git host unreachable")
	// ErrRateLimited means a rate limit beyond HTTPOptions.Patience or the context, with its end.
	ErrRateLimited = errors.New("rate limit exceeded")
	ErrRefused     = errors.New("refused by the Git host")
	// ErrNotOwned means another owner's pull request, or nobody's.
	ErrNotOwned = errors.New("pull request does not belong to this assignment")
	// ErrHeadMoved means that the head is not the commit to merge.
	ErrHeadMoved = errors.New("head of the pull request moved")
	// ErrNotMergeable means conflicts, protection, missing approvals, checks, or a closed request.
	ErrNotMergeable = errors.New("pull request cannot be merged")
	// ErrReviewer means that a reviewer is missing or may not review.
	ErrReviewer = errors.New("not a possible reviewer")
)

// errBusy means unfinished checks. It stays in this package.
var errBusy = errors.New("the Git host is still checking the pull request")

// errTooLong means that an answer exceeds maxAnswer.
var errTooLong = failf(ErrUnreachable, "the Git host's answer is longer than %d MiB", maxAnswer>>20)

// describe returns an error about the repository that matches those above. It does not wrap causes: they may have credentials.
func (c *connection) describe(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if request := (*url.Error)(nil); errors.As(err, &request) {
		text = strings.Replace(text, request.Error(), request.Err.Error(), 1)
	}
	text = fmt.Sprintf("repository %q: %s", c.url, text)
	return failf(classify(err), "%s", wording.Visible(c.secrets.Scrub(text)))
}

// kinded matches a kind without its text.
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

func classify(err error) error {
	for _, kind := range kinds {
		if errors.Is(err, kind) {
			return kind
		}
	}
	if said := (*answer)(nil); errors.As(err, &said) {
		return said.kind()
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, new(net.Error)) ||
		errors.As(err, new(*url.Error)) || errors.As(err, new(*json.SyntaxError)) || errors.As(err, new(*json.UnmarshalTypeError)) {
		return ErrUnreachable
	}
	return nil
}

type answer struct {
	status   int
	words    string // of the body, without credentials
	kindWord string // of the error in the Git host's terms; never shown
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

func hasStatus(err error, statuses ...int) bool {
	said, ok := errors.AsType[*answer](err)
	return ok && slices.Contains(statuses, said.status)
}

// answerContains ignores case.
func answerContains(err error, text string) bool {
	said, ok := errors.AsType[*answer](err)
	return ok && strings.Contains(strings.ToLower(said.words), strings.ToLower(text))
}

type limited struct {
	answer
	wait time.Duration // 0: unknown
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
