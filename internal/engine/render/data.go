package render

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/deep"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// templateData has Kalypso's names. It has only []any and map[string]any, as sprig requires. A runner refills it for each
// assignment.
type templateData struct {
	root, labels, hostLabels, manifests, config map[string]any
	substituteProblem                           error
}

func (d *templateData) fill(t *Templates, subject Subject) map[string]any {
	if d.root == nil {
		*d = templateData{
			root: map[string]any{}, labels: map[string]any{}, hostLabels: map[string]any{}, manifests: map[string]any{},
			config: map[string]any{},
		}
	}
	assignment := subject.Assignment
	workload, target, host := assignment.Target.Workload, assignment.Target.Target, assignment.Host
	parameters := t.parametersOf(assignment)

	fillLabels(d.labels, assignment.Target.Labels)
	d.labels["workspace"], d.labels["workload"] = workload.Workspace, workload.Name
	fillLabels(d.hostLabels, host.Labels)
	fillManifests(d.manifests, &target.Manifests, parameters)
	fillNatural(d.config, subject.Config)
	cluster := ""
	if host.Cluster != nil {
		cluster = host.Cluster.Name
	}
	team := t.workspaceOf(workload.Workspace)

	root := d.root
	root["DeploymentTargetName"] = assignment.Target.Name
	root["Namespace"] = assignment.Namespace
	root["NamespaceIsGiven"] = target.Namespace != ""
	root["Name"] = objectName(assignment.Target, host, assignment.Namespace, subject.Environment)
	root["Environment"] = subject.Environment
	root["Workspace"] = workload.Workspace
	root["Workload"] = workload.Name
	root["Labels"] = d.labels
	root["Manifests"] = d.manifests
	root["SourceURL"] = artifact.RepositoryURL(target.Manifests.Manifests)
	root["Image"] = artifact.Image(target.Manifests.Manifests)
	root["ClusterType"] = host.ClusterType.Name
	root["ConfigData"] = d.config

	root["Cluster"] = cluster
	root["HostLabels"] = d.hostLabels
	root["ConfigVersion"] = subject.ConfigVersion
	root["Policies"] = toAnyList(assignment.Policies)
	root["Requires"] = toAnyList(assignment.Requires)
	root["Dependencies"] = dependenciesOf(subject)
	root["Wave"] = t.waves[workload.Name]
	root["IsChart"] = isChart(&target.Manifests)
	root["Repo"] = repoOf(subject.Repo)
	valuesSecret, fromSecret := t.valuesSecretOf(subject), subject.Secrets
	if valuesSecret == nil {
		fromSecret = nil
	}
	root["ValuesSecret"], root["Values"] = valuesSecret, d.chartValues(target, parameters, fromSecret)
	root["ConfigName"], _ = configName(target)
	root["SecretName"] = secretName(target)
	root["Substitute"], d.substituteProblem = d.substitutions(target, reconciler.Substituting())
	fillOwner(root, subject)
	root["RenderedProject"] = t.projectOf(subject)

	root["ContributorGroups"] = team.contributorGroups
	root["ReaderGroups"] = team.readerGroups
	root["ResourceQuota"] = team.resourceQuota
	root["LimitRange"] = team.limitRange
	root["NetworkPolicy"] = team.NetworkPolicy
	root["ServiceAccount"] = team.ServiceAccount
	root["ArgocdProject"], root["HubProject"] = team.project.Name, team.project.Name
	if team.project.Render {
		root["HubProject"] = hubProject(team.project.Name, subject.Environment, host.Name)
	}
	return root
}

func (d *templateData) setNames(name func(slot int) string) {
	d.root["Namespace"], d.root["Name"], d.root["HostLabel"] = name(namespaceSlot), name(objectSlot), name(hostSlot)
	if secret, _ := d.root["ValuesSecret"].(map[string]any); secret != nil {
		secret["name"] = name(objectSlot) + valuesSuffix
	}
	if dependencies, ok := d.root["Dependencies"].([]any); ok {
		for i := range dependencies {
			dependencies[i].(map[string]any)["object"] = name(dependencySlot + i)
		}
	}
}

// chartValues returns a chart's values with the configuration over them. It drops values in the place of a secret, which
// reconcilers may prefer.
func (d *templateData) chartValues(
	target *fleet.DeploymentTarget, parameters map[string]any, fromSecret map[string]fleet.SecretReference,
) map[string]any {
	values, _ := parameters[valuesParameter].(map[string]any)
	below, among := target.Manifests.ConfigAs.Values()
	if len(fromSecret) > 0 {
		values = withoutReferences(values, below, fromSecret)
	}
	if !among || len(d.config) == 0 {
		return values
	}
	config := d.config
	for i := len(below) - 1; i >= 0; i-- {
		config = map[string]any{below[i]: config}
	}
	return overlay(values, config)
}

const defaultConfigName = "platform-config"

func configName(target *fleet.DeploymentTarget) (name string, written bool) {
	name, written = target.Manifests.ConfigAs.ConfigMap()
	return cmp.Or(name, defaultConfigName), written
}

// substitutions returns the variables that a reconciler substitutes.
func (d *templateData) substitutions(target *fleet.DeploymentTarget, by *reconciler.Reconciler) (map[string]any, error) {
	if !target.Manifests.ConfigAs.IsSubstituted() {
		return nil, nil
	}
	for _, key := range slices.Sorted(maps.Keys(d.config)) {
		text, isScalar := scalarText(d.config[key])
		if problem := by.NoVariable(key, text, isScalar); problem != "" {
			return nil, problemf("config_as \"substitute\": %s", problem)
		}
	}
	return d.config, nil
}

