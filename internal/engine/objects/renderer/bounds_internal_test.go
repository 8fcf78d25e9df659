package renderer

import (
	"archive/tar"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/diskcache"
)

func TestOutputOfManyFilesIsBounded(t *testing.T) {
	t.Parallel()
	const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	const asJSON = len(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`)
	for left, want := range map[int]error{0: errOutput, len(object) - 1: errOutput, asJSON - 1: errOutput, asJSON: nil} {
		all := collector{size: maxOutput - left}
		if err := all.add([]byte(object), "a.yaml", "", objects.Origin("")); !errors.Is(err, want) {
			t.Errorf("%d bytes before the bound: got error %v, want %v", left, err, want)
		}
	}
}

func TestFilesOfAnArtifactAreBounded(t *testing.T) {
	t.Parallel()
	cache := diskcache.New(filepath.Join(t.TempDir(), "cache"), diskcache.DefaultMaxSize)
	archive, err := cache.Write(diskcache.Artifacts, "a", func(to io.Writer) error {
		writer := tar.NewWriter(to)
		if err := writer.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "a", Size: 1, Mode: 0o644}); err != nil {
			return err
		}
		if _, err := writer.Write([]byte("x")); err != nil {
			return err
		}
		// Reading ends at this header.
		return writer.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "b", Size: maxTreeBytes, Mode: 0o644})
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := readTree(archive); err == nil || !strings.Contains(err.Error(), "its files have more than 128 MiB") {
		t.Errorf("got error %v", err)
	}
}
