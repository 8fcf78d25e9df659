// Package objects defines rendering requests and their results: the objects that reconcilers make from manifests.
// Package renderer implements it and links Helm and kustomize.
package objects

import (
	"context"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
)

// Request describes one rendering. At least one of Helm, Kustomize and Directory is set. If several are, the folder decides as
// in Argo CD: chart, else kustomization, else plain manifests. Package reconciler translates its objects into requests.
type Request struct {
	Artifact artifact.Artifact
	// Path is the chart or folder in the artifact; "" for the root, and for charts from a chart repository or registry.
	Path string
	// Source selects the files that Flux archives from the artifact; nil selects all files.
	Source *FluxSource
	// Overrides match files (path.Match) that override the agent's object. Such a file is an error.
	Overrides []string
	Helm      *Helm
	Kustomize *Kustomize
	Directory *Directory
	// Hooks lists the hooks that the agent runs; nil if it applies hooks like other objects.
	Hooks *Hooks
	// Substitute has the values of Flux variables, which replace ${name} in the objects; nil replaces nothing.
	Substitute map[string]string
	// Namespace is the default namespace of namespaced objects.
	Namespace         string
	KubernetesVersion string   // of the clusters, "1.34" or "v1.34.2"; "" for the default of Helm's library
	APIVersions       []string // non-Kubernetes APIs of the clusters, "<group>/<version>" or "<group>/<version>/<kind>", sorted
}

// FluxSource describes how Flux archives an artifact: without links and files excluded by .sourceignore files, by Ignore or, if
// there are no patterns, by defaults.
type FluxSource struct {
	Ignore string // patterns in the syntax of .sourceignore; they apply after the files
}

// HelmHook names the annotation that marks Helm hooks.
const HelmHook = "helm.sh/hook"

// Hooks lists the hooks that an agent runs. The agent skips objects whose annotations name only other hooks.
type Hooks struct {
	Helm []string // events in the annotation HelmHook
	// Own is the annotation of the agent's own hooks, which override Helm hooks; "" for none. OwnEvents are its values.
	Own       string
	OwnEvents []string
	OwnSkip   string // the value of Own that makes the agent skip an object
}

// LeaveOut reports whether the agent skips an object with these annotations.
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
	case isOwn || isHelm && !slices.Equal(helm, []string{"crd-install"}): // Helm 2 marks CRDs with crd-install
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

// Helm configures the rendering of a chart, which follows `helm template`.
type Helm struct {
	// OnCluster is set if the agent installs and upgrades a release instead of applying `helm template`. The chart is then rendered
	// as installation and upgrade, and sees only the APIs of the clusters. Otherwise it also sees the APIs of Helm's library.
	OnCluster bool
	// KubernetesVersion replaces the version that the chart sees; "" keeps the version of the clusters.
	KubernetesVersion string
	// APIVersions replaces the APIs of the clusters, sorted; nil keeps them.
	APIVersions []string
	// VersionMetadata is the build metadata that the agent adds to the chart's version; "" keeps the version.
	VersionMetadata string
	ReleaseName     string
	Namespace       string         // of the release
	ValueFiles      []string       // paths in the artifact, relative to the chart; later files win
	Values          map[string]any // override ValueFiles; numbers are json.Number
	Parameters      []Parameter    // override Values, as --set and --set-string
	SkipCRDs        bool           // omits the folder crds
	SkipTests       bool           // omits test hooks
	SkipSchema      bool           // accepts values that the chart's schema refuses
	// IgnoreMissingValueFiles skips missing files of ValueFiles.
	IgnoreMissingValueFiles bool
	// After post-renders the chart's output; nil for none.
	After *Kustomize
}

// Parameter sets one value of a chart. Name is a path in the syntax of Helm's --set.
type Parameter struct {
	Name, Value string
	IsText      bool // --set-string
}

