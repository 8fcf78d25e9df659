package forge

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/wording"
)

// Status is the latest status of a commit with one context, or one key.
type Status struct {
	// Context is the name of what reports the status.
	Context string
	// Key is what distinguishes the statuses of a commit where a Git host has such besides their names, which may
	// then be those of many; "" elsewhere. See StatusKey.
	Key   string
	State StatusState
	// Description is its text, in one line.
	Description string
	// Time is when it was reported.
	Time time.Time
	// URL is for people; "" where there is none.
	URL string
	// Creator is the username of the reporter; "" on GitHub, which does not say.
	Creator string
}

// StatusState is the state of a status.
type StatusState string

// The states. Other states of a Git host are mapped to the nearest of them, and
// unknown ones to pending, never to success.
const (
	Success StatusState = "success"
	Failure StatusState = "failure"
	Error   StatusState = "error"
	Pending StatusState = "pending"
)

// checkCommit finds what is not a full id: a Git host reads other text as a branch or a tag.
func checkCommit(text string) error {
	if !folder.IsCommit(strings.ToLower(text)) {
		return fmt.Errorf("%q is not the full id of a commit", text)
	}
	return nil
}

// maxStatusPages bounds what is read of one commit: 10,000 statuses of Gitea,
// 20,000 of the others.
const maxStatusPages = 200

// Statuses returns the statuses of a commit, which is given by its full id: the
// latest of each key, or of each context where there are no keys, ordered by context.
func (h *GitHost) Statuses(ctx context.Context, commit string) ([]Status, error) {
	statuses, err := h.statuses(ctx, commit)
	return statuses, h.describe(err)
}

func (h *GitHost) statuses(ctx context.Context, commit string) ([]Status, error) {
	if err := checkCommit(commit); err != nil {
		return nil, err
	}
	latest := map[string]status{}
	err := pages(func(page int) (bool, error) {
		found, last, err := h.api.statuses(ctx, strings.ToLower(commit), page)
		for _, s := range found {
			name := cmp.Or(s.Key, s.Context)
			if before, ok := latest[name]; !ok || s.after(before) {
				latest[name] = s
			}
		}
		return last, err
	})
	if err != nil {
		return nil, fmt.Errorf("the statuses of commit %s cannot be read: %w", commit, err)
	}
	statuses := make([]Status, 0, len(latest))
	for _, s := range latest {
		statuses = append(statuses, h.shown(s.Status))
	}
	slices.SortFunc(statuses, func(a, b Status) int {
		return cmp.Or(strings.Compare(a.Context, b.Context), strings.Compare(a.Key, b.Key))
	})
	return statuses, nil
}

// shown is a status as it leaves the package: what the Git host says does nothing to a terminal.
func (h *GitHost) shown(s Status) Status {
	s.Description, s.URL = wording.OneLine(h.secrets.Scrub(s.Description)), wording.Visible(h.secrets.Scrub(s.URL))
	s.Context, s.Creator = wording.Visible(s.Context), wording.Visible(s.Creator)
	return s
}

// status is a Status with the number that the Git host gave it.
type status struct {
	Status
	id int64
}

// after reports whether a status is newer than another one: in the same second the
// number decides.
func (s status) after(other status) bool {
	return cmp.Or(s.Time.Compare(other.Time), cmp.Compare(s.id, other.id)) > 0
}

// stateOf maps a Git host's state.
func stateOf(word string) StatusState {
	switch word {
	case "success":
		return Success
	case "failure", "failed", "warning", "canceled", "canceling":
		return Failure
	case "error":
		return Error
	}
	return Pending
}

// pages reads pages until one is the last.
func pages(read func(page int) (last bool, err error)) error {
	for page := 1; page <= maxStatusPages; page++ {
		last, err := read(page)
		if err != nil || last {
			return err
		}
	}
	return failf(ErrRefused, "the Git host has more than %d pages of statuses", maxStatusPages)
}
