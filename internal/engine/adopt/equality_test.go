package adopt_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/adopt"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
)

// equality counts the rendered objects with unchanged specs.
type equality struct {
	rendered, equal int
	differing       []string
	brought         int            // objects in the paths of rendered objects
	agents          int            // own objects of the agents
	sets            int            // ApplicationSets with adopted Applications
	applications    int            // these Applications
	listed          map[string]int // other objects of reconcilers by reason
}

// compareSpecs compares the rendered specs with the specs of the documents, and with the objects from kustomizations and roots. It
// compares canonical JSON.
func compareSpecs(t testing.TB, documents map[string]any, options map[string]any) (equality, *adopt.Adoption) {
	t.Helper()
	result, all, fromFolders := adoptAndRenderAll(t, documents, options)
	specs := map[string]map[string]bool{} // by name without namespace, because kustomizations may set it
	add := func(value any) {
		object, _ := value.(map[string]any)
		items, _ := object["items"].([]any)
		for _, item := range append(items, value) {
			if object, isObject := item.(map[string]any); isObject {
				canonical, err := fleet.CanonicalJSON(object["spec"])
				if err != nil {
					continue
				}
				if specs[nameOf(object)] == nil {
					specs[nameOf(object)] = map[string]bool{}
				}
				specs[nameOf(object)][canonical] = true
			}
		}
	}
	texts, _, _ := fleet.ReadTexts(documents)
	for _, text := range texts {
		for _, document := range text.Documents {
			add(document.Value)
		}
	}
	for i := range fromFolders {
		value, err := fleet.ParseYAML(string(fromFolders[i].YAML))
		if err != nil {
			t.Fatal(err)
		}
		add(value)
	}
	e := equality{listed: map[string]int{}}
	promised := 0 // Applications of ApplicationSets
	for _, listed := range result.Listed {
		if match := replacedReason.FindStringSubmatch(listed.Reason); match != nil {
			number, _ := strconv.Atoi(match[1])
			e.sets, promised = e.sets+1, promised+number
		}
	}
	covered := map[string]bool{} // rendered objects, and objects in their paths
	for _, object := range all {
		canonical, err := fleet.CanonicalJSON(object.fields["spec"])
		if err != nil {
			t.Fatal(err)
		}
		e.rendered++
		_, name, _ := strings.Cut(identity(object.fields), " ")
		covered[name] = true
		switch {
		case specs[nameOf(object.fields)][canonical]:
			e.equal++
		case e.applications < promised && object.fields["kind"] == "Application" && specs[nameOf(object.fields)] == nil:
			e.applications++ // TestApplicationSetsBecomePolicies and the guide's test check these
		default:
			e.differing = append(e.differing, object.host+": "+identity(object.fields)+" "+canonical)
		}
	}
	var remaining []adopt.Listed
	for _, listed := range result.Listed {
		switch kind, _, _ := strings.Cut(listed.Object, " "); {
		case listed.Taken || !reconcilerKinds[kind] || replacedReason.MatchString(listed.Reason):
		case strings.Contains(listed.Reason, "it goes on to follow its folder"):
			e.agents++
		default:
			remaining = append(remaining, listed)
		}
	}
	for before := -1; before != e.brought; {
		before = e.brought
		remaining = slices.DeleteFunc(remaining, func(listed adopt.Listed) bool {
			parent, _, _ := strings.Cut(strings.TrimPrefix(listed.Reason, "comes with "), ",")
			if parent == listed.Reason || !covered[parent] {
				return false
			}
			covered[listed.Object] = true
			e.brought++
			return true
		})
	}
	for _, listed := range remaining {
		e.listed[variableParts.ReplaceAllString(listed.Reason, "…")]++
	}
	return e, result
}

// replacedReason matches the reason for an ApplicationSet with adopted Applications.
var replacedReason = regexp.MustCompile(`^makes (\d+) Applications, which are adopted`)

// variableParts matches the names in a reason.
var variableParts = regexp.MustCompile(`\S*[./"]\S*`)

