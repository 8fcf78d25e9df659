package provider_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
)

// scriptedRollout is an assignment with three stages whose evidence is a file. The test writes the file before each run.
type scriptedRollout struct {
	t        *testing.T
	repo     repository
	w        workdir
	now      time.Time // time of the evidence
	commits  map[string]string
	verdicts map[string]verdict.Verdict
	settings string // further attributes of the rollout
}

func newScriptedRollout(t *testing.T, tool, settings string) *scriptedRollout {
	t.Helper()
	repo, _, _ := giteaWithUser(t)
	s := &scriptedRollout{
		t: t, repo: repo, now: time.Now().UTC().Truncate(time.Second), commits: map[string]string{}, verdicts: map[string]verdict.Verdict{}, settings: settings,
	}
	s.w = newWorkdir(t, tool, map[string]string{"main.tf": s.configuration("1")})
	return s
}

func (s *scriptedRollout) configuration(version string) string {
	rings, clusters := "", ""
	for _, ring := range []string{"canary", "region", "rest"} {
		rings += fmt.Sprintf("{ name = %q, labels = { ring = %q } },\n", ring, ring)
		clusters += fmt.Sprintf("{ name = %q, cluster_type = %q, environment = \"dev\" },\n", ring, ring)
	}
	return requiredProviders + s.repo.provider + fmt.Sprintf(`
locals {
  fleet = provider::flotilla::fleet({
    environment   = "dev"
    workspaces    = [{ name = "team" }]
    cluster_types = [%s]
    clusters      = [%s]
    workloads = [{
      name = "app", workspace = "team"
      deployment_targets = { core = { environment = "dev", manifests = { repo = "https://git.example.com/app", branch = "main" } } }
    }]
    target_policies   = [{ name = "all", deployment_target_selector = {}, cluster_type_selector = {} }]
    config_containers = [{ name = "all", data = { VERSION = %q } }]
  })
}

resource "flotilla_assignment" "test" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = { url = %q, branch = "dev", path = "" }
  evidence    = file("evidence.json")
  rollout = {
    stages = [for ring in ["canary", "region"] : { name = ring, cluster_type_selector = { match_labels = { ring = ring } } }]
    %s
  }
}
`, rings, clusters, version, s.repo.url, s.settings)
}

// writeEvidence writes reports of an hour later. The clusters in verdicts have the tip.
func (s *scriptedRollout) writeEvidence(verdicts map[string]verdict.Verdict) {
	s.t.Helper()
	s.now = s.now.Add(time.Hour)
	tip := s.tip()
	e := &observe.Evidence{
		About: observe.About{Owner: "dev", Environment: "dev", Branch: "dev"}, Time: s.now, Tip: tip,
		Clusters: map[string]observe.ClusterEvidence{}, Trees: map[string]map[string]string{},
	}
	for name, verdict := range verdicts {
		s.commits[name], s.verdicts[name] = tip, verdict
	}
	for _, name := range []string{"canary", "region", "rest"} {
		c := observe.ClusterEvidence{Type: name, Status: verdict.Status{Verdict: verdict.Unknown}}
		if s.verdicts[name] != "" {
			c.Commit, c.Status = s.commits[name], verdict.Status{Verdict: s.verdicts[name], Since: s.now.Add(-10 * time.Minute)}
		}
		e.Clusters[name] = c
	}
	writeFile(s.t, filepath.Join(s.w.path, "evidence.json"), string(e.Marshal()))
}

// tip returns the commit of the branch, or "".
func (s *scriptedRollout) tip() string {
	s.t.Helper()
	id, _, _ := strings.Cut(git(s.t, s.t.TempDir(), "ls-remote", s.repo.cloneURL, "refs/heads/dev"), "\t")
	return id
}

// versions returns the deployed version of each host: "2 1 1".
func (s *scriptedRollout) versions() string {
	s.t.Helper()
	content := files(s.t, s.repo.clone(s.t, "dev"))
	var got []string
	for _, host := range []string{"canary", "region", "rest"} {
		_, version, _ := strings.Cut(content[host+"/app-core/platform-config.yaml"], "VERSION:")
		version, _, _ = strings.Cut(version, "\n")
		got = append(got, strings.Trim(strings.TrimSpace(version), `"'`))
	}
	return strings.Join(got, " ")
}

