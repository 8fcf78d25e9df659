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

// FinalChange is the change of an assignment's final objects.
type FinalChange struct {
	// Before and After are sorted by group, kind, namespace and name.
	Before, After []objects.FinalObject
	// Unknown is the reason why Before is unknown, or "". IsLost marks one that may go away.
	Unknown string
	IsLost  bool
	Moved   changes.Move // change of the artifact
}

// FinalChanges yields the changes of the final objects of assignments, given by index, concurrently and in any order.
// It skips assignments without final objects or with unknown ones.
func (r *Computation) FinalChanges(
	ctx context.Context, to Destination, former map[int]render.FormerFolder, yield func(i int, change *FinalChange),
) {
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
			return // reported by the plan
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

// readFormer reads committed objects, or renders former manifests.
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
	if err != nil { // its text may contain values
		what := strings.TrimSpace(former.Manifests.Chart + " " + former.Manifests.Revision())
		change.Unknown, change.IsLost = fmt.Sprintf("%s of %s cannot be fetched or rendered any more", what, former.Manifests.Repo), true
		return
	}
	change.Before = result.Objects
}
