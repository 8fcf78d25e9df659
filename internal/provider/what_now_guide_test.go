package provider_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

func TestTheGuideSaysWhatToDoAfterAnAccident(t *testing.T) {
	t.Parallel()
	playTable(t, nightGuide, "it happened | what it does | do this", []guideRow{
		{"two runs applied at once | The lock of the state stops one of them. Without a lock, the later one fails where " +
			"both write a folder, and writes nothing. No commit is lost. | Plan again, and apply. Use a backend with [a " +
			"lock](ci.md#pipelines).", twoRunsAtOnce},
		{"a credential expired during a rollout | The run fails, and the rollout stays at its stage. A cluster whose " +
			"agent cannot read the branch counts as failed: that halts the rollout, and rolls nothing back. | [Renew " +
			"it](delivery.md#an-expired-or-wrong-credential), and apply. The rollout goes on.", aCredentialOfARollout},
		{"a person edited files on the branch | The next plan names the files and the commit. The next apply restores " +
			"them, also on a schedule. | Stop the schedule, and apply a [hold](reference-settings.md#hold) on the host: " +
			"it keeps the edit. Make it in the configuration, by [`parameters`](reference-rendering.md#parameters), a config " +
			"container or the manifests, and remove the hold.", anEditByHand},
		{"a workload or a deployment target was renamed | It is another one: one apply removes the former folder of a " +
			"host and adds the new one. A [namespace that Flotilla names](clusters.md#remove-a-cluster) goes with its " +
			"content. | Keep the former name. Or add the new one beside it, move the data, and remove the former one in a " +
			"later apply.", aRenamedWorkload},
		{"the Git server is down | Plans and applies fail with `Repository cannot be reached`, and write nothing. " +
			"Clusters keep running; rollouts and repairs wait. | Apply when it answers.", aGitServerThatIsDown},
		{"a server of charts or artifacts is down | The plan has the error `Artifacts cannot be resolved`. | Set " +
			"`keep_unreachable = true` of [`flotilla_artifacts`](rendering.md#pins): the deployed pins stay, with a " +
			"warning.", aServerOfChartsThatIsDown},
		{"a chart, a version or a tag is gone from its server | The same error, also with `keep_unreachable`. | Name " +
			"another version. To keep the deployed pin, leave the deployment target out of [`update`](rendering.md#pins).", aChartThatIsGone},
		{"the key of a signature was changed | Content that only the new key signed is the error `Manifests cannot be " +
			"rendered`, and the branch keeps what it has. | Add the new key to [`keys`](rendering.md#signatures) beside " +
			"the old one. Each plan verifies again: remove the old one when it signs nothing of the fleet any more.", aChangedKey},
		{"a plan adds everything again | The run has no state of the assignment: it has another backend or " +
			"workspace, or the state is lost. The warning `Folders are there already` names the last commit and its " +
			"run. | Do not apply before you know which. Correct the backend or the workspace; for a lost state, see " +
			"[Backup and recovery](#backup-and-recovery). A wrong apply takes the folders over: see [One name in two " +
			"states](assignments.md#one-name-in-two-states).", aRunWithoutItsState},
		{"a plan is empty although a value changed | The value reaches no folder: no assignment has all labels of " +
			"its container, or a later container overrides it. A rollout that waits and `rollback_to` have a warning. " +
			"| Ask [`flotilla_config_snapshots`](how-it-works.md#configuration) with `key`: it names the container of " +
			"each value, and those that it overrode.", aValueWithoutEffect},
		{"a destroy was stopped | One commit removes the folders of an assignment, so either all are there or none. Agents that " +
			"follow removed folders remove their workloads. | To keep the fleet, apply at once: this writes the folders and " +
			"agents again, but restores no data of [namespaces](clusters.md#remove-a-cluster). To finish, destroy again.", aStoppedDestroy},
		{"a cluster was rebuilt under its name | The plan says that the cluster was replaced by another one. Its " +
			"folders stay as they are. | Set its new address and credentials in `clusters`, and apply: this brings " +
			"its agent and the agent's credentials. Bring keys for [encrypted files](secrets.md#secrets-of-workloads) " +
			"yourself.", aRebuiltCluster},
		{"a cluster was renamed | It is another one: one apply removes its own folders and adds them under the new " +
			"name. A [namespace that Flotilla names](clusters.md#remove-a-cluster) goes with its content. | Keep the " +
			"former name in the fleet and in `clusters`; it may differ from the name in the cloud. Or keep both names " +
			"in `clusters` until the apply has replaced the agent.", aRenamedCluster},
		{"the GitOps repository has another URL: it was renamed, or moved to another Git host | With its history, " +
			"the assignment continues at the new URL, and no folder changes. Without, it is a " +
			"[move](assignments.md#move). | Copy it with `git clone --mirror`. Set the new URL in `gitops_repo` of " +
			"assignments and agents, and credentials for the new host, and apply.", aMovedRepository},
		{"the `signing_key` expired | Plans fail. With `allowed_signers`, records that an expired key signed are " +
			"not believed, except by the state that wrote them. SSH keys do not expire. | Extend the key, or make a " +
			"new one. Set it as `signing_key`, and its public key in `allowed_signers`, and apply.", anExpiredSigningKey},
		{"two teams have a workload of one name | In one fleet, the plan has an error that names both. In two " +
			"fleets that share a host, it has the error `Folder does not belong to this assignment`. | Give the newer " +
			"one another name.", twoWorkloadsOfOneName},
	})
}

