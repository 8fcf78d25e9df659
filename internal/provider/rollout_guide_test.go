package provider_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

const (
	stagesGuide   = "rollouts.md.tmpl"
	stagesExample = "examples/rollouts/stages/main.tf"
	nightsExample = "examples/rollouts/windows/main.tf"
)

// guideRollout is the configuration of the guide on staged rollouts, with a repository in memory and reporting clusters. Its clock is
// stopped in January, when all windows are open.
type guideRollout struct {
	t        *testing.T
	world    *memoryWorld
	hcl      string // of the guide, with edits
	w        *providertest.Workspace
	clock    *stoppedClock
	reports  map[string]map[string]any // last report of each cluster
	planText string                    // text of the last plan
}

const prodAssignment = "flotilla_assignment.prod"

// newGuideRollout applies version 1 to all hosts, edits the HCL, and reports all clusters ready.
func newGuideRollout(t *testing.T, edits ...string) *guideRollout {
	t.Helper()
	return newRolloutOfExample(t, stagesExample, edits...)
}

// newRolloutOfExample is newGuideRollout with another example of the guide.
func newRolloutOfExample(t *testing.T, example string, edits ...string) *guideRollout {
	t.Helper()
	s := &guideRollout{
		t: t, world: newMemoryWorld(t, true), hcl: guideExample(t, stagesGuide, example),
		clock: &stoppedClock{now: time.Date(time.Now().Year()+1, 1, 11, 8, 0, 0, 0, time.UTC)}, reports: map[string]map[string]any{},
	}
	s.w = providertest.New(s.world.startAt(s.clock))
	s.hcl, _, _ = strings.Cut(s.hcl, "\noutput ")
	s.editHCL(`"gitops.git"`, strconv.Quote(s.world.spell("one", 0)), "data.flotilla_compliance.prod.evidence", `"what is read"`)
	s.applyWithoutRollout()
	s.editHCL(edits...)
	for _, cluster := range []string{"canary-1", "europe-1", "america-1", "asia-1"} {
		if strings.Contains(s.hcl, strconv.Quote(cluster)) {
			s.report("ready", cluster)
		}
	}
	if plan := s.applyHourLater("1 1 1 1"); prodAfter(plan)["rolled_out"] != true {
		t.Fatalf("the first rollout does not end: %s", s.planText)
	}
	return s
}

func (s *guideRollout) applyWithoutRollout() {
	s.t.Helper()
	configuration := s.configuration()
	delete(configuration.Resources[prodAssignment].Attributes, "rollout")
	apply(s.t, s.w, configuration)
}

// editHCL replaces text in the HCL. pairs has old and new text in turn.
func (s *guideRollout) editHCL(pairs ...string) {
	s.t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(s.hcl, pairs[i]) {
			s.t.Fatalf("the example does not have %q:\n%s", pairs[i], s.hcl)
		}
		s.hcl = strings.ReplaceAll(s.hcl, pairs[i], pairs[i+1])
	}
}

func (s *guideRollout) setVersion(version string) {
	s.t.Helper()
	s.editHCL(regexp.MustCompile(`tag = "v[0-9]+"`).FindString(s.hcl), fmt.Sprintf(`tag = "v%s"`, version))
}

// report makes clusters report a verdict for the tip, since now.
func (s *guideRollout) report(verdict string, clusters ...string) {
	s.t.Helper()
	for _, cluster := range clusters {
		host, _, _ := strings.Cut(cluster, "-")
		s.reports[cluster] = map[string]any{
			"cluster": cluster, "assignment": host + "/payments-live", "commit": s.tip(), "verdict": verdict, "since": s.clock.now.Format(time.RFC3339),
		}
	}
}

func (s *guideRollout) tip() string { return s.world.tip("one", "prod") }

func (s *guideRollout) files() map[string]string { return s.world.files("one", "prod") }

func (s *guideRollout) hasFolder(folder string) bool {
	for name := range s.files() {
		if strings.HasPrefix(name, folder+"/") {
			return true
		}
	}
	return false
}

