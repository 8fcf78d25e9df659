package objects_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
)

func TestSecretsAreShownWithoutValues(t *testing.T) {
	t.Parallel()
	secret := objects.FinalObject{Kind: "Secret", Name: "a", YAML: []byte(
		"apiVersion: v1\ndata: {password: Y2FuYXJ5}\nkind: Secret\nmetadata:\n  annotations: {last: canary}\n  name: a\nstringData: {token: canary}\n",
	)}
	text, images, err := secret.Shown()
	if err != nil || len(images) > 0 || strings.Contains(text, "canary") || strings.Contains(text, "Y2FuYXJ5") {
		t.Errorf("got\n%s%v %v", text, images, err)
	}
	for _, want := range []string{"password: (hidden)", "token: (hidden)", "last: (hidden)", "name: a"} {
		if !strings.Contains(text, want) {
			t.Errorf("got\n%s, want %q in it", text, want)
		}
	}
}

func TestShownSecretsMarkChangedValues(t *testing.T) {
	t.Parallel()
	secret := func(values string) *objects.FinalObject {
		return &objects.FinalObject{Kind: "Secret", Name: "a", YAML: []byte("kind: Secret\nstringData: {" + values + "}\n")}
	}
	text, err := secret("stays: canary, changed: canary-2, new: canary").ShownAfter(secret("stays: canary, changed: canary-1, gone: canary"))
	if want := "kind: Secret\nstringData:\n  changed: (hidden, changed)\n  new: (hidden)\n  stays: (hidden)\n"; err != nil || text != want {
		t.Errorf("got\n%s%v, want\n%s", text, err, want)
	}
}

func TestShownImagesIncludeAllContainers(t *testing.T) {
	t.Parallel()
	job := objects.FinalObject{Group: "batch", Kind: "CronJob", YAML: []byte(`kind: CronJob
spec: {jobTemplate: {spec: {template: {spec: {initContainers: [{image: "init:1"}], containers: [{image: "b:1"}, {image: "a@sha256:01"}, {image: "b:1"}, {name: none}]}}}}}
`)}
	text, images, err := job.Shown()
	if err != nil || text != string(job.YAML) || !slices.Equal(images, []string{"a@sha256:01", "b:1", "init:1"}) {
		t.Errorf("got images %q, %v", images, err)
	}
}

// Any object with items is a list, as for kubectl and the reconcilers. The kind of the list defines the kind of its elements.
func TestObjectsWithItemsAreLists(t *testing.T) {
	t.Parallel()
	pod, named := map[string]any{"spec": "a"}, map[string]any{"apiVersion": "v1", "kind": "Secret"}
	for kind, want := range map[string]string{
		"List":      "[map[apiVersion:v1 kind: spec:a] map[apiVersion:v1 kind:Secret]]",
		"PodList":   "[map[apiVersion:v1 kind:Pod spec:a] map[apiVersion:v1 kind:Secret]]",
		"ConfigMap": "[map[apiVersion:v1 kind:ConfigMap spec:a] map[apiVersion:v1 kind:Secret]]",
	} {
		items, isList := objects.Items(map[string]any{"apiVersion": "v1", "kind": kind, "items": []any{pod, named}})
		if got := fmt.Sprint(items); !isList || got != want {
			t.Errorf("%s: got %s, want %s", kind, got, want)
		}
	}
	if _, isList := objects.Items(map[string]any{"kind": "List", "items": "a"}); isList {
		t.Error("text items make a list")
	}
}
