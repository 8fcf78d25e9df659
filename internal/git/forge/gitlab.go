package forge

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	gitlab "gitlab.com/gitlab-org/api/client-go/v2"
)

type gitlabAPI struct {
	project string
	client  *gitlab.Client
	// settling is the time for a pipeline to appear after a push.
	settling time.Duration
}

// maxPipeline limits that time, unless the project requires successful pipelines.
const maxPipeline = 5 * time.Second

func gitlabKind() GitHostKind {
	return GitHostKind{
		Forge: GitLab, Title: "GitLab", Flux: "gitlab", Servers: []string{"gitlab.com"}, Creator: "username",
		MaxBody: MaxBody, Labels: true, AutoMerge: true, Reviewers: "a username", isReviewer: segmentPattern.MatchString,
		locate: locateGitLab, connect: newGitLab, hook: gitlabHook, sign: Credentials.asBearer,
		statuses:   gitlabStatuses,
		repository: func(at address) []string { return []string{"projects", at.owner + "/" + at.name} }, commits: "repository/commits",
	}
}

// gitlabStatuses: a pending or running status keeps omitted fields, and its text cannot change alone ("Cannot transition
// status"), so it continues as running, or ends before it begins again.
var gitlabStatuses = statusRules{
	words:          map[StatusState]string{Success: "success", Failure: "failed", Error: "failed", Pending: "pending"},
	instead:        map[StatusState][]string{Pending: {"running", gitlabEnded, "pending"}},
	maxDescription: maxDescription, maxLink: 255, whole: true,
}

const gitlabEnded = "canceled"

// locateGitLab finds the groups by the API's URL, which may have a path.
func locateGitLab(clone, api *url.URL) (address, error) {
	root := appendPath(apiRoot(clone, api), "/api/v4")
	path := strings.TrimPrefix(clone.Path, strings.TrimSuffix(root.Path, "api/v4/"))
	owner, name, err := ownerAndName(clone, path)
	return address{api: root, owner: strings.Join(owner, "/"), name: name}, err
}

func newGitLab(s session) (api, error) {
	sdk, err := gitlab.NewAuthSourceClient(gitlab.Unauthenticated{},
		gitlab.WithBaseURL(s.at.api.String()), gitlab.WithHTTPClient(s.client),
		gitlab.WithoutRetries(), gitlab.WithCustomLimiter(noLimiter{})) // the transport does both
	return &gitlabAPI{project: s.at.owner + "/" + s.at.name, client: sdk, settling: min(s.settling, maxPipeline)}, err
}

type noLimiter struct{}

func (noLimiter) Wait(context.Context) error { return nil }

func (g *gitlabAPI) listOpen(ctx context.Context, base, head string, take func(*request) bool) error {
	options := &gitlab.ListProjectMergeRequestsOptions{
		SourceBranch: &head, State: gitlab.Ptr("all"), // during its merge it is neither open nor closed
		OrderBy: gitlab.Ptr("created_at"), Sort: gitlab.Ptr("desc"),
		ListOptions: gitlab.ListOptions{Page: 1, PerPage: 100},
	}
	if base != "" {
		options.TargetBranch = &base
	}
	return forEachRequest(gitlab.Scan2(func(page gitlab.PaginationOptionFunc) ([]*gitlab.BasicMergeRequest, *gitlab.Response, error) {
		return g.client.MergeRequests.ListProjectMergeRequests(g.project, options, page, gitlab.WithContext(ctx))
	}), g.request, take)
}

