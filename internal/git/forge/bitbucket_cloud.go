package forge

import (
	"cmp"
	"context"
	"encoding/json"
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

// bitbucketCloud calls the REST API of Bitbucket Cloud: developer.atlassian.com/cloud/bitbucket/rest. There is no SDK for Go. A
// merge is not bound to a commit.
type bitbucketCloud struct{ session }

func bitbucketKind() GitHostKind {
	return GitHostKind{
		Forge: Bitbucket, Title: "Bitbucket Cloud", Flux: "bitbucket", FluxLogin: true, Servers: []string{"bitbucket.org"},
		tokenUser: bitbucketTokenUser, mailUser: "x-bitbucket-api-token-auth",
		MaxBody: MaxBody, Reviewers: "an Atlassian account ID or a UUID in braces", isReviewer: bitbucketReviewerPattern.MatchString,
		locate: locateBitbucket, reason: bitbucketReason, sign: Credentials.forBitbucket, statuses: bitbucketStatuses,
		hook: func(at address, r StatusReport) Hook {
			return bitbucketHook(at.path()+"/commit/"+r.Commit+"/statuses/build", r)
		},
		repository: func(at address) []string { return []string{"repositories", at.owner, at.name} }, commits: "commit", pulls: "pullrequests",
		connect: func(s session) (api, error) { return &bitbucketCloud{s}, nil },
	}
}

// bitbucketReviewerPattern matches account IDs and UUIDs; usernames ended in 2019.
var bitbucketReviewerPattern = regexp.MustCompile(`^\{[0-9A-Fa-f-]{36}\}$|^[0-9A-Za-z:-]{20,128}$`)

func locateBitbucket(clone, api *url.URL) (address, error) {
	owner, name, err := ownerAndName(clone, clone.Path)
	if err == nil && len(owner) != 1 {
		err = notARepository(clone)
	}
	if err != nil {
		return address{}, err
	}
	root := apiRoot(clone, api)
	if api == nil && bitbucketKind().serves(clone.Hostname()) {
		root.Host = "api." + clone.Host
	}
	return address{api: appendPath(root, "/2.0"), owner: owner[0], name: name}, nil
}

const bitbucketTokenUser = "x-token-auth"

// forBitbucket sends an API token with its user's email address, an access token alone.
func (c Credentials) forBitbucket(request *http.Request) {
	switch token := c.asToken(); {
	case token == "":
	case strings.Contains(c.Username, "@") || c.Token == "" && c.Username != bitbucketTokenUser:
		request.SetBasicAuth(c.Username, token)
	default:
		request.Header.Set("Authorization", "Bearer "+token)
	}
}

// bitbucketReason reads the detail of {"error": {"message", "detail"}}.
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
		Hash string `json:"hash"` // twelve characters
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
	Reviewers   []bitbucketUser `json:"reviewers"` // lists omit them
	Merge       struct {
		Hash string `json:"hash"`
	} `json:"merge_commit"`
	Links struct {
		HTML struct {
			URL string `json:"href"`
		} `json:"html"`
	} `json:"links"`
}

// bitbucketChange opens or changes a request. Omitted reviewers are removed.
type bitbucketChange struct {
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Draft       bool            `json:"draft,omitempty"`
	Source      any             `json:"source,omitempty"`
	Destination any             `json:"destination,omitempty"`
	Reviewers   []bitbucketUser `json:"reviewers,omitempty"`
}

