package evidence_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/evidence"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/prometheustest"
)

// recipe is the recommended check of the guide to measurements.
type recipe struct {
	query, samples string
	check          evidence.Check // without figures
}

func readRecipe(t *testing.T) recipe {
	t.Helper()
	checks := checksOf(t, "rollouts", "measurements", "main.tf")
	if len(checks) != 1 {
		t.Fatalf("the example has %d checks, want 1", len(checks))
	}
	check := checks[0]
	return recipe{
		query: check["prometheus"].AsValueMap()["query"].AsString(), samples: check["samples"].AsString(),
		check: evidence.Check{
			Name: check["name"].AsString(), Of: evidence.SubjectKind(check["of"].AsString()), Unit: check["unit"].AsString(),
			Pass: check["pass"].AsString(), Fail: check["fail"].AsString(),
		},
	}
}

// checksOf returns the checks of an example.
func checksOf(t *testing.T, example ...string) (checks []map[string]cty.Value) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{"..", "..", "..", "examples"}, example...)...))
	if err != nil {
		t.Fatal(err)
	}
	file, problems := hclsyntax.ParseConfig(text, "main.tf", hcl.InitialPos)
	if problems.HasErrors() {
		t.Fatal(problems)
	}
	for _, block := range file.Body.(*hclsyntax.Body).Blocks {
		if block.Type == "data" && block.Labels[0] == "flotilla_measurements" {
			all, problems := block.Body.Attributes["checks"].Expr.Value(nil)
			if problems.HasErrors() {
				t.Fatal(problems)
			}
			for _, check := range all.AsValueSlice() {
				checks = append(checks, check.AsValueMap())
			}
		}
	}
	return checks
}

// A cluster without failures has no series of failures. Without a figure, a rollout would wait for ever.
func TestAClusterWithoutFailuresHasAFigureInEveryExample(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	var text strings.Builder
	text.WriteString("# TYPE http_requests counter\n")
	for _, counter := range []struct {
		cluster, code string
		perMinute     int
	}{{"fails", "200", 98}, {"fails", "500", 2}, {"works", "200", 100}} {
		for minute := range 61 {
			fmt.Fprintf(
				&text,
				"http_requests_total{cluster=%[1]q,k8s_cluster=%[1]q,code=%[2]q} %[3]d %[4]d\n",
				counter.cluster,
				counter.code,
				counter.perMinute*minute,
				at.Add(time.Duration(minute-60)*time.Minute).Unix(),
			)
		}
	}
	text.WriteString("# EOF\n")
	file := filepath.Join(t.TempDir(), "series.txt")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	server := prometheustest.StartWithSeries(t, file)
	for _, example := range [][]string{{"rollouts", "measurements", "main.tf"}, {"data-sources", "flotilla_measurements", "data-source.tf"}} {
		check := checksOf(t, example...)[0]
		figures := map[string]string{}
		for _, sample := range server.QueryAt(t, check["prometheus"].AsValueMap()["query"].AsString(), at) {
			figures[sample.Labels["cluster"]+sample.Labels["k8s_cluster"]] = sample.Value
		}
		if figures["works"] != "0" || !strings.HasPrefix(figures["fails"], "2") {
			t.Errorf("%s: got figures %v", example, figures)
		}
	}
}

// seriesQuery evaluates a query and returns the values by cluster.
type seriesQuery func(t *testing.T, query string, at time.Time) map[string]float64

func newSeriesQuery(server *prometheustest.Prometheus) seriesQuery {
	return func(t *testing.T, query string, at time.Time) map[string]float64 {
		t.Helper()
		values := map[string]float64{}
		for _, sample := range server.QueryAt(t, query, at) {
			value, err := strconv.ParseFloat(sample.Value, 64)
			if err != nil {
				t.Fatal(err)
			}
			values[sample.Labels["cluster"]] = value
		}
		return values
	}
}

// lastRun is the time of the last run, in minutes after the change.
const lastRun = 50

// change is one change of a deployment target. Its first clusters are the canaries.
type change struct {
	name      string
	regresses bool
	clusters  []string
	at        time.Time
	outcome   string // "passed", "failed" or ""
}

// judge sets the outcome of all changes. It plays a run every ten minutes for fifty minutes. A change ends when it passes or fails on its
// canaries.
func (r recipe) judge(t *testing.T, changes []change, query seriesQuery) {
	t.Helper()
	settings, _, findings := rollout.Decode(map[string]any{"stages": []any{
		map[string]any{"name": "canary", "soak": "30m", "cluster_selector": map[string]any{"match_labels": map[string]any{"ring": "canary"}}},
	}})
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	byTime := map[time.Time][]*change{}
	for i := range changes {
		byTime[changes[i].at] = append(byTime[changes[i].at], &changes[i])
	}
	for at, simultaneous := range byTime {
		r.judgeFrom(t, at, simultaneous, settings, query)
	}
}

