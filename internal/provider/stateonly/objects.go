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

// Resources, one for each collection of a fleet.
var (
	Cluster         = newResource(definition{collection: "clusters", others: ofOneEnvironment})
	ClusterType     = newResource(definition{collection: "cluster_types", others: ofOneEnvironment})
	ConfigContainer = newResource(
		definition{collection: "config_containers", derive: deriveJSON, others: attributes{ // lists: findings name their elements by number
			"encrypted":   schemas.OptionalDynamic(describeAttribute("config_containers", "encrypted")),
			"allow_plain": schemas.OptionalDynamic(describeAttribute("config_containers", "allow_plain")),
		}},
	)
	ConfigSchema = newResource(definition{collection: "config_schemas", check: checkSchema, others: attributes{
		"schema": schemas.RequiredText(describeAttribute("config_schemas", "schema")),
	}})
	Constraint  = newResource(definition{collection: "constraints", check: checkConstraint})
	Environment = newResource(definition{collection: "environments", check: checkEnvironment, others: attributes{
		"gitops_repo": schemas.RequiredDynamic(describeAttribute("environments", "gitops_repo")),
	}})
	TargetPolicy = newResource(definition{collection: "target_policies", others: ofOneEnvironment})
	Template     = newResource(definition{collection: "templates", check: checkTemplate})
	Workload     = newResource(definition{collection: "workloads"})
	Workspace    = newResource(definition{collection: "workspaces"})
)

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

// checkSchema compiles a known JSON Schema. Package fleet reports invalid JSON.
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

// checkTemplate parses the manifests after all are known.
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
