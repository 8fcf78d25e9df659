package render

import (
	"cmp"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/kinds"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/secretservice"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// fleetIndex finds the parts of a fleet that rendering reads.
type fleetIndex struct {
	environment string
	hosts       map[string]*hostTemplates // by cluster type
	workspaces  map[string]*workspace
	clusters    map[string][]string       // by cluster type
	waves       map[string]int            // by workload, see [indexWaves]
	parameters  map[string]map[string]any // by full name of the deployment target
}

func newFleetIndex(f *fleet.Fleet, hosts map[string]*hostTemplates) fleetIndex {
	index := fleetIndex{
		environment: f.Environment,
		hosts:       hosts,
		workspaces:  make(map[string]*workspace, len(f.Workspaces)),
		clusters:    map[string][]string{},
		waves:       indexWaves(f),
		parameters:  map[string]map[string]any{},
	}
	for i := range f.Workspaces {
		index.workspaces[f.Workspaces[i].Name] = newWorkspace(&f.Workspaces[i])
	}
	for _, cluster := range f.Clusters {
		index.clusters[cluster.ClusterType] = append(index.clusters[cluster.ClusterType], cluster.Name)
	}
	for workload, target := range f.Targets() {
		if len(target.Manifests.Parameters) > 0 {
			index.parameters[fleet.FullName(workload.Name, target.Name)] = naturalObject(target.Manifests.Parameters)
		}
	}
	return index
}

type hostTemplates struct {
	templates        []*compiledTemplate
	reconciler       *reconciler.Reconciler // nil if the template is the user's
	isBuiltin        bool
	hasBuiltinConfig bool
	parameters       map[string]any
	catalog          *kinds.Catalog
	// parametersID and storesID are equal for equal content.
	parametersID string
	service      *secretservice.Service // nil if there is none or it is the user's
	hasSecrets   bool
	stores       map[string]fleet.SecretStore
	storesID     string
}

func (x *fleetIndex) hostOf(assignment *schedule.Assignment) *hostTemplates {
	return x.hosts[assignment.Host.ClusterType.Name]
}

// workspace has the fields of a workspace as templates read them.
type workspace struct {
	*fleet.Workspace
	contributorGroups, readerGroups, limitRange []any
	resourceQuota                               map[string]any
	project                                     fleet.ArgocdProject // without a name if there is none
}

// parametersOf returns the parameters of a deployment target merged over its cluster type's: read only.
func (x *fleetIndex) parametersOf(assignment *schedule.Assignment) map[string]any {
	merged := overlay(x.hostOf(assignment).parameters, x.parameters[assignment.Target.Name])
	if merged == nil {
		return map[string]any{}
	}
	return merged
}

func newWorkspace(of *fleet.Workspace) *workspace {
	team := &workspace{
		Workspace: of, contributorGroups: toAnyList(of.ContributorGroups), readerGroups: toAnyList(of.ReaderGroups),
		limitRange:    limitsOf(of.LimitRange),
		resourceQuota: make(map[string]any, len(of.ResourceQuota)),
	}
	fillLabels(team.resourceQuota, of.ResourceQuota)
	if of.ArgocdProject != nil {
		team.project = *of.ArgocdProject
	}
	return team
}

// workspaceOf returns a workspace. One that the fleet does not define has only its name.
func (x *fleetIndex) workspaceOf(name string) *workspace {
	if team := x.workspaces[name]; team != nil {
		return team
	}
	return newWorkspace(&fleet.Workspace{Name: name})
}

func limitsOf(limits []fleet.Limit) []any {
	if len(limits) == 0 {
		return nil
	}
	list := make([]any, len(limits))
	for i, limit := range limits {
		fields := map[string]any{"type": limit.Type}
		for name, quantities := range map[string]map[string]string{
			"default": limit.Default, "defaultRequest": limit.DefaultRequest, "max": limit.Max, "min": limit.Min,
			"maxLimitRequestRatio": limit.MaxLimitRequestRatio,
		} {
			if len(quantities) > 0 {
				texts := make(map[string]any, len(quantities))
				fillLabels(texts, quantities)
				fields[name] = texts
			}
		}
		list[i] = fields
	}
	return list
}

// indexWaves returns the longest chain of requirements of each workload. Cycles are errors elsewhere.
func indexWaves(f *fleet.Fleet) map[string]int {
	requires := make(map[string][]string, len(f.Workloads))
	for i := range f.Workloads {
		requires[f.Workloads[i].Name] = f.Workloads[i].Requires
	}
	waves := make(map[string]int, len(f.Workloads))
	var wave func(name string) int
	wave = func(name string) int {
		if known, ok := waves[name]; ok {
			return known
		}
		waves[name] = 0
		longest := 0
		for _, required := range requires[name] {
			longest = max(longest, wave(required)+1)
		}
		waves[name] = longest
		return longest
	}
	for i := range f.Workloads {
		wave(f.Workloads[i].Name)
	}
	return waves
}

// repositoryOf returns the URL of the GitOps repository as the host's agent knows it.
func (x *fleetIndex) repositoryOf(assignment *schedule.Assignment, repo *folder.Location) string {
	given, _ := x.parametersOf(assignment)[repositoryParameter].(string)
	return cmp.Or(given, x.hostOf(assignment).reconciler.Repository, repo.URL)
}
