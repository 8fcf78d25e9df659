package fleet

import (
	"cmp"
	"slices"
)

// Degrees of rendering.
const (
	RenderPointers = "pointers" // reconciler objects point to the manifests
	RenderPreview  = "preview"  // as pointers, and rendered at plan for rules
	RenderObjects  = "objects"  // folders have the rendered objects
)

// Renderings lists the values of render, the weakest first.
var Renderings = []string{RenderPointers, RenderPreview, RenderObjects}

var weakerRenderings = Renderings[:len(Renderings)-1]

// WeakensRendering reports whether a deployment target chooses a rendering that is weaker than its cluster type's and
// that its workspace does not allow.
func WeakensRendering(clusterType *ClusterType, target *DeploymentTarget, workspace *Workspace) bool {
	strength := func(render string) int { return slices.Index(Renderings, render) }
	demanded := cmp.Or(clusterType.Render, RenderPointers)
	least := min(strength(demanded), strength(cmp.Or(workspace.LeastRender, demanded)))
	return strength(RenderingOf(clusterType, target)) < least
}

// RenderingOf returns the rendering of a deployment target on a cluster type. The deployment target's own wins.
func RenderingOf(clusterType *ClusterType, target *DeploymentTarget) string {
	return cmp.Or(target.Manifests.Render, clusterType.Render, RenderPointers)
}

// readAside calls read without marking the object as unknown, and reports whether all values were known.
func readAside(o *ObjectReader, read func()) (known bool) {
	unknown := o.unknown
	o.unknown = false
	read()
	known = !o.unknown
	o.unknown = unknown
	return known
}
