package observe_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

// Whatever Flotilla renders for a reconciler is of a kind that is known; what says something about what runs is listed,
// and so is what it names as its source.
func TestEveryKindThatCanBeRenderedIsListed(t *testing.T) {
	t.Parallel()
	folders, err := filepath.Glob("../../engine/render/testdata/builtin/*/reconciler.yaml")
	if err != nil || len(folders) < 10 {
		t.Fatalf("%d folders, %v", len(folders), err)
	}
	seen := map[string]bool{}
	for _, path := range folders {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			var object unstructured.Unstructured
			if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil || object.GetKind() == "ZarfPackageConfig" {
				continue
			}
			group := object.GroupVersionKind().Group
			kind := reconciler.KindOf(group, object.GetKind())
			if kind == nil {
				t.Errorf("%s: no reconciler has the kind %s of group %s", path, object.GetKind(), group)
				continue
			}
			seen[kind.Kind] = true
			of := reconciler.InNamespace(object.GetNamespace())
			if of == nil || of.Namespace != object.GetNamespace() {
				t.Errorf("%s: %s is in namespace %s", path, kind.Kind, object.GetNamespace())
				continue
			}
			isListed := func(name string) bool {
				return slices.ContainsFunc(of.ListedKinds(), func(one reconciler.ObjectKind) bool { return one.Kind == name })
			}
			if kind.Role != 0 && !isListed(kind.Kind) {
				t.Errorf("%s: %s is not listed on clusters of %s", path, kind.Kind, of.Name)
			}
			for _, made := range kind.Makes {
				if !isListed(made) {
					t.Errorf("%s: %s, which a %s makes, is not listed", path, made, kind.Kind)
				}
			}
			for _, named := range sourcesIn(object.Object["spec"]) {
				known := slices.ContainsFunc(kind.Sources, func(r reconciler.Reference) bool { return slices.Contains(r.Kinds, named) })
				through := kind.Kind == "HelmRelease" && slices.Contains(reconciler.KindNamed("HelmChart").Sources[0].Kinds, named)
				if !known && !through || !isListed(named) {
					t.Errorf("%s: %s gets its content from a %s, which is not read", path, kind.Kind, named)
				}
			}
		}
	}
	for _, kind := range []string{"Kustomization", "HelmRelease", "GitRepository", "OCIRepository", "HelmRepository", "Application", "ApplicationSet", "GitRepo", "HelmOp", "RootSync"} {
		if !seen[kind] {
			t.Errorf("no example renders a %s", kind)
		}
	}
}

// sourcesIn are the kinds of what is named in any field called sourceRef or chartRef.
func sourcesIn(value any) []string {
	var kinds []string
	fields, _ := value.(map[string]any)
	for name, one := range fields {
		if named, ok := one.(map[string]any); ok && (name == "sourceRef" || name == "chartRef") {
			kinds = append(kinds, fmt.Sprint(named["kind"]))
			continue
		}
		kinds = append(kinds, sourcesIn(one)...)
	}
	return kinds
}

// Each object that gets its content from another one is ready only where that one can be read, is ready, and gives what
// the object has. The table says which they are.
func TestEveryLinkToASourceIsRead(t *testing.T) {
	t.Parallel()
	for _, kind := range reconciler.Kinds() {
		for _, reference := range kind.Sources {
			for _, named := range reference.Kinds {
				t.Run(kind.Kind+" "+reference.Field+" "+named, func(t *testing.T) {
					t.Parallel()
					checkLink(t, kind, reference, reconciler.KindNamed(named))
				})
			}
		}
	}
}

func checkLink(t *testing.T, kind *reconciler.ObjectKind, reference reconciler.Reference, named *reconciler.ObjectKind) {
	t.Helper()
	const source = "src"
	consumer := readyObject(kind, "web", reference, named.Kind, source)
	listed := []*unstructured.Unstructured{consumer, readyObject(named, source, reconciler.Reference{}, "", "")}
	switch { // what comes before or after, so that the chain is whole
	case kind.Kind == "HelmChart":
		release := reconciler.KindNamed("HelmRelease")
		listed = append([]*unstructured.Unstructured{readyObject(release, "web", release.Sources[1], "HelmChart", "web")}, listed...)
	case kind.Kind == "GitRepository":
		of := reconciler.KindNamed("Kustomization")
		listed = append([]*unstructured.Unstructured{readyObject(of, "web", of.Sources[0], "GitRepository", "web")}, listed...)
	case named.Kind == "HelmChart":
		listed[1] = readyObject(named, source, named.Sources[0], "HelmRepository", "index")
		listed = append(listed, readyObject(reconciler.KindNamed("HelmRepository"), "index", reconciler.Reference{}, "", ""))
	}
	at := slices.IndexFunc(listed, func(one *unstructured.Unstructured) bool { return one.GetName() == source })
	judge := func(what string, want verdict.Verdict, reason string, change func(one *unstructured.Unstructured) []*unstructured.Unstructured, unlisted map[string]string) {
		t.Helper()
		changed := slices.Clone(listed)
		changed = slices.Replace(changed, at, at+1, change(listed[at].DeepCopy())...)
		if got := judgedListed(t, reconciler.Answer{Objects: changed, Unlisted: unlisted}); got.Verdict != want ||
			!strings.Contains(got.Message, reason) {
			t.Errorf("%s: %s: %s, want %s: %s", what, got.Verdict, got.Message, want, reason)
		}
	}
	type objects = []*unstructured.Unstructured
	judge("all is there", verdict.Ready, "", func(one *unstructured.Unstructured) objects { return objects{one} }, nil)
	judge(
		"it cannot be listed",
		verdict.Unknown,
		"Forbidden",
		func(*unstructured.Unstructured) objects { return nil },
		map[string]string{named.Kind: "Forbidden"},
	)
	judge("it is not there", verdict.Progressing, "which does not exist", func(*unstructured.Unstructured) objects { return nil }, nil)
	judge("it has something newer", verdict.Progressing, "and its source has newer@sha256:bbbb", func(one *unstructured.Unstructured) objects {
		set(one, "newer@sha256:bbbb", strings.Split(named.Gives, ".")...)
		return objects{one}
	}, nil)
	judge("it was changed", verdict.Progressing, "was changed", func(one *unstructured.Unstructured) objects {
		one.SetGeneration(2)
		return objects{one}
	}, nil)
	judge("it has failed", verdict.Failed, "no such thing", func(one *unstructured.Unstructured) objects {
		set(
			one,
			[]any{map[string]any{"type": "Ready", "status": "False", "reason": "Failed", "message": "no such thing"}},
			"status",
			"conditions",
		)
		return objects{one}
	}, nil)
	judge("it has nothing yet", verdict.Progressing, "has nothing yet", func(one *unstructured.Unstructured) objects {
		unstructured.RemoveNestedField(one.Object, "status", "artifact")
		return objects{one}
	}, nil)
}

