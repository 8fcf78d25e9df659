package reconciler_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
)

// The guide lists the permissions of an account.
func TestGuideNamesTheListedKinds(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../templates/guides/reference-observing.md.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]reconciler.ObjectKind{"any, where folders have them": reconciler.Suppliers()}
	for name, row := range map[string]string{"flux": "Flux", "argocd": "Argo CD, also on a hub", "argocd-hub": "Argo CD, also on a hub", "fleet": "Rancher Fleet", "config-sync": "Config Sync"} {
		rows[row] = reconciler.Named(name).ListedKinds()
	}
	for row, kinds := range rows {
		resources := map[string][]string{}
		for _, kind := range kinds {
			resources[kind.Group] = append(resources[kind.Group], "`"+kind.Resource+"`")
		}
		for group, names := range resources {
			if want := "| " + row + " | `" + group + "` | " + strings.Join(names, ", ") + " |\n"; !strings.Contains(string(text), want) {
				t.Errorf("the guide has no row %s", want)
			}
		}
	}
}

func TestGuideListsTheReconcilers(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../templates/guides/reference-rendering.md.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	if want := "| `reconciler` | `reconciler` | `" + strings.Join(reconciler.Names(), "`, `") + "` |\n"; !strings.Contains(
		string(text),
		want,
	) {
		t.Errorf("the guide has no row %s", want)
	}
}

func TestGuideListsTheTrustedSettings(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../templates/guides/reference-rendering.md.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range reconciler.Kinds() {
		for _, field := range kind.Settings {
			isBelow := slices.ContainsFunc(kind.Settings, func(other reconciler.Setting) bool {
				return other.Trust && strings.HasPrefix(field.Path, other.Path+".")
			})
			if !field.Trust || isBelow {
				continue
			}
			row := ""
			for line := range strings.Lines(string(text)) {
				if strings.HasPrefix(line, "| `"+kind.Parameter+"` | `") && strings.Contains(line, "`"+field.Path+"`") {
					row = line
				}
			}
			if row == "" {
				t.Errorf("the guide has no row for %s with %s", kind.Parameter, field.Path)
			}
		}
	}
}
