package forge_test

import (
	"os"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
)

// rightsOfTokens returns the rows of the guide's table on the rights of tokens by Git host: read, push, pull requests, statuses.
func rightsOfTokens(t *testing.T) map[string][][]string {
	t.Helper()
	text, err := os.ReadFile("../../../templates/guides/delivery.md")
	if err != nil {
		t.Fatal(err)
	}
	const head = "\n| Git host: token | read | push | pull requests | commit statuses, feedback |\n|---|---|---|---|---|\n"
	_, table, _ := strings.Cut(string(text), head)
	table, _, _ = strings.Cut(table, "\n\n")
	rights := map[string][][]string{}
	for row := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(row, "| \n"), " | ")
		if title, _, ok := strings.Cut(cells[0], ": "); ok && len(cells) == 5 {
			rights[title] = append(rights[title], cells[1:])
		}
	}
	return rights
}

func TestTheGuideHasTheRightsOfTokens(t *testing.T) {
	t.Parallel()
	rights := rightsOfTokens(t)
	for _, kind := range forge.Kinds() {
		if len(rights[kind.Title]) == 0 {
			t.Errorf("the guide has no rights for %s", kind.Title)
		}
	}
	if len(rights) != len(forge.Kinds()) {
		t.Errorf("the guide has rights for %d kinds, want %d", len(rights), len(forge.Kinds()))
	}
}

// TestTheGuidesNameTheCapabilitiesOfGitHosts compares the guides' tables on merging and reviewers with the kinds.
func TestTheGuidesNameTheCapabilitiesOfGitHosts(t *testing.T) {
	t.Parallel()
	read := func(guide string) string {
		text, err := os.ReadFile("../../../templates/guides/" + guide)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	delivery := read("delivery.md")
	rows := func(head string) map[string]string {
		_, table, _ := strings.Cut(delivery, "\n| "+head+" |\n")
		table, _, _ = strings.Cut(table, "\n\n")
		byHost := map[string]string{}
		for row := range strings.Lines(table) {
			if cells := strings.Split(row, " | "); len(cells) == 2 {
				for title := range strings.SplitSeq(strings.TrimPrefix(cells[0], "| "), ", ") {
					byHost[title] = cells[1]
				}
			}
		}
		return byHost
	}
	merging, reviewers := rows("Git host | if the head moves after auto-merge was turned on"), rows("Git host | a reviewer is")
	_, requests, _ := strings.Cut(read("choosing.md"), "\n| Git hosts | any Git server | ")
	requests, _, _ = strings.Cut(requests, "\n")
	for _, kind := range forge.Kinds() {
		if row := merging[kind.Title]; row == "" || kind.AutoMerge == strings.Contains(row, "has no auto-merge") {
			t.Errorf("auto-merge of %s is %t, and its row %q", kind.Title, kind.AutoMerge, row)
		}
		row := reviewers[kind.Title]
		if row == "" || kind.Labels == strings.Contains(row, "`labels` are an error") {
			t.Errorf("labels of %s are %t, and its row %q", kind.Title, kind.Labels, row)
		}
		if first, _, _ := strings.Cut(kind.Reviewers, " or "); !strings.HasPrefix(row, first) {
			t.Errorf("reviewers of %s are %q, and its row %q", kind.Title, kind.Reviewers, row)
		}
		if short, _, _ := strings.Cut(kind.Title, " "); !strings.Contains(requests, short) {
			t.Errorf("the guide to choices does not mention pull requests of %s", kind.Title)
		}
	}
	for _, mode := range []forge.MergeMode{"none", forge.Now, forge.WhenChecksSucceed} {
		if !strings.Contains(delivery, "\n| `"+string(mode)+"` ") {
			t.Errorf("the guide has no row for merge = %q", mode)
		}
	}
}

// TestTheGuideNamesGitHostsWithEqualRightsForStatusesAndPushes compares the guide on secrets with the rights of tokens.
func TestTheGuideNamesGitHostsWithEqualRightsForStatusesAndPushes(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../templates/guides/secrets.md.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	_, named, _ := strings.Cut(string(text), "push as well where both take the same right, as on ")
	named, _, _ = strings.Cut(named, " |")
	rights := rightsOfTokens(t)
	var same []string
	for _, kind := range forge.Kinds() {
		rows := rights[kind.Title]
		if len(rows) == 0 {
			t.Fatalf("the guide has no rights for %s", kind.Title)
		}
		if push, status := rows[0][1], rows[0][3]; status == push || strings.HasPrefix(status, "`api`") { // GitLab's scope api allows everything
			same = append(same, kind.Title)
		}
	}
	last := len(same) - 1
	if last < 1 {
		t.Fatalf("the guide on delivery has equal rights only for %q", same)
	}
	if want := strings.Join(same[:last], ", ") + " and " + same[last]; named != want {
		t.Errorf("the guide names %s, want %s", named, want)
	}
}
