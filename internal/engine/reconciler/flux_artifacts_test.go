package reconciler_test

import (
	"reflect"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
)

func TestCopiesOfAnArtifactGenerator(t *testing.T) {
	var spec map[string]any
	if err := yaml.Unmarshal([]byte(`
sources: [{alias: repo, kind: GitRepository, name: fleet}, 1]
artifacts:
  - {name: other, copy: [{from: "@repo/**", to: "@artifact/"}]}
  - name: apps
    copy:
      - {from: "@repo/apps/base/**", to: "@artifact/base/"}
      - {from: "@repo/**", to: "@artifact/"}
      - {from: "@repo/apps/*.yaml", to: "@artifact/"}
      - {from: "@repo/a*/**", to: "@artifact/"}
      - {from: "@repo/apps/**", to: "@artifact/", exclude: ["*.md"]}
      - {from: "@none/apps/**", to: "@artifact/"}
`), &spec); err != nil {
		t.Fatal(err)
	}
	want := []reconciler.Copy{{"GitRepository", "fleet", "apps/base", "base"}, {"GitRepository", "fleet", "", ""}}
	if got := reconciler.CopiesOf(spec, "apps"); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := reconciler.CopiesOf(map[string]any{"artifacts": 1}, "apps"); got != nil {
		t.Errorf("got %v", got)
	}
}
