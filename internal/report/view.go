package report

import (
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/verdict"
)

// How many entries of a list the page shows outside of the matrix.
const (
	shownRows       = 200
	shownNames      = 1000
	shownHosts      = 20
	shownViolations = 100
	shownCommits    = 10
	shownChanges    = 50
)

// view is a page as its template sees it.
type view struct {
	*Page
	summary

	Style                 template.CSS
	Script, Data          template.JS
	Listing               template.HTML
	StyleHash, ScriptHash string
}

// Tip is the beginning of the tip's id.
func (v *view) Tip() string { return short(v.Commit) }

// At is the time of the evidence.
func (v *view) At() string { return moment(v.Time) }

// Number writes a number for people.
func (v *view) Number(n int) string { return number(n) }

// Count writes a number with its noun.
func (v *view) Count(n int, noun string) string { return counted(n, noun) }

// Short is the beginning of an id.
func (v *view) Short(id string) string { return short(id) }

// Moment writes a time.
func (v *view) Moment(t time.Time) string { return moment(t) }

// Ago says how long before the evidence a time was.
func (v *view) Ago(t time.Time) string { return ago(t, v.Time) }

// Grade is a score as a word.
func (v *view) Grade(score *Score) string { return v.grade(score) }

// Name is a verdict as a word.
func (v *view) Name(of verdict.Verdict) string { return verdictName(of) }

// IsVerdict says that a text is the name of a verdict.
func (v *view) IsVerdict(name string) bool {
	return name != "" && slices.Contains(verdicts, verdict.Verdict(name))
}

// tile is a count of assignments by verdict.
type tile struct {
	Verdict string
	Count   int
	Percent string
	// From is where its part of a bar of length 100 begins, and Width the length of that part.
	From, Width string
}

// Tiles count the assignments by verdict, the worst first. "No verdict" is left out where all have one.
func (v *view) Tiles() []tile { return tiles(v.assignments, len(v.Assignments)) }

// ClusterTiles count the clusters likewise.
func (v *view) ClusterTiles() []tile { return tiles(v.clusters, len(v.Clusters)) }

func tiles(counts [6]int, all int) []tile {
	var list []tile
	from := 0.0
	for i, verdict := range verdicts {
		if verdict == "" && counts[i] == 0 {
			continue
		}
		width := share(counts[i], all)
		list = append(list, tile{verdictName(verdict), counts[i], percent(counts[i], all), decimal(from), decimal(width)})
		from += width
	}
	return list
}

func share(part, whole int) float64 {
	if whole <= 0 {
		return 0
	}
	return min(100, max(0, 100*float64(part)/float64(whole)))
}

func decimal(f float64) string { return strconv.FormatFloat(f, 'f', 2, 64) }

// verdictName is a verdict as a word. The style sheet has a class of the same name.
func verdictName(v verdict.Verdict) string {
	switch {
	case v == "":
		return "none"
	case slices.Contains(verdicts, v):
		return string(v)
	}
	return string(verdict.Unknown)
}

// Pending are assignments that are not deployed as they are wanted.
func (v *view) Pending() int { return v.added + v.changed + v.removed }

// New counts those that the branch does not have yet.
func (v *view) New() int { return v.added }

// Changed counts those that the branch has with other content.
func (v *view) Changed() int { return v.changed }

// Removed counts those that are being removed.
func (v *view) Removed() int { return v.removed }

// Waiting counts those that wait for something.
func (v *view) Waiting() int { return v.waiting }

// Broken counts the violations of enforced rules.
func (v *view) Broken() int { return v.violations }

// Informed counts the violations of rules that only inform.
func (v *view) Informed() int { return v.informed }

// Unassigned counts all that its section lists.
func (v *view) Unassigned() int {
	return len(v.Unscheduled) + len(v.IdleHosts) + len(v.IdlePolicies) + len(v.Excluded)
}

// Halted counts the rollouts that have halted.
func (v *view) Halted() int {
	n := 0
	for i := range v.Rollouts {
		n += oneIf(v.Rollouts[i].Failed)
	}
	return n
}

// track is a rollout with the picture of its stages.
type track struct {
	*Rollout
	Steps []step
	// Share is the length of the bar of hosts that have it, of 100.
	Share string
}

