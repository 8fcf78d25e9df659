package pipeline

import (
	"fmt"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/kinds"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/parallel"
)

// Definitions holds CustomResourceDefinitions of clusters.
type Definitions struct {
	All []*kinds.Definition
	Sum string // fingerprint of All
}

type schemaCheck struct {
	refused, dropped []string // clauses about rejected parts, and about fields that clusters may drop
	// undefined holds objects whose kind is neither built in nor among definitions, the assignment's own CRDs.
	undefined, definitions []objects.FinalObject
}

func (r *Computation) checkSchemas(subject render.Subject, result *objects.Rendering) (check schemaCheck) {
	drops := r.Templates.DropsFields(subject.Assignment)
	for _, violation := range result.Violations {
		check.add(&result.Objects[violation.Object], violation.Message, violation.IsUnknown && (violation.IsNewer || drops))
	}
	for _, i := range result.Undefined {
		check.undefined = append(check.undefined, result.Objects[i])
	}
	for i := range result.Objects {
		if o := &result.Objects[i]; o.Group == "apiextensions.k8s.io" && o.Kind == "CustomResourceDefinition" {
			check.definitions = append(check.definitions, *o)
		}
	}
	return check
}

func (s *schemaCheck) add(o *objects.FinalObject, message string, mayDrop bool) {
	if strings.Contains(o.Hook, "test") {
		return // not applied by agents
	}
	clause := fmt.Sprintf("%s %q: %s", o.Kind, o.Name, message)
	if mayDrop {
		s.dropped = append(s.dropped, clause)
		return
	}
	s.refused = append(s.refused, clause)
}

// checkUndefined validates objects whose kinds are defined by other assignments of the host, the provider or published
// schemas.
func (r *Rendering) checkUndefined() {
	isOpen := false
	for i := range r.folders {
		isOpen = isOpen || len(r.folders[i].schemas.undefined) > 0
	}
	if !isOpen {
		return
	}
	definitions := map[string][]*kinds.Definition{} // by host
	for i := range r.folders {
		host, found := r.Schedule.Assignments[i].Host.Name, r.folders[i].schemas.definitions
		for j := range found {
			if definition, err := readDefinition(&found[j]); err == nil { // Validation of the object reports an invalid definition.
				definitions[host] = append(definitions[host], definition)
			}
		}
	}
	parallel.Each(len(r.folders), func(i int) {
		check := &r.folders[i].schemas
		if len(check.undefined) == 0 {
			return
		}
		assignment := r.Schedule.Assignments[i]
		catalog, err := kinds.For(assignment.Host.ClusterType.KubernetesVersion)
		if err != nil {
			return // reported by the templates
		}
		catalog = catalog.With(r.Definitions.All...).
			With(definitions[assignment.Host.ClusterType.Name]...).
			With(definitions[assignment.Host.Name]...)
		drops := r.Templates.DropsFields(assignment)
		for j := range check.undefined {
			o := &check.undefined[j]
			read, err := fleet.ReadObjects(string(o.YAML))
			if err != nil || len(read) != 1 {
				continue // reported elsewhere
			}
			for _, violation := range catalog.Check(read[0]) {
				mayDrop := violation.IsUnknown && (drops || catalog.MayLackFields(read[0]))
				check.add(o, violation.In(catalog, read[0]), mayDrop)
			}
		}
		check.undefined = nil
	})
}

func readDefinition(o *objects.FinalObject) (*kinds.Definition, error) {
	read, err := fleet.ReadObjects(string(o.YAML))
	if err != nil || len(read) != 1 {
		return nil, fmt.Errorf("%s is no definition: %w", o.Name, err)
	}
	return kinds.ReadDefinition(read[0])
}

func (f *diagnostics) addRefused(r *Rendering) {
	var all Unrendered
	for i := range r.folders {
		if !r.isDeployed(i) {
			for _, clause := range r.folders[i].schemas.refused {
				all.Add(clause, r.Schedule.Assignments[i].Target.Name)
			}
		}
	}
	f.add("Clusters would refuse final objects", all.Messages()...)
}

// addQuestioned adds warnings about fields that clusters may drop, and rejected parts of deployed objects.
func (f *diagnostics) addQuestioned(r *Rendering) {
	var dropped, refused Unrendered
	for i := range r.folders {
		target := r.Schedule.Assignments[i].Target.Name
		for _, clause := range r.folders[i].schemas.dropped {
			dropped.Add(clause, target)
		}
		if r.isDeployed(i) {
			for _, clause := range r.folders[i].schemas.refused {
				refused.Add(clause, target)
			}
		}
	}
	f.add("Clusters may drop fields of final objects", dropped.Messages()...)
	f.add("Clusters would refuse final objects", refused.Messages()...)
}
