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

// The test covers the rendered kinds, the kinds of their sources, and the kinds of the objects that they create.
func TestEveryKindThatCanBeRenderedIsListed(t *testing.T) {
	t.Parallel()
	folders, err := filepath.Glob("../../engine/render/testdata/builtin/*/reconciler.yaml")
	if err != nil || len(folders) < 10 {
		t.Fatalf("got %d folders, want at least 10: %v", len(folders), err)
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
			agent := reconciler.InNamespace(object.GetNamespace())
			if agent == nil || agent.Namespace != object.GetNamespace() {
				t.Errorf("%s: %s is in namespace %s", path, kind.Kind, object.GetNamespace())
				continue
			}
			isListed := func(name string) bool {
				return slices.ContainsFunc(agent.ListedKinds(), func(one reconciler.ObjectKind) bool { return one.Kind == name })
			}
			if kind.Role != 0 && !isListed(kind.Kind) {
				t.Errorf("%s: %s is not listed on clusters of %s", path, kind.Kind, agent.Name)
			}
			for _, child := range kind.Makes {
				if !isListed(child) {
					t.Errorf("%s: %s, which a %s creates, is not listed", path, child, kind.Kind)
				}
			}
			for _, sourceKind := range sourceKinds(object.Object["spec"]) {
				known := slices.ContainsFunc(kind.Sources, func(r reconciler.Reference) bool { return slices.Contains(r.Kinds, sourceKind) })
				through := kind.Kind == "HelmRelease" && slices.Contains(reconciler.KindNamed("HelmChart").Sources[0].Kinds, sourceKind)
				if !known && !through || !isListed(sourceKind) {
					t.Errorf("%s: %s gets its content from a %s, which is not read", path, kind.Kind, sourceKind)
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

// sourceKinds returns the kinds of all fields sourceRef and chartRef.
func sourceKinds(value any) []string {
	var kinds []string
	fields, _ := value.(map[string]any)
	for name, one := range fields {
		if reference, ok := one.(map[string]any); ok && (name == "sourceRef" || name == "chartRef") {
			kinds = append(kinds, fmt.Sprint(reference["kind"]))
			continue
		}
		kinds = append(kinds, sourceKinds(one)...)
	}
	return kinds
}

// An object with a source is ready only if the source is listed, is ready, and offers the revision of the object.
func TestEveryLinkToASourceIsRead(t *testing.T) {
	t.Parallel()
	for _, kind := range reconciler.Kinds() {
		for _, reference := range kind.Sources {
			for _, sourceKind := range reference.Kinds {
				t.Run(kind.Kind+" "+reference.Field+" "+sourceKind, func(t *testing.T) {
					t.Parallel()
					checkLink(t, kind, reference, reconciler.KindNamed(sourceKind))
				})
			}
		}
	}
}

func checkLink(t *testing.T, kind *reconciler.ObjectKind, reference reconciler.Reference, sourceKind *reconciler.ObjectKind) {
	t.Helper()
	const source = "src"
	consumer := readyObject(kind, "web", reference, sourceKind.Kind, source)
	listed := []*unstructured.Unstructured{consumer, readyObject(sourceKind, source, reconciler.Reference{}, "", "")}
	switch { // completes the chain
	case kind.Kind == "HelmChart":
		release := reconciler.KindNamed("HelmRelease")
		listed = append([]*unstructured.Unstructured{readyObject(release, "web", release.Sources[1], "HelmChart", "web")}, listed...)
	case kind.Kind == "GitRepository":
		consumer := reconciler.KindNamed("Kustomization")
		listed = append([]*unstructured.Unstructured{readyObject(consumer, "web", consumer.Sources[0], "GitRepository", "web")}, listed...)
	case sourceKind.Kind == "HelmChart":
		listed[1] = readyObject(sourceKind, source, sourceKind.Sources[0], "HelmRepository", "index")
		listed = append(listed, readyObject(reconciler.KindNamed("HelmRepository"), "index", reconciler.Reference{}, "", ""))
	}
	at := slices.IndexFunc(listed, func(one *unstructured.Unstructured) bool { return one.GetName() == source })
	checkChange := func(name string, want verdict.Verdict, reason string, change func(one *unstructured.Unstructured) []*unstructured.Unstructured, unlisted map[string]string) {
		t.Helper()
		changed := slices.Clone(listed)
		changed = slices.Replace(changed, at, at+1, change(listed[at].DeepCopy())...)
		if got := judgeListed(t, reconciler.Answer{Objects: changed, Unlisted: unlisted}); got.Verdict != want ||
			!strings.Contains(got.Message, reason) {
			t.Errorf("%s: %s: %s, want %s: %s", name, got.Verdict, got.Message, want, reason)
		}
	}
	type objects = []*unstructured.Unstructured
	checkChange("a complete chain", verdict.Ready, "", func(one *unstructured.Unstructured) objects { return objects{one} }, nil)
	checkChange(
		"an unlisted source",
		verdict.Unknown,
		"Forbidden",
		func(*unstructured.Unstructured) objects { return nil },
		map[string]string{sourceKind.Kind: "Forbidden"},
	)
	checkChange("a missing source", verdict.Progressing, "which does not exist", func(*unstructured.Unstructured) objects { return nil }, nil)
	checkChange("a source with a newer revision", verdict.Progressing, "and its source has newer@sha256:bbbb", func(one *unstructured.Unstructured) objects {
		setField(one, "newer@sha256:bbbb", strings.Split(sourceKind.Gives, ".")...)
		return objects{one}
	}, nil)
	checkChange("a changed source", verdict.Progressing, "was changed", func(one *unstructured.Unstructured) objects {
		one.SetGeneration(2)
		return objects{one}
	}, nil)
	checkChange("a failed source", verdict.Failed, "no such thing", func(one *unstructured.Unstructured) objects {
		setField(
			one,
			[]any{map[string]any{"type": "Ready", "status": "False", "reason": "Failed", "message": "no such thing"}},
			"status",
			"conditions",
		)
		return objects{one}
	}, nil)
	checkChange("a source without an artifact", verdict.Progressing, "has nothing yet", func(one *unstructured.Unstructured) objects {
		unstructured.RemoveNestedField(one.Object, "status", "artifact")
		return objects{one}
	}, nil)
}

func TestUnlistedChildObjectsMakeAnObjectUnknown(t *testing.T) {
	t.Parallel()
	makers := 0
	for _, kind := range reconciler.Kinds() {
		for _, child := range kind.Makes {
			makers++
			documents, unlisted := map[string]string{"GitRepo": readyRepo, "HelmOp": readyHelmOp, "Bundle": readyRepo, "ApplicationSet": hubSet, "RootSync": readySync, "RepoSync": readyRepoSync}[kind.Kind], reconciler.Answer{}
			for _, one := range parseObjects(t, strings.TrimSpace(documents)) {
				if one.GetKind() != child {
					unlisted.Objects = append(unlisted.Objects, one)
				}
			}
			unlisted.Unlisted = map[string]string{child: "Forbidden"}
			if got := judgeListed(t, unlisted); got.Verdict != verdict.Unknown || !strings.Contains(got.Message, "cannot be read: Forbidden") {
				t.Errorf("%s without %s is %s: %s", kind.Kind, child, got.Verdict, got.Message)
			}
		}
	}
	if makers < 6 {
		t.Errorf("got %d kinds that create other objects, want at least 6", makers)
	}
	application := replaceOnce(
		t,
		readyApplication,
		"name: web,",
		"name: web, ownerReferences: [{apiVersion: argoproj.io/v1alpha1, kind: ApplicationSet, name: web, uid: x}],",
	)
	got := judgeListed(
		t,
		reconciler.Answer{Objects: parseObjects(t, application[1:]), Unlisted: map[string]string{"ApplicationSet": "Forbidden"}},
	)
	if got.Verdict != verdict.Unknown ||
		got.Message != "Application argocd/web depends on ApplicationSet argocd/web, which cannot be read: Forbidden" {
		t.Errorf("%s: %s", got.Verdict, got.Message)
	}
}

// readyObject returns a ready object at the revision of its source.
func readyObject(kind *reconciler.ObjectKind, name string, reference reconciler.Reference, sourceKind, source string) *unstructured.Unstructured {
	const revision = "v1@sha256:aaaa"
	version, _, _ := strings.Cut(kind.Versions, ",")
	one := &unstructured.Unstructured{Object: map[string]any{"apiVersion": kind.Group + "/" + version, "kind": kind.Kind}}
	one.SetNamespace("flux-system")
	one.SetName(name)
	one.SetGeneration(1)
	setField(one, true, "spec", "wait")
	setField(one, int64(1), "status", "observedGeneration")
	setField(one, []any{map[string]any{"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-21T20:00:00Z"}}, "status", "conditions")
	if reference.Field != "" {
		ref := any(map[string]any{"kind": sourceKind, "name": source})
		if strings.HasPrefix(reference.Field, "status.") {
			ref = "flux-system/" + source
		}
		setField(one, ref, strings.Split(reference.Field, ".")...)
		setField(one, revision, strings.Split(kind.Has[0], ".")...)
	}
	if kind.Gives != "" {
		setField(one, revision, strings.Split(kind.Gives, ".")...)
	}
	return one
}

// setField sets a field. A step that ends with "[]" is a list with one element.
func setField(one *unstructured.Unstructured, value any, path ...string) {
	for i := len(path) - 1; i >= 0; i-- {
		if list, isList := strings.CutSuffix(path[i], "[]"); isList {
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
