package provider

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/kinds"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/pipeline"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
)

const definitionsAttribute = "custom_resource_definitions"

// decodeDefinitions reads CustomResourceDefinitions. Unknown texts define nothing.
func decodeDefinitions(value types.Dynamic, diagnostics *diag.Diagnostics) (defined pipeline.Definitions) {
	at := path.Root(definitionsAttribute)
	report := func(format string, arguments ...any) {
		diagnostics.AddAttributeError(at, "Invalid definitions", tfvalue.Sentence(fmt.Sprintf(format, arguments...)))
	}
	read := tfvalue.Plain(value)
	elements, areMany := fleet.Elements((*fleet.Path)(nil).Attribute(definitionsAttribute), read)
	if !areMany && read != nil {
		elements = []fleet.Element{{Path: (*fleet.Path)(nil).Attribute(definitionsAttribute), Value: read}}
	}
	sum := sha256.New()
	for _, element := range elements {
		if _, isUnknown := element.Value.(fleet.Unknown); isUnknown {
			continue
		}
		text, isText := element.Value.(string)
		if !isText {
			report("%s must be a text of YAML documents, or a list or map of such texts", element.Path)
			continue
		}
		objects, err := fleet.ReadObjects(text)
		if err != nil {
			report("%s cannot be read: %s", element.Path, err)
			continue
		}
		if len(objects) == 0 {
			report("%s has no CustomResourceDefinition", element.Path)
		}
		sum.Write([]byte(text))
		for _, object := range objects {
			if !kinds.IsDefinition(object) {
				continue // files of projects also have Namespaces and the like
			}
			definition, err := kinds.ReadDefinition(object)
			if err != nil {
				report("%s: %s %s", element.Path, nameOf(object), err)
				continue
			}
			defined.All = append(defined.All, definition)
		}
	}
	defined.Sum = hex.EncodeToString(sum.Sum(nil))
	return defined
}

func nameOf(object map[string]any) string {
	metadata, _ := object["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	return fmt.Sprintf("%q", name)
}
