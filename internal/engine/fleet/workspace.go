package fleet

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
)

// Workspace is a team.
type Workspace struct {
	Name              string            `json:"name"`
	ContributorGroups []string          `json:"contributor_groups,omitempty"`
	ReaderGroups      []string          `json:"reader_groups,omitempty"`
	Environments      []string          `json:"environments,omitempty"` // empty: all
	ResourceQuota     map[string]string `json:"resource_quota,omitempty"`
	LimitRange        []Limit           `json:"limit_range,omitempty"`
	NetworkPolicy     string            `json:"network_policy,omitempty"` // "isolated", or empty
	ServiceAccount    string            `json:"service_account,omitempty"`
	ArgocdProject     *ArgocdProject    `json:"argocd_project,omitempty"` // nil: "default"
	// Secrets, Sources and Parameters bound the use of shared resources; nil: not set.
	Secrets     []string `json:"secrets,omitzero"`
	Sources     []string `json:"sources,omitzero"`
	Parameters  []string `json:"parameters,omitzero"`
	LeastRender string   `json:"least_render,omitempty"`
	Labels      Labels   `json:"labels,omitempty"`
}

// Limit has quantities by resource, as in a LimitRange.
type Limit struct {
	Type                 string            `json:"type"` // one of [limitTypes]
	Default              map[string]string `json:"default,omitempty"`
	DefaultRequest       map[string]string `json:"default_request,omitempty"`
	Max                  map[string]string `json:"max,omitempty"`
	Min                  map[string]string `json:"min,omitempty"`
	MaxLimitRequestRatio map[string]string `json:"max_limit_request_ratio,omitempty"`
}

// limitTypes begins with the default.
var limitTypes = []string{"Container", "Pod", "PersistentVolumeClaim"}

// ArgocdProject is the project of a workspace's Applications.
type ArgocdProject struct {
	Name   string `json:"name"`
	Render bool   `json:"render,omitempty"`
}

// IsConfined reports whether workloads may use only allowed resources.
func (w *Workspace) IsConfined() bool {
	return w.ServiceAccount != "" || w.ArgocdProject != nil && w.ArgocdProject.Render || w.Secrets != nil || w.Sources != nil ||
		w.Parameters != nil
}

var workspaceKind = defineKind(Table{
	Name: "workspace",
	Meaning: "A team: its workloads, the groups that may use its namespaces, its quota. The template of type `policy` " +
		"renders role bindings, quota and network policy into every namespace of the team.",
}, func(w *Workspace) []row {
	return []row{
		namedAttribute(&w.Name, labelForm, "Name of the workspace, a DNS label."),
		textsAttribute(&w.ContributorGroups, Attribute{Meaning: "Groups that may change objects in the team's namespaces."}),
		textsAttribute(&w.ReaderGroups, Attribute{Meaning: "Groups that may read objects in the team's namespaces."}),
		textsAttribute(&w.Environments, Attribute{Meaning: "Environments that the team may deploy to. Unset: all."}),
		quantitiesAttribute(&w.ResourceQuota, Attribute{
			Meaning: "Hard limits of each namespace, as in a ResourceQuota: `{\"requests.cpu\" = \"2\"}`.",
		}),
		listAttribute(&w.LimitRange, limitKind, Attribute{Meaning: "Limits of what runs in each namespace, as in a LimitRange."}),
		textAttribute(&w.NetworkPolicy, Attribute{
			Default: "none", Allowed: []string{"none", "isolated"},
			Meaning: "`isolated` lets in traffic from the team's own namespaces alone, those with the label " +
				"`workspace`; `none` does nothing.",
		}),
		textAttribute(&w.ServiceAccount, Attribute{
			Form: subdomainForm,
			Meaning: "Service account that Flux impersonates when it reconciles the team's workloads, in the namespace `flux-system`; " +
				"for Rancher Fleet that of the cluster's agent. With Config Sync, which has no such account, they may do no more than " +
				"the cluster role `admin` in their namespace. Unset: they have the rights of the reconciler.",
		}),
		storedAttribute(&w.ArgocdProject, Attribute{
			Form: subdomainForm, Type: TextOrObjectType, Of: &argocdProjectKind.Table,
			Meaning: "Argo CD project of the team's Applications: its name, or `{name, render}`. With `render = true` Flotilla writes the " +
				"AppProject too, which allows the sources and namespaces of the team's own deployment targets and no others. Unset: `default`.",
		}, readArgocdProject),
		allowedAttribute(&w.Secrets, checkSecretName, Attribute{
			Form: subdomainForm,
			Meaning: "Names of the Secrets and ConfigMaps, in the namespace of the reconciler's objects, that the team's workloads may name " +
				"in their parameters. No other workspace's workloads can name them then.",
		}),
		allowedAttribute(&w.Sources, checkSourcePrefix, Attribute{
			Meaning: "Beginnings of URLs, such as `https://git.example.com/team`, that the team's manifests come from. Unset: any.",
		}),
		allowedAttribute(&w.Parameters, checkParameterPath, Attribute{
			Meaning: "Paths of fields, such as `helm_release.valuesFrom`, that the team's workloads may set although they reach " +
				"Secrets, accounts, clusters, namespaces or other content, or decide what is trusted; or `namespace`, `project`, " +
				"`secret_ref`. With this, `secrets`, `sources`, `service_account` or a project that is rendered, every such field " +
				"that is not allowed is an error at plan. Fields that decide what is trusted, such as `git_repository.verify`, need to be " +
				"allowed in every workspace.",
		}),
		textAttribute(&w.LeastRender, Attribute{
			Allowed: Renderings[:len(Renderings)-1], // the strongest is not weaker than any
			Meaning: "The weakest `render` that the team's deployment targets may set on hosts whose cluster type has a " +
				"stronger one; they then escape rules for final objects. Unset: `render` of a cluster type can be strengthened only.",
		}),
		labelsAttribute(&w.Labels),
	}
}).checkedBy(func(o *ObjectReader, w *Workspace) {
	checkQuantityNames(o, "resource_quota", checkQuotaName)
	if w.NetworkPolicy == "none" {
		w.NetworkPolicy = ""
	}
})

