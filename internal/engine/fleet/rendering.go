package fleet

import (
	"cmp"
	"slices"
)

const (
	RenderPointers = "pointers" // reconciler objects point to the manifests
	RenderPreview  = "preview"  // also rendered at plan for rules
	RenderObjects  = "objects"  // folders have the final objects
)

// Renderings is in order of strength.
var Renderings = []string{RenderPointers, RenderPreview, RenderObjects}

var weakerRenderings = Renderings[:len(Renderings)-1]

// WeakensRendering reports whether a deployment target is rendered less than its cluster type demands and its workspace
// allows.
func WeakensRendering(clusterType *ClusterType, target *DeploymentTarget, workspace *Workspace) bool {
	strength := func(render string) int { return slices.Index(Renderings, render) }
	demanded := cmp.Or(clusterType.Render, RenderPointers)
	least := min(strength(demanded), strength(cmp.Or(workspace.LeastRender, demanded)))
	return strength(RenderingOf(clusterType, target)) < least
}

// RenderingOf prefers the deployment target's own rendering.
func RenderingOf(clusterType *ClusterType, target *DeploymentTarget) string {
	return cmp.Or(target.Manifests.Render, clusterType.Render, RenderPointers)
}

// readAside does not mark the object as unknown, and reports whether all values were known.
func readAside(o *ObjectReader, read func()) (known bool) {
	unknown := o.unknown
	o.unknown = false
	read()
	known = !o.unknown
	o.unknown = unknown
	return known
}
