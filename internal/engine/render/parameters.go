package render

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
)

const (
	valuesParameter  = "values"     // of a chart
	secretParameter  = "secret_ref" // credentials of the source
	projectParameter = "project"    // of an Argo CD Application

	repositoryParameter = "gitops_repository" // the URL that the agent knows, for final objects
)

var parameterNames = func() []string {
	names := []string{valuesParameter, secretParameter, projectParameter, repositoryParameter}
	for _, kind := range parameterKinds {
		names = append(names, kind.Parameter)
	}
	slices.Sort(names)
	return names
}()

// parameterKinds lists the kinds with a parameter for their spec, sorted by its name.
var parameterKinds = slices.SortedFunc(
	slices.Values(slices.DeleteFunc(reconciler.Kinds(), func(kind *reconciler.ObjectKind) bool { return kind.Parameter == "" })),
	func(a, b *reconciler.ObjectKind) int { return cmp.Compare(a.Parameter, b.Parameter) })

func parametersFor(of *reconciler.Reconciler) []string {
	return slices.DeleteFunc(slices.Clone(parameterNames), func(name string) bool {
		return reconciler.KindOfParameter(name) != nil && !of.HasParameter(name) || name == projectParameter && !of.HasProjects() ||
			name == repositoryParameter && of.NoObjects != ""
	})
}

type parameterChecker struct {
	path     *fleet.Path
	findings fleet.Findings
}

func (c *parameterChecker) report(path *fleet.Path, format string, arguments ...any) {
	c.findings.Report(path, format, arguments...)
}

func (c *parameterChecker) checkNames(parameters map[string]any, names []string) {
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		if slices.Contains(names, name) {
			c.checkType(name, parameters[name])
			continue
		}
		others := reconciler.Names()
		if at := slices.IndexFunc(others, func(other string) bool {
			return slices.Contains(parametersFor(reconciler.Named(other)), name)
		}); at >= 0 {
			c.report(c.path.Attribute(name), "is for the reconciler %q", others[at])
			continue
		}
		c.report(c.path.Attribute(name), "unknown parameter%s", fleet.DidYouMean(name, names))
	}
}

func (c *parameterChecker) checkType(name string, value any) {
	if value == nil {
		return
	}
	_, isObject := value.(map[string]any)
	_, isText := value.(string)
	kind := reconciler.KindOfParameter(name)
	switch {
	case kind != nil && !isObject:
		c.report(c.path.Attribute(name), "must be an object, which is merged over the spec of the %s", kind.Kind)
	case name == valuesParameter && !isObject:
		c.report(c.path.Attribute(name), "must be an object of Helm values")
	case (name == secretParameter || name == projectParameter || name == repositoryParameter) && !isText:
		c.report(c.path.Attribute(name), "must be a string")
	}
}

func (c *parameterChecker) checkDecided(parameters map[string]any, team *workspace) {
	for _, kind := range parameterKinds {
		path := c.path.Attribute(kind.Parameter)
		fields, isObject := parameters[kind.Parameter].(map[string]any)
		if !isObject {
			continue
		}
		decided := kind.DecidedFields()
		for _, field := range slices.Sorted(maps.Keys(decided)) {
			c.checkDecidedField(path, fields, field, decided[field])
		}
		if kind.Account != "" && team.ServiceAccount != "" {
			c.checkDecidedField(path, fields, kind.Account, "the workspace's service_account sets this")
		}
		if kind.Project != "" && team.project.Name != "" {
			c.checkDecidedField(path, fields, kind.Project, "the workspace's argocd_project sets this")
		}
	}
	if _, given := parameters[projectParameter]; given && team.project.Name != "" {
		c.report(c.path.Attribute(projectParameter), "cannot be set: the workspace's argocd_project sets this")
	}
}

// checkDecidedField reports a value at a field, or a null above it.
func (c *parameterChecker) checkDecidedField(path *fleet.Path, fields map[string]any, field, by string) {
	steps := strings.Split(field, ".")
	for i, step := range steps {
		value, given := fields[step]
		if !given {
			return
		}
		path = path.Attribute(step)
		inner, isObject := value.(map[string]any)
		if i == len(steps)-1 || !isObject {
			c.report(path, "cannot be set: %s", by)
			return
		}
		fields = inner
	}
}

func (c *parameterChecker) checkUnused(parameters map[string]any, manifests *fleet.Manifests) {
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		if kind := reconciler.KindOfParameter(name); kind != nil && !kind.For.Has(manifestsOf(manifests)) {
			c.report(c.path.Attribute(name), "is for %s, and these manifests are something else", kind.For)
		}
	}
	if _, given := parameters[valuesParameter]; given && !isChart(manifests) {
		c.report(c.path.Attribute(valuesParameter), "is for charts, which these manifests are not")
	}
	if _, given := parameters[repositoryParameter]; given {
		c.report(c.path.Attribute(repositoryParameter), "is for cluster types, whose agent knows the GitOps repository by it")
	}
	for _, kind := range parameterKinds {
		fields, _ := parameters[kind.Parameter].(map[string]any)
		if _, given := fields[kind.Either[1]]; given && kind.EitherFor.Has(manifestsOf(manifests)) {
			c.report(c.path.Attribute(kind.Parameter).Attribute(kind.Either[1]), "%s", kind.InPlace)
		}
	}
}

// targetProblems holds mistakes in parameters and config_as. Each host's templates decide which of them matter.
type targetProblems struct {
	unknown error // no built-in template reads it
	misused error // decided by Flotilla, forbidden by the workspace, or without effect
	outside error // a forbidden source or namespace
}

