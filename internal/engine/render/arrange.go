package render

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/kinds"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// assignmentRole lists the shared objects that an assignment writes.
type assignmentRole struct {
	// sharesNamespace: another assignment writes the namespace and the workspace's objects in it.
	sharesNamespace bool
	project         *argocdProject // the AppProject to write for the workspace, or nil
	// secretsElsewhere names Secrets whose encrypted files another assignment writes.
	secretsElsewhere []string
	// isPending: the writer of an encrypted file is not known yet.
	isPending bool
}

type argocdProject struct {
	sources, namespaces []any
	isPending           bool // some sources are not known yet
	// objectsFrom has final objects, whose source is the GitOps repository; nil for none.
	objectsFrom *schedule.Assignment
}

// ChooseWriters decides which assignment writes a shared namespace, and the AppProject of a workspace. Without it, every
// assignment is rendered as if it were alone.
func (t *Templates) ChooseWriters(assignments []*schedule.Assignment) (findings, warnings fleet.Findings) {
	catalog, _ := kinds.For("") // only an unknown version is an error
	a := &writerChooser{
		catalog: catalog, fleetIndex: &t.fleetIndex, roles: map[*schedule.Assignment]*assignmentRole{}, seen: map[string]bool{},
		checkedSpelling: map[string]bool{},
		writers:         map[namespaceOn][]*schedule.Assignment{}, projects: map[projectOn][]*schedule.Assignment{},
	}
	for _, assignment := range assignments {
		host := t.hostOf(assignment)
		if assignment.Target.Target.Namespace != "" {
			a.addWriter(assignment)
		}
		if team := t.workspaceOf(assignment.Target.Workload.Workspace); team.project.Render && host.reconciler.HasProjects() {
			on := projectOn{assignment.Host.ClusterType.Name, team.Name}
			if host.reconciler.OnHub() {
				on.host = assignment.Host.Name
			}
			a.projects[on] = append(a.projects[on], assignment)
		}
		a.checkOrder(host, assignment)
		a.checkSpelling(host, assignment)
	}
	a.checkNames(assignments)
	eachNamespace(a.writers, func(here, all []*schedule.Assignment) {
		a.checkSharedNamespace(all)
		for _, assignment := range here {
			a.roleOf(assignment).sharesNamespace = assignment != all[0] // the first by name, of the cluster type if possible
		}
	})
	a.chooseProjectWriters()
	t.roles = a.roles
	return a.findings, a.warnings
}

type namespaceOn struct{ host, namespace string }

type projectOn struct{ host, workspace string }

// objectOn is the name of reconciler objects on a host; on a hub, host is "".
type objectOn struct{ host, name string }

type writerChooser struct {
	catalog *kinds.Catalog
	*fleetIndex
	roles              map[*schedule.Assignment]*assignmentRole
	writers            map[namespaceOn][]*schedule.Assignment
	projects           map[projectOn][]*schedule.Assignment
	findings, warnings fleet.Findings
	seen               map[string]bool
	checkedSpelling    map[string]bool
}

func (a *writerChooser) roleOf(assignment *schedule.Assignment) *assignmentRole {
	if a.roles[assignment] == nil {
		a.roles[assignment] = &assignmentRole{}
	}
	return a.roles[assignment]
}

// reportOnce adds a finding once for all hosts.
func (a *writerChooser) reportOnce(to *fleet.Findings, path *fleet.Path, format string, arguments ...any) {
	finding := fleet.Finding{Path: path.String(), Message: fmt.Sprintf(format, arguments...)}
	if text := finding.String(); !a.seen[text] {
		a.seen[text] = true
		*to = append(*to, finding)
	}
}

func targetPath(target *schedule.Target) *fleet.Path {
	return fleet.TargetPath(target.Workload.Name, target.Target.Name)
}

func (a *writerChooser) addWriter(assignment *schedule.Assignment) {
	on := namespaceOn{assignment.Host.Name, assignment.Namespace}
	a.writers[on] = append(a.writers[on], assignment)
}

// eachNamespace calls do with the writers in each namespace of a host, and with all assignments there. Assignments of the
// cluster type come first.
func eachNamespace(writers map[namespaceOn][]*schedule.Assignment, do func(here, all []*schedule.Assignment)) {
	for _, on := range slices.SortedFunc(maps.Keys(writers), func(a, b namespaceOn) int {
		return cmp.Or(cmp.Compare(a.host, b.host), cmp.Compare(a.namespace, b.namespace))
	}) {
		here := sortedByTarget(writers[on])
		all := here
		if host := here[0].Host; host.Cluster != nil {
			all = slices.Concat(sortedByTarget(writers[namespaceOn{host.ClusterType.Name, on.namespace}]), here)
		}
		do(here, all)
	}
}