func twoRunsAtOnce(t *testing.T) {
	h, first := planOnTokenHost(t)
	second := providertest.New(startProvider)
	second.State = h.w.State.Clone()
	other, _ := mustPlan(t, second, h.assigned(databaseFleet("three"), nil))
	if diags := h.w.ApplyPlan(t.Context(), first); diags.Err() != nil {
		t.Fatal(diags)
	}
	tip := h.tip()
	expectError(t, second.ApplyPlan(t.Context(), other), "Repository has changed since the plan", "gitops_repo", tip, "Nothing was written")
	h.w = second
	h.applyAndExpect("three")
}

func anEditByHand(t *testing.T) {
	p := newAssignmentPair(t)
	const file = "clusters/all/large/app-core/platform-config.yaml"
	commitByHand(t, p.url, "dev", func(folder string) {
		path := filepath.Join(folder, filepath.FromSlash(file))
		writeFile(t, path, strings.Replace(readFile(t, path), "two", "by-hand", 1))
	})
	edited := git(t, p.url, "rev-parse", "--short=8", "dev")
	plan, _ := mustPlan(t, p.w, p.configuration("two"))
	want := "platform-config.yaml: data.DATABASE_URL, on large: app-core, by hand, since commit " + edited
	if lines := strings.Join(linesOf(plan), "\n"); !strings.Contains(lines, want) {
		t.Errorf("the plan has\n%s", lines)
	}
	held := p.configuration("two")
	held.Resources[assignment].Attributes["holds"] = []any{map[string]any{"hosts": []any{"large"}, "reason": "a hot fix"}}
	apply(t, p.w, held)
	if text := git(t, p.url, "show", "dev:"+file); !strings.Contains(text, "by-hand") {
		t.Errorf("the hold does not keep the edit:\n%s", text)
	}
	apply(t, p.w, p.configuration("two"))
	if text := git(t, p.url, "show", "dev:"+file); strings.Contains(text, "by-hand") {
		t.Errorf("the edit is still there:\n%s", text)
	}
	p.expectDone()
}

