package git

import (
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/transport"
)

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
