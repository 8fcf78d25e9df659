package git

import (
	"bytes"
	"io"
	"net/http"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
)

// What servers advertise differs, and some insist on what the protocol leaves to
// the client. What is known of those that are not git itself, and where from:
//
// Azure Repos advertises to those who fetch "multi_ack thin-pack side-band
// side-band-64k no-progress multi_ack_detailed no-done shallow
// allow-tip-sha1-in-want", then "filter" and a symref (GitoxideLabs/gitoxide#1025).
//   - It answers 400 "TF401041: The Git protocol sent is not as expected (Clients
//     must support multi-ack.)" to a request whose capabilities have neither
//     multi_ack nor multi_ack_detailed; either is enough. Measured in July 2026
//     (ConfigButler/gitops-reverser#288), reported since 2020 (go-git/go-git#64),
//     and not going to change (its product manager, fluxcd/source-controller#104). go-git 5
//     drops both from what a server advertises, so that its callers cannot ask for
//     them. Its example for Azure DevOps, Flux (fluxcd/pkg#576), kpack and Rancher
//     (rancher/gitjob#400) change go-git's list for the whole process; this
//     package does not, since that would change other users of go-git.
//   - Filters are blob:none and tree:0; others fail ("Git Partial Clone Now
//     Supported in Azure DevOps", devblogs.microsoft.com, November 2023). So trees
//     come whole and files by id. git asks for files that a partial clone lacks
//     in the same words, at allow-tip-sha1-in-want, too.
//   - Without ofs-delta its packs have deltas that name their bases, before or
//     after them (gitoxide#1025, "reference delta not found" of go-git).
//   - Protocol version 2 is not spoken, and is not asked for.
//   - ssh: it ends the connection after each service (go-git/go-git#200,
//     fluxcd/source-controller#402), so each gets a new one.
//   - A push may have 5 GB, a file 100 MB (learn.microsoft.com,
//     azure/devops/repos/git/limits). What it refuses, it refuses as a whole, with
//     the reason beside the branch (libgit2/libgit2#6876): see refusals.
//   - A client that is not signed in may get a sign-in page, as 203 or after a redirect.
//
// AWS CodeCommit advertises "multi_ack_detailed shallow side-band-64k thin-pack
// allow-tip-sha1-in-want allow-reachable-sha1-in-want" (isomorphic-git#199), and
// wants multi_ack_detailed, too (fluxcd/pkg#576). Without filters everything of
// the tip is fetched. It takes no packs with ofs-deltas (src-d/go-git#945); ours
// have no deltas. Its URLs have no .git at their end, and nothing puts one there.
//
// Bitbucket runs git. Data Center filters since 7.13, and Bitbucket Cloud did not
// in 2021 (jira.atlassian.com/browse/BSERV-11639).

// offer is the beginning of an advertisement, as the server has sent it. It
// includes the capabilities that go-git drops.
type offer struct{ begin []byte }

// offerKey is the key in a request's context for the offer to fill in.
type offerKey struct{}

// maxOffer is more than the lines up to the first branch can have.
const maxOffer = 3 * pktline.MaxPayloadSize

// keepOffer returns a reader of the body that also stores the beginning of an
// advertisement in the offer of the request's context, if there is one.
func keepOffer(request *http.Request, body io.Reader) io.Reader {
	stored, ok := request.Context().Value(offerKey{}).(*offer)
	if !ok || !strings.HasSuffix(request.URL.Path, "/info/refs") {
		return body
	}
	stored.begin = nil // what a redirect stored
	return io.TeeReader(body, stored)
}

// Write makes it an io.Writer.
func (o *offer) Write(p []byte) (int, error) {
	o.begin = append(o.begin, p[:min(len(p), maxOffer-len(o.begin))]...)
	return len(p), nil
}

// restore puts back what go-git has dropped of the capabilities.
func (o *offer) restore(to *capability.List) {
	offered := o.capabilities()
	for _, dropped := range []capability.Capability{capability.MultiACK, capability.MultiACKDetailed} {
		if offered.Supports(dropped) {
			_ = to.Set(dropped)
		}
	}
}

// capabilities are those of the first line that has any, the line of HTTP that
// names the service left out; none where the beginning is that of something else.
func (o *offer) capabilities() *capability.List {
	list := capability.NewList()
	for lines := pktline.NewScanner(bytes.NewReader(o.begin)); lines.Scan(); {
		if bytes.HasPrefix(lines.Bytes(), []byte("#")) {
			continue
		}
		if _, text, ok := bytes.Cut(lines.Bytes(), []byte{0}); ok {
			if list.Decode(text) != nil {
				return capability.NewList()
			}
			break
		}
	}
	return list
}
