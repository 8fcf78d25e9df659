package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/parallel"
)

// Destination is what templates may use of the owner and of the GitOps repository.
type Destination struct {
	Repo  *folder.Location // nil while the GitOps repository is not known
	Owner string           // name of the flotilla_assignment
}

func (d Destination) equal(other Destination) bool {
	return d.Owner == other.Owner && (d.Repo == nil) == (other.Repo == nil) && (d.Repo == nil || *d.Repo == *other.Repo)
}

// write adds the destination to a hash.
func (d Destination) write(h hash.Hash) {
	writeText(h, d.Owner)
	if d.Repo != nil {
		writeText(h, d.Repo.URL)
		writeText(h, d.Repo.Branch)
		writeText(h, d.Repo.Path)
	}
}

// Rendering is every folder of a fleet for one destination.
type Rendering struct {
	Result      *Result
	Destination Destination
	// Trees are the ids of the folders' trees, by assignment; "" where the content is not known yet.
	Trees []string
	// objects are the reconciler objects, by assignment; nil for a rendering by FromTrees.
	objects [][]folder.ObjectRef
	// failed are errors by assignment; problems are what checks have found, of those that are checked.
	failed, problems [][]string
	checked          []bool
	unrendered       []string      // errors of final objects, by assignment
	exposed          [][]exposure  // credentials in final objects that are not committed, by assignment
	missing          []missing     // by assignment
	schemas          []schemaCheck // by assignment
	deployed         folder.Trees  // those that need no check
	// Findings are errors in rendered files. Folders whose tree is deployed already are not checked, since they were
	// when they were written.
	Findings []Finding
}

// subject is what the templates get of an assignment.
func (r *Result) subject(i int, to Destination) render.Subject {
	snapshot := r.Snapshots.Snapshots[i]
	return render.Subject{
		Assignment: r.Schedule.Assignments[i], Environment: r.Fleet.Environment,
		Owner: to.Owner, ConfigVersion: snapshot.Version, ValuesVersion: snapshot.ValuesVersion, Config: snapshot.Values(), Repo: to.Repo,
		Secrets: snapshot.Secrets(), Encrypted: snapshot.Encrypted(), Origin: snapshot.DecidedBy,
	}
}

// Render renders every folder, on all processors. deployed has the trees that need no check, because they are in the
// repository already: each caller gets the findings of the others. The last few destinations are rendered only once.
//
// What `render` asks for is also rendered into final objects, by artifacts that may have to be fetched first, until the context ends.
func (r *Result) Render(ctx context.Context, to Destination, deployed folder.Trees) *Rendering {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, known := range r.rendered {
		if known.Destination.equal(to) {
			return known.checkedBut(ctx, deployed)
		}
	}
	rendering := r.render(ctx, to, deployed)
	if rendering.finals(ctx, deployed); ctx.Err() != nil {
		return rendering.checkedBut(ctx, deployed)
	}
	const kept = 4
	r.rendered = slices.Insert(r.rendered, 0, rendering)
	r.rendered = r.rendered[:min(kept, len(r.rendered))]
	return rendering.checkedBut(ctx, deployed)
}

func (r *Result) render(ctx context.Context, to Destination, deployed folder.Trees) *Rendering {
	rendering := &Rendering{Result: r, Destination: to, Trees: make([]string, len(r.Schedule.Assignments))}
	rendering.objects = make([][]folder.ObjectRef, len(rendering.Trees))
	rendering.failed, rendering.problems = make([][]string, len(rendering.Trees)), make([][]string, len(rendering.Trees))
	rendering.checked, rendering.missing = make([]bool, len(rendering.Trees)), make([]missing, len(rendering.Trees))
	parallel.Each(len(rendering.Trees), func(i int) {
		if r.Snapshots.Snapshots[i].Known && !render.HasObjects(r.Schedule.Assignments[i]) {
			r.tree(ctx, rendering, i, deployed)
		}
	})
	return rendering
}

