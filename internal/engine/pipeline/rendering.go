package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/parallel"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Destination is the owner and GitOps repository, as templates see them.
type Destination struct {
	Repo  *folder.Location // nil while unknown
	Owner string           // name of the flotilla_assignment
}

func (d Destination) equal(other Destination) bool {
	return d.Owner == other.Owner && (d.Repo == nil) == (other.Repo == nil) && (d.Repo == nil || *d.Repo == *other.Repo)
}

type folderRenderer struct {
	*Computation
	Destination Destination
}

func (r *Computation) renderer(to Destination) folderRenderer { return folderRenderer{r, to} }

// Rendering contains every folder of a fleet for one destination.
type Rendering struct {
	folderRenderer
	// Trees holds the tree ids by assignment, or "" while the content is unknown.
	Trees    []string
	folders  []renderedFolder // by assignment; nil after FromTrees
	deployed folder.Trees     // need no check
	// Findings lists errors in rendered files. Deployed folders were checked when they were written.
	Findings []Diagnostic
}

type renderedFolder struct {
	objects          []folder.ObjectRef
	failed, problems []string
	checked          bool
	unrendered       []string   // error in final objects
	exposed          []exposure // in uncommitted final objects
	missing          missing
	schemas          schemaCheck
}

func (r folderRenderer) subject(i int) render.Subject {
	snapshot := r.Snapshots.All[i]
	return render.Subject{
		Assignment: r.Schedule.Assignments[i], Environment: r.Fleet.Environment,
		Owner: r.Destination.Owner, Repo: r.Destination.Repo,
		ConfigVersion: snapshot.Version, ValuesVersion: snapshot.ValuesVersion, Config: snapshot.Values(),
		Secrets: snapshot.Secrets(), Encrypted: snapshot.Encrypted(), Origin: snapshot.DecidedBy,
	}
}

// Render renders every folder on all processors, checks those without the deployed tree, and keeps the last few
// destinations. It may fetch artifacts for final objects until the context ends.
func (r *Computation) Render(ctx context.Context, to Destination, deployed folder.Trees) *Rendering {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, known := range r.rendered {
		if known.Destination.equal(to) {
			return known.check(ctx, deployed)
		}
	}
	rendering := r.renderer(to).render(ctx, deployed)
	if rendering.renderFinals(ctx, deployed); ctx.Err() != nil {
		return rendering.check(ctx, deployed)
	}
	const kept = 4
	r.rendered = slices.Insert(r.rendered, 0, rendering)
	r.rendered = r.rendered[:min(kept, len(r.rendered))]
	return rendering.check(ctx, deployed)
}

func (r folderRenderer) render(ctx context.Context, deployed folder.Trees) *Rendering {
	count := len(r.Schedule.Assignments)
	rendering := &Rendering{folderRenderer: r, Trees: make([]string, count), folders: make([]renderedFolder, count)}
	parallel.Each(count, func(i int) {
		if r.Snapshots.All[i].Known && !render.HasObjects(r.Schedule.Assignments[i]) {
			rendering.renderTree(ctx, i, deployed)
		}
	})
	return rendering
}

// check returns the rendering with the findings of all folders that are not deployed, including those deployed for an
// earlier caller.
func (r *Rendering) check(ctx context.Context, deployed folder.Trees) *Rendering {
	checked := *r
	checked.deployed = deployed
	needsCheck := func(i int) bool { return r.Trees[i] != "" && !checked.isDeployed(i) }
	parallel.Each(len(r.Trees), func(i int) {
		if of := &r.folders[i]; !of.checked && needsCheck(i) {
			_, of.problems, _ = r.CheckedFiles(ctx, i, r.Destination) // Rendering succeeded before.
			of.checked = true
		}
	})
	var found diagnostics
	var problems Problems
	for i, assignment := range r.Schedule.Assignments {
		problems.Add(assignment, r.folders[i].failed...)
		if needsCheck(i) {
			problems.Add(assignment, r.folders[i].problems...)
		}
	}
	found.add("Invalid rendering", problems.Messages()...)
	found.addFinals(r, "Manifests cannot be rendered", func(i int) []string { return r.folders[i].unrendered })
	found.addFinals(r, "Clusters would refuse final objects", func(i int) []string { return checked.refusedIn(i, false) })
	checked.Findings = found.list()
	return &checked
}

func (r *Rendering) isDeployed(i int) bool {
	assignment := r.Schedule.Assignments[i]
	return r.Trees[i] != "" && r.deployed[assignment.Host.Name][assignment.Target.Name] == r.Trees[i]
}

// Fingerprint hashes all inputs of rendering, including the provider's release.
func (r *Computation) Fingerprint(to Destination, release string) string {
	h := sha256.New()
	key := keyOf(r.Value)
	h.Write(key[:])
	writeText(h, to.Owner)
	if to.Repo != nil {
		writeText(h, to.Repo.URL)
		writeText(h, to.Repo.Branch)
		writeText(h, to.Repo.Path)
	}
	writeText(h, release)
	writeText(h, r.Definitions.Sum)
	return hex.EncodeToString(h.Sum(nil))
}

// FromTrees returns a rendering from trees that an earlier process rendered with the same fingerprint, or nil if a
// tree is missing.
func (r *Computation) FromTrees(to Destination, trees folder.Trees) *Rendering {
	rendering := &Rendering{folderRenderer: r.renderer(to), Trees: make([]string, len(r.Schedule.Assignments))}
	for i, assignment := range r.Schedule.Assignments {
		rendering.Trees[i] = trees[assignment.Host.Name][assignment.Target.Name]
		if rendering.Trees[i] == "" {
			return nil
		}
	}
	return rendering
}

