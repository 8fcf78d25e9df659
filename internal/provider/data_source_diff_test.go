package provider_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

func readDiff(t *testing.T, url string, fleet any, further map[string]any) (string, providertest.Diagnostics) {
	t.Helper()
	arguments := map[string]any{
		"name": "dev", "fleet": fleet,
		"gitops_repo": map[string]any{"url": url, "branch": "dev", "path": "clusters/all"},
	}
	for name, value := range further {
		arguments[name] = value
	}
	values, diags := providertest.New(startProvider).ReadData(t.Context(), providertest.Configuration{}, "flotilla_diff", arguments)
	text, _ := values["diff"].(string)
	return text, diags
}

func mustReadDiff(t *testing.T, url string, fleet any, further map[string]any) string {
	t.Helper()
	text, diags := readDiff(t, url, fleet, further)
	if diags.Err() != nil {
		t.Fatal(diags.Err())
	}
	return text
}

func TestDiffMatchesTheNextApply(t *testing.T) {
	t.Parallel()
	url := bare(t)
	w := providertest.New(startProvider)
	text := mustReadDiff(t, url, fleetOf(nil), nil)
	if !strings.Contains(text, "+++ b/clusters/all/drone/app-edge/reconciler.yaml\n") || !strings.Contains(text, "--- /dev/null\n") {
		t.Errorf("the diff without a repository is\n%s", text)
	}
	apply(t, w, assigned(url, fleetOf(nil), nil))
	if text := mustReadDiff(t, url, fleetOf(nil), nil); text != "" {
		t.Errorf("the diff without a change is\n%s", text)
	}

	changed := fleetOf(map[string]any{
		"target_policies":   []any{policy("core", map[string]any{"expression": "!edge"}, map[string]any{"expression": "edge=true"})},
		"config_containers": []any{map[string]any{"name": "all", "data": map[string]any{"LOG_LEVEL": "debug"}}},
	})
	text = mustReadDiff(t, url, changed, nil)
	for _, want := range []string{
		"deleted file mode 100644\n--- a/clusters/all/drone/app-edge/reconciler.yaml\n+++ /dev/null\n",
		"--- a/clusters/all/large/app-core/namespace.yaml\n+++ /dev/null\n",
		"--- a/clusters/all/drone/app-core/platform-config.yaml\n+++ b/clusters/all/drone/app-core/platform-config.yaml\n",
		"\n-  LOG_LEVEL: info\n+  LOG_LEVEL: debug\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the diff lacks %q:\n%s", want, text)
		}
	}
	if only := mustReadDiff(t, url, changed, map[string]any{"cluster_type": "large"}); !strings.Contains(only, "/large/") ||
		strings.Contains(only, "/drone/") {
		t.Errorf("the diff of one cluster type is\n%s", only)
	}
	if cut := mustReadDiff(t, url, changed, map[string]any{"limit": 500}); !strings.HasSuffix(
		cut,
		" left out: the difference is longer than 500 bytes.\n",
	) ||
		len(cut) > 700 {
		t.Errorf("the diff with a limit of 500 bytes is\n%s", cut)
	}

	apply(t, w, assigned(url, changed, nil))
	for path := range strings.SplitSeq(git(t, url, "diff", "--name-only", "dev^", "dev", "--", "clusters/all/drone", "clusters/all/large"), "\n") {
		if strings.HasSuffix(path, ".yaml") && !strings.Contains(text, path) {
			t.Errorf("the apply changed %s, which is not in the diff", path)
		}
	}
}

// Whoever can push controls the diff, which Terraform prints unchanged.
func TestADiffHasNoTerminalEscapes(t *testing.T) {
	t.Parallel()
	url := bare(t)
	apply(t, providertest.New(startProvider), assigned(url, fleetOf(nil), nil))
	commitByHand(t, url, "dev", func(folder string) {
		target := filepath.Join(folder, "clusters", "all", "large", "app-core")
		writeFile(t, filepath.Join(target, "namespace.yaml"), "kind: \x1b[2JApply complete!\n")
		writeFile(t, filepath.Join(target, "policy.yaml"), "kind: Evil\rkind: Good\n")
		writeFile(t, filepath.Join(target, "a\u202eb\x1b[2J.yaml"), "kind: A\n")
	})
	text := mustReadDiff(t, url, fleetOf(nil), nil)
	t.Logf("%d bytes: %q", len(text), text)
	if wording.Visible(text) != text {
		t.Errorf("the diff has terminal escapes: %q", text)
	}
	const namespace = "large/app-core/namespace.yaml"
	for _, want := range []string{"Binary files a/clusters/all/" + namespace + " and b/clusters/all/" + namespace + " differ\n", `app-core/a\u202eb\x1b[2J.yaml"`} {
		if !strings.Contains(text, want) {
			t.Errorf("the diff lacks %q: %q", want, text)
		}
	}
}

func TestDiffRefusesInvalidArguments(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		arguments map[string]any
		want      string
	}{
		"a limit of zero":           {map[string]any{"limit": 0}, "It must be a whole number from 1 to 16777216, not"},
		"a limit above the maximum": {map[string]any{"limit": 1 << 40}, "It must be a whole number from 1 to 16777216, not"},
		"an unknown host":           {map[string]any{"cluster_type": "drne"}, `did you mean "drone"?`},
		"an invalid name":           {map[string]any{"name": "Dev!"}, `"Dev!"`},
		"a location without branch": {map[string]any{"gitops_repo": map[string]any{"url": "x"}}, "branch"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, diags := readDiff(t, bare(t), fleetOf(nil), test.arguments)
			if diags.Err() == nil || !strings.Contains(diags.String(), test.want) {
				t.Errorf("got diagnostics %s", diags)
			}
		})
	}
}
