package pipeline

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/changes"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/parallel"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// maxFinals bounds concurrent renderings: some wait for an artifact.
const maxFinals = 8

// Final returns the final objects of an assignment, if its `render` requests them. waitsFor names unknown values.
func (r *Computation) Final(ctx context.Context, i int, to Destination) (final []objects.FinalObject, waitsFor string, err error) {
	result, waitsFor, err := r.renderer(to).finalResult(ctx, i)
	if result == nil {
		return nil, waitsFor, err
	}
	return result.Objects, "", nil
}

func (r folderRenderer) finalResult(ctx context.Context, i int) (result *objects.Rendering, waitsFor string, err error) {
	if !render.IsRendered(r.Schedule.Assignments[i]) {
		return nil, "", nil
	}
	if !r.Snapshots.All[i].Known {
		return nil, r.waitsFor(i), nil
	}
	subject := r.subject(i)
	files, err := r.Templates.Render(subject)
	if err == nil {
		result, err = r.renderFinal(ctx, subject, files)
	}
	if err == nil {
		err = r.Templates.CheckRelease(subject.Assignment, result)
	}
	if errors.Is(err, render.ErrUnknown) {
		return nil, r.waitsFor(i), nil
	}
	if err != nil {
		return nil, "", err
	}
	return result, "", nil
}

func (r *Computation) renderFinal(ctx context.Context, subject render.Subject, files []render.AssignmentFile) (*objects.Rendering, error) {
	if r.Renderer == nil {
		return nil, render.ErrUnknown
	}
	request, err := r.Templates.Request(subject, files)
	if err != nil {
		return nil, err
	}
	return r.Renderer.Render(ctx, request)
}

type folderFiles struct {
	all      []render.AssignmentFile
	pointers []render.AssignmentFile // rendered by templates
	missing  missing
	schemas  schemaCheck
}

// renderFiles renders an assignment's folder. The error may be [ErrUnrendered].
func (r folderRenderer) renderFiles(ctx context.Context, subject render.Subject) (folderFiles, error) {
	pointers, err := r.Templates.Render(subject)
	if err != nil || !render.HasObjects(subject.Assignment) {
		return folderFiles{all: pointers, pointers: pointers}, err
	}
	var all []render.AssignmentFile
	result, err := r.renderFinal(ctx, subject, pointers)
	if err == nil {
		all, err = r.Templates.AddFinalObjects(subject, pointers, result)
		if !errors.Is(err, render.ErrUnknown) {
			mistakes := []error{err}
			for _, e := range r.exposedIn(subject, result.Objects) {
				mistakes = append(mistakes, fmt.Errorf("%s, and final objects are committed as they are: %s", e.clause, remedy(e.name)))
			}
			err = errors.Join(mistakes...)
		}
	}
	switch {
	case errors.Is(err, render.ErrUnknown):
		return folderFiles{}, render.ErrUnknown
	case ctx.Err() != nil:
		return folderFiles{}, unrendered{context.Cause(ctx)}
	case err != nil:
		return folderFiles{}, unrendered{err}
	}
	return folderFiles{all, pointers, missingOf(result), r.checkSchemas(subject, result)}, nil
}

// ErrUnrendered marks an error in rendering final objects.
var ErrUnrendered = errors.New("final objects cannot be rendered")

type unrendered struct{ error }

func (u unrendered) Is(target error) bool { return target == ErrUnrendered }

func (u unrendered) Unwrap() error { return u.error }

// renderFinals renders all requested final objects and keeps the errors.
func (r *Rendering) renderFinals(ctx context.Context, deployed folder.Trees) {
	var rendered []int
	for i, assignment := range r.Schedule.Assignments {
		if render.IsRendered(assignment) && r.folders[i].failed == nil && r.Snapshots.All[i].Known {
			rendered = append(rendered, i)
		}
	}
	// Group assignments by chart, which is then read once.
	slices.SortStableFunc(rendered, func(a, b int) int {
		assignments := r.Schedule.Assignments
		return strings.Compare(assignments[a].Target.Name, assignments[b].Target.Name)
	})
	parallel.EachAtMost(len(rendered), maxFinals, func(k int) {
		i := rendered[k]
		if render.HasObjects(r.Schedule.Assignments[i]) {
			r.renderTree(ctx, i, deployed)
			return
		}
		of := &r.folders[i]
		result, _, err := r.finalResult(ctx, i)
		switch {
		case ctx.Err() != nil && err != nil:
			of.unrendered = []string{context.Cause(ctx).Error()}
		case err != nil:
			of.unrendered = []string{err.Error()}
		case result != nil:
			subject := r.subject(i)
			of.missing, of.exposed, of.schemas = missingOf(result), r.exposedIn(subject, result.Objects), r.checkSchemas(subject, result)
		}
	})
	r.checkUndefined()
}

// addFinals adds clauses about the final objects of each folder.
func (f *diagnostics) addFinals(r *Rendering, summary string, clauses func(i int) []string) {
	var all Unrendered
	for i := range r.folders {
		for _, clause := range clauses(i) {
			all.Add(clause, r.Schedule.Assignments[i].Target.Name)
		}
	}
	f.add(summary, all.Messages()...)
}

// Warnings returns warnings about final objects: exposed credentials, missing APIs, and schemas.
func (r *Rendering) Warnings() []Diagnostic {
	var warnings diagnostics
	warnings.addFinals(r, "Credentials in final objects", func(i int) (clauses []string) {
		for _, e := range r.folders[i].exposed {
			clauses = append(clauses, e.clause+", and it is in plain text where the manifests are: "+remedy(e.name))
		}
		return clauses
	})
	warnings.addMissing(r)
	warnings.addFinals(r, "Clusters may drop fields of final objects", func(i int) []string { return r.folders[i].schemas.dropped })
	warnings.addFinals(r, "Clusters would refuse final objects", func(i int) []string { return r.refusedIn(i, true) })
	warnings.addRemoteSchemas(r)
	return warnings.list()
}

// Unrendered groups errors in final objects by text. The zero value is empty.
type Unrendered struct {
	wording.Groups[string, string] // names of deployment targets, by error
}

// Messages returns the errors in order, as sentences without a full stop.
func (u *Unrendered) Messages() []string {
	var messages []string
	targets := maps.Collect(u.All())
	for _, problem := range slices.Sorted(maps.Keys(targets)) {
		names := slices.Compact(slices.Sorted(slices.Values(targets[problem])))
		noun := wording.OneOrMany(len(names), "deployment target", "deployment targets")
		messages = append(messages,
			fmt.Sprintf("%s %s: %s", noun, wording.List(wording.Quoted(names), wording.Named), strings.TrimSuffix(problem, ".")))
	}
	return messages
}

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
		now := &r.Schedule.Assignments[i].Target.Target.Manifests.Manifests
		change := &FinalChange{After: wanted, Moved: changes.MovedFrom(former[i].Manifests, now)}
		r.readFormer(ctx, i, former[i], change)
		yield(i, change)
	})
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
