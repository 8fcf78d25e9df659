package provider_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider"
	"github.com/flotilla/terraform-provider-flotilla/internal/providertest"
)

const stagesExample = "examples/rollouts/stages/main.tf"

// guideExample is the HCL of an example that a guide shows.
func guideExample(t *testing.T, guide, example string) string {
	t.Helper()
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, "templates", "guides", guide))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "{{ tffile "+strconv.Quote(example)+" }}") {
		t.Fatalf("%s does not show %s", guide, example)
	}
	config, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(example)))
	if err != nil {
		t.Fatal(err)
	}
	return string(config)
}

// staged is the configuration that the guide on staged rollouts shows, and clusters that report about it. Its time is
// that of a stopped clock, in January, when no window is closed.
type staged struct {
	t     *testing.T
	url   string
	hcl   string // of the guide, and as it was edited
	w     *providertest.Workspace
	clock *stoppedClock
	says  map[string]map[string]any // the last report of each cluster
	said  string                    // by the last plan
}

const prodAssignment = "flotilla_assignment.prod"

// newStaged applies version 1 to all hosts, edits the HCL, and lets all clusters report that they are ready.
func newStaged(t *testing.T, edits ...string) *staged {
	t.Helper()
	s := &staged{
		t: t, url: bare(t), hcl: guideExample(t, "staged-rollouts.md.tmpl", stagesExample),
		clock: &stoppedClock{now: time.Date(time.Now().Year()+1, 1, 11, 8, 0, 0, 0, time.UTC)}, says: map[string]map[string]any{},
	}
	s.w = providertest.New(provider.StartAt(s.clock))
	s.hcl, _, _ = strings.Cut(s.hcl, "\noutput ")
	s.edit(`"gitops.git"`, strconv.Quote(s.url), "data.flotilla_compliance.prod.evidence", `"what is read"`, `branch = "main"`, `tag = "v1"`)
	s.atOnce()
	s.edit(edits...)
	for _, cluster := range []string{"canary-1", "europe-1", "america-1", "asia-1"} {
		if strings.Contains(s.hcl, strconv.Quote(cluster)) {
			s.report("ready", cluster)
		}
	}
	if plan := s.run("1 1 1 1"); afterProd(plan)["rolled_out"] != true {
		t.Fatalf("at first: %s", s.said)
	}
	return s
}

// atOnce applies without the rollout.
func (s *staged) atOnce() {
	s.t.Helper()
	configuration := s.configuration()
	delete(configuration.Resources[prodAssignment].Attributes, "rollout")
	apply(s.t, s.w, configuration)
}

// edit changes the HCL, in pairs of what is there and what takes its place.
func (s *staged) edit(pairs ...string) {
	s.t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(s.hcl, pairs[i]) {
			s.t.Fatalf("the example does not have %q:\n%s", pairs[i], s.hcl)
		}
		s.hcl = strings.ReplaceAll(s.hcl, pairs[i], pairs[i+1])
	}
}

// want is a new version.
func (s *staged) want(version string) {
	s.t.Helper()
	s.edit(regexp.MustCompile(`tag = "v[0-9]+"`).FindString(s.hcl), fmt.Sprintf(`tag = "v%s"`, version))
}

// report lets clusters say that they have the tip, and how that is since now.
func (s *staged) report(verdict string, clusters ...string) {
	s.t.Helper()
	for _, cluster := range clusters {
		host, _, _ := strings.Cut(cluster, "-")
		s.says[cluster] = map[string]any{
			"cluster": cluster, "assignment": host + "/payments-live", "commit": s.tip(), "verdict": verdict, "since": s.clock.now.Format(time.RFC3339),
		}
	}
}

func (s *staged) tip() string { s.t.Helper(); return git(s.t, s.url, "rev-parse", "prod") }

// configuration is the HCL, with what clusters say as the reports of flotilla_compliance; without any, its feedback stays as it is.
func (s *staged) configuration() providertest.Configuration {
	s.t.Helper()
	module := moduleOf(s.t, s.hcl)
	compliance := module.Data["data.flotilla_compliance.prod"]
	if s.says != nil {
		var reports []any
		for _, name := range slices.Sorted(maps.Keys(s.says)) {
			reports = append(reports, s.says[name])
		}
		compliance["feedback"] = map[string]any{"reports": reports}
	}
	module.Resources[prodAssignment].Attributes["evidence"] = providertest.Reading{DataSource: "flotilla_compliance", Attributes: compliance, Attribute: "evidence"}
	return module.Configuration
}

