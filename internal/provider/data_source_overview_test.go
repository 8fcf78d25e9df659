package provider_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

func readOverview(t *testing.T, url string, further map[string]any) (map[string]any, providertest.Diagnostics) {
	t.Helper()
	arguments := map[string]any{
		"name": "dev", "fleet": fleetWithClusters(nil),
		"gitops_repo": map[string]any{"url": url, "branch": "dev", "path": "clusters/all"},
	}
	maps.Copy(arguments, further)
	return providertest.New(startProvider).ReadData(t.Context(), providertest.Configuration{}, "flotilla_overview", arguments)
}

func mustReadOverview(t *testing.T, url string, further map[string]any) map[string]any {
	t.Helper()
	values, diags := readOverview(t, url, further)
	if diags.Err() != nil {
		t.Fatal(diags.Err())
	}
	return values
}

// reportEvidence returns flotilla_compliance's evidence for these reports.
func reportEvidence(t *testing.T, url string, further map[string]any, reports ...any) string {
	t.Helper()
	arguments := map[string]any{"feedback": map[string]any{"reports": reports}}
	maps.Copy(arguments, further)
	text, _ := mustReadCompliance(t, url, arguments)["evidence"].(string)
	return text
}

func summaryNumbers(values map[string]any, names ...string) string {
	summary, _ := values["summary"].(map[string]any)
	var all []string
	for _, name := range names {
		all = append(all, fmt.Sprintf("%s %v", name, summary[name]))
	}
	return strings.Join(all, ", ")
}

func TestOverviewOfAnEmptyRepositoryShowsWantedAssignments(t *testing.T) {
	t.Parallel()
	values := mustReadOverview(t, bare(t), nil)
	if got := summaryNumbers(values, "hosts", "clusters", "assignments", "new", "not_asked", "up_to_date"); got != "hosts 3, clusters 3, assignments 3, new 3, not_asked 3, up_to_date 0" {
		t.Error(got)
	}
	if values["health_score"] != nil || values["health_grade"] != nil {
		t.Errorf("health is %v, %v", values["health_score"], values["health_grade"])
	}
	for name, score := range values["health_scores"].(map[string]any) {
		if score != nil {
			t.Errorf("host %s has score %v, want none", name, score)
		}
	}
	var audit map[string]any
	if err := json.Unmarshal([]byte(values["audit"].(map[string]any)["json"].(string)), &audit); err != nil {
		t.Fatal(err)
	}
	if audit["format"] != "1" || audit["commit"] != nil || audit["time"] != nil {
		t.Errorf("the audit is %v", audit)
	}
}

func TestOverviewShowsReports(t *testing.T) {
	t.Parallel()
	url := bare(t)
	apply(t, providertest.New(startProvider), assigned(url, fleetWithClusters(nil), nil))
	tip := git(t, url, "rev-parse", "dev")
	evidence := reportEvidence(t, url, nil, report("drone-1", tip, nil), report("drone-2", tip, nil),
		report("large-1", tip, map[string]any{"ready": false, "message": "no space"}))
	values := mustReadOverview(t, url, map[string]any{"evidence": evidence})
	if got := summaryNumbers(values, "ready", "progressing", "up_to_date", "new", "changed", "removed"); got != "ready 2, progressing 1, up_to_date 3, new 0, changed 0, removed 0" {
		t.Error(got)
	}
	// drone has two ready assignments on two clusters: 400. large has one that is progressing: 75.
	if got := fmt.Sprintf("%v %v %v", values["health_score"], values["health_grade"], values["health_scores"]); got != "95 good map[drone:100 large:75 spare:<nil>]" {
		t.Errorf("health is %s", got)
	}
	markdown, _ := values["markdown"].(string)
	html, _ := values["html"].(string)
	for _, want := range []string{"no space", "drone", tip[:7]} {
		if !strings.Contains(markdown, want) && want != "drone" || !strings.Contains(html, want) {
			t.Errorf("the page or the Markdown lacks %q: %s", want, markdown)
		}
	}
	for name, want := range map[string]string{"evidence": evidence, "model": "canary"} {
		if strings.Contains(fmt.Sprint(values["fleet"], values["evidence"]), want) {
			t.Errorf("the state keeps the %s", name)
		}
	}
	bounds := mustReadOverview(t, url, map[string]any{"evidence": evidence, "health": map[string]any{"good": 99, "poor": 96}})
	if bounds["health_grade"] != "poor" {
		t.Errorf("the grade with other bounds is %v", bounds["health_grade"])
	}
	// Evidence without clusters has a time and no verdicts.
	nobody, _ := mustReadCompliance(t, url, map[string]any{"feedback": map[string]any{}})["evidence"].(string)
	if values := mustReadOverview(t, url, map[string]any{"evidence": nobody}); values["health_score"] != nil ||
		summaryNumbers(values, "not_asked") != "not_asked 3" {
		t.Errorf("with evidence of no cluster, the health is %v, %s", values["health_score"], summaryNumbers(values, "not_asked"))
	}
}

