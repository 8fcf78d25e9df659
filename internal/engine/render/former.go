package render

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

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
		return nil, errors.New("no record says what they were rendered from")
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
