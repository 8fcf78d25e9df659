package forge

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// An owner's mark is a line of its own in the body: an HTML comment, which only
// Bitbucket shows.
const (
	markBegin = "<!-- flotilla-assignment: "
	markEnd   = " -->"
)

const maxOwner = 500

func mark(owner string) string { return markBegin + owner + markEnd }

// marked returns the owner in a body's mark. The first mark counts, because Ensure
// puts it there, and everything below may be text of others.
func marked(body string) string {
	for line := range strings.Lines(body) {
		owner, ok := strings.CutPrefix(strings.TrimSpace(line), markBegin)
		if !ok {
			continue
		}
		if owner, ok = strings.CutSuffix(owner, markEnd); ok && checkOwner(owner) == nil {
			return owner
		}
		return ""
	}
	return ""
}

func checkOwner(owner string) error {
	switch {
	case owner == "" || strings.TrimSpace(owner) != owner:
		return fmt.Errorf("owner %q is empty, or begins or ends with a space", owner)
	case len(owner) > maxOwner:
		return fmt.Errorf("the owner is longer than %d bytes", maxOwner)
	case strings.ContainsAny(owner, "<>"):
		return fmt.Errorf("owner %q has a < or a >", owner)
	case !wording.IsLine(owner):
		return errors.New("the owner has a control character or is not UTF-8")
	}
	return nil
}

func (s Selector) check() error {
	if err := checkOwner(s.Owner); err != nil {
		return err
	}
	switch {
	case s.Base == "":
		return errors.New("the base branch is empty")
	case s.Head == "":
		return errors.New("the head branch is empty")
	case s.Base == s.Head:
		return fmt.Errorf("branch %q is both base and head of the pull request", s.Base)
	case strings.ContainsAny(s.Head, ":"): // the Git hosts read it as another account's branch
		return fmt.Errorf("head branch %q has a colon; use another name", s.Head)
	}
	return nil
}

// MaxBody is how many bytes the body of a request may have, without the mark, on
// most Git hosts: GitHub takes 65,536 characters, the others more. Azure Repos takes
// less; see GitHost.MaxBody.
const MaxBody = 60_000

// bounds are what a kind of Git host accepts.
type bounds struct {
	maxBody   int
	reviewer  func(string) bool
	reviewers string // the accepted forms of reviewers, for an error
	// What it has not: labels of requests, and auto-merge.
	noLabels, noAutoMerge bool
}

// checkMode reports a way of merging that a kind of Git host does not have.
func (b bounds) checkMode(how MergeMode) error {
	if b.noAutoMerge && how == WhenChecksSucceed {
		return fmt.Errorf(
			"this Git host has no auto-merge that its API turns on, so that a request cannot be merged %q; merge %q, or leave it to people",
			how,
			Now,
		)
	}
	return nil
}

// anyBounds are those of most kinds.
var anyBounds = bounds{maxBody: MaxBody, reviewer: isReviewer, reviewers: "a username or organization/team"}

// isReviewer takes a username, or a team.
func isReviewer(reviewer string) bool {
	for name := range strings.SplitSeq(reviewer, "/") {
		if !segmentPattern.MatchString(name) {
			return false
		}
	}
	return strings.Count(reviewer, "/") <= 1
}

// azureReviewerPattern matches an email address, or a project and a team, both of
// which may have spaces.
var azureReviewerPattern = regexp.MustCompile(
	`^[^\s/\\<>"|*?:;\[\]\p{C}]+@[^\s/\\<>"|*?:;\[\]\p{C}]+$|^[^\s/\\<>"|*?:;\[\]\p{C}][^/\\<>"|*?:;\[\]\p{C}]{0,63}/[^/\\<>"|*?:;\[\]\p{C}]{1,255}$`,
)

// maxTitle is in characters: GitLab and Gitea take 255, GitHub 256, and the mark
// of a draft may come before it.
const maxTitle = 245

func (w Wanted) check(limits bounds) error {
	if err := w.Selector.check(); err != nil {
		return err
	}
	switch {
	case strings.TrimSpace(w.Title) == "":
		return errors.New("the pull request's title is empty")
	case len(w.Body) > limits.maxBody:
		return fmt.Errorf("the pull request's body is longer than %d bytes", limits.maxBody)
	case strings.Contains(w.Body, markBegin):
		return errors.New("the pull request's body has an assignment's mark in it; remove the mark")
	case limits.noLabels && len(w.Labels) > 0:
		return errors.New("pull requests of this Git host have no labels; remove the labels")
	}
	for _, label := range w.Labels {
		if strings.TrimSpace(label) != label || label == "" || strings.ContainsAny(label, ",\n\r") {
			return fmt.Errorf("label %q is empty, begins or ends with a space, or has a comma or a line break", label)
		}
	}
	for _, reviewer := range w.Reviewers {
		if !limits.reviewer(reviewer) {
			return fmt.Errorf("reviewer %q is not %s", reviewer, limits.reviewers)
		}
	}
	return nil
}

// title is one line that every Git host takes.
func (w Wanted) title() string {
	return cutTo(strings.ToValidUTF8(strings.Join(strings.Fields(w.Title), " "), ""), maxTitle)
}

// draftPattern is how titles make drafts on GitLab, and on Gitea unless it is
// configured otherwise.
var draftPattern = regexp.MustCompile(`^\s*(?i:(?:draft|wip):|\[(?:draft|wip)\]|\(draft\))`)

// titleFor is the title that a request shall have: a draft stays a draft.
func (w Wanted) titleFor(r *request) string {
	title := w.title()
	if mark := draftPattern.FindString(r.title); r.draft && mark != "" && !draftPattern.MatchString(title) {
		return strings.TrimSpace(mark) + " " + title
	}
	return title
}

func (w Wanted) body() string {
	return mark(w.Owner) + "\n\n" + strings.TrimSpace(w.Body) + "\n"
}

// sameText compares what was sent with what a Git host stores: some trim it, and
// edits in a browser have other line ends.
func sameText(a, b string) bool {
	plain := func(text string) string { return strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n")) }
	return plain(a) == plain(b)
}