func (g *gitlabAPI) get(ctx context.Context, number int) (*request, error) {
	merge, _, err := g.client.MergeRequests.GetMergeRequest(g.project, int64(number), nil, gitlab.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	r := g.request(&merge.BasicMergeRequest)
	r.hasPipeline = merge.HeadPipeline != nil || merge.Pipeline != nil
	return r, nil
}

// passing are values of detailed_merge_status that change by themselves.
var passing = []string{"unchecked", "checking", "preparing", "approvals_syncing"}

func (g *gitlabAPI) request(merge *gitlab.BasicMergeRequest) *request {
	r := &request{
		PullRequest: PullRequest{
			Number: int(merge.IID), URL: merge.WebURL, State: Open, Owner: ownerOf(merge.Description),
			Base: merge.TargetBranch, Head: merge.SourceBranch, HeadCommit: merge.SHA,
		},
		title: merge.Title, body: merge.Description, draft: merge.Draft,
		fromFork:      merge.SourceProjectID != merge.TargetProjectID,
		labels:        merge.Labels,
		autoMerge:     merge.MergeWhenPipelineSucceeds,
		checkingMerge: slices.Contains(passing, merge.DetailedMergeStatus),
		status:        merge.DetailedMergeStatus,
	}
	switch merge.State {
	case "merged":
		r.State = Merged
		// Projects merge with a commit, squash, do both or fast-forward.
		r.MergeCommit = cmp.Or(merge.MergeCommitSHA, merge.SquashCommitSHA, merge.SHA)
	case "closed":
		r.State = Closed
	}
	for _, reviewer := range merge.Reviewers {
		r.reviewers = append(r.reviewers, reviewer.Username)
	}
	return r
}

func (g *gitlabAPI) open(ctx context.Context, base, head, title, body string) (*request, error) {
	merge, _, err := g.client.MergeRequests.CreateMergeRequest(g.project, &gitlab.CreateMergeRequestOptions{
		SourceBranch: &head, TargetBranch: &base, Title: &title, Description: &body,
	}, gitlab.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	return g.request(&merge.BasicMergeRequest), nil
}

func (g *gitlabAPI) update(ctx context.Context, number int, options gitlab.UpdateMergeRequestOptions) (*request, error) {
	merge, _, err := g.client.MergeRequests.UpdateMergeRequest(g.project, int64(number), &options, gitlab.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	return g.request(&merge.BasicMergeRequest), nil
}

func (g *gitlabAPI) edit(ctx context.Context, r *request, title, body string) error {
	_, err := g.update(ctx, r.Number, gitlab.UpdateMergeRequestOptions{Title: &title, Description: &body})
	return err
}

func (g *gitlabAPI) close(ctx context.Context, r *request) error {
	_, err := g.update(ctx, r.Number, gitlab.UpdateMergeRequestOptions{StateEvent: gitlab.Ptr("close")})
	return err
}

// addLabels creates missing labels.
func (g *gitlabAPI) addLabels(ctx context.Context, r *request, names []string) error {
	labels := gitlab.LabelOptions(names)
	_, err := g.update(ctx, r.Number, gitlab.UpdateMergeRequestOptions{AddLabels: &labels})
	return err
}

func (g *gitlabAPI) checkReviewer(ctx context.Context, reviewer string) error {
	_, err := g.userID(ctx, reviewer)
	return err
}

func (g *gitlabAPI) userID(ctx context.Context, name string) (int64, error) {
	users, _, err := g.client.Users.ListUsers(&gitlab.ListUsersOptions{Username: &name}, gitlab.WithContext(ctx))
	if err != nil {
		return 0, err
	}
	for _, user := range users {
		if strings.EqualFold(user.Username, name) {
			return user.ID, nil
		}
	}
	return 0, noReviewer(name)
}

// requestReviews replaces the list. GitLab silently omits users who may not review, and all but one if the licence allows one.
func (g *gitlabAPI) requestReviews(ctx context.Context, r *request, reviewers []string) error {
	var ids []int64
	for _, name := range append(slices.Clone(r.reviewers), reviewers...) {
		id, err := g.userID(ctx, name)
		if err != nil {
			return err
		}
		ids = append(ids, id)
	}
	updated, err := g.update(ctx, r.Number, gitlab.UpdateMergeRequestOptions{ReviewerIDs: &ids})
	if err != nil {
		return reviewerError(err)
	}
	if left := namesNotIn(reviewers, updated.reviewers); len(left) > 0 {
		return failf(ErrReviewer, "GitLab did not accept %s: they may not review here, or it allows fewer reviewers", strings.Join(left, ", "))
	}
	return nil
}

func (g *gitlabAPI) merge(ctx context.Context, r *request, headCommit string) error {
	return g.accept(ctx, r, gitlab.AcceptMergeRequestOptions{SHA: &headCommit})
}

// enableAutoMerge waits for a pipeline. Without one, GitLab merges at once or refuses (issues 37292, 353984 and 355455), unless
// the project requires success. It sends the parameters of all versions.
func (g *gitlabAPI) enableAutoMerge(ctx context.Context, r *request, headCommit string) error {
	for pause := newPause(g.settling); !r.hasPipeline && pause.wait(ctx); {
		again, err := g.get(ctx, r.Number)
		if err != nil {
			return err
		}
		r = again
	}
	if r.autoMerge {
		return nil
	}
	err := g.accept(ctx, r, gitlab.AcceptMergeRequestOptions{
		SHA: &headCommit, AutoMerge: gitlab.Ptr(true),
		MergeWhenPipelineSucceeds: gitlab.Ptr(true), //nolint:staticcheck // before 17.11
	})
	if hasStatus(err, http.StatusMethodNotAllowed) && !r.hasPipeline {
		switch r.status {
		case "mergeable":
			return g.merge(ctx, r, headCommit)
		case "ci_must_pass":
			return failf(errBusy, "there is no pipeline: %w", err)
		}
	}
	return err
}

func (g *gitlabAPI) accept(ctx context.Context, r *request, options gitlab.AcceptMergeRequestOptions) error {
	_, _, err := g.client.MergeRequests.AcceptMergeRequest(g.project, int64(r.Number), &options, gitlab.WithContext(ctx))
	return err
}

func (g *gitlabAPI) disableAutoMerge(ctx context.Context, r *request) error {
	if !r.autoMerge {
		return nil
	}
	_, _, err := g.client.MergeRequests.CancelMergeWhenPipelineSucceeds(g.project, int64(r.Number), gitlab.WithContext(ctx))
	return err
}

// listStatuses skips jobs of pipelines.
func (g *gitlabAPI) listStatuses(ctx context.Context, commit string, page int) (found []status, last bool, err error) {
	options := &gitlab.GetCommitStatusesOptions{ListOptions: gitlab.ListOptions{Page: int64(page), PerPage: 100}}
	listed, response, err := g.client.Commits.GetCommitStatuses(g.project, commit, options, gitlab.WithContext(ctx))
	if err != nil {
		return nil, true, err
	}
	for _, s := range listed {
		if isJob(s) {
			continue
		}
		next := status{id: s.ID, Status: Status{
			Context: s.Name, State: cmp.Or(commonStates[s.Status], Pending), Description: s.Description, URL: s.TargetURL,
			Creator: s.Author.Username,
		}}
		if at := cmp.Or(s.FinishedAt, s.StartedAt, s.CreatedAt); at != nil {
			next.Time = at.UTC()
		}
		found = append(found, next)
	}
	return found, response.NextPage == 0, nil
}

// isJob recognizes a job by its URL.
func isJob(s *gitlab.CommitStatus) bool {
	id := strconv.FormatInt(s.ID, 10)
	return strings.HasSuffix(s.TargetURL, "/-/jobs/"+id) || strings.HasSuffix(s.TargetURL, "/builds/"+id)
}

func gitlabHook(at address, r StatusReport) Hook {
	return Hook{
		Path:    at.path() + "/statuses/" + r.Commit,
		Headers: [][2]string{{"PRIVATE-TOKEN", r.Token}},
		Fields:  r.withLink("target_url", map[string]any{"name": r.Context, "state": r.word, "description": r.Description}),
	}
}
