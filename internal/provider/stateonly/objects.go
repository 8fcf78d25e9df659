package stateonly

import (
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/constraint"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/hydrate"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
)

// The resources, each by the collection of a fleet that has such objects.
var (
	Cluster         = newResource(object{collection: "clusters", others: ofOneEnvironment})
	ClusterType     = newResource(object{collection: "cluster_types", others: ofOneEnvironment})
	ConfigContainer = newResource(
		object{collection: "config_containers", derive: deriveJSON, others: attributes{ // lists: findings name their elements by number
			"encrypted":   schemas.OptionalDynamic(described("config_containers", "encrypted")),
			"allow_plain": schemas.OptionalDynamic(described("config_containers", "allow_plain")),
		}},
	)
	ConfigSchema = newResource(object{collection: "config_schemas", check: checkSchema, others: attributes{
		"schema": schemas.RequiredText(described("config_schemas", "schema")),
	}})
	Constraint  = newResource(object{collection: "constraints", check: checkConstraint})
	Environment = newResource(object{collection: "environments", check: checkEnvironment, others: attributes{
		"gitops_repo": schemas.RequiredDynamic(described("environments", "gitops_repo")),
	}})
	TargetPolicy = newResource(object{collection: "target_policies", others: ofOneEnvironment})
	Template     = newResource(object{collection: "templates", check: checkTemplate})
	Workload     = newResource(object{collection: "workloads"})
	Workspace    = newResource(object{collection: "workspaces"})
)

// deriveJSON sets the text of a config container.
func deriveJSON(values map[string]attr.Value) {
	data := tfvalue.Plain(values["data"])
	values["json"] = types.StringUnknown()
	if data == nil {
		data = map[string]any{}
	}
	if fleet.IsKnown(data) {
		text, err := fleet.CanonicalJSON(data)
		if err == nil {
			values["json"] = types.StringValue(text)
		}
	}
}

// checkSchema compiles the JSON Schema, once it is known. A text that is not JSON is reported by the
// checks of package fleet.
func checkSchema(given map[string]any) fleet.Findings {
	text, ok := given["schema"].(string)
	if !ok || len(fleet.CheckObject("config_schemas", given)) > 0 {
		return nil
	}
	if err := hydrate.CheckSchema(text); err != nil {
		return fleet.Findings{{Path: "schema", Message: err.Error()}}
	}
	return nil
}

func checkConstraint(given map[string]any) fleet.Findings {
	rule, known := fleet.DecodeConstraint(given)
	if !known {
		return nil
	}
	return constraint.CheckConstraint(rule)
}

func checkEnvironment(given map[string]any) fleet.Findings {
	return repository.CheckGitopsRepo("gitops_repo", given["gitops_repo"])
}

// checkTemplate parses the manifests, once all of them are known.
func checkTemplate(given map[string]any) fleet.Findings {
	manifests, _ := given["manifests"].([]any)
	template := &fleet.Template{}
	template.Name, _ = given["name"].(string)
	template.Type, _ = given["type"].(string)
	template.ContentType, _ = given["content_type"].(string)
	for _, manifest := range manifests {
		text, ok := manifest.(string)
		if !ok {
			return nil
		}
		template.Manifests = append(template.Manifests, text)
	}
	return render.Validate(template)
}
