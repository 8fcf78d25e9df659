// Package metrics writes the status of a fleet as OpenMetrics text for Prometheus. It is pure.
//
// The text has only gauges without timestamps, which the Pushgateway and node_exporter's textfile collector accept, too.
package metrics

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/health"
)

// Limit is the maximum number of series of a metric; further ones are summed.
const Limit = 2000

// commonLabels lists the labels of every metric.
var commonLabels = []string{"environment", "owner"}

// Input has everything that metrics depend on.
type Input struct {
	Result *observe.Observation
	// Asked reports whether there is feedback; without it there is no score.
	Asked bool
	// Wants has the assignments of the fleet. Folders to be removed have no score.
	Wants    map[string]bool
	Rollouts []rollout.Progress
}

// Metric describes a metric.
type Metric struct {
	Name string
	Unit string
	// Help has no quotes, backslashes or line breaks.
	Help string
	// Labels follow commonLabels.
	Labels []string
	// Summed lists the labels that remain over the limit; nil omits the series.
	Summed []string

	series func(*Input) []series // the most important first
}

type series struct {
	labels []string
	value  int64
}

// Metrics returns all metrics in order.
func Metrics() []Metric {
	return []Metric{
		{
			Name: "flotilla_evidence_timestamp_seconds", Unit: "seconds", Help: "When the clusters were asked.",
			series: func(in *Input) []series { return []series{{nil, in.Result.Time.Unix()}} },
		},
		{
			Name: "flotilla_clusters", Help: "Clusters of the fleet by verdict.", Labels: []string{"verdict"},
			series: clusters,
		},
		{
			Name: "flotilla_health_score", Help: "Health of the fleet, from 0 to 100; absent where no cluster was asked or nothing is deployed.",
			series: score,
		},
		{
			Name: "flotilla_commits_behind", Help: "Most commits by which the branch is ahead of what a cluster has applied, of any author; " +
				"absent where that is known of no cluster.",
			series: commitsBehind,
		},
		{
			Name: "flotilla_assignment_clusters", Help: "Clusters that an assignment is on, by the version that the branch has, the one that " +
				"runs, and verdict.",
			Labels: []string{"host", "deployment_target", "wanted_version", "running_version", "verdict"}, Summed: []string{"verdict"},
			series: assignments,
		},
		{
			Name: "flotilla_assignment_behind_since_timestamp_seconds", Unit: "seconds",
			Help:   "Since when a cluster has other content than the branch, of an assignment that is behind somewhere.",
			Labels: []string{"host", "deployment_target"},
			series: behindSince,
		},
		{
			Name: "flotilla_rollouts", Help: "Deployment targets whose change is under way, by stage.",
			Labels: []string{"stage", "stage_name", "state", "waits_for"}, Summed: []string{"state"},
			series: rollouts,
		},
		{
			Name: "flotilla_rollout_since_timestamp_seconds", Unit: "seconds", Help: "Since when the change of a deployment target is at its stage.",
			Labels: []string{"deployment_target", "stage", "stage_name", "state", "waits_for"},
			series: rolloutSince,
		},
	}
}

func clusters(in *Input) []series {
	counts := in.Result.Summary().ByVerdict
	var all []series
	for _, of := range verdict.All {
		all = append(all, series{[]string{string(of)}, int64(counts[of])})
	}
	return all
}

func score(in *Input) []series {
	if !in.Asked {
		return nil
	}
	var tally health.Tally
	each(in, func(c *observe.ClusterResult, a *observe.AssignmentResult) {
		if in.Wants[a.Key] {
			tally.Add(a.Verdict, health.Age(a.Status, in.Result.Time, cmp.Or(a.Commit, c.Commit)))
		}
	})
	score := tally.Score()
	if score == nil {
		return nil
	}
	return []series{{nil, int64(score.Value)}}
}

func commitsBehind(in *Input) []series {
	most := -1
	for i := range in.Result.Clusters {
		most = max(most, in.Result.Clusters[i].Behind)
	}
	if most < 0 {
		return nil
	}
	return []series{{nil, int64(most)}}
}

// assignments returns the worst verdicts first.
func assignments(in *Input) []series {
	counts := newGroups(sum)
	each(in, func(_ *observe.ClusterResult, a *observe.AssignmentResult) {
		counts.add(1, a.Folder.Host, a.Folder.DeploymentTarget, a.Folder.Wanted, cmp.Or(a.Running.Version, a.Running.Revision), string(a.Verdict))
	})
	slices.SortFunc(counts.all, func(a, b series) int {
		return cmp.Or(verdict.Compare(verdict.Verdict(a.labels[4]), verdict.Verdict(b.labels[4])), slices.Compare(a.labels, b.labels))
	})
	return counts.all
}

func behindSince(in *Input) []series {
	times := newGroups(least)
	each(in, func(_ *observe.ClusterResult, a *observe.AssignmentResult) {
		if a.Verdict == verdict.Behind {
			times.add(a.Since.Unix(), a.Folder.Host, a.Folder.DeploymentTarget)
		}
	})
	return times.byValue()
}

