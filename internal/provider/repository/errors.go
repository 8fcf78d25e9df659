package repository

import (
	"context"
	"errors"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/once"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/timeouts"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/access"
)

// AddProblems adds the problems of a delivery at their attributes.
func AddProblems(diagnostics *diag.Diagnostics, problems []delivery.PlanProblem) {
	for _, problem := range problems {
		if problem.Warning {
			diagnostics.AddAttributeWarning(path.Root(problem.Attribute), problem.Summary, tfvalue.Sentence(problem.Detail))
			continue
		}
		diagnostics.AddAttributeError(path.Root(problem.Attribute), problem.Summary, tfvalue.Sentence(problem.Detail))
	}
}

// Kind is the diagnostic for an error of a repository or a Git host.
type Kind struct {
	of                 error
	attribute, Summary string
	Advice             string // follows the text of the error
}

// kinds are in the order of the search: an error of a Git host may also be one of Git, and advice about a key is better
// than advice about credentials.
var kinds = []Kind{
	{
		forge.ErrGitHubApp,
		"gitops_repo",
		"GitHub App gets no token",
		" Look at the provider's git.github_app, or FLOTILLA_GITHUB_APP_ID, FLOTILLA_GITHUB_APP_INSTALLATION_ID, " +
			"FLOTILLA_GITHUB_APP_PRIVATE_KEY and FLOTILLA_GITHUB_APP_URL.",
	},
	{forge.ErrUnauthorized, "delivery", "Git host refuses the credentials", ""},
	{forge.ErrRateLimited, "delivery", "Git host limits requests", ""},
	{forge.ErrNotMergeable, "delivery", "Pull request cannot be merged", ""},
	{forge.ErrHeadMoved, "delivery", "Pull request has another head", ""},
	{forge.ErrNotOwned, "delivery", "Pull request does not belong to this assignment", ""},
	{forge.ErrReviewer, "delivery", "Reviewer cannot be requested", ""},
	{forge.ErrUnreachable, "delivery", "Git host cannot be reached", ""},
	{forge.ErrNotFound, "delivery", "Repository or pull request does not exist", ""},
	{forge.ErrRefused, "delivery", "Git host refuses the pull request", ""},
	{
		git.ErrCommit,
		"rollback_to",
		"Cannot roll back to this commit",
		" The data source flotilla_history lists the commits that this assignment made.",
	},
	{git.ErrKey, "gitops_repo", "Repository refuses the credentials",
		" Set the provider's git.ssh_private_key, or for this URL alone git.credentials; or FLOTILLA_SSH_PRIVATE_KEY, or start an ssh agent."},
	{git.ErrUnauthorized, "gitops_repo", "Repository refuses the credentials",
		" Set the provider's git.token, or git.username and git.password, or for this URL alone git.credentials; " +
			"or FLOTILLA_GIT_TOKEN, or FLOTILLA_GIT_USERNAME and FLOTILLA_GIT_PASSWORD."},
	{access.ErrDenied, "gitops_repo", "URL is not allowed", " Nothing was sent there."},
	{git.ErrNotFound, "gitops_repo", "Repository does not exist", ""},
	{git.ErrNoBranch, "gitops_repo", "Branch does not exist", " Nothing was written."},
	{git.ErrUnreachable, "gitops_repo", "Repository cannot be reached", ""},
	{git.ErrHostKey, "gitops_repo", "Host key cannot be verified", ""},
	{gitops.ErrConflict, "gitops_repo", "Folder does not belong to this assignment", ""},
	{gitops.ErrOtherHolder, "name", "Another state has this assignment", " Nothing was written: plan again, which names its commit."},
	{gitops.ErrUnplanned, "gitops_repo", "Repository has changed since the plan", " Nothing was written: plan again."},
	{gitops.ErrHostNotEmpty, "gitops_repo", "Folder of a cluster type cannot move", " Nothing was written."},
	{delivery.ErrDuplicate, "name", "Two assignments have the same name", ""},
	{git.ErrRefused, "gitops_repo", "Repository refuses the commit", " Nothing was written."},
}

// OtherCredentials is the advice for a repository other than the GitOps repository.
const OtherCredentials = " Add an entry with the beginning of this URL to git.credentials of the provider: the other credentials of " +
	"git are for the GitOps repository alone."

// KindOf returns the kind of an error; one with the summary otherwise for an unknown error.
func KindOf(err error, otherwise string) Kind {
	for _, kind := range kinds {
		if errors.Is(err, kind.of) {
			return kind
		}
	}
	return Kind{err, "gitops_repo", otherwise, ""}
}

// AddError adds an error of a repository. With creates, a missing or unreachable one is only a warning: the same run may
// create it.
func AddError(ctx context.Context, diagnostics *diag.Diagnostics, err error, creates bool) {
	if timeouts.AddEnded(ctx, diagnostics, err) {
		return
	}
	kind, held := KindOf(err, "Repository cannot be used"), (*delivery.HeldError)(nil)
	at, detail := path.Root(kind.attribute), tfvalue.Sentence(err.Error())
	switch {
	case kind.attribute != "delivery" && errors.As(err, &held):
		AddProblems(diagnostics, held.Problems)
	case creates && errors.Is(kind.of, git.ErrNotFound):
		once.Warning(diagnostics, at, kind.Summary, detail+" If this run creates it, the apply succeeds; otherwise it fails.")
	case creates && errors.Is(kind.of, git.ErrUnreachable):
		once.Warning(diagnostics, at, kind.Summary, detail+" If it answers by then, the apply succeeds; otherwise it fails.")
	default:
		once.Error(diagnostics, at, kind.Summary, detail+kind.Advice+nothingWritten(err, kind))
	}
}

// beforeCommit are errors without an accepted commit, unless their text says otherwise.
var beforeCommit = []error{git.ErrKey, git.ErrUnauthorized, git.ErrNotFound, git.ErrUnreachable, git.ErrHostKey}

func nothingWritten(err error, kind Kind) string {
	if !slices.Contains(beforeCommit, kind.of) || errors.Is(err, git.ErrUnknown) || errors.Is(err, delivery.ErrProposed) {
		return ""
	}
	return " Nothing was written."
}