// A region is not good if no cluster has reported, or none has applied a commit.
func TestOverviewCallsNoUnreportedRegionGood(t *testing.T) {
	t.Parallel()
	url := bare(t)
	regions := fleetWithClusters(map[string]any{"clusters": []any{
		map[string]any{"name": "drone-1", "cluster_type": "drone", "labels": map[string]any{"region": "north"}},
		map[string]any{"name": "drone-2", "cluster_type": "drone", "labels": map[string]any{"region": "south"}},
		map[string]any{"name": "large-1", "cluster_type": "large", "labels": map[string]any{"region": "west"}},
	}})
	apply(t, providertest.New(startProvider), assigned(url, regions, nil))
	// The agent of west has applied nothing yet. south is not read.
	known := map[string]any{"large-1": map[string]any{"host": serveLists(t, map[string][]any{
		"/apis/kustomize.toolkit.fluxcd.io/v1/kustomizations": {}, "/apis/source.toolkit.fluxcd.io/v1/gitrepositories": {},
	}), "token": "any"}}
	feedback := map[string]any{"clusters": true, "reports": []any{report("drone-1", git(t, url, "rev-parse", "dev"), nil)}}
	values, diags := readCompliance(t, url, map[string]any{"clusters": known}, map[string]any{"fleet": regions, "feedback": feedback})
	if diags.Err() != nil {
		t.Fatal(diags.Err())
	}
	html, _ := mustReadOverview(t, url, map[string]any{"fleet": regions, "evidence": values["evidence"]})["html"].(string)
	for region, good := range map[string]bool{"north": true, "south": false, "west": false} {
		_, row, found := strings.Cut(html, `data-region="`+region+`"`)
		row, _, _ = strings.Cut(row, "</tr>")
		if !found || strings.Contains(row, ">good<") != good {
			t.Errorf("region %s is %q, its clusters are %v", region, row, values["clusters"])
		}
	}
}

// The clusters cannot run a commit that is newer than the evidence.
func TestOverviewTellsOldEvidenceFromNew(t *testing.T) {
	t.Parallel()
	url := bare(t)
	w := providertest.New(startProvider)
	apply(t, w, assigned(url, fleetWithClusters(nil), nil))
	first := git(t, url, "rev-parse", "dev")
	evidence := reportEvidence(t, url, nil, report("drone-1", first, nil), report("drone-2", first, nil), report("large-1", first, nil))
	changed := map[string]any{"config_containers": []any{
		map[string]any{"name": "all", "data": map[string]any{"LOG_LEVEL": "info"}},
		map[string]any{"name": "large", "labels": map[string]any{"cluster-type": "large"}, "data": map[string]any{"DATABASE_URL": "mysql://two"}},
	}}
	before := mustReadOverview(t, url, map[string]any{"evidence": evidence, "fleet": fleetWithClusters(changed)})
	if got := summaryNumbers(before, "ready", "behind", "up_to_date", "changed"); got != "ready 3, behind 0, up_to_date 2, changed 1" ||
		fmt.Sprint(before["health_score"]) != "100" {
		t.Errorf("before the apply: got %s, score %v", got, before["health_score"])
	}
	apply(t, w, assigned(url, fleetWithClusters(changed), nil))
	after := mustReadOverview(t, url, map[string]any{"evidence": evidence, "fleet": fleetWithClusters(changed)})
	if got := summaryNumbers(after, "ready", "behind", "up_to_date", "changed"); got != "ready 2, behind 1, up_to_date 3, changed 0" ||
		fmt.Sprint(after["health_scores"]) != "map[drone:100 large:75 spare:<nil>]" {
		t.Errorf("after the apply: got %s, scores %v", got, after["health_scores"])
	}
	if text := after["markdown"].(string); !strings.Contains(text, "newer content") {
		t.Errorf("after the apply: got Markdown %s", text)
	}
}

