package fleet

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Each function here decodes one object of a fleet's input, with the attributes of the resource of
// that kind, and says whether it belongs to the fleet's environment.

func (d *decoder) workspace(o *object) bool {
	workspace := Workspace{
		Name:              o.name(CheckLabelName),
		ContributorGroups: o.sortedTexts("contributor_groups"),
		ReaderGroups:      o.sortedTexts("reader_groups"),
		Environments:      o.sortedTexts("environments"),
		ResourceQuota:     o.textMap("resource_quota"),
		NetworkPolicy:     o.oneOf("network_policy", "", "none", "isolated"),
		Labels:            o.labels("labels"),
	}
	if workspace.NetworkPolicy == "none" {
		workspace.NetworkPolicy = ""
	}
	for i, environment := range o.list("environments") {
		if name, ok := environment.(string); ok {
			d.checkEnvironment(o.path.Attribute("environments").Index(i), name)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(workspace.ResourceQuota)) {
		if problem := checkQuantity(workspace.ResourceQuota[key]); problem != "" {
			d.report(o.path.Attribute("resource_quota").Key(key), "%s", problem)
		}
	}
	o.finish()
	d.register("workspaces", workspace.Name, o)
	d.fleet.Workspaces = append(d.fleet.Workspaces, workspace)
	return true
}

func (d *decoder) clusterType(o *object) bool {
	clusterType := ClusterType{
		Name:             o.name(checkClusterTypeName),
		Labels:           o.labels("labels"),
		Taints:           o.taints("taints"),
		Reconciler:       orDefault(o.text("reconciler"), DefaultReconciler),
		NamespaceService: orDefault(o.text("namespace_service"), DefaultNamespaceService),
		ConfigType:       orDefault(o.text("config_type"), DefaultConfigType),
		Description:      o.text("description"),
	}
	here := d.here(o)
	o.finish()
	if here {
		d.register("cluster_types", clusterType.Name, o)
		d.fleet.ClusterTypes = append(d.fleet.ClusterTypes, clusterType)
	}
	return here
}

// checkClusterTypeName keeps the folder of cluster types apart from that of clusters.
func checkClusterTypeName(name string) string {
	if name == "clusters" {
		return `is the folder of all clusters in the GitOps repository: choose another name`
	}
	return CheckLabelName(name)
}

func orDefault(text, byDefault string) string {
	if text == "" {
		return byDefault
	}
	return text
}

func (d *decoder) cluster(o *object) bool {
	cluster := Cluster{
		Name:        o.name(CheckLabelName),
		ClusterType: o.required("cluster_type"),
		Labels:      o.labels("labels"),
		Taints:      o.taints("taints"),
		Description: o.text("description"),
	}
	here := d.here(o)
	o.finish()
	if here {
		d.register("clusters", cluster.Name, o)
		d.fleet.Clusters = append(d.fleet.Clusters, cluster)
	}
	return here
}

func (d *decoder) workload(o *object) bool {
	workload := Workload{
		Name:      o.name(CheckLabelName),
		Workspace: o.required("workspace"),
		Labels:    o.labels("labels"),
		Requires:  o.sortedTexts("requires"),
	}
	if workload.Name == unknownText {
		d.incomplete["workloads"] = true
	}
	d.workloadNames = append(d.workloadNames, workload.Name)
	switch targets := o.value("deployment_targets").(type) {
	case nil, Unknown:
	case map[string]any:
		path := o.path.Attribute("deployment_targets")
		for _, name := range slices.Sorted(maps.Keys(targets)) {
			inner, isUnknown := d.object(path.Key(name), targets[name])
			o.unknown = o.unknown || isUnknown
			if inner == nil {
				continue
			}
			if problem := CheckLabelName(name); problem != "" {
				d.report(path.Key(name), "%q %s", name, problem)
			}
			target, here := d.deploymentTarget(name, inner)
			if here {
				o.unknown = o.unknown || inner.unknown
				workload.DeploymentTargets = append(workload.DeploymentTargets, target)
			}
		}
	default:
		o.report("deployment_targets", "must be a map of objects, not %s", kindOf(targets))
	}
	o.finish()
	d.register("workloads", workload.Name, o)
	if len(workload.DeploymentTargets) == 0 {
		// Without targets here only an unknown name, or unknown targets, could matter to this environment.
		o.unknown = workload.Name == unknownText || o.fields["deployment_targets"] == Unknown{}
		return o.unknown
	}
	d.fleet.Workloads = append(d.fleet.Workloads, workload)
	return true
}

func (d *decoder) deploymentTarget(name string, o *object) (DeploymentTarget, bool) {
	target := DeploymentTarget{Name: name, Labels: o.labels("labels")}
	if o.text("environment") == "" {
		o.report("environment", "is required")
	}
	here := d.here(o)
	if o.value("manifests") == nil {
		o.report("manifests", "is required")
	}
	o.attribute("manifests", func(m *object) { target.Manifests = m.manifests() })
	if schema := o.schema("config_schema"); schema != "" {
		target.ConfigSchemas = []string{schema}
	}
	o.finish()
	return target, here
}

// schema reads a JSON Schema: its text, or an object that stands for it.
func (o *object) schema(attribute string) string {
	switch value := o.value(attribute).(type) {
	case nil, Unknown:
		return ""
	case string:
		if _, err := ParseJSON(value); err != nil {
			o.report(attribute, "is not JSON: %s", err)
		}
		return value
	case map[string]any:
		if !IsKnown(value) {
			o.unknown = true
			return ""
		}
		text, err := CanonicalJSON(value)
		if err != nil {
			o.report(attribute, "%s", err)
		}
		return text
	default:
		o.report(attribute, "must be a JSON Schema, not %s", kindOf(value))
		return ""
	}
}

// storageAttributes are what the manifests of each storage may say, besides repo, type and parameters.
var storageAttributes = map[string][]string{
	"git":  {"branch", "tag", "commit", "path"},
	"helm": {"chart", "version"},
	"oci":  {"tag", "version", "path", "chart"},
}

// manifests checks that what is said fits the storage, see https://fluxcd.io/flux/components/source/
// for what each can say.
func (o *object) manifests() Manifests {
	m := Manifests{
		Storage: o.oneOf("storage", "git", Storages...),
		Repo:    o.required("repo"),
		Type:    o.text("type"),
	}
	set := map[string]string{}
	for _, attribute := range []string{"branch", "tag", "commit", "path", "chart", "version"} {
		set[attribute] = o.text(attribute)
		allowed, known := storageAttributes[m.Storage]
		if set[attribute] != "" && known && !slices.Contains(allowed, attribute) {
			o.report(attribute, "does not fit storage %q, which takes %s", m.Storage, strings.Join(allowed, ", "))
		}
	}
	m.Branch, m.Tag, m.Commit = set["branch"], set["tag"], set["commit"]
	m.Path, m.Chart, m.Version = set["path"], set["chart"], set["version"]
	if m.Tag != "" && m.Branch != "" {
		o.report("tag", "excludes branch: a revision is one of the two")
	}
	if m.Tag != "" && m.Commit != "" {
		o.report("tag", "excludes commit: a revision is one of the two")
	}
	if m.Tag != "" && m.Version != "" {
		o.report("tag", "excludes version: a revision is one of the two")
	}
	if m.Storage == "helm" && m.Chart == "" {
		o.report("chart", `is required with storage "helm"`)
	}
	if m.Repo != unknownText && m.Repo != "" {
		if problem := checkManifestsRepo(m.Storage, m.Repo); problem != "" {
			o.report("repo", "%s", problem)
		}
	}
	switch parameters := o.value("parameters").(type) {
	case nil, Unknown:
	case map[string]any:
		if !IsKnown(parameters) {
			o.unknown = true
		} else if len(parameters) > 0 {
			m.Parameters = parameters
		}
	default:
		o.report("parameters", "must be an object, not %s", kindOf(parameters))
	}
	o.finish()
	return m
}

// checkManifestsRepo never repeats the URL: what it refuses may be a secret.
func checkManifestsRepo(storage, repo string) string {
	if strings.ContainsFunc(repo, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "holds a control character"
	}
	scheme, rest, hasScheme := strings.Cut(repo, "://")
	if storage == "oci" && (!hasScheme || scheme != "oci") {
		return `must start with "oci://" with storage "oci"`
	}
	authority, _, _ := strings.Cut(rest, "/")
	userinfo, _, hasUser := strings.Cut(authority, "@")
	if hasScheme && hasUser && (strings.Contains(userinfo, ":") || strings.HasPrefix(scheme, "http")) {
		return "holds credentials: manifests are written to the repository in clear, take them out of the URL"
	}
	return ""
}

func (d *decoder) targetPolicy(o *object) bool {
	policy := TargetPolicy{
		Name:                     o.name(CheckSubdomainName),
		Workspace:                o.text("workspace"),
		WorkloadSelector:         o.selector("workload_selector"),
		DeploymentTargetSelector: o.selector("deployment_target_selector"),
		ClusterTypeSelector:      o.selector("cluster_type_selector"),
		ClusterSelector:          o.selector("cluster_selector"),
		Tolerations:              o.tolerations("tolerations"),
		Effect:                   o.oneOf("effect", "schedule", "schedule", "exclude"),
	}
	if o.fields["cluster_type_selector"] == nil && o.fields["cluster_selector"] == nil {
		o.report("cluster_type_selector", "a target policy without a host selector goes nowhere: "+
			"give cluster_type_selector or cluster_selector; {} matches every host")
	}
	here := d.here(o)
	o.finish()
	if here {
		d.register("target_policies", policy.Name, o)
		d.fleet.TargetPolicies = append(d.fleet.TargetPolicies, policy)
	}
	return here
}

// taintEffects are those that mean something where nothing is running yet.
var taintEffects = []string{"NoSchedule"}

func (o *object) taints(attribute string) []Taint {
	var taints []Taint
	o.objects(attribute, func(t *object) {
		taint := Taint{
			Key: t.required("key"), Value: t.text("value"),
			Effect: t.oneOf("effect", "NoSchedule", taintEffects...),
		}
		t.checkTaint(taint.Key, taint.Value)
		t.finish()
		taints = append(taints, taint)
	})
	return taints
}

func (o *object) tolerations(attribute string) []Toleration {
	var tolerations []Toleration
	o.objects(attribute, func(t *object) {
		toleration := Toleration{
			Key: t.text("key"), Operator: t.oneOf("operator", "Equal", "Equal", "Exists"),
			Value: t.text("value"), Effect: t.oneOf("effect", "", taintEffects...),
		}
		if toleration.Operator == "Exists" && toleration.Value != "" {
			t.report("value", "must be empty with operator Exists")
		}
		if toleration.Key == "" && toleration.Operator == "Equal" {
			t.report("operator", "must be Exists where there is no key")
		}
		t.checkTaint(toleration.Key, toleration.Value)
		t.finish()
		tolerations = append(tolerations, toleration)
	})
	return tolerations
}

func (o *object) checkTaint(key, value string) {
	if problem := CheckLabelKey(key); problem != "" && key != "" && key != unknownText {
		o.report("key", "%s", problem)
	}
	if problem := CheckLabelValue(value); problem != "" && value != unknownText {
		o.report("value", "%s", problem)
	}
}

func (d *decoder) placement(o *object) bool {
	placement := Placement{
		ClusterType:      o.text("cluster_type"),
		Cluster:          o.text("cluster"),
		DeploymentTarget: o.required("deployment_target"),
	}
	if (placement.ClusterType == "") == (placement.Cluster == "") {
		o.report("cluster_type", "give either cluster_type or cluster")
	}
	o.finish()
	if !o.unknown {
		d.register("assignments", fmt.Sprintf("%s/%s/%s", placement.ClusterType, placement.Cluster, placement.DeploymentTarget), o)
	}
	d.fleet.Assignments = append(d.fleet.Assignments, placement)
	return true
}

func (d *decoder) configContainer(o *object) bool {
	container := ConfigContainer{Name: o.name(CheckSubdomainName), Labels: o.labels("labels")}
	container.Priority = o.number("priority")
	here := d.here(o)
	data := o.fields["data"]
	o.read = append(o.read, "data")
	o.finish("json")
	if !here {
		return false
	}
	d.register("config_containers", container.Name, o)
	d.fleet.ConfigContainers = append(d.fleet.ConfigContainers, container)
	d.configData(o.path.Attribute("data"), container.Name, data)
	return true
}

// configData keeps what is unknown in a container's data from touching anything but its entry.
func (d *decoder) configData(path *Path, name string, data any) {
	_, isObject := data.(map[string]any)
	switch {
	case name == unknownText:
	case !IsKnown(data):
		d.pending = append(d.pending, name)
	case data == nil:
		d.report(path, "is required: an object of configuration values")
	case !isObject:
		d.report(path, "must be an object, not %s", kindOf(data))
	default:
		text, err := CanonicalJSON(data)
		if err != nil {
			d.report(path, "%s", err)
		}
		d.config[name] = text
	}
}

func (d *decoder) configSchema(o *object) bool {
	schema := ConfigSchema{
		Name: o.name(CheckSubdomainName), Labels: o.labels("labels"), Schema: o.schema("schema"),
	}
	if o.fields["schema"] == nil {
		o.report("schema", "is required")
	}
	here := d.here(o)
	o.finish()
	if here {
		d.register("config_schemas", schema.Name, o)
		d.fleet.ConfigSchemas = append(d.fleet.ConfigSchemas, schema)
	}
	return here
}

func (d *decoder) template(o *object) bool {
	template := Template{
		Name:        o.name(CheckSubdomainName),
		Type:        o.oneOf("type", "", TemplateTypes...),
		ContentType: o.oneOf("content_type", "", ContentTypes...),
		Manifests:   o.texts("manifests"),
	}
	if template.ContentType == "yaml" {
		template.ContentType = ""
	}
	if template.Type == "" {
		o.report("type", "is required")
	}
	if o.fields["manifests"] == nil {
		o.report("manifests", "is required")
	}
	o.finish()
	d.register("templates", template.Type+"/"+template.Name, o)
	d.fleet.Templates = append(d.fleet.Templates, template)
	return true
}

func (d *decoder) hydration(root *object) {
	root.attribute("hydration", func(o *object) {
		d.fleet.Hydration = &Hydration{
			Precedence: o.oneOf("precedence", "", "specificity", "name"),
			OnConflict: o.oneOf("on_conflict", "", "error", "warn", "override"),
			Lists:      o.oneOf("lists", "", "replace", "append", "merge"),
			ListKey:    o.text("list_key"),
		}
		o.finish()
	})
}
