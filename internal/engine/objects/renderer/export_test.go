package renderer

import (
	"context"
	"fmt"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
)

// InProcess returns a renderer without worker processes and without a cache. It has no bounds of time and memory.
func InProcess(fetcher artifact.Fetcher) objects.Renderer { return inProcess{fetcher} }

type inProcess struct{ fetcher artifact.Fetcher }

// Render implements Renderer.
func (r inProcess) Render(ctx context.Context, request *objects.Request) (*objects.Rendering, error) {
	archive, err := r.fetcher.Fetch(ctx, request.Artifact)
	if err != nil {
		return nil, err
	}
	result, err := render(ctx, newArtifactCache(), archive, request)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", describe(request), err)
	}
	return result, nil
}
