// Package fleet is the model, the input of scheduling, hydration and rendering for one environment. It decodes objects
// as users write them (HCL values, YAML, JSON) and reports every mistake with its path. It does not depend on Terraform
// or Git.
package fleet

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// Fleet is the input of every computation for one environment. Lists are sorted by name. Its JSON is the model;
// configuration values are in [Config], manifests in [Value].
type Fleet struct {
	Environment      string               `json:"environment"`
	Workspaces       []Workspace          `json:"workspaces,omitempty"`
	ClusterTypes     []ClusterType        `json:"cluster_types,omitempty"`
	Clusters         []Cluster            `json:"clusters,omitempty"`
	Workloads        []Workload           `json:"workloads,omitempty"`
	TargetPolicies   []TargetPolicy       `json:"target_policies,omitempty"`
	Assignments      []ExplicitAssignment `json:"assignments,omitempty"`
	Explicit         bool                 `json:"explicit_assignments,omitempty"`
	ConfigContainers []ConfigContainer    `json:"config_containers,omitempty"`
	ConfigSchemas    []ConfigSchema       `json:"config_schemas,omitempty"`
	Templates        []Template           `json:"templates,omitempty"`
	Hydration        *Hydration           `json:"hydration,omitempty"`
}

// Config maps the name of each known config container to the canonical JSON of its data. Secrets are in separate
// entries: [SecretsEntry].
type Config map[string]string

// Labels are the labels of an object.
type Labels map[string]string

// Workspace is a team: its workloads, the groups that may use its namespaces, and its quota.
type Workspace struct {
	Name              string            `json:"name"`
	ContributorGroups []string          `json:"contributor_groups,omitempty"`
	ReaderGroups      []string          `json:"reader_groups,omitempty"`
	Environments      []string          `json:"environments,omitempty"` // empty: all
	ResourceQuota     map[string]string `json:"resource_quota,omitempty"`
	LimitRange        []Limit           `json:"limit_range,omitempty"`
	NetworkPolicy     string            `json:"network_policy,omitempty"`  // "none" or "isolated"; empty is "none"
	ServiceAccount    string            `json:"service_account,omitempty"` // impersonated by reconcilers; empty: none
	ArgocdProject     *ArgocdProject    `json:"argocd_project,omitempty"`  // nil: "default"
	// Secrets, Sources and Parameters limit the use of shared resources by workloads; nil: not set.
	Secrets    []string `json:"secrets,omitzero"`    // names in the namespace of reconciler objects
	Sources    []string `json:"sources,omitzero"`    // URL prefixes: see package access
	Parameters []string `json:"parameters,omitzero"` // paths of fields: "helm_release.valuesFrom"
	// LeastRender is the weakest rendering that a deployment target may choose below its cluster type's; empty: none.
	LeastRender string `json:"least_render,omitempty"`
	Labels      Labels `json:"labels,omitempty"`
}

// IsConfined reports whether workloads may use only resources that their workspace allows.
func (w *Workspace) IsConfined() bool {
	return w.ServiceAccount != "" || w.ArgocdProject != nil && w.ArgocdProject.Render || w.Secrets != nil || w.Sources != nil ||
		w.Parameters != nil
}

// ClusterType is a set of clusters that run the same workloads with the same values.
type ClusterType struct {
	Name string `json:"name"`
	// Formerly lists its former names, the oldest first: see [ClusterType.FirstName].
	Formerly         []string `json:"formerly,omitempty"`
	Labels           Labels   `json:"labels,omitempty"`
	Taints           []Taint  `json:"taints,omitempty"`
	Reconciler       string   `json:"reconciler"`
	NamespaceService string   `json:"namespace_service"`
	ConfigType       string   `json:"config_type"`
	Description      string   `json:"description,omitempty"`
	// Parameters are for templates. Deployment targets override them.
	Parameters map[string]any `json:"parameters,omitempty"`
	// SecretService is the template of type "secret" for references to secrets; empty: none.
	SecretService string `json:"secret_service,omitempty"`
	// SecretStores are the stores on its clusters, by the names that references use.
	SecretStores map[string]SecretStore `json:"secret_stores,omitempty"`
	// Decryption configures SOPS decryption by the agent; nil: none.
	Decryption *Decryption `json:"decryption,omitempty"`
	// Render is the default rendering of its deployment targets: see [RenderingOf]; empty: pointers.
	Render string `json:"render,omitempty"`
	// KubernetesVersion and APIVersions are the capabilities that charts see: "1.34" or "v1.34.2", empty for the version
	// of Helm's library; sorted "<group>/<version>" or "<group>/<version>/<kind>" in addition to those of Kubernetes.
	KubernetesVersion string   `json:"kubernetes_version,omitempty"`
	APIVersions       []string `json:"api_versions,omitempty"`
}

