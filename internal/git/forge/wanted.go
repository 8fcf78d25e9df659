package forge

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// MaxBody limits a body in bytes on most Git hosts; see GitHostKind.MaxBody. GitHub accepts 65,536 characters, others more.
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
	return markBegin + w.Owner + markEnd + "\n\n" + strings.TrimSpace(w.Body) + "\n"
}

// isSameText compares sent text with stored text. Some Git hosts trim it, and browsers send other line ends.
func isSameText(a, b string) bool {
	plain := func(text string) string { return strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n")) }
	return plain(a) == plain(b)
}

// maxCell is in bytes; a Kubernetes label has at most 63.
const maxCell = 200

// Body renders changes as Markdown: their number, and a sorted table, of at most limit bytes, at least 1,000, with the number
// of omitted changes. Names are inline code, and so no markup, mention, reference or command.
func Body(changes []folder.Change, limit int) string {
	if len(changes) == 0 {
		return "No changes.\n"
	}
	changes = slices.Clone(changes)
	slices.SortFunc(changes, func(a, b folder.Change) int { return a.Compare(b.Key) })
	hosts := map[string]bool{}
	for _, change := range changes {
		hosts[change.Host] = true
	}
	var b strings.Builder
	fmt.Fprintf(
		&b,
		"%s on %s: %s.\n",
		wording.Count(len(changes), "deployment target", "deployment targets"),
		wording.Count(len(hosts), "host", "hosts"),
		tally(changes),
	)
	b.WriteString("\n| host | deployment target | what | configuration |\n|---|---|---|---|\n")
	for i, change := range changes {
		what := string(change.Action)
		if change.From != "" {
			what += ", from " + code(change.From)
		}
		row := fmt.Sprintf("| %s | %s | %s | %s |\n", code(change.Host), code(change.DeploymentTarget), what, versions(change))
		rest := fmt.Sprintf("\nAnd %d more: %s.\n", len(changes)-i, tally(changes[i:]))
		if b.Len()+len(row)+len(rest)+64 > limit { // 64: the next rest may be longer
			b.WriteString(rest)
			break
		}
		b.WriteString(row)
	}
	return b.String()
}

func versions(c folder.Change) string {
	switch {
	case c.Before == c.After:
		return code(c.After)
	case c.Before == "":
		return "→ " + code(c.After)
	case c.After == "":
		return code(c.Before) + " →"
	}
	return code(c.Before) + " → " + code(c.After)
}

func tally(changes []folder.Change) string {
	return strings.Join(folder.CountChanges(changes), ", ")
}

// code returns inline code for a cell of a table. Characters that would end the code or the cell become visible escapes.
func code(name string) string {
	if name = wording.Cut(wording.Line(name), maxCell); name == "" {
		return ""
	}
	return "`" + cellEscapes.Replace(name) + "`"
}

var cellEscapes = strings.NewReplacer("`", `\x60`, "|", `\x7c`, `\`, `\x5c`)

// The mark is an HTML comment on a line of the body, which only Bitbucket shows.
const (
	markBegin = "<!-- flotilla-assignment: "
	markEnd   = " -->"
)

const maxOwner = 500

// ownerOf reads the first mark, which Ensure writes. Others may have written the rest.
func ownerOf(body string) string {
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
	case strings.ContainsAny(s.Head, ":"): // another account's branch
		return fmt.Errorf("head branch %q has a colon; use another name", s.Head)
	}
	return nil
}
