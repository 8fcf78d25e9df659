package fleet

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
)

// Each function decodes one object with the attributes of its kind's resource, and tells whether it belongs to the
// fleet's environment.

func decodeWorkspace(d *decoder, o *ObjectReader) belonging {
	workspace := Workspace{
		Name:              readName(o, formCheck(o, "name")),
		ContributorGroups: readSortedTexts(o, "contributor_groups"),
		ReaderGroups:      readSortedTexts(o, "reader_groups"),
		Environments:      readSortedTexts(o, "environments"),
		ResourceQuota:     readQuantities(o, "resource_quota", checkQuotaName),
		NetworkPolicy:     readOneOf(o, "network_policy"),
		LimitRange:        readLimitRange(o, "limit_range"),
		ServiceAccount:    readChecked(o, "service_account", formCheck(o, "service_account")),
		ArgocdProject:     readArgocdProject(o, "argocd_project"),
		Secrets:           readAllowed(o, "secrets", func(name string) string { return checkSecretName(o, name) }),
		Sources:           readAllowed(o, "sources", checkSourcePrefix),
		Parameters:        readAllowed(o, "parameters", checkParameterPath),
		LeastRender:       readOneOfOrNone(o, "least_render"),
		Labels:            readLabels(o, "labels"),
	}
	if workspace.NetworkPolicy == "none" {
		workspace.NetworkPolicy = ""
	}
	EachText(o, "environments", d.checkEnvironment)
	o.Finish()
	d.register("workspaces", workspace.Name, o.path)
	d.Fleet.Workspaces = append(d.Fleet.Workspaces, workspace)
	return inEnvironment
}

func decodeClusterType(d *decoder, o *ObjectReader) belonging {
	clusterType := ClusterType{
		Name:             readName(o, checkClusterTypeName),
		Formerly:         readTexts(o, "formerly"),
		Labels:           readLabels(o, "labels"),
		Taints:           readTaints(o, "taints"),
		Reconciler:       readTextOrDefault(o, "reconciler"),
		NamespaceService: readTextOrDefault(o, "namespace_service"),
		ConfigType:       readTextOrDefault(o, "config_type"),
		Description:      readText(o, "description"),
		Parameters:       readAnyObject(o, "parameters"),
		SecretService:    readText(o, "secret_service"),
		SecretStores:     readSecretStores(o, "secret_stores"),
		Decryption:       readDecryption(o, "decryption"),

		Render:            readOneOfOrNone(o, "render"),
		KubernetesVersion: readChecked(o, "kubernetes_version", formCheck(o, "kubernetes_version")),
		APIVersions:       readCheckedTexts(o, "api_versions", formCheck(o, "api_versions")),
	}
	if clusterType.Render == RenderPointers {
		clusterType.Render = "" // the default
	}
	if of := reconciler.Named(clusterType.Reconciler); clusterType.Decryption != nil && of != nil && of.NoSOPS != "" {
		o.Report("decryption", "cannot be set: %s", of.NoSOPS)
	}
	allowed, allowedKnown := readAllowPlain(o, "allow_plain")
	belongs, isCertain := keep(d, o, "cluster_types", &d.Fleet.ClusterTypes, clusterType, clusterType.Name)
	if belongs != notInEnvironment && allowedKnown {
		d.checkCommitted(o, allowed, "parameters")
		d.checkCommitted(o, allowed, "secret_stores")
		d.checkCommitted(o, allowed, "description")
	}
	if isCertain {
		d.noteFormerNames(o, &clusterType)
		d.referToTemplate(o.path.Attribute("reconciler"), "reconciler", clusterType.Reconciler)
		d.referToTemplate(o.path.Attribute("namespace_service"), "namespace", clusterType.NamespaceService)
		d.referToTemplate(o.path.Attribute("config_type"), "config", clusterType.ConfigType)
		d.referToTemplate(o.path.Attribute("secret_service"), "secret", clusterType.SecretService)
	}
	return belongs
}

// checkClusterTypeName keeps cluster types out of the folder of clusters.
func checkClusterTypeName(name string) string {
	if name == "clusters" {
		return `is the folder of all clusters in the GitOps repository: choose another name`
	}
	return clusterTypeTable.find("name").Form.check(name)
}

func decodeCluster(d *decoder, o *ObjectReader) belonging {
	cluster := Cluster{
		Name:        readName(o, formCheck(o, "name")),
		ClusterType: readRequired(o, "cluster_type"),
		Labels:      readLabels(o, "labels"),
		Taints:      readTaints(o, "taints"),
		Description: readText(o, "description"),
	}
	belongs, isCertain := keep(d, o, "clusters", &d.Fleet.Clusters, cluster, cluster.Name)
	if isCertain {
		d.refer(o.path.Attribute("cluster_type"), "cluster_types", cluster.ClusterType)
	}
	return belongs
}

