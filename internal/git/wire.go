package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
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
	// references requests refs and capabilities. An empty repository is transport.ErrEmptyRemoteRepository.
	references(ctx context.Context) (*packp.AdvRefs, error)
	// fetch reads an answer with its sidebands.
	fetch(ctx context.Context, request *packp.UploadPackRequest, read func(io.Reader) error) error
	// push sends the request that prepare makes from the advertisement for pushes. The report may be nil.
	push(ctx context.Context, prepare prepareFunc) (*packp.ReportStatus, error)
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

func (w shownWire) push(ctx context.Context, prepare prepareFunc) (*packp.ReportStatus, error) {
	report, err := w.wire.push(ctx, prepare)
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
		if c.localTransport != nil {
			if over := c.localTransport(directory); over != nil {
				return &webWire{transport: over, endpoint: &transport.Endpoint{Path: directory}, target: target{remote, permit}}, nil
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
	endpoint, err := transport.NewEndpoint(remote.URL)
	if err != nil {
		return nil, errors.New("the URL cannot be parsed")
	}
	// go-git decodes the path and writes it into requests without encoding it.
	if parsed, err := url.Parse(remote.URL); err == nil {
		endpoint.Path = strings.TrimRight(parsed.EscapedPath(), "/")
	}
	return &webWire{
		transport: c.web, endpoint: endpoint, appends: c.appends, target: target{remote, permit},
		// In the endpoint, go-git would make it part of every URL.
		auth: permit.Login.auth(endpoint.Host),
	}, nil
}

const noCredentials = "no entry of git.credentials is for this URL, and the plain credentials are for the GitOps repository alone"

// webWire uses go-git's http(s) transport. The smart protocol has no state, so fetches do not read the refs again.
type webWire struct {
	transport transport.Transport
	endpoint  *transport.Endpoint
	auth      transport.AuthMethod // nil for anonymous access
	target    target
	appends   bool // web is a boundedTransport
	upload    transport.UploadPackSession
}

func (w *webWire) session() (transport.UploadPackSession, error) {
	if w.upload != nil {
		return w.upload, nil
	}
	endpoint := *w.endpoint // a redirect rewrites it
	session, err := w.transport.NewUploadPackSession(&endpoint, w.auth)
	if err != nil {
		return nil, err
	}
	w.upload = session
	return session, nil
}

func (w *webWire) references(ctx context.Context) (*packp.AdvRefs, error) {
	session, err := w.session()
	if err != nil {
		return nil, err
	}
	advertised, err := advertisement(w.within(ctx), session)
	return advertised, w.explain(err)
}

// within adds the target for boundedTransport.
func (w *webWire) within(ctx context.Context) context.Context {
	return context.WithValue(ctx, targetKey{}, &w.target)
}

// explain adds why no credentials were sent.
func (w *webWire) explain(err error) error {
	permit := &w.target.permit
	switch {
	case !errors.Is(Classify(err), ErrUnauthorized):
		return err
	case permit.Withheld != "":
		return fmt.Errorf("%w; the credentials were not sent: %s; add credentials for this URL", err, permit.Withheld)
	case permit.Grant.Login == access.Anonymous && !w.target.remote.IsGitOps:
		return fmt.Errorf("%w; no credentials were sent: %s", err, noCredentials)
	}
	return err
}

func advertisement(ctx context.Context, session transport.Session) (*packp.AdvRefs, error) {
	advertised, err := session.AdvertisedReferencesContext(ctx)
	if err = otherHash(webError(err)); errors.Is(err, errOtherHash) {
		return nil, err
	}
	if err != nil && Classify(err) == nil && !errors.As(err, new(*pktline.ErrorLine)) &&
		!errors.As(err, new(*statusError)) && !errors.Is(err, transport.ErrEmptyRemoteRepository) {
		err = fmt.Errorf(
			"%w: the answer is not that of a Git server; is this the URL of a repository, and does it need credentials?",
			ErrUnreachable,
		)
	}
	return advertised, err
}

var errOtherHash = errors.New("the repository names its objects with SHA-256, which is not supported; use one with SHA-1")

// otherHash recognizes an advertisement with longer ids, which go-git cannot read.
func otherHash(err error) error {
	if unexpected, ok := errors.AsType[*packp.ErrUnexpectedData](err); ok && bytes.Contains(unexpected.Data, []byte("object-format=sha256")) {
		return errOtherHash
	}
	return err
}

func (w *webWire) fetch(ctx context.Context, request *packp.UploadPackRequest, read func(io.Reader) error) error {
	// go-git leaves some bodies open. Ending the context closes them.
	ctx, cancel := context.WithCancel(w.within(ctx))
	defer cancel()
	session, err := w.session()
	if err != nil {
		return err
	}
	response, err := session.UploadPack(ctx, request)
	if err != nil {
		return webError(err)
	}
	defer response.Close()
	if err := read(response); err != nil {
		return err
	}
	// The connection can be reused after its body was read.
	_, err = io.Copy(io.Discard, response)
	return err
}

func (w *webWire) push(ctx context.Context, prepare prepareFunc) (*packp.ReportStatus, error) {
	ctx, cancel := context.WithCancel(w.within(ctx))
	defer cancel()
	endpoint := *w.endpoint
	session, err := w.transport.NewReceivePackSession(&endpoint, w.auth)
	if err != nil {
		return nil, err
	}
	advertised, err := advertisement(ctx, session)
	if errors.Is(err, transport.ErrEmptyRemoteRepository) {
		advertised, err = packp.NewAdvRefs(), nil
	}
	if err != nil {
		return nil, w.explain(err)
	}
	request, err := prepare(advertised)
	if err != nil {
		return nil, err
	}
	if sent, ok := request.Packfile.(*sentPack); ok && w.appends {
		ctx, request.Packfile = context.WithValue(ctx, packKey{}, sent.pack), nil
	}
	report, err := session.ReceivePack(ctx, request)
	return report, webError(err)
}

func (w *webWire) close() {}

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
	if errors.Is(err, transport.ErrEmptyRemoteRepository) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("its branches cannot be listed: %w", err)
	}
	return advertised, nil
}

func refName(branch string) plumbing.ReferenceName {
	return plumbing.NewBranchReferenceName(branch)
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

// Servers other than git itself require choices that the protocol leaves to the client.
//
// Azure Repos advertises "multi_ack thin-pack side-band side-band-64k no-progress multi_ack_detailed no-done
// shallow allow-tip-sha1-in-want" for fetches, then "filter" and a symref (GitoxideLabs/gitoxide#1025).
//   - It answers 400 "TF401041: ... (Clients must support multi-ack.)" to requests without multi_ack or multi_ack_detailed. Measured
//     in July 2026 (ConfigButler/gitops-reverser#288), not going to change (fluxcd/source-controller#104). go-git 5 drops both
//     capabilities unless init changes its list, as Flux (fluxcd/pkg#576), kpack and Rancher (rancher/gitjob#400) do.
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

// init makes go-git, which nothing else in this process uses, drop thin packs only.
func init() { transport.UnsupportedCapabilities = []capability.Capability{capability.ThinPack} }
