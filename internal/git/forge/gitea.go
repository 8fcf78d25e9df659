package forge

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"code.gitea.io/sdk/gitea"
)

// giteaAPI calls the API of Gitea or Forgejo. The SDK keeps a context, so each call makes a client.
type giteaAPI struct{ session }

func giteaKind() GitHostKind {
	return GitHostKind{
		Forge: Gitea, Title: "Gitea", Flux: "gitea", Servers: []string{"gitea.com"}, Creator: "username",
		MaxBody: MaxBody, Labels: true, AutoMerge: true, Reviewers: userOrTeam, isReviewer: isUserOrTeam,
		locate: locateGitea, hook: giteaHook, sign: Credentials.forGitea,
		statuses:   statusRules{words: statusWords, maxDescription: maxDescription, maxLink: maxLink},
		repository: func(at address) []string { return []string{"api", "v1", "repos", at.owner, at.name} }, commits: "git/commits",
		connect: func(s session) (api, error) { return &giteaAPI{s}, nil },
	}
}

func forgejoKind() GitHostKind {
	kind := giteaKind()
	kind.Forge, kind.Title, kind.Servers = Forgejo, "Forgejo", []string{"codeberg.org"}
	return kind
}

// locateGitea takes the path before the owner as that of Gitea.
func locateGitea(clone, api *url.URL) (address, error) {
	owner, name, err := ownerAndName(clone, clone.Path)
	if err != nil {
		return address{}, err
	}
	root, last := apiRoot(clone, api), len(owner)-1
	if api == nil {
		root.Path = "/" + strings.Join(owner[:last], "/")
	}
	root = appendPath(root, "/api/v1")
	root.Path = strings.TrimSuffix(root.Path, "api/v1/") // the SDK adds it
	return address{api: root, owner: owner[last], name: name}, nil
}

// sdk skips the request for the server's version, so it never fails. Gitea since 1.22 and Forgejo since 7 have all calls.
func (g *giteaAPI) sdk(ctx context.Context) *gitea.Client {
	sdk, _ := gitea.NewClient(g.at.api.String(), gitea.SetGiteaVersion(""), gitea.SetHTTPClient(g.client), gitea.SetContext(ctx))
	return sdk
}

// listOpen lists by state, because the API cannot filter by head, unless no request between the branches, closed or from a
// fork, exists. A slash in the base would be escaped, which some proxies refuse.
//
// Anybody can open a request longer than maxAnswer. Then listOpen lists requests one by one and skips long ones.
func (g *giteaAPI) listOpen(ctx context.Context, base, head string, take func(*request) bool) error {
	sdk := g.sdk(ctx)
	if base != "" && !strings.Contains(base, "/") {
		_, _, err := sdk.GetPullRequestByBaseHead(g.at.owner, g.at.name, base, head)
		switch {
		case hasStatus(err, http.StatusNotFound):
			return g.checkRepository(sdk)
		case err != nil && !errors.Is(err, errTooLong):
			return err
		}
	}
	options := gitea.ListPullRequestsOptions{State: gitea.StateOpen, ListOptions: gitea.ListOptions{Page: 1, PageSize: 50}}
	for listed, passed := 0, 0; ; {
		page, response, err := sdk.ListRepoPullRequests(g.at.owner, g.at.name, options)
		switch {
		case hasStatus(err, http.StatusNotFound):
			return g.checkRepository(sdk)
		case errors.Is(err, errTooLong) && options.PageSize > 1:
			options.Page, options.PageSize = listed+1, 1
			continue
		case errors.Is(err, errTooLong) && passed < maxPassed:
			options.Page++
			passed++
			continue
		case err != nil:
			return err
		}
		for _, pull := range page {
			if !take(g.request(pull)) {
				return nil
			}
		}
		if listed += len(page); response.NextPage == 0 {
			return nil
		}
		options.Page = response.NextPage
	}
}

const maxPassed = 100

// checkRepository finds a missing repository. Gitea treats an unknown token as anonymous.
func (g *giteaAPI) checkRepository(sdk *gitea.Client) error {
	_, _, err := sdk.GetRepo(g.at.owner, g.at.name)
	if hasStatus(err, http.StatusNotFound) {
		if _, _, userErr := sdk.GetMyUserInfo(); hasStatus(userErr, http.StatusUnauthorized) {
			return userErr
		}
	}
	return err
}

func (g *giteaAPI) get(ctx context.Context, number int) (*request, error) {
	pull, _, err := g.sdk(ctx).GetPullRequest(g.at.owner, g.at.name, int64(number))
	if err != nil {
		return nil, err
	}
	return g.request(pull), nil
}