func TestOverviewShowsRolloutsAndPromotions(t *testing.T) {
	t.Parallel()
	url := bare(t)
	apply(t, providertest.New(startProvider), assigned(url, fleetWithClusters(nil), nil))
	values := mustReadOverview(t, url, map[string]any{
		"progress": rollout.MarshalProgress([]rollout.Progress{{
			DeploymentTarget: "app-core", Content: "0123abcd", Stage: 1, Stages: 3, StageName: `canary "x"`, HostsDone: 1, Hosts: 2,
			Since: time.Now(), WaitsFor: rollout.WaitsForApproval, Condition: rollout.Waiting,
		}}),
		"promotions": map[string]any{"dev to stage": map[string]any{
			"candidate": map[string]any{
				"app": "2.0",
			}, "promoted": map[string]any{"app": "1.0"}, "waiting_for": "the soak time", "opened_at": "2026-01-01T00:00:00Z", "open": true,
		}},
	})
	for _, form := range []string{"markdown", "html"} {
		text, _ := values[form].(string)
		for _, want := range []string{"canary", "an approval", "dev to stage", "the soak time"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s does not say %q", form, want)
			}
		}
	}
}

func TestOverviewOfARepositoryThatCannotBeReadIsAWarning(t *testing.T) {
	t.Parallel()
	values, diags := readOverview(t, "http://127.0.0.1:1/gitops.git", nil)
	if diags.Err() != nil || !strings.Contains(diags.String(), "Repository cannot be read") {
		t.Fatalf("got diagnostics %s", diags)
	}
	if got := summaryNumbers(values, "hosts", "assignments", "new", "up_to_date", "changed", "not_asked"); got != "hosts 3, assignments 3, new 0, up_to_date 0, changed 0, not_asked 3" {
		t.Error(got)
	}
	if html, _ := values["html"].(string); !strings.Contains(html, "app-core") {
		t.Error("the page lacks the assignments")
	}
}

func TestOverviewRefusesInvalidConfiguration(t *testing.T) {
	t.Parallel()
	url := bare(t)
	apply(t, providertest.New(startProvider), assigned(url, fleetWithClusters(nil), nil))
	good := reportEvidence(t, url, nil, report("drone-1", git(t, url, "rev-parse", "dev"), nil))
	for name, test := range map[string]struct {
		arguments map[string]any
		want      string
	}{
		"an invalid name":                {map[string]any{"name": "Dev!"}, `"Dev!"`},
		"a location without branch":      {map[string]any{"gitops_repo": map[string]any{"url": "x"}}, "branch"},
		"invalid evidence":               {map[string]any{"evidence": "{}"}, "The evidence is not what flotilla_compliance gives"},
		"evidence of another assignment": {map[string]any{"evidence": strings.Replace(good, `"owner":"dev"`, `"owner":"other"`, 1)}, "Evidence of another assignment"},
		"evidence of another fleet":      {map[string]any{"evidence": strings.NewReplacer("drone-1", "x-1", "drone-2", "x-2", "large-1", "x-3").Replace(good)}, "Evidence of another fleet"},
		"evidence of another repository": {map[string]any{"evidence": strings.ReplaceAll(good, git(t, url, "rev-parse", "dev"), strings.Repeat("1", 40))}, "Evidence of another repository"},
		"misspelt bounds":                {map[string]any{"health": map[string]any{"god": 1}}, `god: unknown attribute; did you mean "good"?`},
		"an unknown placeholder":         {map[string]any{"links": map[string]any{"clusters": map[string]any{"Logs": "https://x/{folder}"}}}, `clusters: link "Logs" has the placeholder "{folder}", which is none of {environment}, {cluster}`},
		"a link to a script":             {map[string]any{"links": map[string]any{"assignments": map[string]any{"x": "javascript:alert(1)"}}}, `assignments: link "x" must begin with https://`},
		"a link with a password":         {map[string]any{"links": map[string]any{"assignments": map[string]any{"x": "https://u:canary@x/"}}}, `link "x" must have no credentials`},
		"links of an unknown kind":       {map[string]any{"links": map[string]any{"hosts": map[string]any{}}}, `hosts: unknown attribute`},
		"bounds of another type":         {map[string]any{"health": 75}, "Must be an object, not a number."},
		"bounds above 100":               {map[string]any{"health": map[string]any{"good": 101}}, "good: must be a whole number from 0 to 100, not 101."},
		"bounds in the wrong order":      {map[string]any{"health": map[string]any{"good": 30}}, "poor: must not be above good, which is 30."},
		"invalid progress":               {map[string]any{"progress": "soon"}, `It is no JSON object of rollouts. Set it to progress of the assignment.`},
		"promotions of another type":     {map[string]any{"promotions": []any{}}, "This must be a map of promotions"},
		"a promotion of another type":    {map[string]any{"promotions": map[string]any{"p": "x"}}, `must be an object, not a string`},
		"a misspelt key of a promotion":  {map[string]any{"promotions": map[string]any{"p": map[string]any{"promotd": "x"}}}, `promotd: unknown attribute; did you mean "promoted"?`},
		"an invalid time":                {map[string]any{"promotions": map[string]any{"p": map[string]any{"opened_at": "x"}}}, `opened_at: "x" is not a time such as`},
		"too much history":               {map[string]any{"history": 1001}, "It must be a whole number from 0 to 1000, not 1001."},
		"negative history":               {map[string]any{"history": -1}, "It must be a whole number from 0 to 1000, not -1."},
		"a limit below the minimum":      {map[string]any{"markdown_limit": 10}, "It must be a whole number from 1024 to"},
		"an invalid timeout":             {map[string]any{"timeouts": map[string]any{"read": "soon"}}, "read: must be a duration above zero"},
		"an invalid fleet":               {map[string]any{"fleet": map[string]any{"format": "0", "environment": "dev", "model": "{}", "config": map[string]any{"known": "{}"}}}, "Invalid fleet"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, diags := readOverview(t, url, test.arguments)
			if diags.Err() == nil || !strings.Contains(diags.String(), test.want) {
				t.Errorf("got diagnostics %s", diags)
			}
		})
	}
}