// What an object makes is part of whether it is ready, so that has to be listed, too.
func TestWhatIsMadeOfAnObjectHasToBeListed(t *testing.T) {
	t.Parallel()
	makers := 0
	for _, kind := range reconciler.Kinds() {
		for _, made := range kind.Makes {
			makers++
			documents, unlisted := map[string]string{"GitRepo": readyRepo, "HelmOp": readyHelmOp, "Bundle": readyRepo, "ApplicationSet": hubSet, "RootSync": readySync, "RepoSync": readyRepoSync}[kind.Kind], reconciler.Answer{}
			for _, one := range objectsOf(t, strings.TrimSpace(documents)) {
				if one.GetKind() != made {
					unlisted.Objects = append(unlisted.Objects, one)
				}
			}
			unlisted.Unlisted = map[string]string{made: "Forbidden"}
			if got := judgedListed(t, unlisted); got.Verdict != verdict.Unknown || !strings.Contains(got.Message, "cannot be read: Forbidden") {
				t.Errorf("%s without %s is %s: %s", kind.Kind, made, got.Verdict, got.Message)
			}
		}
	}
	if makers < 6 {
		t.Errorf("%d kinds make others", makers)
	}
	application := replaced(
		t,
		readyApplication,
		"name: web,",
		"name: web, ownerReferences: [{apiVersion: argoproj.io/v1alpha1, kind: ApplicationSet, name: web, uid: x}],",
	)
	got := judgedListed(
		t,
		reconciler.Answer{Objects: objectsOf(t, application[1:]), Unlisted: map[string]string{"ApplicationSet": "Forbidden"}},
	)
	if got.Verdict != verdict.Unknown ||
		got.Message != "Application argocd/web depends on ApplicationSet argocd/web, which cannot be read: Forbidden" {
		t.Errorf("%s: %s", got.Verdict, got.Message)
	}
}

// readyObject is a ready one that has what its source gives.
func readyObject(kind *reconciler.ObjectKind, name string, reference reconciler.Reference, named, source string) *unstructured.Unstructured {
	const revision = "v1@sha256:aaaa"
	version, _, _ := strings.Cut(kind.Versions, ",")
	one := &unstructured.Unstructured{Object: map[string]any{"apiVersion": kind.Group + "/" + version, "kind": kind.Kind}}
	one.SetNamespace("flux-system")
	one.SetName(name)
	one.SetGeneration(1)
	set(one, true, "spec", "wait")
	set(one, int64(1), "status", "observedGeneration")
	set(one, []any{map[string]any{"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-21T20:00:00Z"}}, "status", "conditions")
	if reference.Field != "" {
		ref := any(map[string]any{"kind": named, "name": source})
		if strings.HasPrefix(reference.Field, "status.") {
			ref = "flux-system/" + source
		}
		set(one, ref, strings.Split(reference.Field, ".")...)
		set(one, revision, strings.Split(kind.Has[0], ".")...)
	}
	if kind.Gives != "" {
		set(one, revision, strings.Split(kind.Gives, ".")...)
	}
	return one
}

// set sets a field. A step that ends with "[]" is a list of one.
func set(one *unstructured.Unstructured, value any, path ...string) {
	for i := len(path) - 1; i >= 0; i-- {
		if list, is := strings.CutSuffix(path[i], "[]"); is {
			for k := len(path) - 1; k > i; k-- {
				value = map[string]any{path[k]: value}
			}
			value, path = []any{value}, append(slices.Clone(path[:i]), list)
		}
	}
	if err := unstructured.SetNestedField(one.Object, value, path...); err != nil {
		panic(err)
	}
}