// aRenamedWorkload renames a workload in one step, and another in the two steps of the guide.
func aRenamedWorkload(t *testing.T) {
	r := newRings(t)
	fleet := func(names ...string) providertest.Configuration {
		workloads := []any{}
		for _, name := range names {
			workloads = append(workloads, map[string]any{"name": name, "workspace": "team", "deployment_targets": map[string]any{
				"core": map[string]any{"environment": "dev", "manifests": map[string]any{"repo": "https://git.example.com/app", "branch": "main"}},
			}})
		}
		call := providertest.Call{Function: "fleet", Arguments: []any{ringFleet("1", map[string]any{"workloads": workloads})}}
		return r.withEvidence(assigned(r.url, call, map[string]any{"rollout": r.rollout}), call)
	}
	plan, _ := mustPlan(t, r.w, fleet("shop"))
	lines := strings.Join(linesOf(plan), "\n")
	if !strings.HasPrefix(lines, "1 host; assignments: 0 changed, 1 added, 1 removed, 3 in all\n- canary/app-core, by ") ||
		!strings.Contains(lines, "\n+ canary/shop-core, by ") {
		t.Errorf("the plan has\n%s", lines)
	}
	namespace := func(name string) string {
		return git(t, r.url, "show", "dev:clusters/all/canary/"+name+"-core/namespace.yaml")
	}
	if plan, _ := mustPlan(t, r.w, fleet("app", "shop")); !strings.Contains(linesOf(plan)[0], " 0 removed") {
		t.Errorf("with both names, the plan has %q", linesOf(plan))
	}
	apply(t, r.w, fleet("app", "shop"))
	for _, name := range []string{"app", "shop"} {
		if text := namespace(name); !strings.Contains(text, "dev-canary-"+name+"-core") {
			t.Errorf("the namespace of %s is\n%s", name, text)
		}
	}
}

// withEvidence adds evidence without reports, so only the time counts.
func (r *rings) withEvidence(c providertest.Configuration, fleet providertest.Call) providertest.Configuration {
	c.Resources[assignment].Attributes["evidence"] = providertest.Reading{
		DataSource: "flotilla_compliance", Attribute: "evidence", Attributes: map[string]any{
			"name": "dev", "fleet": fleet, "gitops_repo": map[string]any{"url": r.url, "branch": "dev", "path": "clusters/all"},
			"feedback": map[string]any{},
		},
	}
	return c
}

func aGitServerThatIsDown(t *testing.T) {
	h, plan := planOnTokenHost(t)
	before := h.tip()
	h.setDisturbance(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) bool {
		http.Error(w, "maintenance", http.StatusServiceUnavailable)
		return true
	})
	_, diags := h.w.Plan(t.Context(), h.assigned(databaseFleet("two"), nil))
	expectError(t, diags, "Repository cannot be reached", "gitops_repo", "503 Service Unavailable")
	expectError(t, h.w.ApplyPlan(t.Context(), plan), "Repository cannot be reached", "gitops_repo", "Nothing was written.")
	h.endDisturbance()
	if h.tip() != before {
		t.Error("the failed apply changes the branch")
	}
	h.applyAndExpect("two")
}

// deployedCharts deploys a chart. It returns functions that read its pins and set the versions in its repository.
func deployedCharts(t *testing.T) (read func(further ...any) (map[string]any, string), setVersions func(versions ...string), repo string) {
	t.Helper()
	repo, setVersions = serveCharts(t)
	setVersions("1.2.1")
	url, workloads := bare(t), tillWorkloads(repo, "1.x")
	first, _ := readArtifacts(t, map[string]any{"workloads": workloads, "environment": "dev"})
	fleet := fleetOf(map[string]any{"workloads": workloads, "artifacts": first["artifacts"]})
	apply(t, providertest.New(startProvider), assigned(url, fleet, nil))
	return func(further ...any) (map[string]any, string) {
		return readArtifacts(t, with(map[string]any{
			"workloads": workloads, "environment": "dev", "name": "dev",
			"gitops_repo": map[string]any{"url": url, "branch": "dev", "path": "clusters/all"},
		}, further...))
	}, setVersions, repo
}