// Cluster is one physical cluster of one cluster type.
type Cluster struct {
	Name        string  `json:"name"`
	ClusterType string  `json:"cluster_type"`
	Labels      Labels  `json:"labels,omitempty"`
	Taints      []Taint `json:"taints,omitempty"`
	Description string  `json:"description,omitempty"`
}

// Workload is an application or a platform service with its deployment targets of this environment.
type Workload struct {
	Name              string             `json:"name"`
	Workspace         string             `json:"workspace,omitempty"`
	Labels            Labels             `json:"labels,omitempty"`
	Requires          []string           `json:"requires,omitempty"`
	DeploymentTargets []DeploymentTarget `json:"deployment_targets,omitempty"`
}

// DeploymentTarget is one way a workload is deployed in one environment.
type DeploymentTarget struct {
	Name          string   `json:"name"`
	Labels        Labels   `json:"labels,omitempty"`
	Namespace     string   `json:"namespace,omitempty"`      // empty: "<environment>-<host>-<target>"
	ConfigSchemas []string `json:"config_schemas,omitempty"` // JSON Schemas
	// Manifests affect only the content of folders, so they are not part of the model: see [Value].
	Manifests Manifests `json:"-"`
	// ManifestsPending reports that Manifests are unknown.
	ManifestsPending bool `json:"-"`
}

// Manifests locates a workload's own manifests.
type Manifests struct {
	folder.Manifests
	Type       string         `json:"type,omitempty"`
	Parameters map[string]any `json:"parameters,omitempty"` // for templates
	// ConfigAs, Render and AllowPlain belong to the deployment target. Like manifests, they affect only content.
	ConfigAs   ConfigAs `json:"config_as,omitempty"`
	Render     string   `json:"render,omitempty"`      // one of [Renderings]; empty: the cluster type's
	AllowPlain []string `json:"allow_plain,omitempty"` // sorted
}

// ExplicitAssignment replaces scheduling. Either ClusterType or Cluster is set; DeploymentTarget is a full name.
type ExplicitAssignment struct {
	ClusterType      string `json:"cluster_type,omitempty"`
	Cluster          string `json:"cluster,omitempty"`
	DeploymentTarget string `json:"deployment_target"`
}

// ConfigContainer is a labelled set of configuration values, without the values.
type ConfigContainer struct {
	Name     string      `json:"name"`
	Labels   Labels      `json:"labels,omitempty"`
	Priority json.Number `json:"priority,omitempty"` // empty is 0
	// FromConfigMap reports that the values come from a ConfigMap, so all are texts.
	FromConfigMap bool `json:"from_config_map,omitempty"`
}

// ConfigSchema is a JSON Schema for the values of every assignment with its labels.
type ConfigSchema struct {
	Name   string `json:"name"`
	Labels Labels `json:"labels,omitempty"`
	Schema string `json:"schema"`
}

// Template turns an assignment into one file.
type Template struct {
	Name        string   `json:"name"`
	Type        string   `json:"type"`                   // one of [TemplateTypes]
	ContentType string   `json:"content_type,omitempty"` // one of [ContentTypes]; empty is "yaml"
	Manifests   []string `json:"manifests"`
}

// Hydration configures how config containers merge. The zero value is the default.
type Hydration struct {
	Precedence string `json:"precedence,omitempty"`  // "specificity" (default) or "name"
	OnConflict string `json:"on_conflict,omitempty"` // "error" (default), "warn" or "override"
	Lists      string `json:"lists,omitempty"`       // "replace" (default), "append" or "merge"
	ListKey    string `json:"list_key,omitempty"`    // default "name"
}

// Allowed values of attributes, in the order of the documentation.
var (
	TemplateTypes = []string{"reconciler", "namespace", "config", "policy", "secret"}
	ContentTypes  = []string{"yaml", "json", "env", "properties", "sh", "text"}
	Storages      = []string{"git", "helm", "oci"}
	ManifestTypes = []string{"helm", "kustomize"}
)

// BuiltinTemplates lists the built-in templates by type.
var BuiltinTemplates = map[string][]string{
	"reconciler": reconciler.Names(),
	"namespace":  {"default"},
	"config":     {"configmap", "env", "json", "properties", "symphony"},
	"policy":     {"default"},
	"secret":     {"external-secrets", "secrets-store-csi"},
}

