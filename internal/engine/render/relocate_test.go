package render_test

import (
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

var (
	formerPlace  = folder.Location{URL: "https://git.example.com/gitops", Branch: "dev", Path: "clusters/old/till-live"}
	presentPlace = folder.Location{URL: "https://git.example.com/platform", Branch: "live", Path: "clusters/new/till-live"}
)

const (
	ofFlux = "kind: HelmRelease\nspec:\n  chart:\n    spec:\n      chart: ./clusters/old/till-live/objects\n      sourceRef:\n        kind: GitRepository\n        name: flotilla\n"
	ofArgo = "kind: Application\nspec:\n  source:\n    path: clusters/old/till-live/objects\n    repoURL: https://git.example.com/gitops\n    targetRevision: dev\n"
)

func inFolder(reconciler string) []folder.File {
	return []folder.File{{Name: "objects/objects.yaml", Content: []byte("kind: A\n")}, {Name: "reconciler.yaml", Content: []byte(reconciler)}}
}

func TestObjectsThatFollowAFolderMoveWithIt(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ before, after string }{
		"a HelmRelease": {ofFlux, strings.ReplaceAll(ofFlux, "/old/", "/new/")},
		"a Kustomization": {
			"kind: Kustomization\nspec:\n  path: ./clusters/old/till-live/objects\n", "kind: Kustomization\nspec:\n  path: ./clusters/new/till-live/objects\n",
		},
		"an Application": {ofArgo, strings.NewReplacer("/old/", "/new/", "/gitops", "/platform", " dev", " live").Replace(ofArgo)},
		"an Application with a name of its own for the repository": {
			strings.ReplaceAll(ofArgo, "https://git.example.com/gitops", "ssh://git@git.example.com/gitops"),
			strings.NewReplacer("/old/", "/new/", "https://git.example.com/gitops", "ssh://git@git.example.com/gitops", " dev", " live").Replace(ofArgo),
		},
		"an ApplicationSet": {
			"kind: ApplicationSet\nspec:\n  template:\n    spec:\n      source:\n        path: clusters/old/till-live/objects\n        targetRevision: dev\n",
			"kind: ApplicationSet\nspec:\n  template:\n    spec:\n      source:\n        path: clusters/new/till-live/objects\n        targetRevision: live\n",
		},
		"the second of two":           {"kind: Namespace\n---\n" + ofFlux, "kind: Namespace\n---\n" + strings.ReplaceAll(ofFlux, "/old/", "/new/")},
		"a path elsewhere":            {strings.ReplaceAll(ofFlux, "/old/", "/older/"), strings.ReplaceAll(ofFlux, "/old/", "/older/")},
		"a longer name":               {strings.ReplaceAll(ofFlux, "objects", "objects-2"), strings.ReplaceAll(ofFlux, "objects", "objects-2")},
		"a kind of somebody else":     {strings.ReplaceAll(ofArgo, "Application", "Other"), strings.ReplaceAll(ofArgo, "Application", "Other")},
		"a file that is not YAML":     {"{ /objects", "{ /objects"},
		"a spec that is not a map":    {"kind: Application\nspec: /objects\n", "kind: Application\nspec: /objects\n"},
		"a document without contents": {"# /objects\n", "# /objects\n"},
	} {
		files, isSame := render.RelocatePointers(inFolder(test.before), formerPlace, presentPlace)
		if got := string(files[1].Content); got != test.after || isSame != (test.before == test.after) {
			t.Errorf("%s: it is %t\n%s\nwant\n%s", name, isSame, got, test.after)
		}
		if back, _ := render.RelocatePointers(files, presentPlace, formerPlace); string(back[1].Content) != test.before {
			t.Errorf("%s: back it is\n%s\nwant\n%s", name, back[1].Content, test.before)
		}
	}
}

func TestAPlaceIsCheckedBeforeItIsCommitted(t *testing.T) {
	t.Parallel()
	for reconciler, want := range map[string]string{
		ofFlux: "",
		ofArgo: "",
		strings.ReplaceAll(ofFlux, "old", "gone"):          `reconciler.yaml: it follows "clusters/gone/till-live/objects", and its final objects are at "clusters/old/till-live/objects"`,
		strings.ReplaceAll(ofArgo, " dev", " gone"):        `reconciler.yaml: it follows branch "gone", and its final objects are on branch "dev"`,
		"kind: Kustomization\nspec:\n  path: ./team/app\n": "",
	} {
		got := ""
		if err := render.CheckPointers(inFolder(reconciler), formerPlace); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s\nthe error is %q, want %q", reconciler, got, want)
		}
	}
	ofOther := strings.ReplaceAll(ofArgo, "example.com/gitops", "example.com/other")
	named := strings.ReplaceAll(ofArgo, "https://git.example.com", "ssh://git@git.example.com")
	for name, test := range map[string]struct{ reconciler, policy, want string }{
		"the same URL":                   {ofArgo, ofArgo, ""},
		"another repository":             {ofArgo, ofOther, `policy.yaml: it follows repository "https://git.example.com/other", and its final objects are in "https://git.example.com/gitops"`},
		"the agent's name":               {named, named, ""},
		"the URL beside the agent's":     {named, ofArgo, ""},
		"another beside the agent's":     {named, ofOther, `policy.yaml: it follows repository "https://git.example.com/other", and its final objects are in "https://git.example.com/gitops"`},
		"Flux, which names no URL":       {ofFlux, ofFlux, ""},
		"another repository beside Flux": {ofFlux, ofOther, `policy.yaml: it follows repository "https://git.example.com/other", and its final objects are in "https://git.example.com/gitops"`},
		"another repository, elsewhere":  {ofArgo, strings.ReplaceAll(ofOther, "/objects", "/team"), ""},
	} {
		files := append([]folder.File{{Name: "policy.yaml", Content: []byte(test.policy)}}, inFolder(test.reconciler)...)
		got := ""
		if err := render.CheckPointers(files, formerPlace); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s: the error is %q, want %q", name, got, test.want)
		}
	}
	if err := render.CheckPointers(inFolder(strings.ReplaceAll(ofFlux, "old", "gone"))[1:], formerPlace); err != nil {
		t.Errorf("without final objects the error is %q", err)
	}
}

// Files of a branch may say anything: what is moved, is right at its place, and moving it again changes nothing.
func FuzzRelocate(f *testing.F) {
	for _, seed := range []string{ofFlux, ofArgo, "a: &a [*a]\n/objects", "kind: Application\nspec: {source: {path: clusters/old/till-live/objects/../x}}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		files, isSame := render.RelocatePointers(inFolder(string(content)), formerPlace, presentPlace)
		if isSame {
			return
		}
		if _, isSame := render.RelocatePointers(files, formerPlace, presentPlace); !isSame {
			t.Errorf("%q: moved again it is another", content)
		}
		if _, isSame := render.RelocatePointers(files, presentPlace, presentPlace); !isSame {
			t.Errorf("%q: it is not as it is", content)
		}
	})
}
