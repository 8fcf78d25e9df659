package delivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/gitops"
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

// Check reports settings with which no pull request can be opened. It makes no request.
func (c *Client) Check(settings Settings, owner Owner) error {
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
func (c *Client) forge(settings Settings, at Location) (*forge.GitHost, error) {
	return c.forgeWith(settings, at.URL, c.options.Credentials.Web(at.URL, at.URL))
}

// forgeOfAny is the Git host of any repository, which gets the credentials for its URL and no plain ones.
func (c *Client) forgeOfAny(settings Settings, url string) (*forge.GitHost, error) {
	return c.forgeWith(settings, url, c.options.Credentials.Web(url, ""))
}

func (c *Client) forgeWith(settings Settings, url string, credentials forge.Credentials) (*forge.GitHost, error) {
	return forge.NewGitHost(forge.Repository{
		URL: url, APIURL: settings.APIURL, Forge: settings.Forge, Credentials: credentials,
	}, forge.Options{Over: c.options.Over, UserAgent: c.options.UserAgent})
}

// ErrProposed is the error of a commit that was pushed to its branch, while its pull request could not be
// opened, updated or merged.
var ErrProposed = errors.New("the commit is pushed, but its pull request is not complete")

// write applies an edit as the settings say. It returns the result, the commit that holds the edit, and the
// URL of the pull request, if there is one.
func (c *Client) write(ctx context.Context, settings Settings, owner Owner, edit gitops.Edit) (result gitops.Result, commit, url string, err error) {
	remote := c.remote(owner.Location)
	defer c.looks.forget(remote)
	if !settings.PullRequest {
		result, err := c.options.Git.Apply(ctx, remote, edit)
		return result, result.Commit, "", err
	}
	host, err := c.forge(settings, owner.Location)
	if err != nil {
		return gitops.Result{}, "", "", err
	}
	selector := settings.request(owner)
	edit.Head = selector.Head
	proposed := remote
	proposed.Branch = edit.Head
	defer c.looks.forget(proposed)
	release, err := c.heads.Take(ctx, owner.Location.URL+" "+edit.Head)
	if err != nil {
		return gitops.Result{}, "", "", err
	}
	defer release()
	if err := host.Free(ctx, selector); err != nil {
		return gitops.Result{}, "", "", err
	}
	result, err = c.options.Git.Apply(ctx, remote, edit)
	if err != nil {
		return gitops.Result{}, "", "", err
	}
	if result.HeadCommit == "" && result.Held {
		return result, result.Commit, "", nil // the request is the other holder's
	}
	if result.HeadCommit == "" {
		return result, result.Commit, "", closeRequest(ctx, host, selector)
	}
	request, err := propose(ctx, host, settings, result.HeadCommit, forge.Wanted{
		Selector: selector, Title: cmp.Or(settings.Title, result.Subject), Body: bodyOf(edit, result, host.MaxBody()),
		Labels: settings.Labels, Reviewers: settings.Reviewers,
	})
	if err != nil {
		return gitops.Result{}, "", "", fmt.Errorf("%w: branch %q has it: %w", ErrProposed, edit.Head, err)
	}
	if request.MergeCommit != "" {
		return result, request.MergeCommit, request.URL, nil
	}
	return result, result.HeadCommit, request.URL, nil
}

// propose opens or updates the owner's pull request, and merges it where that is wanted.
func propose(ctx context.Context, host *forge.GitHost, settings Settings, head string, wanted forge.Wanted) (*forge.PullRequest, error) {
	request, err := host.Ensure(ctx, wanted)
	if err != nil {
		return nil, err
	}
	if settings.Merge == "" {
		return request, host.Hold(ctx, request)
	}
	return host.Merge(ctx, request, head, settings.Merge)
}

// closeRequest closes the owner's open pull request, since nothing is left to propose.
func closeRequest(ctx context.Context, host *forge.GitHost, selector forge.Selector) error {
	request, err := host.Current(ctx, selector, 0)
	if err != nil || request == nil {
		return err
	}
	return host.Close(ctx, request)
}

func bodyOf(edit gitops.Edit, result gitops.Result, limit int) string {
	if edit.GiveUp {
		return "The records of this assignment are removed, and its folders stay.\n"
	}
	return forge.Body(result.Changes, limit)
}

// pending returns the branch that shows what is deployed: that of the owner's open pull request, whose changes
// are pending and no drift, or the location's own once the request is merged or closed. An open request that
// is not the one in the state, or should have been merged at once, is from an apply that failed half-way. The request
// is the open one, else that of the state; nil where there is none.
func (c *Client) pending(ctx context.Context, known *State) (branch string, request *forge.PullRequest, err error) {
	at := known.Owner.Location
	if !known.Settings.PullRequest {
		return at.Branch, nil, nil
	}
	host, err := c.forge(known.Settings, at)
	if err != nil {
		return "", nil, err
	}
	selector := known.Settings.request(known.Owner)
	number, _ := strconv.Atoi(path.Base(known.PullRequest)) // at the end of its URL on every Git host
	if request, err = host.Current(ctx, selector, number); err != nil {
		return "", nil, err
	}
	if request != nil && request.State == forge.Open && request.URL == known.PullRequest && known.Settings.Merge != forge.Now {
		return selector.Head, request, nil
	}
	return at.Branch, request, nil
}

// CloseFormer closes the open pull request from before the owner got other settings or another name, unless it
// is the same request.
func (c *Client) CloseFormer(ctx context.Context, known *State, owner Owner, settings Settings) (head string, err error) {
	former := known.Settings.request(known.Owner)
	if !known.Settings.PullRequest {
		return "", nil
	}
	if settings.PullRequest && known.Owner.Location.URL == owner.Location.URL && settings.request(owner) == former {
		return "", nil
	}
	host, err := c.forge(known.Settings, known.Owner.Location)
	if err == nil {
		err = closeRequest(ctx, host, former)
	}
	return former.Head, err
}
