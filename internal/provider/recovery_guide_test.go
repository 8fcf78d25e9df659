package provider_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/provider"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

const nightGuide = "night.md"

// Each row loses something and follows the remedy. The branch must end with the same files, and the last plan must be empty.
func TestTheGuideRecoversLostData(t *testing.T) {
	t.Parallel()
	playTable(t, nightGuide, "lost | what happens | recovery", []guideRow{
		{"the state | The first plan finds the records of the former state and names their last commit in a warning. `changes` lists every " +
			"assignment as added, but files whose content is as wanted stay as they are, so clusters change nothing. | Apply. Or " +
			"[import](assignments.md#list-and-import) the assignment. The apply finds the objects of `flotilla_agent`; `flotilla_cluster_claim` needs `adopt = true`, or an import. Give `flotilla_promotion` and " +
			"`flotilla_rollout` their values by import.", testLostState},
		{"the GitOps repository | The plan has the warning `Repository is gone`. Agents report that they cannot read their source; workloads " +
			"keep running. | Create an empty repository at the same URL, and apply all assignments of each branch, best in one run: an agent " +
			"whose folder lacks the other assignments removes their workloads. History, and rollouts that were under way, are lost.",
			testLostRepository},
		{"both | The first plan creates everything, as on the first day. | As for the repository. With `rollout`, all stages start at the " +
			"first one: use `expedite`, so that the branch soon has everything that runs.", testLostStateAndRepository},
		{"a branch that someone rewound, by a force push | The plan says that the branch was rewritten and which commit it lacks, and shows the differences. | " +
			"Apply.", testRewoundBranch},
		{"the branch, deleted | The plan has the warning `Branch does not exist any more`. With pull requests it is an error. | Restore the " +
			"branch at the Git host, or apply all assignments of the branch, best in one run, as for the repository.", testDeletedBranch},
		{"a record in `.flotilla/` | The plan shows it as drift. | Apply.", testLostRecord},
		{"the newest state, so that a backup took its place | The plan reads the folders from the branch: at most, " +
			"it repairs records. Objects that are newer than the backup are as with a lost state. " +
			"`flotilla_promotion` and `flotilla_rollout` have the values of the backup, so a fleet may go back to " +
			"older versions. | Remove these two from the state, and import them with today's values: " +
			"[promotion](../resources/promotion.md#import), [rollout](../resources/rollout.md#import). Then read the plan, and " +
			"apply.", aRestoredState},
	})
}

// assignmentPair has two assignments on one branch, in one configuration and one state.
type assignmentPair struct {
	t     *testing.T
	url   string
	w     *providertest.Workspace
	wants map[string]string // files of the branch, without times
}

func newAssignmentPair(t *testing.T) *assignmentPair {
	t.Helper()
	p := &assignmentPair{t: t, url: bare(t), w: providertest.New(startProvider)}
	apply(t, p.w, p.configuration("one"))
	apply(t, p.w, p.configuration("two"))
	p.wants = p.files()
	return p
}

func (p *assignmentPair) configuration(value string) providertest.Configuration {
	c := assigned(p.url, databaseFleet(value), nil)
	other := assigned(p.url, databaseFleet(value), map[string]any{
		"name": "other", "gitops_repo": map[string]any{"url": p.url, "branch": "dev", "path": "other"},
	})
	c.Resources["flotilla_assignment.other"] = other.Resources[assignment]
	return c
}

func (p *assignmentPair) files() map[string]string {
	return removeTimes(repository{cloneURL: p.url}.read(p.t, "dev"))
}

// recover applies. The branch must have its former files, and the next plan must be empty.
func (p *assignmentPair) recover() {
	p.t.Helper()
	apply(p.t, p.w, p.configuration("two"))
	sameFiles(p.t, p.files(), p.wants)
	p.expectDone()
}

func (p *assignmentPair) expectDone() {
	p.t.Helper()
	if plan, diags := mustPlan(p.t, p.w, p.configuration("two")); !plan.Empty() {
		p.t.Errorf("the plan has %q: %s", linesOf(plan), diags)
	}
}

