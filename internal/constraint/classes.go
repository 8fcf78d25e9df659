package constraint

import (
	"slices"

	"github.com/google/cel-go/cel"
)

// class is a type of object in rules. Its fields are known to the compiler, so that a rule with another name does not compile.
type class struct {
	name   string // in messages of the compiler
	fields []field
	index  map[string]int
}

// field is one field of a class. Every object has all fields; has() says whether one is not empty.
type field struct {
	name string
	kind *cel.Type
	doc  string
}

func newClass(name string, fields ...field) *class {
	c := &class{name: name, fields: fields, index: make(map[string]int, len(fields))}
	for i, field := range fields {
		c.index[field.name] = i
	}
	return c
}

func (c *class) kind() *cel.Type { return cel.ObjectType(c.name) }

func (c *class) names() []string {
	names := make([]string, len(c.fields))
	for i, field := range c.fields {
		names[i] = field.name
	}
	slices.Sort(names)
	return names
}

// The numbers of the fields of each class, in the order of its table.
const (
	assignmentKey = iota
	assignmentHost
	assignmentDeploymentTarget
	assignmentNamespace
	assignmentPolicies
	assignmentRequires
	assignmentConfigContainers
	assignmentConfigVersion
	assignmentFields
)

const (
	hostName = iota
	hostClusterType
	hostCluster
	hostLabels
	hostTaints
	hostReconciler
	hostNamespaceService
	hostConfigType
	hostParameters
	hostClusters
	hostTargets
	hostFields
)

const (
	targetName = iota
	targetShortName
	targetWorkload
	targetWorkspace
	targetLabels
	targetNamespace
	targetConfigAs
	targetRequires
	targetManifests
	targetHosts
	targetFields
)

const (
	workspaceName = iota
	workspaceLabels
	workspaceContributorGroups
	workspaceReaderGroups
	workspaceResourceQuota
	workspaceLimitRange
	workspaceNetworkPolicy
	workspaceServiceAccount
	workspaceArgocdProject
	workspaceTargets
	workspaceFields
)

const (
	manifestsStorage = iota
	manifestsRepo
	manifestsBranch
	manifestsTag
	manifestsCommit
	manifestsPath
	manifestsChart
	manifestsVersion
	manifestsType
	manifestsParameters
	manifestsFields
)

const (
	taintKey = iota
	taintValue
	taintEffect
	taintFields
)

const (
	limitType = iota
	limitDefault
	limitDefaultRequest
	limitMax
	limitMin
	limitMaxRatio
	limitFields
)

var (
	texts   = cel.ListType(cel.StringType)
	textMap = cel.MapType(cel.StringType, cel.StringType)
	free    = cel.MapType(cel.StringType, cel.DynType)
)

// vocabulary is all variables of rules, with their names and classes.
type vocabulary struct {
	assignment, host, target, workspace, manifests, taint, limit *class
	all                                                          map[string]*class
	variables                                                    []variable
}

// variable is a variable of rules.
type variable struct {
	name string
	kind *cel.Type
	doc  string
}