// reconcilerKinds has the kinds for the input of reconcilers.
var reconcilerKinds = func() map[string]bool {
	all := map[string]bool{}
	for _, kind := range reconciler.Kinds() {
		all[kind.Kind] = kind.Is(reconciler.Follows | reconciler.Consumer | reconciler.Maker | reconciler.Source)
	}
	return all
}()

// nameOf returns group, kind and name of an object, without its namespace.
func nameOf(object map[string]any) string {
	group, name, _ := strings.Cut(identity(object), "/")
	return group[:strings.LastIndex(group, " ")] + " " + name
}

const shared = "../../../../shared"

// TestRenderedSpecsEqualTheDocuments prints a table of repositories: the numbers of equal specs, ApplicationSets, their Applications,
// objects in the paths of others, objects of agents, and listed objects. The share is the part of equal specs and Applications in
// all rendered or listed objects. FLOTILLA_ADOPT_REPOSITORIES names a folder with further repositories, each a folder of files.
func TestRenderedSpecsEqualTheDocuments(t *testing.T) {
	type input struct {
		name, folder string
		options      map[string]any
		isOurs       bool // whether the share must be at least 95 %
	}
	var inputs []input
	if _, err := os.Stat(shared + "/kalypso"); err == nil {
		flux := map[string]any{"repository": map[string]any{"url": "https://github.com/fluxcd/flux2-kustomize-helm-example", "branch": "main"}}
		inputs = []input{
			{"fleet-example", shared + "/charts/kustomize/fleet-example", flux, true},
			{"kalypso dev", shared + "/kalypso/tutorial/expected/dev", map[string]any{"hosts": "{cluster_type}"}, true},
			{"kalypso stage", shared + "/kalypso/tutorial/expected/stage", map[string]any{"hosts": "{cluster_type}"}, true},
		}
	}
	if more := os.Getenv("FLOTILLA_ADOPT_REPOSITORIES"); more != "" {
		entries, err := os.ReadDir(more)
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			name := strings.Replace(entry.Name(), "+", "/", 1)
			inputs = append(
				inputs,
				input{name, more + "/" + entry.Name() + "/", map[string]any{"repository": map[string]any{"url": "https://github.com/" + name}}, false},
			)
		}
	}
	if inputs == nil {
		t.Skip("../shared is absent, and FLOTILLA_ADOPT_REPOSITORIES names no folder of repositories")
	}
	good, table := 0, []string{
		fmt.Sprintf("%-64s %5s %5s %5s %7s %6s %6s", "repository", "equal", "sets", "made", "brought", "agents", "listed"),
	}
	defer func() {
		t.Logf("of %d repositories, %d have a share of at least 95 %%:\n%s", len(inputs), good, strings.Join(table, "\n"))
	}()
	for _, repository := range inputs {
		t.Run(repository.name, func(t *testing.T) {
			e, result := compareSpecs(t, readRepository(t, repository.folder), repository.options)
			listed := 0
			for _, number := range e.listed {
				listed += number
			}
			share := 100 * float64(e.equal+e.applications) / float64(max(e.rendered+listed, 1))
			table = append(
				table,
				fmt.Sprintf("%-64s %5d %5d %5d %7d %6d %6d %5.1f %%", repository.name, e.equal, e.sets, e.applications, e.brought, e.agents, listed, share),
			)
			if share >= 95 {
				good++
			} else if repository.isOurs {
				t.Errorf("only %.1f %% of the specs are equal", share)
			}
			if os.Getenv("FLOTILLA_ADOPT_LISTED") != "" {
				for _, listed := range result.Listed {
					t.Logf("%+v", listed)
				}
			}
			for _, reason := range slices.Sorted(maps.Keys(e.listed)) {
				t.Logf("%d: %s", e.listed[reason], reason)
			}
			slices.Sort(e.differing)
			for _, object := range e.differing {
				t.Errorf("different spec: %s", object)
			}
		})
	}
}