const hiddenValue = "canary-value-9f1c"

// hiddenValues returns config containers with a value for the page to hide.
func hiddenValues() map[string]any {
	return map[string]any{"config_containers": []any{
		map[string]any{"name": "all", "allow_plain": []any{"PASSWORD"}, "data": map[string]any{
			"PASSWORD": hiddenValue, "nested": map[string]any{"list": []any{"x", hiddenValue}}, "text": "a " + hiddenValue + " b",
		}},
		map[string]any{
			"name":        "large",
			"labels":      map[string]any{"cluster-type": "large"},
			"allow_plain": []any{"PASSWORD"},
			"data":        map[string]any{"PASSWORD": hiddenValue + "-large"},
		},
	}}
}

func TestOverviewHasValuesOnlyWithShowValues(t *testing.T) {
	t.Parallel()
	url := bare(t)
	apply(t, providertest.New(startProvider), assigned(url, fleetWithClusters(hiddenValues()), nil))
	tip := git(t, url, "rev-parse", "dev")
	evidence := reportEvidence(t, url, nil, report("drone-1", tip, nil), report("large-1", tip, nil))
	arguments := map[string]any{"fleet": fleetWithClusters(hiddenValues()), "evidence": evidence}
	state, err := json.Marshal(mustReadOverview(t, url, arguments))
	if err != nil {
		t.Fatal(err)
	}
	for form, text := range leakedForms(hiddenValue) {
		if strings.Contains(string(state), text) {
			t.Errorf("the state contains a value, %s", form)
		}
	}
	if !strings.Contains(string(state), "PASSWORD") {
		t.Error("the page lacks the keys")
	}
	arguments["show_values"] = true
	values := mustReadOverview(t, url, arguments)
	if html, _ := values["html"].(string); !strings.Contains(html, hiddenValue+"-large") {
		t.Error("the page does not show values")
	}
	if audit := fmt.Sprint(values["audit"]); strings.Contains(audit, hiddenValue) {
		t.Error("the audit shows values")
	}
}

// The page shows the name of a reference. show_values adds its store and key, but never the version.
func TestOverviewShowsReferencesToSecrets(t *testing.T) {
	t.Parallel()
	url := bare(t)
	withStore := func(name, label, value string) map[string]any {
		return map[string]any{
			"name": name, "labels": map[string]any{label: value}, "secret_service": "external-secrets",
			"secret_stores": map[string]any{"vault": map[string]any{}},
		}
	}
	fleet := fleetWithClusters(map[string]any{
		"cluster_types": []any{withStore("drone", "edge", "true"), withStore("large", "size", "large")},
		"config_containers": []any{
			map[string]any{
				"name":    "db",
				"secrets": map[string]any{"DB_PASSWORD": map[string]any{"store": "vault", "key": "prod/db-7", "version": "v-41"}},
			},
		},
	})
	apply(t, providertest.New(startProvider), assigned(url, fleet, nil))
	for showValues, want := range map[bool]bool{false: false, true: true} {
		html, _ := mustReadOverview(t, url, map[string]any{"fleet": fleet, "evidence": reportEvidence(t, url, nil), "show_values": showValues})["html"].(string)
		if !strings.Contains(html, "DB_PASSWORD") || strings.Contains(html, "secret vault: prod/db-7") != want || strings.Contains(html, "v-41") {
			t.Errorf(
				"with show_values = %v, the page has the key of the store: %v, the key: %v, the version: %v",
				showValues,
				strings.Contains(html, "prod/db-7"),
				strings.Contains(html, "DB_PASSWORD"),
				strings.Contains(html, "v-41"),
			)
		}
	}
}