var limitKind = defineKind(Table{
	Name:    "limit",
	Meaning: "One limit of a LimitRange, by resources such as `cpu`.",
}, func(l *Limit) []row {
	return []row{
		textAttribute(&l.Type, Attribute{Default: limitTypes[0], Allowed: limitTypes, Meaning: "The kind of objects that are limited."}),
		quantitiesAttribute(&l.Default, Attribute{Meaning: "Limits of containers that set none, for `Container`."}),
		quantitiesAttribute(&l.DefaultRequest, Attribute{Meaning: "Requests of containers that set none, for `Container`."}),
		quantitiesAttribute(&l.Max, Attribute{Meaning: "The most that one may ask for."}),
		quantitiesAttribute(&l.Min, Attribute{Meaning: "The least that one may ask for."}),
		quantitiesAttribute(&l.MaxLimitRequestRatio, Attribute{Meaning: "How many times its request a limit may be."}),
	}
}).checkedBy(func(o *ObjectReader, l *Limit) {
	for i := range o.table.Attributes {
		a := &o.table.Attributes[i]
		if a.Type == QuantitiesType {
			checkQuantityNames(o, a.Name, checkLimitName(l.Type))
		}
	}
	if l.Type == "Pod" || l.Type == "PersistentVolumeClaim" {
		for _, name := range []string{"default", "default_request"} {
			if o.fields[name] != nil {
				o.Report(name, "is for limits of type Container")
			}
		}
	}
})

var argocdProjectKind = defineKind(Table{
	Name:    "Argo CD project",
	Meaning: "The Argo CD project of a workspace.",
}, func(p *ArgocdProject) []row {
	return []row{
		namedAttribute(&p.Name, subdomainForm, "Name of the project, a DNS subdomain."),
		storedAttribute(&p.Render, Attribute{
			Type: BoolType, Default: false, Meaning: "Flotilla writes the AppProject, too.",
		}, (*ObjectReader).Bool),
	}
})

func decodeWorkspace(d *decoder, o *ObjectReader) belonging {
	workspace := workspaceKind.decode(o)
	EachText(o, "environments", d.checkEnvironment)
	o.Finish()
	d.register("workspaces", workspace.Name, o.path)
	d.Fleet.Workspaces = append(d.Fleet.Workspaces, workspace)
	return inEnvironment
}

func readArgocdProject(o *ObjectReader, attribute string) *ArgocdProject {
	project := ArgocdProject{}
	if _, isObject := o.fields[attribute].(map[string]any); isObject {
		project = ReadObject(o, attribute, argocdProjectKind.decode)
	} else {
		project.Name = readChecked(o, attribute, subdomainForm.check)
	}
	if project.Render && project.Name == "default" {
		o.Report(attribute, `"default" is Argo CD's own project, which all Applications may use: choose another name to have one rendered`)
	}
	if project.Name == "" {
		return nil
	}
	return &project
}

// allowedAttribute allows nothing by an empty list; nil is not set.
func allowedAttribute(field *[]string, check func(string) string, a Attribute) row {
	a.Type = TextsType
	return storedAttribute(field, a, func(o *ObjectReader, name string) []string {
		texts := readCheckedTexts(o, name, check)
		if _, isSet := o.fields[name].([]any); isSet && texts == nil {
			return []string{}
		}
		return texts
	})
}

func checkSecretName(name string) string {
	if reconciler.IsAgents(name) {
		return "is a Secret of the agent itself, which no workload can use: give the team one of its own"
	}
	return subdomainForm.check(name)
}

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

