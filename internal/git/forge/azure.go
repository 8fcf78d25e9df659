package forge

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/secret"
)

// azureAPI calls the REST API of Azure DevOps: learn.microsoft.com/en-us/rest/api/azure/devops/git.
//
// Microsoft's SDK (azure-devops-go-api/azuredevops/v7, last commit 2024) sends credentials to any server in an organization's
// list of locations, shares unlocked package variables, takes no HTTP client, changes URLs to lower case, and never retries.
type azureAPI struct{ session }

func azureKind() GitHostKind {
	return GitHostKind{
		Forge: Azure, Title: "Azure Repos", Flux: "azuredevops",
		Servers: []string{azureServices, "ssh." + azureServices, "*" + azureOld}, bearerJWT: true,
		Creator: "unique name, such as an email address",
		MaxBody: azureMaxBody, Labels: true, AutoMerge: true,
		Reviewers: "an email address or project/team", isReviewer: azureReviewerPattern.MatchString,
		locate: locateAzure, web: azureWeb, hook: azureHook, sign: Credentials.forAzure,
		statuses:   statusRules{words: azureWords, maxDescription: maxDescription, maxLink: maxLink},
		repository: func(at address) []string { return []string{at.owner, "_apis", "git", "repositories", at.name} },
		commits:    "commits", pulls: "pullrequests", query: url.Values{"api-version": {azureVersion}},
		connect: func(s session) (api, error) { return &azureAPI{s}, nil },
		reason: func(body []byte) ([]string, string) {
			var fields struct {
				TypeKey string `json:"typeKey"`
			}
			_ = json.Unmarshal(body, &fields)
			return nil, fields.TypeKey
		},
	}
}

// azureVersion exists since 2023, and in Server 2022.1.
const azureVersion = "7.1"

// azureReviewerPattern matches an email address, or project/team, with spaces.
var azureReviewerPattern = regexp.MustCompile(
	`^[^\s/\\<>"|*?:;\[\]\p{C}]+@[^\s/\\<>"|*?:;\[\]\p{C}]+$|` +
		`^[^\s/\\<>"|*?:;\[\]\p{C}][^/\\<>"|*?:;\[\]\p{C}]{0,63}/[^/\\<>"|*?:;\[\]\p{C}]{1,255}$`,
)

// azureMaxBody leaves room for the mark in 4,000 characters ("Pull Requests - Update").
const azureMaxBody = 4000 - len(markBegin) - maxOwner - len(markEnd) - 3

// azureCut: "will be truncated up to 400 symbols" in lists ("Pull Requests - Get Pull Requests").
const azureCut = 400

const (
	azurePage    = 100
	azureNobody  = "00000000-0000-0000-0000-000000000000"
	azurePreview = azureVersion + "-preview.1"
)

type azureIdentity struct {
	ID          string `json:"id,omitempty"`
	DisplayName string `json:"displayName,omitempty"`
	UniqueName  string `json:"uniqueName,omitempty"`
	IsContainer bool   `json:"isContainer,omitempty"`
}

type azureCommit struct {
	ID string `json:"commitId,omitempty"`
}

type azurePull struct {
	ID              int             `json:"pullRequestId"`
	Status          string          `json:"status"`
	Title           string          `json:"title"`
	Description     string          `json:"description"`
	Source          string          `json:"sourceRefName"`
	Target          string          `json:"targetRefName"`
	IsDraft         bool            `json:"isDraft"`
	Fork            json.RawMessage `json:"forkSource"`
	MergeStatus     string          `json:"mergeStatus"`
	MergeFailure    string          `json:"mergeFailureMessage"`
	LastMerge       azureCommit     `json:"lastMergeCommit"`
	LastMergeSource azureCommit     `json:"lastMergeSourceCommit"`
	AutoCompleteBy  *azureIdentity  `json:"autoCompleteSetBy"`
	Reviewers       []azureIdentity `json:"reviewers"`
}

type azureChange struct {
	Source          string         `json:"sourceRefName,omitempty"`
	Target          string         `json:"targetRefName,omitempty"`
	Title           string         `json:"title,omitempty"`
	Description     string         `json:"description,omitempty"`
	Status          string         `json:"status,omitempty"`
	LastMergeSource *azureCommit   `json:"lastMergeSourceCommit,omitempty"`
	AutoCompleteBy  *azureIdentity `json:"autoCompleteSetBy,omitempty"`
}

