package fleet

import (
	"cmp"
	"slices"
)

// How far what manifests point to is rendered.
const (
	RenderPointers = "pointers" // not at all: the reconciler's objects point to it
	RenderPreview  = "preview"  // at plan, to be seen and for rules; folders have what points to it
	RenderObjects  = "objects"  // at plan; folders have what comes of it
)

// Renderings are what the attribute "render" can be, the weakest first.
var Renderings = []string{RenderPointers, RenderPreview, RenderObjects}

// weakerRenderings are all but the strongest of [Renderings].
var weakerRenderings = Renderings[:len(Renderings)-1]

// WeakensRendering reports whether a deployment target of a workspace has a weaker `render` than a cluster type, and the
// workspace does not allow it.
func WeakensRendering(clusterType *ClusterType, target *DeploymentTarget, workspace *Workspace) bool {
	strength := func(render string) int { return slices.Index(Renderings, render) }
	demanded := cmp.Or(clusterType.Render, RenderPointers)
	least := min(strength(demanded), strength(cmp.Or(workspace.LeastRender, demanded)))
	return strength(RenderingOf(clusterType, target)) < least
}

// RenderingOf returns how far the manifests of a deployment target are rendered for hosts of a cluster type: one of
// [Renderings]. What the deployment target says wins.
func RenderingOf(clusterType *ClusterType, target *DeploymentTarget) string {
	return cmp.Or(target.Manifests.Render, clusterType.Render, RenderPointers)
}

// readTargetRendering reads the attribute "render" of a deployment target. An unknown value makes only the target's entry of
// manifests unknown.
func readTargetRendering(o *ObjectReader, target *DeploymentTarget) {
	readBesideManifests(o, target, func() { target.Manifests.Render = readOneOfOrNone(o, "render") })
}

// readBesideManifests reads an attribute of a deployment target that decides only what is in a folder, as its manifests do.
func readBesideManifests(o *ObjectReader, target *DeploymentTarget, read func()) {
	if known := readAside(o, read); !known || target.ManifestsPending {
		target.ManifestsPending, target.Manifests = true, Manifests{}
	}
}

// readAside reads what makes nothing else unknown. known is false while anything of it is unknown.
func readAside(o *ObjectReader, read func()) (known bool) {
	unknown := o.unknown
	o.unknown = false
	read()
	known = !o.unknown
	o.unknown = unknown
	return known
}
