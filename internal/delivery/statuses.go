package delivery

import (
	"context"
	"errors"

	"github.com/flotilla/terraform-provider-flotilla/internal/forge"
)

// CommitStatuses are what a Git host was told about a commit.
type CommitStatuses struct {
	Commit   string
	Statuses []forge.Status
}

// CheckStatuses tells why a place's Git host has no commit statuses. Nobody is asked. Of the settings the
// kind of Git host and the URL of its API are read.
func (c *Client) CheckStatuses(settings Settings, at Place) error {
	_, err := c.forge(settings, at)
	return err
}

// Statuses reads what the Git host was told about the newest commits of a place's branch, newest first,
// until enough was heard, or of so many commits. A commit that the host does not know, because it has not
// noticed it yet, has none. enough is called after each commit with all that was heard; the error of a
// host that answers no more comes with what was heard until then.
func (c *Client) Statuses(
	ctx context.Context, settings Settings, at Place, limit int, enough func([]CommitStatuses) bool,
) ([]CommitStatuses, error) {
	host, err := c.forge(settings, at)
	if err != nil {
		return nil, err
	}
	look, err := c.looks.at(ctx, c.git, c.remote(at))
	if err != nil {
		return nil, err
	}
	commits, err := look.Recent(ctx, limit)
	if err != nil {
		return nil, err
	}
	var heard []CommitStatuses
	var unknown error
	for _, commit := range commits {
		statuses, err := host.Statuses(ctx, commit)
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