// configuration returns the HCL with the clusters' reports as feedback. Without reports, the feedback of the HCL remains.
func (s *guideRollout) configuration() providertest.Configuration {
	s.t.Helper()
	module := moduleOf(s.t, s.hcl)
	compliance := module.Data["data.flotilla_compliance.prod"]
	if s.reports != nil {
		var reports []any
		for _, name := range slices.Sorted(maps.Keys(s.reports)) {
			reports = append(reports, s.reports[name])
		}
		compliance["feedback"] = map[string]any{"reports": reports}
	}
	module.Resources[prodAssignment].Attributes["evidence"] = providertest.Reading{
		DataSource: "flotilla_compliance",
		Attributes: compliance,
		Attribute:  "evidence",
	}
	return module.Configuration
}

// applyHourLater applies an hour later and expects the versions of canary, europe, america and asia.
func (s *guideRollout) applyHourLater(want string) *providertest.Plan {
	s.t.Helper()
	return s.applyAfter(time.Hour, want)
}

func (s *guideRollout) applyAfter(pause time.Duration, want string) *providertest.Plan {
	s.t.Helper()
	s.clock.now = s.clock.now.Add(pause)
	plan, diags := s.w.Apply(s.t.Context(), s.configuration())
	if diags.Err() != nil {
		s.t.Fatal(diags.Err())
	}
	s.planText = fmt.Sprint(prodAfter(plan)["changes"], prodAfter(plan)["rolling_out"], diags)
	if got := s.versions(); got != want {
		s.t.Fatalf("deployed %q, want %q: %s", got, want, s.planText)
	}
	return plan
}

func (s *guideRollout) expectText(want string) {
	s.t.Helper()
	if !strings.Contains(s.planText, want) {
		s.t.Errorf("the plan does not say %q: %s", want, s.planText)
	}
}

// versions returns the versions of canary, europe, america and asia: "2 1 1 1", or - for none.
func (s *guideRollout) versions() string {
	s.t.Helper()
	var versions []string
	files := s.files()
	for _, host := range []string{"canary", "europe", "america", "asia"} {
		version := "-"
		for name, content := range files {
			if found := regexp.MustCompile(`tag: "?v([0-9]+)`).FindStringSubmatch(content); found != nil &&
				strings.HasPrefix(name, host+"/payments-live/") {
				version = found[1]
			}
		}
		versions = append(versions, version)
	}
	return strings.Join(versions, " ")
}

func prodAfter(plan *providertest.Plan) map[string]any { return plan.Change(prodAssignment).After }

// reportAndApply takes pairs: clusters that report ready, and the versions that the next apply deploys.
func (s *guideRollout) reportAndApply(turns ...string) {
	s.t.Helper()
	for i := 0; i < len(turns); i += 2 {
		s.report("ready", strings.Fields(turns[i])...)
		s.applyHourLater(turns[i+1])
	}
}

func (s *guideRollout) expectEnd(cluster, versions string) {
	s.t.Helper()
	s.report("ready", cluster)
	if plan := s.applyHourLater(versions); prodAfter(plan)["rolled_out"] != true {
		s.t.Errorf("the rollout does not end: %s", s.planText)
	}
}

func (s *guideRollout) contentID() string {
	s.t.Helper()
	return regexp.MustCompile(`payments-live@[0-9a-f-]+`).FindString(s.planText)
}

// Parts of the examples that tests replace. Tests insert attributes of the rollout at rolloutAnchor.
const (
	guideCanary    = `name = "canary", cluster_type_selector = { match_labels = { ring = "canary" } }`
	guideRegions   = `name = "regions", cluster_type_selector = { match_labels = { ring = "region" } }, max_concurrent = 1, soak = "30m"`
	guideHalts     = `on_failure        = "halt"`
	guideRollsBack = `on_failure        = "roll_back"`
	guideLate      = `    progress_deadline = "2h"` + "\n"
	rolloutAnchor  = "progress_deadline ="
)