func (x *fleetIndex) indexProblems(f *fleet.Fleet) map[string]*targetProblems {
	index := map[string]*targetProblems{}
	owners := secretOwners(f)
	for workload, target := range f.Targets() {
		team, name := x.workspaceOf(workload.Workspace), fleet.FullName(workload.Name, target.Name)
		parameters := x.parameters[name]
		if len(parameters) == 0 && len(target.Manifests.ConfigAs) == 0 && !team.IsConfined() {
			continue
		}
		path := fleet.TargetPath(workload.Name, target.Name)
		unknown := parameterChecker{path: path.Attribute("manifests").Attribute("parameters")}
		misused, outside := parameterChecker{path: unknown.path}, parameterChecker{}
		reached := reachChecker{parameterChecker: &outside, team: team.Workspace, teams: x.workspaces, owners: owners}
		reached.checkNamespace(path.Attribute("namespace"), target.Namespace)
		if !target.ManifestsPending {
			reached.checkSource(path.Attribute("manifests"), &target.Manifests)
			misused.checkForms(path.Attribute("config_as"), target)
			unknown.checkNames(parameters, parameterNames)
			misused.checkDecided(parameters, team)
			misused.checkUnused(parameters, &target.Manifests)
			reached.parameterChecker = &misused
			reached.checkParameters(parameters)
		}
		if unknown.findings != nil || misused.findings != nil || outside.findings != nil {
			index[name] = &targetProblems{errorOf(unknown.findings), errorOf(misused.findings), errorOf(outside.findings)}
		}
	}
	return index
}

func errorOf(findings fleet.Findings) error {
	if findings == nil {
		return nil
	}
	return findings
}

func errorAt(path *fleet.Path, format string, arguments ...any) error {
	var findings fleet.Findings
	findings.Report(path, format, arguments...)
	return findings
}

func (t *Templates) problemsOn(host *hostTemplates, assignment *schedule.Assignment) error {
	var unknown, misused, outside error
	if problems := t.problems[assignment.Target.Name]; problems != nil {
		outside = problems.outside
		if host.isBuiltin {
			unknown = problems.unknown
		}
		if host.reconciler != nil {
			misused = problems.misused
		}
	}
	return errors.Join(unknown, misused, outside, formProblem(host, assignment), deploysProblem(host, assignment),
		imageProblem(host, assignment), t.verifyProblem(host, assignment))
}

func (x *fleetIndex) verifyProblem(host *hostTemplates, assignment *schedule.Assignment) error {
	if host.reconciler == nil || host.reconciler.Unverified == nil || assignment.Target.Target.ManifestsPending {
		return nil
	}
	manifests := &assignment.Target.Target.Manifests
	problem := host.reconciler.Unverified(x.parametersOf(assignment), manifestsOf(manifests),
		strings.HasPrefix(strings.ToLower(manifests.Repo), "oci://"))
	if problem == "" {
		return nil
	}
	return errorAt(targetPath(assignment.Target).Attribute("manifests").Attribute("repo"),
		"the parameters of cluster type %q require signatures: %s", assignment.Host.ClusterType.Name, problem)
}

func deploysProblem(host *hostTemplates, assignment *schedule.Assignment) error {
	if !host.reconciler.HasAgent() || host.reconciler.KindFor(manifestsOf(&assignment.Target.Target.Manifests)) != nil {
		return nil
	}
	return errorAt(targetPath(assignment.Target).Attribute("manifests"),
		"reconciler %q of cluster type %q deploys %s, and these manifests are something else", host.reconciler.Name,
		assignment.Host.ClusterType.Name, host.reconciler.DeployedManifests())
}

func imageProblem(host *hostTemplates, assignment *schedule.Assignment) error {
	target := assignment.Target.Target
	manifests := &target.Manifests
	if host.reconciler == nil || !host.reconciler.OneImage || target.ManifestsPending || manifests.Storage != "oci" ||
		artifact.Image(manifests.Manifests) != "" {
		return nil
	}
	return errorAt(targetPath(assignment.Target).Attribute("manifests").Attribute("version"),
		"%q is a range of versions, and reconciler %q of cluster type %q takes one image: set tag, digest or an exact version, "+
			"or set artifacts of the fleet to those of flotilla_artifacts",
		manifests.Version, host.reconciler.Name, assignment.Host.ClusterType.Name)
}

func (c *parameterChecker) checkForms(path *fleet.Path, target *fleet.DeploymentTarget) {
	if _, among := target.Manifests.ConfigAs.Values(); among && !isChart(&target.Manifests) {
		c.report(path, `"values" is for charts, which these manifests are not`)
	}
	if target.Manifests.ConfigAs.IsSubstituted() && isChart(&target.Manifests) {
		c.report(path, `"substitute" is for manifests other than charts`)
	}
}

func formProblem(host *hostTemplates, assignment *schedule.Assignment) error {
	forms := assignment.Target.Target.Manifests.ConfigAs
	_, among := forms.Values()
	var form string
	switch {
	case host.reconciler == nil:
		return nil
	case forms.IsSubstituted() && host.reconciler.NoVariable == nil:
		form = "substitute"
	case among && !host.reconciler.HasAgent(): // a person gives the values
		form = "values"
	default:
		return nil
	}
	return errorAt(targetPath(assignment.Target).Attribute("config_as"),
		"%q is not possible with reconciler %q of cluster type %q", form, host.reconciler.Name,
		assignment.Host.ClusterType.Name)
}

// overlay merges objects deeply; other values of over win. It changes neither.
func overlay(base, over map[string]any) map[string]any {
	if len(base) == 0 {
		return over
	}
	if len(over) == 0 {
		return base
	}
	merged := maps.Clone(base)
	for key, value := range over {
		if object, isObject := value.(map[string]any); isObject {
			if below, isToo := merged[key].(map[string]any); isToo {
				merged[key] = overlay(below, object)
				continue
			}
		}
		merged[key] = value
	}
	return merged
}