// planAndApply expects the planned rolled_out and the deployed versions. Later evidence without a decision must make an empty plan.
func (s *scriptedRollout) planAndApply(version string, verdicts map[string]verdict.Verdict, want string, rolledOut bool) {
	s.t.Helper()
	writeFile(s.t, filepath.Join(s.w.path, "main.tf"), s.configuration(version))
	s.writeEvidence(verdicts)
	plan := resourceChange(s.t, s.w.plan(), "flotilla_assignment.test")
	s.w.run("apply", "-input=false", "plan.out")
	if got := s.versions(); got != want {
		s.t.Fatalf("deployed %q, want %q", got, want)
	}
	if field(plan.After, "rolled_out") != rolledOut {
		s.t.Errorf("with %q, rolled_out is %v", fieldText(plan.After, "rolling_out"), field(plan.After, "rolled_out"))
	}
	s.writeEvidence(nil)
	if stdout, _, err := s.w.try("plan", "-input=false", "-no-color", "-detailed-exitcode"); err != nil {
		s.t.Errorf("evidence without a decision plans\n%s", stdout)
	}
}

func fieldText(after any, name string) string { return fmt.Sprint(field(after, name)) }

func TestRolloutInThreeStagesOnGitea(t *testing.T) {
	t.Parallel()
	const ready, failed = verdict.Ready, verdict.Failed
	all := map[string]verdict.Verdict{"canary": ready, "region": ready, "rest": ready}
	for name, tool := range acceptanceTools(t) {
		for _, onFailure := range []string{"halt", "roll_back"} {
			t.Run(name+"/"+onFailure, func(t *testing.T) {
				t.Parallel()
				if onFailure == "halt" {
					acceptancetest.Only(t)
				}
				s := newScriptedRollout(t, tool, fmt.Sprintf("on_failure = %q", onFailure))
				s.planAndApply("1", nil, "1  ", false)
				s.planAndApply("1", map[string]verdict.Verdict{"canary": ready}, "1 1 ", false)
				s.planAndApply("1", map[string]verdict.Verdict{"region": ready}, "1 1 1", false)
				s.planAndApply("1", all, "1 1 1", true)
				before := s.tip()
				s.planAndApply("2", all, "2 1 1", false)
				s.planAndApply("2", map[string]verdict.Verdict{"canary": ready}, "2 2 1", false)
				if onFailure == "halt" {
					s.planAndApply("2", map[string]verdict.Verdict{"region": failed}, "2 2 1", false)
					s.planAndApply("3", map[string]verdict.Verdict{"region": verdict.Unknown}, "3 2 1", false)
					s.planAndApply("3", map[string]verdict.Verdict{"canary": ready}, "3 3 1", false)
					s.planAndApply("3", map[string]verdict.Verdict{"region": ready}, "3 3 3", false)
					s.planAndApply("3", all, "3 3 3", true)
					return
				}
				forth := s.tip()
				s.planAndApply("2", map[string]verdict.Verdict{"region": failed}, "1 1 1", false)
				clone := s.repo.clone(t, "dev")
				if commits := git(t, clone, "rev-list", "--count", forth+"..dev"); commits != "1" {
					t.Errorf("the rollback made %s commits, want 1", commits)
				}
				if changed := git(t, clone, "diff", "--stat", before, "dev", "--", "canary", "region", "rest"); changed != "" {
					t.Errorf("the rollback left a difference:\n%s", changed)
				}
				s.planAndApply("2", all, "1 1 1", false)
			})
		}
	}
}

// The plan uses the time of the evidence; the apply uses the clock of the machine, which is hours earlier.
func TestASavedPlanWritesNothingAfterItsWindow(t *testing.T) {
	t.Parallel()
	for name, tool := range acceptanceTools(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScriptedRollout(t, tool, "")
			s.now = s.now.Add(6 * time.Hour)
			opens := s.now.Add(50 * time.Minute)
			s.settings = fmt.Sprintf(`windows = [{ kind = "allow", schedule = "%d %d * * *", duration = "30m" }]`, opens.Minute(), opens.Hour())
			writeFile(t, filepath.Join(s.w.path, "main.tf"), s.configuration("1"))
			s.writeEvidence(nil)
			plan := resourceChange(t, s.w.plan(), "flotilla_assignment.test")
			if fieldText(plan.After, "changes") == "[]" || field(plan.After, "content") == nil {
				t.Errorf("while the window is open, the plan is %v", plan.After)
			}
			if _, stderr, err := s.w.try("apply", "-input=false", "-no-color", "plan.out"); err == nil ||
				!words("Windows have closed").MatchString(stderr) {
				t.Errorf("an apply outside the window: %v\n%s", err, stderr)
			}
			if tip := s.tip(); tip != "" {
				t.Errorf("commit %s was written", tip)
			}
		})
	}
}
