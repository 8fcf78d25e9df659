package renderer_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects/renderer"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/diskcache"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/objectstest"
)

func pool(t testing.TB, archives *objectstest.Archives, options renderer.PoolOptions) *renderer.Pool {
	t.Helper()
	p := renderer.NewPool(archives, options)
	t.Cleanup(p.Close)
	return p
}

func TestWorkersRenderTheSameAsOneProcess(t *testing.T) {
	archives := objectstest.NewArchives(t)
	artifact := archives.Add(shop, map[string]string{"apps/settings.yaml": settings, "apps/broken/a.yaml": "kind: A\nmetadata: {"})
	p := pool(t, archives, renderer.PoolOptions{})
	for _, request := range []objects.Request{
		{Artifact: artifact, Path: "apps", Namespace: "shop", Directory: &objects.Directory{}},
		{Artifact: artifact, Path: "apps", Kustomize: &objects.Kustomize{Generate: true}},
		{Artifact: artifact, Path: "missing", Directory: &objects.Directory{}},
	} {
		want := outcome(renderer.InProcess(archives).Render(t.Context(), &request))
		if got := outcome(p.Render(t.Context(), &request)); got != want {
			t.Errorf("got:\n%s\nwant:\n%s", got, want)
		}
	}
}

func TestExceededBoundsAreErrorsAndRenderingContinues(t *testing.T) {
	archives := objectstest.NewArchives(t)
	files := chart(map[string]string{"templates/_self.tpl": `{{ define "self" }}{{ template "self" . }}{{ end }}`, "templates/all.yaml": `
{{- if .Values.loops }}{{ range 10000000000 }}{{ end }}{{ end }}
{{- if .Values.allocates }}{{ $kept := repeat 300000000 "x" }}{{ range 10000000000 }}{{ end }}{{ len $kept }}{{ end }}
{{- if .Values.calls }}{{ template "self" . }}{{ end }}
{{- if .Values.large }}{{ range 17 }}
apiVersion: v1
kind: ConfigMap
metadata: {name: large-{{ . }}}
data: {text: {{ repeat 1000000 "x" }}}
---
{{ end }}{{ end }}
` + settings})
	short := pool(t, archives, renderer.PoolOptions{Time: 300 * time.Millisecond, Memory: 256 << 20, Workers: renderer.NewWorkers(1)})
	long := pool(t, archives, renderer.PoolOptions{Time: 30 * time.Second, Memory: 256 << 20, Workers: renderer.NewWorkers(1)})
	render := func(value string) string {
		p := long
		if value == "loops" {
			p = short
		}
		source := shop
		source.Pin.Commit += value // the pool does not retry an artifact that exceeded a bound
		request := objects.Request{
			Artifact: archives.Add(source, files),
			Path:     "chart",
			Helm:     &objects.Helm{ReleaseName: "till", Values: map[string]any{value: true}},
		}
		return outcome(p.Render(t.Context(), &request))
	}
	for value, want := range map[string]string{
		"loops":     `error: folder "chart" of https://git.example.com/shop at 5ca1ab1eloops: it takes more than 300ms to render`,
		"allocates": `error: folder "chart" of https://git.example.com/shop at 5ca1ab1eallocates: it needs more than 256 MiB of memory to render`,
		"large":     `error: folder "chart" of https://git.example.com/shop at 5ca1ab1elarge: it renders more than 16 MiB`,
		"calls":     `exceeded maximum template depth`,
	} {
		if got := render(value); !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %s", value, got, want)
		}
		if got := render("nothing"); !strings.Contains(got, "greeting: hello") {
			t.Errorf("after %s: got %s", value, got)
		}
	}
}

func TestAnArtifactThatExceedsABoundIsNotRetried(t *testing.T) {
	archives := objectstest.NewArchives(t)
	looping := archives.Add(
		shop,
		chart(map[string]string{"templates/all.yaml": "{{ if .Values.loops }}{{ range 100000000000 }}{{ end }}{{ end }}" + settings}),
	)
	other := shop
	other.Pin.Commit = "07e3"
	other = archives.Add(other, chart(map[string]string{"templates/all.yaml": `{{ repeat 2000 "x" | len }}`}))
	p := pool(t, archives, renderer.PoolOptions{Time: 300 * time.Millisecond, Memory: 256 << 20, Workers: renderer.NewWorkers(1)})
	render := func(source artifact.Artifact, values map[string]any) string {
		return outcome(
			p.Render(t.Context(), &objects.Request{Artifact: source, Path: "chart", Helm: &objects.Helm{ReleaseName: "till", Values: values}}),
		)
	}
	const name = `error: folder "chart" of https://git.example.com/shop at `
	for i, want := range []string{"it takes more than 300ms to render", "it was not rendered, since with the values of another assignment it takes more than 300ms to render"} {
		if got := render(looping, map[string]any{"loops": i + 1}); got != name+"5ca1ab1e: "+want {
			t.Errorf("%d: got %s, want %s", i, got, want)
		}
	}
	if got := render(other, nil); strings.Contains(got, "another assignment") {
		t.Errorf("another artifact is refused: %s", got)
	}
	for i := range 100 {
		elsewhere := shop // with the same commit
		elsewhere.Repo = fmt.Sprint("https://git.example.com/evil-", i)
		elsewhere = archives.Add(elsewhere, chart(map[string]string{"templates/all.yaml": settings}))
		got := render(elsewhere, map[string]any{"loops": 1})
		if strings.HasSuffix(got, " it takes more than 300ms to render") {
			continue // on a busy machine
		}
		if !strings.Contains(got, "greeting: hello") {
			t.Errorf("another repository is refused, or rendered from the files of the first: %s", got)
		}
		return
	}
	t.Error("no other repository is rendered in time")
}

func TestEqualRequestsAreRenderedOnce(t *testing.T) {
	archives := objectstest.NewArchives(t)
	artifact := archives.Add(shop, map[string]string{"settings.yaml": settings})
	folder := filepath.Join(t.TempDir(), "cache")
	render := func(p *renderer.Pool) string {
		return outcome(p.Render(t.Context(), &objects.Request{Artifact: artifact, Directory: &objects.Directory{}}))
	}
	p := pool(t, archives, renderer.PoolOptions{Cache: diskcache.New(folder, diskcache.DefaultMaxSize)})
	want := render(p)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if got := render(p); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
	all.Wait()
	if got := render(pool(t, archives, renderer.PoolOptions{Cache: diskcache.New(folder, diskcache.DefaultMaxSize)})); got != want {
		t.Errorf("from disk: got %s, want %s", got, want)
	}
	if got := archives.Fetched[artifact.Key()]; got != 1 {
		t.Errorf("the artifact was fetched %d times, want 1", got)
	}

	// A damaged entry is rendered anew.
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("got the files %v (%v), want one", files, err)
	}
	if err := os.WriteFile(files[0], []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := render(pool(t, archives, renderer.PoolOptions{Cache: diskcache.New(folder, diskcache.DefaultMaxSize)})); got != want {
		t.Errorf("after damage: got %s, want %s", got, want)
	}
	if got := archives.Fetched[artifact.Key()]; got != 2 {
		t.Errorf("the artifact was fetched %d times, want 2", got)
	}
}
