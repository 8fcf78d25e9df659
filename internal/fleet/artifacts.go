package fleet

import "github.com/flotilla/terraform-provider-flotilla/internal/wording"

// ArtifactInput is the input of flotilla_artifacts.
type ArtifactInput struct {
	Workloads []Workload
	// Sources are the beginnings of the URLs that the manifests of a workload may come from, by the name of its workspace;
	// nil: any.
	Sources map[string][]string
	// Known says that no workload and no workspace is unknown.
	Known bool
}

// DecodeArtifactInput reads workloads and workspaces as fleet() takes them, with the deployment targets of one environment, or
// with all where environment is "". Without workspaces, that is with nil, no sources bound anything. With them, a workload of
// another workspace is an error.
func DecodeArtifactInput(workloads, workspaces any, environment string) (ArtifactInput, Findings) {
	d := newDecoder()
	d.Fleet.Environment, d.EnvironmentKnown = environment, environment != ""
	fields := map[string]any{"workloads": workloads, "workspaces": workspaces}
	root := &Object{reader: &d.Reader, table: &fleetTable, fields: fields}
	d.collection(root, "workspaces", d.workspace)
	d.collection(root, "workloads", d.workload)
	read := ArtifactInput{Workloads: d.Fleet.Workloads, Known: IsKnown(workloads) && IsKnown(workspaces), Sources: map[string][]string{}}
	var names []string
	for i := range d.Fleet.Workspaces {
		names = append(names, d.Fleet.Workspaces[i].Name)
		read.Sources[d.Fleet.Workspaces[i].Name] = d.Fleet.Workspaces[i].Sources
	}
	if workspaces == nil || !read.Known || len(d.Findings) > 0 {
		return read, d.Findings
	}
	for i := range read.Workloads {
		workload := &read.Workloads[i]
		if _, ok := read.Sources[workload.Workspace]; !ok {
			d.Report(PathOf("workloads", workload.Name).Attribute("workspace"), "is %q, which is not among workspaces%s", workload.Workspace,
				wording.DidYouMean(workload.Workspace, names))
		}
	}
	return read, d.Findings
}