// run is a run an hour later. It expects what canary, europe, america and asia have then.
func (s *staged) run(want string) *providertest.Plan {
	s.t.Helper()
	return s.runAfter(time.Hour, want)
}

func (s *staged) runAfter(pause time.Duration, want string) *providertest.Plan {
	s.t.Helper()
	s.clock.now = s.clock.now.Add(pause)
	plan, diagnostics := s.w.Apply(s.t.Context(), s.configuration())
	if diagnostics.Err() != nil {
		s.t.Fatal(diagnostics.Err())
	}
	s.said = fmt.Sprint(afterProd(plan)["changes"], afterProd(plan)["rolling_out"], diagnostics)
	if got := s.versions(); got != want {
		s.t.Fatalf("deployed %q, want %q: %s", got, want, s.said)
	}
	return plan
}

// says expects a text in what the last plan said.
func (s *staged) saysThat(want string) {
	s.t.Helper()
	if !strings.Contains(s.said, want) {
		s.t.Errorf("the plan does not say %q: %s", want, s.said)
	}
}

// versions is what canary, europe, america and asia have: "2 1 1 1", with - for nothing.
func (s *staged) versions() string {
	s.t.Helper()
	var versions []string
	for _, host := range []string{"canary", "europe", "america", "asia"} {
		version := "-"
		for _, file := range strings.Fields(git(s.t, s.url, "ls-tree", "-r", "--name-only", "prod", host+"/payments-live/")) {
			if found := regexp.MustCompile(`tag: "?v([0-9]+)`).FindStringSubmatch(git(s.t, s.url, "show", "prod:"+file)); found != nil {
				version = found[1]
			}
		}
		versions = append(versions, version)
	}
	return strings.Join(versions, " ")
}

func afterProd(plan *providertest.Plan) map[string]any { return plan.Change(prodAssignment).After }

// haveIt lets clusters be ready, and runs, for each host in its turn: "canary-1", "2 1 2 1" and so on.
func (s *staged) haveIt(turns ...string) {
	s.t.Helper()
	for i := 0; i < len(turns); i += 2 {
		s.report("ready", strings.Fields(turns[i])...)
		s.run(turns[i+1])
	}
}

// ends expects that the last cluster ends the rollout.
func (s *staged) ends(cluster, versions string) {
	s.t.Helper()
	s.report("ready", cluster)
	if plan := s.run(versions); afterProd(plan)["rolled_out"] != true {
		s.t.Errorf("it does not end: %s", s.said)
	}
}

// id is what rolling_out prints of the content.
func (s *staged) id() string {
	s.t.Helper()
	return regexp.MustCompile(`payments-live@[0-9a-f-]+`).FindString(s.said)
}

const (
	guideCanary  = `name = "canary", cluster_type_selector = { match_labels = { ring = "canary" } }`
	guideRegions = `name = "regions", cluster_type_selector = { match_labels = { ring = "region" } }, max_concurrent = 1, soak = "30m"`
	guideHalts   = `on_failure        = "halt"`
	guideBacks   = `on_failure        = "roll_back"`
	guideLate    = `    progress_deadline = "2h"` + "\n"
	ofTheRollout = "progress_deadline ="
)

// regions takes the place of the stage of the regions, which both get at once.
func regions(further string) []string {
	return []string{guideRegions, `name = "regions", cluster_type_selector = { match_labels = { ring = "region" } }` + further}
}

