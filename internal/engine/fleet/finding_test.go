package fleet_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

// One expression may cause the same mistake in many objects. The findings are few lines, even if they quote different values.
func TestMistakesInManyObjectsAreFewLines(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		objects int
		object  func(i int) map[string]any
		lines   []string // prefixes
	}{
		"the same value": {100, func(i int) map[string]any {
			return map[string]any{"name": fmt.Sprintf("t-%02d", i), "labels": map[string]any{"region": "a b"}}
		}, []string{`cluster_types["t-00"].labels["region"], cluster_types["t-01"].labels["region"], `}},
		"different values": {100, func(i int) map[string]any {
			return map[string]any{"name": fmt.Sprintf("t-%02d", i), "labels": map[string]any{"region": fmt.Sprint("a ", i)}}
		}, []string{
			`cluster_types["t-00"].labels["region"]: "a 0" is not the value of a label`, `cluster_types["t-01"].labels["region"]: "a 1" is not `, `cluster_types["t-02"].labels["region"]: "a 2" is not `,
			`cluster_types["t-03"].labels["region"]: "a 3" is not `, `cluster_types["t-04"].labels["region"]: "a 4" is not `, `cluster_types["t-05"].labels["region"], cluster_types["t-06"].labels["region"], `,
		}},
		"one object above the limit": {6, func(i int) map[string]any { return map[string]any{"name": fmt.Sprintf("t_%d", i)} }, []string{
			`cluster_types["t_0"].name: "t_0" is `, `cluster_types["t_1"].name: "t_1" is `, `cluster_types["t_2"].name: "t_2" is `, `cluster_types["t_3"].name: "t_3" is `,
			`cluster_types["t_4"].name: "t_4" is `, `cluster_types["t_5"].name: "t_5" is `,
		}},
	} {
		var types []any
		for i := range test.objects {
			types = append(types, test.object(i))
		}
		_, findings := fleet.Decode(map[string]any{"environment": "dev", "cluster_types": types})
		if len(findings) != test.objects {
			t.Errorf("%s: got %d findings", name, len(findings))
		}
		lines := strings.Split(findings.Error(), "\n")
		if len(lines) != len(test.lines) {
			t.Errorf("%s: got\n%s", name, findings.Error())
			continue
		}
		for i, want := range test.lines {
			if !strings.HasPrefix(lines[i], want) {
				t.Errorf("%s: line %d: got %s, want %s", name, i, lines[i], want)
			}
		}
	}
	both := fleet.Findings{}
	for i := range 20 {
		both = append(
			both,
			fleet.Finding{Path: fmt.Sprintf("a[%d].b", i), Message: fmt.Sprintf("%q is wrong", fmt.Sprint(i))},
			fleet.Finding{Path: fmt.Sprintf("a[%d].c", i), Message: "is required"},
		)
	}
	if got := both.Group(); len(got) != fleet.MaxAlike+2 || got[len(got)-1] != (fleet.Finding{
		Path:    "a[5].b, a[6].b, a[7].b, a[8].b, a[9].b, a[10].b, a[11].b, a[12].b, a[13].b, a[14].b and 5 more",
		Message: "have mistakes of the same kind",
	}) {
		t.Errorf("two kinds of mistakes: got\n%s", both.Error())
	}
}
