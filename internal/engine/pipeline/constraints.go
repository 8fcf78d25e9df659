package pipeline

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/constraint"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
)

// Constraints evaluates rules, the entries of [fleet.Value.Constraints], for a destination. Subjects with unknown
// values are pending. The last few results are kept. They are nil if a rule does not compile or the context ends.
func (r *Computation) Constraints(ctx context.Context, rules map[string]string, to Destination) (*constraint.Results, []Diagnostic) {
	r.constraintsMutex.Lock()
	defer r.constraintsMutex.Unlock()
	for _, known := range r.evaluated {
		if known.to.equal(to) && maps.Equal(known.rules, rules) {
			return known.results, nil
		}
	}
	results, found := checkConstraints(ctx, rules, constraint.Subjects{
		Fleet: r.Fleet, Schedule: r.Schedule, Snapshots: r.Snapshots.All, Config: r.Value.Config,
		Files: func(i int) ([]render.AssignmentFile, string, error) { return r.renderer(to).constrainedFiles(ctx, i) },
		Final: func(i int) ([]objects.FinalObject, string, error) { return r.Final(ctx, i, to) },
	})
	if results != nil {
		const kept = 4 // for flotilla_assignment and data sources
		r.evaluated = slices.Insert(r.evaluated, 0, evaluation{maps.Clone(rules), to, results})
		r.evaluated = r.evaluated[:min(kept, len(r.evaluated))]
	}
	return results, found
}

type evaluation struct {
	rules   map[string]string
	to      Destination
	results *constraint.Results
}

// ScheduledConstraints is [Computation.Constraints] after [Schedule]: other rules are pending.
func ScheduledConstraints(ctx context.Context, value fleet.Value, scheduled *schedule.Decisions) (*constraint.Results, []Diagnostic) {
	if len(value.Constraints) == 0 {
		return &constraint.Results{}, nil
	}
	parsed, _, err := value.Fleet()
	if err != nil {
		return nil, []Diagnostic{{"Invalid fleet", err.Error()}}
	}
	return checkConstraints(ctx, value.Constraints, constraint.Subjects{Fleet: parsed, Schedule: scheduled})
}

func checkConstraints(ctx context.Context, rules map[string]string, subjects constraint.Subjects) (*constraint.Results, []Diagnostic) {
	if len(rules) == 0 {
		return &constraint.Results{}, nil
	}
	program, found := CompileConstraints(rules)
	if program == nil {
		return nil, found
	}
	results, err := program.Check(ctx, subjects)
	if err != nil {
		return nil, []Diagnostic{{"Constraints were not looked at to the end", err.Error()}}
	}
	return results, nil
}

// CompileConstraints compiles rules. The program is nil if there are errors.
func CompileConstraints(rules map[string]string) (*constraint.Program, []Diagnostic) {
	parsed, err := fleet.Value{Constraints: rules}.ParseConstraints()
	if err != nil {
		return nil, []Diagnostic{{"Invalid constraint", err.Error()}}
	}
	program, wrong := constraint.Compile(parsed)
	var errs diagnostics
	for _, finding := range wrong {
		errs.add("Invalid constraint", finding.String())
	}
	if found := errs.list(); len(found) > 0 {
		return nil, found
	}
	return program, nil
}

// ConstraintWarnings returns probable mistakes in rules.
func ConstraintWarnings(rules map[string]string) []Diagnostic {
	parsed, err := fleet.Value{Constraints: rules}.ParseConstraints()
	if err != nil {
		return nil // reported elsewhere
	}
	var warnings diagnostics
	for _, warning := range constraint.Warnings(parsed) {
		warnings.add("Questionable constraint", warning.String())
	}
	return warnings.list()
}

func (r folderRenderer) constrainedFiles(ctx context.Context, i int) (files []render.AssignmentFile, waitsFor string, err error) {
	if snapshot := r.Snapshots.All[i]; !snapshot.Known {
		return nil, r.waitsFor(i), nil
	}
	rendered, err := r.renderFiles(ctx, r.subject(i))
	if errors.Is(err, render.ErrUnknown) {
		return nil, r.waitsFor(i), nil
	}
	if err != nil {
		return nil, "", err
	}
	files = rendered.all
	if render.HasObjects(r.Schedule.Assignments[i]) {
		files = slices.DeleteFunc(files, func(file render.AssignmentFile) bool { return render.IsForObjects(file.Name) })
	}
	return files, "", nil
}
