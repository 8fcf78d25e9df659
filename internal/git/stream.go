package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
)

// streamWire speaks to git-upload-pack or git-receive-pack over streams. go-git's transports wait forever for a process whose
// output is not read, and drop all but the first line of stderr.
type streamWire struct {
	server streamServer
	idle   *service // advertised, and waits for a request
}

// streamServer starts services.
type streamServer interface {
	start(ctx context.Context, name string) (*service, error)
	explain(said string) error
	// close frees shared resources.
	close()
}

// service is a running git-upload-pack or git-receive-pack.
type service struct {
	stdin  io.WriteCloser
	stdout io.Reader
	stderr *beginning
	kill   func() // ends it at once
	wait   func() // returns after its end

	adverts *packp.AdvRefs
	empty   bool
}

func (w *streamWire) start(ctx context.Context, name string) (*service, error) {
	s, err := w.server.start(ctx, name)
	if err != nil {
		return nil, err
	}
	s.adverts = packp.NewAdvRefs()
	err = s.adverts.Decode(limited(s.stdout, maxAdvertisement))
	switch {
	case err == nil && !s.adverts.IsEmpty():
	case err == nil, errors.Is(err, packp.ErrEmptyAdvRefs):
		s.empty = true
	default:
		return nil, w.fail(ctx, s, otherHash(err))
	}
	return s, nil
}

// fail ends the service and returns its stderr as the error.
func (w *streamWire) fail(ctx context.Context, s *service, err error) error {
	cause := ctx.Err()
	// A service that ended by itself may have printed the reason.
	ended := errors.Is(err, packp.ErrEmptyInput) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	s.end(!ended)
	said := s.stderr.String()
	switch {
	case cause != nil:
		return cause
	case said != "" && !errors.Is(err, ErrTooLarge) && !errors.Is(err, errOtherHash):
		return w.server.explain(said)
	case errors.Is(err, packp.ErrEmptyInput):
		return io.ErrUnexpectedEOF
	case Classify(err) != nil, errors.Is(err, errOtherHash):
		return err
	}
	// A truncated answer fails in many different ways.
	return fmt.Errorf("%w: its answer cannot be read: %w", ErrUnreachable, err)
}

// end waits for the service.
func (s *service) end(kill bool) {
	_ = s.stdin.Close()
	if kill {
		s.kill()
	}
	s.wait()
}

func (w *streamWire) references(ctx context.Context) (*packp.AdvRefs, error) {
	w.quit()
	s, err := w.start(ctx, transport.UploadPackServiceName)
	if err != nil {
		return nil, err
	}
	if s.empty {
		s.end(true)
		return nil, transport.ErrEmptyRemoteRepository
	}
	w.idle = s
	return s.adverts, nil
}

func (w *streamWire) fetch(ctx context.Context, request *packp.UploadPackRequest, read func(io.Reader) error) error {
	s := w.idle
	w.idle = nil
	if s == nil {
		var err error
		if s, err = w.start(ctx, transport.UploadPackServiceName); err != nil {
			return err
		}
	}
	stop := context.AfterFunc(ctx, s.kill)
	defer stop()
	if err := s.fetch(request, read); err != nil {
		return w.fail(ctx, s, err)
	}
	s.end(false) // the pack had its checksum
	return nil
}

func (s *service) fetch(request *packp.UploadPackRequest, read func(io.Reader) error) error {
	var b bytes.Buffer
	if err := request.UploadRequest.Encode(&b); err != nil {
		return err
	}
	if err := request.UploadHaves.Encode(&b, false); err != nil {
		return err
	}
	b.WriteString("0009done\n")
	if _, err := s.stdin.Write(b.Bytes()); err != nil {
		return err
	}
	_ = s.stdin.Close()
	response := packp.NewUploadPackResponse(request)
	if err := response.Decode(io.NopCloser(limited(s.stdout, maxPackBytes))); err != nil {
		return err
	}
	if err := read(response); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, response)
	return err
}

func (w *streamWire) push(ctx context.Context, prepare prepareFunc) (*packp.ReportStatus, error) {
	w.quit()
	s, err := w.start(ctx, transport.ReceivePackServiceName)
	if err != nil {
		return nil, err
	}
	request, err := prepare(s.adverts)
	if err != nil {
		_, _ = io.WriteString(s.stdin, "0000")
		s.end(false)
		return nil, err
	}
	report, err := s.push(request)
	if err != nil {
		return nil, w.fail(ctx, s, err)
	}
	s.end(false) // the report has the result
	return report, report.Error()
}

func (s *service) push(request *packp.ReferenceUpdateRequest) (*packp.ReportStatus, error) {
	writing := make(chan error, 1)
	go func() {
		err := request.Encode(s.stdin)
		_ = s.stdin.Close()
		writing <- err
	}()
	report := packp.NewReportStatus()
	err := report.Decode(demultiplexed(request.Capabilities, limited(s.stdout, maxReport), request.Progress))
	if err != nil {
		s.kill() // else the writer may wait for a reader
	}
	written := <-writing
	if err != nil {
		return nil, errors.Join(err, written)
	}
	return report, nil
}

// quit ends an unused service.
func (w *streamWire) quit() {
	if w.idle == nil {
		return
	}
	_, _ = io.WriteString(w.idle.stdin, "0000") // end of requests
	w.idle.end(false)
	w.idle = nil
}

func (w *streamWire) close() {
	w.quit()
	w.server.close()
}
