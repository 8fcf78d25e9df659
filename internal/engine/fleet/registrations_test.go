package fleet_test

import (
	stdjson "encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/access"
)

const (
	registrationA = "apiVersion: scheduler.kalypso.io/v1alpha1\nkind: WorkloadRegistration\nmetadata: {name: a, labels: {type: application}}\n" +
		"spec: {workload: {repo: 'https://git.example.com/a', branch: main, path: workload/}, workspace: team-a}\n"
	registrationB = "apiVersion: scheduler.kalypso.io/v1alpha1\nkind: WorkloadRegistration\nmetadata: {name: b}\n" +
		"spec: {workload: {repo: 'https://git.example.com/b', branch: main, path: .}}\n"
)

func registration(name, workload string) string {
	return kalypsoDocument("WorkloadRegistration", name, "{workload: "+workload+"}")
}

func TestRegistrationsHaveTheirSources(t *testing.T) {
	t.Parallel()
	got, known, findings := fleet.DecodeRegistrations(map[string]any{
		"main/a.yaml": "# first\n---\n" + registrationA + "---\nkind: List\n---\n- no object\n---\n",
		"main/b.yaml": registrationB, "main/type.yaml": kalypsoDocument("ClusterType", "x", "{}") + "---\napiVersion: v1\nkind: WorkloadRegistration\n",
	}, nil)
	wantFindings(t, findings)
	want := map[string]fleet.Registration{
		"a": {
			Name:         "a",
			Labels:       fleet.Labels{"type": "application"},
			Workspace:    "team-a",
			Source:       fleet.Source{URL: "https://git.example.com/a", Ref: "refs/heads/main", Path: "workload/"},
			SourcesKnown: true,
		},
		"b": {Name: "b", Source: fleet.Source{URL: "https://git.example.com/b", Ref: "refs/heads/main", Path: "."}, SourcesKnown: true},
	}
	if !known || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, known %v, want %v", got, known, want)
	}
}

func TestRegistrationsInACircleEnd(t *testing.T) {
	t.Parallel()
	first, _, findings := fleet.DecodeRegistrations([]any{registrationA}, nil)
	wantFindings(t, findings)
	// The source of a registers b, a, a with another name and spelling, and the control plane.
	documents := []any{
		registrationA + "---\n" + registrationB + registration(
			"again",
			"{repo: 'HTTPS://Git.example.com/a.git/', branch: refs/heads/main, path: ./workload}",
		) +
			registration(
				"back",
				"{repo: 'https://git.example.com/control-plane', branch: main, path: .}",
			),
	}
	followed := map[string]any{}
	for name, r := range first {
		followed[name] = map[string]any{"url": r.Source.URL, "ref": r.Source.Ref, "path": r.Source.Path}
	}
	controlPlane := map[string]any{"url": "https://git.example.com/control-plane", "ref": "main", "path": nil}
	for _, before := range [][]any{{followed, controlPlane}, {[]any{followed, controlPlane}}, {map[string]any{"x": followed, "y": controlPlane}}} {
		got, known, findings := fleet.DecodeRegistrations(documents, map[string]any{"followed": before})
		wantFindings(t, findings)
		if _, ok := got["b"]; !known || !ok || len(got) != 1 {
			t.Errorf("got %v, known %v, want b alone", got, known)
		}
	}
	_, _, findings = fleet.DecodeRegistrations(documents, nil)
	wantFindings(
		t,
		findings,
		`documents[0] document 3 (line 11, WorkloadRegistration "again").spec.workload: has the same repository, ref and path as documents[0] document 1 (line 1, WorkloadRegistration "a")`,
	)
	got, _, _ := fleet.DecodeRegistrations([]any{registrationA}, map[string]any{"followed": followed})
	if len(got) != 0 {
		t.Errorf("got %v, want nothing, because a was followed", got)
	}
}