func (g *giteaAPI) request(pull *gitea.PullRequest) *request {
	r := &request{
		PullRequest: PullRequest{Number: int(pull.Index), URL: pull.HTMLURL, State: Open, Owner: ownerOf(pull.Body)},
		title:       pull.Title, body: pull.Body, draft: pull.Draft, fromFork: true,
	}
	if pull.Base != nil && pull.Head != nil {
		// After its branch was deleted, the ref of a head is refs/pull/.../head.
		r.Base, r.Head, r.HeadCommit = pull.Base.Name, pull.Head.Name, pull.Head.Sha
		r.fromFork = pull.Head.RepoID != pull.Base.RepoID
	}
	switch {
	case pull.HasMerged:
		r.State = Merged
		if pull.MergedCommitID != nil {
			r.MergeCommit = *pull.MergedCommitID
		}
	case pull.State == gitea.StateClosed:
		r.State = Closed
	}
	for _, label := range pull.Labels {
		r.labels = append(r.labels, label.Name)
	}
	for _, reviewer := range pull.RequestedReviewers {
		r.reviewers = append(r.reviewers, reviewer.UserName)
	}
	for _, team := range pull.RequestedReviewersTeams {
		r.reviewers = append(r.reviewers, g.at.owner+"/"+team.Name)
	}
	return r
}

func (g *giteaAPI) open(ctx context.Context, base, head, title, body string) (*request, error) {
	pull, _, err := g.sdk(ctx).
		CreatePullRequest(g.at.owner, g.at.name, gitea.CreatePullRequestOption{Base: base, Head: head, Title: title, Body: body})
	if err != nil {
		return nil, err
	}
	return g.request(pull), nil
}

func (g *giteaAPI) edit(ctx context.Context, r *request, title, body string) error {
	_, _, err := g.sdk(ctx).EditPullRequest(g.at.owner, g.at.name, int64(r.Number), gitea.EditPullRequestOption{Title: title, Body: &body})
	return err
}

func (g *giteaAPI) close(ctx context.Context, r *request) error {
	closed := gitea.StateClosed
	_, _, err := g.sdk(ctx).EditPullRequest(g.at.owner, g.at.name, int64(r.Number), gitea.EditPullRequestOption{State: &closed})
	return err
}

// addLabels finds ids of labels of the repository or its organization.
func (g *giteaAPI) addLabels(ctx context.Context, r *request, names []string) error {
	sdk := g.sdk(ctx)
	ids, err := g.labelIDs(names, func(page gitea.ListOptions) ([]*gitea.Label, *gitea.Response, error) {
		return sdk.ListRepoLabels(g.at.owner, g.at.name, gitea.ListLabelsOptions{ListOptions: page})
	})
	if err != nil {
		return err
	}
	if len(ids) < len(names) {
		shared, err := g.labelIDs(names, func(page gitea.ListOptions) ([]*gitea.Label, *gitea.Response, error) {
			return sdk.ListOrgLabels(g.at.owner, gitea.ListOrgLabelsOptions{ListOptions: page})
		})
		// The owner may be a person, or organizations hidden.
		if err != nil && !hasStatus(err, http.StatusNotFound, http.StatusForbidden) {
			return err
		}
		for name, id := range shared {
			if ids[name] == 0 {
				ids[name] = id
			}
		}
	}
	option := gitea.IssueLabelsOption{}
	for _, name := range names {
		id := ids[strings.ToLower(name)]
		if id == 0 {
			label, _, err := sdk.CreateLabel(g.at.owner, g.at.name, gitea.CreateLabelOption{Name: name, Color: "#0052cc"})
			if err != nil {
				return err
			}
			id = label.ID
		}
		option.Labels = append(option.Labels, id)
	}
	_, _, err = sdk.AddIssueLabels(g.at.owner, g.at.name, int64(r.Number), option)
	return err
}

func (g *giteaAPI) labelIDs(
	names []string,
	list func(gitea.ListOptions) ([]*gitea.Label, *gitea.Response, error),
) (map[string]int64, error) {
	ids := map[string]int64{}
	for page := 1; page > 0; {
		labels, response, err := list(gitea.ListOptions{Page: page, PageSize: 50})
		if err != nil {
			return ids, err
		}
		for _, label := range labels {
			if name := strings.ToLower(label.Name); contains(names, name) && ids[name] == 0 {
				ids[name] = label.ID
			}
		}
		page = response.NextPage
	}
	return ids, nil
}

func (g *giteaAPI) checkReviewer(ctx context.Context, reviewer string) error {
	if strings.Contains(reviewer, "/") {
		return nil // the Git host checks teams
	}
	_, _, err := g.sdk(ctx).GetUserInfo(reviewer)
	if hasStatus(err, http.StatusNotFound) {
		return noReviewer(reviewer)
	}
	return err
}

func (g *giteaAPI) requestReviews(ctx context.Context, r *request, reviewers []string) error {
	users, teams := splitTeams(reviewers)
	_, err := g.sdk(ctx).
		CreateReviewRequests(g.at.owner, g.at.name, int64(r.Number), gitea.PullReviewRequestOptions{Reviewers: users, TeamReviewers: teams})
	return reviewerError(err)
}

