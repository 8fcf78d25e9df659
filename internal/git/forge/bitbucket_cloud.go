package forge

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// bitbucketCloud is Bitbucket Cloud, through its REST API: developer.atlassian.com/cloud/bitbucket/rest.
// Atlassian has no SDK for Go. A merge is not bound to a commit.
type bitbucketCloud struct{ session }

func bitbucketKind() Kind {
	return Kind{
		Forge: Bitbucket, Title: "Bitbucket Cloud", Flux: "bitbucket", FluxLogin: true, Servers: []string{"bitbucket.org"},
		tokenUser: bitbucketTokenUser, mailUser: "x-bitbucket-api-token-auth",
		bounds: bounds{
			maxBody: MaxBody, noLabels: true, noAutoMerge: true,
			reviewer: bitbucketReviewerPattern.MatchString, reviewers: "an Atlassian account ID or a UUID in braces",
		},
		locate: locateBitbucket, hook: bitbucketHook, reason: bitbucketReason, sign: Credentials.forBitbucket, statuses: bitbucketStatuses,
		repository: func(at address) []string { return []string{"repositories", at.owner, at.name} }, commits: "commit", pulls: "pullrequests",
		connect: func(s session) (api, error) { return &bitbucketCloud{s}, nil },
	}
}

// bitbucketReviewerPattern matches how the API names users, who have no usernames since 2019.
var bitbucketReviewerPattern = regexp.MustCompile(`^\{[0-9A-Fa-f-]{36}\}$|^[0-9A-Za-z:-]{20,128}$`)

func locateBitbucket(clone, api *url.URL) (address, error) {
	owner, name, err := ownerAndName(clone, clone.Path)
	if err == nil && len(owner) != 1 {
		err = notARepository(clone)
	}
	if err != nil {
		return address{}, err
	}
	root := rootOf(clone, api)
	if api == nil && bitbucketKind().serves(clone.Hostname()) {
		root.Host = "api." + clone.Host
	}
	return address{api: below(root, "/2.0"), owner: owner[0], name: name}, nil
}

// bitbucketTokenUser goes with access tokens of a repository, a project or a workspace.
const bitbucketTokenUser = "x-token-auth"

// forBitbucket sends an API token with its user's address of mail, and an access token as a bearer token.
func (c Credentials) forBitbucket(request *http.Request) {
	switch token := c.asToken(); {
	case token == "":
	case strings.Contains(c.Username, "@") || c.Token == "" && c.Username != bitbucketTokenUser:
		request.SetBasicAuth(c.Username, token)
	default:
		request.Header.Set("Authorization", "Bearer "+token)
	}
}

// bitbucketReason reads {"error": {"message", "detail"}}, of which every answer has the message.
func bitbucketReason(body []byte) (more []string, kindWord string) {
	var answer struct {
		Error struct {
			Detail string `json:"detail"`
		} `json:"error"`
	}
	_ = json.Unmarshal(body, &answer)
	if answer.Error.Detail != "" {
		more = []string{answer.Error.Detail}
	}
	return more, ""
}

type bitbucketEnd struct {
	Branch struct {
		Name       string   `json:"name"`
		Strategies []string `json:"merge_strategies,omitempty"`
	} `json:"branch"`
	Commit struct {
		Hash string `json:"hash"` // its first twelve characters
	} `json:"commit"`
	Repository struct {
		UUID string `json:"uuid"`
	} `json:"repository"`
}

type bitbucketUser struct {
	UUID string `json:"uuid"`
}

