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

func TestWhichFactALabelIsMadeOf(t *testing.T) {
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

func choices(t *testing.T, of ...string) (all []facts.Choice) {
	t.Helper()
	for _, from := range of {
		choice, err := facts.ParseChoice(strings.ReplaceAll(from, "/", "."), from)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, choice)
	}
	return all
}

// known is what is known of a cluster that says some facts.
func known(is verdict.Verdict, says map[string]any) facts.KnownFacts {
	return facts.KnownFacts{ClusterFacts: evidence.ClusterFacts{Status: verdict.Status{Verdict: is, Message: "it is " + string(is)}, Facts: says}}
}

func TestLabelsOfWhatIsKnown(t *testing.T) {
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
		made := facts.Label(map[string]facts.KnownFacts{"a": known(verdict.Ready, map[string]any{name: test.fact})}, choices(t, test.from), nil, true)
		value, has := made.Of["a"][test.from]
		without := made.Without["a"][test.from]
		if len(made.Silent) > 0 || has != (test.without == "") || value != test.want || !strings.HasPrefix(without, test.without) ||
			(without == "") != has {
			t.Errorf("%v of %s: %+v", test.fact, test.from, made)
		}
	}
}

// The labels of a cluster that says nothing do not vanish.
func TestLabelsOfASilentClusterAreThoseOfTheDefaults(t *testing.T) {
	t.Parallel()
	says := map[string]any{"region": "eu", "labels": map[string]any{}}
	waiting := known(verdict.Unknown, nil)
	waiting.Waiting = true
	forbidden := known(verdict.Unknown, map[string]any{"kubernetes_version": "1.31.2"})
	forbidden.Missing = []string{"list nodes"}
	clusters := map[string]facts.KnownFacts{
		"ready":     known(verdict.Ready, says),
		"silent":    known(verdict.Unknown, nil),
		"forbidden": forbidden,
		"new":       waiting,
	}
	of := choices(t, "region", "labels.gpu")
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
		"while the names are not known": {
			map[string]map[string]string{"*": {}, "later": {"region": "us", "other": "x"}}, false, "map[forbidden:map[] later:map[region:us] new:map[] ready:map[region:eu] silent:map[]]", nil,
		},
	} {
		made := facts.Label(clusters, of, test.defaults, test.complete)
		if _, hasOthers := test.defaults["*"]; slices.Equal(made.Waiting, []string{"new"}) == hasOthers {
			t.Errorf("%s: %q wait", name, made.Waiting)
		}
		if got := fmt.Sprint(made.Of); got != test.want || !slices.Equal(made.Silent, test.silent) {
			t.Errorf("%s: %s, silent are %q", name, got, made.Silent)
		}
		without := made.Without
		if got := without["forbidden"]["region"]; got != "region is not known: the credentials lack the right to list nodes at cluster scope" &&
			!strings.HasSuffix(got, "its value is that of defaults") {
			t.Errorf("%s: %s", name, got)
		}
		if got := without["silent"]["region"]; !strings.HasPrefix(got, "region is not known: it is unknown") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// A cluster without nodes, one whose registration is ambiguous, and one of a hub that is not known yet have not lost their labels.
func TestLabelsOfWhatNobodySaysDoNotVanish(t *testing.T) {
	t.Parallel()
	empty := (&facts.OwnFacts{Version: "v1.31.2", Nodes: facts.NewNodes()}).Known(0)
	secret := func() facts.Registration {
		r, _ := facts.ReadSecret(aSecret(t, "a", "https://a", "team: a"))
		return r
	}
	profile, _ := facts.ReadClusterProfile(aProfile(t, "a", `{}`))
	asked := []facts.Source{facts.ArgoCD, facts.ClusterProfiles}
	twice := facts.Merge(map[string]facts.KnownFacts{"a": known(verdict.Ready, nil)}, []facts.Registration{secret(), secret(), profile}, asked)["a"]
	notYet := facts.Merge(map[string]facts.KnownFacts{"a": known(verdict.Ready, map[string]any{"region": "eu"})}, nil, nil)["a"]
	for _, test := range []struct {
		of      facts.KnownFacts
		from    string
		because string // "": it has a label
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
		made := facts.Label(map[string]facts.KnownFacts{"a": test.of}, choices(t, test.from), nil, true)
		if got := made.Without["a"][test.from]; (len(made.Silent) == 1) != (test.because != "") || !strings.HasPrefix(got, test.because) ||
			got == "" != (test.because == "") {
			t.Errorf("%s: %q, silent are %q, labels are %v", test.from, got, made.Silent, made.Of)
		}
	}
	if properties := twice.Facts["properties"]; properties == nil { // of which there is one object
		t.Errorf("%v", twice.Facts)
	}
}
