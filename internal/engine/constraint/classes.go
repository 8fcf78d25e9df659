package constraint

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/expression"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/hydrate"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/pods"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
)

// class is an object type. The compiler refuses other fields.
type class struct {
	name   string // in compiler messages
	kind   *cel.Type
	fields []field[any]
	index  map[string]int
}

// field is a field of a class. Objects have all fields; has() reports whether one is not empty.
type field[T any] struct {
	name string
	kind *cel.Type
	doc  string
	of   func(subject T) any // returns a [ref.Val] or a value for the adapter
}

func text[T any](name, doc string, of func(T) any) field[T] {
	return field[T]{name, cel.StringType, doc, of}
}

func newClass[T any](name string, fields []field[T]) *class {
	c := &class{name: name, kind: cel.ObjectType(name), fields: make([]field[any], len(fields)), index: make(map[string]int, len(fields))}
	for i, one := range fields {
		c.index[one.name] = i
		c.fields[i] = field[any]{one.name, one.kind, one.doc, func(subject any) any { return one.of(subject.(T)) }}
	}
	return c
}

func (c *class) names() []string {
	names := make([]string, len(c.fields))
	for i, field := range c.fields {
		names[i] = field.name
	}
	slices.Sort(names)
	return names
}

type (
	hostSubject struct {
		*schedule.Host
		taints            []ref.Val
		clusters, targets []string
	}
	targetSubject struct {
		*schedule.Target
		manifests ref.Val
		hosts     []ref.Val
	}
	workspaceSubject struct {
		*fleet.Workspace
		limits  []ref.Val
		targets []string
	}
	podSubject struct {
		*pods.Pod
		kubernetesVersion string
	}
	// assignmentSubject is created for each rule, so its fields avoid the adapter.
	assignmentSubject struct {
		*schedule.Assignment
		snapshot *hydrate.Snapshot
		values   *subjectValues
	}
)

var (
	texts   = cel.ListType(cel.StringType)
	textMap = cel.MapType(cel.StringType, cel.StringType)
	free    = cel.MapType(cel.StringType, cel.DynType)
)

type vocabulary struct {
	assignment, host, target, workspace, manifests, taint, limit, secret, pod *class
	all                                                                       map[string]*class
	variables                                                                 []expression.Variable
}

func (h hostSubject) clusterName() string {
	if h.Cluster == nil {
		return ""
	}
	return h.Cluster.Name
}

func (t targetSubject) pending() ref.Val {
	return newUnknown(fmt.Sprintf("the manifests of deployment target %q", t.Name))
}

func (t targetSubject) configAs() any {
	switch target := t.Target.Target; {
	case target.ManifestsPending:
		return t.pending()
	case len(target.Manifests.ConfigAs) == 0:
		return []string{"configmap"}
	default:
		return []string(target.Manifests.ConfigAs)
	}
}

func (w workspaceSubject) project() string {
	if w.ArgocdProject == nil {
		return ""
	}
	return w.ArgocdProject.Name
}

func (a assignmentSubject) containers() any {
	if a.snapshot == nil {
		return newUnknown("configuration values")
	}
	return a.snapshot.Containers()
}

func (a assignmentSubject) version() any {
	if a.snapshot == nil || !a.snapshot.Known {
		return a.values.unknownConfig(a.snapshot)
	}
	return a.snapshot.Version
}

func newVocabulary() *vocabulary {
	v := &vocabulary{}
	v.taint = newTaintClass()
	v.limit = newLimitClass()
	v.manifests = newManifestsClass()
	v.host = newHostClass(v.taint)
	v.target = newTargetClass(v.manifests, v.host)
	v.workspace = newWorkspaceClass(v.limit)
	v.assignment = newAssignmentClass()
	v.secret = newSecretClass()
	v.pod = newPodClass()
	v.all = map[string]*class{}
	for _, c := range []*class{v.taint, v.limit, v.manifests, v.host, v.target, v.workspace, v.assignment, v.secret, v.pod} {
		v.all[c.name] = c
	}
	v.variables = v.defineVariables()
	return v
}

func (v *vocabulary) defineVariables() []expression.Variable {
	return []expression.Variable{
		{Name: "environment", Type: cel.StringType, Meaning: "name of the fleet's environment"},
		{Name: "workspace", Type: v.workspace.kind, Meaning: "a workspace; of a deployment target, the one that it belongs to"},
		{Name: "host", Type: v.host.kind, Meaning: "a cluster type, or one cluster"},
		{Name: "target", Type: v.target.kind, Meaning: "a deployment target"},
		{Name: "assignment", Type: v.assignment.kind, Meaning: "a deployment target on a host"},
		{Name: "config", Type: free, Meaning: "the values of the assignment's snapshot"},
		{
			Name: "secrets", Type: cel.MapType(cel.StringType, v.secret.kind),
			Meaning: "the references to secrets of the assignment's snapshot, by key",
		},
		{Name: "object", Type: free, Meaning: "a Kubernetes object of the assignment's folder, or a final object that its manifests render to"},
		{Name: "pods", Type: cel.ListType(v.pod.kind), Meaning: "the pods that the object is or makes, whatever its kind"},
		{Name: "containers", Type: cel.ListType(free), Meaning: "all containers of these pods: also init containers and ephemeral ones"},
		{Name: "images", Type: texts, Meaning: "all images that these pods pull, for containers and as volumes"},
		{
			Name: "made_by", Type: cel.StringType,
			Meaning: "what made the object: `flotilla`, or of final objects `chart`, `kustomization` or `manifest`",
		},
	}
}

