package forge

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// bitbucketDataCenter calls the REST API of Bitbucket Data Center: developer.atlassian.com/server/bitbucket/rest. There is no
// SDK for Go. A merge is bound to a version, which a push may not change, auto-merge to the commit.
type bitbucketDataCenter struct{ session }

// dataCenterMaxBody leaves room for the mark in 32,768 characters (BSERV-14135).
const dataCenterMaxBody = 32_768 - len(markBegin) - maxOwner - len(markEnd) - 3

func bitbucketDataCenterKind() GitHostKind {
	return GitHostKind{
		Forge: BitbucketDataCenter, Title: "Bitbucket Data Center", Flux: "bitbucketserver",
		MaxBody: dataCenterMaxBody, AutoMerge: true, Reviewers: "a username", isReviewer: isDataCenterReviewer,
		locate: locateDataCenter, web: dataCenterWeb, reason: dataCenterReason, sign: Credentials.forDataCenter,
		hook: func(at address, r StatusReport) Hook {
			return bitbucketHook(at.path()+"/commits/"+r.Commit+"/builds", r)
		},
		statuses:   bitbucketStatuses,
		repository: func(at address) []string { return []string{"api", "latest", "projects", at.owner, "repos", at.name} },
		commits:    "commits", pulls: "pull-requests",
		connect: func(s session) (api, error) { return &bitbucketDataCenter{s}, nil },
	}
}

func isDataCenterReviewer(name string) bool {
	return utf8.RuneCountInString(name) <= 255 && dataCenterReviewerPattern.MatchString(name)
}

// dataCenterReviewerPattern has no counter: 255 copies of its class would take 10 MiB.
var dataCenterReviewerPattern = regexp.MustCompile(`^[^\s/\\<>"|*?:;\[\]\p{C}]+$`)

const dataCenterSCM = "scm"

// locateDataCenter parses https://{server}/{path}/scm/{project}/{repository}.git. Personal projects begin with ~.
func locateDataCenter(clone, api *url.URL) (address, error) {
	segments := strings.Split(strings.Trim(clone.Path, "/"), "/")
	at := len(segments) - 3
	if at < 0 || segments[at] != dataCenterSCM {
		return address{}, fmt.Errorf(
			"the URL's path %q is not that of a repository of Bitbucket Data Center: scm/project/repository.git",
			clone.Path,
		)
	}
	project, person := strings.CutPrefix(segments[at+1], "~")
	owner, name, err := ownerAndName(clone, project+"/"+segments[at+2])
	if err != nil {
		return address{}, err
	}
	if person {
		owner[0] = "~" + owner[0]
	}
	root := apiRoot(clone, api)
	if api == nil {
		root.Path = "/" + strings.Join(segments[:at], "/")
	}
	return address{api: appendPath(root, "/rest"), owner: owner[0], name: name}, nil
}

// dataCenterWeb parses ssh://git@{server}:7999/{project}/{repository}.git.
func dataCenterWeb(ssh *url.URL) string {
	return "https://" + ssh.Hostname() + "/" + dataCenterSCM + "/" + strings.TrimSuffix(strings.TrimPrefix(ssh.Path, "/"), ".git")
}

// forDataCenter sends a bearer token. The header permits changes without a body.
func (c Credentials) forDataCenter(request *http.Request) {
	request.Header.Set("X-Atlassian-Token", "no-check")
	c.asTokenOrBasic(request, "Bearer")
}

// dataCenterReason reads {"errors": [{"message", "exceptionName", "vetoes": [{"detailedMessage"}]}]} without messages.
func dataCenterReason(body []byte) (more []string, kindWord string) {
	var answer struct {
		Errors []struct {
			Kind   string `json:"exceptionName"`
			Vetoes []struct {
				Summary string `json:"summaryMessage"`
				Detail  string `json:"detailedMessage"`
			} `json:"vetoes"`
		} `json:"errors"`
	}
	_ = json.Unmarshal(body, &answer)
	for _, one := range answer.Errors {
		kindWord = cmp.Or(kindWord, one.Kind)
		for _, veto := range one.Vetoes {
			more = append(more, cmp.Or(veto.Detail, veto.Summary))
		}
	}
	return more, kindWord
}

type dataCenterRef struct {
	ID         string `json:"id"` // refs/heads/...
	Commit     string `json:"latestCommit,omitempty"`
	Repository *struct {
		ID int `json:"id"`
	} `json:"repository,omitempty"`
}

type dataCenterUser struct {
	Name string `json:"name"`
}

type dataCenterReviewer struct {
	User dataCenterUser `json:"user"`
}

