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
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/secret"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Reason classifies errors.
type Reason string

// The reasons of errors.
const (
	ReasonUnreachable   Reason = "unreachable"   // no such name, no connection, an untrusted certificate, or a redirect
	ReasonUnauthorized  Reason = "unauthorized"  // 401
	ReasonForbidden     Reason = "forbidden"     // 403
	ReasonTimeout       Reason = "timeout"       // a deadline has passed
	ReasonGarbage       Reason = "garbage"       // the answer is not from an API server
	ReasonIncomplete    Reason = "incomplete"    // the answer ended early or was too large
	ReasonServer        Reason = "server"        // 429 or 5xx
	ReasonCommand       Reason = "command"       // an exec command is missing, fails, or prints no credential
	ReasonConfiguration Reason = "configuration" // the configuration cannot be used: a file does not exist
	ReasonConflict      Reason = "conflict"      // other managers have the fields, see ConflictsOf
	ReasonRefused       Reason = "refused"       // the object is invalid, or a webhook denies it
	ReasonTerminating   Reason = "terminating"   // the namespace is being removed
	ReasonNoNamespace   Reason = "no namespace"  // the namespace does not exist
	ReasonNoKind        Reason = "no kind"       // the server does not have the kind
	ReasonReplaced      Reason = "replaced"      // another object has the name now
	ReasonCanceled      Reason = "canceled"      // the context for all clusters has ended; errors.Is finds its error
	ReasonOther         Reason = "other"         // an error of the caller's function
)

// RequestError is a failed request to a cluster: a sentence without secrets and without the cluster's name. Equal
// failures have equal texts, without local ports and times.
type RequestError struct {
	Reason    Reason
	text      string
	answer    string // of a server or library; may have secrets
	kind      error  // a context's error or nil; any other could be printed
	conflicts []Conflict
}

func (e *RequestError) Error() string { return e.text }
func (e *RequestError) Unwrap() error { return e.kind }

func failf(reason Reason, format string, arguments ...any) error {
	return &RequestError{Reason: reason, text: fmt.Sprintf(format, arguments...)}
}

// serverf is failf with the subject "the API server".
func serverf(reason Reason, format string, arguments ...any) error {
	return failf(reason, "the API server "+format, arguments...)
}

// withAnswer adds words of a server or library, which may contain secrets.
func withAnswer(err error, answer string) error {
	if known := (*RequestError)(nil); errors.As(err, &known) {
		known.answer = answer
	}
	return err
}

// ReasonOf returns the reason of an error; "" for nil.
func ReasonOf(err error) Reason {
	if err == nil {
		return ""
	}
	if known, ok := errors.AsType[*RequestError](err); ok {
		return known.Reason
	}
	return ReasonOther
}

// publicError removes secrets and explains an ended context: whole for all clusters, ctx for this one.
func publicError(whole, ctx context.Context, err error, options QueryOptions, scrubber func() secret.Scrubber) error {
	var known *RequestError
	switch {
	case err == nil:
		return nil
	case whole.Err() != nil && (ctx.Err() != nil || errors.As(err, &known)):
		why := "interrupted"
		if errors.Is(whole.Err(), context.DeadlineExceeded) {
			why = "the time for all clusters ran out"
		}
		return &RequestError{Reason: ReasonCanceled, text: "the requests were not completed: " + why, kind: whole.Err()}
	case errors.As(err, &known) && known.Reason == ReasonTimeout:
		return &RequestError{Reason: ReasonTimeout, text: scrubber().Scrub(known.text), kind: context.DeadlineExceeded}
	case ctx.Err() != nil || isTimeout(err):
		text := fmt.Sprintf("the API server did not answer within %s", options.Deadline)
		return &RequestError{Reason: ReasonTimeout, text: text, kind: context.DeadlineExceeded}
	}
	return scrubbed(err, scrubber)
}

// scrubbed removes secrets before it shortens the answer, so no part of one remains.
func scrubbed(err error, scrubber func() secret.Scrubber) error {
	known := &RequestError{Reason: ReasonOther}
	if !errors.As(err, &known) {
		known.text = err.Error()
	}
	left := *known
	left.text, left.answer = wording.Visible(scrubber().Scrub(known.text)), ""
	if known.answer != "" {
		left.text += ": " + wording.OneLine(scrubber().Scrub(known.answer))
	}
	return &left
}

func isTimeout(err error) bool {
	var network net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network) && network.Timeout()
}

func transportError(ctx context.Context, err error) error {
	if isTimeout(err) && ctx.Err() == nil {
		return serverf(ReasonUnreachable, "cannot be reached: no connection within %s", connectDeadline)
	}
	if ctx.Err() != nil {
		return ctx.Err() // publicError adds the text
	}
	if request, ok := errors.AsType[*url.Error](err); ok {
		err = request.Err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return serverf(ReasonIncomplete, "closed the connection before it answered")
	}
	return withAnswer(serverf(ReasonUnreachable, "cannot be reached"), cause(err))
}

// cause returns a network or certificate error without parts that vary.
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
		from, to := certificate.Cert.NotBefore.UTC(), certificate.Cert.NotAfter.UTC()
		return fmt.Sprintf("its certificate is valid only from %s to %s", from.Format(time.DateOnly), to.Format(time.DateOnly))
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

// refusal returns the error for an error status of a request.
func refusal(response *http.Response, answer metav1.Status, verb string, kind ResourceKind) error {
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
		to := ""
		if server, err := response.Location(); err == nil {
			to = fmt.Sprintf(" to %q", (&url.URL{Scheme: server.Scheme, Host: server.Host}).String())
		}
		const format = "redirects%s, and redirects are not followed; the host must be the URL of the API server itself"
		return serverf(ReasonUnreachable, format, to)
	case answer.Kind != "Status" && code != http.StatusTooManyRequests && code < http.StatusInternalServerError:
		return serverf(ReasonGarbage, "answers %s, which is not the answer of a Kubernetes API server; check its URL", httpStatus(code))
	}
	return withAnswer(serverf(ReasonServer, "answers %s", httpStatus(response.StatusCode)), words)
}

func httpStatus(code int) string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", code, http.StatusText(code)))
}