// checkedBut is the rendering with the findings of all folders but those that are deployed. It checks those that were
// deployed for whoever asked before.
func (r *Rendering) checkedBut(ctx context.Context, deployed folder.Trees) *Rendering {
	isChecked := func(i int) bool {
		assignment := r.Result.Schedule.Assignments[i]
		return r.Trees[i] != "" && deployed[assignment.Host.Name][assignment.Target.Name] != r.Trees[i]
	}
	parallel.Each(len(r.Trees), func(i int) {
		if !r.checked[i] && isChecked(i) {
			_, r.problems[i], _ = r.Result.CheckedFiles(ctx, i, r.Destination) // it was rendered before without an error
			r.checked[i] = true
		}
	})
	var found findings
	var problems Problems
	for i, assignment := range r.Result.Schedule.Assignments {
		problems.Add(assignment, r.failed[i]...)
		if isChecked(i) {
			problems.Add(assignment, r.problems[i]...)
		}
	}
	for _, message := range problems.Messages() {
		found.add("Invalid rendering", message)
	}
	found.addUnrendered(r)
	own := *r
	own.deployed = deployed
	found.addRefused(&own)
	own.Findings = found.list()
	return &own
}

// isDeployed reports whether the folder of an assignment is in the repository already.
func (r *Rendering) isDeployed(i int) bool {
	assignment := r.Result.Schedule.Assignments[i]
	return r.Trees[i] != "" && r.deployed[assignment.Host.Name][assignment.Target.Name] == r.Trees[i]
}

// Fingerprint is a hash of all that decides what is rendered, including the release of the provider.
func (r *Result) Fingerprint(to Destination, release string) string {
	h := sha256.New()
	key := keyOf(r.Value)
	h.Write(key[:])
	to.write(h)
	writeText(h, release)
	writeText(h, r.Definitions.Sum)
	return hex.EncodeToString(h.Sum(nil))
}

// FromTrees is the rendering of trees that an earlier process has rendered and checked with the same fingerprint. It is
// nil where the tree of a folder is missing.
func (r *Result) FromTrees(to Destination, trees folder.Trees) *Rendering {
	rendering := &Rendering{Result: r, Destination: to, Trees: make([]string, len(r.Schedule.Assignments))}
	for i, assignment := range r.Schedule.Assignments {
		rendering.Trees[i] = trees[assignment.Host.Name][assignment.Target.Name]
		if rendering.Trees[i] == "" {
			return nil
		}
	}
	return rendering
}

// tree renders one assignment, and checks it unless it is deployed.
func (r *Result) tree(ctx context.Context, rendering *Rendering, i int, deployed folder.Trees) {
	subject := r.subject(i, rendering.Destination)
	files, err := r.files(ctx, subject)
	switch {
	case errors.Is(err, render.ErrUnknown):
		return
	case errors.Is(err, ErrUnrendered):
		rendering.unrendered[i] = err.Error()
		return
	case err != nil:
		rendering.failed[i] = []string{err.Error()}
		return
	}
	tree, err := git.TreeID(filesOf(files.all))
	if err != nil {
		rendering.failed[i] = []string{err.Error()}
		return
	}
	if deployed[subject.Assignment.Host.Name][subject.Assignment.Target.Name] != tree {
		rendering.problems[i], rendering.checked[i] = r.problems(subject, files.pointers), true
	}
	rendering.Trees[i], rendering.objects[i] = tree, r.Templates.Objects(subject, files.pointers)
	rendering.missing[i] = files.missing
	if rendering.schemas != nil { // only final objects have one
		rendering.schemas[i] = files.schemas
	}
}

// Files renders one assignment.
func (r *Rendering) Files(ctx context.Context, i int) ([]git.File, error) {
	files, err := r.Result.files(ctx, r.Result.subject(i, r.Destination))
	if err != nil {
		return nil, err
	}
	return filesOf(files.all), nil
}