func (r *Rendering) renderTree(ctx context.Context, i int, deployed folder.Trees) {
	subject, of := r.subject(i), &r.folders[i]
	files, err := r.renderFiles(ctx, subject)
	tree := ""
	if err == nil {
		tree, err = git.TreeID(filesOf(files.all))
	}
	switch {
	case errors.Is(err, render.ErrUnknown):
		return
	case errors.Is(err, ErrUnrendered):
		of.unrendered = []string{err.Error()}
		return
	case err != nil:
		of.failed = []string{err.Error()}
		return
	}
	if deployed[subject.Assignment.Host.Name][subject.Assignment.Target.Name] != tree {
		of.problems, of.checked = r.checkFiles(subject, files.pointers), true
	}
	r.Trees[i], of.objects = tree, r.Templates.Objects(subject, files.pointers)
	of.missing, of.schemas = files.missing, files.schemas
}

// Files renders one assignment.
func (r *Rendering) Files(ctx context.Context, i int) ([]git.File, error) {
	files, err := r.renderFiles(ctx, r.subject(i))
	if err != nil {
		return nil, err
	}
	return filesOf(files.all), nil
}

// CheckedFiles renders one assignment and returns its files and their problems.
func (r *Computation) CheckedFiles(ctx context.Context, i int, to Destination) ([]git.File, []string, error) {
	renderer := r.renderer(to)
	subject := renderer.subject(i)
	files, err := renderer.renderFiles(ctx, subject)
	if err != nil {
		return nil, nil, err
	}
	return filesOf(files.all), r.checkFiles(subject, files.pointers), nil
}

func (r *Computation) checkFiles(subject render.Subject, files []render.AssignmentFile) (problems []string) {
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

// Record returns the record of an assignment's folder.
func (r *Rendering) Record(i int) folder.Record {
	assignment := r.Schedule.Assignments[i]
	clusterType := ""
	if assignment.Host.Cluster != nil {
		clusterType = assignment.Host.ClusterType.Name
	}
	return folder.Record{
		Workload: assignment.Target.Workload.Name, Workspace: assignment.Target.Workload.Workspace, DeploymentTarget: assignment.Target.Name,
		ClusterType: clusterType, Policies: assignment.Policies, ConfigVersion: r.Snapshots.All[i].Version,
		Objects: r.objectsOf(i), Manifests: &assignment.Target.Target.Manifests.Manifests,
	}
}

// objectsOf returns the reconciler objects of an assignment. After FromTrees it renders them again; only drifted
// folders need that.
func (r *Rendering) objectsOf(i int) []folder.ObjectRef {
	if r.folders != nil {
		return r.folders[i].objects
	}
	subject := r.subject(i)
	rendered, err := r.Templates.Render(subject)
	if err != nil {
		return nil
	}
	return r.Templates.Objects(subject, rendered)
}

// Wanted returns the trees, with an entry for every host with a folder.
func (r *Rendering) Wanted() folder.Trees {
	wanted := folder.Trees{}
	for _, host := range r.Hosts() {
		wanted[host.Name] = map[string]string{}
	}
	for i, assignment := range r.Schedule.Assignments {
		wanted[assignment.Host.Name][assignment.Target.Name] = r.Trees[i]
	}
	return wanted
}

// WaitsFor names the unknown inputs of a folder, or returns "".
func (r *Rendering) WaitsFor(i int) string {
	if r.Trees[i] != "" {
		return ""
	}
	return r.waitsFor(i)
}

func (r folderRenderer) waitsFor(i int) string {
	assignment := r.Schedule.Assignments[i]
	var waits []string
	if snapshot := r.Snapshots.All[i]; !snapshot.Known {
		for _, container := range snapshot.Containers() {
			if !r.Value.Config.Known(container) {
				waits = append(waits, fmt.Sprintf("config container %q", container))
			}
		}
	}
	if _, known := r.Value.Manifests[assignment.Target.Name]; !known {
		waits = append(waits, fmt.Sprintf("the manifests of deployment target %q", assignment.Target.Name))
	}
	switch {
	case len(waits) > 0:
		return strings.Join(waits, ", ")
	case render.IsRendered(assignment) && r.Renderer == nil:
		return "the credentials of the provider"
	case r.Destination.Repo == nil:
		return "the GitOps repository"
	}
	return "a value that is not known yet"
}

// Problems groups problems with rendered files by text. The zero value is empty.
type Problems struct {
	wording.Groups[string, *schedule.Assignment]
}

// Add adds problems of an assignment.
func (p *Problems) Add(assignment *schedule.Assignment, texts ...string) {
	for _, text := range texts {
		p.Groups.Add(text, assignment)
	}
}

// Messages returns the problems in order of addition, as sentences without a full stop that name the first assignment.
func (p *Problems) Messages() []string {
	var messages []string
	for text, assignments := range p.All() {
		more := ""
		if others := len(assignments) - 1; others > 0 {
			more = fmt.Sprintf(" and %d more", others)
		}
		messages = append(messages, fmt.Sprintf("%s (assignment %q%s)", text, assignments[0].Key(), more))
	}
	return messages
}
