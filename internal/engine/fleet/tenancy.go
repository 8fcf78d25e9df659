package fleet

import (
	"fmt"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
)

// Limit is one limit of a Kubernetes LimitRange: quantities by resource, such as "cpu".
type Limit struct {
	Type                 string            `json:"type"` // one of [LimitTypes]
	Default              map[string]string `json:"default,omitempty"`
	DefaultRequest       map[string]string `json:"default_request,omitempty"`
	Max                  map[string]string `json:"max,omitempty"`
	Min                  map[string]string `json:"min,omitempty"`
	MaxLimitRequestRatio map[string]string `json:"max_limit_request_ratio,omitempty"`
}

// LimitTypes are the types of a [Limit]. The first is the default.
var LimitTypes = []string{"Container", "Pod", "PersistentVolumeClaim"}

// ArgocdProject is the Argo CD project that a workspace's Applications belong to.
type ArgocdProject struct {
	Name string `json:"name"`
	// Render says that Flotilla renders the AppProject, too.
	Render bool `json:"render,omitempty"`
}

// limitRange reads the limits of a LimitRange.
func (o *ObjectReader) limitRange(attribute string) []Limit {
	return ReadList(o, attribute, func(l *ObjectReader) Limit {
		limit := Limit{Type: l.oneOf("type")}
		check := checkLimitName(limit.Type)
		limit.Default, limit.DefaultRequest = l.quantities("default", check), l.quantities("default_request", check)
		limit.Max, limit.Min = l.quantities("max", check), l.quantities("min", check)
		limit.MaxLimitRequestRatio = l.quantities("max_limit_request_ratio", check)
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

// argocdProject reads the name of a project, or {name, render}.
func (o *ObjectReader) argocdProject(attribute string) *ArgocdProject {
	project := &ArgocdProject{}
	if _, isObject := o.fields[attribute].(map[string]any); !isObject {
		project.Name = o.checked(attribute, o.form(attribute))
	} else {
		*project = ReadObject(o, attribute, func(p *ObjectReader) ArgocdProject {
			return ArgocdProject{Name: p.name(p.form("name")), Render: p.Bool("render")}
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

// allowed reads a list of what workloads may use. One that is empty allows nothing; nil is one that is not set.
func (o *ObjectReader) allowed(attribute string, check func(string) string) []string {
	texts := o.checkedTexts(attribute, check)
	if _, isSet := o.fields[attribute].([]any); isSet && texts == nil {
		return []string{}
	}
	return texts
}

// secretName says what is wrong with the name of a Secret that workloads may use, or "".
func (o *ObjectReader) secretName(name string) string {
	if reconciler.IsAgents(name) {
		return "is a Secret of the agent itself, which no workload can use: give the team one of its own"
	}
	return o.form("secrets")(name)
}

// checkParameterPath says what is wrong with the path of a field that workloads may set, or "".
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