// CheckedFiles renders one assignment, and returns the files and what is wrong with them.
func (r *Result) CheckedFiles(ctx context.Context, i int, to Destination) ([]git.File, []string, error) {
	subject := r.subject(i, to)
	files, err := r.files(ctx, subject)
	if err != nil {
		return nil, nil, err
	}
	return filesOf(files.all), r.problems(subject, files.pointers), nil
}

// problems are what is wrong with the files that templates have rendered.
func (r *Result) problems(subject render.Subject, files []render.AssignmentFile) (problems []string) {
	for _, finding := range r.Templates.Check(subject, files) {
		problems = append(problems, finding.String())
	}
	return problems
}

func filesOf(rendered []render.AssignmentFile) []git.File {
	files := make([]git.File, len(rendered))
	for i, file := range rendered {
		files[i] = git.File{Name: file.Name, Content: file.Content}
	}
	return files
}

// Record is what the repository keeps about an assignment's folder.
func (r *Rendering) Record(i int) folder.Record {
	assignment := r.Result.Schedule.Assignments[i]
	clusterType := ""
	if assignment.Host.Cluster != nil {
		clusterType = assignment.Host.ClusterType.Name
	}
	return folder.Record{
		Workload: assignment.Target.Workload.Name, Workspace: assignment.Target.Workload.Workspace, DeploymentTarget: assignment.Target.Name,
		ClusterType: clusterType, Policies: assignment.Policies, ConfigVersion: r.Result.Snapshots.Snapshots[i].Version,
		Objects: r.objectsOf(i), Manifests: &assignment.Target.Target.Manifests.Manifests,
	}
}

// objectsOf returns the reconciler objects of an assignment. For a rendering by FromTrees it renders them again; that is
// only needed for the few folders that drifted. Where that fails it returns nil, and Files returns the error.
func (r *Rendering) objectsOf(i int) []folder.ObjectRef {
	if r.objects != nil {
		return r.objects[i]
	}
	subject := r.Result.subject(i, r.Destination)
	rendered, err := r.Result.Templates.Render(subject)
	if err != nil {
		return nil
	}
	return r.Result.Templates.Objects(subject, rendered)
}

// Wanted returns the trees by host and deployment target, with an entry for every host that has a folder.
func (r *Rendering) Wanted() folder.Trees {
	wanted := folder.Trees{}
	for _, host := range r.Result.Hosts() {
		wanted[host.Name] = map[string]string{}
	}
	for i, assignment := range r.Result.Schedule.Assignments {
		wanted[assignment.Host.Name][assignment.Target.Name] = r.Trees[i]
	}
	return wanted
}

// WaitsFor says what is not known yet of an assignment's folder; "" where it is known.
func (r *Rendering) WaitsFor(i int) string {
	if r.Trees[i] != "" {
		return ""
	}
	return r.Result.waitsFor(i, r.Destination)
}

func (r *Result) waitsFor(i int, to Destination) string {
	if waits := r.unknownOf(i, r.Schedule.Assignments[i]); len(waits) > 0 {
		return strings.Join(waits, ", ")
	}
	if render.IsRendered(r.Schedule.Assignments[i]) && r.Renderer == nil {
		return "the credentials of the provider"
	}
	if to.Repo == nil {
		return "the GitOps repository"
	}
	return "a value that is not known yet"
}

func (r *Result) unknownOf(i int, assignment *schedule.Assignment) []string {
	var waits []string
	if snapshot := r.Snapshots.Snapshots[i]; !snapshot.Known {
		for _, container := range snapshot.Containers() {
			if !r.Value.Config.Known(container) {
				waits = append(waits, fmt.Sprintf("config container %q", container))
			}
		}
	}
	if _, known := r.Value.Manifests[assignment.Target.Name]; !known {
		waits = append(waits, fmt.Sprintf("the manifests of deployment target %q", assignment.Target.Name))
	}
	return waits
}
