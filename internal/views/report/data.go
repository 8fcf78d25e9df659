package report

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/numbering"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/health"
)

// data is the page for its script. Each text occurs once in Strings, and objects are columns of numbers, which are indexes of
// Strings or of other tables. Strings[0] is "". Columns of zeros are omitted.
type data struct {
	// Epoch and all times are in seconds; times count from Epoch, and 0 means none.
	Epoch int64  `json:"epoch"`
	Time  int    `json:"time"`
	Good  int    `json:"good"`
	Poor  int    `json:"poor"`
	Title string `json:"title"`
	// Detail is the detail of the snapshots.
	Detail int `json:"detail"`

	Strings []string `json:"strings"`
	// Sets has lists of texts, such as labels "key=value". The first is empty.
	Sets []column `json:"sets"`
	// Values has pointer, container, set of overridden containers, set of schemas and text, without trailing zeros: with them,
	// the page of the reference fleet has no room for its values.
	Values []column `json:"values"`

	Hosts       map[string]column `json:"hosts"`
	Targets     map[string]column `json:"targets"`
	Assignments map[string]column `json:"assignments"`
	Trees       []string          `json:"trees"`
	// Runs has version, revision, chart, version of the application and images. Running has pairs of an index of Runs and a
	// number of clusters, and at the end the number of clusters with other runs. The first list is empty.
	Runs     [][5]int          `json:"runs,omitempty"`
	Running  []column          `json:"running"`
	Counts   [][5]int          `json:"counts"`
	Clusters map[string]column `json:"clusters"`
	Links    *linkData         `json:"links,omitempty"`
	// Snapshots has version, 1 if there is a schema, and indexes of values. The first means none.
	Snapshots []column `json:"snapshots"`
}

type column []int

func withoutLastZeros(numbers column) column {
	for len(numbers) > 0 && numbers[len(numbers)-1] == 0 {
		numbers = numbers[:len(numbers)-1]
	}
	return numbers
}

// The detail of snapshots.
const (
	withoutValues = iota // only versions
	withoutTexts         // only the origin of each value
	everything
)

// encode returns JSON that is safe within an HTML element.
func encode(p *Page, detail int) ([]byte, error) {
	e := &encoder{detail: detail, epoch: earliest(p)}
	e.text("")
	e.set(nil)
	e.trees.Number("")
	e.run(nil)
	e.snapshots.Number(nil)
	e.d.Epoch = e.epoch.Unix()
	e.d.Time = e.time(p.Time)
	e.d.Good, e.d.Poor = p.bounds().Good, p.bounds().Poor
	e.d.Title = clean(p.Title)
	e.d.Detail = detail
	e.d.Links = linksOf(p)
	e.objects(p)
	e.assignments(p)
	e.d.Snapshots = append(e.d.Snapshots, column{})
	for _, s := range e.snapshots.All()[1:] {
		e.snapshot(s)
	}
	e.d.Runs = e.runs.All()
	e.d.Strings, e.d.Trees, e.d.Counts = e.strings.All(), e.trees.All(), e.counts.All()
	e.d.Sets, e.d.Running, e.d.Values = e.sets.columns, e.running.columns, []column{}
	for _, value := range e.values.All() {
		e.d.Values = append(e.d.Values, withoutLastZeros(value[:]))
	}
	return json.Marshal(&e.d)
}

type encoder struct {
	d         data
	detail    int
	strings   numbering.Numbers[string]
	sets      lists
	values    numbering.Numbers[[5]int]
	trees     numbering.Numbers[string]
	counts    numbering.Numbers[[5]int]
	snapshots numbering.Numbers[*Snapshot]
	runs      numbering.Numbers[[5]int]
	running   lists
	epoch     time.Time
}

// lists numbers equal lists.
type lists struct {
	numbers numbering.Numbers[string]
	columns []column
}

func (l *lists) number(list column) int {
	var key []byte
	for _, n := range list {
		key = append(strconv.AppendInt(key, int64(n), 36), ' ')
	}
	at := l.numbers.Number(string(key))
	if at == len(l.columns) {
		l.columns = append(l.columns, list)
	}
	return at
}