func readQuantities(o *ObjectReader, attribute string) map[string]string {
	return readMap(o, attribute, func(element any) (text, problem string) {
		if number, isNumber := element.(json.Number); isNumber {
			text = string(number)
		} else if text, problem = readScalar(o, element); problem != "" || element == nil || text == unknownText {
			return text, problem
		}
		if _, err := resource.ParseQuantity(text); err != nil {
			problem = fmt.Sprintf(`%q is not a quantity such as "500m", "2" or "4Gi"`, text)
		}
		return text, problem
	})
}

func checkQuantityNames(o *ObjectReader, attribute string, check func(name string) string) {
	given, _ := o.fields[attribute].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if problem := check(name); problem != "" {
			o.reader.Report(o.path.Attribute(attribute).Key(name), "%s", problem)
		}
	}
}

// https://kubernetes.io/docs/concepts/policy/resource-quotas/
var quotaResources = []string{
	"configmaps", "cpu", "ephemeral-storage", "limits.cpu", "limits.ephemeral-storage", "limits.memory", "memory",
	"persistentvolumeclaims", "pods", "replicationcontrollers", "requests.cpu", "requests.ephemeral-storage", "requests.memory",
	"requests.storage", "resourcequotas", "secrets", "services", "services.loadbalancers", "services.nodeports",
}

// countedResources are for "count/<name>", by group.
var countedResources = map[string][]string{
	"": {
		"configmaps", "endpoints", "events", "limitranges", "persistentvolumeclaims", "pods", "podtemplates",
		"replicationcontrollers", "resourcequotas", "secrets", "serviceaccounts", "services",
	},
	"apps":                      {"controllerrevisions", "daemonsets", "deployments", "replicasets", "statefulsets"},
	"autoscaling":               {"horizontalpodautoscalers"},
	"batch":                     {"cronjobs", "jobs"},
	"coordination.k8s.io":       {"leases"},
	"discovery.k8s.io":          {"endpointslices"},
	"networking.k8s.io":         {"ingresses", "networkpolicies"},
	"policy":                    {"poddisruptionbudgets"},
	"rbac.authorization.k8s.io": {"rolebindings", "roles"},
}

// checkQuotaName refuses names that Kubernetes accepts although they limit nothing.
func checkQuotaName(name string) string {
	before, after, hasSlash := strings.Cut(name, "/")
	switch {
	case before == "count" && hasSlash:
		return checkCounted(name, after)
	case CheckLabelKey(name) != "":
		return fmt.Sprintf(`%q is not a resource such as "limits.cpu", "pods" or "count/deployments.apps"`, name)
	case !hasSlash && !slices.Contains(quotaResources, name) && !isHugePages(strings.TrimPrefix(name, "requests.")):
		return fmt.Sprintf("%q is not a resource that a quota can limit%s", name, DidYouMean(name, append(countedNames(), quotaResources...)))
	case !hasSlash:
	case strings.HasSuffix(before, ".storageclass.storage.k8s.io") || strings.HasSuffix(before, ".volumeattributesclass.storage.k8s.io"):
		if of := []string{"persistentvolumeclaims", "requests.storage"}; !slices.Contains(of, after) {
			return fmt.Sprintf("%q is not a resource of a class of storage, which are %s%s", name, strings.Join(of, ", "), DidYouMean(after, of))
		}
	case !strings.HasPrefix(before, "requests."):
		return fmt.Sprintf(`%q has no effect: an extended resource is written "requests.%s"`, name, strings.TrimPrefix(name, "limits."))
	}
	return ""
}

func checkCounted(name, counted string) string {
	kind, group, _ := strings.Cut(counted, ".")
	if known, isKubernetes := countedResources[group]; isKubernetes && !slices.Contains(known, kind) {
		return fmt.Sprintf("%q has no effect: Kubernetes has no such resource%s", name, DidYouMean(name, countedNames()))
	}
	if CheckSubdomainName(counted) != "" {
		return fmt.Sprintf(`%q is not a resource such as "count/deployments.apps"`, name)
	}
	return ""
}

func countedNames() []string {
	var names []string
	for _, group := range slices.Sorted(maps.Keys(countedResources)) {
		for _, kind := range countedResources[group] {
			names = append(names, strings.TrimSuffix("count/"+kind+"."+group, "."))
		}
	}
	return names
}

func isHugePages(name string) bool {
	return strings.HasPrefix(name, "hugepages-")
}

func checkLimitName(limitType string) func(name string) string {
	known := []string{"cpu", "ephemeral-storage", "memory"}
	if limitType == "PersistentVolumeClaim" {
		known = []string{"storage"}
	}
	return func(name string) string {
		switch {
		case CheckLabelKey(name) != "":
			return fmt.Sprintf(`%q is not a resource such as "cpu", "memory" or "storage"`, name)
		case strings.Contains(name, "/") || isHugePages(name) || slices.Contains(known, name) || !slices.Contains(limitTypes, limitType):
			return ""
		}
		return fmt.Sprintf("%q is not a resource that a limit of type %s can be about, which are %s%s",
			name, limitType, strings.Join(known, ", "), DidYouMean(name, known))
	}
}
