package report

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"reflect"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/constraint"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/health"
)

// The scripts are one script, in this order.
var (
	//go:embed assets/page.html
	pageHTML string
	//go:embed assets/page.css
	pageCSS string
	//go:embed assets/data.js
	dataScript string
	//go:embed assets/grid.js
	gridScript string
	//go:embed assets/detail.js
	detailScript string
	//go:embed assets/page.js
	pageScript string
)

var pageTemplate = template.Must(template.New("page").Funcs(functions).Parse(pageHTML))

// HTML returns one HTML file in UTF-8 that loads nothing, by its content security policy, and is readable without scripts. A page
// over 8 MiB omits values of snapshots. An error is a bug in this package.
func HTML(p *Page) ([]byte, error) {
	rows := listing(p)
	encoded, err := encode(p, everything)
	for detail := withoutTexts; err == nil && detail >= withoutValues && len(encoded)+len(rows)+comparisonBytes(p) > dataBytes; detail-- {
		encoded, err = encode(p, detail)
	}
	if err != nil {
		return nil, err
	}
	script := dataScript + gridScript + detailScript + pageScript
	var b bytes.Buffer
	b.Grow(len(encoded) + len(rows) + 1<<18)
	err = pageTemplate.Execute(&b, &view{
		Page:       p,
		Style:      template.CSS(pageCSS),
		Script:     template.JS(script),
		Data:       template.JS(encoded),
		Listing:    rows,
		StyleHash:  hash(pageCSS),
		ScriptHash: hash(script),
		Counts:     p.Count(),
	})
	if err != nil {
		return nil, err
	}
	return visible(b.Bytes()), nil
}

// dataBytes keeps the whole page below 8 MiB.
const dataBytes = 7<<20 + 1<<18

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// visible replaces invisible characters and invalid UTF-8.
func visible(text []byte) []byte {
	return bytes.Map(func(r rune) rune {
		if ' ' <= r && r <= '~' { // nearly all of a page
			return r
		}
		if r != '\n' && (r == '\u2028' || r == '\u2029' || isHidden(r)) {
			return utf8.RuneError
		}
		return r
	}, text)
}

// The page limits lists, except in the matrix.
const (
	shownRows       = 200
	shownNames      = 1000
	shownHosts      = 20
	shownViolations = 100
	shownCommits    = 10
	shownChanges    = 50
)

// view is a page for its template.
type view struct {
	*Page
	Counts

	Style                 template.CSS
	Script, Data          template.JS
	Listing               template.HTML
	StyleHash, ScriptHash string
}

func (v *view) Ago(t time.Time) string { return ago(t, v.Time) }

type tile struct {
	Verdict string
	Count   int
	Percent string
	// From and Width are its part of a bar of length 100.
	From, Width string
}

// Tiles shows "none" only if it occurs.
func (v *view) Tiles() []tile { return tiles(v.assignments, len(v.Assignments)) }

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

// verdictName returns a class of the style sheet.
func verdictName(v verdict.Verdict) string {
	switch {
	case v == "":
		return "none"
	case slices.Contains(verdicts, v):
		return string(v)
	}
	return string(verdict.Unknown)
}

func (v *view) Pending() int { return v.New + v.Changed + v.Removed }

func (v *view) Unassigned() int {
	return len(v.Unscheduled) + len(v.IdleHosts) + len(v.IdlePolicies) + len(v.Excluded)
}

func (v *view) Halted() int {
	n := 0
	for i := range v.Rollouts {
		n += oneIf(v.Rollouts[i].IsHalted())
	}
	return n
}

// track is a rollout with a picture of its stages.
type track struct {
	*rollout.Progress
	Steps []step
	// Share is a length, of 100.
	Share string
}

type step struct {
	Number int
	// State is "done", "now", "failed" or "next".
	State string
	// X is the position, and Before that of the previous step.
	X, Before int
}

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

func (t track) Width() int { return max(28, len(t.Steps)*40-12) }

// Worst returns hosts that are not good.
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

func detail(part health.Part) string {
	text := fmt.Sprintf("%d of %d assignments on clusters", part.Count, part.Of)
	if part.Verdict == verdict.Behind {
		text += fmt.Sprintf("; earns less the longer it is behind, for %d hours", int(health.BehindFor.Hours()))
	}
	return text
}

// NotReady returns the clusters with another verdict, worst first.
func (v *view) NotReady() []*Cluster {
	var found []*Cluster
	for i := range v.Clusters {
		if is := v.Clusters[i].Verdict; is != verdict.Ready && is != "" {
			found = append(found, &v.Clusters[i])
		}
	}
	slices.SortStableFunc(found, func(a, b *Cluster) int { return cmp.Compare(rank(a.Verdict), rank(b.Verdict)) })
	return found
}

var functions = template.FuncMap{
	"broken": func(rule constraint.RuleResult) int { return broken(&rule) }, "number": number, "count": counted, "short": short,
	"moment": moment, "verdict": verdictName, "shown": shown, "detail": detail, "values": valuesText,
	"more": func(all int, list any) int { return all - reflect.ValueOf(list).Len() },
}

// bounds limits lists by type; the default is shownRows.
var bounds = map[reflect.Type]int{
	reflect.TypeFor[Region](): shownNames, reflect.TypeFor[string](): shownNames,
	reflect.TypeFor[constraint.RuleViolation](): shownViolations, reflect.TypeFor[gitops.HistoryChange](): shownChanges,
}

func shown(list any) any {
	return firstOf(list, cmp.Or(bounds[reflect.TypeOf(list).Elem()], shownRows))
}

func firstOf(list any, most int) any {
	all := reflect.ValueOf(list)
	return all.Slice(0, min(all.Len(), most)).Interface()
}

func first[T any](list []T, most int) []T { return list[:min(len(list), most)] }

func (v *view) Newest() []gitops.HistoryCommit { return first(v.History.Commits, shownCommits) }

func (v *view) Older() []gitops.HistoryCommit { return v.History.Commits[len(v.Newest()):] }

// commitView is a commit for its template.
type commitView struct {
	gitops.HistoryCommit
	View *view
}

// CommitView lists each deployment target once before it repeats any.
func (v *view) CommitView(c gitops.HistoryCommit) commitView {
	var once, repeated []gitops.HistoryChange
	seen := map[string]bool{}
	for _, change := range c.Changes {
		if seen[change.DeploymentTarget] {
			repeated = append(repeated, change)
			continue
		}
		seen[change.DeploymentTarget] = true
		once = append(once, change)
	}
	c.Changes = slices.Concat(once, repeated)
	return commitView{c, v}
}

func (v *view) ScoreView(score *health.Score) []any { return []any{score, v.Grade(score)} }
