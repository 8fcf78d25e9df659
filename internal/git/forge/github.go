package forge

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/go-github/v89/github"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

type githubAPI struct {
	at     address
	client *github.Client
}

func githubKind() GitHostKind {
	return GitHostKind{
		Forge: GitHub, Title: "GitHub", Flux: "github", GitHubApps: true,
		Servers: []string{"github.com", "*.ghe.com"}, Creator: "login; that of a GitHub App is `<app>[bot]`",
		MaxBody: MaxBody, Labels: true, AutoMerge: true, Reviewers: userOrTeam, isReviewer: isUserOrTeam,
		locate: locateGitHub, connect: newGitHub, hook: githubHook, sign: Credentials.asBearer,
		// "description is too long (maximum is 140 characters)"
		statuses:   statusRules{words: statusWords, maxDescription: 140, maxLink: maxLink},
		repository: func(at address) []string { return []string{"repos", at.owner, at.name} }, commits: "git/commits",
	}
}

func locateGitHub(clone, api *url.URL) (at address, err error) {
	owner, name, err := ownerAndName(clone, clone.Path)
	if err == nil && len(owner) != 1 {
		err = notARepository(clone)
	}
	if err != nil {
		return address{}, err
	}
	return address{api: githubRoot(clone, api), owner: owner[0], name: name}, nil
}

func githubRoot(clone, api *url.URL) *url.URL {
	root := apiRoot(clone, api)
	if api == nil && githubKind().serves(clone.Hostname()) {
		root.Host = "api." + clone.Host
	}
	if strings.HasPrefix(root.Host, "api.") {
		return appendPath(root, "")
	}
	return appendPath(root, "/api/v3")
}

func newGitHub(s session) (api, error) {
	root := s.at.api.String()
	sdk, err := github.NewClient(github.WithHTTPClient(s.client), github.WithURLs(&root, &root),
		github.WithDisableRateLimitCheck()) // the transport waits
	return &githubAPI{at: s.at, client: sdk}, err
}

func (g *githubAPI) listOpen(ctx context.Context, base, head string, take func(*request) bool) error {
	return forEachRequest(g.client.PullRequests.ListIter(ctx, g.at.owner, g.at.name, &github.PullRequestListOptions{
		State: "open", Base: base, Head: g.at.owner + ":" + head, Sort: "created", Direction: "desc",
		ListOptions: github.ListOptions{Page: 1, PerPage: 100},
	}), g.request, take)
}

func (g *githubAPI) get(ctx context.Context, number int) (*request, error) {
	pull, _, err := g.client.PullRequests.Get(ctx, g.at.owner, g.at.name, number)
	if err != nil {
		return nil, err
	}
	return g.request(pull), nil
}

func (g *githubAPI) request(pull *github.PullRequest) *request {
	r := &request{
		PullRequest: PullRequest{
			Number: pull.GetNumber(), URL: pull.GetHTMLURL(), State: Open, Owner: ownerOf(pull.GetBody()),
			Base: pull.GetBase().GetRef(), Head: pull.GetHead().GetRef(), HeadCommit: pull.GetHead().GetSHA(),
		},
		title: pull.GetTitle(), body: pull.GetBody(),
		fromFork:      pull.GetHead().GetRepo().GetID() != pull.GetBase().GetRepo().GetID(),
		id:            pull.GetNodeID(),
		autoMerge:     pull.AutoMerge != nil,
		checkingMerge: pull.Mergeable == nil, // GitHub checks in the background
		status:        pull.GetMergeableState(),
	}
	switch {
	case pull.MergedAt != nil || pull.GetMerged():
		r.State = Merged
		r.MergeCommit = pull.GetMergeCommitSHA() // while open, the commit of a test merge
	case pull.GetState() == "closed":
		r.State = Closed
	}
	for _, label := range pull.Labels {
		r.labels = append(r.labels, label.GetName())
	}
	for _, reviewer := range pull.RequestedReviewers {
		r.reviewers = append(r.reviewers, reviewer.GetLogin())
	}
	for _, team := range pull.RequestedTeams {
		r.reviewers = append(r.reviewers, g.at.owner+"/"+team.GetSlug())
	}
	return r
}