// Kustomize configures a `kustomize build`. Its settings extend the kustomization.
type Kustomize struct {
	// Generate makes a missing kustomization from all manifests in and below the folder, as Flux does.
	Generate               bool
	NamePrefix, NameSuffix string
	Namespace              string // of all objects; "" keeps theirs
	Images                 []Image
	Patches                []Patch
	Components             []string // paths relative to the folder
	Replicas               []Replicas
	// Labels and Annotations extend the metadata of all objects. CommonLabels and CommonAnnotations also extend selectors and
	// templates, as in kustomize.
	Labels, Annotations             map[string]string
	CommonLabels, CommonAnnotations map[string]string
	LabelsWithoutSelector           bool // keeps CommonLabels out of selectors
	LabelsIncludeTemplates          bool // adds them to templates nevertheless
}

// Image replaces an image, as an entry of kustomize's `images`.
type Image struct{ Name, NewName, NewTag, Digest string }

// Replicas sets the number of replicas, as an entry of kustomize's `replicas`.
type Replicas struct {
	Name  string
	Count int64
}

// Patch holds a strategic merge patch or a JSON 6902 patch in YAML. Target selects the objects; a strategic merge patch
// without a target names its object.
type Patch struct {
	Patch  string
	Target *PatchTarget
}

// PatchTarget selects objects by regular expressions, as a target in kustomize's `patches`.
type PatchTarget struct {
	Group, Version, Kind, Name, Namespace string
	LabelSelector, AnnotationSelector     string
}

// Directory configures the reading of plain manifests from .yaml, .yml and .json files.
type Directory struct {
	Recurse          bool
	Include, Exclude string // globs in Argo CD's syntax; "" for none
}

// Rendering holds the result of a request.
type Rendering struct {
	// Objects are sorted by group, kind, namespace and name.
	Objects []FinalObject
	// Chart describes the chart; nil if the request rendered none.
	Chart *Chart
	// MissingAPIs lists APIs that the chart asked for but neither Kubernetes nor the request has, sorted. On clusters with such an
	// API, the chart may render other objects.
	MissingAPIs []string
	// RemoteSchemas lists addresses in schemas of the chart and its dependencies. Rendering loads none, so it accepts values that
	// the agent may refuse.
	RemoteSchemas []RemoteSchema
	// Violations lists parts that violate a schema of Kubernetes or of a CRD among the objects.
	Violations []SchemaViolation
	// Undefined lists indices of objects whose kind neither Kubernetes nor a CRD among the objects defines.
	Undefined []int
}

// SchemaViolation is a part of an object that a cluster refuses or drops.
type SchemaViolation struct {
	Object  int    // index into Rendering.Objects
	Message string // names the part and the schema, without the value
	// IsUnknown is set if the schema lacks the field. IsNewer is set if the clusters are newer than the schema and may have it.
	IsUnknown, IsNewer bool
}

// RemoteSchema is an address in the schema of a chart.
type RemoteSchema struct{ Chart, URL string }

// Chart identifies a chart by the fields of its Chart.yaml.
type Chart struct{ Name, Version, AppVersion string }

// FinalObject is one rendered object.
type FinalObject struct {
	Group, Version, Kind, Namespace, Name string
	From                                  Origin
	Hook                                  string // Helm hook, such as "pre-install,pre-upgrade", or "test"; "" for none
	// On is [OnInstall] or [OnUpgrade] if the chart renders the object, or this form of it, only then; otherwise "".
	On Occasion
	// IsCRD is set for objects in a chart's folder crds, which Helm creates before all others.
	IsCRD bool
	// YAML is the object with sorted fields, without a separator, ending in a newline.
	YAML []byte
}

// Occasion tells installations from upgrades of a chart.
type Occasion string

// The occasions on which Helm renders a chart for a cluster.
const (
	OnInstall Occasion = "install"
	OnUpgrade Occasion = "upgrade"
)

// Origin names the source of an object.
type Origin string

// The origins.
const (
	FromChart         Origin = "chart"
	FromKustomization Origin = "kustomization"
	FromManifest      Origin = "manifest"
	FromFlotilla      Origin = "flotilla" // written by Flotilla itself
)

// Renderer renders requests, equal requests only once. It is safe for concurrent use. Its errors name the artifact and, if
// known, the file and the function.
type Renderer interface {
	Render(ctx context.Context, request *Request) (*Rendering, error)
}