func newTaintClass() *class {
	return newClass("Taint", []field[*fleet.Taint]{
		text("key", "its key", func(t *fleet.Taint) any { return t.Key }),
		text("value", "its value, or empty", func(t *fleet.Taint) any { return t.Value }),
		text("effect", "`NoSchedule`", func(t *fleet.Taint) any { return t.Effect }),
	})
}

func newLimitClass() *class {
	return newClass("Limit", []field[*fleet.Limit]{
		text("type", "`Container`, `Pod` or `PersistentVolumeClaim`", func(l *fleet.Limit) any { return l.Type }),
		{"default", textMap, "limits of containers that set none, by resource", func(l *fleet.Limit) any { return l.Default }},
		{"default_request", textMap, "requests of containers that set none, by resource", func(l *fleet.Limit) any { return l.DefaultRequest }},
		{"max", textMap, "at most, by resource", func(l *fleet.Limit) any { return l.Max }},
		{"min", textMap, "at least, by resource", func(l *fleet.Limit) any { return l.Min }},
		{"max_limit_request_ratio", textMap, "limit by request at most, by resource", func(l *fleet.Limit) any { return l.MaxLimitRequestRatio }},
	})
}

func newManifestsClass() *class {
	return newClass("Manifests", []field[*fleet.Manifests]{
		text("storage", "`git`, `helm` or `oci`", func(m *fleet.Manifests) any { return m.Storage }),
		text("repo", "URL of the repository", func(m *fleet.Manifests) any { return m.Repo }),
		text("branch", "branch, or empty", func(m *fleet.Manifests) any { return m.Branch }),
		text("tag", "tag, or empty", func(m *fleet.Manifests) any { return m.Tag }),
		text("commit", "commit, also of a pin, or empty", func(m *fleet.Manifests) any { return cmp.Or(m.Pin.Commit, m.Commit) }),
		text("path", "folder in the repository, or empty", func(m *fleet.Manifests) any { return m.Path }),
		text("chart", "name of the chart, or empty", func(m *fleet.Manifests) any { return m.Chart }),
		text("version", "version of the chart, also of a pin, or empty",
			func(m *fleet.Manifests) any { return cmp.Or(m.Pin.Version, m.Version) }),
		text("digest", "digest, also of a pin, or empty", func(m *fleet.Manifests) any { return cmp.Or(m.Pin.Digest, m.Digest) }),
		text("type", "the manifests' `type`, or empty", func(m *fleet.Manifests) any { return m.Type }),
		{"parameters", free, "the manifests' `parameters`", func(m *fleet.Manifests) any { return m.Parameters }},
	})
}

func newHostClass(taint *class) *class {
	return newClass("Host", []field[hostSubject]{
		text("name", "the cluster type's name, or `clusters/<cluster>`: its folder", func(h hostSubject) any { return h.Name }),
		text("cluster_type", "name of the cluster type; of a cluster, of its type", func(h hostSubject) any { return h.ClusterType.Name }),
		text("cluster", "name of the cluster; empty where the host is a cluster type", func(h hostSubject) any { return h.clusterName() }),
		{"labels", textMap, "its labels; of a cluster also those of its type, its own winning",
			func(h hostSubject) any { return map[string]string(h.Labels) }},
		{"taints", cel.ListType(taint.kind), "its taints; of a cluster also those of its type", func(h hostSubject) any { return h.taints }},
		text("reconciler", "the cluster type's `reconciler`", func(h hostSubject) any { return h.ClusterType.Reconciler }),
		text("namespace_service", "the cluster type's `namespace_service`", func(h hostSubject) any { return h.ClusterType.NamespaceService }),
		text("config_type", "the cluster type's `config_type`", func(h hostSubject) any { return h.ClusterType.ConfigType }),
		text("kubernetes_version", "the cluster type's `kubernetes_version`, or empty",
			func(h hostSubject) any { return h.ClusterType.KubernetesVersion }),
		{"parameters", free, "the cluster type's `parameters`", func(h hostSubject) any { return h.ClusterType.Parameters }},
		{"clusters", texts, "names of the clusters that it stands for: all of the type, or the one",
			func(h hostSubject) any { return h.clusters }},
		{"targets", texts, "full names of the deployment targets that are assigned to it", func(h hostSubject) any { return h.targets }},
	})
}

