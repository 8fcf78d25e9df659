package fleettest

import (
	"encoding/json"
	"maps"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

// Input returns the argument of provider::flotilla::fleet. It panics for several schemas of a target, and for ConfigMaps.
func Input(f *fleet.Fleet, config fleet.Config) map[string]any {
	model, err := f.Model()
	if err != nil {
		panic(err)
	}
	input := mustParse(model).(map[string]any)
	if delete(input, "explicit_assignments"); f.Explicit && f.Assignments == nil {
		input["assignments"] = []any{}
	}
	for _, name := range []string{"cluster_types", "clusters", "target_policies", "config_containers", "config_schemas"} {
		for _, object := range objects(input, name) {
			object["environment"] = f.Environment
		}
	}
	for i, workload := range objects(input, "workloads") {
		targets := map[string]any{}
		for j, target := range objects(workload, "deployment_targets") {
			targets[target["name"].(string)] = target
			target["manifests"] = toInput(f.Workloads[i].DeploymentTargets[j].Manifests)
			delete(target, "name")
			target["environment"] = f.Environment
			if schemas, ok := target["config_schemas"].([]any); ok {
				if delete(target, "config_schemas"); len(schemas) > 1 {
					panic("a deployment target has one config_schema")
				}
				target["config_schema"] = schemas[0]
			}
		}
		workload["deployment_targets"] = targets
	}
	for _, container := range objects(input, "config_containers") {
		if _, is := container["from_config_map"]; is {
			panic("config containers of ConfigMaps are read from YAML documents")
		}
		name := container["name"].(string)
		container["data"] = mustParse(config[name])
		if secrets, has := config[fleet.SecretsEntry(name)]; has {
			maps.Copy(container, mustParse(secrets).(map[string]any))
		}
	}
	return input
}

func toInput(manifests fleet.Manifests) any {
	text, err := json.Marshal(manifests)
	if err != nil {
		panic(err)
	}
	return mustParse(string(text))
}

func mustParse(text string) any {
	value, err := fleet.ParseJSON(text)
	if err != nil {
		panic(err)
	}
	return value
}

func objects(parent map[string]any, name string) []map[string]any {
	list, _ := parent[name].([]any)
	objects := make([]map[string]any, len(list))
	for i, element := range list {
		objects[i] = element.(map[string]any)
	}
	return objects
}
