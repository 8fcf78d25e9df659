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
	fluxRelease     = "kind: HelmRelease\nspec:\n  chart:\n    spec:\n      chart: ./clusters/old/till-live/objects\n      sourceRef:\n        kind: GitRepository\n        name: flotilla\n"
	argoApplication = "kind: Application\nspec:\n  source:\n    path: clusters/old/till-live/objects\n    repoURL: https://git.example.com/gitops\n    targetRevision: dev\n"
)

func folderWith(reconciler string) []folder.File {
	return []folder.File{{Name: "objects/objects.yaml", Content: []byte("kind: A\n")}, {Name: "reconciler.yaml", Content: []byte(reconciler)}}
}

func TestReconcilersFollowAMovedFolder(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ before, after string }{
		"a HelmRelease": {fluxRelease, strings.ReplaceAll(fluxRelease, "/old/", "/new/")},
		"a Kustomization": {
			"kind: Kustomization\nspec:\n  path: ./clusters/old/till-live/objects\n", "kind: Kustomization\nspec:\n  path: ./clusters/new/till-live/objects\n",
		},
		"an Application": {argoApplication, strings.NewReplacer("/old/", "/new/", "/gitops", "/platform", " dev", " live").Replace(argoApplication)},
		"an Application with another URL of the repository": {
			strings.ReplaceAll(argoApplication, "https://git.example.com/gitops", "ssh://git@git.example.com/gitops"),
			strings.NewReplacer("/old/", "/new/", "https://git.example.com/gitops", "ssh://git@git.example.com/gitops", " dev", " live").Replace(argoApplication),
		},
		"an ApplicationSet": {
			"kind: ApplicationSet\nspec:\n  template:\n    spec:\n      source:\n        path: clusters/old/till-live/objects\n        targetRevision: dev\n",
			"kind: ApplicationSet\nspec:\n  template:\n    spec:\n      source:\n        path: clusters/new/till-live/objects\n        targetRevision: live\n",
		},
		"the second of two":           {"kind: Namespace\n---\n" + fluxRelease, "kind: Namespace\n---\n" + strings.ReplaceAll(fluxRelease, "/old/", "/new/")},
		"a path elsewhere":            {strings.ReplaceAll(fluxRelease, "/old/", "/older/"), strings.ReplaceAll(fluxRelease, "/old/", "/older/")},
		"a longer name":               {strings.ReplaceAll(fluxRelease, "objects", "objects-2"), strings.ReplaceAll(fluxRelease, "objects", "objects-2")},
		"an unknown kind":             {strings.ReplaceAll(argoApplication, "Application", "Other"), strings.ReplaceAll(argoApplication, "Application", "Other")},
		"a file that is not YAML":     {"{ /objects", "{ /objects"},
		"a spec that is not a map":    {"kind: Application\nspec: /objects\n", "kind: Application\nspec: /objects\n"},
		"a document without contents": {"# /objects\n", "# /objects\n"},
	} {
		files, isSame := render.RelocatePointers(folderWith(test.before), formerPlace, presentPlace)
		if got := string(files[1].Content); got != test.after || isSame != (test.before == test.after) {
			t.Errorf("%s: got isSame %t and\n%s\nwant\n%s", name, isSame, got, test.after)
		}
		if back, _ := render.RelocatePointers(files, presentPlace, formerPlace); string(back[1].Content) != test.before {
			t.Errorf("%s: after the way back, got\n%s\nwant\n%s", name, back[1].Content, test.before)
		}
	}
}

func TestPointersToAnotherPlaceAreErrors(t *testing.T) {
	t.Parallel()
	for reconciler, want := range map[string]string{
		fluxRelease:     "",
		argoApplication: "",
		strings.ReplaceAll(fluxRelease, "old", "gone"):       `reconciler.yaml: it follows "clusters/gone/till-live/objects", and its final objects are at "clusters/old/till-live/objects"`,
		strings.ReplaceAll(argoApplication, " dev", " gone"): `reconciler.yaml: it follows branch "gone", and its final objects are on branch "dev"`,
		"kind: Kustomization\nspec:\n  path: ./team/app\n":   "",
	} {
		got := ""
		if err := render.CheckPointers(folderWith(reconciler), formerPlace); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s\ngot error %q, want %q", reconciler, got, want)
		}
	}
	ofOther := strings.ReplaceAll(argoApplication, "example.com/gitops", "example.com/other")
	named := strings.ReplaceAll(argoApplication, "https://git.example.com", "ssh://git@git.example.com")
	for name, test := range map[string]struct{ reconciler, policy, want string }{
		"the same URL":                   {argoApplication, argoApplication, ""},
		"another repository":             {argoApplication, ofOther, `policy.yaml: it follows repository "https://git.example.com/other", and its final objects are in "https://git.example.com/gitops"`},
		"the agent's name":               {named, named, ""},
		"the URL beside the agent's":     {named, argoApplication, ""},
		"another beside the agent's":     {named, ofOther, `policy.yaml: it follows repository "https://git.example.com/other", and its final objects are in "https://git.example.com/gitops"`},
		"Flux, which names no URL":       {fluxRelease, fluxRelease, ""},
		"another repository beside Flux": {fluxRelease, ofOther, `policy.yaml: it follows repository "https://git.example.com/other", and its final objects are in "https://git.example.com/gitops"`},
		"another repository, elsewhere":  {argoApplication, strings.ReplaceAll(ofOther, "/objects", "/team"), ""},
	} {
		files := append([]folder.File{{Name: "policy.yaml", Content: []byte(test.policy)}}, folderWith(test.reconciler)...)
		got := ""
		if err := render.CheckPointers(files, formerPlace); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s: got error %q, want %q", name, got, test.want)
		}
	}
	if err := render.CheckPointers(folderWith(strings.ReplaceAll(fluxRelease, "old", "gone"))[1:], formerPlace); err != nil {
		t.Errorf("without final objects: got error %q", err)
	}
}

// FuzzRelocate relocates any content. A second relocation must change nothing.
func FuzzRelocate(f *testing.F) {
	for _, seed := range []string{fluxRelease, argoApplication, "a: &a [*a]\n/objects", "kind: Application\nspec: {source: {path: clusters/old/till-live/objects/../x}}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		files, isSame := render.RelocatePointers(folderWith(string(content)), formerPlace, presentPlace)
		if isSame {
			return
		}
		if _, isSame := render.RelocatePointers(files, formerPlace, presentPlace); !isSame {
			t.Errorf("%q: a second relocation changes it", content)
		}
		if _, isSame := render.RelocatePointers(files, presentPlace, presentPlace); !isSame {
			t.Errorf("%q: a relocation to its own place changes it", content)
		}
	})
}
