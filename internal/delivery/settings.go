package delivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// Settings are how commits reach the branch. The zero value pushes to it.
type Settings struct {
	PullRequest bool
	Forge       forge.Forge // "": by the Git host's name
	APIURL      string
	Head        string // branch of the pull request; "": by the owner's name
	Title       string
	Labels      []string
	Reviewers   []string
	Merge       forge.MergeMode // "": it is not merged by the apply
}

// request names the owner's pull request. Its branch differs for owners of one name on different branches or
// paths.
func (s Settings) request(owner Owner) forge.Selector {
	mark := strings.TrimPrefix(owner.Location.Path+"/"+owner.Name, "/")
	return forge.Selector{Owner: mark, Base: owner.Location.Branch, Head: cmp.Or(s.Head, "flotilla/"+owner.Location.Branch+"/"+mark)}
}

// CheckSettings reports settings with which no pull request can be opened. It makes no request.
func (c *Service) CheckSettings(settings Settings, owner Owner) error {
	if !settings.PullRequest {
		return nil
	}
	host, err := c.forge(settings, owner.Location)
	if err != nil {
		return err
	}
	selector := settings.request(owner)
	if err := git.CheckBranch(selector.Head); err != nil {
		return err
	}
	return host.Check(forge.Wanted{Selector: selector, Labels: settings.Labels, Reviewers: settings.Reviewers}, settings.Merge)
}

// forge is the Git host of the GitOps repository.
func (c *Service) forge(settings Settings, at folder.Location) (*forge.GitHost, error) {
	return c.forgeWith(settings, at.URL, c.options.Credentials.Web(at.URL, at.URL))
}

// forgeOfAny is the Git host of any repository, which gets the credentials for its URL and no plain ones.
func (c *Service) forgeOfAny(settings Settings, url string) (*forge.GitHost, error) {
	return c.forgeWith(settings, url, c.options.Credentials.Web(url, ""))
}

func (c *Service) forgeWith(settings Settings, url string, credentials forge.Credentials) (*forge.GitHost, error) {
	return forge.NewGitHost(forge.Repository{
		URL: url, APIURL: settings.APIURL, Forge: settings.Forge, Credentials: credentials,
	}, forge.Options{Over: c.options.Over, UserAgent: c.options.UserAgent})
}

// ErrProposed is the error of a commit that was pushed to its branch, while its pull request could not be
// opened, updated or merged.
var ErrProposed = errors.New("the commit is pushed, but its pull request is not complete")

// written is the outcome of an edit.
type written struct {
	gitops.ApplyResult
	commit string // that holds the edit
	url    string // of the pull request; "" where there is none
}

// write applies an edit as the settings say. known is what the state has of the owner, if anything. With ErrProposed the
// URL of the pull request is returned, too, where there is one.
func (c *Service) write(ctx context.Context, settings Settings, owner Owner, known *OwnerState, edit gitops.Edit) (written, error) {
	remote := c.remote(owner.Location)
	defer c.looks.forget(remote)
	if !settings.PullRequest {
		result, err := c.options.Git.Apply(ctx, remote, edit)
		return written{result, result.Commit, ""}, err
	}
	host, err := c.forge(settings, owner.Location)
	if err != nil {
		return written{}, err
	}
	selector := settings.request(owner)
	edit.Head = selector.Head
	proposed := remote
	proposed.Branch = edit.Head
	defer c.looks.forget(proposed)
	release, err := c.heads.Take(ctx, owner.Location.URL+" "+edit.Head)
	if err != nil {
		return written{}, err
	}
	defer release()
	if err := c.free(ctx, host, settings, owner, known, len(edit.Hosts) > 0); err != nil {
		return written{}, err
	}
	result, err := c.options.Git.Apply(ctx, remote, edit)
	if errors.Is(err, git.ErrNoBranch) {
		return written{}, cmp.Or(c.CheckBaseBranch(ctx, settings, owner, known), err)
	}
	if err != nil {
		return written{}, err
	}
	if result.HeadCommit == "" {
		if !result.Held { // else the request is the other holder's
			err = closeRequest(ctx, host, selector, known.number())
		}
		return written{result, result.Commit, ""}, err
	}
	request, err := propose(ctx, host, settings, result.HeadCommit, forge.Wanted{
		Selector: selector, Title: cmp.Or(settings.Title, result.Subject), Body: bodyOf(edit, result, host.MaxBody()),
		Labels: settings.Labels, Reviewers: settings.Reviewers,
	})
	done := written{ApplyResult: result, commit: result.HeadCommit}
	if request != nil {
		done.url, done.commit = request.URL, cmp.Or(request.MergeCommit, result.HeadCommit)
	}
	if err != nil {
		return done, fmt.Errorf("%w: branch %q has it: %w", ErrProposed, edit.Head, err)
	}
	if known != nil && known.Owner == owner && request.Number != known.number() {
		err = host.CloseOther(ctx, selector, known.number())
	}
	return done, err
}

// free makes sure that no other open request comes from the branch that is proposed. The owner's own is closed where the Git
// host has it go into another branch, since the owner's branch was deleted or renamed.
func (c *Service) free(ctx context.Context, host *forge.GitHost, settings Settings, owner Owner, known *OwnerState, needsBase bool) error {
	selector := settings.request(owner)
	err := host.Free(ctx, selector)
	if !errors.Is(err, forge.ErrNotOwned) {
		return err
	}
	if gone := c.CheckBaseBranch(ctx, settings, owner, known); errors.Is(gone, git.ErrNoBranch) {
		if needsBase {
			return gone
		}
		return nil
	}
	if settings.Head != "" && (known == nil || known.Owner != owner) {
		return err // owners on several branches may share this head by mistake
	}
	if err := host.CloseElsewhere(ctx, selector); err != nil {
		return err
	}
	return host.Free(ctx, selector)
}

// propose opens or updates the owner's pull request, and merges it where that is wanted. The request is returned with an
// error, too, where there is one.
func propose(ctx context.Context, host *forge.GitHost, settings Settings, head string, wanted forge.Wanted) (*forge.PullRequest, error) {
	request, err := host.Ensure(ctx, wanted)
	if err != nil {
		if request == nil {
			request, _ = host.Current(ctx, wanted.Selector, 0) // it was open before
		}
		return request, err
	}
	if settings.Merge == "" {
		return request, host.Hold(ctx, request)
	}
	merged, err := host.Merge(ctx, request, head, settings.Merge)
	return cmp.Or(merged, request), err
}

func bodyOf(edit gitops.Edit, result gitops.ApplyResult, limit int) string {
	if edit.Abandon {
		return "The records of this assignment are removed, and its folders stay.\n"
	}
	return forge.Body(result.Changes, limit)
}