func (r recipe) judgeFrom(t *testing.T, at time.Time, changes []*change, settings *rollout.Settings, query seriesQuery) {
	t.Helper()
	in := rollout.StepInput{
		Wanted: folder.Trees{}, Deployed: folder.Trees{}, Hosts: map[string]*rollout.FleetHost{}, Settings: settings, State: &rollout.StepState{}, Tip: "before",
		Records: map[folder.Key]rollout.Record{},
	}
	byName := map[string]*change{}
	for _, one := range changes {
		byName[one.name] = one
		for c, cluster := range one.clusters {
			host := one.name + " " + cluster
			ring := "canary"
			if c >= canariesOfARun {
				ring = "others"
			}
			in.Hosts[host] = &rollout.FleetHost{IsCluster: true, Clusters: []string{host}, Labels: fleet.Labels{"ring": ring}}
			in.Wanted[host], in.Deployed[host] = map[string]string{one.name: "new"}, map[string]string{one.name: "old"}
			in.Records[folder.Key{Host: host, DeploymentTarget: one.name}] = rollout.Record{Tree: "old", Changed: at.AddDate(0, 0, -1)}
		}
	}
	for minute := 0; minute <= lastRun; minute += 10 {
		in.Now = at.Add(time.Duration(minute) * time.Minute)
		check := r.check
		check.Figures = map[string]evidence.Figure{}
		values, samples := query(t, r.query, in.Now), query(t, r.samples, in.Now)
		for host := range in.Hosts {
			_, cluster, _ := strings.Cut(host, " ")
			value, ok := values[cluster]
			if !ok {
				check.Figures[host] = evidence.Figure{Message: "no data"}
				continue
			}
			check.Figures[host] = evidence.Figure{Value: value, Samples: new(samples[cluster])}
		}
		list := evidence.List{{Measurements: &evidence.Measurements{Time: in.Now, Checks: []evidence.Check{check}}}}
		in.Reports = list.Reports(in)
		out := rollout.Advance(in)
		in.State = out.State
		for _, p := range out.Progress {
			switch changed := byName[p.DeploymentTarget]; {
			case changed.outcome != "":
			case p.IsHalted():
				changed.outcome = "failed"
			case p.Stage > 1:
				changed.outcome = "passed"
			}
		}
		for host, targets := range out.Decisions {
			for target, decision := range targets {
				if decision.Action == rollout.Write && in.Deployed[host][target] != "new" {
					in.Deployed[host][target] = "new"
					in.Records[folder.Key{Host: host, DeploymentTarget: target}] = rollout.Record{
						Tree:    "new",
						Before:  "old",
						Changed: in.Now.Add(time.Second),
					}
				}
			}
		}
	}
}

// formatRow formats the row of changes in the guide's table.
func formatRow(name string, changes []change) (text string, halted, missed float64) {
	var good, bad, falseHalts, waited, passed int
	for _, one := range changes {
		switch {
		case one.regresses:
			bad++
			if one.outcome == "passed" {
				passed++
			}
		case one.outcome == "passed":
			good++
		case one.outcome == "failed":
			good, falseHalts = good+1, falseHalts+1
		default:
			good, waited = good+1, waited+1
		}
	}
	percent := func(n, of int) float64 { return float64(n) * 100 / float64(of) }
	halted, missed = percent(falseHalts+waited, good), percent(passed, bad)
	return fmt.Sprintf("| %s | %d | %d (%.1f %%) | %d (%.1f %%) | %d | %d (%.1f %%) |", name, good, falseHalts, percent(falseHalts, good),
		waited, percent(waited, good), bad, passed, missed), halted, missed
}

// TestTheRecipeTellsRegressionsApart measures the figures of the guide: how often the recommended check halts a good change, and how often
// it passes a bad one. The check runs on a real Prometheus, and rollouts decide.
func TestTheRecipeTellsRegressionsApart(t *testing.T) {
	acceptancetest.Only(t)
	r := readRecipe(t)
	guide, err := os.ReadFile(filepath.Join("..", "..", "..", "templates", "guides", "rollouts.md.tmpl"))
	if err != nil {
		t.Fatal(err)
	}
	for name, play := range map[string]func(*testing.T) (file string, changes []change){"made": makeSeries, "recorded": readRecordedSeries} {
		t.Run(name, func(t *testing.T) {
			file, changes := play(t)
			r.judge(t, changes, newSeriesQuery(prometheustest.StartWithSeries(t, file)))
			text, halted, missed := formatRow(name, changes)
			if halted >= 5 || missed >= 1 {
				t.Errorf("got %.1f %% halted and %.1f %% missed, want less than 5 %% and 1 %%: %s", halted, missed, text)
			}
			if !strings.Contains(string(guide), text+"\n") {
				t.Errorf("the guide lacks the row\n%s", text)
			}
		})
	}
}
