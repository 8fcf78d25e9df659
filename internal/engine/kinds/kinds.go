// Package kinds checks objects against the schemas of their kinds, like the API of a cluster: the schemas of Kubernetes,
// published definitions of agents and secret services, and definitions among the objects.
package kinds

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/kinds/published"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects/served"
)

// Violation is a part of an object that its schema refuses.
type Violation struct {
	// Steps lead to the part, or to the place of a missing field: fields, keys, and indexes such as "[0]".
	Steps []string
	// Message ends a sentence about the part, without the value.
	Message string
	// IsUnknown: the schema has no such field.
	IsUnknown bool
	// IsMissing: the object lacks a required field.
	IsMissing bool
	// Known lists the fields beside an unknown one, sorted.
	Known []string
}

// Path returns "spec.containers[0].image", or "" for the object itself.
func (v *Violation) Path() string {
	return strings.ReplaceAll(strings.Join(v.Steps, "."), ".[", "[")
}

// In describes the violation in a clause.
func (v *Violation) In(catalog *Catalog, object map[string]any) string {
	return strings.TrimSpace(v.Path() + " " + v.Message + " (schema of " + catalog.Source(object) + ")")
}

// Catalog holds the schemas of clusters of one type. It is safe for concurrent use.
type Catalog struct {
	minor     int    // of Kubernetes' schemas
	given     string // version of the clusters, or ""
	isGiven   bool   // given has schemas
	isNewer   bool   // given is newer than all schemas
	published *publishedKinds
	defined   map[schema.GroupKind]*Definition
}

// For returns the published schemas of a version such as "1.34" or "v1.34.2+k3s1", or of the nearest. "" means the
// newest.
func For(kubernetes string) (*Catalog, error) {
	all := publishedSchemas()
	c := &Catalog{published: all, minor: all.kubernetes.Newest, given: kubernetes}
	if kubernetes == "" {
		return c, nil
	}
	parsed, err := version.ParseGeneric(kubernetes)
	if err != nil {
		return nil, fmt.Errorf("Kubernetes version %q: %w", kubernetes, err)
	}
	minor := int(parsed.Minor()) //nolint:gosec // no version of Kubernetes is that large
	c.minor = min(max(minor, all.kubernetes.Oldest), all.kubernetes.Newest)
	c.isGiven, c.isNewer = c.minor == minor, minor > all.kubernetes.Newest
	return c, nil
}

// With adds definitions to a copy. They override published ones; the last of a kind wins.
func (c *Catalog) With(definitions ...*Definition) *Catalog {
	if len(definitions) == 0 {
		return c
	}
	more := *c
	more.defined = maps.Clone(c.defined)
	if more.defined == nil {
		more.defined = map[schema.GroupKind]*Definition{}
	}
	for _, definition := range definitions {
		more.defined[definition.kind] = definition
	}
	return &more
}

// IsOfClusters reports whether the clusters have the schema: one of Kubernetes, or added by [Catalog.With].
func (c *Catalog) IsOfClusters(object map[string]any) bool {
	apiVersion, kind := nameOf(object)
	return c.defined[kind] != nil || served.IsOfKubernetes(apiVersion+"/"+kind.Kind)
}

// MayLackFields reports whether the clusters may have a newer schema.
func (c *Catalog) MayLackFields(object map[string]any) bool {
	_, kind := nameOf(object)
	if c.defined[kind] != nil {
		return false
	}
	return c.isNewer || !served.IsOfKubernetes(kind.Group+"/v1")
}

// Source names the schema: "Kubernetes 1.34", or a module with its version.
func (c *Catalog) Source(object map[string]any) string {
	_, kind := nameOf(object)
	if of := c.defined[kind]; of != nil {
		return "its CustomResourceDefinition"
	}
	if module := published.Modules()[kind.Group]; module != "" {
		name, of, _ := strings.Cut(module[strings.LastIndex(module, "/")+1:], "@")
		if strings.HasPrefix(name, "v") && strings.Contains(module, "/argo-cd/") {
			name = "argo-cd"
		}
		return name + " " + of
	}
	return fmt.Sprintf("Kubernetes 1.%d", c.minor)
}

func nameOf(object map[string]any) (apiVersion string, kind schema.GroupKind) {
	apiVersion, _ = object["apiVersion"].(string)
	kind.Kind, _ = object["kind"].(string)
	kind.Group = objects.GroupOf(apiVersion)
	return apiVersion, kind
}

// kindOf returns a schema or nil. problem explains why the cluster refuses the kind.
func (c *Catalog) kindOf(object map[string]any) (of *kind, problem string) {
	apiVersion, name := nameOf(object)
	_, ofVersion, _ := strings.Cut(apiVersion, "/")
	if definition := c.defined[name]; definition != nil {
		if of := definition.versions[ofVersion]; of != nil {
			return of, ""
		}
		return nil, fmt.Sprintf("is not served by the CustomResourceDefinition of %s, which has %s", name.Kind,
			strings.Join(slices.Sorted(maps.Keys(definition.versions)), ", "))
	}
	if definition := c.published.definition(name); definition != nil {
		return definition.versions[ofVersion], ""
	}
	api := apiVersion + "/" + name.Kind
	of, period := c.published.kubernetesKind(api, c.minor)
	switch {
	case of != nil && (period.has(c.minor) || !c.isGiven):
		return of, ""
	case c.isGiven && served.IsOfKubernetes(api):
		return nil, fmt.Sprintf("has no kind %s in Kubernetes %s", name.Kind, c.given)
	}
	return nil, ""
}

// Accepts reports whether an object has no violation or no schema.
func (c *Catalog) Accepts(object map[string]any) bool {
	of, problem := c.kindOf(object)
	if of == nil {
		return problem == ""
	}
	return of.accepts(object)
}

// Check returns all violations, sorted by place.
func (c *Catalog) Check(object map[string]any) []Violation {
	of, problem := c.kindOf(object)
	if problem != "" {
		return []Violation{{Steps: []string{"apiVersion"}, Message: problem}}
	}
	if of == nil || of.accepts(object) {
		return nil
	}
	violations := of.check(object)
	slices.SortStableFunc(violations, func(a, b Violation) int {
		return cmp.Or(slices.Compare(a.Steps, b.Steps), strings.Compare(a.Message, b.Message))
	})
	return slices.CompactFunc(violations, func(a, b Violation) bool { return slices.Equal(a.Steps, b.Steps) && a.Message == b.Message })
}
