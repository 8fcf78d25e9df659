package kinds

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/kinds/published"
)

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
