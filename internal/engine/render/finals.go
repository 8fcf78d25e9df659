package render

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// IsRendered reports whether manifests are known and rendered into final objects.
func IsRendered(assignment *schedule.Assignment) bool {
	target := assignment.Target.Target
	return !target.ManifestsPending && fleet.RenderingOf(assignment.Host.ClusterType, target) != fleet.RenderPointers
}

// CheckRenderable reports assignments that cannot be rendered into final objects.
func (t *Templates) CheckRenderable(assignments []*schedule.Assignment) (findings fleet.Findings) {
	var weakened findingsByPlace
	seen := map[string]bool{}
	add := func(path *fleet.Path, format string, arguments ...any) {
		if at := path.String(); !seen[at] {
			seen[at] = true
			findings.Report(path, format, arguments...)
		}
	}
	for _, assignment := range assignments {
		t.checkStrength(assignment, &weakened)
		if !IsRendered(assignment) {
			continue
		}
		host := t.hostOf(assignment)
		how := fleet.RenderingOf(assignment.Host.ClusterType, assignment.Target.Target)
		at := fleet.PathOf("cluster_types", assignment.Host.ClusterType.Name).Attribute("reconciler")
		switch {
		case host.reconciler == nil:
			add(at,
				"is a template of your own, whose objects Flotilla cannot render, and deployment target %q has render = %q",
				assignment.Target.Name, how)
		case host.reconciler.NoObjects != "":
			add(at, "is %q, and deployment target %q has render = %q: %s",
				host.reconciler.Name, assignment.Target.Name, how, host.reconciler.NoObjects)
		}
		if pinned, isPinned := artifactOf(&assignment.Target.Target.Manifests); !isPinned {
			hint := ""
			if pinned.Storage == "git" {
				hint = ", or give the full id of a commit as commit"
			}
			add(targetPath(assignment.Target).Attribute("manifests"),
				"are not pinned, and render = %q needs manifests that do not change by themselves: set artifacts of the fleet to those of "+
					"flotilla_artifacts for these workloads%s", how, hint)
		}
	}
	return append(findings, weakened.list()...)
}

// checkStrength reports a render that is weaker than the cluster type's: it would escape rules for final objects.
func (x *fleetIndex) checkStrength(assignment *schedule.Assignment, to *findingsByPlace) {
	clusterType, target := assignment.Host.ClusterType, assignment.Target.Target
	team := x.workspaceOf(assignment.Target.Workload.Workspace)
	if target.ManifestsPending || !fleet.WeakensRendering(clusterType, target, team.Workspace) {
		return
	}
	to.add(fmt.Sprintf("%q", clusterType.Name), targetPath(assignment.Target).Attribute("render"),
		"%q is weaker than render = %q of cluster type %%s: leave it out, or have the platform set least_render = %[1]q for workspace %[3]q",
		target.Manifests.Render, clusterType.Render, team.Name)
}

// artifactOf returns the artifact of manifests. Unless isPinned, its content may change.
func artifactOf(manifests *fleet.Manifests) (_ artifact.Artifact, isPinned bool) {
	of := artifact.Artifact{Storage: manifests.Storage, Repo: manifests.Repo, Chart: manifests.Chart, Pin: manifests.Pin}
	if of.Storage == "git" && of.Pin == (folder.Pin{}) && folder.IsCommit(manifests.Commit) {
		of.Pin.Commit = manifests.Commit
	}
	if of.Storage == "oci" && of.Pin == (folder.Pin{}) && manifests.Digest != "" {
		of.Pin = folder.Pin{Version: cmp.Or(manifests.Tag, manifests.Version), Digest: manifests.Digest}
	}
	return of, artifact.CheckPin(of.Storage, of.Pin) == nil
}

