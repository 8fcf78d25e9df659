package repository

import (
	"context"
	"errors"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/timeouts"
)

// AddProblems reports the problems that delivery has found, each at its attribute.
func AddProblems(diagnostics *diag.Diagnostics, problems []delivery.Problem) {
	for _, problem := range problems {
		if problem.Warning {
			diagnostics.AddAttributeWarning(path.Root(problem.Attribute), problem.Summary, tfvalue.Sentence(problem.Detail))
			continue
		}
		diagnostics.AddAttributeError(path.Root(problem.Attribute), problem.Summary, tfvalue.Sentence(problem.Detail))
	}
}

// The diagnostic about a repository that requires other credentials.
const (
	RefusesCredentials = "Repository refuses the credentials"
	setCredentials     = " Set the provider's git.token, or git.username and git.password, or for this URL alone git.credentials; " +
		"or FLOTILLA_GIT_TOKEN, or FLOTILLA_GIT_USERNAME and FLOTILLA_GIT_PASSWORD."
	setKey = " Set the provider's git.ssh_private_key, or for this URL alone git.credentials; or FLOTILLA_SSH_PRIVATE_KEY, or start an ssh agent."
)

// HowToSignIn says which credentials to set after a git.ErrUnauthorized.
func HowToSignIn(err error) string {
	if errors.Is(err, git.ErrKey) {
		return setKey
	}
	return setCredentials
}

// AddError reports an error of a repository. With creates, a repository that does not exist or cannot be
// reached is only a warning: it may be created in the same run.
func AddError(ctx context.Context, diagnostics *diag.Diagnostics, err error, creates bool) {
	if timeouts.AddEnded(ctx, diagnostics, err) || addForgeError(diagnostics, err) {
		return
	}
	if held := (*delivery.HeldError)(nil); errors.As(err, &held) {
		AddProblems(diagnostics, held.Problems)
		return
	}
	at := path.Root("gitops_repo")
	detail := tfvalue.Sentence(err.Error())
	switch {
	case errors.Is(err, git.ErrCommit):
		diagnostics.AddAttributeError(path.Root("rollback_to"), "Cannot roll back to this commit", detail+
			" The data source flotilla_history lists the commits that this assignment made.")
	case errors.Is(err, git.ErrUnauthorized):
		diagnostics.AddAttributeError(at, RefusesCredentials, detail+HowToSignIn(err))
	case errors.Is(err, git.ErrNotFound) || errors.Is(err, git.ErrUnreachable):
		summary := "Repository cannot be reached"
		if errors.Is(err, git.ErrNotFound) {
			summary = "Repository does not exist"
		}
		if creates {
			hint := " If this run creates it, the apply succeeds; otherwise it fails."
			if errors.Is(err, git.ErrUnreachable) {
				hint = " If it answers by then, the apply succeeds; otherwise it fails."
			}
			diagnostics.AddAttributeWarning(at, summary, detail+hint)
			return
		}
		diagnostics.AddAttributeError(at, summary, detail)
	case errors.Is(err, git.ErrHostKey):
		diagnostics.AddAttributeError(at, "Host key cannot be verified", detail)
	case errors.Is(err, gitops.ErrConflict):
		diagnostics.AddAttributeError(at, "Folder does not belong to this assignment", detail)
	case errors.Is(err, gitops.ErrUnplanned):
		diagnostics.AddAttributeError(at, "Repository has changed since the plan", detail+" Nothing was written: plan again.")
	case errors.Is(err, delivery.ErrDuplicate):
		diagnostics.AddAttributeError(path.Root("name"), "Two assignments have the same name", detail)
	case errors.Is(err, git.ErrRefused):
		diagnostics.AddAttributeError(at, "Repository refuses the commit", detail+" Nothing was written.")
	default:
		diagnostics.AddAttributeError(at, "Repository cannot be used", detail)
	}
}

// addForgeError reports an error of a pull request. It returns false for another error.
func addForgeError(diagnostics *diag.Diagnostics, err error) bool {
	at := path.Root("delivery")
	for _, kind := range []struct {
		of      error
		summary string
	}{
		{forge.ErrUnauthorized, "Git host refuses the credentials"},
		{forge.ErrRateLimited, "Git host limits requests"},
		{forge.ErrNotMergeable, "Pull request cannot be merged"},
		{forge.ErrHeadMoved, "Pull request has another head"},
		{forge.ErrNotOwned, "Pull request does not belong to this assignment"},
		{forge.ErrReviewer, "Reviewer cannot be requested"},
		{forge.ErrUnreachable, "Git host cannot be reached"},
		{forge.ErrNotFound, "Repository or pull request does not exist"},
		{forge.ErrRefused, "Git host refuses the pull request"},
	} {
		if errors.Is(err, kind.of) {
			diagnostics.AddAttributeError(at, kind.summary, tfvalue.Sentence(err.Error()))
			return true
		}
	}
	return false
}