// Defaults of attributes.
const (
	DefaultReconciler       = reconciler.DefaultAgent
	DefaultNamespaceService = "default"
	DefaultConfigType       = "configmap"
)

// HydrationOrDefault returns the hydration with all defaults.
func (f *Fleet) HydrationOrDefault() Hydration {
	hydration := Hydration{}
	if f.Hydration != nil {
		hydration = *f.Hydration
	}
	hydration.Precedence = cmp.Or(hydration.Precedence, hydrationTable.defaultText("precedence"))
	hydration.OnConflict = cmp.Or(hydration.OnConflict, hydrationTable.defaultText("on_conflict"))
	hydration.Lists = cmp.Or(hydration.Lists, hydrationTable.defaultText("lists"))
	hydration.ListKey = cmp.Or(hydration.ListKey, hydrationTable.defaultText("list_key"))
	return hydration
}

// Targets returns the deployment targets of all workloads, in order.
func (f *Fleet) Targets() iter.Seq2[*Workload, *DeploymentTarget] {
	return func(yield func(*Workload, *DeploymentTarget) bool) {
		for i := range f.Workloads {
			for j := range f.Workloads[i].DeploymentTargets {
				if !yield(&f.Workloads[i], &f.Workloads[i].DeploymentTargets[j]) {
					return
				}
			}
		}
	}
}

// FullName returns "<workload>-<target>".
func FullName(workload, target string) string {
	return workload + "-" + target
}

// Model returns the canonical JSON of the fleet without manifests. Equal fleets have equal models.
func (f *Fleet) Model() (string, error) {
	model, err := encode(f)
	if err != nil {
		return "", fmt.Errorf("fleet of environment %q: %w", f.Environment, err)
	}
	return model, nil
}

// ParseModel decodes [Fleet.Model]. All manifests are pending; [Value.Fleet] also decodes those.
func ParseModel(model string) (*Fleet, error) {
	fleet := &Fleet{}
	if err := parseStrictly(model, fleet); err != nil {
		return nil, fmt.Errorf("fleet model is not one that provider::flotilla::fleet returned: %w", err)
	}
	for _, target := range fleet.Targets() {
		target.ManifestsPending = true
	}
	return fleet, nil
}

func encode(value any) (string, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return "", err
	}
	return string(bytes.TrimSuffix(buffer.Bytes(), []byte("\n"))), nil
}

// maxModel is ten times the size of a fleet of 1,000,000 assignments, in bytes.
const maxModel = 512 << 20

// parseStrictly decodes JSON that Flotilla wrote. Unknown attributes are errors.
func parseStrictly(text string, into any) error {
	if len(text) > maxModel {
		return fmt.Errorf("is larger than %d MiB", maxModel>>20)
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	if _, more := decoder.Token(); err == nil && !errors.Is(more, io.EOF) {
		err = fmt.Errorf("text follows it at offset %d", decoder.InputOffset())
	}
	return err
}

func (f *Fleet) sortLists() {
	slices.SortStableFunc(f.Workspaces, func(a, b Workspace) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortStableFunc(f.ClusterTypes, func(a, b ClusterType) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortStableFunc(f.Clusters, func(a, b Cluster) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortStableFunc(f.Workloads, func(a, b Workload) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortStableFunc(f.TargetPolicies, func(a, b TargetPolicy) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortStableFunc(f.ConfigContainers, func(a, b ConfigContainer) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortStableFunc(f.ConfigSchemas, func(a, b ConfigSchema) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortStableFunc(f.Templates, func(a, b Template) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Name, b.Name))
	})
	slices.SortStableFunc(f.Assignments, CompareExplicitAssignments)
	for i := range f.Workloads {
		slices.SortStableFunc(f.Workloads[i].DeploymentTargets, func(a, b DeploymentTarget) int {
			return cmp.Compare(a.Name, b.Name)
		})
	}
}

// CompareExplicitAssignments compares assignments in the order of a fleet: clusters first.
func CompareExplicitAssignments(a, b ExplicitAssignment) int {
	return cmp.Or(cmp.Compare(a.ClusterType, b.ClusterType), cmp.Compare(a.Cluster, b.Cluster),
		cmp.Compare(a.DeploymentTarget, b.DeploymentTarget))
}

// MergeLabels returns the union of all sets in a new map. Later sets win.
func MergeLabels(sets ...Labels) Labels {
	merged := Labels{}
	for _, set := range sets {
		maps.Copy(merged, set)
	}
	return merged
}
