// Package objects defines rendering requests and their results. Package renderer implements [Renderer] with Helm and kustomize.
package objects

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
)

// Request describes one rendering. If several of Helm, Kustomize and Directory are set, the folder decides as in Argo CD:
// chart, else kustomization, else plain manifests.
type Request struct {
	Artifact artifact.Artifact
	// Path is the chart or folder in the artifact; "" for the root.
	Path string
	// Source selects files as Flux does; nil selects all.
	Source *FluxSource
	// Overrides match files (path.Match) that override the agent's object, which is an error.
	Overrides []string
	Helm      *Helm
	Kustomize *Kustomize
	Directory *Directory
	// Hooks is nil if the agent applies hooks like other objects.
	Hooks *Hooks
	// Substitute has Flux variables, which replace ${name}; nil replaces nothing.
	Substitute map[string]string
	// Namespace is the default of namespaced objects.
	Namespace         string
	KubernetesVersion string   // of the clusters, "1.34" or "v1.34.2"; "" for the default of Helm's library
	APIVersions       []string // non-Kubernetes APIs of the clusters, "<group>/<version>" or "<group>/<version>/<kind>", sorted
}

// FluxSource is an archive of Flux: without links, and without files that .sourceignore files, Ignore or defaults exclude.
type FluxSource struct {
	Ignore string // applies after the .sourceignore files
}

// helmHook is the annotation of Helm hooks.
const helmHook = "helm.sh/hook"

// Hooks lists the hooks that an agent runs. It skips objects with only other hooks.
type Hooks struct {
	Helm []string // events in the annotation helmHook
	// Own is the annotation of the agent's own hooks, which override Helm's; "" for none.
	Own       string
	OwnEvents []string
	OwnSkip   string // value of Own that skips an object
}

