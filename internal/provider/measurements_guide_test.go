package provider_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

const measurementsGuide = "rollouts.md.tmpl"

// measuredRollout is the configuration of the guide, with a stand-in for Prometheus.
type measuredRollout struct {
	*guideRollout
	figures [2][4]string // errors and samples of canary-1, europe-1, america-1 and asia-1
}

func newMeasuredRollout(t *testing.T) *measuredRollout {
	t.Helper()
	m := &measuredRollout{guideRollout: &guideRollout{
		t: t, world: newMemoryWorld(t, true), hcl: guideExample(t, measurementsGuide, "examples/rollouts/measurements/main.tf"),
		clock: &stoppedClock{now: time.Date(2026, 1, 11, 8, 0, 0, 0, time.UTC)},
	}}
	server := newPrometheusStandIn(t, func(query string) string {
		column, clusters := 0, []string{"canary-1", "europe-1", "america-1", "asia-1"}
		if !strings.Contains(query, "5..") {
			column = 1
		}
		var series []string
		for i, figure := range m.figures[column] {
			if figure != "" {
				series = append(series, fmt.Sprintf(`"cluster":%q`, clusters[i]), figure)
			}
		}
		return vectorResult(series...)
	})
	m.w = providertest.New(m.world.startAt(m.clock))
	m.hcl, _, _ = strings.Cut(m.hcl, "\noutput ")
	m.editHCL(`"gitops.git"`, strconv.Quote(m.world.spell("one", 0)), `"http://prometheus.example.com"`, strconv.Quote(server.URL),
		"[data.flotilla_compliance.prod.evidence, data.flotilla_measurements.prod.evidence]", `"what is read"`)
	m.setErrors("", "", "", "")
	return m
}

// setErrors sets the share of errors of 12,400 requests, or "" for no figures.
func (m *measuredRollout) setErrors(canary, europe, america, asia string) {
	m.figures = [2][4]string{{canary, europe, america, asia}}
	for i, errors := range m.figures[0] {
		if errors != "" {
			m.figures[1][i] = "12400"
		}
	}
}

// run applies after a pause, and expects versions of canary, europe, america and asia.
func (m *measuredRollout) run(pause time.Duration, want string) {
	m.t.Helper()
	m.clock.now = m.clock.now.Add(pause)
	module := moduleOf(m.t, m.hcl)
	var evidence []any
	for _, name := range []string{"flotilla_compliance", "flotilla_measurements"} {
		values, diags := m.w.ReadData(m.t.Context(), providertest.Configuration{}, name, module.Data["data."+name+".prod"])
		if diags.Err() != nil {
			m.t.Fatal(diags)
		}
		evidence = append(evidence, values["evidence"])
	}
	module.Resources[prodAssignment].Attributes["evidence"] = evidence
	plan, diags := m.w.Apply(m.t.Context(), module.Configuration)
	if diags.Err() != nil {
		m.t.Fatal(diags.Err())
	}
	m.planText = fmt.Sprint(prodAfter(plan)["changes"], prodAfter(plan)["rolling_out"], diags)
	if got := m.versions(); got != want {
		m.t.Fatalf("got versions %q, want %q: %s", got, want, m.planText)
	}
}

// deployToCanary brings version 1 to all hosts, and version 2 to the canary.
func (m *measuredRollout) deployToCanary() {
	m.t.Helper()
	m.run(0, "1 - - -")
	m.setErrors("0.4", "", "", "") // there is nothing to compare with yet
	m.run(31*time.Minute, "1 1 1 1")
	m.setErrors("0.2", "0.2", "0.2", "0.2")
	m.run(31*time.Minute, "1 1 1 1")
	m.setVersion("2")
	m.run(time.Hour, "2 1 1 1")
}

func TestGuideToMeasurementsComparesTheCanaryWithTheOthers(t *testing.T) {
	t.Parallel()
	m := newMeasuredRollout(t)
	m.deployToCanary()
	m.setErrors("0.9", "0.2", "0.2", "0.2")
	m.run(31*time.Minute, "2 1 1 1")
	line := guideLine(t, measurementsGuide, "waits for errors")
	_, figures, _ := strings.Cut(line, "waits for ")
	m.expectText("on 1 of 4 hosts: waits for " + figures)
	m.setErrors("3.9", "5", "5", "5") // an outage of a shared dependency
	m.run(10*time.Minute, "2 2 2 2")
}

func TestGuideToMeasurementsRollsBackFailures(t *testing.T) {
	t.Parallel()
	m := newMeasuredRollout(t)
	m.deployToCanary()
	m.setErrors("1.7", "0.2", "0.2", "0.2")
	m.run(10*time.Minute, "1 1 1 1")
	m.expectText("errors: 1.7 % (12400 samples) against 0.2 % on 3 clusters (fails where ")
}

func TestGuideToMeasurementsWaitsForSufficientFigures(t *testing.T) {
	t.Parallel()
	m := newMeasuredRollout(t)
	m.deployToCanary()
	m.setErrors("", "0.2", "0.2", "0.2")
	m.run(31*time.Minute, "2 1 1 1")
	m.expectText("errors: there is no figure")
	m.setErrors("0", "0.2", "0.2", "0.2")
	m.figures[1][0] = "1999"
	m.run(10*time.Minute, "2 1 1 1")
	m.expectText("errors: 0 % (1999 samples) against 0.2 % on 3 clusters (passes where ")
	m.figures[1][0] = "2000"
	m.run(10*time.Minute, "2 2 2 2")
}

func guideLine(t *testing.T, guide, part string) string {
	t.Helper()
	for line := range strings.Lines(guideText(t, guide)) {
		if strings.Contains(line, part) {
			return strings.TrimSpace(line)
		}
	}
	t.Fatalf("%s has no line with %q", guide, part)
	return ""
}