// listOpen sorts all pages, because their order is not documented.
func (a *azureAPI) listOpen(ctx context.Context, base, head string, take func(*request) bool) error {
	all, err := a.listActive(ctx, base, head)
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b azurePull) int { return cmp.Compare(b.ID, a.ID) })
	for _, pull := range all {
		r := a.request(&pull)
		// The mark comes first, unless a person has moved it.
		if r.isBetween(head, base) && len(utf16.Encode([]rune(pull.Description))) >= azureCut {
			r, err = a.get(ctx, pull.ID)
		}
		if err != nil || !take(r) {
			return err
		}
	}
	return nil
}

func (a *azureAPI) listActive(ctx context.Context, base, head string) (all []azurePull, err error) {
	query := url.Values{
		"searchCriteria.sourceRefName": {branchRef + head}, "searchCriteria.status": {"active"}, "$top": {strconv.Itoa(azurePage)},
	}
	if base != "" {
		query.Set("searchCriteria.targetRefName", branchRef+base)
	}
	err = readPages(func(page int) (bool, error) {
		query.Set("$skip", strconv.Itoa((page-1)*azurePage))
		var listed struct {
			Value []azurePull `json:"value"`
		}
		err := a.call(ctx, http.MethodGet, withQuery(a.at.resource(a.at.kind.pulls), query), nil, &listed)
		all = append(all, listed.Value...)
		return len(listed.Value) < azurePage, err
	})
	return all, err
}

func (a *azureAPI) get(ctx context.Context, number int) (*request, error) {
	return callForRequest(ctx, a.session, http.MethodGet, a.pull(number), nil, a.request)
}

func (a *azureAPI) request(pull *azurePull) *request {
	r := &request{
		PullRequest: PullRequest{
			Number: pull.ID, URL: fmt.Sprintf("%s/pullrequest/%d", a.at.web, pull.ID), State: Open, Owner: ownerOf(pull.Description),
			Base: strings.TrimPrefix(pull.Target, branchRef), Head: strings.TrimPrefix(pull.Source, branchRef), HeadCommit: pull.LastMergeSource.ID,
		},
		title: pull.Title, body: pull.Description, draft: pull.IsDraft,
		fromFork:      len(pull.Fork) > 0 && string(pull.Fork) != "null",
		autoMerge:     pull.AutoCompleteBy != nil && pull.AutoCompleteBy.ID != azureNobody,
		checkingMerge: pull.MergeStatus == "queued" || pull.MergeStatus == "notSet" || pull.MergeStatus == "",
		status:        pull.MergeStatus,
	}
	if pull.MergeFailure != "" {
		r.status += ": " + pull.MergeFailure
	}
	if pull.IsDraft {
		r.status = "draft"
	}
	switch pull.Status {
	case "completed":
		r.State, r.MergeCommit = Merged, pull.LastMerge.ID // while open, the commit of a test merge
	case "abandoned":
		r.State = Closed
	}
	for _, reviewer := range pull.Reviewers {
		r.reviewers = append(r.reviewers, reviewer.name())
	}
	return r
}

