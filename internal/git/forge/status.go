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

// Status is the latest status of a commit with a context or key.
type Status struct {
	// Context is the name of the reporter.
	Context string
	// Key distinguishes statuses with the same Context, if the Git host has keys. See StatusKey.
	Key   string
	State StatusState
	// Description is one line.
	Description string
	Time        time.Time
	// URL is a web page, or "".
	URL string
	// Creator is the account in the form of GitHostKind.Creator, or "". On GitHub, only StatusesWithCreators sets it.
	Creator string
}

// StatusState is the state of a status.
type StatusState string

// Other states are mapped to the nearest of these, unknown ones to Pending, never to Success.
const (
	Success StatusState = "success"
	Failure StatusState = "failure"
	Error   StatusState = "error"
	Pending StatusState = "pending"
)

// checkCommit accepts only full ids. A Git host reads other text as a branch or a tag.
func checkCommit(text string) error {
	if !folder.IsCommit(strings.ToLower(text)) {
		return fmt.Errorf("%q is not the full id of a commit", text)
	}
	return nil
}

// CommitStatuses reads and sets the commit statuses of a repository.
type CommitStatuses struct {
	connection
}

// maxStatusPages limits the statuses of a commit to 10,000 on Gitea and 20,000 elsewhere.
const maxStatusPages = 200

// Statuses returns the latest status of each key of a commit, or of each context on Git hosts without keys, ordered by context.
// It takes a full id.
func (h *CommitStatuses) Statuses(ctx context.Context, commit string) ([]Status, error) {
	statuses, err := h.statuses(ctx, commit, h.api.listStatuses)
	return statuses, h.describe(err)
}

// StatusesWithCreators is Statuses with creators, for more requests on GitHub.
func (h *CommitStatuses) StatusesWithCreators(ctx context.Context, commit string) ([]Status, error) {
	read := h.api.listStatuses
	if lister, ok := h.api.(creatorLister); ok {
		read = lister.listStatusesWithCreators
	}
	statuses, err := h.statuses(ctx, commit, read)
	return statuses, h.describe(err)
}

// CheckCreators returns an error if the Git host does not report who set a status.
func (h *CommitStatuses) CheckCreators() error {
	if kind := h.at.kind; kind.Creator == "" {
		return fmt.Errorf("%s does not report who set a commit status, so it cannot be checked", kind.Title)
	}
	return nil
}

// SameAccount reports whether two names belong to one account. Git hosts ignore the case of ASCII letters.
func SameAccount(a, b string) bool { return lowerASCII(a) == lowerASCII(b) }

func lowerASCII(text string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, text)
}

type statusReader func(ctx context.Context, commit string, page int) (found []status, last bool, err error)

func (h *CommitStatuses) statuses(ctx context.Context, commit string, read statusReader) ([]Status, error) {
	if err := checkCommit(commit); err != nil {
		return nil, err
	}
	latest := map[string]status{}
	err := readPages(func(page int) (bool, error) {
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
		statuses = append(statuses, h.sanitize(s.Status))
	}
	slices.SortFunc(statuses, func(a, b Status) int {
		return cmp.Or(strings.Compare(a.Context, b.Context), strings.Compare(a.Key, b.Key))
	})
	return statuses, nil
}

func (h *CommitStatuses) sanitize(s Status) Status {
	s.Description, s.URL = wording.OneLine(h.secrets.Scrub(s.Description)), wording.Visible(h.secrets.Scrub(s.URL))
	s.Context, s.Creator = wording.Visible(s.Context), wording.Visible(s.Creator)
	return s
}

type status struct {
	Status
	id int64
}

// after reports whether a status is newer; the number decides within a second.
func (s status) after(other status) bool {
	return cmp.Or(s.Time.Compare(other.Time), cmp.Compare(s.id, other.id)) > 0
}

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

func readPages(read func(page int) (last bool, err error)) error {
	for page := 1; page <= maxStatusPages; page++ {
		last, err := read(page)
		if err != nil || last {
			return err
		}
	}
	return failf(ErrRefused, "the Git host has more than %d pages of statuses", maxStatusPages)
}