// DropsFields reports whether the agent may drop unknown fields of final objects. Others refuse such objects.
func (t *Templates) DropsFields(assignment *schedule.Assignment) bool {
	of := t.hostOf(assignment).reconciler
	if of == nil {
		return false
	}
	kind := of.KindFor(manifestsOf(&assignment.Target.Target.Manifests))
	if kind == nil {
		return false
	}
	if kind.Template != "" {
		kind = reconciler.KindNamed(kind.Makes[0])
	}
	fields, _ := t.parametersOf(assignment)[kind.Parameter].(map[string]any)
	return kind.Final != nil && kind.Final.Drops != nil && kind.Final.Drops(fields)
}

// Request returns the request for final objects as the reconciler would apply them.
func (t *Templates) Request(subject Subject, files []AssignmentFile) (*objects.Request, error) {
	assignment := subject.Assignment
	request, _ := requestOf(assignment.Host.ClusterType, &assignment.Target.Target.Manifests)
	request.Artifact.Sources = t.workspaceOf(assignment.Target.Workload.Workspace).Sources
	host := t.hostOf(assignment)
	return request, host.completeRequest(request, host.reconciler, files, "what its reconciler would apply is not known")
}

func requestOf(clusterType *fleet.ClusterType, manifests *fleet.Manifests) (request *objects.Request, isPinned bool) {
	request = &objects.Request{KubernetesVersion: clusterType.KubernetesVersion, APIVersions: clusterType.APIVersions}
	if request.Artifact, isPinned = artifactOf(manifests); request.Artifact.Chart == "" {
		request.Path = manifests.Path
	}
	return request, isPinned
}

// completeRequest adds the settings of reconciler objects. Its error begins with clause.
func (h *hostTemplates) completeRequest(request *objects.Request, by *reconciler.Reconciler, files []AssignmentFile, clause string) error {
	rendered, err := h.reconcilerObjects(files)
	if err != nil {
		return err
	}
	if problems := by.RequestOf(rendered, request); len(problems) > 0 {
		return fmt.Errorf("%s: %s", clause, strings.Join(problems, "; "))
	}
	return nil
}

func (h *hostTemplates) reconcilerObjects(files []AssignmentFile) (rendered []map[string]any, err error) {
	for _, template := range h.templates {
		if template.kind != "reconciler" {
			continue
		}
		for _, file := range files {
			if file.Name != template.file {
				continue
			}
			documents, err := fleet.ReadObjects(string(file.Content))
			if err != nil {
				return nil, fmt.Errorf("%s cannot be read: %w", file.Name, err)
			}
			rendered = append(rendered, documents...)
		}
	}
	return rendered, nil
}

// FormerFolder is the recorded input of an existing folder.
type FormerFolder struct {
	ClusterType *fleet.ClusterType // nil if unchanged
	Manifests   *folder.Manifests  // nil if unknown
	Files       []folder.File
}

// FormerRequest is [Templates.Request] for the recorded input of an existing folder.
func (t *Templates) FormerRequest(assignment *schedule.Assignment, former FormerFolder) (*objects.Request, error) {
	clusterType := cmp.Or(former.ClusterType, assignment.Host.ClusterType)
	named := reconciler.Named(cmp.Or(clusterType.Reconciler, fleet.DefaultReconciler))
	switch {
	case former.Manifests == nil:
		return nil, errors.New("no record has their manifests")
	case named == nil || named.NoObjects != "":
		return nil, fmt.Errorf("their reconciler was %q", clusterType.Reconciler)
	}
	request, isPinned := requestOf(clusterType, &fleet.Manifests{Manifests: *former.Manifests})
	if !isPinned {
		return nil, errors.New("their manifests were not pinned")
	}
	request.Artifact.Sources = t.workspaceOf(assignment.Target.Workload.Workspace).Sources
	files := make([]AssignmentFile, len(former.Files))
	for i, file := range former.Files {
		files[i] = AssignmentFile{Name: file.Name, Content: file.Content}
	}
	return request, t.hostOf(assignment).completeRequest(request, named, files, "what their reconciler applied is not known")
}
