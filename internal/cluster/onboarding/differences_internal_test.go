package onboarding

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func parseObject(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{}}
	if err := json.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestDifferencesSkipServerFields(t *testing.T) {
	before := parseObject(
		t,
		`{"metadata":{"name":"a","resourceVersion":"1","annotations":{"flotilla.dev/made-on":"x"}},"spec":{"a":1,"list":[{"b":"c"},2],"gone":{"x":1}},"status":{"x":1}}`,
	)
	after := parseObject(t, `{"metadata":{"name":"a","resourceVersion":"2","labels":{"l":"m"}},"spec":{"a":2,"list":[{"b":"d"},2],"short":[1]}}`)
	if got, want := strings.Join(Differences(before, after), " "), "metadata.labels spec.a spec.gone spec.list[0].b spec.short"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := Differences(before, before.DeepCopy()); got != nil {
		t.Errorf("got differences of an object from itself: %v", got)
	}
}