// decodeWorkload decodes a workload. It belongs to the environment if a deployment target does.
func decodeWorkload(d *decoder, o *ObjectReader) belonging {
	workload := Workload{
		Name:      readName(o, formCheck(o, "name")),
		Workspace: readRequired(o, "workspace"),
		Labels:    readLabels(o, "labels"),
		Requires:  readSortedTexts(o, "requires"),
	}
	belongs, unknownTarget := notInEnvironment, false
	var certain []localTarget
	targets, path := o.Value("deployment_targets")
	switch targets := targets.(type) {
	case nil:
	case Unknown:
		belongs, unknownTarget = maybeInEnvironment, true
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(targets)) {
			path := path.Key(name)
			target, targetBelongs, isUnknown := decodeDeploymentTarget(d, tableIn(o, "deployment_targets"), path, name, targets[name])
			belongs = max(belongs, targetBelongs)
			switch targetBelongs {
			case notInEnvironment:
				continue
			case maybeInEnvironment:
				d.incomplete["workloads"] = true
			case inEnvironment:
				certain = append(certain, localTarget{path, name})
			}
			unknownTarget = unknownTarget || isUnknown
			if target != nil {
				workload.DeploymentTargets = append(workload.DeploymentTargets, *target)
			}
		}
	default:
		o.Report("deployment_targets", "must be a map of objects, not %s", kindOf(targets))
	}
	o.Finish()
	d.register("workloads", workload.Name, o.path)
	d.workloadNames = append(d.workloadNames, workload.Name)
	if workload.Name == unknownText {
		d.incomplete["workloads"] = true
	}
	if belongs == notInEnvironment {
		return belongs
	}
	o.unknown = o.unknown || unknownTarget
	d.Fleet.Workloads = append(d.Fleet.Workloads, workload)
	if belongs == inEnvironment {
		d.refer(o.path.Attribute("workspace"), "workspaces", workload.Workspace)
		d.workloads = append(d.workloads, localWorkload{
			path: o.path, name: workload.Name, workspace: workload.Workspace, requires: workload.Requires, targets: certain,
		})
	}
	return belongs
}

// decodeDeploymentTarget returns nil for an unknown target.
func decodeDeploymentTarget(d *decoder, table *Table,
	path *Path,
	name string,
	value any,
) (target *DeploymentTarget, belongs belonging, isUnknown bool) {
	if problem := workloadTable.find("deployment_targets").Keys.check(name); problem != "" {
		d.Report(path, "%q %s", name, problem)
	}
	o, isUnknown := d.object(table, path, value)
	if isUnknown {
		return nil, maybeInEnvironment, true
	}
	if o == nil {
		return nil, notInEnvironment, false
	}
	target = &DeploymentTarget{
		Name:      name,
		Labels:    readLabels(o, "labels"),
		Namespace: readChecked(o, "namespace", func(name string) string { return checkNamespace(o, name) }),
	}
	if environment := o.fields["environment"]; environment == nil || environment == "" {
		o.Report("environment", "is required")
	} else if text, ok := environment.(string); ok {
		d.targetEnvironments[text] = true
	}
	belongs = d.belongs(o)
	readTargetManifests(o, target, readManifests)
	readTargetForms(o, target)
	readTargetRendering(o, target)
	allowed, allowedKnown := readAllowPlain(o, "allow_plain")
	readBesideManifests(o, target, func() {
		if target.Manifests.AllowPlain = allowed; !allowedKnown {
			o.noteUnknown()
		}
	})
	if belongs != notInEnvironment && allowedKnown {
		d.checkCommitted(o, allowed, "manifests", "parameters")
	}
	if schema := readSchema(o, "config_schema"); schema != "" {
		target.ConfigSchemas = []string{schema}
	}
	o.Finish()
	return target, belongs, o.unknown
}

// checkNamespace refuses namespaces of Kubernetes and of agents: the quota, limits and network policies of the workspace
// would apply to them.
func checkNamespace(o *ObjectReader, name string) string {
	switch agent := reconciler.InNamespace(name); {
	case agent != nil:
		return fmt.Sprintf(
			"is the namespace of %s itself, which a workspace's quota and network policy could stop: choose another namespace",
			agent.Product,
		)
	case strings.HasPrefix(name, "kube-"):
		return "is a namespace of Kubernetes itself, which a workspace's quota and network policy could stop: choose another namespace"
	}
	return formCheck(o, "namespace")(name)
}

func decodeExplicitAssignment(d *decoder, o *ObjectReader) belonging {
	assignment := ExplicitAssignment{
		ClusterType:      readText(o, "cluster_type"),
		Cluster:          readText(o, "cluster"),
		DeploymentTarget: readRequired(o, "deployment_target"),
	}
	o.Finish()
	d.Fleet.Assignments = append(d.Fleet.Assignments, assignment)
	ofType, ofCluster := assignment.ClusterType != "", assignment.Cluster != ""
	if ofType == ofCluster && (!ofType || isSet(assignment.ClusterType) && isSet(assignment.Cluster)) {
		o.Report("cluster_type", "give either cluster_type or cluster")
		return inEnvironment
	}
	d.refer(o.path.Attribute("cluster_type"), "cluster_types", assignment.ClusterType)
	d.refer(o.path.Attribute("cluster"), "clusters", assignment.Cluster)
	d.refer(o.path.Attribute("deployment_target"), deploymentTargets, assignment.DeploymentTarget)
	if !o.unknown {
		d.registerAt(objectKey{"assignments", assignment.key()}, o.path, o.path)
	}
	return inEnvironment
}

func (p ExplicitAssignment) key() string {
	if p.Cluster != "" {
		return "clusters/" + p.Cluster + "/" + p.DeploymentTarget
	}
	return p.ClusterType + "/" + p.DeploymentTarget
}