// merge prefers methods that keep commits and messages.
func (g *giteaAPI) merge(ctx context.Context, r *request, headCommit string) error {
	return g.mergeWith(ctx, r, gitea.MergePullRequestOption{HeadCommitId: headCommit})
}

// enableAutoMerge is not bound to a commit.
func (g *giteaAPI) enableAutoMerge(ctx context.Context, r *request, headCommit string) error {
	err := g.mergeWith(ctx, r, gitea.MergePullRequestOption{HeadCommitId: headCommit, MergeWhenChecksSucceed: true})
	if hasStatus(err, http.StatusConflict) && answerContains(err, "already scheduled") {
		return nil
	}
	return err
}

func (g *giteaAPI) mergeWith(ctx context.Context, r *request, option gitea.MergePullRequestOption) error {
	sdk := g.sdk(ctx)
	repository, _, err := sdk.GetRepo(g.at.owner, g.at.name)
	if err != nil {
		return err
	}
	option.Style = repository.DefaultMergeStyle
	for _, style := range []struct {
		allowed bool
		style   gitea.MergeStyle
	}{
		{repository.AllowMerge, gitea.MergeStyleMerge},
		{repository.AllowRebaseMerge, gitea.MergeStyleRebaseMerge},
		{repository.AllowRebase, gitea.MergeStyleRebase},
		{repository.AllowFastForwardOnlyMerge, gitea.MergeStyleFastForwardOnly},
		{repository.AllowSquash, gitea.MergeStyleSquash},
	} {
		if style.allowed {
			option.Style = style.style
			break
		}
	}
	_, _, err = sdk.MergePullRequest(g.at.owner, g.at.name, int64(r.Number), option)
	switch {
	case hasStatus(err, http.StatusMethodNotAllowed) && answerContains(err, "try again later"):
		return failf(errBusy, "it conflicts with its base, or is still being checked: %w", err)
	case hasStatus(err, http.StatusConflict) && (answerContains(err, "push out of date") || answerContains(err, "cannot lock ref")):
		return failf(errBusy, "its base moved: %w", err)
	}
	return err
}

func (g *giteaAPI) disableAutoMerge(ctx context.Context, r *request) error {
	_, err := g.sdk(ctx).CancelScheduledAutoMerge(g.at.owner, g.at.name, int64(r.Number))
	if hasStatus(err, http.StatusNotFound) {
		return nil
	}
	return err
}

func splitTeams(reviewers []string) (users, teams []string) {
	users, teams = []string{}, []string{}
	for _, reviewer := range reviewers {
		if _, team, ok := strings.Cut(reviewer, "/"); ok {
			teams = append(teams, team)
		} else {
			users = append(users, reviewer)
		}
	}
	return users, teams
}

func noReviewer(name string) error {
	return failf(ErrReviewer, "reviewer %q does not exist, or is hidden from this credential", name)
}

// reviewerError returns ErrReviewer for refusals of reviewers.
func reviewerError(err error) error {
	if hasStatus(err, http.StatusBadRequest, http.StatusNotFound, http.StatusUnprocessableEntity) {
		return failf(ErrReviewer, "%w", err)
	}
	return err
}

// listStatuses reads the combined status, of which the SDK reads one page. The other list has no fixed order within a second,
// so pages may miss some. The last page is empty.
func (g *giteaAPI) listStatuses(ctx context.Context, commit string, page int) (found []status, last bool, err error) {
	var combined gitea.CombinedStatus
	at := withQuery(g.at.resource("commits", commit, "status"), url.Values{"page": {strconv.Itoa(page)}, "limit": {"50"}})
	err = g.call(ctx, http.MethodGet, at, nil, &combined)
	if hasStatus(err, http.StatusNotFound) { // the repository or the commit
		err = cmp.Or(g.checkRepository(g.sdk(ctx)), err)
	}
	if err != nil {
		return nil, true, err
	}
	for _, s := range combined.Statuses {
		at := s.Updated
		if at.IsZero() {
			at = s.Created
		}
		next := status{id: s.ID, Status: Status{
			Context: s.Context, State: cmp.Or(commonStates[string(s.State)], Pending), Description: s.Description, Time: at.UTC(), URL: s.TargetURL,
		}}
		if s.Creator != nil {
			next.Creator = s.Creator.UserName
		}
		found = append(found, next)
	}
	return found, len(combined.Statuses) == 0, nil
}

func (c Credentials) forGitea(request *http.Request) { c.asTokenOrBasic(request, "token") }

func giteaHook(at address, r StatusReport) Hook {
	return Hook{
		API: "/api/v1", Path: "/repos/" + at.owner + "/" + at.name + "/statuses/" + r.Commit,
		Headers: [][2]string{{"Authorization", "token " + r.Token}},
		Fields:  r.withLink("target_url", map[string]any{"context": r.Context, "state": r.word, "description": r.Description}),
	}
}
