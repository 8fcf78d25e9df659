package provider

import (
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/pipeline"
	"github.com/flotilla/terraform-provider-flotilla/internal/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
)

// fleetPath is where every resource and data source has its fleet.
var fleetPath = path.Root("fleet")

// maxDiagnostics bounds how many of one kind are listed.
const maxDiagnostics = 50

// compute goes the whole way from a fleet to compiled templates. It returns nil when anything on the
// way is wrong.
func (c *connection) compute(value fleet.Value, diagnostics *diag.Diagnostics) *pipeline.Result {
	compute := pipeline.Compute
	if c != nil {
		compute = c.fleets.Compute
	}
	result, found := compute(value)
	addErrors(diagnostics, found)
	return result
}

func addErrors(diagnostics *diag.Diagnostics, found []pipeline.Finding) {
	for _, finding := range found {
		diagnostics.AddAttributeError(fleetPath, finding.Summary, sentence(finding.Message))
	}
}

func addWarnings(diagnostics *diag.Diagnostics, found []pipeline.Finding) {
	for _, finding := range found {
		diagnostics.AddAttributeWarning(fleetPath, finding.Summary, sentence(finding.Message))
	}
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

// unknownTree stands for the tree id of a folder whose content is not known yet.
const unknownTree = ""

// edit is what the repository is to hold.
func edit(rendering *pipeline.Rendering) map[string]gitops.Host {
	hosts := map[string]gitops.Host{}
	for host := range rendering.Wanted() {
		hosts[host] = gitops.Host{Folders: map[string]gitops.Folder{}}
	}
	for i, assignment := range rendering.Result.Schedule.Assignments {
		record := rendering.Record(i)
		hosts[assignment.Host.Name].Folders[assignment.Target.Name] = gitops.Folder{
			Tree:  rendering.Trees[i],
			Files: func() ([]git.File, error) { return rendering.Files(i) },
			Record: gitops.Record{
				Workload: record.Workload, DeploymentTarget: record.DeploymentTarget,
				Policies: record.Policies, ConfigVersion: record.ConfigVersion,
			},
		}
	}
	return hosts
}

// render renders every folder.
func renderFleet(result *pipeline.Result, owner string, repo *render.Repo, deployed gitops.Deployed, diagnostics *diag.Diagnostics) *pipeline.Rendering {
	rendering := result.Render(pipeline.Destination{Owner: owner, Repo: repo}, rollout.Trees(deployed))
	addErrors(diagnostics, rendering.Findings)
	return rendering
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