// TestAnAgentIsPutOntoAClusterAndKeptThere and TestAClaimThatLostItsStateIsImported lose the states of agents and claims.
func testLostState(t *testing.T) {
	p := newAssignmentPair(t)
	tip := git(t, p.url, "rev-parse", "dev")
	p.w.Lose(assignment)
	plan, diags := mustPlan(t, p.w, p.configuration("two"))
	if lines := strings.Join(linesOf(plan), "\n"); !strings.Contains(lines, "0 changed, 3 added, 0 removed, 3 in all") {
		t.Errorf("the plan has\n%s", lines)
	}
	last := git(t, p.url, "log", "-1", "--format=%H", "--grep=Assignment: dev$", "dev")[:12]
	if !diags.Has("Folders are there already") || !strings.Contains(diags.String(), last) {
		t.Errorf("the plan says %s", diags)
	}
	p.recover()
	if changed := git(t, p.url, "diff", "--name-only", tip, "dev"); strings.Contains(changed, "/app-") {
		t.Errorf("the apply changed\n%s", changed)
	}

	p.w.Lose(assignment)
	if diags := p.w.Import(t.Context(), p.configuration("two"), assignment, p.url+"#dev:clusters/all:dev"); diags.Err() != nil {
		t.Fatal(diags)
	}
	p.expectDone()

	imported := promotionConfig(map[string]any{"candidate": "b", "open": false})
	if diags := p.w.Import(t.Context(), imported, promotion, `"a"`); diags.Err() != nil {
		t.Fatal(diags)
	}
	// TestALostStateOfARolloutUpgradesNothing imports flotilla_rollout.
	if value := p.w.State.Values(promotion)["promoted"]; !strings.Contains(fmt.Sprint(value), "value:a") {
		t.Errorf("%v is promoted", value)
	}
}

func testLostRepository(t *testing.T) {
	p := newAssignmentPair(t)
	if err := os.RemoveAll(p.url); err != nil {
		t.Fatal(err)
	}
	if _, diags := mustPlan(t, p.w, p.configuration("two")); !diags.Has("Repository is gone") {
		t.Errorf("the plan says %s", diags)
	}
	git(t, "", "init", "--quiet", "--bare", p.url)
	p.recover()
}

func testLostStateAndRepository(t *testing.T) {
	url := bare(t)
	location := map[string]any{"url": url, "branch": "dev", "path": "clusters/all"}
	configuration := func(further map[string]any) providertest.Configuration {
		fleet := providertest.Call{Function: "fleet", Arguments: []any{ringFleet("1", nil)}}
		return assigned(url, fleet, map[string]any{
			"rollout": ringRollout(further),
			"evidence": providertest.Reading{DataSource: "flotilla_compliance", Attribute: "evidence", Attributes: map[string]any{
				"name": "dev", "fleet": fleet, "gitops_repo": location, "feedback": map[string]any{},
			}},
		})
	}
	writtenHosts := func() (hosts []string) {
		for _, host := range ringHosts {
			if git(t, url, "ls-tree", "dev", "clusters/all/"+host+"/app-core") != "" {
				hosts = append(hosts, host)
			}
		}
		return hosts
	}
	all := configuration(map[string]any{"expedite": []any{"app-core"}})
	apply(t, providertest.New(startProvider), all)
	if err := os.RemoveAll(url); err != nil {
		t.Fatal(err)
	}
	git(t, "", "init", "--quiet", "--bare", url)
	clock := &stoppedClock{now: time.Now()}
	w := providertest.New(provider.StartAt(clock))
	if apply(t, w, configuration(nil)); !slices.Equal(writtenHosts(), ringHosts[:1]) {
		t.Errorf("the first stage has %q", writtenHosts())
	}
	apply(t, w, all)
	clock.now = clock.now.Add(time.Hour)
	apply(t, w, all) // the soak time of the last stage is over
	if plan, _ := mustPlan(t, w, all); !plan.Empty() || !slices.Equal(writtenHosts(), ringHosts) {
		t.Errorf("with expedite, the hosts are %q, and the plan has %q", writtenHosts(), linesOf(plan))
	}
}