func each(in *Input, do func(*observe.ClusterResult, *observe.AssignmentResult)) {
	for i := range in.Result.Clusters {
		cluster := &in.Result.Clusters[i]
		for k := range cluster.Assignments {
			do(cluster, &cluster.Assignments[k])
		}
	}
}

func rollouts(in *Input) []series {
	counts := newGroups(sum)
	for i := range in.Rollouts {
		counts.add(1, place(&in.Rollouts[i])...)
	}
	slices.SortFunc(counts.all, func(a, b series) int { return slices.Compare(a.labels, b.labels) })
	return counts.all
}

// rolloutSince omits changes without a stage.
func rolloutSince(in *Input) []series {
	times := newGroups(least)
	for i := range in.Rollouts {
		if p := &in.Rollouts[i]; !p.Since.IsZero() {
			times.add(p.Since.Unix(), append([]string{p.DeploymentTarget}, place(p)...)...)
		}
	}
	return times.byValue()
}

func place(p *rollout.Progress) []string {
	stage := ""
	if p.Stages > 0 {
		stage = strconv.Itoa(p.Stage)
	}
	return []string{stage, p.StageName, string(p.Condition), string(p.WaitsFor)}
}

// groups joins series with the same labels.
type groups struct {
	all  []series
	join func(a, b int64) int64
	at   map[values]int
}

// values has the values of all labels of a metric; missing ones are empty.
type values [6]string

func sum(a, b int64) int64   { return a + b }
func least(a, b int64) int64 { return min(a, b) }

func newGroups(join func(a, b int64) int64) *groups {
	return &groups{join: join, at: map[values]int{}}
}

// add cuts labels to one line of 300 bytes, so that text from clusters cannot forge metrics.
func (g *groups) add(value int64, labels ...string) {
	var key values
	for i, label := range labels {
		key[i] = wording.OneLine(label)
	}
	if at, ok := g.at[key]; ok {
		g.all[at].value = g.join(g.all[at].value, value)
		return
	}
	g.at[key] = len(g.all)
	g.all = append(g.all, series{slices.Clone(key[:len(labels)]), value})
}

func (g *groups) byValue() []series {
	slices.SortFunc(g.all, func(a, b series) int {
		return cmp.Or(cmp.Compare(a.value, b.value), slices.Compare(a.labels, b.labels))
	})
	return g.all
}

// Omitted counts the series of other metrics over [Limit].
var Omitted = Metric{
	Name: "flotilla_omitted_series", Help: "Series of a metric that are over the limit, and were " +
		"summed or left out.", Labels: []string{"metric"},
}

// Text returns OpenMetrics text.
func Text(in Input) string {
	w := &writer{
		common: [][2]string{
			{commonLabels[0], wording.OneLine(in.Result.About.Environment)}, {commonLabels[1], wording.OneLine(in.Result.About.Owner)},
		},
	}
	var omitted []series
	for _, metric := range Metrics() {
		all := metric.series(&in)
		over := all[min(len(all), Limit):]
		w.metric(&metric, all[:len(all)-len(over)], metric.summed(over))
		omitted = append(omitted, series{[]string{metric.Name}, int64(len(over))})
	}
	w.metric(&Omitted, omitted, nil)
	w.WriteString("# EOF\n")
	return w.String()
}

// summed sums series over the limit.
func (m *Metric) summed(over []series) []series {
	if m.Summed == nil {
		return nil
	}
	sums := newGroups(sum)
	labels := make([]string, len(m.Labels))
	for _, one := range over {
		for i, name := range m.Labels {
			if slices.Contains(m.Summed, name) {
				labels[i] = one.labels[i]
			}
		}
		sums.add(one.value, labels...)
	}
	return sums.all
}

type writer struct {
	strings.Builder
	common [][2]string
}

func (w *writer) metric(m *Metric, all, sums []series) {
	if len(all) == 0 {
		return
	}
	w.line("# TYPE ", m.Name, " gauge")
	if m.Unit != "" {
		w.line("# UNIT ", m.Name, " ", m.Unit)
	}
	w.line("# HELP ", m.Name, " ", m.Help)
	for _, some := range [][]series{all, sums} {
		for _, one := range some {
			w.series(m, one)
		}
	}
}

func (w *writer) line(parts ...string) {
	for _, part := range parts {
		w.WriteString(part)
	}
	w.WriteByte('\n')
}

var escaped = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

// series omits labels without a value, which means the same.
func (w *writer) series(m *Metric, one series) {
	w.WriteString(m.Name)
	w.WriteByte('{')
	for i, label := range w.common {
		if i > 0 {
			w.WriteByte(',')
		}
		w.label(label[0], label[1])
	}
	for i, value := range one.labels {
		if value != "" {
			w.WriteByte(',')
			w.label(m.Labels[i], value)
		}
	}
	w.line("} ", strconv.FormatInt(one.value, 10))
}

func (w *writer) label(name, value string) {
	w.WriteString(name)
	w.WriteString(`="`)
	_, _ = escaped.WriteString(&w.Builder, value) // a builder never fails
	w.WriteByte('"')
}