// A stage an hour, or a batch, and one more run to see the last one proven.
func TestTheGuideOnStagedRolloutsGoesFromStageToStage(t *testing.T) {
	t.Parallel()
	s := newStaged(t)
	s.want("2")
	s.run("2 1 1 1")
	s.saysThat("spec.ref.tag, on canary: payments-live")                                 // what goes now
	s.saysThat(`stage 1 of 3 "canary", on 1 of 4 hosts: waits for clusters to be ready`) // what waits, and for what
	s.report("ready", "canary-1")
	if plan := s.runAfter(30*time.Minute, "2 1 1 1"); !plan.Empty() { // it has to soak
		t.Errorf("a run that changes nothing plans %s", s.said)
	}
	s.runAfter(30*time.Minute, "2 1 2 1") // a batch of one
	s.haveIt("america-1", "2 2 2 1", "europe-1", "2 2 2 2")
	s.ends("asia-1", "2 2 2 2")
	if plan := s.run("2 2 2 2"); !plan.Empty() {
		t.Errorf("after the end: %s", s.said)
	}
}

func TestTheGuideOnStagedRolloutsPassesStagesThatAChangeDoesNotReach(t *testing.T) {
	t.Parallel()
	s := newStaged(t)
	s.want("2")
	s.run("2 1 1 1")
	// Another deployment target goes its own way, and reaches the last stage alone.
	s.edit("target_policies = [{", `target_policies = [{ name = "asia", deployment_target_selector = { match_labels = { only = "asia" } }, cluster_type_selector = { match_expressions = [{ key = "ring", operator = "DoesNotExist" }] } }, {`,
		`deployment_target_selector = {},`, `deployment_target_selector = { match_expressions = [{ key = "only", operator = "DoesNotExist" }] },`,
		"live = {", `late = {
          environment = "prod"
          labels      = { only = "asia" }
          manifests   = { repo = "https://git.example.com/late", branch = "main" }
        }
        live = {`)
	s.run("2 1 1 1")
	s.saysThat(`payments-late`)
	if got := git(t, s.url, "ls-tree", "-d", "--name-only", "prod", "canary/", "asia/"); strings.Contains(got, "canary/payments-late") || !strings.Contains(got, "asia/payments-late") {
		t.Errorf("there is\n%s%s", got, s.said)
	}
}

func TestTheGuideOnStagedRolloutsCountsClustersAsItSays(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		edits  []string
		europe string // what is said of it; america is ready
		says   string
		goesOn bool
	}{
		"half of them are ready": {regions(`, ready_percent = 50`), "progressing", "", true},
		"not enough are ready":   {regions(`, ready_percent = 51`), "progressing", "", false},
		"one may fail":           {append(regions(`, max_failed = 1`), guideBacks, guideHalts), "failed", `passes stage 2 of 3 "regions" without 1 cluster: 1 failed`, true},
		"none may fail":          {append(regions(``), guideBacks, guideHalts), "failed", "waits for newer content, since this one failed: 1 cluster has failed", false},
		"unknown is not ready":   {regions(``), "", "", false},
		"unknown is skipped":     {append(regions(``), ofTheRollout, `unknown = "skip"`+"\n    "+ofTheRollout), "", `passes stage 2 of 3 "regions" without 1 cluster: 1 unknown`, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStaged(t, test.edits...)
			s.want("2")
			s.run("2 1 1 1")
			s.haveIt("canary-1", "2 2 2 1")
			s.report("ready", "america-1")
			delete(s.says, "europe-1")
			if test.europe != "" {
				s.report(test.europe, "europe-1")
			}
			want := "2 2 2 1"
			if test.goesOn {
				want = "2 2 2 2"
			}
			s.run(want)
			s.saysThat(test.says)
		})
	}
}

func TestTheGuideOnStagedRolloutsIsRightAboutWhatWasProven(t *testing.T) {
	t.Parallel()
	s := newStaged(t, guideBacks, guideHalts)
	s.want("2")
	s.run("2 1 1 1")
	s.haveIt("canary-1", "2 1 2 1")
	s.report("progressing", "canary-1") // revokes nothing
	s.haveIt("america-1", "2 2 2 1")
	s.report("failed", "canary-1")
	s.haveIt("europe-1", "2 2 2 1")
	s.saysThat(`1 cluster has failed at stage 1 of 3 "canary"`)
	s.report("ready", "canary-1") // it goes on by itself
	s.run("2 2 2 2")
	s.report("failed", "canary-1")
	s.report("ready", "asia-1")
	if plan := s.run("2 2 2 2"); afterProd(plan)["rolled_out"] != false {
		t.Errorf("with a failed canary it ends: %s", s.said)
	}
	s.ends("canary-1", "2 2 2 2")
}