// step is a stage of a rollout.
type step struct {
	Number int
	// State is "done", "now", "failed" or "next".
	State string
	// X is the position of its sign, and Before that of the sign before it.
	X, Before int
}

// Tracks are the rollouts with their pictures, those that halt first.
func (v *view) Tracks() []track {
	list := make([]track, 0, len(v.Rollouts))
	for i := range v.Rollouts {
		r := &v.Rollouts[i]
		t := track{Rollout: r, Share: decimal(share(r.Done, r.Hosts))}
		for n := 1; n <= min(r.Stages, 12); n++ {
			state := "next"
			switch {
			case n < r.Stage:
				state = "done"
			case n == r.Stage && r.Failed:
				state = "failed"
			case n == r.Stage:
				state = "now"
			}
			t.Steps = append(t.Steps, step{n, state, 14 + (n-1)*40, 14 + (n-2)*40})
		}
		list = append(list, t)
	}
	slices.SortStableFunc(list, func(a, b track) int { return oneIf(b.Failed) - oneIf(a.Failed) })
	return list
}

// Width is that of the picture.
func (t track) Width() int { return max(28, len(t.Steps)*40-12) }

// Worst are the hosts with the lowest scores, without those whose score is good.
func (v *view) Worst() []*Host {
	var hosts []*Host
	for i := range v.Hosts {
		if score := v.Hosts[i].Health; score != nil && v.grade(score) != "good" {
			hosts = append(hosts, &v.Hosts[i])
		}
	}
	slices.SortStableFunc(hosts, func(a, b *Host) int { return a.Health.Value - b.Health.Value })
	return first(hosts, shownHosts)
}

// NotReady are the clusters that are not ready.
func (v *view) NotReady() []*Cluster { return notReady(v.Clusters) }

// Shown is the part of a list that the page shows.
func (v *view) Shown(list any) (any, error) {
	switch all := list.(type) {
	case []*Cluster:
		return first(all, shownRows), nil
	case []track:
		return first(all, shownRows), nil
	case []Promotion:
		return first(all, shownRows), nil
	case []Rule:
		return first(all, shownRows), nil
	case []Unscheduled:
		return first(all, shownRows), nil
	case []Idle:
		return first(all, shownRows), nil
	case []Excluded:
		return first(all, shownRows), nil
	case []Commit:
		return first(all, shownRows), nil
	case []Region:
		return first(all, shownNames), nil
	case []string:
		return first(all, shownNames), nil
	case []Change:
		return first(all, shownChanges), nil
	}
	return nil, fmt.Errorf("no bound for a %T", list)
}

func first[T any](list []T, most int) []T { return list[:min(len(list), most)] }

// More is how many entries of a list the page does not show.
func (v *view) More(all, most int) int { return max(0, all-most) }

// Rows is how many entries of a table the page shows.
func (v *view) Rows() int { return shownRows }

// Names is how many names it shows.
func (v *view) Names() int { return shownNames }

// ViolationsOf are the violations of a rule that the page shows.
func (v *view) ViolationsOf(rule Rule) []Violation {
	return first(rule.Violations, shownViolations)
}

// BrokenOf is how many objects violate a rule.
func (v *view) BrokenOf(rule Rule) int { return rule.broken() }

// MoreOf is how many of them are not shown.
func (v *view) MoreOf(rule Rule) int { return rule.broken() - len(v.ViolationsOf(rule)) }

// Newest are the commits that the page shows at once.
func (v *view) Newest() []Commit { return first(v.History, shownCommits) }

// Older are the commits that the page shows when the list is opened.
func (v *view) Older() []Commit { return v.History[min(len(v.History), shownCommits):] }

// commitView is a commit with what writes its parts.
type commitView struct {
	*Commit
	View *view
}

// CommitView is a commit for the template of commits.
func (v *view) CommitView(c Commit) commitView { return commitView{&c, v} }

// MoreChanges is how many changes of a commit are not shown.
func (v *view) MoreChanges(c *Commit) int { return max(0, c.Count-min(len(c.Changes), shownChanges)) }

// ScoreView is a score with its grade.
func (v *view) ScoreView(score *Score) []any { return []any{score, v.grade(score)} }