func testRewoundBranch(t *testing.T) {
	p := newAssignmentPair(t)
	lost := strings.Fields(git(t, p.url, "log", "-2", "--abbrev=8", "--format=%h", "dev")) // from either assignment
	git(t, p.url, "update-ref", "refs/heads/dev", "dev~2")
	plan, _ := mustPlan(t, p.w, p.configuration("two"))
	lines := strings.Join(linesOf(plan), "\n")
	isNamed := strings.Contains(lines, "without commit "+lost[0]) || strings.Contains(lines, "without commit "+lost[1])
	if !strings.Contains(lines, "the branch was rewritten") || !isNamed || !strings.Contains(lines, "DATABASE_URL, on large: app-core") {
		t.Errorf("the plan has\n%s", lines)
	}
	p.recover()
}

func testDeletedBranch(t *testing.T) {
	p := newAssignmentPair(t)
	git(t, p.url, "update-ref", "-d", "refs/heads/dev")
	if _, diags := mustPlan(t, p.w, p.configuration("two")); !diags.Has("Branch does not exist any more") {
		t.Errorf("the plan says %s", diags)
	}
	p.recover()

	h := newTokenHost(t)
	proposed := h.assigned(databaseFleet("one"), map[string]any{"delivery": map[string]any{"mode": "pull_request", "forge": "github"}})
	apply(t, h.w, proposed)
	deleted := h.tip()
	git(t, h.bare, "update-ref", "-d", "refs/heads/dev")
	_, diags := h.w.Plan(t.Context(), proposed)
	expectError(t, diags, "Branch does not exist", "gitops_repo")
	git(t, h.bare, "update-ref", "refs/heads/dev", deleted)
	h.expectEmptyPlan(proposed)
}

func testLostRecord(t *testing.T) {
	p := newAssignmentPair(t)
	commitByHand(t, p.url, "dev", func(folder string) {
		removeFile(t, filepath.Join(folder, "clusters", "all", ".flotilla", "dev", "large.json"))
	})
	plan, _ := mustPlan(t, p.w, p.configuration("two"))
	if lines := strings.Join(linesOf(plan), "\n"); !strings.Contains(lines, "marker or record repaired, on large") {
		t.Errorf("the plan has\n%s", lines)
	}
	p.recover()
}

// Each row provokes its error and follows the remedy. The last plan must be empty.
func TestTheGuideContinuesAFailedApply(t *testing.T) {
	t.Parallel()
	playTable(t, nightGuide, "the error says | the branch has | do this", []guideRow{
		{"`whether the branch has commit … is not known` | the former commit or the whole new one | Plan: it reads the branch and shows what is " +
			"left.", testUnknownOutcome},
		{"`Repository refuses the commit` | the former commit | Read the server's words: a protected branch, a hook, or missing permissions. " +
			"Let the account push, or deliver by [pull request](delivery.md).",
			testRefusedCommit},
		{"`Repository has changed since the plan` | the former commit and the commit of the other writer | Plan again, and review it.",
			testChangeSincePlan},
		{"`The commit is pushed, but its pull request is not complete` | the proposed commit on its branch | Apply again: it completes the " +
			"same request.", testIncompleteRequest},
		{"that the process was killed | the former commit or the whole new one | Plan.", testKilledProcess},
		{"`Error acquiring the state lock` | the former commit or the whole new one | If no run is under way, run `terraform force-unlock` with " +
			"the ID in the error. Then plan.", testLeftLock},
		{"`The operation took longer than timeouts` | the former commit, or the whole new one if the server " +
			"accepts it later | Plan, and apply. If the server is slow, set the `timeouts` in the error.", aTimeoutOfAPush},
		{"anything else | the former commit | Correct the cause, plan, and apply.", testOtherFailure},
	})
}

// planOnTokenHost applies the value "one" and plans the value "two".
func planOnTokenHost(t *testing.T) (h *tokenHost, plan *providertest.Plan) {
	t.Helper()
	h = newTokenHost(t)
	apply(t, h.w, h.assigned(databaseFleet("one"), nil))
	plan, _ = mustPlan(t, h.w, h.assigned(databaseFleet("two"), nil))
	return h, plan
}