type dataCenterPull struct {
	ID          int                  `json:"id"`
	Version     int                  `json:"version"`
	Title       string               `json:"title"`
	Description string               `json:"description"`
	State       string               `json:"state"`
	Draft       bool                 `json:"draft"`
	From        dataCenterRef        `json:"fromRef"`
	To          dataCenterRef        `json:"toRef"`
	Reviewers   []dataCenterReviewer `json:"reviewers"`
	Properties  struct {
		Merge struct {
			ID string `json:"id"`
		} `json:"mergeCommit"`
	} `json:"properties"`
	Links struct {
		Self []struct {
			URL string `json:"href"`
		} `json:"self"`
	} `json:"links"`
}

// dataCenterChange opens or changes a request. Omitted reviewers are removed.
type dataCenterChange struct {
	Version     *int                 `json:"version,omitempty"`
	Title       string               `json:"title"`
	Description string               `json:"description"`
	Draft       bool                 `json:"draft,omitempty"`
	From        *dataCenterRef       `json:"fromRef,omitempty"`
	To          *dataCenterRef       `json:"toRef,omitempty"`
	Reviewers   []dataCenterReviewer `json:"reviewers,omitempty"`
}

const dataCenterPage = 100

func dataCenterEach[T any](ctx context.Context, b *bitbucketDataCenter, to *url.URL, query url.Values, take func(T) bool) error {
	query.Set("limit", strconv.Itoa(dataCenterPage))
	next := 0
	return readPages(func(int) (bool, error) {
		query.Set("start", strconv.Itoa(next))
		var page struct {
			Values []T  `json:"values"`
			Last   bool `json:"isLastPage"`
			Next   int  `json:"nextPageStart"` // may differ from Start plus the number of values
		}
		if err := b.call(ctx, http.MethodGet, withQuery(to, query), nil, &page); err != nil {
			return true, err
		}
		for _, one := range page.Values {
			if !take(one) {
				return true, nil
			}
		}
		next = page.Next
		return page.Last, nil
	})
}

func (b *bitbucketDataCenter) listOpen(ctx context.Context, _, head string, take func(*request) bool) error {
	query := url.Values{"direction": {"OUTGOING"}, "at": {branchRef + head}, "state": {"OPEN"}, "order": {"NEWEST"}}
	return dataCenterEach(ctx, b, b.at.resource(b.at.kind.pulls), query, func(pull dataCenterPull) bool { return take(b.request(&pull)) })
}

func (b *bitbucketDataCenter) get(ctx context.Context, number int) (*request, error) {
	return callForRequest(ctx, b.session, http.MethodGet, b.pull(number), nil, b.request)
}

func (b *bitbucketDataCenter) request(pull *dataCenterPull) *request {
	r := &request{
		PullRequest: PullRequest{
			Number: pull.ID, State: Open, Owner: ownerOf(pull.Description),
			Base: strings.TrimPrefix(pull.To.ID, branchRef), Head: strings.TrimPrefix(pull.From.ID, branchRef), HeadCommit: pull.From.Commit,
		},
		title: pull.Title, body: pull.Description, draft: pull.Draft, id: strconv.Itoa(pull.Version),
		fromFork: pull.From.Repository == nil || pull.To.Repository == nil || pull.From.Repository.ID != pull.To.Repository.ID,
	}
	if len(pull.Links.Self) > 0 {
		r.URL = pull.Links.Self[0].URL
	}
	switch pull.State {
	case "MERGED":
		r.State, r.MergeCommit = Merged, pull.Properties.Merge.ID
	case "DECLINED":
		r.State = Closed
	}
	for _, reviewer := range pull.Reviewers {
		r.reviewers = append(r.reviewers, reviewer.User.Name)
	}
	return r
}

func (b *bitbucketDataCenter) open(ctx context.Context, base, head, title, body string) (*request, error) {
	change := dataCenterChange{
		Title:       title,
		Description: body,
		From:        &dataCenterRef{ID: branchRef + head},
		To:          &dataCenterRef{ID: branchRef + base},
	}
	return callForRequest(ctx, b.session, http.MethodPost, b.at.resource(b.at.kind.pulls), change, b.request)
}

// retryOutOfDate repeats do if the request has a new version.
func (b *bitbucketDataCenter) retryOutOfDate(ctx context.Context, r *request, do func() error) error {
	err := do()
	if !isOutOfDate(err) {
		return err
	}
	again, getErr := b.get(ctx, r.Number)
	if getErr != nil || again.State != Open || again.Owner != r.Owner {
		return err
	}
	r.id, r.draft, r.reviewers = again.id, again.draft, again.reviewers
	return do()
}

func isOutOfDate(err error) bool {
	said := (*answer)(nil)
	return errors.As(err, &said) && strings.HasSuffix(said.kindWord, ".PullRequestOutOfDateException")
}

