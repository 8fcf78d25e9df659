package provider_test

import (
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

func TestMessagesNameTheMistake(t *testing.T) {
	t.Parallel()
	m := newMatrixWithAssignments(t)
	location := func(url, branch, path string) map[string]any {
		return map[string]any{"gitops_repo": map[string]any{"url": url, "branch": branch, "path": path}}
	}
	leftAt := func(commit string) map[string]any {
		return map[string]any{"left": ownerArguments(m, map[string]any{"commit": commit})}
	}
	for _, c := range []struct {
		block   string
		changed map[string]any
		want    string
		never   string
	}{
		{"flotilla_assignment", location("git.example.com/team/x.git", "dev", "all"), `the URL has no scheme: write "https://git.example.com/team/x.git"`, "does not exist yet"},
		{"flotilla_assignment", location("git.example.com:8080/team/x.git", "dev", "all"), "the URL has no scheme", "ssh key"},
		{"flotilla_commit_status", map[string]any{"url": "git.example.com/team/x.git"}, "has no scheme", `is ""`},
		{"flotilla_repository_files", map[string]any{"url": "git.example.com/team/x.git"}, "has no scheme", "not found"},
		{"flotilla_assignment", location(m.url, "dev", "./clusters"), `paths are relative to the root of the repository; write "clusters"`, "dot"},
		{"flotilla_assignment", location(m.url, "dev", "/clusters/"), `write "clusters"`, "dot"},
		{"flotilla_assignment", location(m.url, "dev/east", "all"), `has a branch "dev", and Git allows no branch "dev/east" beside it`, ""},
		{"flotilla_cluster_claim", location(m.url, "dev/east", "all"), `has a branch "dev", and Git allows no branch "dev/east" beside it`, ""},
		{"flotilla_assignment", map[string]any{"holds": []any{map[string]any{"hosts": []any{"drone"}, "reason": "x", "until": "tomorrow"}}}, `holds[0].until: "tomorrow"`, ": [0]"},
		{"flotilla_comparison", leftAt(strings.Repeat("1", 40)), "is not in the history of the branch", "roll back"},
		{"flotilla_artifacts", ownerArguments(m, map[string]any{"update": []any{"ap"}}), `has the name "ap".`, "?."},
		{"flotilla_artifacts", map[string]any{"gitops_repo": m.location(), "update": []any{}}, "Name is required with gitops_repo, update", "set both"},
		{"flotilla_artifacts", map[string]any{"name": "dev"}, "Gitops_repo is required with name", "set both"},
		{"flotilla_config_schema", map[string]any{"schema": `{"properties":{"A":{"pattern":"^(?!x)"}}}`}, "has no lookahead", ""},
	} {
		var diags providertest.Diagnostics
		if dataSourceArguments[c.block] != nil {
			_, diags = m.readData(c.block, c.changed)
		} else {
			_, diags = providertest.New(m.world.(*memoryWorld).start).Plan(t.Context(), m.singleResource(c.block, c.changed))
		}
		text := diags.String()
		if diags.Err() == nil || !strings.Contains(strings.ToLower(text), strings.ToLower(c.want)) ||
			c.never != "" && strings.Contains(text, c.never) {
			t.Errorf("%s %v: got %s, want %q and not %q", c.block, c.changed, text, c.want, c.never)
		}
	}
}

func (m *matrix) location() map[string]any {
	return map[string]any{"url": m.url, "branch": "dev", "path": "all"}
}