func (e *encoder) text(text string) int { return e.strings.Number(clean(text)) }

func (e *encoder) set(texts []string) int {
	set := make(column, 0, len(texts))
	for _, text := range texts {
		set = append(set, e.text(text))
	}
	return e.sets.number(set)
}

// maxRuns limits the runs of one assignment.
const maxRuns = 20

func (e *encoder) run(runs []Run) int {
	list, rest := make(column, 0, 2*len(runs)), 0
	for i := range runs {
		r := &runs[i]
		if i >= maxRuns {
			rest += r.Clusters
			continue
		}
		of := e.runs.Number([5]int{e.text(r.Version), e.text(r.Revision), e.text(r.Chart), e.text(r.AppVersion), e.text(r.Images)})
		list = append(list, of, r.Clusters)
	}
	if rest > 0 {
		list = append(list, rest)
	}
	return e.running.number(list)
}

func (e *encoder) time(t time.Time) int {
	if t.IsZero() {
		return 0
	}
	return int(t.Unix() - e.epoch.Unix())
}

// earliest is one second before all times.
func earliest(p *Page) time.Time {
	first := p.Time
	see := func(t time.Time) {
		if !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	for i := range p.Assignments {
		see(p.Assignments[i].Since)
		see(p.Assignments[i].Changed)
	}
	for i := range p.Clusters {
		see(p.Clusters[i].Since)
		see(p.Clusters[i].BehindSince)
	}
	if first.IsZero() {
		return time.Unix(0, 0)
	}
	return first.Add(-time.Second)
}

func oneIf(is bool) int {
	if is {
		return 1
	}
	return 0
}

// states has the order of the script.
var states = []TargetState{"", UpToDate, New, Changed, Removed}

type columns map[string]column

func (c columns) add(name string, n int) { c[name] = append(c[name], n) }

// used omits columns of zeros.
func (c columns) used() map[string]column {
	maps.DeleteFunc(c, func(_ string, numbers column) bool {
		return !slices.ContainsFunc(numbers, func(n int) bool { return n != 0 })
	})
	return c
}

func (e *encoder) objects(p *Page) {
	hosts, targets, clusters := columns{}, columns{}, columns{}
	for _, h := range typesFirst(p.Hosts) {
		hosts.add("name", e.text(h.Name))
		hosts.add("cluster", oneIf(h.IsCluster))
		hosts.add("region", e.text(h.Region))
		hosts.add("clusters", h.Clusters)
		hosts.add("labels", e.set(labelTexts(h.Labels)))
		score := 0 // no score; otherwise its value plus 1
		if h.Health != nil {
			score = h.Health.Value + 1
		}
		hosts.add("score", score)
		hosts.add("parts", e.set(partTexts(h.Health)))
	}
	for i := range p.Targets {
		t := &p.Targets[i]
		targets.add("name", e.text(t.Name))
		targets.add("workload", e.text(t.Workload))
		targets.add("workspace", e.text(t.Workspace))
		targets.add("version", e.text(t.Version))
		targets.add("labels", e.set(labelTexts(t.Labels)))
	}
	for i := range p.Clusters {
		c := &p.Clusters[i]
		clusters.add("name", e.text(c.Name))
		clusters.add("type", e.text(c.Type))
		clusters.add("verdict", rank(c.Verdict))
		clusters.add("since", e.time(c.Since))
		clusters.add("message", e.text(c.Message))
		clusters.add("commit", e.trees.Number(short(clean(c.Commit))))
		clusters.add("behind", c.Behind+1) // 0 if unknown
	}
	e.d.Hosts, e.d.Targets, e.d.Clusters = hosts, targets, clusters.used()
}

func partTexts(score *health.Score) []string {
	if score == nil {
		return nil
	}
	var parts []string
	for _, part := range score.Parts {
		parts = append(parts, string(part.Verdict)+": "+strconv.Itoa(part.Percent)+" %, at "+strconv.Itoa(part.Points)+" points")
	}
	return parts
}

// typesFirst lists cluster types before clusters.
func typesFirst(hosts []Host) []*Host {
	ordered := make([]*Host, len(hosts))
	for i := range hosts {
		ordered[i] = &hosts[i]
	}
	slices.SortStableFunc(ordered, func(a, b *Host) int {
		return oneIf(a.IsCluster) - oneIf(b.IsCluster)
	})
	return ordered
}

func (e *encoder) assignments(p *Page) {
	hosts, targets := map[string]int{}, map[string]int{}
	for i, h := range typesFirst(p.Hosts) {
		hosts[h.Name] = i
	}
	for i := range p.Targets {
		targets[p.Targets[i].Name] = i
	}
	// The fleet may lack the host or target of a removed folder.
	find := func(of map[string]int, name string, objects columns) int {
		at, ok := of[name]
		if !ok {
			at = len(objects["name"])
			of[name] = at
			for attribute := range objects {
				objects.add(attribute, 0)
			}
			if objects["name"] == nil {
				objects.add("name", 0)
			}
			objects["name"][at] = e.text(name)
		}
		return at
	}
	all := columns{}
	for i := range p.Assignments {
		a := &p.Assignments[i]
		all.add("host", find(hosts, a.Host, e.d.Hosts))
		all.add("target", find(targets, a.Target, e.d.Targets))
		all.add("namespace", e.text(a.Namespace))
		all.add("policies", e.set(a.Policies))
		all.add("verdict", rank(a.Verdict))
		all.add("since", e.time(a.Since))
		all.add("message", e.text(a.Message))
		all.add("counts", e.counts.Number(a.Clusters))
		all.add("state", max(0, slices.Index(states, a.State)))
		all.add("tree", e.trees.Number(short(clean(a.Tree))))
		if a.Deployed != a.Tree {
			all.add("deployed", e.trees.Number(short(clean(a.Deployed))))
		} else {
			all.add("deployed", 0)
		}
		all.add("commit", e.trees.Number(short(clean(a.Commit))))
		all.add("changed", e.time(a.Changed))
		all.add("version", e.text(a.Version))
		all.add("source", e.text(a.Source))
		all.add("running", e.run(a.Running))
		all.add("waits", e.text(a.WaitsFor))
		all.add("snapshot", e.snapshots.Number(a.Snapshot))
	}
	e.d.Hosts, e.d.Targets, e.d.Assignments = columns(e.d.Hosts).used(), columns(e.d.Targets).used(), all.used()
}

func (e *encoder) snapshot(s *Snapshot) {
	written := append(make(column, 0, len(s.Values)+2), e.text(s.Version), oneIf(s.Checked))
	if e.detail > withoutValues {
		for i := range s.Values {
			v := &s.Values[i]
			text := 0
			if e.detail == everything {
				text = e.text(v.Text)
			}
			written = append(written, e.values.Number([5]int{e.text(v.Pointer), e.text(v.Container), e.set(v.Overridden), e.set(v.Schemas), text}))
		}
	}
	e.d.Snapshots = append(e.d.Snapshots, written)
}

// linkData has pairs of a title and a pattern.
type linkData struct {
	Environment string      `json:"environment"`
	Path        string      `json:"path"`
	Assignments [][2]string `json:"assignments"`
	Clusters    [][2]string `json:"clusters"`
}

func linksOf(p *Page) *linkData {
	if len(p.Links.Assignments)+len(p.Links.Clusters) == 0 {
		return nil
	}
	pairs := func(patterns map[string]string) [][2]string {
		made := [][2]string{}
		for _, title := range slices.Sorted(maps.Keys(patterns)) {
			made = append(made, [2]string{clean(title), clean(patterns[title])})
		}
		return made
	}
	return &linkData{clean(p.Environment), clean(p.Repository.Path), pairs(p.Links.Assignments), pairs(p.Links.Clusters)}
}
