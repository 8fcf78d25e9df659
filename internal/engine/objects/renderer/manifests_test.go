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
	of := func(annotations string) string { return object + "  annotations: " + annotations + "\n" }
	for _, text := range []string{
		object, object + "---\n# nothing\n---\n" + object, "# a\n---\n\n", "{}", "null", "hello", "- a", "a: [", "a: b\n c", "%",
		of("{}"), of("{a: b, c: 1, d: true, e: null}"), of("[a]"), of("{a: {b: c}}"), of("text"), "metadata: text", "metadata: null\nkind: 5",
		of("{helm.sh/hook: test}"), of("{helm.sh/hook: 'test-success, pre-install'}"), of("{helm.sh/hook: ' Pre-Install,POST-upgrade'}"),
		of("{helm.sh/hook: other}"), of("{helm.sh/hook: ''}"), of("{helm.sh/hook: null}"), of("{helm.sh/hook: true}"), of("{helm.sh/hook: [test]}"),
		of("{helm.sh/hook: pre-delete, a: 1}"), of("{'helm\\u002esh/hook': test}"), of(`{"helm\u002esh/hook": test}`),
		object + "---\n" + of("{helm.sh/hook: test}") + "--- " + of("{helm.sh/hook: x}") + "---\n" + of("{helm.sh/hook: post-install}"),
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
			t.Errorf("%q: the error is %v, Helm's %v", text, gotErr, err)
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
