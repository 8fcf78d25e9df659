package provider

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/hydrate"
	"github.com/flotilla/terraform-provider-flotilla/internal/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/schedule"
)

// outcome is what a fleet comes to: who goes where, with which values, rendered into which files.
type outcome struct {
	fleet     *fleet.Fleet
	schedule  *schedule.Result
	snapshots *hydrate.Result
	templates *render.Templates
}

// fleetPath is where every resource and data source has its fleet.
var fleetPath = path.Root("fleet")

// maxDiagnostics bounds how many of one kind are listed: a template that every assignment uses would
// otherwise be reported 20,000 times.
const maxDiagnostics = 50

// parseFleet reads a fleet whose model is known.
func parseFleet(value fleet.Value, diagnostics *diag.Diagnostics) (*fleet.Fleet, fleet.Config) {
	parsed, config, err := value.Fleet()
	if err != nil {
		diagnostics.AddAttributeError(fleetPath, "Invalid fleet", sentence(err.Error()))
		return nil, nil
	}
	return parsed, config
}

// scheduleFleet decides who goes where.
func scheduleFleet(f *fleet.Fleet, diagnostics *diag.Diagnostics) *schedule.Result {
	result, findings := schedule.Schedule(f)
	for _, finding := range findings {
		diagnostics.AddAttributeError(fleetPath, "Invalid schedule", sentence(finding.String()))
	}
	return result
}

// hydrateFleet composes and checks values.
func hydrateFleet(f *fleet.Fleet, config fleet.Config, assignments []*schedule.Assignment, diagnostics *diag.Diagnostics) *hydrate.Result {
	result, err := hydrate.Hydrate(f, config, assignments)
	if err != nil {
		diagnostics.AddAttributeError(fleetPath, "Invalid configuration values", sentence(err.Error()))
		return nil
	}
	addLimited(diagnostics, result.Findings, func(finding hydrate.Finding) {
		diagnostics.AddAttributeError(fleetPath, "Invalid configuration values", sentence(finding.String()))
	})
	addLimited(diagnostics, result.Warnings, func(finding hydrate.Finding) {
		diagnostics.AddAttributeWarning(fleetPath, "Questionable configuration values", sentence(finding.String()))
	})
	return result
}

func addLimited[T any](diagnostics *diag.Diagnostics, findings []T, add func(T)) {
	for i, finding := range findings {
		if i == maxDiagnostics {
			diagnostics.AddAttributeWarning(fleetPath, "More findings",
				fmt.Sprintf("%d further findings of the same kind are not shown.", len(findings)-maxDiagnostics))
			return
		}
		add(finding)
	}
}

// compute goes the whole way from a fleet to compiled templates. It returns nil when anything on the
// way is wrong.
func compute(value fleet.Value, diagnostics *diag.Diagnostics) *outcome {
	parsed, config := parseFleet(value, diagnostics)
	if parsed == nil {
		return nil
	}
	o := &outcome{fleet: parsed}
	o.schedule = scheduleFleet(o.fleet, diagnostics)
	o.snapshots = hydrateFleet(o.fleet, config, o.schedule.Assignments, diagnostics)
	templates, findings := render.Compile(o.fleet)
	o.templates = templates
	for _, finding := range findings {
		diagnostics.AddAttributeError(fleetPath, "Invalid template", sentence(finding.String()))
	}
	if diagnostics.HasError() {
		return nil
	}
	return o
}

// warn tells what smells of a mistake and does no harm, each kind in one warning. flotilla_scheduling has
// all of it as data.
func (o *outcome) warn(diagnostics *diag.Diagnostics) {
	var idle, unselected []string
	for _, policy := range o.schedule.IdlePolicies {
		idle = append(idle, fmt.Sprintf("%q %s", policy.Name, policy.Reason))
	}
	for _, unscheduled := range o.schedule.Unscheduled {
		unselected = append(unselected, fmt.Sprintf("%q: %s", unscheduled.DeploymentTarget, unscheduled.Reason))
	}
	for _, kind := range []struct {
		summary string
		lines   []string
	}{
		{"Target policies that assign nothing", idle},
		{"Deployment targets that go nowhere", unselected},
		{"Config containers that reach no assignment", o.snapshots.IdleContainers},
	} {
		if len(kind.lines) > 0 {
			diagnostics.AddAttributeWarning(fleetPath, kind.summary, describeLines(kind.lines, 10))
		}
	}
	for _, warning := range o.schedule.Warnings {
		diagnostics.AddAttributeWarning(fleetPath, "Questionable target policy", sentence(warning.String()))
	}
}

// subject is what the templates are told of an assignment.
func (o *outcome) subject(i int, repo *render.Repo) render.Subject {
	snapshot := o.snapshots.Snapshots[i]
	return render.Subject{
		Assignment: o.schedule.Assignments[i], Environment: o.fleet.Environment,
		ConfigVersion: snapshot.Version, Config: snapshot.Values(), Repo: repo,
	}
}

