package kube

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/secret"
	"github.com/flotilla/terraform-provider-flotilla/internal/wording"
)

// Reason is why a cluster could not be asked.
type Reason string

const (
	// ReasonUnreachable is a server that cannot be reached: no such name, nobody there, a certificate that is not
	// trusted, a redirect.
	ReasonUnreachable Reason = "unreachable"
	// ReasonUnauthorized is a server that refuses the credentials (401).
	ReasonUnauthorized Reason = "unauthorized"
	// ReasonForbidden is credentials that may not do what was asked (403).
	ReasonForbidden Reason = "forbidden"
	// ReasonTimeout is a deadline that has passed.
	ReasonTimeout Reason = "timeout"
	// ReasonGarbage is an answer that no API server gives.
	ReasonGarbage Reason = "garbage"
	// ReasonIncomplete is an answer that broke off, or was larger than is read.
	ReasonIncomplete Reason = "incomplete"
	// ReasonServer is a server that says itself that something is wrong with it (429, 5xx).
	ReasonServer Reason = "server"
	// ReasonCommand is an exec command that is missing, fails, or prints no credential.
	ReasonCommand Reason = "command"
	// ReasonConfiguration is a configuration that cannot be used, such as a file that is not there.
	ReasonConfiguration Reason = "configuration"
	// ReasonConflict is fields that others manage: ConflictsOf has them.
	ReasonConflict Reason = "conflict"
	// ReasonRefused is an object that the server does not take: it is invalid, or an admission webhook denies it.
	ReasonRefused Reason = "refused"
	// ReasonTerminating is an object that cannot be made in a namespace that is being removed.
	ReasonTerminating Reason = "terminating"
	// ReasonNoNamespace is an object whose namespace is not there.
	ReasonNoNamespace Reason = "no namespace"
	// ReasonNoKind is an object of a kind that the server does not have.
	ReasonNoKind Reason = "no kind"
	// ReasonReplaced is an object that is another one by now than that which was to go.
	ReasonReplaced Reason = "replaced"
	// ReasonCanceled is an end of the whole question: errors.Is knows it as the context's error.
	ReasonCanceled Reason = "canceled"
	// ReasonOther is an error of who asked.
	ReasonOther Reason = "other"
)

// Error is why a cluster could not be asked. Its text is a sentence about the cluster without its name and without
// secrets, and the same each time that the same thing happens: no port of this machine, no clock.
type Error struct {
	Reason Reason
	text   string
	answer string // by a server or a library, with all that is secret: only until the error leaves
	kind   error  // a context's error, or nil; no cause, since that could be printed
	// conflicts are with others who manage fields of an object.
	conflicts []Conflict
}

func (e *Error) Error() string { return e.text }
func (e *Error) Unwrap() error { return e.kind }

// failf makes an error.
func failf(reason Reason, format string, arguments ...any) error {
	return &Error{Reason: reason, text: fmt.Sprintf(format, arguments...)}
}

// serverf is failf for what an API server does.
func serverf(reason Reason, format string, arguments ...any) error {
	return failf(reason, "the API server "+format, arguments...)
}

// withAnswer is an error with the words of a server or a library, which may have secrets in them.
func withAnswer(err error, answer string) error {
	if known := (*Error)(nil); errors.As(err, &known) {
		known.answer = answer
	}
	return err
}

// ReasonOf is the reason of an error; "" for none.
func ReasonOf(err error) Reason {
	var known *Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &known):
		return known.Reason
	}
	return ReasonOther
}

// publicError makes of an error what may leave the package. whole is the context of the question to all clusters, ctx
// that of this one.
func publicError(whole, ctx context.Context, err error, options Options, scrubber func() secret.Scrubber) error {
	var known *Error
	switch {
	case err == nil:
		return nil
	case whole.Err() != nil && (ctx.Err() != nil || errors.As(err, &known)):
		return &Error{Reason: ReasonCanceled, text: "the requests were not completed: " + ended(whole), kind: whole.Err()}
	case errors.As(err, &known) && known.Reason == ReasonTimeout:
		return &Error{Reason: ReasonTimeout, text: scrubber().Scrub(known.text), kind: context.DeadlineExceeded}
	case ctx.Err() != nil || isTimeout(err):
		return &Error{Reason: ReasonTimeout, text: fmt.Sprintf("the API server did not answer within %s", options.Deadline), kind: context.DeadlineExceeded}
	}
	return scrubbed(err, scrubber)
}

