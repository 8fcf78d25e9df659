package delivery

import (
	"context"
	"errors"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// GitHosts reaches the APIs of Git hosts.
type GitHosts struct {
	reader  *Reader
	options ServiceOptions
}

// CheckSettings rejects settings that the Git host cannot use, without a request.
func (h *GitHosts) CheckSettings(settings Settings, owner Owner) error {
	if !settings.PullRequest {
		return nil
	}
	host, err := h.gitHost(settings, owner.Location)
	if err != nil {
		return err
	}
	selector := settings.selector(owner)
	if err := git.CheckBranch(selector.Head); err != nil {
		return err
	}
	return host.Check(selector, settings.Request)
}

func (h *GitHosts) gitHost(settings Settings, at folder.Location) (*forge.GitHost, error) {
	return h.newGitHost(settings, at.URL, h.options.Credentials.Web(at.URL, at.URL))
}

// gitHostOfAny returns the Git host of any repository, without plain credentials.
func (h *GitHosts) gitHostOfAny(settings Settings, url string) (*forge.GitHost, error) {
	return h.newGitHost(settings, url, h.options.Credentials.Web(url, ""))
}

func (h *GitHosts) newGitHost(settings Settings, url string, credentials forge.Credentials) (*forge.GitHost, error) {
	return forge.NewGitHost(forge.HostedRepository{
		URL: url, APIURL: settings.APIURL, Forge: settings.Forge, Credentials: credentials,
	}, forge.HTTPOptions{Over: h.options.Over, UserAgent: h.options.UserAgent})
}

// CommitStatuses are the statuses of one commit.
type CommitStatuses struct {
	Commit   string
	Statuses []forge.Status
}

// CheckStatuses fails if statuses, or their creators, cannot be read from a Git host. It makes no request.
func (h *GitHosts) CheckStatuses(settings Settings, at folder.Location, creators bool) error {
	host, err := h.gitHost(settings, at)
	if err == nil && creators {
		err = host.CheckCreators()
	}
	return err
}

// StatusQuery selects statuses.
type StatusQuery struct {
	Settings Settings
	Location folder.Location
	Limit    int
	Creators bool
}

// ReadStatuses reads the statuses of the newest commits of a branch until enough returns true. It skips commits that the
// Git host lacks. An error comes with the statuses so far.
func (h *GitHosts) ReadStatuses(ctx context.Context, query StatusQuery, enough func([]CommitStatuses) bool) ([]CommitStatuses, error) {
	host, err := h.gitHost(query.Settings, query.Location)
	if err != nil {
		return nil, err
	}
	branch, err := h.reader.branch(ctx, query.Location)
	if err != nil {
		return nil, err
	}
	commits, err := branch.ListRecentCommits(ctx, query.Limit)
	if err != nil {
		return nil, err
	}
	read := host.Statuses
	if query.Creators {
		read = host.StatusesWithCreators
	}
	var heard []CommitStatuses
	var unknown error
	for _, commit := range commits {
		statuses, err := read(ctx, commit)
		if errors.Is(err, forge.ErrNotFound) {
			unknown = err
			continue
		}
		if err != nil {
			return heard, err
		}
		heard = append(heard, CommitStatuses{Commit: commit, Statuses: statuses})
		if enough(heard) {
			return heard, nil
		}
	}
	if len(heard) == 0 {
		return nil, unknown
	}
	return heard, nil
}

// ReadStatus reads the status of a commit of any repository.
func (h *GitHosts) ReadStatus(ctx context.Context, settings Settings, url, commit string, wanted forge.Status) (*forge.Status, error) {
	host, err := h.gitHostOfAny(settings, url)
	if err != nil {
		return nil, err
	}
	return host.Status(ctx, commit, wanted)
}

// SetStatus sets the status of a commit of any repository.
func (h *GitHosts) SetStatus(ctx context.Context, settings Settings, url, commit string, wanted forge.Status) error {
	host, err := h.gitHostOfAny(settings, url)
	if err != nil {
		return err
	}
	return host.SetStatus(ctx, commit, wanted)
}
