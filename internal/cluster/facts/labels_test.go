package facts_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/evidence"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/facts"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

func TestChoicesOfLabelsAreChecked(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ label, from, want string }{
		{"region", "region", ""},
		{"example.com/gpu", "labels.nvidia.com/gpu.present", ""},
		{"gpus", "capacity.nvidia.com/gpu", ""},
		{"a b", "region", "is not the key of a label"},
		{"region", "regoin", `there is no fact "regoin"; did you mean "region"?`},
		{"region", "", `there is no fact ""`},
		{"region", "labels", `the fact "labels" is a map of texts: add a point and the name of one, as in "labels.example"`},
		{"region", "capacity.", `the fact "capacity" is a map of numbers: add a point`},
		{"region", "region.name", `the fact "region" is a text, which has no "name"`},
	} {
		choice, err := facts.ParseChoice(test.label, test.from)
		switch {
		case test.want == "" && (err != nil || choice.String() != test.from):
			t.Errorf("%s: %v, %v", test.from, choice, err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s = %s: %v, want %s", test.label, test.from, err, test.want)
		}
	}
}

func parseChoices(t *testing.T, sources ...string) (all []facts.Choice) {
	t.Helper()
	for _, from := range sources {
		choice, err := facts.ParseChoice(strings.ReplaceAll(from, "/", "."), from)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, choice)
	}
	return all
}

// knownFacts returns the verdict and facts of a cluster.
func knownFacts(v verdict.Verdict, values map[string]any) facts.KnownFacts {
	return facts.KnownFacts{ClusterFacts: evidence.ClusterFacts{Status: verdict.Status{Verdict: v, Message: "it is " + string(v)}, Facts: values}}
}

func TestLabelsOfKnownFacts(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		fact    any
		from    string
		want    string
		without string
	}{
		{fact: "eu", from: "region", want: "eu"},
		{fact: 3.0, from: "nodes", want: "3"},
		{fact: map[string]any{"cpu": 7.84}, from: "capacity.cpu", want: "7.84"},
		{fact: map[string]any{"memory": float64(1 << 40)}, from: "capacity.memory", want: "1099511627776"},
		{fact: map[string]any{"gpu": "true"}, from: "labels.gpu", want: "true"},
		{fact: map[string]any{"gpu": ""}, from: "labels.gpu", want: ""},
		{fact: map[string]any{}, from: "labels.gpu", without: "the cluster has no labels.gpu"},
		{fact: []any{"a"}, from: "zones", want: "a"},
		{fact: []any{"a", "b"}, from: "zones", without: "zones has 2 values, and a label has one"},
		{fact: []any{}, from: "zones", without: "zones has 0 values, and a label has one"},
		{fact: "", from: "region", without: "the cluster does not say its region"},
		{fact: "1.31.2+k3s1", from: "kubernetes_version", without: "kubernetes_version: "},
	} {
		name, _, _ := strings.Cut(test.from, ".")
		labels := facts.Label(map[string]facts.KnownFacts{"a": knownFacts(verdict.Ready, map[string]any{name: test.fact})}, parseChoices(t, test.from), nil, true)
		value, isSet := labels.Of["a"][test.from]
		without := labels.Without["a"][test.from]
		if len(labels.Silent) > 0 || isSet != (test.without == "") || value != test.want || !strings.HasPrefix(without, test.without) ||
			(without == "") != isSet {
			t.Errorf("%v of %s: %+v", test.fact, test.from, labels)
		}
	}
}

