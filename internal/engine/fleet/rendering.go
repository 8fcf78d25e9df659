package fleet

import (
	"cmp"
	"slices"
)

// Degrees of rendering.
const (
	RenderPointers = "pointers"
	RenderPreview  = "preview"
	RenderObjects  = "objects"
)

// Renderings is in order of strength.
var Renderings = []string{RenderPointers, RenderPreview, RenderObjects}

var weakerRenderings = Renderings[:len(Renderings)-1]

// WeakensRendering reports less rendering than the cluster type demands and the workspace allows.
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

// readAside reports whether all values were known, without marking the object.
func readAside(o *ObjectReader, read func()) (known bool) {
	unknown := o.unknown
	o.unknown = false
	read()
	known = !o.unknown
	o.unknown = unknown
	return known
}
