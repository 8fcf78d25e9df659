package renderer

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
)

func TestManifestsAreReadAsByHelm(t *testing.T) {
	const object = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n"
	annotated := func(annotations string) string { return object + "  annotations: " + annotations + "\n" }
	for _, text := range []string{
		object, object + "---\n# nothing\n---\n" + object, "# a\n---\n\n", "{}", "null", "hello", "- a", "a: [", "a: b\n c", "%",
		annotated("{}"), annotated("{a: b, c: 1, d: true, e: null}"), annotated("[a]"), annotated("{a: {b: c}}"), annotated("text"), "metadata: text", "metadata: null\nkind: 5",
		annotated("{helm.sh/hook: test}"), annotated("{helm.sh/hook: 'test-success, pre-install'}"), annotated("{helm.sh/hook: ' Pre-Install,POST-upgrade'}"),
		annotated("{helm.sh/hook: other}"), annotated("{helm.sh/hook: ''}"), annotated("{helm.sh/hook: null}"), annotated("{helm.sh/hook: true}"), annotated("{helm.sh/hook: [test]}"),
		annotated("{helm.sh/hook: pre-delete, a: 1}"), annotated("{'helm\\u002esh/hook': test}"), annotated(`{"helm\u002esh/hook": test}`),
		object + "---\n" + annotated("{helm.sh/hook: test}") + "--- " + annotated("{helm.sh/hook: x}") + "---\n" + annotated("{helm.sh/hook: post-install}"),
	} {
		files := map[string]string{"a.yaml": text, "_b.yaml": text}
		var want, got []string
		hooks, others, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
		for _, m := range others {
			want = append(want, m.Content)
		}
		for _, h := range hooks {
			want = append(want, strings.ReplaceAll(hookNames(h), "test,pre-install", "test")+" "+h.Manifest)
		}
		manifests, gotErr := readManifests(files, false)
		if fmt.Sprint(gotErr) != fmt.Sprint(err) {
			t.Errorf("%q: got error %v, Helm has %v", text, gotErr, err)
		}
		for _, m := range manifests {
			got = append(got, strings.TrimPrefix(m.hook+" "+m.text, " "))
		}
		slices.Sort(want) // Helm sorts by kinds
		slices.Sort(got)
		if err == nil && fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
			t.Errorf("%q: got %q, Helm has %q", text, got, want)
		}
	}
}
