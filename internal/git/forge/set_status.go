package forge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// statusRules are what a kind of Git host takes of a status that is set.
type statusRules struct {
	words map[StatusState]string // the states, as it calls them; it may have one word for two
	// instead are the words to try in turn where a status may not have that state after the one that it has; nil
	// where each state may follow each.
	instead map[StatusState][]string
	// Of a longer description the end is left out, and a longer link is refused; both in characters.
	maxDescription, maxLink int
	// whole says that a status must have a link, or keeps the link and the description of the one before where it has
	// none. Then the page of the repository and the word of the state stand for them.
	whole bool
}

// statusWords are the states of GitHub, Gitea and Forgejo.
var statusWords = map[StatusState]string{Success: "success", Failure: "failure", Error: "error", Pending: "pending"}

// What the least of those Git hosts take that say how much they take, and GitHub apart: Bitbucket Data Center.
const (
	maxDescription = 255
	maxContext     = 255
)

// maxLink is what browsers take.
const maxLink = 2000

// CheckContext reports what cannot be the context of a status.
func CheckContext(context string) error {
	switch {
	case context == "" || strings.TrimSpace(context) != context || !wording.IsLine(context):
		return errors.New("a context is one line that is not empty and neither begins nor ends with a space")
	case utf8.RuneCountInString(context) > maxContext:
		return fmt.Errorf("a context has at most %d characters", maxContext)
	}
	return nil
}

// CheckLink reports what cannot be the link of a status on a Git host with the repository's URL, and of that kind; a kind
// that is not known takes any length that another one does.
func CheckLink(link string, kind Forge) error {
	at, err := url.Parse(link)
	most := cmp.Or(kind.Kind().statuses.maxLink, maxLink)
	switch {
	case err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Hostname() == "" || !wording.IsLine(link) || strings.ContainsFunc(link, unicode.IsSpace):
		return errors.New("a link is an http or https URL")
	case at.User != nil:
		return errors.New("the link has credentials in it; remove them")
	case utf8.RuneCountInString(link) > most:
		return fmt.Errorf("this Git host takes links of at most %d characters", most)
	}
	return nil
}