// LeaveOut reports whether the agent skips an object.
func (h *Hooks) LeaveOut(annotations map[string]any) bool {
	if h == nil {
		return false
	}
	own, isOwn := eventsIn(annotations, h.Own)
	helm, isHelm := eventsIn(annotations, helmHook)
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

// Helm configures `helm template`.
type Helm struct {
	// OnCluster is set if the agent installs and upgrades a release. The chart is then rendered as both, and sees only the
	// APIs of the clusters. Otherwise it also sees the APIs of Helm's library.
	OnCluster bool
	// KubernetesVersion and APIVersions (sorted) override the clusters, if set.
	KubernetesVersion string
	APIVersions       []string
	// VersionMetadata is the build metadata that the agent adds to the chart's version.
	VersionMetadata         string
	ReleaseName             string
	Namespace               string         // of the release
	ValueFiles              []string       // relative to the chart; later files win
	Values                  map[string]any // override ValueFiles; numbers are json.Number
	Parameters              []Parameter    // override Values, as --set and --set-string
	SkipCRDs                bool           // omits the folder crds
	SkipTests               bool           // omits test hooks
	SkipSchema              bool           // accepts values that the chart's schema refuses
	IgnoreMissingValueFiles bool
	// After post-renders the output; nil for none.
	After *Kustomize
}

// Parameter sets one value, with the syntax of --set.
type Parameter struct {
	Name, Value string
	IsText      bool // --set-string
}

// Kustomize extends the kustomization of a `kustomize build`.
type Kustomize struct {
	// Generate makes a missing kustomization, as Flux does.
	Generate               bool
	NamePrefix, NameSuffix string
	Namespace              string // of all objects; "" keeps theirs
	Images                 []Image
	Patches                []Patch
	Components             []string // paths relative to the folder
	Replicas               []Replicas
	// Labels and Annotations extend all metadata. The common ones also extend selectors and templates.
	Labels, Annotations             map[string]string
	CommonLabels, CommonAnnotations map[string]string
	LabelsWithoutSelector           bool // keeps CommonLabels out of selectors
	LabelsIncludeTemplates          bool // adds them to templates nevertheless
}

// Image is an entry of kustomize's `images`.
type Image struct{ Name, NewName, NewTag, Digest string }

// Replicas is an entry of kustomize's `replicas`.
type Replicas struct {
	Name  string
	Count int64
}

// Patch is a strategic merge or JSON 6902 patch in YAML. Only the former may omit Target.
type Patch struct {
	Patch  string
	Target *PatchTarget
}

// PatchTarget selects objects by regular expressions.
type PatchTarget struct {
	Group, Version, Kind, Name, Namespace string
	LabelSelector, AnnotationSelector     string
}

// Directory reads plain manifests.
type Directory struct {
	Recurse          bool
	Include, Exclude string // globs in Argo CD's syntax; "" for none
}

// Rendering is the result of a request.
type Rendering struct {
	// Objects are sorted by identity.
	Objects []FinalObject
	// Chart is nil if the request rendered none.
	Chart *Chart
	// MissingAPIs lists APIs that the chart asked for and that neither Kubernetes nor the request has, sorted. On clusters
	// with one, the chart may render other objects.
	MissingAPIs []string
	// RemoteSchemas lists addresses in schemas of charts. Rendering loads none, so it accepts values that the agent may
	// refuse.
	RemoteSchemas []RemoteSchema
	// Violations lists violations of schemas of Kubernetes and of CRDs among the objects.
	Violations []SchemaViolation
	// Undefined has the indices of objects of other kinds.
	Undefined []int
}

// SchemaViolation is a part of an object that a cluster refuses or drops.
type SchemaViolation struct {
	Object  int    // index into Rendering.Objects
	Message string // without the value
	// IsUnknown: the schema lacks the field. IsNewer: the clusters are newer than the schema and may have it.
	IsUnknown, IsNewer bool
}

// RemoteSchema is an address in the schema of a chart.
type RemoteSchema struct{ Chart, URL string }

// Chart has the identity in a Chart.yaml.
type Chart struct{ Name, Version, AppVersion string }

// FinalObject is one rendered object.
type FinalObject struct {
	Group, Version, Kind, Namespace, Name string
	From                                  Origin
	Hook                                  string // Helm hook, such as "pre-install,pre-upgrade", or "test"; "" for none
	// On is set if the chart renders the object, or this form of it, only on install or upgrade.
	On Occasion
	// IsCRD is set for objects in a chart's folder crds, which Helm creates first.
	IsCRD bool
	// YAML has sorted fields, no separator, and a final newline.
	YAML []byte
}

// Occasion tells installations from upgrades of a chart.
type Occasion string

// The occasions.
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

// Identity identifies an object in all its API versions.
type Identity struct{ Group, Kind, Namespace, Name string }

// Identity returns the identity on a cluster.
func (o *FinalObject) Identity() Identity { return Identity{o.Group, o.Kind, o.Namespace, o.Name} }

// IdentityOf keeps no other part of the object in memory.
func IdentityOf(object map[string]any) Identity {
	metadata, _ := object["metadata"].(map[string]any)
	apiVersion, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	name, _ := metadata["name"].(string)
	namespace, _ := metadata["namespace"].(string)
	return Identity{strings.Clone(GroupOf(apiVersion)), strings.Clone(kind), strings.Clone(namespace), strings.Clone(name)}
}

// GroupOf returns the group of an apiVersion, "" for "v1".
func GroupOf(apiVersion string) string {
	group, _, hasGroup := strings.Cut(apiVersion, "/")
	if !hasGroup {
		return ""
	}
	return group
}

// Compare orders by group, kind, namespace and name.
func (i Identity) Compare(other Identity) int {
	return cmp.Or(cmp.Compare(i.Group, other.Group), cmp.Compare(i.Kind, other.Kind),
		cmp.Compare(i.Namespace, other.Namespace), cmp.Compare(i.Name, other.Name))
}

// IsGenerated reports whether Name is only the prefix of a generated name.
func (o *FinalObject) IsGenerated() bool {
	_, metadata, _ := bytes.Cut(o.YAML, []byte("\nmetadata:\n"))
	generated := false
	for line := range bytes.Lines(metadata) {
		switch {
		case !bytes.HasPrefix(line, []byte("  ")), bytes.HasPrefix(line, []byte("  name: ")): // fields are sorted
			return generated && !bytes.HasPrefix(line, []byte("  name: "))
		case bytes.HasPrefix(line, []byte("  generateName: ")):
			generated = true
		}
	}
	return generated
}

// Items returns the elements of a list: every object with `items`, even a ConfigMap, because kubectl and the reconcilers apply
// them. An element without a kind takes the list's.
func Items(object map[string]any) (items []any, isList bool) {
	given, isList := object["items"].([]any)
	if !isList {
		return nil, false
	}
	kind, _ := object["kind"].(string)
	items = make([]any, len(given))
	for i, item := range given {
		fields, isObject := item.(map[string]any)
		if isObject && fields["kind"] == nil && fields["apiVersion"] == nil {
			fields = maps.Clone(fields)
			fields["kind"], fields["apiVersion"] = strings.TrimSuffix(kind, "List"), object["apiVersion"]
			item = fields
		}
		items[i] = item
	}
	return items, true
}

// Renderer renders equal requests once. It is safe for concurrent use. Errors name the artifact.
type Renderer interface {
	Render(ctx context.Context, request *Request) (*Rendering, error)
}
