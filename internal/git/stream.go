package git

import (
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
}

func (w *streamWire) start(ctx context.Context, name string) (*service, error) {
	s, err := w.server.start(ctx, name)
	if err != nil {
		return nil, err
	}
	if s.adverts, err = readAdvertisement(limited(s.stdout, maxAdvertisement)); err != nil {
		return nil, w.fail(ctx, s, err)
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
	content, err := encodeFetch(request)
	if err != nil {
		return err
	}
	if _, err := s.stdin.Write(content); err != nil {
		return err
	}
	_ = s.stdin.Close()
	return readFetched(request, limited(s.stdout, maxPackBytes), read)
}

func (w *streamWire) push(ctx context.Context, pack *Pack, prepare prepareFunc) (*packp.ReportStatus, error) {
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
	report, err := s.push(request, pack)
	if err != nil {
		return nil, w.fail(ctx, s, err)
	}
	s.end(false) // the report has the result
	return report, report.Error()
}

func (s *service) push(request *packp.ReferenceUpdateRequest, pack *Pack) (*packp.ReportStatus, error) {
	writing := make(chan error, 1)
	go func() {
		err := request.Encode(s.stdin)
		if err == nil {
			_, err = io.Copy(s.stdin, pack.Reader())
		}
		_ = s.stdin.Close()
		writing <- err
	}()
	report, err := readReport(request, limited(s.stdout, maxReport))
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
