package git

import (
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/transport"
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
//     them, unless they change its list: init does, as go-git's example for Azure
//     DevOps, Flux (fluxcd/pkg#576), kpack and Rancher (rancher/gitjob#400) do.
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

// init lets go-git drop thin packs alone. Nothing else in this process uses go-git.
func init() { transport.UnsupportedCapabilities = []capability.Capability{capability.ThinPack} }
