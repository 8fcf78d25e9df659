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

// equality is how much of what was read is rendered as it was.
type equality struct {
	rendered, equal int
	differing       []string
	brought         int            // what an object that is rendered brings by its path
	agents          int            // those by which agents follow the repository
	sets, made      int            // ApplicationSets in whose place their Applications are adopted, and these
	listed          map[string]int // objects of reconcilers that are not rendered, by reason
}

// compare compares the specs of what is rendered with those of the documents, and of what kustomizations and
// roots make of them, by their canonical JSON.
func compare(t testing.TB, documents map[string]any, options map[string]any) (equality, *adopt.Adoption) {
	t.Helper()
	result, all, made := adoptedOf(t, documents, options)
	specs := map[string]map[string]bool{} // by name, without the namespace that a kustomization gives
	add := func(value any) {
		object, _ := value.(map[string]any)
		items, _ := object["items"].([]any)
		for _, one := range append(items, value) {
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
	texts, _, _ := fleet.ReadTexts(documents)
	for _, text := range texts {
		for _, document := range text.Documents {
			add(document.Value)
		}
	}
	for i := range made {
		value, err := fleet.ParseYAML(string(made[i].YAML))
		if err != nil {
			t.Fatal(err)
		}
		add(value)
	}
	e := equality{listed: map[string]int{}}
	promised := 0 // by ApplicationSets
	for _, one := range result.Listed {
		if match := makes.FindStringSubmatch(one.Reason); match != nil {
			number, _ := strconv.Atoi(match[1])
			e.sets, promised = e.sets+1, promised+number
		}
	}
	taken := map[string]bool{} // what is rendered, and what that brings
	for _, one := range all {
		canonical, err := fleet.CanonicalJSON(one.fields["spec"])
		if err != nil {
			t.Fatal(err)
		}
		e.rendered++
		_, name, _ := strings.Cut(identity(one.fields), " ")
		taken[name] = true
		switch {
		case specs[named(one.fields)][canonical]:
			e.equal++
		case e.made < promised && one.fields["kind"] == "Application" && specs[named(one.fields)] == nil:
			e.made++ // TestApplicationSetsBecomePolicies and the guide's test compare these
		default:
			e.differing = append(e.differing, one.host+": "+identity(one.fields)+" "+canonical)
		}
	}
	var left []adopt.Listed
	for _, one := range result.Listed {
		switch kind, _, _ := strings.Cut(one.Object, " "); {
		case one.Taken || !kinds[kind] || makes.MatchString(one.Reason):
		case strings.Contains(one.Reason, "it goes on to follow its folder"):
			e.agents++
		default:
			left = append(left, one)
		}
	}
	for before := -1; before != e.brought; {
		before = e.brought
		left = slices.DeleteFunc(left, func(one adopt.Listed) bool {
			by, _, _ := strings.Cut(strings.TrimPrefix(one.Reason, "comes with "), ",")
			if by == one.Reason || !taken[by] {
				return false
			}
			taken[one.Object] = true
			e.brought++
			return true
		})
	}
	for _, one := range left {
		e.listed[names.ReplaceAllString(one.Reason, "…")]++
	}
	return e, result
}

// makes is the reason of an ApplicationSet in whose place its Applications are.
var makes = regexp.MustCompile(`^makes (\d+) Applications, which are adopted`)

// names are what is not the same in two reasons of one form.
var names = regexp.MustCompile(`\S*[./"]\S*`)

// kinds are those that say what reconcilers deploy.
var kinds = func() map[string]bool {
	all := map[string]bool{}
	for _, kind := range reconciler.Kinds() {
		all[kind.Kind] = kind.Is(reconciler.Follows | reconciler.Consumer | reconciler.Maker | reconciler.Source)
	}
	return all
}()

func named(object map[string]any) string {
	group, name, _ := strings.Cut(identity(object), "/")
	return group[:strings.LastIndex(group, " ")] + " " + name
}

const shared = "../../../../shared"

// TestWhatIsRenderedIsWhatWasRead prints a table of how many specs are equal: those that are rendered as they were read, and the
// Applications that ApplicationSets make. Beside it are those that these bring by their paths, those of the agents, and all that is
// listed and not rendered. The share is that of the equal ones in all that are rendered or listed. FLOTILLA_ADOPT_REPOSITORIES names a folder of further
// repositories, each a folder of files.
func TestWhatIsRenderedIsWhatWasRead(t *testing.T) {
	type input struct {
		name, folder string
		options      map[string]any
		isOurs       bool // that 95 % are equal is what must hold
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
		t.Logf("of %d, %d have at least 95 %% of the specs:\n%s", len(inputs), good, strings.Join(table, "\n"))
	}()
	for _, in := range inputs {
		t.Run(in.name, func(t *testing.T) {
			e, result := compare(t, readRepository(t, in.folder), in.options)
			listed := 0
			for _, number := range e.listed {
				listed += number
			}
			share := 100 * float64(e.equal+e.made) / float64(max(e.rendered+listed, 1))
			table = append(
				table,
				fmt.Sprintf("%-64s %5d %5d %5d %7d %6d %6d %5.1f %%", in.name, e.equal, e.sets, e.made, e.brought, e.agents, listed, share),
			)
			if share >= 95 {
				good++
			} else if in.isOurs {
				t.Errorf("only %.1f %% of the specs are equal", share)
			}
			if os.Getenv("FLOTILLA_ADOPT_LISTED") != "" {
				for _, one := range result.Listed {
					t.Logf("%+v", one)
				}
			}
			for _, reason := range slices.Sorted(maps.Keys(e.listed)) {
				t.Logf("%d: %s", e.listed[reason], reason)
			}
			slices.Sort(e.differing)
			for _, one := range e.differing {
				t.Errorf("differs: %s", one)
			}
		})
	}
}
