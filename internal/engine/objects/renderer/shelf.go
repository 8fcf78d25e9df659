package renderer

import (
	"path"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
)

// maxShelfBytes bounds the cached artifacts of a worker.
const maxShelfBytes = 64 << 20

// artifactCache spares reading artifacts and parsing charts again.
type artifactCache struct {
	artifacts lastUsed[*artifactFiles] // by artifact key
	repeated  *parseCache
}

type artifactFiles struct {
	tree   *tree
	charts map[string]*loadedChart // by folder
	// byFlux has the files of each Flux source.
	byFlux map[objects.FluxSource]*artifactFiles
}

func newArtifactCache() *artifactCache {
	return &artifactCache{artifacts: lastUsed[*artifactFiles]{most: maxShelfBytes}, repeated: newParseCache()}
}

func (s *artifactCache) load(key, archive string) (*artifactFiles, error) {
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