func (b *bitbucketDataCenter) edit(ctx context.Context, r *request, title, body string) error {
	return b.retryOutOfDate(ctx, r, func() error {
		version, err := strconv.Atoi(r.id)
		if err != nil {
			return err
		}
		change := dataCenterChange{Version: &version, Title: title, Description: body, Draft: r.draft}
		for _, name := range r.reviewers {
			change.Reviewers = append(change.Reviewers, dataCenterReviewer{dataCenterUser{name}})
		}
		return b.call(ctx, http.MethodPut, b.pull(r.Number), change, nil)
	})
}

func (b *bitbucketDataCenter) close(ctx context.Context, r *request) error {
	return b.retryOutOfDate(ctx, r, func() error {
		return b.call(ctx, http.MethodPost, withQuery(b.pull(r.Number, "decline"), url.Values{"version": {r.id}}), nil, nil)
	})
}

// checkReviewer searches a part of names and email addresses.
func (b *bitbucketDataCenter) checkReviewer(ctx context.Context, reviewer string) error {
	found := false
	err := dataCenterEach(ctx, b, b.at.api.JoinPath("api/latest/users"), url.Values{"filter": {reviewer}}, func(user dataCenterUser) bool {
		found = found || strings.EqualFold(user.Name, reviewer)
		return !found
	})
	if err == nil && !found {
		err = noReviewer(reviewer)
	}
	return err
}

func (b *bitbucketDataCenter) requestReviews(ctx context.Context, r *request, reviewers []string) error {
	for _, name := range reviewers {
		asked := map[string]any{"user": dataCenterUser{name}, "role": "REVIEWER"}
		err := b.call(ctx, http.MethodPost, b.pull(r.Number, "participants"), asked, nil)
		if hasStatus(err, http.StatusConflict) {
			return failf(ErrReviewer, "%w", err)
		}
		if err != nil {
			return reviewerError(err)
		}
	}
	return nil
}

// merge uses the strategy of the repository's settings.
func (b *bitbucketDataCenter) merge(ctx context.Context, r *request, _ string) error {
	return b.accept(ctx, r, map[string]any{})
}

func (b *bitbucketDataCenter) accept(ctx context.Context, r *request, how map[string]any) error {
	err := b.call(ctx, http.MethodPost, withQuery(b.pull(r.Number, "merge"), url.Values{"version": {r.id}}), how, nil)
	if isOutOfDate(err) {
		return failf(errBusy, "%w", err)
	}
	return err
}

// enableAutoMerge needs 8.15; earlier versions merge at once, or refuse. Bitbucket merges at once if nothing is missing, and
// cancels auto-merge when the head moves (AutoMergeCancelledReason of its Java API).
func (b *bitbucketDataCenter) enableAutoMerge(ctx context.Context, r *request, headCommit string) error {
	var arranged struct {
		Commit string `json:"fromHash"`
	}
	err := b.call(ctx, http.MethodGet, b.pull(r.Number, "auto-merge"), nil, &arranged)
	switch {
	case err == nil && arranged.Commit == headCommit:
		return nil
	case err != nil && !errors.Is(err, io.EOF) && !hasStatus(err, http.StatusNotFound): // auto-merge is off
		return err
	}
	err = b.accept(ctx, r, map[string]any{"autoMerge": true})
	if hasStatus(err, http.StatusForbidden) {
		return failf(ErrNotMergeable, "auto-merge may be off in the settings of the repository: %w", err)
	}
	return err
}

func (b *bitbucketDataCenter) disableAutoMerge(ctx context.Context, r *request) error {
	err := b.call(ctx, http.MethodDelete, b.pull(r.Number, "auto-merge"), nil, nil)
	if hasStatus(err, http.StatusNotFound) {
		return nil
	}
	return err
}

// listStatuses reads the newest hundred builds, the only list.
func (b *bitbucketDataCenter) listStatuses(ctx context.Context, commit string, _ int) (found []status, last bool, err error) {
	builds := joinSegments(b.at.api, "build-status", "latest", "commits", commit)
	err = dataCenterEach(ctx, b, builds, url.Values{"orderBy": {"NEWEST"}}, func(s dataCenterBuild) bool {
		found = append(found, s.status())
		return true
	})
	return found, true, err
}

// getStatus finds older builds, too.
func (b *bitbucketDataCenter) getStatus(ctx context.Context, commit, key string) (*status, error) {
	var build dataCenterBuild
	err := b.call(ctx, http.MethodGet, withQuery(b.at.resource("commits", commit, "builds"), url.Values{"key": {key}}), nil, &build)
	if hasStatus(err, http.StatusNotFound) {
		return nil, nil
	}
	found := build.status()
	return &found, err
}

type dataCenterBuild struct {
	bitbucketBuild
	Created int64 `json:"createdDate"` // in milliseconds
	Updated int64 `json:"updatedDate"`
}

func (s dataCenterBuild) status() status {
	return s.bitbucketBuild.status(time.UnixMilli(cmp.Or(s.Updated, s.Created)))
}
