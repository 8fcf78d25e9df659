// Package objects is what is asked of rendering, and what it gives: final objects of what manifests point to, as
// reconcilers make them. Package renderer does it, which links Helm and kustomize.
package objects

import (
	"context"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
)

// Request describes one rendering. Of Helm, Kustomize and Directory one at least is set. Of several, the first is
// used that the folder is made for, as Argo CD finds out: a chart, a folder with a kustomization, any folder. What a
// reconciler's own objects say is brought into this form by the reconciler: see package reconciler.
type Request struct {
	Artifact artifact.Artifact
	// Path is that of the chart, or of the folder, in the artifact; "" is its root. A chart of a chart repository or a
	// registry is at "".
	Path string
	// Source is how Flux archives the files of the artifact; nil: they are rendered as they are.
	Source *FluxSource
	// Overrides are patterns of path.Match for names of files in the folder by which an agent renders something else than its own
	// object says. Such a file is an error.
	Overrides []string
	Helm      *Helm
	Kustomize *Kustomize
	Directory *Directory
	// Hooks are the hooks that the agent runs; nil if it applies hooks like other objects.
	Hooks *Hooks
	// Substitute are Flux' variables, which replace ${name} in the objects; nil: nothing is replaced.
	Substitute map[string]string
	// Namespace is that which objects of namespaces get when they are applied without one.
	Namespace         string
	KubernetesVersion string   // of the clusters, "1.34" or "v1.34.2"; "" is that of Helm's library
	APIVersions       []string // of the clusters beside those of Kubernetes, "<group>/<version>" or "<group>/<version>/<kind>", sorted
}

// FluxSource is how a source of Flux archives an artifact: without links, and without files that patterns exclude. These are
// in .sourceignore files of the artifact; Flux has defaults.
type FluxSource struct {
	Ignore string // patterns after those of the files, as a .sourceignore file has them
}

// HelmHook is the annotation of Helm's hooks.
const HelmHook = "helm.sh/hook"

// Hooks lists the hooks that an agent runs. The agent leaves out objects whose annotations name other hooks only.
type Hooks struct {
	Helm []string // events in the annotation HelmHook
	// Own is the annotation of the agent's own hooks, which override those of Helm; "" for none. OwnEvents are its values.
	Own       string
	OwnEvents []string
	OwnSkip   string // the value of Own with which the agent leaves out an object
}

// LeaveOut reports whether the agent does not apply an object with these annotations.
func (h *Hooks) LeaveOut(annotations map[string]any) bool {
	if h == nil {
		return false
	}
	own, isOwn := eventsIn(annotations, h.Own)
	helm, isHelm := eventsIn(annotations, HelmHook)
	switch {
	case isOwn && containsAny(own, h.OwnEvents):
		return false
	case isOwn && slices.Contains(own, h.OwnSkip):
		return true
	case isOwn || isHelm && !slices.Equal(helm, []string{"crd-install"}): // which marks definitions of kinds for Helm 2
		return !containsAny(helm, h.Helm)
	}
	return false
}

func eventsIn(annotations map[string]any, name string) (events []string, has bool) {
	value, has := annotations[name]
	text, _ := value.(string)
	for event := range strings.SplitSeq(text, ",") {
		if event = strings.TrimSpace(event); event != "" {
			events = append(events, event)
		}
	}
	return events, has && name != ""
}

func containsAny(all, wanted []string) bool {
	return slices.ContainsFunc(all, func(one string) bool { return slices.Contains(wanted, one) })
}

// Helm is how a chart is rendered: as `helm template` does.
type Helm struct {
	// OnCluster says that the agent installs and upgrades a release, in place of applying what `helm template` renders. The chart
	// is then rendered as installed and as upgraded, and sees the APIs of the clusters alone. Others see those of Helm's library, too.
	OnCluster bool
	// KubernetesVersion replaces the version that the chart sees; "" leaves that of the clusters.
	KubernetesVersion string
	// APIVersions replace the APIs of the clusters, sorted; nil leaves them.
	APIVersions []string
	// VersionMetadata is the build metadata that the agent gives the version of the chart; "" leaves the version.
	VersionMetadata string
	ReleaseName     string
	Namespace       string         // of the release
	ValueFiles      []string       // paths in the artifact, relative to the chart; the later wins
	Values          map[string]any // over the files'; numbers are json.Number
	Parameters      []Parameter    // over Values, as --set and --set-string
	SkipCRDs        bool           // leaves out the folder crds
	SkipTests       bool           // leaves out hooks that are tests
	SkipSchema      bool           // accepts values that the chart's schema refuses
	// IgnoreMissingValueFiles passes over files of ValueFiles that are not there.
	IgnoreMissingValueFiles bool
	// After is applied to what the chart renders, as a post-renderer; nil: nothing is.
	After *Kustomize
}