func TestRegistrationsAreCheckedStrictly(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		documents any
		want      []string
	}{
		"no list":           {"text", []string{"documents: must be a list or map of YAML texts, not a string"}},
		"no text":           {[]any{stdjson.Number("1")}, []string{"documents[0]: must be the text of YAML documents, not a number"}},
		"no YAML":           {[]any{"a: ["}, []string{"documents[0]: document 1"}},
		"no spec":           {[]any{"apiVersion: scheduler.kalypso.io/v1alpha1\nkind: WorkloadRegistration\nmetadata: {name: a}\n"}, []string{"spec: is required"}},
		"no workload":       {[]any{kalypsoDocument("WorkloadRegistration", "a", "{workspace: x}")}, []string{"spec.workload: is required"}},
		"an empty workload": {[]any{registration("a", "{}")}, []string{".spec.workload.branch: is required", ".spec.workload.repo: is required"}},
		"a misspelt key":    {[]any{registration("a", "{repo: x, branch: main, paths: z}")}, []string{`.spec.workload.paths: unknown attribute; did you mean "path"?`}},
		"a branch unquoted": {[]any{registration("a", "{repo: x, branch: 1.10}")}, []string{".spec.workload.branch: must be a string"}},
		"a name":            {[]any{registration("A_b", "{repo: x, branch: main}")}, []string{`.metadata.name: "A_b" is not a DNS label`}},
		"a workspace":       {[]any{kalypsoDocument("WorkloadRegistration", "a", "{workload: {repo: x, branch: main}, workspace: 'A b'}")}, []string{`.spec.workspace: "A b" is not a DNS label`}},
		"one name twice":    {[]any{registration("a", "{repo: x, branch: main}") + registration("a", "{repo: z, branch: main}")}, []string{`.metadata.name: "a" is also the name of`}},
	} {
		_, _, findings := fleet.DecodeRegistrations(test.documents, nil)
		if len(findings) != len(test.want) {
			t.Errorf("%s: got %v, want %q", name, findings, test.want)
			continue
		}
		for i, want := range test.want {
			if !strings.Contains(findings[i].String(), want) {
				t.Errorf("%s: got %v, want %q", name, findings[i], want)
			}
		}
	}
	_, _, findings := fleet.DecodeRegistrations([]any{}, map[string]any{
		"followed": []any{
			"text",
			nil,
			map[string]any{"a": map[string]any{"a": map[string]any{"a": map[string]any{"a": map[string]any{"a": map[string]any{}}}}}},
		},
	})
	if len(findings) != 2 {
		t.Errorf("got findings %v of followed sources, want two", findings)
	}
}

func TestRegistrationsAreUnknownIfMoreMayFollow(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		documents any
		followed  []any
		known     bool
	}{
		"everything":                          {fleet.Unknown{}, nil, false},
		"a text":                              {[]any{registrationA, fleet.Unknown{}}, nil, false},
		"all followed sources":                {[]any{registrationA}, []any{fleet.Unknown{}}, false},
		"a followed source":                   {[]any{registrationA}, []any{map[string]any{"a": fleet.Unknown{}}}, false},
		"the ref of a followed source":        {[]any{registrationA}, []any{map[string]any{"url": "x", "ref": fleet.Unknown{}}}, false},
		"the repository of a followed source": {[]any{registrationA}, []any{map[string]any{"url": fleet.Unknown{}}}, false},
		"null in place of a followed source":  {[]any{registrationA}, []any{nil}, true},
	} {
		_, known, findings := fleet.DecodeRegistrations(test.documents, map[string]any{"followed": test.followed})
		wantFindings(t, findings)
		if known != test.known {
			t.Errorf("%s: got known %v", name, known)
		}
	}
	_, _, findings := fleet.DecodeRegistrations([]any{fleet.Unknown{}, "a: ["}, nil)
	if len(findings) != 1 {
		t.Errorf("beside an unknown document: got findings %v, want one", findings)
	}
}