// files renders one assignment.
func (o *outcome) files(i int, repo *render.Repo) ([]gitops.File, error) {
	rendered, err := o.templates.Render(o.subject(i, repo))
	if err != nil {
		return nil, err
	}
	files := make([]gitops.File, len(rendered))
	for j, file := range rendered {
		files[j] = gitops.File{Name: file.Name, Content: file.Content}
	}
	return files, nil
}

// unknownTree stands for the tree id of a folder whose content is not known yet.
const unknownTree = ""

// trees renders everything on all processors and returns the tree id of each assignment's folder, or
// unknownTree. Folders that are deployed just so were checked when they were written.
func (o *outcome) trees(repo *render.Repo, deployed gitops.Deployed, diagnostics *diag.Diagnostics) []string {
	trees := make([]string, len(o.schedule.Assignments))
	problems := make([][]string, len(trees))
	inParallel(len(trees), func(i int) {
		if !o.snapshots.Snapshots[i].Known {
			return
		}
		trees[i], problems[i] = o.tree(i, repo, deployed)
	})
	seen := map[string]bool{}
	var distinct []string
	for _, list := range problems {
		for _, problem := range list {
			if !seen[problem] {
				seen[problem] = true
				distinct = append(distinct, problem)
			}
		}
	}
	addLimited(diagnostics, distinct, func(problem string) {
		diagnostics.AddAttributeError(fleetPath, "Invalid rendering", sentence(problem))
	})
	return trees
}

func (o *outcome) tree(i int, repo *render.Repo, deployed gitops.Deployed) (tree string, problems []string) {
	subject := o.subject(i, repo)
	rendered, err := o.templates.Render(subject)
	if errors.Is(err, render.ErrUnknown) {
		return unknownTree, nil
	}
	if err != nil {
		return unknownTree, []string{err.Error()}
	}
	files := make([]gitops.File, len(rendered))
	for j, file := range rendered {
		files[j] = gitops.File{Name: file.Name, Content: file.Content}
	}
	tree, err = gitops.TreeID(files)
	if err != nil {
		return unknownTree, []string{fmt.Sprintf("assignment %q: %s", subject.Assignment.Key(), err)}
	}
	if deployed[subject.Assignment.Host.Name][subject.Assignment.Target.Name] != tree {
		for _, finding := range o.templates.Check(subject, rendered) {
			problems = append(problems, finding.String())
		}
	}
	return tree, problems
}

// hosts are those that get a folder: every cluster type, and every cluster where the fleet assigns to
// clusters at all.
func (o *outcome) hosts() []*schedule.Host {
	assignsToClusters := slices.ContainsFunc(o.fleet.TargetPolicies, func(p fleet.TargetPolicy) bool { return p.ClusterSelector != nil }) ||
		slices.ContainsFunc(o.fleet.Assignments, func(p fleet.ExplicitAssignment) bool { return p.Cluster != "" })
	if assignsToClusters {
		return o.schedule.Hosts
	}
	return slices.DeleteFunc(slices.Clone(o.schedule.Hosts), func(host *schedule.Host) bool { return host.Cluster != nil })
}

// wanted arranges tree ids by host and deployment target.
func (o *outcome) wanted(trees []string) gitops.Deployed {
	wanted := gitops.Deployed{}
	for _, host := range o.hosts() {
		wanted[host.Name] = map[string]string{}
	}
	for i, assignment := range o.schedule.Assignments {
		wanted[assignment.Host.Name][assignment.Target.Name] = trees[i]
	}
	return wanted
}

// edit is what the repository is to hold.
func (o *outcome) edit(trees []string, repo *render.Repo) map[string]gitops.Host {
	hosts := map[string]gitops.Host{}
	for _, host := range o.hosts() {
		hosts[host.Name] = gitops.Host{Folders: map[string]gitops.Folder{}}
	}
	for i, assignment := range o.schedule.Assignments {
		hosts[assignment.Host.Name].Folders[assignment.Target.Name] = gitops.Folder{
			Tree:  trees[i],
			Files: func() ([]gitops.File, error) { return o.files(i, repo) },
			Record: gitops.Record{
				Workload: assignment.Target.Workload.Name, DeploymentTarget: assignment.Target.Name,
				Policies: assignment.Policies, ConfigVersion: o.snapshots.Snapshots[i].Version,
			},
		}
	}
	return hosts
}

// inParallel calls work with every number below count, on all processors, and waits.
func inParallel(count int, work func(int)) {
	const batch = 32
	var group sync.WaitGroup
	next := make(chan int)
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for start := range next {
				for i := start; i < min(start+batch, count); i++ {
					work(i)
				}
			}
		})
	}
	for start := 0; start < count; start += batch {
		next <- start
	}
	close(next)
	group.Wait()
}

// describeLines is describe with a line for each.
func describeLines(lines []string, most int) string {
	if len(lines) <= most {
		return strings.Join(lines, "\n")
	}
	return fmt.Sprintf("%s\n… and %d more", strings.Join(lines[:most], "\n"), len(lines)-most)
}

// describe joins what a plan's reader wants to know of several names without reading a thousand.
func describe(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
