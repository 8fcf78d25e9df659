package render

import (
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
)

// checkFieldNames warns of probable misspellings. They are no errors, because reconcilers get new fields.
func (a *writerChooser) checkFieldNames(path *fleet.Path, parameters map[string]any) {
	for _, kind := range parameterKinds {
		fields, _ := parameters[kind.Parameter].(map[string]any)
		version, _, _ := strings.Cut(kind.Versions, ",")
		object := map[string]any{"apiVersion": kind.Group + "/" + version, "kind": kind.Kind, "spec": fields}
		for _, violation := range a.catalog.Check(object) {
			last := len(violation.Steps) - 1
			if !violation.IsUnknown {
				continue
			}
			if hint := fleet.DidYouMean(violation.Steps[last], violation.Known); hint != "" {
				a.reportOnce(&a.warnings, pathBelow(path.Attribute(kind.Parameter), violation.Steps[1:]),
					"is no field of a %s that Flotilla knows%s", kind.Kind, hint)
			}
		}
	}
}

func (a *writerChooser) checkSpelling(host *hostTemplates, assignment *schedule.Assignment) {
	if host.reconciler == nil {
		return
	}
	if parameters := a.parameters[assignment.Target.Name]; parameters != nil && !a.checkedSpelling[assignment.Target.Name] {
		a.checkedSpelling[assignment.Target.Name] = true
		a.checkFieldNames(targetPath(assignment.Target).Attribute("manifests").Attribute("parameters"), parameters)
	}
	if name := assignment.Host.ClusterType.Name; host.parameters != nil && !a.checkedSpelling["type "+name] {
		a.checkedSpelling["type "+name] = true
		a.checkFieldNames(fleet.PathOf("cluster_types", name).Attribute("parameters"), host.parameters)
	}
}