func TestTheGuideOnStagedRolloutsEndsWhereItsNumbersAllowIt(t *testing.T) {
	t.Parallel()
	silent := []string{ofTheRollout, `unknown = "skip"` + "\n    " + ofTheRollout}
	for name, test := range map[string]struct {
		edits   []string
		verdict string // of the canary; "" says nothing
		waits   int    // further hours
		says    string
	}{
		"no cluster says anything":                     {silent, "", 2, `passes stage 1 of 3 "canary" without 1 cluster: 1 unknown`},
		"no cluster says anything, without a deadline": {[]string{guideLate, "    unknown = \"skip\"\n"}, "", 1, `passes stage 1 of 3 "canary" without 1 cluster: 1 unknown`},
		"all failed, as they may":                      {[]string{guideCanary, guideCanary + ", max_failed = 1"}, "failed", 0, `passes stage 1 of 3 "canary" without 1 cluster: 1 failed`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStaged(t, test.edits...)
			s.want("2")
			s.run("2 1 1 1")
			delete(s.says, "canary-1")
			if test.verdict != "" {
				s.report(test.verdict, "canary-1")
			}
			for range test.waits {
				s.run("2 1 1 1")
			}
			s.run("2 1 2 1")
			s.saysThat(test.says)
		})
	}
	// Without unknown = "skip", a cluster that says nothing is waited for, and stuck after the deadline.
	t.Run("who says nothing is stuck", func(t *testing.T) {
		t.Parallel()
		s := newStaged(t, guideBacks, guideHalts)
		s.want("2")
		delete(s.says, "canary-1")
		s.run("2 1 1 1")
		s.run("2 1 1 1")
		s.run("2 1 1 1")
		s.run("2 1 1 1")
		s.saysThat("since this one is stuck: 1 cluster is not ready in time")
	})
	t.Run("who says nothing is waited for", func(t *testing.T) {
		t.Parallel()
		s := newStaged(t, guideLate, "")
		s.want("2")
		delete(s.says, "canary-1")
		for range 5 {
			s.run("2 1 1 1")
		}
		s.saysThat("waits for clusters to be ready")
	})
	t.Run("a batch that is slow", func(t *testing.T) {
		t.Parallel()
		s := newStaged(t, guideLate, "", "max_concurrent = 1", "max_concurrent = 1, ready_percent = 50")
		s.want("2")
		s.run("2 1 1 1")
		s.haveIt("canary-1", "2 1 2 1")
		s.report("progressing", "america-1")
		s.run("2 1 2 1")
		s.run("2 2 2 1")
		s.haveIt("europe-1", "2 2 2 2")
		s.saysThat(`passes stage 2 of 3 "regions" without 1 cluster: 1 not ready yet`)
	})
	t.Run("a batch that is stuck", func(t *testing.T) {
		t.Parallel()
		s := newStaged(t, guideBacks, guideHalts, "max_concurrent = 1", "max_concurrent = 1, ready_percent = 50")
		s.want("2")
		s.run("2 1 1 1")
		s.haveIt("canary-1", "2 1 2 1")
		s.report("progressing", "america-1")
		for range 3 {
			s.run("2 1 2 1")
		}
		s.saysThat("since this one is stuck: 1 cluster is not ready in time")
	})
	t.Run("a batch that is stuck, as it may", func(t *testing.T) {
		t.Parallel()
		s := newStaged(t, "max_concurrent = 1", "max_concurrent = 1, max_failed = 1")
		s.want("2")
		s.run("2 1 1 1")
		s.haveIt("canary-1", "2 1 2 1")
		s.report("progressing", "america-1")
		s.run("2 1 2 1")
		s.run("2 1 2 1")
		s.run("2 2 2 1")
		s.haveIt("europe-1", "2 2 2 2")
		s.saysThat(`passes stage 2 of 3 "regions" without 1 cluster: 1 stuck`)
	})
}

