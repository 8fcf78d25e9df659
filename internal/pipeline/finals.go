package pipeline

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/parallel"
	"github.com/flotilla/terraform-provider-flotilla/internal/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/wording"
)

// maxFinals is how many assignments are rendered into final objects at once: some wait for an artifact.
const maxFinals = 8

// Final renders the manifests of an assignment into final objects, where its `render` asks for that: else there are none.
// waitsFor says what is not known yet where they are not. An error names the artifact, or the field that cannot be rendered.
func (r *Result) Final(ctx context.Context, i int, to Destination) (final []objects.Object, waitsFor string, err error) {
	if !render.IsRendered(r.Schedule.Assignments[i]) {
		return nil, "", nil
	}
	if !r.Snapshots.Snapshots[i].Known {
		return nil, r.waitsFor(i, to), nil
	}
	if r.Renderer == nil {
		return nil, "the credentials of the provider", nil
	}
	subject := r.subject(i, to)
	files, err := r.Templates.Render(subject)
	if errors.Is(err, render.ErrUnknown) {
		return nil, r.waitsFor(i, to), nil
	}
	if err != nil {
		return nil, "", err
	}
	request, err := r.Templates.Request(subject, files)
	if err != nil {
		return nil, "", err
	}
	result, err := r.Renderer.Render(ctx, request)
	if err != nil {
		return nil, "", err
	}
	return result.Objects, "", nil
}

// preview renders into final objects what is to be, and keeps the errors.
func (r *Rendering) preview(ctx context.Context) {
	var rendered []int
	for i, assignment := range r.Result.Schedule.Assignments {
		if render.IsRendered(assignment) && r.failed[i] == nil {
			rendered = append(rendered, i)
		}
	}
	r.unrendered = make([]string, len(r.Trees))
	parallel.EachAtMost(len(rendered), maxFinals, func(k int) {
		if _, _, err := r.Result.Final(ctx, rendered[k], r.Destination); err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			r.unrendered[rendered[k]] = err.Error()
		}
	})
}

// addUnrendered adds the errors of rendering into final objects.
func (f *findings) addUnrendered(r *Rendering) {
	var all Unrendered
	for i, problem := range r.unrendered {
		if problem != "" {
			all.Add(problem, r.Result.Schedule.Assignments[i].Target.Name)
		}
	}
	for _, message := range all.Messages() {
		f.add("Manifests cannot be rendered", message)
	}
}

// Unrendered are errors of rendering into final objects, each once with the deployment targets that it concerns. The zero
// value has none.
type Unrendered struct {
	targets map[string]map[string]bool
}

// Add adds an error of a deployment target.
func (u *Unrendered) Add(problem, target string) {
	if u.targets == nil {
		u.targets = map[string]map[string]bool{}
	}
	if u.targets[problem] == nil {
		u.targets[problem] = map[string]bool{}
	}
	u.targets[problem][target] = true
}

// Messages are the errors in order, each a sentence without a full stop.
func (u *Unrendered) Messages() []string {
	var messages []string
	for _, problem := range slices.Sorted(maps.Keys(u.targets)) {
		names := slices.Sorted(maps.Keys(u.targets[problem]))
		noun := "deployment target"
		if len(names) > 1 {
			noun += "s"
		}
		messages = append(messages, fmt.Sprintf("%s %s: %s", noun, wording.List(wording.Quoted(names), wording.Named), strings.TrimSuffix(problem, ".")))
	}
	return messages
}