func TestRegisteredWorkloadsBelongToTheirWorkspace(t *testing.T) {
	t.Parallel()
	workload := kalypsoDocument("Workload", "otherwise", "{deploymentTargets: [{name: c, environment: dev, manifests: {repo: 'https://x'}}]}")
	read := func(name any) map[string]any {
		return map[string]any{"name": name, "documents": map[string]any{"app.yaml": workload}}
	}
	decoded, findings := fleet.DecodeControlPlane("dev", []any{registrationA, read("a")})
	wantFindings(t, findings)
	if got := decoded.Fleet.Workloads[0].Workspace; got != "team-a" {
		t.Errorf("got workspace %q", got)
	}
	for name, test := range map[string]struct {
		documents []any
		want      []string
	}{
		"documents without a registration": {[]any{registrationA, read("b")}, []string{`documents["b"].name: none of the documents is a WorkloadRegistration "b"`}},
		"no name":                          {[]any{registrationA, map[string]any{"documents": []any{}}}, []string{"documents[1].name: is required"}},
		"no documents":                     {[]any{registrationA, map[string]any{"name": "a"}}, []string{`documents["a"].documents: is required`}},
		"misspelt":                         {[]any{registrationA, map[string]any{"name": "a", "document": []any{}, "documents": []any{}}}, []string{`documents["a"].document: unknown attribute; did you mean "documents"?`}},
		"no texts":                         {[]any{registrationA, map[string]any{"name": "a", "documents": []any{map[string]any{}}}}, []string{`documents["a"].documents[0]: must be the text of YAML documents, not an object`}},
	} {
		_, findings := fleet.DecodeControlPlane("dev", test.documents)
		if len(findings) != 1 || !strings.Contains(findings[0].String(), test.want[0]) {
			t.Errorf("%s: got %v, want %q", name, findings, test.want)
		}
	}
	for name, documents := range map[string][]any{
		"the documents":    {registrationA, map[string]any{"name": "a", "documents": fleet.Unknown{}}},
		"a document":       {registrationA, map[string]any{"name": "a", "documents": []any{fleet.Unknown{}}}},
		"the registration": {fleet.Unknown{}, read("a")},
		"its name":         {registrationA, read(fleet.Unknown{})},
	} {
		decoded, findings := fleet.DecodeControlPlane("dev", documents)
		wantFindings(t, findings)
		if decoded.Known {
			t.Errorf("%s: got a known fleet", name)
		}
	}
}

func FuzzRegistrations(f *testing.F) {
	for _, seed := range []string{registrationA, registrationB, registration("a", "{}"), "kind: [", "---\n---\n", "apiVersion: scheduler.kalypso.io/v1\nkind: WorkloadRegistration"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		const source = "https://git.example.com/a"
		bounded, _, findings := fleet.DecodeRegistrations(
			[]any{text},
			map[string]any{"workspaces": []any{map[string]any{"name": "team-a", "sources": []any{source}}}},
		)
		for name, r := range bounded {
			if len(findings) == 0 && (r.Workspace != "team-a" || !access.IsWithin(r.Sources, r.Source.URL)) {
				t.Errorf("%q has registration %+v outside %s", name, r, source)
			}
		}
		got, known, findings := fleet.DecodeRegistrations([]any{text}, nil)
		if !known {
			t.Error("got unknown registrations of a known text")
		}
		if len(findings) > 0 {
			return
		}
		var followed []any
		for name, r := range got {
			if name != r.Name || r.Source.URL == "" || !strings.HasPrefix(r.Source.Ref, "refs/heads/") || r.Source.Path == "" {
				t.Errorf("%q has registration %+v", name, r)
			}
			followed = append(followed, map[string]any{"url": r.Source.URL, "ref": r.Source.Ref, "path": r.Source.Path})
		}
		if again, _, _ := fleet.DecodeRegistrations([]any{text}, map[string]any{"followed": followed}); len(again) > 0 {
			t.Errorf("got %v again, although they were followed", again)
		}
	})
}