func TestTheGuideOnStagedRolloutsLetsTimeCountWhereNobodyReports(t *testing.T) {
	t.Parallel()
	s := newStaged(t)
	s.says = nil // the feedback = {} of the guide
	s.want("2")
	s.run("2 1 1 1")
	s.saysThat("waits for the soak time")
	s.run("2 1 2 1")
	s.run("2 2 2 1")
	s.run("2 2 2 2")
	if plan := s.run("2 2 2 2"); afterProd(plan)["rolled_out"] != true {
		t.Errorf("it does not end: %s", s.said)
	}

	s = newStaged(t, `      { name = "asia-1", cluster_type = "asia" },`+"\n", "")
	s.want("2")
	s.run("2 1 1 1")
	s.saysThat("Only time proves a change on asia, of which the fleet has no clusters")
	s.haveIt("canary-1", "2 1 2 1", "america-1", "2 2 2 1", "europe-1", "2 2 2 2")
	s.saysThat("waits for the soak time")
	if plan := s.run("2 2 2 2"); afterProd(plan)["rolled_out"] != true {
		t.Errorf("it does not end: %s", s.said)
	}
}

func TestTheGuideOnStagedRolloutsSaysWhatStartsAgain(t *testing.T) {
	t.Parallel()
	s := newStaged(t)
	s.want("2")
	s.run("2 1 1 1")
	s.haveIt("canary-1", "2 1 2 1")
	s.want("3")
	s.run("3 1 2 1")
	s.haveIt("canary-1", "3 1 3 1", "america-1", "3 3 3 1", "europe-1", "3 3 3 3")
	s.ends("asia-1", "3 3 3 3")

	// Another placement on hosts that were there.
	s.edit("live = {", `late = {
          environment = "prod"
          manifests   = { repo = "https://git.example.com/late", branch = "main" }
        }
        live = {`)
	s.run("3 3 3 3")
	if got := git(t, s.url, "ls-tree", "-d", "--name-only", "prod", "canary/", "europe/", "america/", "asia/"); strings.Count(got, "payments-late") != 1 || !strings.Contains(got, "canary/payments-late") {
		t.Errorf("there is\n%s", got)
	}
}

func TestTheGuideOnStagedRolloutsSaysWhatHostsThatJoinGet(t *testing.T) {
	t.Parallel()
	joins := func(s *staged, name string) {
		s.edit(`{ name = "asia" },`, fmt.Sprintf(`{ name = "asia" }, { name = %q, labels = { ring = "region" } },`, name))
	}
	has := func(s *staged, name string) bool {
		return git(t, s.url, "ls-tree", "-d", "--name-only", "prod", name+"/payments-live") != ""
	}
	s := newStaged(t)
	joins(s, "africa")
	if plan := s.run("1 1 1 1"); !has(s, "africa") || afterProd(plan)["rolled_out"] != true {
		t.Errorf("a host that joins does not get what is released at once: %s", s.said)
	}
	s.want("2")
	s.run("2 1 1 1")
	joins(s, "oceania")
	if s.run("2 1 1 1"); has(s, "oceania") {
		t.Errorf("a host that joins while a change is under way does not wait for its stage: %s", s.said)
	}
	s.report("ready", "canary-1")
	for range 5 { // of each batch
		s.clock.now = s.clock.now.Add(time.Hour)
		apply(t, s.w, s.configuration())
		s.report("ready", "america-1", "europe-1")
	}
	if !has(s, "oceania") || s.versions() != "2 2 2 2" {
		t.Errorf("it has not come to its stage: %s", s.versions())
	}
}

func TestTheGuideOnStagedRolloutsLeavesOutAnEmptyListOfHosts(t *testing.T) {
	t.Parallel()
	s := newStaged(t, "stages = [", `stages = [
      { name = "empty", hosts = [] },`)
	s.want("2")
	s.run("2 1 1 1")
	s.saysThat(`Stage "empty" selects no host of the fleet, and is skipped`)
}