// A cluster without an answer must not lose its labels.
func TestASilentClusterHasTheLabelsOfTheDefaults(t *testing.T) {
	t.Parallel()
	values := map[string]any{"region": "eu", "labels": map[string]any{}}
	waiting := knownFacts(verdict.Unknown, nil)
	waiting.Waiting = true
	forbidden := knownFacts(verdict.Unknown, map[string]any{"kubernetes_version": "1.31.2"})
	forbidden.Missing = []string{"list nodes"}
	clusters := map[string]facts.KnownFacts{
		"ready":     knownFacts(verdict.Ready, values),
		"silent":    knownFacts(verdict.Unknown, nil),
		"forbidden": forbidden,
		"new":       waiting,
	}
	fromFacts := parseChoices(t, "region", "labels.gpu")
	for name, test := range map[string]struct {
		defaults map[string]map[string]string
		complete bool
		want     string
		silent   []string
	}{
		"without defaults": {nil, true, "map[new:map[] ready:map[region:eu]]", []string{"forbidden", "silent"}},
		"with defaults": {
			map[string]map[string]string{"silent": {"region": "us", "labels.gpu": "true"}, "forbidden": {}, "ready": {"region": "other", "labels.gpu": "true"}, "gone": {"region": "us"}}, true,
			"map[forbidden:map[] new:map[] ready:map[region:eu] silent:map[labels.gpu:true region:us]]", nil,
		},
		"with a default for all": {map[string]map[string]string{"*": {"region": "us"}}, true, "map[forbidden:map[region:us] new:map[region:us] ready:map[region:eu] silent:map[region:us]]", nil},
		"with unknown names of clusters": {
			map[string]map[string]string{"*": {}, "later": {"region": "us", "other": "x"}}, false, "map[forbidden:map[] later:map[region:us] new:map[] ready:map[region:eu] silent:map[]]", nil,
		},
	} {
		labels := facts.Label(clusters, fromFacts, test.defaults, test.complete)
		if _, hasOthers := test.defaults["*"]; slices.Equal(labels.Waiting, []string{"new"}) == hasOthers {
			t.Errorf("%s: got waiting clusters %q", name, labels.Waiting)
		}
		if got := fmt.Sprint(labels.Of); got != test.want || !slices.Equal(labels.Silent, test.silent) {
			t.Errorf("%s: got %s, silent clusters %q", name, got, labels.Silent)
		}
		without := labels.Without
		if got := without["forbidden"]["region"]; got != "region is not known: the credentials lack the right to list nodes at cluster scope" &&
			!strings.HasSuffix(got, "its value is that of defaults") {
			t.Errorf("%s: %s", name, got)
		}
		if got := without["silent"]["region"]; !strings.HasPrefix(got, "region is not known: it is unknown") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// Three clusters must not lose their labels: one without nodes, one with an ambiguous registration, and one whose hub is not known yet.
func TestLabelsOfUnknownFactsDoNotVanish(t *testing.T) {
	t.Parallel()
	empty := (&facts.OwnFacts{Version: "v1.31.2", Nodes: facts.NewNodes()}).Known(0)
	secret := func() facts.Registration {
		r, _ := facts.ReadSecret(newSecret(t, "a", "https://a", "team: a"))
		return r
	}
	profile, _ := facts.ReadClusterProfile(newProfile(t, "a", `{}`))
	sources := []facts.Source{facts.ArgoCD, facts.ClusterProfiles}
	twice := facts.Merge(map[string]facts.KnownFacts{"a": knownFacts(verdict.Ready, nil)}, []facts.Registration{secret(), secret(), profile}, sources)["a"]
	notYet := facts.Merge(map[string]facts.KnownFacts{"a": knownFacts(verdict.Ready, map[string]any{"region": "eu"})}, nil, nil)["a"]
	for _, test := range []struct {
		cluster facts.KnownFacts
		from    string
		reason  string // "" if the cluster has the label
	}{
		{empty, "region", "region is not known: there are no nodes"},
		{empty, "zones", "zones is not known: there are no nodes"},
		{empty, "labels.gpu", "labels.gpu is not known: there are no nodes"},
		{empty, "capacity.cpu", "capacity.cpu is not known: there are no nodes"},
		{empty, "nodes", ""},
		{empty, "kubernetes_minor", ""},
		{twice, "registered_labels.team", "registered_labels.team is not known: several objects of the hub have this name, and none counts: Secret argocd/cluster-1, Secret argocd/cluster-1"},
		{twice, "server", "server is not known: several objects of the hub have this name"},
		{notYet, "registered_labels.team", "registered_labels.team is not known: no hub has said it"},
		{notYet, "server", "server is not known: no hub has said it"},
	} {
		labels := facts.Label(map[string]facts.KnownFacts{"a": test.cluster}, parseChoices(t, test.from), nil, true)
		if got := labels.Without["a"][test.from]; (len(labels.Silent) == 1) != (test.reason != "") || !strings.HasPrefix(got, test.reason) ||
			got == "" != (test.reason == "") {
			t.Errorf("%s: got reason %q, silent clusters %q, labels %v", test.from, got, labels.Silent, labels.Of)
		}
	}
	if properties := twice.Facts["properties"]; properties == nil { // from the only ClusterProfile
		t.Errorf("%v", twice.Facts)
	}
}