// Status returns the status of a commit with a context, in the words in which it is wanted as far as it is what
// SetStatus makes of that; nil where there is none. Of what is wanted the Context is needed.
func (h *GitHost) Status(ctx context.Context, commit string, wanted Status) (*Status, error) {
	r := h.report(commit, wanted)
	found, err := h.found(ctx, r)
	switch {
	case err != nil || found == nil:
		return nil, h.describe(err)
	case h.is(r, *found):
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

// SetStatus sets the status of a commit with a context, unless it is set already. The Context, the State, the
// Description and the URL are read. What of the description is longer than the Git host takes is left out. That
// the repository does not have the commit is ErrNoCommit. A status is never removed: no Git host does that.
func (h *GitHost) SetStatus(ctx context.Context, commit string, wanted Status) error {
	if err := checkCommit(commit); err != nil {
		return h.describe(err)
	}
	for what, text := range map[string]string{"context": wanted.Context, "link": wanted.URL} {
		if h.secrets.Scrub(text) != text {
			return h.describe(fmt.Errorf("the %s of the status has credentials of the provider in it", what))
		}
	}
	r := h.report(commit, wanted)
	// Where it cannot be read, it may still be set; what is wrong, the Git host then says of that.
	if found, err := h.found(ctx, r); err == nil && found != nil && h.is(r, *found) {
		return nil
	}
	err := h.set(ctx, r)
	if err != nil {
		err = fmt.Errorf("the status %q of commit %s cannot be set: %w", wanted.Context, commit, h.whyNot(ctx, r.Commit, err))
	}
	return h.describe(err)
}

// report is a status as the Git host is to have it.
func (h *GitHost) report(commit string, s Status) Report {
	rules := h.at.kind.statuses
	r := Report{
		Commit: strings.ToLower(commit), Context: s.Context, Key: StatusKey(s.Context), State: s.State, word: rules.words[s.State],
		Description: cutTo(wording.Line(h.secrets.Scrub(s.Description)), rules.maxDescription), Link: s.URL, Page: WebURL(h.at.kind.Forge, h.url),
	}
	if rules.whole {
		r.Link, r.Description = cmp.Or(r.Link, r.Page), cmp.Or(r.Description, r.word)
	}
	return r
}

// cutTo is a text of at most so many characters, the last of which says that there was more.
func cutTo(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(append(runes[:most-1], '…'))
	}
	return text
}

// is says whether a status that was found is what the report makes. Some Git hosts have one word for two states.
func (h *GitHost) is(r Report, found Status) bool {
	return found.State != "" && h.at.kind.statuses.words[found.State] == r.word &&
		found.Description == wording.OneLine(r.Description) && found.URL == wording.Visible(r.Link)
}

// found is the status that a commit has in place of the report; nil where there is none.
func (h *GitHost) found(ctx context.Context, r Report) (*Status, error) {
	if one, ok := h.api.(interface {
		one(ctx context.Context, commit, key string) (*status, error)
	}); ok {
		s, err := one.one(ctx, r.Commit, r.Key)
		if err != nil || s == nil {
			return nil, err
		}
		shown := h.shown(s.Status)
		return &shown, nil
	}
	all, err := h.statuses(ctx, r.Commit, h.api.statuses)
	if answered(err, http.StatusUnprocessableEntity) { // GitHub's answer for a commit that it does not have
		err = failf(ErrNoCommit, "%w", err)
	}
	i := slices.IndexFunc(all, func(s Status) bool { return s.Key == r.Key || s.Key == "" && s.Context == r.Context })
	if err != nil || i < 0 {
		return nil, err
	}
	return &all[i], nil
}

// set sends a status, and where it may not follow the one that there is, what leads to it.
func (h *GitHost) set(ctx context.Context, r Report) (err error) {
	rules := h.at.kind.statuses
	for _, r.word = range append([]string{r.word}, rules.instead[r.State]...) {
		hook := h.at.kind.hook(h.at, r)
		for pause := newPause(h.settling); ; {
			err = h.send(ctx, http.MethodPost, hook.API+hook.Path, hook.Fields)
			if !answered(err, http.StatusConflict) || !pause.wait(ctx) { // GitLab, while it sets another one of the commit
				break
			}
		}
		if err == nil && r.word != gitlabEnded || err != nil && !says(err, "cannot transition") {
			return err
		}
	}
	return err
}

// whyNot finds out what the refusal of a status is about: Git hosts give the same answer where the commit, the
// repository or a permission is missing.
func (h *GitHost) whyNot(ctx context.Context, commit string, err error) error {
	if !answered(err, http.StatusBadRequest, http.StatusNotFound, http.StatusUnprocessableEntity, http.StatusInternalServerError) {
		return err
	}
	repository, kind := h.at.path(), h.at.kind
	missing := h.send(ctx, http.MethodGet, repository+"/"+kind.commits+"/"+commit, nil)
	switch {
	case missing == nil && says(err, "references for commit"):
		return failf(ErrNoCommit, "no branch of the repository has the commit: %w", err)
	case missing == nil && answered(err, http.StatusNotFound):
		return failf(ErrUnauthorized, "the repository has the commit, and these credentials may not set statuses: %w", err)
	case !answered(missing, http.StatusBadRequest, http.StatusNotFound, http.StatusUnprocessableEntity):
		return err
	}
	if gone := h.send(ctx, http.MethodGet, repository, nil); gone != nil {
		return gone
	}
	return failf(ErrNoCommit, "the repository does not have the commit: %w", err)
}

// send sends one request to a path below the root of the API, with its query, and drops the answer.
func (h *GitHost) send(ctx context.Context, method, path string, body any) error {
	at, err := url.Parse(strings.TrimSuffix(h.at.api.String(), "/") + path)
	if err != nil {
		return err
	}
	return h.call(ctx, method, at, body, nil)
}