// applyAndExpect applies a value. The branch must have the value, and the next plan must be empty.
func (h *tokenHost) applyAndExpect(value string) {
	h.t.Helper()
	apply(h.t, h.w, h.assigned(databaseFleet(value), nil))
	if text := git(h.t, h.bare, "show", "dev:clusters/all/large/app-core/platform-config.yaml"); !strings.Contains(text, value) {
		h.t.Errorf("the branch has\n%s", text)
	}
	h.expectEmptyPlan(h.assigned(databaseFleet(value), nil))
}

func testUnknownOutcome(t *testing.T) {
	for _, isWritten := range []bool{true, false} {
		h, plan := planOnTokenHost(t)
		before, pushed := h.tip(), false
		h.setDisturbance(func(_ http.ResponseWriter, r *http.Request, next http.Handler) bool {
			if isPush(r) && r.Method == http.MethodPost && !pushed {
				if pushed = true; isWritten {
					next.ServeHTTP(httptest.NewRecorder(), r)
				} else {
					_, _ = io.Copy(io.Discard, r.Body)
				}
			}
			if pushed {
				panic(http.ErrAbortHandler)
			}
			return false
		})
		diags := h.w.ApplyPlan(t.Context(), plan)
		expectError(t, diags, "Repository cannot be reached", "gitops_repo", "whether the branch has commit ", " is not known")
		if strings.Contains(diags.String(), "Nothing was written") {
			t.Errorf("the apply says %s", diags)
		}
		h.endDisturbance()
		if isWritten == (h.tip() == before) {
			t.Errorf("written: %t", isWritten)
		}
		next, _ := mustPlan(t, h.w, h.assigned(databaseFleet("two"), nil))
		if lines := strings.Join(linesOf(next), "\n"); strings.Contains(lines, "DATABASE_URL") == isWritten {
			t.Errorf("written: %t, and the plan has\n%s", isWritten, lines)
		}
		h.applyAndExpect("two")
	}
}

func testRefusedCommit(t *testing.T) {
	h, plan := planOnTokenHost(t)
	before, hook := h.tip(), filepath.Join(h.bare, "hooks", "pre-receive")
	writeFile(t, hook, "#!/bin/sh\necho 'dev is frozen until Monday' >&2\nexit 1\n")
	if err := os.Chmod(hook, 0o700); err != nil {
		t.Fatal(err)
	}
	diags := h.w.ApplyPlan(t.Context(), plan)
	expectError(t, diags, "Repository refuses the commit", "gitops_repo", "frozen until Monday", "Nothing was written.")
	if h.tip() != before {
		t.Error("something was written")
	}
	removeFile(t, hook)
	h.applyAndExpect("two")
}

func testChangeSincePlan(t *testing.T) {
	h, plan := planOnTokenHost(t)
	commitByHand(t, h.bare, "dev", func(folder string) {
		writeFile(t, filepath.Join(folder, "clusters", "all", "large", "app-core", "by-hand.yaml"), "by: hand\n")
	})
	theirs := h.tip()
	expectError(t, h.w.ApplyPlan(t.Context(), plan), "Repository has changed since the plan", "gitops_repo", theirs, "Nothing was written")
	if h.tip() != theirs {
		t.Error("something was written")
	}
	next, _ := mustPlan(t, h.w, h.assigned(databaseFleet("two"), nil))
	if lines := strings.Join(linesOf(next), "\n"); !strings.Contains(lines, "by-hand.yaml: file removed, on large: app-core, by hand, since commit "+theirs[:8]) {
		t.Errorf("the next plan has\n%s", lines)
	}
	h.applyAndExpect("two")
}