func (a *writerChooser) checkSharedNamespace(sharing []*schedule.Assignment) {
	configs := map[string]*schedule.Assignment{}
	for _, assignment := range sharing {
		first, path := sharing[0], targetPath(assignment.Target)
		if team, other := assignment.Target.Workload.Workspace, first.Target.Workload.Workspace; team != other {
			a.reportOnce(&a.findings, path.Attribute("namespace"),
				"namespace %q is shared with deployment target %q of workspace %q: a namespace belongs to one workspace, here %q",
				assignment.Namespace, first.Target.Name, other, team)
		}
		if !a.hostOf(assignment).hasBuiltinConfig {
			continue
		}
		name, written := configName(assignment.Target.Target)
		if !written || assignment.Target.Target.ManifestsPending { // config_as is not known either
			continue
		}
		if other := configs[name]; other != nil && other.Target != assignment.Target {
			a.reportOnce(&a.findings, path.Attribute("config_as"),
				"deployment target %q writes %q into namespace %q, too: give one of them another name, \"configmap:<name>\", or another form",
				other.Target.Name, name, assignment.Namespace)
		} else {
			configs[name] = assignment
		}
	}
}

func (a *writerChooser) chooseProjectWriters() {
	onHub := map[string]projectOn{}
	for _, on := range slices.SortedFunc(maps.Keys(a.projects), func(a, b projectOn) int {
		return cmp.Or(cmp.Compare(a.host, b.host), cmp.Compare(a.workspace, b.workspace))
	}) {
		if a.hostOf(a.projects[on][0]).reconciler.OnHub() {
			name := hubProject(a.workspaces[on.workspace].project.Name, a.environment, on.host)
			if other, taken := onHub[name]; taken {
				a.reportOnce(&a.findings, fleet.PathOf("workspaces", on.workspace).Attribute("argocd_project"),
					"on %q it would be called %q, as that of workspace %q on %q: give one of them another name",
					on.host, name, other.workspace, other.host)
			}
			onHub[name] = on
		}
		byHost := map[string][]*schedule.Assignment{}
		for _, assignment := range a.projects[on] {
			byHost[assignment.Host.Name] = append(byHost[assignment.Host.Name], assignment)
		}
		if ofType := byHost[on.host]; ofType != nil {
			a.roleOf(sortedByTarget(ofType)[0]).project = projectOf(a.projects[on])
			continue
		}
		for _, ofCluster := range byHost {
			a.roleOf(sortedByTarget(ofCluster)[0]).project = projectOf(ofCluster)
		}
	}
}

func projectOf(assignments []*schedule.Assignment) *argocdProject {
	made := &argocdProject{}
	sources, namespaces := map[string]bool{}, map[string]bool{}
	for _, assignment := range assignments {
		target := assignment.Target.Target
		made.isPending = made.isPending || target.ManifestsPending
		if HasObjects(assignment) {
			made.objectsFrom = assignment
		}
		sources[artifact.RepositoryURL(target.Manifests.Manifests)], namespaces[assignment.Namespace] = true, true
	}
	made.sources, made.namespaces = toAnyList(slices.Sorted(maps.Keys(sources))), toAnyList(slices.Sorted(maps.Keys(namespaces)))
	return made
}

func (a *writerChooser) checkOrder(host *hostTemplates, assignment *schedule.Assignment) {
	if len(assignment.Dependencies) == 0 || host.reconciler == nil || assignment.Target.Target.ManifestsPending {
		return
	}
	path := fleet.PathOf("workloads", assignment.Target.Workload.Name).Attribute("requires")
	own := manifestsOf(&assignment.Target.Target.Manifests)
	for _, dependency := range assignment.Dependencies {
		other := dependency.Target.Target
		if other.ManifestsPending {
			continue
		}
		if reason := host.reconciler.Unordered(own, manifestsOf(&other.Manifests), dependency.Host == assignment.Host); reason != "" {
			a.reportOnce(&a.warnings, path, "deployment target %q requires %q, and is deployed without waiting for it: %s",
				assignment.Target.Name, dependency.Target.Name, reason)
		}
	}
}