func newVocabulary() *vocabulary {
	v := &vocabulary{}
	v.taint = newClass("Taint",
		field{"key", cel.StringType, "its key"},
		field{"value", cel.StringType, "its value, or empty"},
		field{"effect", cel.StringType, "`NoSchedule`"},
	)
	v.limit = newClass("Limit",
		field{"type", cel.StringType, "`Container`, `Pod` or `PersistentVolumeClaim`"},
		field{"default", textMap, "limits of who says none, by resource"},
		field{"default_request", textMap, "requests of who says none, by resource"},
		field{"max", textMap, "at most, by resource"},
		field{"min", textMap, "at least, by resource"},
		field{"max_limit_request_ratio", textMap, "limit by request at most, by resource"},
	)
	v.manifests = newClass("Manifests",
		field{"storage", cel.StringType, "`git`, `helm` or `oci`"},
		field{"repo", cel.StringType, "URL of the repository"},
		field{"branch", cel.StringType, "branch, or empty"},
		field{"tag", cel.StringType, "tag, or empty"},
		field{"commit", cel.StringType, "commit, or empty"},
		field{"path", cel.StringType, "folder in the repository, or empty"},
		field{"chart", cel.StringType, "name of the chart, or empty"},
		field{"version", cel.StringType, "version of the chart, or empty"},
		field{"type", cel.StringType, "the manifests' `type`, or empty"},
		field{"parameters", free, "the manifests' `parameters`"},
	)
	v.host = newClass("Host",
		field{"name", cel.StringType, "the cluster type's name, or `clusters/<cluster>`: its folder"},
		field{"cluster_type", cel.StringType, "name of the cluster type; of a cluster, of its type"},
		field{"cluster", cel.StringType, "name of the cluster; empty where the host is a cluster type"},
		field{"labels", textMap, "its labels; of a cluster also those of its type, its own winning"},
		field{"taints", cel.ListType(v.taint.kind()), "its taints; of a cluster also those of its type"},
		field{"reconciler", cel.StringType, "the cluster type's `reconciler`"},
		field{"namespace_service", cel.StringType, "the cluster type's `namespace_service`"},
		field{"config_type", cel.StringType, "the cluster type's `config_type`"},
		field{"parameters", free, "the cluster type's `parameters`"},
		field{"clusters", texts, "names of the clusters that it stands for: all of the type, or the one"},
		field{"targets", texts, "full names of the deployment targets that are assigned to it"},
	)
	v.target = newClass("DeploymentTarget",
		field{"name", cel.StringType, "full name, `<workload>-<target>`"},
		field{"short_name", cel.StringType, "name within its workload"},
		field{"workload", cel.StringType, "name of its workload"},
		field{"workspace", cel.StringType, "name of its workspace"},
		field{"labels", textMap, "its own and its workload's labels, its own winning"},
		field{"namespace", cel.StringType, "the namespace that it sets, or empty"},
		field{"config_as", texts, "in which forms it gets its configuration; `[\"configmap\"]` by default"},
		field{"requires", texts, "names of the workloads that its workload requires"},
		field{"manifests", v.manifests.kind(), "where its manifests are"},
		field{"hosts", cel.ListType(v.host.kind()), "the hosts that it is assigned to, by name"},
	)
	v.workspace = newClass("Workspace",
		field{"name", cel.StringType, "its name"},
		field{"labels", textMap, "its labels"},
		field{"contributor_groups", texts, "the groups that may change its namespaces"},
		field{"reader_groups", texts, "the groups that may read them"},
		field{"resource_quota", textMap, "quantities by resource"},
		field{"limit_range", cel.ListType(v.limit.kind()), "its limits"},
		field{"network_policy", cel.StringType, "`none` or `isolated`"},
		field{"service_account", cel.StringType, "whom reconcilers impersonate, or empty"},
		field{"argocd_project", cel.StringType, "name of its Argo CD project, or empty"},
		field{"targets", texts, "full names of its deployment targets"},
	)
	v.assignment = newClass("Assignment",
		field{"key", cel.StringType, "`<host>/<deployment target>`: its folder"},
		field{"host", cel.StringType, "name of its host"},
		field{"deployment_target", cel.StringType, "full name of its deployment target"},
		field{"namespace", cel.StringType, "its namespace on the clusters"},
		field{"policies", texts, "names of the target policies that made it"},
		field{"requires", texts, "full names of the deployment targets on the host that it requires"},
		field{"config_containers", texts, "names of the config containers that reach it, in the order of merging"},
		field{"config_version", cel.StringType, "version of its snapshot"},
	)
	v.all = map[string]*class{}
	for _, c := range []*class{v.taint, v.limit, v.manifests, v.host, v.target, v.workspace, v.assignment} {
		v.all[c.name] = c
	}
	v.variables = []variable{
		{"environment", cel.StringType, "name of the fleet's environment"},
		{"workspace", v.workspace.kind(), "a workspace; of a deployment target, the one that it belongs to"},
		{"host", v.host.kind(), "a cluster type, or one cluster"},
		{"target", v.target.kind(), "a deployment target"},
		{"assignment", v.assignment.kind(), "a deployment target on a host"},
		{"config", free, "the values of the assignment's snapshot"},
		{"object", free, "a Kubernetes object of the assignment's folder"},
	}
	return v
}
