package forge

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// MaxBody is the maximum length in bytes of a body on most Git hosts; see GitHostKind.MaxBody. GitHub accepts 65,536
// characters, the others more.
const MaxBody = 60_000

// maxTitle is in characters: GitLab and Gitea accept 255, GitHub 256, and the mark of a draft may precede the title.
const maxTitle = 245

func (w Wanted) check(kind GitHostKind) error {
	if err := w.Selector.check(); err != nil {
		return err
	}
	switch {
	case strings.TrimSpace(w.Title) == "":
		return errors.New("the pull request's title is empty")
	case len(w.Body) > kind.MaxBody:
		return fmt.Errorf("the pull request's body is longer than %d bytes", kind.MaxBody)
	case strings.Contains(w.Body, markBegin):
		return errors.New("the pull request's body has an assignment's mark in it; remove the mark")
	}
	return w.RequestOptions.check(kind)
}

func (o RequestOptions) check(kind GitHostKind) error {
	if !kind.Labels && len(o.Labels) > 0 {
		return fmt.Errorf("pull requests of %s have no labels; remove the labels", kind.Title)
	}
	for _, label := range o.Labels {
		if strings.TrimSpace(label) != label || label == "" || strings.ContainsAny(label, ",\n\r") {
			return fmt.Errorf("label %q is empty, begins or ends with a space, or has a comma or a line break", label)
		}
	}
	for _, reviewer := range o.Reviewers {
		if !kind.isReviewer(reviewer) {
			return fmt.Errorf("reviewer %q is not %s", reviewer, kind.Reviewers)
		}
	}
	return kind.checkMergeMode(o.Merge)
}

func (k GitHostKind) checkMergeMode(mode MergeMode) error {
	if mode == WhenChecksSucceed && !k.AutoMerge {
		return fmt.Errorf(`the API of %s cannot turn on auto-merge: set merge to %q, or to "none" and let people merge`, k.Title, Now)
	}
	return nil
}

// userOrTeam describes isUserOrTeam.
const userOrTeam = "a username or organization/team"

func isUserOrTeam(reviewer string) bool {
	organization, team, isTeam := strings.Cut(reviewer, "/")
	return segmentPattern.MatchString(organization) && (!isTeam || segmentPattern.MatchString(team))
}

// cleanTitle returns one line that every Git host accepts.
func (w Wanted) cleanTitle() string {
	return truncate(strings.ToValidUTF8(strings.Join(strings.Fields(w.Title), " "), ""), maxTitle)
}

// draftPattern matches drafts on GitLab, and on Gitea by default.
var draftPattern = regexp.MustCompile(`^\s*(?i:(?:draft|wip):|\[(?:draft|wip)\]|\(draft\))`)

// titleFor returns the new title of an open request. A draft stays a draft.
func (w Wanted) titleFor(r *request) string {
	title := w.cleanTitle()
	if mark := draftPattern.FindString(r.title); r.draft && mark != "" && !draftPattern.MatchString(title) {
		return strings.TrimSpace(mark) + " " + title
	}
	return title
}

func (w Wanted) markedBody() string {
	return markOf(w.Owner) + "\n\n" + strings.TrimSpace(w.Body) + "\n"
}

// isSameText compares sent text with stored text. Some Git hosts trim it, and browsers send other line ends.
func isSameText(a, b string) bool {
	plain := func(text string) string { return strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n")) }
	return plain(a) == plain(b)
}
