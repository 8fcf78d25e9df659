// Package kinds checks objects against the schemas of their kinds, like the API of a cluster: the schemas of Kubernetes,
// published definitions of agents and secret services, and definitions among the objects.
package kinds

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/kube-openapi/pkg/validation/spec"

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

// publishedKinds reads each published schema once, for the first object of its kind.
type publishedKinds struct {
	kubernetes struct {
		Oldest, Newest int                 // minor versions
		Kinds          map[string]string   // names of definitions, by "<group>/<version>/<kind>"
		Definitions    map[string][]period // by name, in order
	}

	mutex       sync.Mutex
	definitions map[schema.GroupKind]*Definition
	resolved    map[resolvedKey]*spec.Schema
	kinds       map[resolvedKey]*kind
	objectMeta  *kind // the same for all kinds
}

// period is the schema for a range of minor versions; 0 means no end.
type period struct {
	From, Until int
	Schema      json.RawMessage
}

func (p *period) has(minor int) bool { return p.From <= minor && (p.Until == 0 || minor < p.Until) }

type resolvedKey struct {
	name  string
	minor int
}

var publishedSchemas = sync.OnceValue(func() *publishedKinds {
	p := &publishedKinds{
		definitions: map[schema.GroupKind]*Definition{}, resolved: map[resolvedKey]*spec.Schema{}, kinds: map[resolvedKey]*kind{},
	}
	if err := published.ReadKubernetes(&p.kubernetes); err != nil {
		panic(err) // the files are embedded
	}
	metadata := p.resolve("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", p.kubernetes.Newest, nil)
	p.objectMeta = &kind{root: newNode(metadata), validator: validation.NewSchemaValidatorFromOpenAPI(metadata)}
	return p
})

func (p *publishedKinds) definition(of schema.GroupKind) *Definition {
	if published.Modules()[of.Group] == "" {
		return nil
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if known, isKnown := p.definitions[of]; isKnown {
		return known
	}
	var object map[string]any
	var read *Definition
	if err := published.ReadDefinition(of.Group, of.Kind, &object); err == nil {
		if read, err = ReadDefinition(object); err != nil {
			panic(err) // likewise
		}
	}
	p.definitions[of] = read
	return read
}

// kubernetesKind returns a kind of Kubernetes and its period; nil if there is none.
func (p *publishedKinds) kubernetesKind(api string, minor int) (*kind, *period) {
	name, isKnown := p.kubernetes.Kinds[api]
	if !isKnown {
		return nil, nil
	}
	of := p.periodOf(name, minor)
	key := resolvedKey{api, minor}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.kinds[key] == nil {
		p.kinds[key] = newKind(p.resolve(name, minor, nil), nil)
	}
	return p.kinds[key], of
}

// periodOf returns the period at a minor version, else the last before it, else the first.
func (p *publishedKinds) periodOf(name string, minor int) *period {
	periods := p.kubernetes.Definitions[name]
	found := &periods[0]
	for i := range periods {
		if periods[i].From <= minor {
			found = &periods[i]
		}
	}
	return found
}

// resolve replaces references by definitions. A recursive reference, such as the schema in a CustomResourceDefinition,
// allows any content.
func (p *publishedKinds) resolve(name string, minor int, within []string) *spec.Schema {
	resolved := &spec.Schema{}
	if slices.Contains(within, name) {
		resolved.AddExtension(preserveUnknown, true)
		return resolved
	}
	key := resolvedKey{name, minor}
	if known := p.resolved[key]; known != nil {
		return known
	}
	if err := json.Unmarshal(p.periodOf(name, minor).Schema, resolved); err != nil {
		panic(fmt.Errorf("%s: %w", name, err)) // likewise
	}
	within = append(within, name)
	p.resolveBelow(resolved, minor, within)
	p.resolved[key] = resolved
	return resolved
}

func (p *publishedKinds) resolveBelow(of *spec.Schema, minor int, within []string) {
	replaced := func(below *spec.Schema) {
		if ref := below.Ref.String(); ref != "" {
			*below = *p.resolve(strings.TrimPrefix(ref, "#/definitions/"), minor, within)
			return
		}
		p.resolveBelow(below, minor, within)
	}
	for property, below := range of.Properties {
		replaced(&below)
		of.Properties[property] = below
	}
	if of.Items != nil && of.Items.Schema != nil {
		replaced(of.Items.Schema)
	}
	if of.AdditionalProperties != nil && of.AdditionalProperties.Schema != nil {
		replaced(of.AdditionalProperties.Schema)
	}
}

var definitionKind = schema.GroupKind{Group: apiextensionsv1.GroupName, Kind: "CustomResourceDefinition"}

// IsDefinition reports whether an object is a CustomResourceDefinition.
func IsDefinition(object map[string]any) bool {
	_, kind := nameOf(object)
	return kind == definitionKind
}

// Definition holds the schemas of a CustomResourceDefinition.
type Definition struct {
	kind     schema.GroupKind
	versions map[string]*kind // served versions
}

// ReadDefinition reads a CustomResourceDefinition. Its error explains why a cluster would refuse the schemas.
func ReadDefinition(object map[string]any) (*Definition, error) {
	var definition apiextensionsv1.CustomResourceDefinition
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(plain(object).(map[string]any), &definition); err != nil {
		return nil, fmt.Errorf("is no CustomResourceDefinition: %w", err)
	}
	read := &Definition{
		kind:     schema.GroupKind{Group: definition.Spec.Group, Kind: definition.Spec.Names.Kind},
		versions: map[string]*kind{},
	}
	if read.kind.Group == "" || read.kind.Kind == "" {
		return nil, errors.New("has no spec.group or no spec.names.kind")
	}
	for i := range definition.Spec.Versions {
		version := &definition.Spec.Versions[i]
		if !version.Served {
			continue
		}
		if version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
			return nil, fmt.Errorf("has no schema for version %q", version.Name)
		}
		var converted apiextensions.JSONSchemaProps
		if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
			version.Schema.OpenAPIV3Schema, &converted, nil); err != nil {
			return nil, fmt.Errorf("version %q: %w", version.Name, err)
		}
		structural, err := structuralschema.NewStructural(&converted)
		if err != nil {
			return nil, fmt.Errorf("version %q: %w", version.Name, err)
		}
		if errs := structuralschema.ValidateStructural(nil, structural); len(errs) > 0 {
			return nil, fmt.Errorf("version %q: %w", version.Name, errs.ToAggregate())
		}
		if definition.Spec.PreserveUnknownFields {
			structural.XPreserveUnknownFields = true
		}
		read.versions[version.Name] = newKind(structural.ToKubeOpenAPI(), structural)
	}
	if len(read.versions) == 0 {
		return nil, errors.New("serves no version")
	}
	return read, nil
}