// checkNames reports reconciler objects that would replace others on a cluster or a hub, and parameters that name objects of
// another workspace.
func (a *writerChooser) checkNames(assignments []*schedule.Assignment) {
	named, owners := make(map[objectOn]*schedule.Assignment, len(assignments)), make(map[string][]string, len(assignments))
	each := func(do func(*schedule.Assignment, objectOn)) {
		for _, assignment := range assignments {
			by := a.hostOf(assignment).reconciler
			if by == nil {
				continue
			}
			on := objectOn{assignment.Host.Name, objectName(assignment.Target, assignment.Host, assignment.Namespace, a.environment)}
			if by.OnHub() {
				on.host = ""
			}
			do(assignment, on)
		}
	}
	var clashes findingsByPlace
	compare := func(one, other *schedule.Assignment, name string) {
		if other != nil && other.Target != one.Target {
			clashes.add(strconv.Quote(one.Host.Name), targetPath(one.Target),
				"its objects on %%s would be called %q, as those of deployment target %q of workspace %q: "+
					"give one of them another name, or another namespace",
				name, other.Target.Name, other.Target.Workload.Workspace)
		}
	}
	distinct := func(assignment *schedule.Assignment, host string) {
		of, at := a.hostOf(assignment).reconciler, objectOn{host, "namespace/" + assignment.Namespace}
		if !of.RejectsDuplicates ||
			cmp.Or(assignment.Host.ClusterType.NamespaceService, fleet.DefaultNamespaceService) != fleet.DefaultNamespaceService {
			return
		}
		if other := named[at]; other != nil && other.Target != assignment.Target {
			clashes.add(strconv.Quote(host), targetPath(assignment.Target).Attribute("namespace"),
				"deployment target %q has the namespace %q on %%s, too, and %s applies no folder in which two files "+
					"have the same object: give one of them another namespace",
				other.Target.Name, assignment.Namespace, of.Product)
		} else if host == assignment.Host.Name {
			named[at] = assignment
		}
	}
	each(func(assignment *schedule.Assignment, on objectOn) {
		distinct(assignment, on.host)
		compare(assignment, named[on], on.name)
		named[on] = assignment
		if team := assignment.Target.Workload.Workspace; !slices.Contains(owners[on.name], team) {
			owners[on.name] = append(owners[on.name], team)
		}
	})
	checked := map[*schedule.Target]bool{}
	each(func(assignment *schedule.Assignment, on objectOn) {
		if assignment.Host.Cluster != nil && on.host != "" { // which also has the objects of its type
			distinct(assignment, assignment.Host.ClusterType.Name)
			compare(assignment, named[objectOn{assignment.Host.ClusterType.Name, on.name}], on.name)
		}
		if on.host == "" {
			a.checkApplicationNames(assignment, on.name, named)
		}
		if parameters := a.parameters[assignment.Target.Name]; parameters != nil && !checked[assignment.Target] {
			checked[assignment.Target] = true
			path := targetPath(assignment.Target).Attribute("manifests").Attribute("parameters")
			check := reachChecker{
				parameterChecker: &parameterChecker{path: path}, team: &fleet.Workspace{Name: assignment.Target.Workload.Workspace}, objects: owners,
			}
			check.checkParameters(parameters)
			a.findings = append(a.findings, check.findings...)
		}
	})
	a.findings = append(a.findings, clashes.list()...)
}

// findingsByPlace merges findings that are equal in several places, such as hosts.
type findingsByPlace struct {
	wording.Groups[fleet.Finding, string]
	seen map[placedFinding]bool
}

type placedFinding struct {
	fleet.Finding
	place string
}

// add adds a finding; %%s in its text stands for the place.
func (p *findingsByPlace) add(place string, path *fleet.Path, format string, arguments ...any) {
	finding := fleet.Finding{Path: path.String(), Message: fmt.Sprintf(format, arguments...)}
	if p.seen[placedFinding{finding, place}] {
		return
	}
	if p.seen == nil {
		p.seen = map[placedFinding]bool{}
	}
	p.seen[placedFinding{finding, place}] = true
	p.Add(finding, place)
}

func (p *findingsByPlace) list() fleet.Findings {
	var findings fleet.Findings
	for finding, places := range p.All() {
		finding.Message = strings.Replace(finding.Message, "%s", wording.List(places, wording.Named), 1)
		findings = append(findings, finding)
	}
	return findings
}

// checkApplicationNames reports Applications on a hub that two ApplicationSets would make: their names are "<set>-<cluster>".
func (a *writerChooser) checkApplicationNames(assignment *schedule.Assignment, name string, named map[objectOn]*schedule.Assignment) {
	for _, cluster := range a.clustersOf(assignment.Host) {
		for i := range len(cluster) {
			if cluster[i] != '-' {
				continue
			}
			other := named[objectOn{"", name + "-" + cluster[:i]}]
			if other != nil && slices.Contains(a.clustersOf(other.Host), cluster[i+1:]) {
				a.reportOnce(&a.findings, targetPath(assignment.Target),
					"its Application for cluster %q would be called %q, as that of deployment target %q of workspace %q for cluster %q: "+
						"give one of them another name, or another namespace",
					cluster, name+"-"+cluster, other.Target.Name, other.Target.Workload.Workspace, cluster[i+1:])
			}
		}
	}
}

func (a *writerChooser) clustersOf(host *schedule.Host) []string {
	if host.Cluster != nil {
		return []string{host.Cluster.Name}
	}
	return a.clusters[host.Name]
}

func sortedByTarget(assignments []*schedule.Assignment) []*schedule.Assignment {
	return slices.SortedStableFunc(slices.Values(assignments), func(a, b *schedule.Assignment) int {
		return cmp.Compare(a.Target.Name, b.Target.Name)
	})
}