func TestTheGuideOnStagedRolloutsProvesWhatAWorkloadRequiresFirst(t *testing.T) {
	t.Parallel()
	s := newStaged(t)
	s.edit("workloads = [{", `workloads = [{
      name      = "base"
      workspace = "payments"
      deployment_targets = {
        live = { environment = "prod", manifests = { repo = "https://git.example.com/base", tag = "base1" } }
      }
    }, {
      requires  = ["base"]`)
	s.atOnce()
	s.want("2")
	s.edit("base1", "base2")
	s.run("1 1 1 1")
	s.saysThat("spec.ref.tag, on canary: base-live")
	s.report("ready", "canary-1")
	s.says["canary-1 base"] = maps.Clone(s.says["canary-1"])
	s.says["canary-1 base"]["assignment"] = "canary/base-live"
	s.run("2 1 1 1")
	if base := git(t, s.url, "grep", "-c", "base2", "prod", "--", "canary", "america", "europe"); !strings.Contains(base, "canary/base-live") {
		t.Errorf("base2 is at %s", base)
	}
}

func TestTheGuideOnStagedRolloutsHaltsAndLetsThroughWhatMends(t *testing.T) {
	t.Parallel()
	for name, mend := range map[string]func(s *staged){
		"it is ready again": func(s *staged) { s.report("ready", "canary-1"); s.run("2 1 2 1") },
		"newer content":     func(s *staged) { s.want("3"); s.run("3 1 1 1") },
		"rollback_to": func(s *staged) {
			s.edit("  rollout = {", fmt.Sprintf("  rollback_to = %q\n  rollout = {", git(t, s.url, "rev-parse", "prod^")))
			s.run("1 1 1 1")
			s.edit(regexp.MustCompile(`  rollback_to = .*\n`).FindString(s.hcl), "")
			s.run("2 1 1 1") // it begins again at the first stage
		},
		"expedite": func(s *staged) {
			s.edit(ofTheRollout, fmt.Sprintf("expedite = [%q]\n    ", s.id())+ofTheRollout)
			s.run("2 2 2 2")
		},
	} {
		for _, how := range []string{"failed", "stuck"} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				s := newStaged(t, guideBacks, guideHalts)
				s.want("2")
				s.run("2 1 1 1")
				if how == "failed" {
					s.report("failed", "canary-1")
				} else {
					s.report("progressing", "canary-1")
					s.run("2 1 1 1")
					s.run("2 1 1 1")
				}
				s.run("2 1 1 1")
				s.saysThat(map[string]string{"failed": "1 cluster has failed", "stuck": "1 cluster is not ready in time"}[how])
				mend(s)
			})
		}
	}
}

func TestTheGuideOnStagedRolloutsRollsBackWhatFailsForLongEnough(t *testing.T) {
	t.Parallel()
	fails := func(s *staged, since time.Duration) { // by the next run
		s.report("failed", "canary-1")
		s.says["canary-1"]["since"] = s.clock.now.Add(time.Hour - since).Format(time.RFC3339)
	}
	s := newStaged(t)
	before := git(t, s.url, "rev-parse", "prod")
	s.want("2")
	s.run("2 1 1 1")
	s.haveIt("canary-1", "2 1 2 1")
	fails(s, 4*time.Minute)
	s.report("ready", "america-1")
	s.run("2 1 2 1") // which halts
	s.saysThat("it is rolled back if that lasts until " + s.clock.now.Add(time.Minute).Format(time.RFC3339))
	forth := s.tip()
	s.runAfter(time.Minute, "1 1 1 1")
	s.saysThat("failed and was rolled back")
	if got := git(t, s.url, "rev-parse", "prod^"); got != forth {
		t.Error("going back made more commits than one")
	}
	if changed := git(t, s.url, "diff", "--stat", before, "prod", "--", "canary", "europe", "america", "asia"); changed != "" {
		t.Errorf("the hosts are not as before:\n%s", changed)
	}
	retry := regexp.MustCompile(`add "([^"]+)" to approvals`).FindStringSubmatch(s.said)
	if retry == nil {
		t.Fatalf("the plan prints no approval: %s", s.said)
	}
	for _, cluster := range []string{"canary-1", "america-1"} {
		s.report("ready", cluster)
	}
	if plan := s.run("1 1 1 1"); !plan.Empty() { // it is not tried again
		t.Errorf("what was rolled back plans %s", s.said)
	}
	s.w.Lose(prodAssignment)
	s.run("1 1 1 1") // by the records
	s.saysThat("failed and was rolled back")
	s.edit(ofTheRollout, fmt.Sprintf("approvals = [%q]\n    ", retry[1])+ofTheRollout)
	s.run("2 1 1 1")

	// Newer content came before the last one was proven.
	s = newStaged(t)
	s.want("2")
	s.run("2 1 1 1")
	s.want("3")
	s.run("3 1 1 1")
	fails(s, 50*time.Minute)
	s.run("1 1 1 1")

	// A failure of the cluster, of no assignment in particular.
	s = newStaged(t)
	s.want("2")
	s.run("2 1 1 1")
	fails(s, 50*time.Minute)
	delete(s.says["canary-1"], "assignment")
	s.run("2 1 1 1")
	s.saysThat("names no assignment, so it is not rolled back")

	// failed_for before a change halts.
	s = newStaged(t, guideBacks, guideHalts+"\n    failed_for = \"30m\"")
	s.want("2")
	s.run("2 1 1 1")
	fails(s, 20*time.Minute)
	s.run("2 1 1 1")
	s.saysThat("waits for clusters to be ready")
	s.runAfter(10*time.Minute, "2 1 1 1")
	s.saysThat("since this one failed")
}

