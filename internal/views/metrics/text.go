package metrics

import (
	"slices"
	"strconv"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

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
		if len(all) > Limit {
			w.metric(&metric, all[:Limit], metric.summed(all[Limit:]))
		} else {
			w.metric(&metric, all, nil)
		}
		omitted = append(omitted, series{[]string{metric.Name}, int64(max(0, len(all)-Limit))})
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
