package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/access"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// wire speaks Git's protocol with one repository.
type wire interface {
	// references requests refs and capabilities. An empty repository has no refs.
	references(ctx context.Context) (*packp.AdvRefs, error)
	// fetch reads an answer with its sidebands.
	fetch(ctx context.Context, request *packp.UploadPackRequest, read func(io.Reader) error) error
	// push sends the request that prepare makes from the advertisement for pushes, and the pack. The report may be nil.
	push(ctx context.Context, pack *Pack, prepare prepareFunc) (*packp.ReportStatus, error)
	close()
}

type prepareFunc func(*packp.AdvRefs) (*packp.ReferenceUpdateRequest, error)

// dial makes no request. Errors of the wire contain no control characters, although they repeat text of servers.
func (c *Connector) dial(remote Remote) (wire, error) {
	w, err := c.rawWire(remote)
	if err != nil {
		return nil, err
	}
	return shownWire{w}, nil
}

// shownWire makes errors safe for a terminal.
type shownWire struct{ wire }

func (w shownWire) references(ctx context.Context) (*packp.AdvRefs, error) {
	advertised, err := w.wire.references(ctx)
	return advertised, shown(err)
}

func (w shownWire) fetch(ctx context.Context, request *packp.UploadPackRequest, read func(io.Reader) error) error {
	return shown(w.wire.fetch(ctx, request, read))
}

func (w shownWire) push(ctx context.Context, pack *Pack, prepare prepareFunc) (*packp.ReportStatus, error) {
	report, err := w.wire.push(ctx, pack, prepare)
	return report, shown(err)
}

type shownError struct {
	text string
	err  error
}

func (e *shownError) Error() string { return e.text }
func (e *shownError) Unwrap() error { return e.err }

// maxShown limits an error in bytes; a packet has 64 KiB.
const maxShown = 1000

func shown(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if said, ok := errors.AsType[*pktline.ErrorLine](err); ok && text == said.Text {
		text = "the server says: " + text
	}
	text = wording.Cut(wording.Line(text), maxShown)
	if text == err.Error() {
		return err
	}
	return &shownError{text, err}
}

func (c *Connector) rawWire(remote Remote) (wire, error) {
	permit, err := remote.Credentials.Decide(remote.request())
	if err != nil {
		return nil, err
	}
	directory, local, err := remote.local()
	if err != nil {
		return nil, err
	}
	if local {
		if c.options.Local != nil {
			if over := c.options.Local(directory); over != nil {
				return &webWire{client: &http.Client{Transport: over}, at: &url.URL{Scheme: "http", Host: "localhost"}}, nil
			}
		}
		return &streamWire{server: &localGitServer{directory: directory}}, nil
	}
	if at, ok := parseSSH(remote.URL); ok {
		if permit.Grant.Login == access.Anonymous {
			return nil, fmt.Errorf("%w: ssh has no key: %s", ErrUnauthorized, noCredentials)
		}
		return &streamWire{server: &sshServer{at: at, credentials: permit.Login.SSH}}, nil
	}
	at, err := url.Parse(strings.TrimRight(remote.URL, "/"))
	if err != nil {
		return nil, errors.New("the URL cannot be parsed")
	}
	bounds := &boundedTransport{next: c.options.Over, product: c.options.UserAgent, remote: remote, permit: permit}
	return &webWire{client: &http.Client{Transport: bounds, CheckRedirect: checkRedirect}, at: at}, nil
}

const noCredentials = "no entry of git.credentials is for this URL, and the plain credentials are for the GitOps repository alone"

// branchTip returns zero for a missing branch, and nil for an empty repository.
func branchTip(ctx context.Context, w wire, branch string) (Hash, *packp.AdvRefs, error) {
	advertised, err := advertisedBy(ctx, w)
	if err != nil || advertised == nil {
		return Hash{}, nil, err
	}
	return advertised.References[refName(branch).String()], advertised, nil
}

// advertisedBy returns nil for an empty repository.
func advertisedBy(ctx context.Context, w wire) (*packp.AdvRefs, error) {
	advertised, err := w.references(ctx)
	if err != nil {
		return nil, fmt.Errorf("its branches cannot be listed: %w", err)
	}
	if advertised.IsEmpty() {
		return nil, nil
	}
	return advertised, nil
}