func TestOverviewShowsHostileTextAsItIs(t *testing.T) {
	t.Parallel()
	url := bare(t)
	const payload = `</script><script>alert(1)</script><img src=x onerror=alert(2)>` + "`]( | \x1b[31m"
	fleet := fleetWithClusters(map[string]any{"config_containers": []any{
		map[string]any{"name": "all", "data": map[string]any{"key": map[string]any{payload: payload}}},
	}})
	apply(t, providertest.New(startProvider), assigned(url, fleet, map[string]any{"commit_message": strings.ReplaceAll(payload, "\x1b", "")}))
	tip := git(t, url, "rev-parse", "dev")
	evidence := reportEvidence(t, url, nil, report("drone-1", tip, map[string]any{"ready": false, "message": payload}))
	values := mustReadOverview(t, url, map[string]any{
		"fleet": fleet, "evidence": evidence, "show_values": true,
		"progress": rollout.MarshalProgress([]rollout.Progress{{
			DeploymentTarget: "app-core", Content: "0123abcd", Stage: 1, Stages: 2, StageName: payload, HostsDone: 1, Hosts: 2,
			WaitsFor: rollout.WaitsForHold, Condition: rollout.Waiting,
		}}),
		"promotions": map[string]any{payload: map[string]any{"candidate": payload, "waiting_for": payload}},
	})
	html, _ := values["html"].(string)
	for _, bad := range []string{"<script>alert", "<img", "\x1b"} {
		if strings.Contains(html, bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
	markdown, _ := values["markdown"].(string)
	for _, text := range []string{markdown, values["audit"].(map[string]any)["markdown"].(string)} {
		if strings.Contains(text, "\x1b") {
			t.Error("the Markdown has terminal escapes")
		}
		for line := range strings.Lines(text) {
			if index := strings.Index(line, "<script"); index >= 0 && !strings.Contains(line[:index], "``") {
				t.Errorf("the Markdown has %q outside of code", line)
			}
		}
	}
	if !strings.Contains(markdown, "alert(2)") {
		t.Errorf("the Markdown lacks the message: %s", markdown)
	}
}

// The page in the plan is for the pull request, the page in the state for the last apply.
func TestOverviewIsInThePlanAndInTheState(t *testing.T) {
	t.Parallel()
	for name, tool := range acceptanceTools(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			configuration := files(t, filepath.Join("..", "..", "examples", "observing", "overview"))
			configuration["values.tf"] = requiredProviders + `
data "flotilla_overview" "values" {
  name        = "dev"
  gitops_repo = local.gitops_repo
  fleet = provider::flotilla::fleet({
    environment       = "dev"
    base              = local.fleet
    config_containers = yamldecode(file("${path.module}/values.yaml"))
  })
}
output "page" {
  value     = data.flotilla_overview.values.html
  sensitive = true
}
`
			w := newWorkdir(t, tool, configuration)
			writeFile(t, filepath.Join(w.path, "values.yaml"), "- {name: all, allow_plain: [PASSWORD], data: {PASSWORD: "+hiddenValue+"}}\n")
			const address = "data.flotilla_overview.dev"
			for _, want := range []string{"2 new", "health 25"} {
				plan := w.plan()
				found := ""
				for _, resource := range plan.PriorState.Values.RootModule.Resources {
					if resource.Address == address {
						found, _ = resource.AttributeValues["markdown"].(string)
					}
				}
				if !strings.Contains(strings.ToLower(found), want) {
					t.Errorf("the plan has the page %q, want %q in it", found, want)
				}
				printed := w.run("apply", "-input=false", "-auto-approve", "-no-color")
				if strings.Contains(printed, "<!doctype") || strings.Contains(printed, "<html") {
					t.Error("the apply prints the page")
				}
				writeFile(t, filepath.Join(w.path, "printed.txt"), printed)
				writeFile(t, filepath.Join(w.path, "page.txt"), w.run("output", "-raw", "page"))
				w.run("plan", "-out=saved.out")
			}
			page := w.run("output", "-raw", "page")
			if !strings.Contains(page, "<html") || !strings.Contains(page, "PASSWORD") {
				t.Errorf("the output of %d bytes is not the page", len(page))
			}
			checkNoSecrets(t, w.path, map[string]string{"a value": hiddenValue})
		})
	}
}