func newTargetClass(manifests, host *class) *class {
	return newClass("DeploymentTarget", []field[targetSubject]{
		text("name", "full name, `<workload>-<target>`", func(t targetSubject) any { return t.Name }),
		text("short_name", "name within its workload", func(t targetSubject) any { return t.Target.Target.Name }),
		text("workload", "name of its workload", func(t targetSubject) any { return t.Workload.Name }),
		text("workspace", "name of its workspace", func(t targetSubject) any { return t.Workload.Workspace }),
		{"labels", textMap, "its own and its workload's labels, its own winning",
			func(t targetSubject) any { return map[string]string(t.Labels) }},
		text("namespace", "the namespace that it sets, or empty", func(t targetSubject) any { return t.Target.Target.Namespace }),
		{"config_as", texts, "in which forms it gets its configuration; `[\"configmap\"]` by default",
			func(t targetSubject) any { return t.configAs() }},
		{"requires", texts, "names of the workloads that its workload requires", func(t targetSubject) any { return t.Workload.Requires }},
		{"manifests", manifests.kind, "where its manifests are", func(t targetSubject) any { return t.manifests }},
		{"hosts", cel.ListType(host.kind), "the hosts that it is assigned to, by name", func(t targetSubject) any { return t.hosts }},
	})
}

func newWorkspaceClass(limit *class) *class {
	return newClass("Workspace", []field[workspaceSubject]{
		text("name", "its name", func(w workspaceSubject) any { return w.Name }),
		{"labels", textMap, "its labels", func(w workspaceSubject) any { return map[string]string(w.Labels) }},
		{"contributor_groups", texts, "the groups that may change its namespaces", func(w workspaceSubject) any { return w.ContributorGroups }},
		{"reader_groups", texts, "the groups that may read them", func(w workspaceSubject) any { return w.ReaderGroups }},
		{"resource_quota", textMap, "quantities by resource", func(w workspaceSubject) any { return w.ResourceQuota }},
		{"limit_range", cel.ListType(limit.kind), "its limits", func(w workspaceSubject) any { return w.limits }},
		text("network_policy", "`none` or `isolated`", func(w workspaceSubject) any { return cmp.Or(w.NetworkPolicy, "none") }),
		text("service_account", "whom reconcilers impersonate, or empty", func(w workspaceSubject) any { return w.ServiceAccount }),
		text("argocd_project", "name of its Argo CD project, or empty", func(w workspaceSubject) any { return w.project() }),
		{"targets", texts, "full names of its deployment targets", func(w workspaceSubject) any { return w.targets }},
	})
}

func newAssignmentClass() *class {
	return newClass("Assignment", []field[assignmentSubject]{
		text("key", "`<host>/<deployment target>`: its folder", func(a assignmentSubject) any { return types.String(a.Key()) }),
		text("host", "name of its host", func(a assignmentSubject) any { return types.String(a.Host.Name) }),
		text("deployment_target", "full name of its deployment target", func(a assignmentSubject) any { return types.String(a.Target.Name) }),
		text("namespace", "its namespace on the clusters", func(a assignmentSubject) any { return types.String(a.Namespace) }),
		{"policies", texts, "names of the target policies that made it",
			func(a assignmentSubject) any { return types.NewStringList(a.values.adapter, a.Policies) }},
		{"requires", texts, "full names of the deployment targets on the host that it requires",
			func(a assignmentSubject) any { return types.NewStringList(a.values.adapter, a.Requires) }},
		{"config_containers", texts, "names of the config containers that reach it, in the order of merging",
			func(a assignmentSubject) any { return a.containers() }},
		text("config_version", "version of its snapshot", func(a assignmentSubject) any { return a.version() }),
	})
}

func newSecretClass() *class {
	return newClass("SecretReference", []field[fleet.SecretReference]{
		text("store", "the store, as the fleet calls it", func(r fleet.SecretReference) any { return r.Store }),
		text("key", "name of the secret in the store", func(r fleet.SecretReference) any { return r.Key }),
		text("property", "part of the secret, or empty", func(r fleet.SecretReference) any { return r.Property }),
		text("version", "version of the secret, or empty", func(r fleet.SecretReference) any { return r.Version }),
	})
}

func newPodClass() *class {
	return newClass("Pod", []field[podSubject]{
		text("path", "where the object has the pod's spec: `spec.template.spec`", func(p podSubject) any { return p.Path }),
		{"metadata", free, "its metadata, or that of the template", func(p podSubject) any { return p.Metadata }},
		{"spec", free, "its spec", func(p podSubject) any { return p.Spec }},
		{"containers", cel.ListType(free), "its containers, of every list", func(p podSubject) any { return p.Containers }},
		{"baseline", texts, "what the Pod Security Standard *baseline* forbids of it, in Kubernetes' words", func(p podSubject) any {
			return p.Violations(pods.Baseline, p.kubernetesVersion)
		}},
		{"restricted", texts, "the same of the standard *restricted*", func(p podSubject) any {
			return p.Violations(pods.Restricted, p.kubernetesVersion)
		}},
	})
}