func TestTheGuideOnStagedRolloutsLetsPeopleDecide(t *testing.T) {
	t.Parallel()
	approved := func(s *staged) {
		s.edit(ofTheRollout, fmt.Sprintf("approvals = [%q]\n    ", s.id())+ofTheRollout)
	}
	t.Run("approval", func(t *testing.T) {
		t.Parallel()
		s := newStaged(t, guideRegions, guideRegions+", approval = true")
		s.want("2")
		s.run("2 1 1 1")
		s.haveIt("canary-1", "2 1 1 1")
		s.saysThat(`waits for an approval: "` + s.id() + `"`)
		approved(s)
		s.want("3") // for which it is not
		s.run("3 1 1 1")
		s.haveIt("canary-1", "3 1 1 1")
		s.edit(regexp.MustCompile(`approvals = .*\n    `).FindString(s.hcl), "")
		approved(s)
		s.run("3 1 3 1")
	})
	t.Run("expedite by a bare name", func(t *testing.T) {
		t.Parallel()
		s := newStaged(t, ofTheRollout, `expedite = ["payments-live"]`+"\n    "+ofTheRollout)
		s.want("2")
		s.run("2 2 2 2")
		s.saysThat(`Expedite "payments-live" is for whatever that gets later, too`)
		s.want("3")
		s.run("3 3 3 3")
	})
	t.Run("expedite of a content", func(t *testing.T) {
		t.Parallel()
		s := newStaged(t, guideRegions, guideRegions+", approval = true")
		s.want("2")
		s.run("2 1 1 1")
		s.edit(ofTheRollout, fmt.Sprintf("expedite = [%q]\n    ", s.id())+ofTheRollout)
		s.run("2 2 2 2")
		s.want("3")
		s.run("3 2 2 2")
	})
	t.Run("holds", func(t *testing.T) {
		t.Parallel()
		s := newStaged(t)
		until := s.clock.now.Add(150 * time.Minute).Format(time.RFC3339)
		s.edit("  rollout = {", fmt.Sprintf("  holds = [{ hosts = [\"canary\"], reason = \"audit\", until = %q }]\n  rollout = {", until))
		s.want("2")
		s.run("1 1 1 1")
		s.saysThat("waits for a hold: audit, until " + until)
		s.run("1 1 1 1")
		s.run("2 1 1 1")
		s.edit(`hosts = ["canary"]`, `hosts = ["nowhere"]`)
		s.run("2 1 1 1")
		s.saysThat("Hold of what is not there")
	})
	t.Run("rollback_to", func(t *testing.T) {
		t.Parallel()
		s := newStaged(t, guideRegions, guideRegions+", approval = true")
		first := s.tip()
		s.want("2")
		s.run("2 1 1 1")
		s.edit("  rollout = {", fmt.Sprintf("  rollback_to = %q\n  rollout = {", first), `"0 0 24 12 *"`, `"0 0 11 1 *"`) // behind closed windows, too
		s.run("1 1 1 1")
		s.edit(fmt.Sprintf("  rollback_to = %q\n", first), "", `"0 0 11 1 *"`, `"0 0 24 12 *"`)
		s.run("2 1 1 1")
	})
	t.Run("a move", func(t *testing.T) {
		t.Parallel()
		s := newStaged(t)
		s.want("2")
		s.run("2 1 1 1")
		s.edit(`branch = "prod" }`, `branch = "elsewhere" }`)
		_, said := s.w.Plan(t.Context(), s.configuration())
		if said.Err() == nil || !said.Has("Cannot move during a rollout") {
			t.Errorf("a move while something waits: %v", said)
		}
	})
}