type bitbucketPull struct {
	ID          int             `json:"id"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	State       string          `json:"state"`
	Draft       bool            `json:"draft"`
	Source      bitbucketEnd    `json:"source"`
	Destination bitbucketEnd    `json:"destination"`
	Reviewers   []bitbucketUser `json:"reviewers"` // not in a list
	Merge       struct {
		Hash string `json:"hash"`
	} `json:"merge_commit"`
	Links struct {
		HTML struct {
			URL string `json:"href"`
		} `json:"html"`
	} `json:"links"`
}

// bitbucketChange is what is sent of a request. Reviewers that are left out are removed.
type bitbucketChange struct {
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Draft       bool            `json:"draft,omitempty"`
	Source      any             `json:"source,omitempty"`
	Destination any             `json:"destination,omitempty"`
	Reviewers   []bitbucketUser `json:"reviewers,omitempty"`
}

// bitbucketEach hands what is listed over until take returns false. Of the URL of a next page only the query is used:
// its server is the Git host's name for itself, and may not be that of api_url.
func bitbucketEach[T any](
	ctx context.Context,
	b *bitbucketCloud,
	to *url.URL,
	query url.Values,
	take func(T) (more bool, err error),
) error {
	return pages(func(int) (bool, error) {
		var page struct {
			Values []T    `json:"values"`
			Next   string `json:"next"`
		}
		if err := b.call(ctx, http.MethodGet, with(to, query), nil, &page); err != nil {
			return true, err
		}
		for _, one := range page.Values {
			if more, err := take(one); err != nil || !more {
				return true, err
			}
		}
		next, err := url.Parse(page.Next)
		if err != nil {
			return true, failf(ErrUnreachable, "the Git host's URL of the next page cannot be parsed")
		}
		query = next.Query()
		return page.Next == "", nil
	})
}

// list reads each request that it finds, since a list has no reviewers.
func (b *bitbucketCloud) list(ctx context.Context, base, head string, take func(*request) bool) error {
	filter := `state = "OPEN" AND source.branch.name = ` + strconv.Quote(head)
	if base != "" {
		filter += " AND destination.branch.name = " + strconv.Quote(base)
	}
	query := url.Values{"q": {filter}, "sort": {"-created_on"}, "pagelen": {"50"}}
	return bitbucketEach(ctx, b, b.at.resource(b.at.kind.pulls), query, func(pull bitbucketPull) (bool, error) {
		if !b.request(&pull).comes(head, base) {
			return true, nil
		}
		r, err := b.get(ctx, pull.ID)
		return err == nil && take(r), err
	})
}

func (b *bitbucketCloud) get(ctx context.Context, number int) (*request, error) {
	var pull bitbucketPull
	if err := b.call(ctx, http.MethodGet, b.pull(number), nil, &pull); err != nil {
		return nil, err
	}
	return b.whole(ctx, &pull)
}

// whole is a request with the full ids of its commits, as far as they are there: not always those of what was declined.
func (b *bitbucketCloud) whole(ctx context.Context, pull *bitbucketPull) (*request, error) {
	r := b.request(pull)
	if r.foreign {
		return r, nil
	}
	for _, commit := range []*string{&r.HeadCommit, &r.MergeCommit} {
		if *commit == "" {
			continue
		}
		var found struct {
			Hash string `json:"hash"`
		}
		switch err := b.call(ctx, http.MethodGet, b.at.resource("commit", *commit), nil, &found); {
		case err == nil:
			*commit = found.Hash
		case !answered(err, http.StatusNotFound):
			return nil, fmt.Errorf("commit %s: %w", *commit, err)
		}
	}
	return r, nil
}

func (b *bitbucketCloud) request(pull *bitbucketPull) *request {
	r := &request{
		PullRequest: PullRequest{
			Number: pull.ID, URL: pull.Links.HTML.URL, State: Open, Owner: marked(pull.Description),
			Base: pull.Destination.Branch.Name, Head: pull.Source.Branch.Name, HeadCommit: pull.Source.Commit.Hash,
		},
		title: pull.Title, body: pull.Description, draft: pull.Draft,
		foreign: pull.Source.Repository.UUID != pull.Destination.Repository.UUID,
	}
	switch pull.State {
	case "OPEN":
	case "MERGED":
		r.State, r.MergeCommit = Merged, pull.Merge.Hash
	default: // declined, or superseded by another
		r.State = Closed
	}
	if pull.Draft {
		r.status = "draft"
	}
	for _, reviewer := range pull.Reviewers {
		r.reviewers = append(r.reviewers, reviewer.UUID)
	}
	return r
}

func (b *bitbucketCloud) open(ctx context.Context, base, head, title, body string) (*request, error) {
	branch := func(name string) any { return map[string]any{"branch": map[string]any{"name": name}} }
	var pull bitbucketPull
	change := bitbucketChange{Title: title, Description: body, Source: branch(head), Destination: branch(base)}
	if err := b.call(ctx, http.MethodPost, b.at.resource(b.at.kind.pulls), change, &pull); err != nil {
		return nil, err
	}
	return b.whole(ctx, &pull)
}

func (b *bitbucketCloud) edit(ctx context.Context, r *request, title, body string) error {
	change := bitbucketChange{Title: title, Description: body, Draft: r.draft}
	for _, id := range r.reviewers {
		change.Reviewers = append(change.Reviewers, bitbucketUser{id})
	}
	if err := b.call(ctx, http.MethodPut, b.pull(r.Number), change, nil); err != nil {
		return err
	}
	r.title, r.body = title, body
	return nil
}

func (b *bitbucketCloud) close(ctx context.Context, r *request) error {
	return b.call(ctx, http.MethodPost, b.pull(r.Number, "decline"), nil, nil)
}

// label is never called: there are no labels.
func (b *bitbucketCloud) label(context.Context, *request, []string) error {
	return errors.ErrUnsupported
}

func (b *bitbucketCloud) know(ctx context.Context, reviewer string) error {
	_, err := b.user(ctx, reviewer)
	return err
}

func (b *bitbucketCloud) user(ctx context.Context, id string) (user bitbucketUser, err error) {
	err = b.call(ctx, http.MethodGet, joined(b.at.api, "users", id), nil, &user)
	if answered(err, http.StatusNotFound) {
		err = failf(ErrReviewer, "reviewer %q does not exist", id)
	}
	return user, err
}

// ask sends all reviewers, those of others too: Bitbucket replaces the list, and keeps on it who has reviewed.
func (b *bitbucketCloud) ask(ctx context.Context, r *request, reviewers []string) error {
	there := len(r.reviewers)
	for _, id := range reviewers {
		user, err := b.user(ctx, id)
		if err != nil {
			return err
		}
		r.reviewers = append(r.reviewers, missing([]string{user.UUID}, r.reviewers)...)
	}
	if len(r.reviewers) == there {
		return nil
	}
	return reviewerError(b.edit(ctx, r, r.title, r.body))
}

// bitbucketMerges are the ways of merging, those that keep the commits first, whose messages say what changed.
var bitbucketMerges = []string{"merge_commit", "rebase_merge", "rebase_fast_forward", "fast_forward", "squash", "squash_fast_forward"}

func (b *bitbucketCloud) merge(ctx context.Context, r *request, _ string) error {
	var pull bitbucketPull
	if err := b.call(ctx, http.MethodGet, b.pull(r.Number), nil, &pull); err != nil {
		return err
	}
	how := map[string]any{"close_source_branch": false}
	for _, way := range bitbucketMerges {
		if slices.Contains(pull.Destination.Branch.Strategies, way) {
			how["merge_strategy"] = way
			break
		}
	}
	response, err := b.exchange(ctx, http.MethodPost, b.pull(r.Number, "merge"), how)
	if err == nil {
		_ = response.Body.Close()
		if task := response.Header.Get("Location"); response.StatusCode == http.StatusAccepted && task != "" {
			err = b.await(ctx, r.Number, path.Base(task))
		}
	}
	switch {
	case answered(err, http.StatusBadRequest):
		return failf(ErrNotMergeable, "%w", err)
	case answered(err, http.StatusConflict, bitbucketTimeout):
		return failf(errBusy, "%w", err)
	}
	return err
}

// await waits for a merge that takes longer than one answer.
func (b *bitbucketCloud) await(ctx context.Context, number int, task string) error {
	for pause := newPause(b.settling); ; {
		var merge struct {
			Status string `json:"task_status"`
		}
		if err := b.call(ctx, http.MethodGet, b.pull(number, "merge", "task-status", task), nil, &merge); err != nil {
			return err
		}
		if merge.Status != "PENDING" || !pause.wait(ctx) {
			return ctx.Err()
		}
	}
}

// bitbucketTimeout is the status of what took too long, and is to be tried again later.
const bitbucketTimeout = 555

// arrange is never called: there is no auto-merge in the API.
func (b *bitbucketCloud) arrange(context.Context, *request, string) error {
	return errors.ErrUnsupported
}

func (b *bitbucketCloud) hold(context.Context, *request) error { return nil }

// bitbucketStates maps the states of builds on both Bitbuckets.
var bitbucketStates = map[string]StatusState{"SUCCESSFUL": Success, "FAILED": Failure, "STOPPED": Failure, "CANCELLED": Failure}

// bitbucketBuild is what both Bitbuckets say of a build, but for its time.
type bitbucketBuild struct {
	Key         string `json:"key"`
	Name        string `json:"name"`
	State       string `json:"state"`
	Description string `json:"description"`
	URL         string `json:"url"`
}

// status is that of a build of this time. It is pending for what is in progress or not known.
func (b bitbucketBuild) status(at time.Time) status {
	return status{Status: Status{
		Context: cmp.Or(
			b.Name,
			b.Key,
		), Key: b.Key, State: cmp.Or(bitbucketStates[b.State], Pending), Description: b.Description, Time: at.UTC(), URL: b.URL,
	}}
}

func (b *bitbucketCloud) statuses(ctx context.Context, commit string, _ int) (found []status, last bool, err error) {
	type build struct {
		bitbucketBuild
		Updated time.Time `json:"updated_on"`
	}
	query := url.Values{"pagelen": {"100"}}
	err = bitbucketEach(ctx, b, b.at.resource("commit", commit, "statuses"), query, func(s build) (bool, error) {
		found = append(found, s.status(s.Updated))
		return true, nil
	})
	return found, true, err
}

func bitbucketHook(at address, r Report) Hook {
	return Hook{
		Path:    at.path() + "/commit/" + r.Commit + "/statuses/build",
		Headers: [][2]string{{"Authorization", "Bearer " + r.Token}},
		Fields:  bitbucketFields(r),
	}
}

// bitbucketStatuses are the rules of both Bitbuckets.
var bitbucketStatuses = statusRules{
	words:          map[StatusState]string{Success: "SUCCESSFUL", Failure: "FAILED", Error: "FAILED", Pending: "INPROGRESS"},
	maxDescription: maxDescription, maxLink: 450, whole: true,
}

// bitbucketFields are those of a build on both Bitbuckets, which must have a page.
func bitbucketFields(r Report) map[string]any {
	return map[string]any{
		"key": r.Key, "name": r.Context, "state": r.word, "description": r.Description, "url": cmp.Or(r.Link, r.Page),
	}
}
