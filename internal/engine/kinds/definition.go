package kinds

import (
	"errors"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

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