func (g *githubAPI) open(ctx context.Context, base, head, title, body string) (*request, error) {
	pull, _, err := g.client.PullRequests.Create(ctx, g.at.owner, g.at.name,
		&github.NewPullRequest{Base: &base, Head: &head, Title: &title, Body: &body})
	if err != nil {
		return nil, err
	}
	return g.request(pull), nil
}

func (g *githubAPI) edit(ctx context.Context, r *request, title, body string) error {
	_, _, err := g.client.PullRequests.Edit(ctx, g.at.owner, g.at.name, r.Number, &github.PullRequest{Title: &title, Body: &body})
	return err
}

func (g *githubAPI) close(ctx context.Context, r *request) error {
	_, _, err := g.client.PullRequests.Edit(ctx, g.at.owner, g.at.name, r.Number, &github.PullRequest{State: github.Ptr("closed")})
	return err
}

// addLabels sends an object, as documented; the SDK would send an array.
func (g *githubAPI) addLabels(ctx context.Context, r *request, names []string) error {
	path := fmt.Sprintf("repos/%s/%s/issues/%d/labels", g.at.owner, g.at.name, r.Number)
	request, err := g.client.NewRequest(ctx, http.MethodPost, path, map[string]any{"labels": names})
	if err != nil {
		return err
	}
	_, err = g.client.Do(request, nil)
	return err
}

func (g *githubAPI) checkReviewer(ctx context.Context, reviewer string) error {
	if strings.Contains(reviewer, "/") {
		return nil // most tokens cannot see teams
	}
	_, _, err := g.client.Users.Get(ctx, reviewer)
	if hasStatus(err, http.StatusNotFound) {
		return noReviewer(reviewer)
	}
	return err
}

// requestReviews skips users who have reviewed: GitHub removes them.
func (g *githubAPI) requestReviews(ctx context.Context, r *request, reviewers []string) error {
	var reviewed []string
	page := &github.ListOptions{Page: 1, PerPage: 100}
	for review, err := range g.client.PullRequests.ListReviewsIter(ctx, g.at.owner, g.at.name, r.Number, page) {
		if err != nil {
			return err
		}
		reviewed = append(reviewed, review.GetUser().GetLogin())
	}
	users, teams := splitTeams(namesNotIn(reviewers, reviewed))
	if len(users)+len(teams) == 0 {
		return nil
	}
	_, _, err := g.client.PullRequests.RequestReviewers(ctx, g.at.owner, g.at.name, r.Number,
		github.ReviewersRequest{Reviewers: users, TeamReviewers: teams})
	return reviewerError(err)
}

func (g *githubAPI) merge(ctx context.Context, r *request, headCommit string) error {
	method, err := g.mergeMethod(ctx)
	if err != nil {
		return err
	}
	_, _, err = g.client.PullRequests.Merge(ctx, g.at.owner, g.at.name, r.Number, "",
		&github.PullRequestOptions{SHA: headCommit, MergeMethod: method})
	if hasStatus(err, http.StatusMethodNotAllowed) && answerContains(err, "base branch was modified") {
		return failf(errBusy, "%w", err)
	}
	return err
}

// mergeMethod prefers methods that keep commits and messages. The token may not read the settings.
func (g *githubAPI) mergeMethod(ctx context.Context) (string, error) {
	repository, _, err := g.client.Repositories.Get(ctx, g.at.owner, g.at.name)
	switch {
	case err != nil:
		return "", err
	case repository.AllowMergeCommit == nil || *repository.AllowMergeCommit:
		return "merge", nil
	case repository.GetAllowRebaseMerge():
		return "rebase", nil
	}
	return "squash", nil
}

const (
	enableAutoMergeMutation = `mutation($input: EnablePullRequestAutoMergeInput!) {
  enablePullRequestAutoMerge(input: $input) { pullRequest { number } }
}`
	disableAutoMergeMutation = `mutation($input: DisablePullRequestAutoMergeInput!) {
  disablePullRequestAutoMerge(input: $input) { pullRequest { number } }
}`
)

