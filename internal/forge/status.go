package forge

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"code.gitea.io/sdk/gitea"
	"github.com/google/go-github/v89/github"
	gitlab "gitlab.com/gitlab-org/api/client-go/v2"

	"github.com/flotilla/terraform-provider-flotilla/internal/wording"
)

// Status is the latest status of a commit with one context.
type Status struct {
	// Context is the name of what reports the status.
	Context string
	State   StatusState
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

// commitPattern matches a full id: a Git host reads other text as a branch or a tag.
var commitPattern = regexp.MustCompile(`^[0-9a-fA-F]{40}([0-9a-fA-F]{24})?$`)

// maxStatusPages bounds what is read of one commit: 10,000 statuses of Gitea,
// 20,000 of the others.
const maxStatusPages = 200

// Statuses is as GitHost says.
func (h *gitHost) Statuses(ctx context.Context, commit string) ([]Status, error) {
	if !commitPattern.MatchString(commit) {
		return nil, h.describe(fmt.Errorf("%q is not the full id of a commit", commit))
	}
	found, err := h.api.statuses(ctx, strings.ToLower(commit))
	if err != nil {
		return nil, h.describe(fmt.Errorf("the statuses of commit %s cannot be read: %w", commit, err))
	}
	latest := map[string]status{}
	for _, s := range found {
		if before, ok := latest[s.Context]; !ok || s.after(before) {
			latest[s.Context] = s
		}
	}
	statuses := make([]Status, 0, len(latest))
	for _, s := range latest {
		s.Description, s.URL = wording.OneLine(h.secrets.Scrub(s.Description)), wording.Visible(h.secrets.Scrub(s.URL))
		s.Context, s.Creator = wording.Visible(s.Context), wording.Visible(s.Creator)
		statuses = append(statuses, s.Status)
	}
	slices.SortFunc(statuses, func(a, b Status) int { return strings.Compare(a.Context, b.Context) })
	return statuses, nil
}

// status is a Status with the number that the Git host gave it.
type status struct {
	Status
	id int64
}

// after reports whether a status is newer than another one: in the same second the
// number decides.
func (s status) after(other status) bool {
	if !s.Time.Equal(other.Time) {
		return s.Time.After(other.Time)
	}
	return s.id > other.id
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

// statuses reads the combined status, which has the latest of each context; the
// SDK reads its first page only. The other list has no fixed order among statuses
// of one second, so that its pages may miss some. The number of pages is not
// reliable: an empty one is the last.
func (g *giteaAPI) statuses(ctx context.Context, commit string) ([]status, error) {
	var found []status
	err := pages(func(page int) (bool, error) {
		var combined gitea.CombinedStatus
		if err := g.read(ctx, fmt.Sprintf("commits/%s/status", commit), page, &combined); err != nil {
			if answered(err, http.StatusNotFound) {
				return true, g.missing(ctx, err)
			}
			return true, err
		}
		for _, s := range combined.Statuses {
			at := s.Updated
			if at.IsZero() {
				at = s.Created
			}
			next := status{id: s.ID, Status: Status{
				Context: s.Context, State: stateOf(string(s.State)), Description: s.Description, Time: at.UTC(), URL: s.TargetURL,
			}}
			if s.Creator != nil {
				next.Creator = s.Creator.UserName
			}
			found = append(found, next)
		}
		return len(combined.Statuses) == 0, nil
	})
	return found, err
}

// missing reports whether the repository does not exist, or the commit.
func (g *giteaAPI) missing(ctx context.Context, notFound error) error {
	sdk, err := g.sdk(ctx)
	if err != nil {
		return err
	}
	if err := g.exists(sdk); err != nil {
		return err
	}
	return notFound
}

// read reads a page of a list for which the SDK has no pages.
func (g *giteaAPI) read(ctx context.Context, what string, page int, into any) error {
	at := g.at.api.JoinPath("api/v1/repos", g.at.owner, g.at.name, what)
	at.RawQuery = url.Values{"page": {strconv.Itoa(page)}, "limit": {"50"}}.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "application/json")
	switch {
	case g.credentials.Token != "":
		request.Header.Set("Authorization", "token "+g.credentials.Token)
	case g.credentials.Username != "":
		request.SetBasicAuth(g.credentials.Username, g.credentials.Password)
	}
	response, err := g.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	return json.NewDecoder(response.Body).Decode(into)
}

// statuses reads the combined status, which has the latest of each context.
func (g *githubAPI) statuses(ctx context.Context, commit string) ([]status, error) {
	var found []status
	err := pages(func(page int) (bool, error) {
		combined, response, err := g.client.Repositories.GetCombinedStatus(ctx, g.at.owner, g.at.name, commit, &github.ListOptions{Page: page, PerPage: 100})
		if err != nil {
			return true, err
		}
		for _, s := range combined.Statuses {
			at := s.GetUpdatedAt()
			if at.IsZero() {
				at = s.GetCreatedAt()
			}
			found = append(found, status{id: s.GetID(), Status: Status{
				Context: s.GetContext(), State: stateOf(s.GetState()), Description: s.GetDescription(), Time: at.UTC(),
				URL: s.GetTargetURL(), Creator: s.GetCreator().GetLogin(),
			}})
		}
		return response.NextPage == 0, nil
	})
	return found, err
}

// statuses leaves out the jobs of pipelines, which are in the same list.
func (g *gitlabAPI) statuses(ctx context.Context, commit string) ([]status, error) {
	var found []status
	err := pages(func(page int) (bool, error) {
		options := &gitlab.GetCommitStatusesOptions{ListOptions: gitlab.ListOptions{Page: int64(page), PerPage: 100}}
		listed, response, err := g.client.Commits.GetCommitStatuses(g.project, commit, options, gitlab.WithContext(ctx))
		if err != nil {
			return true, err
		}
		for _, s := range listed {
			if isJob(s) {
				continue
			}
			next := status{id: s.ID, Status: Status{
				Context: s.Name, State: stateOf(s.Status), Description: s.Description, URL: s.TargetURL, Creator: s.Author.Username,
			}}
			for _, at := range []*time.Time{s.FinishedAt, s.StartedAt, s.CreatedAt} {
				if at != nil {
					next.Time = at.UTC()
					break
				}
			}
			found = append(found, next)
		}
		return response.NextPage == 0, nil
	})
	return found, err
}

// isJob recognises a job of a pipeline by its page, which GitLab gives it.
func isJob(s *gitlab.CommitStatus) bool {
	id := strconv.FormatInt(s.ID, 10)
	return strings.HasSuffix(s.TargetURL, "/-/jobs/"+id) || strings.HasSuffix(s.TargetURL, "/builds/"+id)
}