func fillOwner(root map[string]any, subject Subject) {
	root["HostLabel"] = LabelValue(subject.Assignment.Host.FirstName())
	root["TargetLabel"] = LabelValue(subject.Assignment.Target.Name)
	root["Owner"], root["OwnerLabel"] = any(unknownRepo{}), any(unknownRepo{})
	if subject.Owner != "" {
		root["Owner"], root["OwnerLabel"] = subject.Owner, LabelValue(subject.Owner)
	}
}

// projectOf returns the AppProject to write as {sources, namespaces}, or nil.
func (t *Templates) projectOf(subject Subject) map[string]any {
	role := t.roles[subject.Assignment]
	if role == nil || role.project == nil {
		return nil
	}
	made := map[string]any{"sources": role.project.sources, "namespaces": role.project.namespaces}
	follower := role.project.objectsFrom
	switch {
	case role.project.isPending || follower != nil && subject.Repo == nil:
		made["sources"] = unknownList{}
	case follower != nil:
		made["sources"] = append(slices.Clone(role.project.sources), any(t.repositoryOf(follower, subject.Repo)))
	}
	return made
}

func fillLabels(into map[string]any, labels fleet.Labels) {
	clear(into)
	for key, value := range labels {
		into[key] = value
	}
}

func fillNatural(into, values map[string]any) {
	clear(into)
	for key, value := range values {
		into[key] = natural(value)
	}
}

// fillManifests sets every key, and copies the parameters beside them, because Kalypso's manifests are a free map.
func fillManifests(into map[string]any, manifests *fleet.Manifests, parameters map[string]any) {
	clear(into)
	maps.Copy(into, parameters)
	pinned, digest := manifests.Pinned()
	into["storage"] = pinned.Storage
	into["repo"] = pinned.Repo
	into["branch"] = pinned.Branch
	into["tag"] = pinned.Tag
	into["commit"] = pinned.Commit
	into["path"] = pinned.Path
	into["chart"] = pinned.Chart
	into["version"] = pinned.Version
	into["digest"] = digest
	into["type"] = manifests.Type
	into["parameters"] = parameters
}

// dependenciesOf returns a list of {name, namespace, isChart, object}.
func dependenciesOf(subject Subject) any {
	requires := subject.Assignment.Dependencies
	if len(requires) == 0 {
		return []any(nil)
	}
	dependencies := make([]any, len(requires))
	for i, dependency := range requires {
		if dependency.Target.Target.ManifestsPending {
			return unknownList{}
		}
		dependencies[i] = map[string]any{
			"name":      dependency.Target.Name,
			"namespace": dependency.Namespace,
			"isChart":   isChart(&dependency.Target.Target.Manifests),
			"object":    objectName(dependency.Target, dependency.Host, dependency.Namespace, subject.Environment),
		}
	}
	return dependencies
}

func isChart(manifests *fleet.Manifests) bool {
	return manifests.Storage == "helm" || manifests.Type == "helm" || manifests.Chart != ""
}

func manifestsOf(manifests *fleet.Manifests) reconciler.Manifests {
	return reconciler.ManifestsOf(manifests.Storage, isChart(manifests))
}

// unknownRepo is a repository that is not known yet: reading it is an error.
type unknownRepo struct{}

// URL returns [ErrUnknown].
func (unknownRepo) URL() (string, error) { return "", ErrUnknown }

// Branch returns [ErrUnknown].
func (unknownRepo) Branch() (string, error) { return "", ErrUnknown }

// Path returns [ErrUnknown].
func (unknownRepo) Path() (string, error) { return "", ErrUnknown }

// unknownList is a list that is not known yet: reading it is an error.
type unknownList struct{}

func repoOf(repo *folder.Location) any {
	if repo == nil {
		return unknownRepo{}
	}
	return map[string]any{"URL": repo.URL, "Branch": repo.Branch, "Path": repo.Path}
}

func naturalObject(object map[string]any) map[string]any {
	if len(object) == 0 {
		return nil
	}
	return natural(object).(map[string]any)
}

func toAnyList(names []string) []any {
	if len(names) == 0 {
		return nil
	}
	result := make([]any, len(names))
	for i, name := range names {
		result[i] = name
	}
	return result
}

// natural converts numbers to int64 or float64, unless neither is exact. Such a number prints as it was written.
func natural(value any) any {
	isNumber := func(part any) bool { _, is := part.(json.Number); return is }
	if !deep.Holds(value, isNumber) {
		return value
	}
	return deep.Mapped(value, func(value any) any {
		if number, isNumber := value.(json.Number); isNumber {
			return naturalNumber(number)
		}
		return value
	})
}

func naturalNumber(number json.Number) any {
	if integer, err := strconv.ParseInt(string(number), 10, 64); err == nil {
		return integer
	}
	float, err := strconv.ParseFloat(string(number), 64)
	if err != nil || float == 0 {
		return number // out of range, or rounds to zero
	}
	exact, err := fleet.CanonicalNumber(number)
	if err != nil || string(exact) != numberText(float) {
		return number
	}
	if integer, err := strconv.ParseInt(string(exact), 10, 64); err == nil {
		return integer
	}
	return float
}