func TestTheGuideOnStagedRolloutsKeepsItsWindows(t *testing.T) {
	t.Parallel()
	s := newStaged(t)
	year := s.clock.now.Year()
	christmas := time.Date(year, 12, 23, 22, 30, 0, 0, time.UTC) // half an hour before midnight in Berlin
	s.clock.now = christmas
	s.want("2")
	plan, said := s.w.Plan(t.Context(), s.configuration())
	if said.Err() != nil {
		t.Fatal(said.Err())
	}
	tip := s.tip()
	s.clock.now = christmas.Add(time.Hour) // the window has closed
	if said := s.w.ApplyPlan(t.Context(), plan); said.Err() == nil || !said.Has("Windows have closed") || s.tip() != tip {
		t.Errorf("a plan that is applied behind closed windows: %v", said)
	}
	s.run("1 1 1 1")
	s.saysThat("waits for a window")
	s.edit(`windows = [`, `windows = [
      { kind = "allow", schedule = "0 0 * * *", duration = "24h" },`) // deny wins
	s.run("1 1 1 1")
	s.edit(ofTheRollout, `expedite = ["payments-live"]`+"\n    "+ofTheRollout)
	s.run("2 2 2 2")
	s.edit(`expedite = ["payments-live"]`+"\n    ", "")
	s.report("ready", "canary-1", "europe-1", "america-1", "asia-1")
	s.clock.now = christmas.AddDate(0, 0, 4)
	s.run("2 2 2 2")
	s.want("3")
	s.run("3 2 2 2") // 72 hours are over
	s.edit(`"0 0 24 12 *"`, `"0 0 28 12 *"`)
	s.report("failed", "canary-1")
	s.run("2 2 2 2") // going back waits for no window
	s.saysThat("failed and was rolled back")
}

// Its table, played through the provider: what happens before a run is in the words of the table.
func TestTheGuideOnStagedRolloutsShowsWhatPlansSay(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "templates", "guides", "staged-rollouts.md.tmpl"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "<!-- timeline -->\n")
	table, _, ok := strings.Cut(table, "<!-- end of timeline -->")
	rows := strings.Split(strings.TrimSpace(table), "\n")[2:]
	if !ok || len(rows) < 5 {
		t.Fatalf("the table is\n%s", table)
	}
	r, version := newRings(t), "1"
	for _, row := range rows {
		cells := strings.Split(row, " | ")
		for _, happens := range strings.Split(cells[1], ", ") {
			who, what, _ := strings.Cut(strings.ReplaceAll(happens, "the last one", "rest"), " ")
			switch what {
			case "is ready":
				r.report(who, observe.Ready)
			case "has failed":
				r.report(who, observe.Failed)
			case "restarts":
				r.report(who, observe.Progressing)
			case "is no report yet":
			default:
				found := regexp.MustCompile(`^(\d) is wanted$`).FindStringSubmatch(what)
				if found == nil {
					t.Fatalf("who knows what %q is", happens)
				}
				version = found[1]
			}
		}
		plan := r.run(version, strings.ReplaceAll(cells[2], ",", ""))
		switch says := strings.TrimSuffix(cells[3], " |"); {
		case says == "the plan is empty: it waits as before":
			if !plan.Empty() {
				t.Errorf("%s: it says %s", row, said(plan))
			}
		case says == "nothing: it is rolled out":
			if after(plan)["rolled_out"] != true {
				t.Errorf("%s: it says %s", row, said(plan))
			}
		case !strings.Contains(said(plan), says):
			t.Errorf("%s: it says %s", row, said(plan))
		}
	}
}
