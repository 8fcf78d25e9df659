package renderer_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
)

// chartOfTemplate returns a chart with one template.
func chartOfTemplate(text, want string) hostile {
	return hostile{files: chart(map[string]string{"templates/all.yaml": text}), want: want}
}

// chartOfFiles returns a chart with files beside Chart.yaml.
func chartOfFiles(want string, files map[string]string) hostile {
	return hostile{files: chart(files), want: want}
}

// kustomizationOf returns a folder for kustomize with the bounds of Flux.
func kustomizationOf(want, kustomization string, further map[string]string) hostile {
	files := map[string]string{"apps/kustomization.yaml": kustomization, "secret.yaml": settings}
	for name, content := range further {
		files[name] = content
	}
	return hostile{files: files, request: objects.Request{Kustomize: &objects.Kustomize{Generate: true}}, want: want}
}

func manifestsOf(want string, files map[string]string) hostile {
	return hostile{files: files, request: objects.Request{Directory: &objects.Directory{Recurse: true}}, want: want}
}

// packChart returns an archive with a chart in the folder sub and a file of zeros. `make test` writes only the header of that
// file: reading must end there.
func packChart(t *testing.T, files map[string]string, zeros int64) string {
	t.Helper()
	var buffer bytes.Buffer
	compressed := gzip.NewWriter(&buffer)
	writer := tar.NewWriter(compressed)
	begin := func(name string, size int64) {
		if err := writer.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "sub/" + name, Size: size, Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range files {
		begin(name, int64(len(content)))
		if _, err := writer.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if zeros > 0 {
		begin("zeros", zeros)
		if _, err := writer.Write(make([]byte, acceptancetest.Count(0, int(zeros)))); err != nil {
			t.Fatal(err)
		}
	}
	_, _ = writer.Close(), compressed.Close()
	return buffer.String()
}

func nestedCharts(depth int) map[string]string {
	files := map[string]string{}
	path := ""
	for i := range depth {
		path += fmt.Sprintf("charts/c%d/", i)
		files[path+"Chart.yaml"] = fmt.Sprintf("apiVersion: v2\nname: c%d\nversion: 1.0.0\n", i)
	}
	files[path+"templates/all.yaml"] = `{{ fail "as deep as it can be" }}`
	return files
}

// manyObjects returns a number of objects, each in its own file.
func manyObjects(number int, template string) map[string]string {
	files := map[string]string{}
	for i := range number {
		files[fmt.Sprintf("apps/f%d.yaml", i)] = fmt.Sprintf(template, i)
	}
	return files
}
