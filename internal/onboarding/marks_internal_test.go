package onboarding

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func objectOf(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{}}
	if err := json.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestDifferencesNameFieldsAndNoServersOwn(t *testing.T) {
	before := objectOf(t, `{"metadata":{"name":"a","resourceVersion":"1","annotations":{"flotilla.dev/made-on":"x"}},"spec":{"a":1,"list":[{"b":"c"},2],"gone":{"x":1}},"status":{"x":1}}`)
	after := objectOf(t, `{"metadata":{"name":"a","resourceVersion":"2","labels":{"l":"m"}},"spec":{"a":2,"list":[{"b":"d"},2],"short":[1]}}`)
	if got, want := strings.Join(Differences(before, after), " "), "metadata.labels spec.a spec.gone spec.list[0].b spec.short"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := Differences(before, before.DeepCopy()); got != nil {
		t.Errorf("an object differs from itself: %v", got)
	}
}

func TestAMarkToStayLeavesOtherOptionsAsTheyAre(t *testing.T) {
	for annotations, want := range map[string]string{
		`{}`: "Prune=false,Delete=false",
		`{"argocd.argoproj.io/sync-options":"ServerSideApply=true, Delete=false"}`: "ServerSideApply=true,Delete=false,Prune=false",
	} {
		live := objectOf(t, `{"kind":"Namespace","metadata":{"annotations":`+annotations+`}}`)
		if keptByFlux(live) {
			t.Errorf("%s is a mark for Flux", annotations)
		}
		patch := &unstructured.Unstructured{Object: keepPatch(live)}
		if got := patch.GetAnnotations()["argocd.argoproj.io/sync-options"]; got != want || !keptByFlux(patch) || !keptByArgo(patch) {
			t.Errorf("%s becomes %v", annotations, patch.GetAnnotations())
		}
	}
}
