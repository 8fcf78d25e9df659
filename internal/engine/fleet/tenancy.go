package fleet

import (
	"fmt"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
)

// Limit is a limit of a Kubernetes LimitRange, with quantities by resource.
type Limit struct {
	Type                 string            `json:"type"` // one of [LimitTypes]
	Default              map[string]string `json:"default,omitempty"`
	DefaultRequest       map[string]string `json:"default_request,omitempty"`
	Max                  map[string]string `json:"max,omitempty"`
	Min                  map[string]string `json:"min,omitempty"`
	MaxLimitRequestRatio map[string]string `json:"max_limit_request_ratio,omitempty"`
}

// LimitTypes lists the types of a [Limit], the default first.
var LimitTypes = []string{"Container", "Pod", "PersistentVolumeClaim"}

// ArgocdProject is the Argo CD project of a workspace's Applications.
type ArgocdProject struct {
	Name string `json:"name"`
	// Render makes Flotilla write the AppProject.
	Render bool `json:"render,omitempty"`
}

func readLimitRange(o *ObjectReader, attribute string) []Limit {
	return ReadList(o, attribute, func(l *ObjectReader) Limit {
		limit := Limit{Type: readOneOf(l, "type")}
		check := checkLimitName(limit.Type)
		limit.Default, limit.DefaultRequest = readQuantities(l, "default", check), readQuantities(l, "default_request", check)
		limit.Max, limit.Min = readQuantities(l, "max", check), readQuantities(l, "min", check)
		limit.MaxLimitRequestRatio = readQuantities(l, "max_limit_request_ratio", check)
		if limit.Type == "Pod" || limit.Type == "PersistentVolumeClaim" {
			for _, name := range []string{"default", "default_request"} {
				if l.fields[name] != nil {
					l.Report(name, "is for limits of type Container")
				}
			}
		}
		return limit
	})
}

// readArgocdProject reads a name, or {name, render}.
func readArgocdProject(o *ObjectReader, attribute string) *ArgocdProject {
	project := &ArgocdProject{}
	if _, isObject := o.fields[attribute].(map[string]any); !isObject {
		project.Name = readChecked(o, attribute, formCheck(o, attribute))
	} else {
		*project = ReadObject(o, attribute, func(p *ObjectReader) ArgocdProject {
			return ArgocdProject{Name: readName(p, formCheck(p, "name")), Render: p.Bool("render")}
		})
	}
	if project.Render && project.Name == "default" {
		o.Report(attribute, `"default" is Argo CD's own project, which all Applications may use: choose another name to have one rendered`)
	}
	if project.Name == "" {
		return nil
	}
	return project
}

// readAllowed reads what workloads may use: an empty list allows nothing, nil is not set.
func readAllowed(o *ObjectReader, attribute string, check func(string) string) []string {
	texts := readCheckedTexts(o, attribute, check)
	if _, isSet := o.fields[attribute].([]any); isSet && texts == nil {
		return []string{}
	}
	return texts
}

// checkSecretName returns the problem of a Secret that workloads may use, or "".
func checkSecretName(o *ObjectReader, name string) string {
	if reconciler.IsAgents(name) {
		return "is a Secret of the agent itself, which no workload can use: give the team one of its own"
	}
	return formCheck(o, "secrets")(name)
}

// checkParameterPath returns the problem of a field that workloads may set, or "".
func checkParameterPath(path string) string {
	names := []string{"namespace", "project", "secret_ref"}
	if slices.Contains(names, path) {
		return ""
	}
	for _, kind := range reconciler.Kinds() {
		if kind.Parameter != "" {
			names = append(names, kind.Parameter)
		}
	}
	slices.Sort(names)
	name, field, _ := strings.Cut(path, ".")
	kind := reconciler.KindOfParameter(name)
	switch {
	case kind == nil:
		return "is not the path of a parameter, such as \"helm_release.valuesFrom\"" + DidYouMean(name, names)
	case field == "":
		return ""
	case !kind.HasField(field):
		first, _, _ := strings.Cut(field, ".")
		return fmt.Sprintf("is no field of a %s that Flotilla knows%s", kind.Kind, DidYouMean(first, kind.FieldNames()))
	case kind.ReachOf(field) == reconciler.Decided:
		return "is what Flotilla decides, so that no workload can set it"
	}
	return ""
}