// Parameter is one value of a chart, by its path in Helm's syntax of --set.
type Parameter struct {
	Name, Value string
	IsText      bool // --set-string
}

// Kustomize is how a folder is built: as `kustomize build` does, with what is here added to its kustomization.
type Kustomize struct {
	// Generate makes a kustomization of all manifests in the folder and below, as Flux does, where the folder has none.
	Generate               bool
	NamePrefix, NameSuffix string
	Namespace              string // of all objects; "" leaves them
	Images                 []Image
	Patches                []Patch
	Components             []string // paths relative to the folder
	Replicas               []Replicas
	// Labels and Annotations are added to the metadata of all objects. Common ones are added to selectors and templates,
	// too, as kustomize's commonLabels and commonAnnotations are.
	Labels, Annotations             map[string]string
	CommonLabels, CommonAnnotations map[string]string
	LabelsWithoutSelector           bool // CommonLabels leave selectors as they are
	LabelsIncludeTemplates          bool // and yet are added to templates
}

// Image replaces an image, as kustomize's `images` do.
type Image struct{ Name, NewName, NewTag, Digest string }

// Replicas sets the number of replicas, as kustomize's `replicas` do.
type Replicas struct {
	Name  string
	Count int64
}

// Patch is a strategic merge patch or a JSON 6902 patch in YAML. The target chooses the objects; without one, a strategic
// merge patch names its object itself.
type Patch struct {
	Patch  string
	Target *PatchTarget
}

// PatchTarget selects objects, as the target of kustomize's `patches` does; its texts are regular expressions.
type PatchTarget struct {
	Group, Version, Kind, Name, Namespace string
	LabelSelector, AnnotationSelector     string
}

// Directory is how plain manifests are taken: those in files that end in .yaml, .yml and .json.
type Directory struct {
	Recurse          bool
	Include, Exclude string // globs, as Argo CD has them; "" for none
}

// Rendering is the outcome of a request.
type Rendering struct {
	// Objects are sorted by group, kind, namespace and name.
	Objects []FinalObject
	// Chart is the chart that they are of; nil where they are of none.
	Chart *Chart
	// MissingAPIs are the APIs that the chart asked for and that neither Kubernetes nor the request has, sorted. If the clusters have
	// one of them, the chart may render something else there.
	MissingAPIs []string
	// RemoteSchemas are the addresses to which schemas of the chart and of its dependencies refer. Rendering reads none of them, so it
	// accepts values that the agent may refuse.
	RemoteSchemas []RemoteSchema
	// Violations are the parts of objects that the schemas of Kubernetes, or of definitions among the objects, do not allow.
	Violations []SchemaViolation
	// Undefined are the numbers of objects of other kinds.
	Undefined []int
}

// SchemaViolation is a part of an object that a cluster refuses, or drops.
type SchemaViolation struct {
	Object  int    // number among the objects
	Message string // names the part and the schema, without the value
	// IsUnknown says that the schema has no such field, and IsNewer that the clusters are newer than the schema and may have it.
	IsUnknown, IsNewer bool
}

// RemoteSchema is an address to which the schema of a chart refers.
type RemoteSchema struct{ Chart, URL string }

// Chart is what a chart says of itself.
type Chart struct{ Name, Version, AppVersion string }

// FinalObject is one rendered object.
type FinalObject struct {
	Group, Version, Kind, Namespace, Name string
	From                                  Origin
	Hook                                  string // "pre-install,pre-upgrade" of Helm's hooks, "test" for tests; "" for none
	// On is [OnInstall] or [OnUpgrade] of an object that a chart renders in this way only then; "" of all others.
	On Occasion
	// IsCRD says that it is in a chart's folder crds, so that Helm creates it before all others.
	IsCRD bool
	// YAML is the object with its fields sorted, without a separator, ending in a newline.
	YAML []byte
}

// Occasion is when a chart renders an object.
type Occasion string

// The occasions on which Helm renders a chart for a cluster.
const (
	OnInstall Occasion = "install"
	OnUpgrade Occasion = "upgrade"
)

// Origin is what made an object.
type Origin string

// The origins.
const (
	FromChart         Origin = "chart"
	FromKustomization Origin = "kustomization"
	FromManifest      Origin = "manifest"
	FromFlotilla      Origin = "flotilla" // what Flotilla itself writes into folders
)

// Renderer renders requests. Equal requests are rendered once. It may be called from several goroutines. Its errors name
// the artifact, and where they can the file and the function.
type Renderer interface {
	Render(ctx context.Context, request *Request) (*Rendering, error)
}
