package provider_test

import (
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// writeTwoOwners returns a repository with the assignments east and west, and evidence of both. In west, large-1 is not ready.
func writeTwoOwners(t *testing.T) (url string, evidences []any) {
	t.Helper()
	url = bare(t)
	location := func(name string) map[string]any {
		return map[string]any{"name": name, "gitops_repo": map[string]any{"url": url, "branch": "dev", "path": "regions/" + name}}
	}
	for _, name := range []string{"east", "west"} {
		apply(t, providertest.New(startProvider), assigned(url, fleetWithClusters(nil), location(name)))
	}
	tip := git(t, url, "rev-parse", "dev")
	for name, ready := range map[string]bool{"east": true, "west": false} {
		evidences = append(evidences, reportEvidence(t, url, location(name), report("drone-1", tip, nil), report("drone-2", tip, nil),
			report("large-1", tip, map[string]any{"ready": ready, "message": "no \x1b[31mspace <script>alert(1)</script>"})))
	}
	return url, append(evidences, nil) // nil: a state without evidence
}

func readOwners(t *testing.T, kind, url string, further map[string]any) (map[string]any, providertest.Diagnostics) {
	t.Helper()
	arguments := map[string]any{"gitops_repo": map[string]any{"url": url, "branch": "dev"}}
	maps.Copy(arguments, further)
	return providertest.New(startProvider).ReadData(t.Context(), providertest.Configuration{}, kind, arguments)
}

func TestThePageOfAllOwnersAgreesWithThePageOfEachOwner(t *testing.T) {
	t.Parallel()
	url, evidences := writeTwoOwners(t)
	all, diags := readOwners(t, "flotilla_overview", url, map[string]any{"evidences": evidences})
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	scores := map[string]any{}
	summed := map[string]int{}
	for _, evidence := range evidences[:2] {
		name := "east"
		if strings.Contains(evidence.(string), `"owner":"west"`) {
			name = "west"
		}
		own := mustReadOverview(t, url, map[string]any{
			"name": name, "gitops_repo": map[string]any{"url": url, "branch": "dev", "path": "regions/" + name}, "evidence": evidence,
		})
		for host, score := range own["health_scores"].(map[string]any) {
			if score != nil { // records lack hosts without assignments
				scores["regions/"+name+"/"+host] = score
			}
		}
		for name, number := range own["summary"].(map[string]any) {
			if name != "hosts" && name != "deployment_targets" && name != "up_to_date" {
				count := 0
				_, _ = fmt.Sscan(fmt.Sprint(number), &count)
				summed[name] += count
			}
		}
		// The page of one owner's path shows only this owner, with short names.
		one, diags := readOwners(t, "flotilla_overview", url, map[string]any{
			"gitops_repo": map[string]any{"url": url, "branch": "dev", "path": "regions/" + name}, "evidences": []any{evidence},
		})
		if diags.Err() != nil || one["health_score"] != own["health_score"] || !strings.Contains(one["markdown"].(string), "2 hosts") {
			t.Errorf("the page of %s has score %v, want %v: %s", name, one["health_score"], own["health_score"], diags)
		}
	}
	if !reflect.DeepEqual(all["health_scores"], scores) {
		t.Errorf("got scores %v, want %v", all["health_scores"], scores)
	}
	for name, want := range summed {
		if got := fmt.Sprint(all["summary"].(map[string]any)[name]); got != fmt.Sprint(want) {
			t.Errorf("%s is %s, want %d as on the pages of each owner", name, got, want)
		}
	}
	if got := summaryNumbers(all, "hosts", "clusters", "assignments", "ready", "progressing", "up_to_date"); got != "hosts 4, clusters 6, assignments 6, ready 5, progressing 1, up_to_date 0" {
		t.Error(got)
	}
	html, markdown := all["html"].(string), all["markdown"].(string)
	for _, want := range []string{"regions/west/large", "regions/east", "regions/west/large-1", "no ", "app-core", git(t, url, "rev-parse", "--short=7", "dev~1")} {
		if !strings.Contains(html, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if !strings.Contains(markdown, "regions/west/large") || strings.Contains(html+markdown, "\x1b") ||
		strings.Contains(html, "<script>alert") {
		t.Errorf("the Markdown is %s", markdown)
	}
	for _, claim := range []string{"Not deployed as wanted", "Every deployment target has a host"} { // unknown from records
		if strings.Contains(html, claim) {
			t.Errorf("the page says %q", claim)
		}
	}
	if all["audit"] != nil {
		t.Errorf("the audit is %v", all["audit"])
	}
	if state := fmt.Sprint(all["evidences"]); strings.Contains(state, "large-1") || !strings.Contains(state, "sha256:") {
		t.Errorf("got evidences %s in the state", state)
	}
}

func TestTheInventoryHasTheVerdictsOfAllOwners(t *testing.T) {
	t.Parallel()
	url, evidences := writeTwoOwners(t)
	for i := range 2 { // evidence from another writer
		evidences[i] = strings.Replace(evidences[i].(string), `"message":"no `, `"message":"no \u001b[31m`, 1)
	}
	read, diags := readOwners(t, "flotilla_inventory", url, map[string]any{"evidences": evidences})
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	var got []string
	for _, entry := range read["assignments"].([]any) {
		a := entry.(map[string]any)
		got = append(got, fmt.Sprintf("%s/%s/%s %s", a["path"], a["host"], a["deployment_target"], a["verdict"]))
		if message, _ := a["message"].(string); strings.Contains(message, "\x1b") ||
			(a["verdict"] == "progressing") != strings.HasPrefix(message, "large-1: no ") {
			t.Errorf("the message is %q", message)
		}
		if a["since"] == nil {
			t.Errorf("%s has no time", a["host"])
		}
	}
	want := "regions/east/drone/app-core ready, regions/east/drone/app-edge ready, regions/east/large/app-core ready, " +
		"regions/west/drone/app-core ready, regions/west/drone/app-edge ready, regions/west/large/app-core progressing"
	if strings.Join(got, ", ") != want {
		t.Errorf("the verdicts are %s", strings.Join(got, ", "))
	}
	read, diags = readOwners(t, "flotilla_inventory", url, map[string]any{"evidences": evidences[:1], "owner": "east"})
	other, _ := readOwners(t, "flotilla_inventory", url, map[string]any{"evidences": evidences[1:], "owner": "east"})
	firstVerdict := func(values map[string]any) any { return values["assignments"].([]any)[0].(map[string]any)["verdict"] }
	if diags.Err() != nil || (firstVerdict(read) == nil) == (firstVerdict(other) == nil) {
		t.Errorf("the verdicts are %v and %v: %s", firstVerdict(read), firstVerdict(other), diags)
	}
	// Evidence before the last commit proves nothing about new content.
	apply(
		t,
		providertest.New(startProvider),
		assigned(
			url,
			fleetWithClusters(map[string]any{"config_containers": []any{
				map[string]any{"name": "all", "data": map[string]any{"LOG_LEVEL": "debug"}},
			}}),
			map[string]any{"name": "east", "gitops_repo": map[string]any{"url": url, "branch": "dev", "path": "regions/east"}},
		),
	)
	read, _ = readOwners(t, "flotilla_inventory", url, map[string]any{"evidences": evidences, "owner": "east"})
	if firstVerdict(read) != "behind" {
		t.Errorf("the changed assignment is %v, want behind", firstVerdict(read))
	}
}

func TestEvidenceOfOwnersIsReadStrictly(t *testing.T) {
	t.Parallel()
	url, evidences := writeTwoOwners(t)
	good := evidences[0].(string)
	for name, test := range map[string]struct {
		evidences []any
		at        int
		want      string
		isError   bool
	}{
		"invalid":             {[]any{"{}", good}, 0, "Invalid evidence", true},
		"another branch":      {[]any{good, strings.Replace(good, `"branch":"dev"`, `"branch":"prod"`, 1)}, 1, "Evidence of another branch", true},
		"a duplicate":         {[]any{good, good}, 1, "Evidence is given twice", true},
		"another environment": {[]any{strings.Replace(good, `"environment":"dev"`, `"environment":"prod"`, 1)}, 0, "Evidence of another environment", true},
		"another repository":  {[]any{nil, strings.ReplaceAll(good, git(t, url, "rev-parse", "dev"), strings.Repeat("1", 40))}, 1, "Evidence of another repository", true},
		"an unknown owner":    {[]any{strings.NewReplacer(`"owner":"east"`, `"owner":"north"`, `"owner":"west"`, `"owner":"north"`).Replace(good)}, 0, "Evidence of an unknown owner", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, kind := range []string{"flotilla_inventory", "flotilla_overview"} {
				_, diags := readOwners(t, kind, url, map[string]any{"evidences": test.evidences})
				element := fmt.Sprintf(`AttributeName("evidences").ElementKeyInt(%d)`, test.at)
				if len(diags) != 1 || diags[0].Summary != test.want || !strings.Contains(diags.String(), element) ||
					(diags.Err() != nil) != test.isError {
					t.Errorf("%s: got diagnostics %s", kind, diags)
				}
			}
		})
	}
	for name, test := range map[string]struct {
		arguments map[string]any
		want      string
	}{
		"a name without a fleet":  {map[string]any{"name": "east"}, "For a page of all owners of the branch, leave both out."},
		"a fleet without a name":  {map[string]any{"fleet": fleetWithClusters(nil)}, "For a page of all owners of the branch, leave both out."},
		"evidence of one":         {map[string]any{"evidence": good}, "Set evidences."},
		"values":                  {map[string]any{"show_values": true}, "They do not have that."},
		"evidences of assignment": {map[string]any{"name": "east", "fleet": fleetWithClusters(nil), "evidences": []any{good}}, "Set evidence."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, diags := readOwners(t, "flotilla_overview", url, test.arguments)
			if diags.Err() == nil || !strings.Contains(diags.String(), test.want) {
				t.Errorf("got diagnostics %s", diags)
			}
		})
	}
}

func TestThePageOfAllOwnersOfAnEmptyRepository(t *testing.T) {
	t.Parallel()
	page, diags := readOwners(t, "flotilla_overview", bare(t), nil)
	if diags.Err() != nil || summaryNumbers(page, "assignments", "clusters") != "assignments 0, clusters 0" || page["health_score"] != nil {
		t.Errorf("got diagnostics %s and summary %v", diags, page["summary"])
	}
}
