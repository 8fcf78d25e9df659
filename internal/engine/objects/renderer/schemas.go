package renderer

import (
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/kinds"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
)

// checkSchemas runs in the worker, so that its findings are cached.
func checkSchemas(result *objects.Rendering, kubernetes string) error {
	catalog, err := kinds.For(kubernetes)
	if err != nil {
		return err
	}
	read := make([]map[string]any, len(result.Objects))
	for i := range result.Objects {
		if err := yaml.Unmarshal(result.Objects[i].YAML, &read[i]); err != nil {
			return fmt.Errorf("%s: %w", describeObject(&result.Objects[i]), err)
		}
		if !kinds.IsDefinition(read[i]) {
			continue
		}
		definition, err := kinds.ReadDefinition(read[i])
		if err != nil {
			result.Violations = append(result.Violations, objects.SchemaViolation{Object: i, Message: err.Error()})
			continue
		}
		catalog = catalog.With(definition)
	}
	for i, object := range read {
		if !catalog.IsOfClusters(object) {
			result.Undefined = append(result.Undefined, i)
			continue
		}
		for _, violation := range catalog.Check(object) {
			result.Violations = append(result.Violations, objects.SchemaViolation{
				Object: i, Message: violation.In(catalog, object), IsUnknown: violation.IsUnknown, IsNewer: catalog.MayLackFields(object),
			})
		}
	}
	return nil
}
