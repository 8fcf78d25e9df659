package renderer

import (
	"path"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
)

// maxShelfBytes bounds the files of the artifacts that a worker keeps for the next requests.
const maxShelfBytes = 64 << 20

// shelf keeps the artifacts that were used last, so that each is read and each of its charts parsed once.
type artifactCache struct {
	artifacts lastUsed[*artifactFiles] // by the keys of artifacts
	repeated  *parseCache
}

type artifactFiles struct {
	tree   *tree
	charts map[string]*loadedChart // by folder
	// ofFlux are the books of the same artifact as sources of Flux archive it.
	byFlux map[objects.FluxSource]*artifactFiles
}

func newArtifactCache() *artifactCache {
	return &artifactCache{artifacts: lastUsed[*artifactFiles]{most: maxShelfBytes}, repeated: newParseCache()}
}

// take returns an artifact, and reads its archive where it is not here.
func (s *artifactCache) take(key, archive string) (*artifactFiles, error) {
	if b, has := s.artifacts.get(key); has {
		return b, nil
	}
	t, err := readTree(archive)
	if err != nil {
		return nil, err
	}
	b := newArtifactFiles(t)
	s.artifacts.keep(key, b, t.size)
	return b, nil
}

func newArtifactFiles(t *tree) *artifactFiles {
	return &artifactFiles{tree: t, charts: map[string]*loadedChart{}, byFlux: map[objects.FluxSource]*artifactFiles{}}
}

// archived returns the artifact as a source of Flux archives it.
func (b *artifactFiles) archivedByFlux(by *objects.FluxSource) (*artifactFiles, error) {
	if known := b.byFlux[*by]; known != nil {
		return known, nil
	}
	t, err := b.tree.archivedByFlux(by)
	if err == nil {
		b.byFlux[*by] = newArtifactFiles(t)
	}
	return b.byFlux[*by], err
}

func (b *artifactFiles) chart(folder string, isPacked bool) (*loadedChart, error) {
	key := folder
	if isPacked {
		key = path.Join("packed", folder)
	}
	if c := b.charts[key]; c != nil {
		return c, nil
	}
	c, err := loadChart(b.tree, folder, isPacked)
	if err == nil {
		b.charts[key] = c
	}
	return c, err
}
