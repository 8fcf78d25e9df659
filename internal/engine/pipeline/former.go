package pipeline

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/changes"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/parallel"
)

// FinalChange is how the final objects of an assignment change.
type FinalChange struct {
	// Before and After are sorted by group, kind, namespace and name.
	Before, After []objects.Object
	// Unknown says why Before is not known; "" where it is. IsLost says that this may be another time, as an artifact could
	// not be had now.
	Unknown string
	IsLost  bool
	// Moved says how the artifact changes, as in [changes.Finals].
	Moved string
}

// FinalChanges renders former folders and wanted ones into final objects, some at a time, and gives each change to yield, at any
// time and in any order. Of assignments that are not rendered into final objects, or whose wanted ones are not known, there is
// none. former are by the number of the assignment.
func (r *Computation) FinalChanges(ctx context.Context, to Destination, former map[int]render.FormerFolder, yield func(i int, change *FinalChange)) {
	var of []int
	for i, assignment := range r.Schedule.Assignments {
		if _, has := former[i]; has && render.IsRendered(assignment) {
			of = append(of, i)
		}
	}
	parallel.EachAtMost(len(of), maxFinals, func(k int) {
		i := of[k]
		wanted, waitsFor, err := r.Final(ctx, i, to)
		if err != nil || waitsFor != "" {
			return // the plan has the error
		}
		change := &FinalChange{After: wanted}
		change.Moved = changes.MovedFrom(former[i].Manifests, r.manifestsOf(i))
		r.readFormer(ctx, i, former[i], change)
		yield(i, change)
	})
}

func (r *Computation) manifestsOf(i int) *folder.Manifests {
	return &r.Schedule.Assignments[i].Target.Target.Manifests.Manifests
}

// readFormer takes the objects that a folder has, or renders what it was made from.
func (r *Computation) readFormer(ctx context.Context, i int, former render.FormerFolder, change *FinalChange) {
	if slices.ContainsFunc(former.Files, func(file folder.File) bool { return folder.IsInObjectsFolder(file.Name) }) {
		var err error
		if change.Before, err = render.FormerObjects(former.Files, change.After); err != nil {
			change.Unknown = err.Error()
		}
		return
	}
	request, err := r.Templates.FormerRequest(r.Schedule.Assignments[i], former)
	if err != nil {
		change.Unknown = err.Error()
		return
	}
	result, err := r.Renderer.Render(ctx, request)
	if err != nil { // whose text may have a value
		what := strings.TrimSpace(former.Manifests.Chart + " " + former.Manifests.Revision())
		change.Unknown, change.IsLost = fmt.Sprintf("%s of %s cannot be fetched or rendered any more", what, former.Manifests.Repo), true
		return
	}
	change.Before = result.Objects
}