func aServerOfChartsThatIsDown(t *testing.T) {
	read, setVersions, _ := deployedCharts(t)
	setVersions()
	if _, text := read(); !strings.Contains(text, "Artifacts cannot be resolved") {
		t.Errorf("the pins have the error %s", text)
	}
	values, text := read("keep_unreachable", true)
	if pins := fmt.Sprint(values["pins"]); !strings.Contains(pins, "1.2.1") || !strings.Contains(text, "Pins stay as they are deployed") {
		t.Errorf("got pins %s: %s", pins, text)
	}
}

func aChartThatIsGone(t *testing.T) {
	read, setVersions, repo := deployedCharts(t)
	setVersions("2.0.0")
	for _, keep := range []bool{false, true} {
		if _, text := read("keep_unreachable", keep); !strings.Contains(text, "Artifacts cannot be resolved") || !strings.Contains(text, repo) {
			t.Errorf("with keep_unreachable = %t the pins have the error %s", keep, text)
		}
	}
	values, text := read("update", []any{})
	if pins := fmt.Sprint(values["pins"]); !strings.Contains(pins, "1.2.1") {
		t.Errorf("without an update, got pins %s: %s", pins, text)
	}
}

// aChangedKey trusts the old key, then both keys, then the new key.
func aChangedKey(t *testing.T) {
	repo, unsigned, repository := serveWorkingCopy(t, map[string]string{"plain/all.yaml": fmt.Sprintf(greeting, t.Name())})
	oldKey, oldPublic := sshKey(t, "")
	newKey, newPublic := sshKey(t, "")
	ids := signCommits(t, repository, unsigned, map[string]string{"old": oldKey, "new": newKey})
	for _, test := range []struct {
		commit string
		keys   []string
		wants  string // "" for none
	}{
		{"new", []string{oldPublic}, "has no signature of a trusted key"}, {"new", []string{oldPublic, newPublic}, ""},
		{"old", []string{oldPublic, newPublic}, ""}, {"old", []string{newPublic}, "has no signature of a trusted key"},
	} {
		block := trustSources(append([]string{repo}, test.keys...))
		manifests := map[string]any{"repo": repo, "commit": ids[test.commit], "path": "plain"}
		fleet := renderedFleet(folder.Pin{}, manifests, nil, requireSigned(gitVerify))
		text := verifyError(t, block, fleet)
		isTitled := text == "" || strings.Contains(text, "Manifests cannot be rendered")
		if test.wants == "" && text != "" || !strings.Contains(text, test.wants) || !isTitled {
			t.Errorf("the commit %q with %d trusted keys: got %q", test.commit, len(test.keys), text)
		}
	}
}

// aCredentialOfARollout lets the token of a run expire between two stages.
func aCredentialOfARollout(t *testing.T) {
	h := newTokenHost(t)
	configuration := func(version string) providertest.Configuration {
		fleet := providertest.Call{Function: "fleet", Arguments: []any{ringFleet(version, nil)}}
		return h.assigned(fleet, map[string]any{
			"rollout": ringRollout(nil),
			"evidence": providertest.Reading{DataSource: "flotilla_compliance", Attribute: "evidence", Attributes: map[string]any{
				"name": "dev", "fleet": fleet, "gitops_repo": map[string]any{"url": h.url, "branch": "dev", "path": "clusters/all"},
				"feedback": map[string]any{},
			}},
		})
	}
	apply(t, h.w, h.assigned(providertest.Call{Function: "fleet", Arguments: []any{ringFleet("1", nil)}}, nil))
	apply(t, h.w, configuration("2")) // reaches the canary
	before := h.tip()
	h.expire(isAnyRequest)
	if _, diags := h.w.Apply(t.Context(), configuration("2")); !diags.Has(refusesCredentials) || diags.Err() == nil {
		t.Errorf("the apply reports %s", diags)
	}
	h.endDisturbance()
	if h.tip() != before {
		t.Error("the failed apply changes the branch")
	}
	if plan := apply(t, h.w, configuration("2")); !strings.Contains(strings.Join(linesOf(plan), " "), "on region") {
		t.Errorf("with a new token the plan has %q", linesOf(plan))
	}
}
