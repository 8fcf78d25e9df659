package provider_test

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// The second plan adds a label and must have the changes in the README.
func TestTheReadmeShowsThePlanOfItsConfiguration(t *testing.T) {
	t.Parallel()
	_, after, _ := strings.Cut(readFile(t, filepath.Join("..", "..", "README.md")), "\n```terraform\n")
	hcl, after, _ := strings.Cut(after, "\n```\n")
	memory := newMemoryWorld(t, true)
	hcl = strings.Replace(hcl, `"gitops.git"`, strconv.Quote(memory.spell("one", 0)), 1)
	before := strings.Replace(hcl, `{ name = "large", labels = { edge = "true" } }`, `{ name = "large" }`, 1)
	w := providertest.New(memory.start)
	var changes string
	for _, configuration := range []string{before, hcl} {
		plan, diags := w.Apply(t.Context(), moduleOf(t, configuration).Configuration)
		if diags.Err() != nil {
			t.Fatal(diags.Err())
		}
		changes = fmt.Sprintf("%q", plan.Change("flotilla_assignment.dev").After["changes"])
	}
	_, shown, _ := strings.Cut(after, "changes     = [\n")
	shown, _, _ = strings.Cut(shown, "        ]\n")
	if strings.Count(shown, "\n") != 2 {
		t.Fatalf("the README shows the changes %q, want two", shown)
	}
	for line := range strings.Lines(shown) {
		if line = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(line), "+ "), ","); !strings.Contains(changes, line) {
			t.Errorf("the README shows %s, the plan has %s", line, changes)
		}
	}
}
