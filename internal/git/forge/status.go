package forge

import (
	"cmp"
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

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

// commonStates are the states of Gitea, GitHub and GitLab that are not Pending.
var commonStates = map[string]StatusState{
	"success": Success, "error": Error,
	"failure": Failure, "failed": Failure, "warning": Failure, "canceled": Failure, "canceling": Failure,
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

// statusRules are the limits of a status on a kind of Git host.
type statusRules struct {
	words map[StatusState]string // the states in the Git host's terms
	// instead are states to try in turn if the present one may not be followed; nil allows every transition.
	instead map[StatusState][]string
	// Both are in characters. A longer description is truncated, a longer link refused.
	maxDescription, maxLink int
	// whole means that a status needs a link, or keeps the previous link and description without them. The repository's page
	// and the name of the state replace empty ones.
	whole bool
}

var statusWords = map[StatusState]string{Success: "success", Failure: "failure", Error: "error", Pending: "pending"}

// The lowest documented limits, of Bitbucket Data Center. GitHub's description is an exception.
const (
	maxDescription = 255
	maxContext     = 255
)

// maxLink is the limit of browsers.
const maxLink = 2000

// CheckContext returns an error for an invalid context.
func CheckContext(context string) error {
	switch {
	case context == "" || strings.TrimSpace(context) != context || !wording.IsLine(context):
		return errors.New("a context is one line that is not empty and neither begins nor ends with a space")
	case utf8.RuneCountInString(context) > maxContext:
		return fmt.Errorf("a context has at most %d characters", maxContext)
	}
	return nil
}

// CheckLink returns an error for an invalid link on this kind of Git host. For an unknown kind, the longest limit applies.
func CheckLink(link string, kind Forge) error {
	at, err := url.Parse(link)
	most := cmp.Or(kind.Kind().statuses.maxLink, maxLink)
	switch {
	case err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Hostname() == "",
		!wording.IsLine(link), strings.ContainsFunc(link, unicode.IsSpace):
		return errors.New("a link is an http or https URL")
	case at.User != nil:
		return errors.New("the link has credentials in it; remove them")
	case utf8.RuneCountInString(link) > most:
		return fmt.Errorf("this Git host takes links of at most %d characters", most)
	}
	return nil
}

// Status returns a commit's status with wanted's Context, or nil. It returns wanted itself if SetStatus would not change it.
func (h *CommitStatuses) Status(ctx context.Context, commit string, wanted Status) (*Status, error) {
	r := h.report(commit, wanted)
	found, err := h.findStatus(ctx, r)
	switch {
	case err != nil || found == nil:
		return nil, h.describe(err)
	case h.matches(r, *found):
		return &wanted, nil
	}
	if rules := h.at.kind.statuses; rules.whole && found.URL == r.Page {
		found.URL = ""
	}
	if rules := h.at.kind.statuses; rules.whole && found.Description == rules.words[found.State] {
		found.Description = ""
	}
	return found, nil
}

// SetStatus sets the status of a commit, unless it is set. It reads Context, State, Description and URL, and truncates the
// description. A missing commit is ErrNoCommit. No Git host can remove a status.
func (h *CommitStatuses) SetStatus(ctx context.Context, commit string, wanted Status) error {
	if err := checkCommit(commit); err != nil {
		return h.describe(err)
	}
	for what, text := range map[string]string{"context": wanted.Context, "link": wanted.URL} {
		if h.secrets.Scrub(text) != text {
			return h.describe(fmt.Errorf("the %s of the status has credentials of the provider in it", what))
		}
	}
	r := h.report(commit, wanted)
	// If reading fails, setting may still succeed, or give a better error.
	if found, err := h.findStatus(ctx, r); err == nil && found != nil && h.matches(r, *found) {
		return nil
	}
	err := h.sendStatus(ctx, r)
	if err != nil {
		err = fmt.Errorf("the status %q of commit %s cannot be set: %w", wanted.Context, commit, h.explainRefusal(ctx, r.Commit, err))
	}
	return h.describe(err)
}

// report converts a status to the Git host's limits.
func (h *CommitStatuses) report(commit string, s Status) StatusReport {
	rules := h.at.kind.statuses
	r := StatusReport{
		Commit: strings.ToLower(commit), Context: s.Context, Key: StatusKey(s.Context), State: s.State, word: rules.words[s.State],
		Description: truncate(wording.Line(h.secrets.Scrub(s.Description)), rules.maxDescription),
		Link:        s.URL, Page: WebURL(h.at.kind.Forge, h.url),
	}
	if rules.whole {
		r.Link, r.Description = cmp.Or(r.Link, r.Page), cmp.Or(r.Description, r.word)
	}
	return r
}

func truncate(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(append(runes[:most-1], '…'))
	}
	return text
}

// matches compares states by the Git host's names: some have one for two states.
func (h *CommitStatuses) matches(r StatusReport, found Status) bool {
	return found.State != "" && h.at.kind.statuses.words[found.State] == r.word &&
		found.Description == wording.OneLine(r.Description) && found.URL == wording.Visible(r.Link)
}

// findStatus returns the status that the report would replace, or nil.
func (h *CommitStatuses) findStatus(ctx context.Context, r StatusReport) (*Status, error) {
	if getter, ok := h.api.(statusGetter); ok {
		s, err := getter.getStatus(ctx, r.Commit, r.Key)
		if err != nil || s == nil {
			return nil, err
		}
		shown := h.sanitize(s.Status)
		return &shown, nil
	}
	all, err := h.statuses(ctx, r.Commit, h.api.listStatuses)
	if hasStatus(err, http.StatusUnprocessableEntity) { // for an unknown commit, on GitHub
		err = failf(ErrNoCommit, "%w", err)
	}
	i := slices.IndexFunc(all, func(s Status) bool { return s.Key == r.Key || s.Key == "" && s.Context == r.Context })
	if err != nil || i < 0 {
		return nil, err
	}
	return &all[i], nil
}

// sendStatus sets a status, if necessary through other states.
func (h *CommitStatuses) sendStatus(ctx context.Context, r StatusReport) (err error) {
	rules := h.at.kind.statuses
	for _, r.word = range append([]string{r.word}, rules.instead[r.State]...) {
		hook := h.at.kind.hook(h.at, r)
		for pause := newPause(h.settling); ; {
			err = h.send(ctx, http.MethodPost, hook.API+hook.Path, hook.Fields)
			if !hasStatus(err, http.StatusConflict) || !pause.wait(ctx) { // GitLab, during another change
				break
			}
		}
		if err == nil && r.word != gitlabEnded || err != nil && !answerContains(err, "cannot transition") {
			return err
		}
	}
	return err
}

// explainRefusal finds the cause of a refused status: the answer is the same for a missing commit, repository or permission.
func (h *CommitStatuses) explainRefusal(ctx context.Context, commit string, err error) error {
	if !hasStatus(err, http.StatusBadRequest, http.StatusNotFound, http.StatusUnprocessableEntity, http.StatusInternalServerError) {
		return err
	}
	repository, kind := h.at.path(), h.at.kind
	missing := h.send(ctx, http.MethodGet, repository+"/"+kind.commits+"/"+commit, nil)
	switch {
	case missing == nil && answerContains(err, "references for commit"):
		return failf(ErrNoCommit, "no branch of the repository has the commit: %w", err)
	case missing == nil && hasStatus(err, http.StatusNotFound):
		return failf(ErrUnauthorized, "the repository has the commit, and these credentials may not set statuses: %w", err)
	case !hasStatus(missing, http.StatusBadRequest, http.StatusNotFound, http.StatusUnprocessableEntity):
		return err
	}
	if gone := h.send(ctx, http.MethodGet, repository, nil); gone != nil {
		return gone
	}
	return failf(ErrNoCommit, "the repository does not have the commit: %w", err)
}

// send sends a request below the root of the API and ignores the answer.
func (h *CommitStatuses) send(ctx context.Context, method, path string, body any) error {
	at, err := url.Parse(strings.TrimSuffix(h.at.api.String(), "/") + path)
	if err != nil {
		return err
	}
	return h.call(ctx, method, at, body, nil)
}

// StatusReport is a commit status to set.
type StatusReport struct {
	// Commit, Context and Description may contain placeholders of an agent.
	Commit, Context, Description string
	Key                          string // StatusKey of the context
	State                        StatusState
	Token                        string // of an agent
	Link                         string // a web page, or ""
	Page                         string // replaces an empty link if one is required

	word  string // the state in the Git host's terms
	genre string // Azure Repos only; "": the part of the context before the first slash
}

func (r StatusReport) withLink(field string, fields map[string]any) map[string]any {
	if r.Link != "" {
		fields[field] = r.Link
	}
	return fields
}

// StatusKey returns a key of forty characters, which every Git host accepts, as Flux' notification controller makes it.
func StatusKey(context string) string {
	return fmt.Sprintf("%x", sha1.Sum([]byte(context)))
}

// Hook is a request that sets a commit status.
type Hook struct {
	API      string // without a final slash
	Path     string // below the API, with a query
	Headers  [][2]string
	Username string // for basic authentication with the token; "" if a header contains the token
	Fields   map[string]any
}

// StatusHook returns an agent's request, without the repository's Credentials.
func StatusHook(repository HostedRepository, r StatusReport) (Hook, error) {
	at, err := locate(repository)
	if err != nil {
		return Hook{}, err
	}
	r.word, r.genre = at.kind.statuses.words[r.State], agentGenre
	hook := at.kind.hook(at, r)
	hook.API = strings.TrimSuffix(at.api.String(), "/") + hook.API
	hook.Headers = append([][2]string{{"Content-Type", "application/json"}}, hook.Headers...)
	return hook, nil
}