// scrubbed is an error without secrets. What others said is cut only after that, or the half of a secret would be left.
func scrubbed(err error, scrubber func() secret.Scrubber) error {
	known := &Error{Reason: ReasonOther}
	if !errors.As(err, &known) {
		known.text = err.Error()
	}
	left := &Error{Reason: known.Reason, text: scrubber().Scrub(known.text), kind: known.kind, conflicts: known.conflicts}
	if known.answer != "" {
		left.text += ": " + wording.OneLine(scrubber().Scrub(known.answer))
	}
	return left
}

func ended(ctx context.Context) string {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return "the time for all clusters ran out"
	}
	return "interrupted"
}

func isTimeout(err error) bool {
	var network net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network) && network.Timeout()
}

// transportError says in words why a server could not be reached.
func transportError(ctx context.Context, err error) error {
	if isTimeout(err) && ctx.Err() == nil {
		return serverf(ReasonUnreachable, "cannot be reached: no connection within %s", connectDeadline)
	}
	if ctx.Err() != nil {
		return ctx.Err() // named when it leaves
	}
	var request *url.Error
	if errors.As(err, &request) {
		err = request.Err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return serverf(ReasonIncomplete, "closed the connection before it answered")
	}
	return withAnswer(serverf(ReasonUnreachable, "cannot be reached"), cause(err))
}

// cause is the text of a network's or a certificate's error without what is different each time.
func cause(err error) string {
	var (
		name        *net.DNSError
		operation   *net.OpError
		certificate x509.CertificateInvalidError
		verified    *tls.CertificateVerificationError
		record      tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &name) && name.IsNotFound:
		return fmt.Sprintf("there is no server %q", name.Name)
	case errors.As(err, &record):
		return "it does not speak TLS"
	case errors.As(err, &certificate) && certificate.Reason == x509.Expired && certificate.Cert != nil:
		return fmt.Sprintf("its certificate is valid only from %s to %s", certificate.Cert.NotBefore.UTC().Format("2006-01-02"), certificate.Cert.NotAfter.UTC().Format("2006-01-02"))
	case errors.As(err, &verified):
		return "its certificate is not trusted: " + verified.Err.Error()
	case errors.As(err, &operation):
		text := operation.Op
		if operation.Addr != nil && operation.Op == "dial" {
			text += " " + operation.Addr.String()
		}
		return text + ": " + operation.Err.Error()
	}
	return err.Error()
}

// status is what an API server says when it refuses.
type status struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
	Reason  string `json:"reason"`
	Code    int    `json:"code"`
	Details struct {
		Kind   string `json:"kind"`
		Name   string `json:"name"`
		Causes []struct {
			Reason  string `json:"reason"`
			Message string `json:"message"`
			Field   string `json:"field"`
		} `json:"causes"`
	} `json:"details"`
}

// refusal is the error of an answer that is none of success. verb and kind name what was asked.
func refusal(response *http.Response, answer status, verb string, kind Kind) error {
	words := ""
	if answer.Kind == "Status" {
		words = answer.Message
	}
	switch code := response.StatusCode; {
	case code == http.StatusUnauthorized:
		return serverf(ReasonUnauthorized, "refuses the credentials (401 Unauthorized)")
	case code == http.StatusForbidden:
		return withAnswer(serverf(ReasonForbidden, "does not let these credentials %s %s (403 Forbidden)", verb, kind), words)
	case code >= http.StatusMultipleChoices && code < http.StatusBadRequest:
		return serverf(ReasonUnreachable, "redirects%s, and redirects are not followed; the host must be the URL of the API server itself", redirect(response))
	case code == http.StatusTooManyRequests || code >= http.StatusInternalServerError:
		return withAnswer(serverf(ReasonServer, "answers %s", httpStatus(code)), words)
	case answer.Kind != "Status":
		return serverf(ReasonGarbage, "answers %s, which is not the answer of a Kubernetes API server; check its URL", httpStatus(code))
	}
	return withAnswer(serverf(ReasonServer, "answers %s", httpStatus(response.StatusCode)), words)
}

func httpStatus(code int) string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", code, http.StatusText(code)))
}

func redirect(response *http.Response) string {
	to, err := response.Location()
	if err != nil {
		return ""
	}
	return fmt.Sprintf(" to %q", (&url.URL{Scheme: to.Scheme, Host: to.Host}).String())
}