func refName(branch string) plumbing.ReferenceName {
	return plumbing.NewBranchReferenceName(branch)
}

var errOtherHash = errors.New("the repository names its objects with SHA-256, which is not supported; use one with SHA-1")

// readAdvertisement reads refs and capabilities. go-git cannot read longer ids.
func readAdvertisement(answer io.Reader) (*packp.AdvRefs, error) {
	advertised := packp.NewAdvRefs()
	err := advertised.Decode(answer)
	if errors.Is(err, packp.ErrEmptyAdvRefs) {
		return advertised, nil
	}
	if unexpected, ok := errors.AsType[*packp.ErrUnexpectedData](err); ok && bytes.Contains(unexpected.Data, []byte("object-format=sha256")) {
		return nil, errOtherHash
	}
	return advertised, err
}

func encodeFetch(request *packp.UploadPackRequest) ([]byte, error) {
	var b bytes.Buffer
	if err := request.UploadRequest.Encode(&b); err != nil {
		return nil, err
	}
	if err := request.UploadHaves.Encode(&b, false); err != nil {
		return nil, err
	}
	b.WriteString("0009done\n")
	return b.Bytes(), nil
}

// readFetched reads the answer to its end, after which a connection can be reused.
func readFetched(request *packp.UploadPackRequest, answer io.Reader, read func(io.Reader) error) error {
	response := packp.NewUploadPackResponse(request)
	if err := response.Decode(io.NopCloser(answer)); err != nil {
		return err
	}
	if err := read(response); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, response)
	return err
}

func readReport(request *packp.ReferenceUpdateRequest, answer io.Reader) (*packp.ReportStatus, error) {
	report := packp.NewReportStatus()
	if err := report.Decode(demultiplexed(request.Capabilities, answer, request.Progress)); err != nil {
		return nil, err
	}
	return report, nil
}

// demultiplexed removes sidebands. progress, which may be nil, gets the output of hooks.
func demultiplexed(capabilities *capability.List, r io.Reader, progress sideband.Progress) io.Reader {
	var demuxer *sideband.Demuxer
	switch {
	case capabilities.Supports(capability.Sideband64k):
		demuxer = sideband.NewDemuxer(sideband.Sideband64k, r)
	case capabilities.Supports(capability.Sideband):
		demuxer = sideband.NewDemuxer(sideband.Sideband, r)
	default:
		return r
	}
	demuxer.Progress = progress
	return demuxer
}

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

// Servers other than git itself require choices that the protocol leaves to the client.
//
// Azure Repos advertises "multi_ack thin-pack side-band side-band-64k no-progress multi_ack_detailed no-done
// shallow allow-tip-sha1-in-want" for fetches, then "filter" and a symref (GitoxideLabs/gitoxide#1025).
//   - It answers 400 "TF401041: ... (Clients must support multi-ack.)" to requests without multi_ack or multi_ack_detailed. Measured
//     in July 2026 (ConfigButler/gitops-reverser#288), not going to change (fluxcd/source-controller#104).
//   - It has the filters blob:none and tree:0 only (devblogs.microsoft.com, November 2023): trees come whole and files by id. git, too,
//     requests the missing files of a partial clone by id, although the server advertises only allow-tip-sha1-in-want.
//   - Without ofs-delta, its packs name the bases of deltas by id, before or after them (gitoxide#1025).
//   - It does not speak protocol version 2.
//   - Over ssh it ends the connection after each service (go-git/go-git#200, fluxcd/source-controller#402).
//   - A push is limited to 5 GB, a file to 100 MB (learn.microsoft.com, azure/devops/repos/git/limits). It refuses a push as a whole
//     and reports the reason with the branch (libgit2/libgit2#6876), see refusals.
//   - A client that is not signed in may get a sign-in page, with status 203 or after a redirect.
//
// AWS CodeCommit advertises "multi_ack_detailed shallow side-band-64k thin-pack allow-tip-sha1-in-want
// allow-reachable-sha1-in-want" (isomorphic-git#199) and requires multi_ack_detailed (fluxcd/pkg#576). It has no filters, and
// accepts no ofs-deltas (src-d/go-git#945); our packs have none.
//
// Bitbucket Data Center has filters since 7.13; Bitbucket Cloud had none in 2021 (jira.atlassian.com/browse/BSERV-11639).