// bitbucketEach passes items to take until it returns false. It uses only the query of the next page's URL: its server may differ.
func bitbucketEach[T any](
	ctx context.Context, b *bitbucketCloud, to *url.URL, query url.Values, take func(T) (more bool, err error),
) error {
	return readPages(func(int) (bool, error) {
		var page struct {
			Values []T    `json:"values"`
			Next   string `json:"next"`
		}
		if err := b.call(ctx, http.MethodGet, withQuery(to, query), nil, &page); err != nil {
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

// listOpen reads each request, because lists omit the reviewers.
func (b *bitbucketCloud) listOpen(ctx context.Context, base, head string, take func(*request) bool) error {
	filter := `state = "OPEN" AND source.branch.name = ` + strconv.Quote(head)
	if base != "" {
		filter += " AND destination.branch.name = " + strconv.Quote(base)
	}
	query := url.Values{"q": {filter}, "sort": {"-created_on"}, "pagelen": {"50"}}
	return bitbucketEach(ctx, b, b.at.resource(b.at.kind.pulls), query, func(pull bitbucketPull) (bool, error) {
		if !b.request(&pull).isBetween(head, base) {
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
	return b.expandCommits(ctx, &pull)
}

// expandCommits sets full ids of commits, which declined requests may no longer have.
func (b *bitbucketCloud) expandCommits(ctx context.Context, pull *bitbucketPull) (*request, error) {
	r := b.request(pull)
	if r.fromFork {
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
		case !hasStatus(err, http.StatusNotFound):
			return nil, fmt.Errorf("commit %s: %w", *commit, err)
		}
	}
	return r, nil
}

func (b *bitbucketCloud) request(pull *bitbucketPull) *request {
	r := &request{
		PullRequest: PullRequest{
			Number: pull.ID, URL: pull.Links.HTML.URL, State: Open, Owner: ownerOf(pull.Description),
			Base: pull.Destination.Branch.Name, Head: pull.Source.Branch.Name, HeadCommit: pull.Source.Commit.Hash,
		},
		title: pull.Title, body: pull.Description, draft: pull.Draft,
		fromFork: pull.Source.Repository.UUID != pull.Destination.Repository.UUID,
	}
	switch pull.State {
	case "OPEN":
	case "MERGED":
		r.State, r.MergeCommit = Merged, pull.Merge.Hash
	default: // declined or superseded
		r.State = Closed
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
	return b.expandCommits(ctx, &pull)
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

func (b *bitbucketCloud) checkReviewer(ctx context.Context, reviewer string) error {
	_, err := b.user(ctx, reviewer)
	return err
}

func (b *bitbucketCloud) user(ctx context.Context, id string) (user bitbucketUser, err error) {
	err = b.call(ctx, http.MethodGet, joinSegments(b.at.api, "users", id), nil, &user)
	if hasStatus(err, http.StatusNotFound) {
		err = noReviewer(id)
	}
	return user, err
}

// requestReviews replaces the list.
func (b *bitbucketCloud) requestReviews(ctx context.Context, r *request, reviewers []string) error {
	there := len(r.reviewers)
	for _, id := range reviewers {
		user, err := b.user(ctx, id)
		if err != nil {
			return err
		}
		r.reviewers = append(r.reviewers, namesNotIn([]string{user.UUID}, r.reviewers)...)
	}
	if len(r.reviewers) == there {
		return nil
	}
	return reviewerError(b.edit(ctx, r, r.title, r.body))
}

// bitbucketMerges prefers strategies that keep commits and messages.
var bitbucketMerges = []string{"merge_commit", "rebase_merge", "rebase_fast_forward", "fast_forward", "squash", "squash_fast_forward"}

func (b *bitbucketCloud) merge(ctx context.Context, r *request, _ string) error {
	var pull bitbucketPull
	if err := b.call(ctx, http.MethodGet, b.pull(r.Number), nil, &pull); err != nil {
		return err
	}
	how := map[string]any{"close_source_branch": false}
	isAllowed := func(way string) bool { return slices.Contains(pull.Destination.Branch.Strategies, way) }
	if first := slices.IndexFunc(bitbucketMerges, isAllowed); first >= 0 {
		how["merge_strategy"] = bitbucketMerges[first]
	}
	response, err := b.exchange(ctx, http.MethodPost, b.pull(r.Number, "merge"), how)
	if err == nil {
		_ = response.Body.Close()
		if task := response.Header.Get("Location"); response.StatusCode == http.StatusAccepted && task != "" {
			err = b.waitForMerge(ctx, r.Number, path.Base(task))
		}
	}
	switch {
	case hasStatus(err, http.StatusBadRequest):
		return failf(ErrNotMergeable, "%w", err)
	case hasStatus(err, http.StatusConflict, bitbucketTimeout):
		return failf(errBusy, "%w", err)
	}
	return err
}

func (b *bitbucketCloud) waitForMerge(ctx context.Context, number int, task string) error {
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

// bitbucketTimeout means that an operation may be retried.
const bitbucketTimeout = 555

var bitbucketStates = map[string]StatusState{"SUCCESSFUL": Success, "FAILED": Failure, "STOPPED": Failure, "CANCELLED": Failure}

// bitbucketBuild is common to both kinds of Bitbucket.
type bitbucketBuild struct {
	Key         string `json:"key"`
	Name        string `json:"name"`
	State       string `json:"state"`
	Description string `json:"description"`
	URL         string `json:"url"`
}

func (b bitbucketBuild) status(at time.Time) status {
	return status{Status: Status{
		Context: cmp.Or(b.Name, b.Key), Key: b.Key, State: cmp.Or(bitbucketStates[b.State], Pending),
		Description: b.Description, Time: at.UTC(), URL: b.URL,
	}}
}

func (b *bitbucketCloud) listStatuses(ctx context.Context, commit string, _ int) (found []status, last bool, err error) {
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

// bitbucketStatuses apply to both kinds of Bitbucket.
var bitbucketStatuses = statusRules{
	words:          map[StatusState]string{Success: "SUCCESSFUL", Failure: "FAILED", Error: "FAILED", Pending: "INPROGRESS"},
	maxDescription: maxDescription, maxLink: 450, whole: true,
}

// bitbucketHook is common to both kinds of Bitbucket, which require a page.
func bitbucketHook(path string, r StatusReport) Hook {
	return Hook{
		Path:    path,
		Headers: [][2]string{{"Authorization", "Bearer " + r.Token}},
		Fields: map[string]any{
			"key": r.Key, "name": r.Context, "state": r.word, "description": r.Description, "url": cmp.Or(r.Link, r.Page),
		},
	}
}