// replaceRegions returns an edit of the stage "regions" without batches.
func replaceRegions(further string) []string {
	return []string{guideRegions, `name = "regions", cluster_type_selector = { match_labels = { ring = "region" } }` + further}
}

// Each stage or batch takes an hour. One more run proves the last stage.
func TestTheGuideOnStagedRolloutsGoesFromStageToStage(t *testing.T) {
	t.Parallel()
	s := newGuideRollout(t)
	s.setVersion("2")
	s.applyHourLater("2 1 1 1")
	s.expectText("spec.ref.tag, on canary: payments-live")                                 // the change of this run
	s.expectText(`stage 1 of 3 "canary", on 1 of 4 hosts: waits for clusters to be ready`) // the wait and its reason
	if plan := s.applyAfter(time.Minute, "2 1 1 1"); !plan.Empty() {                       // canary-1 reports the former version
		t.Errorf("a run without progress plans %s", s.planText)
	}
	if still := fmt.Sprint(s.w.State.Values(prodAssignment)["rolling_out"]); !strings.Contains(still, "waits for clusters to be ready") {
		t.Errorf("rolling_out is %s", still)
	}
	s.report("ready", "canary-1")
	if plan := s.applyAfter(30*time.Minute, "2 1 1 1"); !plan.Empty() { // soak time
		t.Errorf("a run that changes nothing plans %s", s.planText)
	}
	s.applyAfter(30*time.Minute, "2 1 2 1") // first batch
	s.reportAndApply("america-1", "2 2 2 1", "europe-1", "2 2 2 2")
	s.expectEnd("asia-1", "2 2 2 2")
	if plan := s.applyHourLater("2 2 2 2"); !plan.Empty() {
		t.Errorf("after the rollout, a run plans %s", s.planText)
	}
	s.setVersion("3")
	s.applyWithoutRollout()
	if got := s.versions(); got != "3 3 3 3" {
		t.Errorf("without the rollout, an apply writes %s", got)
	}
}

// The test plays the table of the guide: each row has events, and the text of the plan.
func TestTheGuideOnStagedRolloutsShowsThePlans(t *testing.T) {
	t.Parallel()
	_, table, _ := strings.Cut(guideText(t, stagesGuide), "<!-- timeline -->\n")
	table, _, ok := strings.Cut(table, "<!-- end of timeline -->")
	rows := strings.Split(strings.TrimSpace(table), "\n")[2:]
	if !ok || len(rows) < 5 {
		t.Fatalf("the table is\n%s", table)
	}
	r, version := newRings(t), "1"
	for _, row := range rows {
		cells := strings.Split(row, " | ")
		for _, change := range strings.Split(cells[1], ", ") {
			cluster, event, _ := strings.Cut(strings.ReplaceAll(change, "the last one", "rest"), " ")
			switch event {
			case "is ready":
				r.report(cluster, verdict.Ready)
			case "has failed":
				r.report(cluster, verdict.Failed)
			case "restarts":
				r.report(cluster, verdict.Progressing)
			case "is no report yet":
			default:
				found := regexp.MustCompile(`^(\d) is wanted$`).FindStringSubmatch(event)
				if found == nil {
					t.Fatalf("the table has an unknown event %q", change)
				}
				version = found[1]
			}
		}
		plan := r.applyVersion(version, strings.ReplaceAll(cells[2], ",", ""))
		switch want := strings.TrimSuffix(cells[3], " |"); {
		case want == "the plan is empty: it waits as before":
			if !plan.Empty() {
				t.Errorf("%s: the plan says %s", row, rolloutText(plan))
			}
		case want == "nothing: it is rolled out":
			if assignmentAfter(plan)["rolled_out"] != true {
				t.Errorf("%s: the plan says %s", row, rolloutText(plan))
			}
		case !strings.Contains(rolloutText(plan), want):
			t.Errorf("%s: the plan says %s", row, rolloutText(plan))
		}
	}
}