// enableAutoMerge needs GraphQL. GitHub refuses if every requirement is met.
func (g *githubAPI) enableAutoMerge(ctx context.Context, r *request, headCommit string) error {
	if r.autoMerge {
		return nil
	}
	method, err := g.mergeMethod(ctx)
	if err != nil {
		return err
	}
	err = g.mutate(ctx, enableAutoMergeMutation, map[string]any{
		"pullRequestId": r.id, "expectedHeadOid": headCommit, "mergeMethod": strings.ToUpper(method),
	})
	switch {
	case answerContains(err, "clean status"):
		return g.merge(ctx, r, headCommit)
	case answerContains(err, "unstable status"):
		return failf(ErrNotMergeable, "checks are running or have failed, and none of them is required, so GitHub would not wait for them; "+
			"require them in the protection of the base branch: %w", err)
	case answerContains(err, "not allowed for this repository"):
		return failf(ErrNotMergeable, "allow auto-merge in the settings of the repository: %w", err)
	}
	return err
}

func (g *githubAPI) disableAutoMerge(ctx context.Context, r *request) error {
	if !r.autoMerge {
		return nil
	}
	return g.mutate(ctx, disableAutoMergeMutation, map[string]any{"pullRequestId": r.id})
}

func (g *githubAPI) mutate(ctx context.Context, query string, input map[string]any) error {
	graphql := *g.at.api
	if root, ok := strings.CutSuffix(graphql.Path, "/api/v3/"); ok {
		graphql.Path = root + "/api/graphql"
	} else {
		graphql.Path += "graphql"
	}
	request, err := g.client.NewRequest(ctx, http.MethodPost, graphql.String(), map[string]any{
		"query": query, "variables": map[string]any{"input": input},
	})
	if err != nil {
		return err
	}
	var result struct {
		Errors []struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"errors"`
	}
	if _, err := g.client.Do(request, &result); err != nil {
		return err
	}
	if len(result.Errors) == 0 {
		return nil
	}
	said := &answer{status: http.StatusUnprocessableEntity, words: wording.OneLine(result.Errors[0].Message)}
	switch result.Errors[0].Type {
	case "FORBIDDEN", "INSUFFICIENT_SCOPES":
		said.status = http.StatusForbidden
	case "NOT_FOUND":
		said.status = http.StatusNotFound
	case "RATE_LIMITED":
		return &limited{answer: *said}
	}
	return said
}

// listStatusesWithCreators lists all statuses, newest first; the combined status has no creators.
func (g *githubAPI) listStatusesWithCreators(ctx context.Context, commit string, page int) (found []status, last bool, err error) {
	listed, response, err := g.client.Repositories.ListStatuses(ctx, g.at.owner, g.at.name, commit,
		&github.ListOptions{Page: page, PerPage: 100})
	if err != nil {
		return nil, true, err
	}
	return githubStatuses(listed), response.NextPage == 0, nil
}

func (g *githubAPI) listStatuses(ctx context.Context, commit string, page int) (found []status, last bool, err error) {
	combined, response, err := g.client.Repositories.GetCombinedStatus(ctx, g.at.owner, g.at.name, commit,
		&github.ListOptions{Page: page, PerPage: 100})
	if err != nil {
		return nil, true, err
	}
	return githubStatuses(combined.Statuses), response.NextPage == 0, nil
}

func githubStatuses(all []*github.RepoStatus) (found []status) {
	for _, s := range all {
		at := s.GetUpdatedAt()
		if at.IsZero() {
			at = s.GetCreatedAt()
		}
		found = append(found, status{id: s.GetID(), Status: Status{
			Context: s.GetContext(), State: cmp.Or(commonStates[s.GetState()], Pending), Description: s.GetDescription(), Time: at.UTC(),
			URL: s.GetTargetURL(), Creator: s.GetCreator().GetLogin(),
		}})
	}
	return found
}

func githubHook(at address, r StatusReport) Hook {
	return Hook{
		Path:    at.path() + "/statuses/" + r.Commit,
		Headers: [][2]string{{"Authorization", "Bearer " + r.Token}, {"Accept", "application/vnd.github+json"}},
		Fields:  r.withLink("target_url", map[string]any{"context": r.Context, "state": r.word, "description": r.Description}),
	}
}
