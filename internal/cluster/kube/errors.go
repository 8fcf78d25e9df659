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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/secret"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Reason is the kind of an error.
type Reason string

const (
	// ReasonUnreachable is a server that cannot be reached: no such name, no connection, a certificate that is not
	// trusted, a redirect.
	ReasonUnreachable Reason = "unreachable"
	// ReasonUnauthorized is a server that refuses the credentials (401).
	ReasonUnauthorized Reason = "unauthorized"
	// ReasonForbidden is a request that the credentials have no permission for (403).
	ReasonForbidden Reason = "forbidden"
	// ReasonTimeout is a deadline that has passed.
	ReasonTimeout Reason = "timeout"
	// ReasonGarbage is an answer that is not that of an API server.
	ReasonGarbage Reason = "garbage"
	// ReasonIncomplete is an answer that ended early, or was too large.
	ReasonIncomplete Reason = "incomplete"
	// ReasonServer is a server that reports an error of its own (429, 5xx).
	ReasonServer Reason = "server"
	// ReasonCommand is an exec command that is missing, fails, or prints no credential.
	ReasonCommand Reason = "command"
	// ReasonConfiguration is a configuration that cannot be used, such as a file that does not exist.
	ReasonConfiguration Reason = "configuration"
	// ReasonConflict is a conflict with other field managers: ConflictsOf returns the fields.
	ReasonConflict Reason = "conflict"
	// ReasonRefused is an object that the server does not accept: it is invalid, or an admission webhook denies it.
	ReasonRefused Reason = "refused"
	// ReasonTerminating is an object that cannot be created, since its namespace is being removed.
	ReasonTerminating Reason = "terminating"
	// ReasonNoNamespace is an object whose namespace does not exist.
	ReasonNoNamespace Reason = "no namespace"
	// ReasonNoKind is an object of a kind that the server does not have.
	ReasonNoKind Reason = "no kind"
	// ReasonReplaced is a deletion of an object that was replaced by another one of the same name.
	ReasonReplaced Reason = "replaced"
	// ReasonCanceled is the end of the context for all clusters. errors.Is finds the context's error.
	ReasonCanceled Reason = "canceled"
	// ReasonOther is an error of the caller's function.
	ReasonOther Reason = "other"
)

// Error is why a request to a cluster failed. Its text is a sentence about the cluster, without its name and without
// secrets. The same failure always has the same text: there are no local ports and no times in it.
type Error struct {
	Reason Reason
	text   string
	answer string // the words of a server or a library, which may have secrets in them; publicError removes these
	kind   error  // a context's error, or nil; never another cause, since that could be printed
	// conflicts are those with other managers of an object's fields.
	conflicts []Conflict
}

func (e *Error) Error() string { return e.text }
func (e *Error) Unwrap() error { return e.kind }

// failf makes an error.
func failf(reason Reason, format string, arguments ...any) error {
	return &Error{Reason: reason, text: fmt.Sprintf(format, arguments...)}
}

// serverf is failf with "the API server" as the subject.
func serverf(reason Reason, format string, arguments ...any) error {
	return failf(reason, "the API server "+format, arguments...)
}

// withAnswer adds the words of a server or a library to an error. They may have secrets in them.
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

// publicError is an error as it may be returned to the caller: without secrets, and with the reason where a context has
// ended. whole is the context for all clusters, ctx that for this one.
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
		return &Error{
			Reason: ReasonTimeout,
			text:   fmt.Sprintf("the API server did not answer within %s", options.Deadline),
			kind:   context.DeadlineExceeded,
		}
	}
	return scrubbed(err, scrubber)
}

// scrubbed is an error without secrets. Its answer is shortened after they are removed, so that no half of one is left.
func scrubbed(err error, scrubber func() secret.Scrubber) error {
	known := &Error{Reason: ReasonOther}
	if !errors.As(err, &known) {
		known.text = err.Error()
	}
	left := &Error{Reason: known.Reason, text: wording.Visible(scrubber().Scrub(known.text)), kind: known.kind, conflicts: known.conflicts}
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
		return ctx.Err() // publicError gives it its text
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

// cause is the text of a network's or a certificate's error, without parts that differ each time.
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
		return fmt.Sprintf(
			"its certificate is valid only from %s to %s",
			certificate.Cert.NotBefore.UTC().Format("2006-01-02"),
			certificate.Cert.NotAfter.UTC().Format("2006-01-02"),
		)
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

// refusal is the error for an answer with an error status. verb and kind say what was requested.
func refusal(response *http.Response, answer metav1.Status, verb string, kind Kind) error {
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
		return serverf(
			ReasonUnreachable,
			"redirects%s, and redirects are not followed; the host must be the URL of the API server itself",
			redirect(response),
		)
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
