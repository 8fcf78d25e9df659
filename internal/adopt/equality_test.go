package adopt_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/adopt"
	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
)

// equality is how much of what is rendered is as it was read.
type equality struct {
	equal, rendered, listed int
	differing               []string
}

// compare compares the specs of what is rendered with those of the documents, by their canonical JSON.
func compare(t testing.TB, documents map[string]any, options map[string]any) (equality, *adopt.Result) {
	t.Helper()
	result, all := adopted(t, documents, options)
	specs := map[string]map[string]bool{} // by identity, without the namespace that a kustomization gives
	texts, _, _ := fleet.ReadTexts(documents)
	for _, text := range texts {
		for _, document := range text.Documents {
			object, _ := document.Value.(map[string]any)
			items, _ := object["items"].([]any)
			for _, one := range append(items, object) {
				if object, isObject := one.(map[string]any); isObject {
					canonical, err := fleet.CanonicalJSON(object["spec"])
					if err != nil {
						continue
					}
					if specs[named(object)] == nil {
						specs[named(object)] = map[string]bool{}
					}
					specs[named(object)][canonical] = true
				}
			}
		}
	}
	var e equality
	for _, one := range all {
		canonical, err := fleet.CanonicalJSON(one.fields["spec"])
		if err != nil {
			t.Fatal(err)
		}
		e.rendered++
		if specs[named(one.fields)][canonical] {
			e.equal++
		} else {
			e.differing = append(e.differing, one.host+": "+identity(one.fields)+" "+canonical)
		}
	}
	for _, listed := range result.Listed {
		if !listed.Taken {
			e.listed++
		}
	}
	return e, result
}

func named(object map[string]any) string {
	kind, _, _ := strings.Cut(identity(object), "/")
	metadata, _ := object["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	return strings.Fields(kind + " -")[0] + " " + name
}

const shared = "../../../shared"

// TestWhatIsRenderedIsWhatWasRead prints how many specs are equal. ADOPT_REPOSITORIES names a folder of further
// repositories, each a folder of files.
func TestWhatIsRenderedIsWhatWasRead(t *testing.T) {
	type input struct {
		folder  string
		options map[string]any
	}
	flux := map[string]any{"repository": map[string]any{"url": "https://github.com/fluxcd/flux2-kustomize-helm-example", "branch": "main"}}
	inputs := []input{
		{shared + "/charts/kustomize/fleet-example", flux},
		{shared + "/kalypso/tutorial/expected/dev", map[string]any{"hosts": "{cluster_type}"}},
		{shared + "/kalypso/tutorial/expected/stage", map[string]any{"hosts": "{cluster_type}"}},
	}
	if _, err := os.Stat(shared + "/kalypso"); err != nil {
		inputs = nil
	}
	if more := os.Getenv("ADOPT_REPOSITORIES"); more != "" {
		entries, err := os.ReadDir(more)
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			url := "https://github.com/" + strings.Replace(entry.Name(), "+", "/", 1)
			inputs = append(inputs, input{filepath.Join(more, entry.Name()), map[string]any{"repository": map[string]any{"url": url}}})
		}
	}
	if inputs == nil {
		t.Skip("../shared is absent, and ADOPT_REPOSITORIES names no repositories")
	}
	for _, in := range inputs {
		t.Run(filepath.Base(filepath.Dir(in.folder))+"/"+filepath.Base(in.folder), func(t *testing.T) {
			e, result := compare(t, readRepository(t, in.folder), in.options)
			t.Logf("%d of %d specs are equal, on %d cluster types; %d objects are listed", e.equal, e.rendered, len(result.Fleet["cluster_types"].([]any)), e.listed)
			slices.Sort(e.differing)
			for _, one := range e.differing {
				t.Errorf("differs: %s", one)
			}
			if testing.Verbose() && os.Getenv("ADOPT_LISTED") != "" {
				for _, one := range result.Listed {
					t.Logf("%+v", one)
				}
			}
		})
	}
}
