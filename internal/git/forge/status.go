package forge

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
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
	// Creator is the name of the account that set the status, as Kind.Creator describes it; "" if the Git host does not
	// report it. GitHub reports it to StatusesWithCreators alone.
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
	statuses, err := h.statuses(ctx, commit, h.api.statuses)
	return statuses, h.describe(err)
}

// StatusesWithCreators is Statuses with the creator of each status. On GitHub it takes more requests.
func (h *GitHost) StatusesWithCreators(ctx context.Context, commit string) ([]Status, error) {
	read := h.api.statuses
	if lister, ok := h.api.(creatorLister); ok {
		read = lister.created
	}
	statuses, err := h.statuses(ctx, commit, read)
	return statuses, h.describe(err)
}

// CheckCreators returns an error if the Git host does not report who set a status.
func (h *GitHost) CheckCreators() error {
	if kind := h.at.kind; kind.Creator == "" {
		return fmt.Errorf("%s does not report who set a commit status, so it cannot be checked", kind.Title)
	}
	return nil
}

// SameAccount reports whether two names are of one account of a Git host: all of them ignore the case of ASCII letters.
func SameAccount(a, b string) bool { return lowerASCII(a) == lowerASCII(b) }

func lowerASCII(text string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, text)
}

// statusReader returns a page of statuses, and whether it is the last one.
type statusReader func(ctx context.Context, commit string, page int) (found []status, last bool, err error)

func (h *GitHost) statuses(ctx context.Context, commit string, read statusReader) ([]Status, error) {
	if err := checkCommit(commit); err != nil {
		return nil, err
	}
	latest := map[string]status{}
	err := pages(func(page int) (bool, error) {
		found, last, err := read(ctx, strings.ToLower(commit), page)
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