func testIncompleteRequest(t *testing.T) {
	h, _ := planOnTokenHost(t)
	proposed := h.assigned(databaseFleet("two"), map[string]any{"delivery": map[string]any{"mode": "pull_request", "forge": "github"}})
	h.setDisturbance(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if opensRequest(r) {
			http.Error(w, `{"message": "maintenance"}`, http.StatusServiceUnavailable)
		}
		return opensRequest(r)
	})
	_, diags := h.w.Apply(t.Context(), proposed)
	expectError(t, diags, "Git host cannot be reached", "delivery", "The commit is pushed, but its pull request is not complete", "maintenance")
	pushed := git(t, h.bare, "rev-parse", "flotilla/dev/clusters/all/dev")
	h.endDisturbance()
	apply(t, h.w, proposed)
	if h.expectEmptyPlan(proposed); len(h.pullRequests) != 1 || git(t, h.bare, "rev-parse", "flotilla/dev/clusters/all/dev") != pushed {
		t.Errorf("the open requests are %v", h.pullRequests)
	}
}

// TestReliabilityKilled… kills real processes. Here the apply is missing from the state, with and without its commit on the branch.
func testKilledProcess(t *testing.T) {
	for _, isWritten := range []bool{true, false} {
		h, plan := planOnTokenHost(t)
		before := h.w.State.Clone()
		if isWritten {
			if diags := h.w.ApplyPlan(t.Context(), plan); diags.Err() != nil {
				t.Fatal(diags)
			}
		}
		h.w.State = before
		h.applyAndExpect("two")
	}
}

func testLeftLock(t *testing.T) {
	if acceptancetest.All() {
		for _, tool := range tools(t) {
			unlockState(t, tool)
		}
	}
}

// unlockState follows the remedy with the state lock of a killed process.
func unlockState(t *testing.T, tool string) {
	t.Helper()
	const id = "5d3bd0f4-3c0e-4a52-a2f6-0d3f0a7f6c11"
	var mu sync.Mutex
	var state []byte
	locked := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case r.Method == "LOCK" && locked:
			w.WriteHeader(http.StatusLocked)
			fmt.Fprintf(w, `{"ID":%q,"Operation":"OperationTypeApply","Who":"ci@runner","Created":"2026-11-25T18:54:08Z"}`, id)
		case r.Method == "LOCK" || r.Method == "UNLOCK":
			locked = r.Method == "LOCK"
		case r.Method == http.MethodPost:
			state, _ = io.ReadAll(r.Body)
		case state == nil:
			w.WriteHeader(http.StatusNoContent)
		default:
			_, _ = w.Write(state)
		}
	}))
	defer server.Close()
	repo := bareRepository(t)
	w := newWorkdir(t, tool, map[string]string{
		"main.tf": requiredProviders + small{}.config(repo),
		"backend.tf": strings.ReplaceAll(
			"terraform {\n  backend \"http\" {\n    address = URL\n    lock_address = URL\n    unlock_address = URL\n  }\n}\n",
			"URL", strconv.Quote(server.URL),
		),
	})
	w.run("apply", "-input=false", "-auto-approve")
	mu.Lock()
	locked = true
	mu.Unlock()
	if out, stderr, err := w.try("plan", "-input=false", "-no-color"); err == nil || !strings.Contains(out+stderr, id) ||
		!strings.Contains(out+stderr, "Error acquiring the state lock") {
		t.Errorf("the plan of a locked state fails with %v\n%s%s", err, out, stderr)
	}
	w.run("force-unlock", "-force", id)
	if out, stderr, err := w.try("plan", "-input=false", "-no-color", "-detailed-exitcode"); err != nil {
		t.Errorf("the plan fails with %v\n%s%s", err, out, stderr)
	}
}

func testOtherFailure(t *testing.T) {
	h, plan := planOnTokenHost(t)
	before := h.tip()
	h.setDisturbance(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) bool {
		http.Error(w, "maintenance", http.StatusServiceUnavailable)
		return true
	})
	diags := h.w.ApplyPlan(t.Context(), plan)
	expectError(t, diags, "Repository cannot be reached", "gitops_repo", "503 Service Unavailable", "Nothing was written.")
	h.endDisturbance()
	if h.tip() != before {
		t.Error("something was written")
	}
	h.applyAndExpect("two")
}
