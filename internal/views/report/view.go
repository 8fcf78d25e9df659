package report

import (
	"cmp"
	"fmt"
	"html/template"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/constraint"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/health"
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

// Ago says how long before the evidence a time was.
func (v *view) Ago(t time.Time) string { return ago(t, v.Time) }

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
func (v *view) Pending() int { return v.New + v.Changed + v.Removed }

// Unassigned counts all that its section lists.
func (v *view) Unassigned() int {
	return len(v.Unscheduled) + len(v.IdleHosts) + len(v.IdlePolicies) + len(v.Excluded)
}

// Halted counts the rollouts that have halted.
func (v *view) Halted() int {
	n := 0
	for i := range v.Rollouts {
		n += oneIf(v.Rollouts[i].IsHalted())
	}
	return n
}

// track is a rollout with the picture of its stages.
type track struct {
	*rollout.Progress
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
		t := track{Progress: r, Share: decimal(share(r.HostsDone, r.Hosts))}
		for n := 1; n <= min(r.Stages, 12); n++ {
			state := "next"
			switch {
			case n < r.Stage:
				state = "done"
			case n == r.Stage && r.IsHalted():
				state = "failed"
			case n == r.Stage:
				state = "now"
			}
			t.Steps = append(t.Steps, step{n, state, 14 + (n-1)*40, 14 + (n-2)*40})
		}
		list = append(list, t)
	}
	slices.SortStableFunc(list, func(a, b track) int { return oneIf(b.IsHalted()) - oneIf(a.IsHalted()) })
	return list
}

// Width is that of the picture.
func (t track) Width() int { return max(28, len(t.Steps)*40-12) }

// Worst are the hosts with the lowest scores, without those whose score is good.
func (v *view) Worst() []*Host {
	var hosts []*Host
	for i := range v.Hosts {
		if score := v.Hosts[i].Health; score != nil && v.Grade(score) != health.Good {
			hosts = append(hosts, &v.Hosts[i])
		}
	}
	slices.SortStableFunc(hosts, func(a, b *Host) int { return a.Health.Value - b.Health.Value })
	return first(hosts, shownHosts)
}

// detail says in words what a part of a score is made of.
func detail(part health.Part) string {
	text := fmt.Sprintf("%d of %d assignments on clusters", part.Count, part.Of)
	if part.Verdict == verdict.Behind {
		text += fmt.Sprintf("; earns less the longer it is behind, for %d hours", int(health.BehindFor.Hours()))
	}
	return text
}

// NotReady are the clusters that are not ready.
func (v *view) NotReady() []*Cluster { return notReady(v.Clusters) }

// functions are those that the template of the page calls.
var functions = template.FuncMap{
	"broken": func(rule constraint.RuleResult) int { return broken(&rule) }, "number": number, "count": counted, "short": short, "moment": moment, "verdict": verdictName, "shown": shown, "detail": detail,
	"more": func(all int, list any) int { return all - reflect.ValueOf(list).Len() },
}

// bounds are how many entries of a list the page shows, by what they are. Of others it shows shownRows.
var bounds = map[reflect.Type]int{
	reflect.TypeFor[Region](): shownNames, reflect.TypeFor[string](): shownNames, reflect.TypeFor[constraint.RuleViolation](): shownViolations, reflect.TypeFor[Change](): shownChanges,
}

// shown is the part of a list that the page shows.
func shown(list any) any {
	all := reflect.ValueOf(list)
	return all.Slice(0, min(all.Len(), cmp.Or(bounds[all.Type().Elem()], shownRows))).Interface()
}

func first[T any](list []T, most int) []T { return list[:min(len(list), most)] }

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

// ScoreView is a score with its grade.
func (v *view) ScoreView(score *health.Score) []any { return []any{score, v.Grade(score)} }