// name is mostly an email address, or project/team.
func (i azureIdentity) name() string {
	if project, team, ok := strings.Cut(i.DisplayName, `]\`); ok && strings.HasPrefix(project, "[") &&
		(i.IsContainer || !strings.Contains(i.UniqueName, "@")) {
		return project[1:] + "/" + team
	}
	return i.UniqueName
}

func (a *azureAPI) open(ctx context.Context, base, head, title, body string) (*request, error) {
	change := azureChange{Source: branchRef + head, Target: branchRef + base, Title: title, Description: body}
	return callForRequest(ctx, a.session, http.MethodPost, a.at.resource(a.at.kind.pulls), change, a.request)
}

func (a *azureAPI) update(ctx context.Context, number int, change azureChange) error {
	return a.call(ctx, http.MethodPatch, a.pull(number), change, nil)
}

func (a *azureAPI) edit(ctx context.Context, r *request, title, body string) error {
	return a.update(ctx, r.Number, azureChange{Title: title, Description: body})
}

func (a *azureAPI) close(ctx context.Context, r *request) error {
	return a.update(ctx, r.Number, azureChange{Status: "abandoned"})
}

// addLabels reads labels, which requests no longer list (learn.microsoft.com/en-us/answers/questions/1822199).
func (a *azureAPI) addLabels(ctx context.Context, r *request, names []string) error {
	type label struct {
		Name   string `json:"name"`
		Active *bool  `json:"active,omitempty"`
	}
	var listed struct {
		Value []label `json:"value"`
	}
	if err := a.call(ctx, http.MethodGet, a.pull(r.Number, "labels"), nil, &listed); err != nil {
		return err
	}
	var there []string
	for _, l := range listed.Value {
		if l.Active == nil || *l.Active {
			there = append(there, l.Name)
		}
	}
	for _, name := range namesNotIn(names, there) {
		if err := a.call(ctx, http.MethodPost, a.pull(r.Number, "labels"), label{Name: name}, nil); err != nil {
			return err
		}
	}
	return nil
}

func (a *azureAPI) checkReviewer(ctx context.Context, reviewer string) error {
	_, err := a.identityID(ctx, reviewer)
	return err
}

func (a *azureAPI) identityID(ctx context.Context, name string) (string, error) {
	type text struct {
		Value string `json:"$value"`
	}
	var found struct {
		Value []struct {
			ID         string `json:"id"`
			Name       string `json:"providerDisplayName"`
			Properties struct {
				Account text `json:"Account"`
				Mail    text `json:"Mail"`
			} `json:"properties"`
		} `json:"value"`
	}
	wanted := name
	if project, team, ok := strings.Cut(name, "/"); ok {
		wanted = "[" + project + `]\` + team
	}
	query := url.Values{"searchFilter": {"General"}, "filterValue": {wanted}, "queryMembership": {"None"}}
	if err := a.call(ctx, http.MethodGet, withQuery(a.at.people.JoinPath("_apis", "identities"), query), nil, &found); err != nil {
		return "", err
	}
	for _, one := range found.Value {
		if contains([]string{one.Name, one.Properties.Account.Value, one.Properties.Mail.Value}, wanted) {
			return one.ID, nil
		}
	}
	return "", fmt.Errorf("%w; name a person by email address, a team as project/team", noReviewer(name))
}

func (a *azureAPI) requestReviews(ctx context.Context, r *request, reviewers []string) error {
	for _, name := range reviewers {
		id, err := a.identityID(ctx, name)
		if err != nil {
			return err
		}
		if err := a.call(ctx, http.MethodPut, a.pull(r.Number, "reviewers", id), map[string]any{"id": id, "vote": 0}, nil); err != nil {
			return reviewerError(err)
		}
	}
	return nil
}

// merge lets "the service select the first merge strategy not prohibited by the target branch's policy"
// (GitPullRequestCompletionOptions). The answer only means that it is queued.
func (a *azureAPI) merge(ctx context.Context, r *request, headCommit string) error {
	if err := a.update(ctx, r.Number, azureChange{Status: "completed", LastMergeSource: &azureCommit{headCommit}}); err != nil {
		return asPolicyError(err)
	}
	for pause := newPause(a.settling); ; {
		again, err := a.get(ctx, r.Number)
		if err != nil || again.State == Merged {
			return err
		}
		if again.State == Closed {
			return failf(ErrNotMergeable, "it was closed")
		}
		switch word, _, _ := strings.Cut(again.status, ":"); word {
		case "conflicts", "rejectedByPolicy", "failure":
			return failf(ErrNotMergeable, "Azure Repos does not merge it: %s", again.status)
		}
		if !pause.wait(ctx) {
			return ctx.Err()
		}
	}
}

// asPolicyError distinguishes unmet policies from missing permissions: both are 403.
func asPolicyError(err error) error {
	said := (*answer)(nil)
	if errors.As(err, &said) && said.kindWord == "GitPullRequestUpdateRejectedByPolicyException" {
		return failf(ErrNotMergeable, "%w", err)
	}
	return err
}

// enableAutoMerge sets auto-complete, which is not bound to a commit.
func (a *azureAPI) enableAutoMerge(ctx context.Context, r *request, _ string) error {
	if r.autoMerge {
		return nil
	}
	var connection struct {
		User azureIdentity `json:"authenticatedUser"`
	}
	query := url.Values{"api-version": {azurePreview}}
	if err := a.call(ctx, http.MethodGet, withQuery(a.at.api.JoinPath("_apis", "connectionData"), query), nil, &connection); err != nil {
		return err
	}
	return asPolicyError(a.update(ctx, r.Number, azureChange{AutoCompleteBy: &azureIdentity{ID: connection.User.ID}}))
}

// disableAutoMerge works like `az repos pr update --auto-complete false`.
func (a *azureAPI) disableAutoMerge(ctx context.Context, r *request) error {
	if !r.autoMerge {
		return nil
	}
	return a.update(ctx, r.Number, azureChange{AutoCompleteBy: &azureIdentity{ID: azureNobody}})
}

// forAzure sends a personal access token as a password, and one of Microsoft Entra ID as a bearer token.
func (c Credentials) forAzure(request *http.Request) {
	request.Header.Set("X-TFS-FedAuthRedirect", "Suppress") // 401, not a sign-in page
	token := c.asToken()
	switch {
	case secret.IsJWT(token):
		request.Header.Set("Authorization", "Bearer "+token)
	case token != "":
		request.SetBasicAuth(c.Username, token)
	}
}

var azureStates = map[string]StatusState{
	"succeeded": Success, "failed": Failure, "partiallySucceeded": Failure, "error": Error,
}

var azureWords = map[StatusState]string{Success: "succeeded", Failure: "failed", Error: "error", Pending: "pending"}

// azureTime reads 0001-01-01T00:00:00, without a zone, as the zero time.
type azureTime struct{ time.Time }

// UnmarshalJSON also reads invalid text as the zero time.
func (t *azureTime) UnmarshalJSON(text []byte) error {
	if t.Time.UnmarshalJSON(text) != nil {
		t.Time = time.Time{}
	}
	return nil
}

// agentGenre is for a Hook.
const agentGenre = "flotilla"

// azureGenre is the genre of Flux' notification controller.
const azureGenre = "fluxcd"

func (a *azureAPI) listStatuses(ctx context.Context, commit string, page int) (found []status, last bool, err error) {
	const top = 1000
	query := url.Values{"latestOnly": {"true"}, "top": {strconv.Itoa(top)}, "skip": {strconv.Itoa((page - 1) * top)}}
	var listed struct {
		Value []struct {
			ID          int64  `json:"id"`
			State       string `json:"state"`
			Description string `json:"description"`
			Context     struct {
				Name  string `json:"name"`
				Genre string `json:"genre"`
			} `json:"context"`
			Created   azureTime     `json:"creationDate"`
			Updated   azureTime     `json:"updatedDate"`
			CreatedBy azureIdentity `json:"createdBy"`
			TargetURL string        `json:"targetUrl"`
		} `json:"value"`
	}
	if err := a.call(ctx, http.MethodGet, withQuery(a.at.resource("commits", commit, "statuses"), query), nil, &listed); err != nil {
		return nil, true, err
	}
	for _, s := range listed.Value {
		next := status{id: s.ID, Status: Status{
			Context: s.Context.Name, State: cmp.Or(azureStates[s.State], Pending), Description: s.Description,
			Time: s.Updated.UTC(), URL: s.TargetURL, Creator: s.CreatedBy.UniqueName,
		}}
		if s.Context.Genre != "" && s.Context.Genre != azureGenre {
			next.Context = s.Context.Genre + "/" + s.Context.Name
		}
		if s.Updated.IsZero() {
			next.Time = s.Created.UTC()
		}
		found = append(found, next)
	}
	return found, len(listed.Value) < top, nil
}

func azureHook(at address, r StatusReport) Hook {
	context := map[string]any{"name": r.Context}
	genre, name, ok := strings.Cut(r.Context, "/")
	switch {
	case r.genre != "":
		context["genre"] = r.genre
	case ok && genre != "" && name != "" && genre != azureGenre:
		context["name"], context["genre"] = name, genre
	}
	return Hook{
		Path: at.path() + "/commits/" + r.Commit + "/statuses?api-version=" + azureVersion, Username: "flotilla",
		Fields: r.withLink("targetUrl", map[string]any{"context": context, "description": r.Description, "state": r.word}),
	}
}
