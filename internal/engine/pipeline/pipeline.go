// Package pipeline runs all steps from a fleet to its folders: it schedules, hydrates and renders, and returns every
// folder with its files, its tree id and its record, and all errors and warnings. It is pure, but for what renders final
// objects, which it is given, and is what the benchmarks measure.
package pipeline

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/hydrate"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Diagnostic is an error or a warning.
type Diagnostic struct {
	Summary string // its kind: a short sentence without a full stop
	Message string // one sentence with its subject
}

// maxFindings bounds how many of one kind are listed: a template that every assignment uses would
// otherwise be reported 20,000 times.
const maxFindings = 50

// Computation is what was computed of a fleet: its assignments, their values, and its templates.
type Computation struct {
	Value     fleet.Value
	Fleet     *fleet.Fleet
	Schedule  *schedule.Decisions
	Snapshots *hydrate.Snapshots
	Templates *render.Templates
	// Renderer renders final objects; while it is nil, they are not known yet.
	Renderer objects.Renderer
	// Definitions check final objects.
	Definitions Definitions

	warnings []Diagnostic
	index    map[string]int // assignments by key

	mu       sync.Mutex
	rendered []*Rendering // for each destination, the latest first

	exposures sync.Map // []exposure of exposedBy, by the hash of an object

	constraintsMutex sync.Mutex
	evaluated        []evaluation // the latest first
}

// Compute schedules and hydrates a fleet, and compiles its templates. The value's model must be known. Of its other
// entries, one that is not known yet makes only the folders unknown that it reaches. The result is nil when there are
// errors; all that are found are returned, equal ones once.
func Compute(value fleet.Value) (*Computation, []Diagnostic) {
	var errors diagnostics
	r := errors.hydrate(value, func(hydrate.ValueFinding) bool { return true })
	if r == nil {
		return nil, errors.list()
	}
	r.Value.Constraints = nil // a cache gives the result to fleets of other rules, too
	var wrong fleet.Findings
	r.Templates, wrong = render.Compile(r.Fleet)
	errors.addAll("Invalid template", wrong)
	if found := errors.list(); len(found) > 0 {
		return nil, found
	}
	wrong, questionable := r.Templates.ChooseWriters(r.Schedule.Assignments)
	wrong = append(wrong, r.Templates.ChooseEncryptedWriters(r.Schedule.Assignments, func(i int) render.EncryptedReach {
		snapshot := r.Snapshots.All[i]
		return render.EncryptedReach{Known: snapshot.Known, Files: snapshot.Encrypted(), References: snapshot.HasSecrets()}
	})...)
	wrong = append(
		wrong,
		r.Templates.CheckSecrets(r.Schedule.Assignments, func(i int) (iter.Seq2[string, fleet.SecretReference], func(string) string) {
			snapshot := r.Snapshots.All[i]
			return snapshot.References(), snapshot.DecidedBy
		})...)
	wrong = append(wrong, r.Templates.CheckRenderable(r.Schedule.Assignments)...)
	errors.addAll("Invalid rendering", wrong)
	if found := errors.list(); len(found) > 0 {
		return nil, found
	}
	r.warnings = r.collectWarnings(questionable)
	r.index = make(map[string]int, len(r.Schedule.Assignments))
	for i, assignment := range r.Schedule.Assignments {
		r.index[assignment.Key()] = i
	}
	return r, nil
}

// Hydrate computes the assignments of a fleet and their values, without templates: the result has nothing else. A key
// that a schema requires and that is missing is no error: who wants to see what is asked for has it as advice. The result
// is nil when there are errors.
func Hydrate(value fleet.Value) (*Computation, []Diagnostic) {
	var errors diagnostics
	r := errors.hydrate(value, func(finding hydrate.ValueFinding) bool { return !finding.Missing })
	if found := errors.list(); len(found) > 0 {
		return nil, found
	}
	return r, nil
}

// hydrate schedules and hydrates a fleet, and adds the errors; of those of values and schemas the ones that count. The
// result is nil where there is nothing to go on with.
func (f *diagnostics) hydrate(value fleet.Value, counts func(hydrate.ValueFinding) bool) *Computation {
	parsed, config, err := value.Fleet()
	if err != nil {
		f.add("Invalid fleet", err.Error())
		return nil
	}
	r := &Computation{Value: value, Fleet: parsed}
	var wrong fleet.Findings
	r.Schedule, wrong = schedule.Schedule(parsed)
	f.addAll("Invalid schedule", wrong)
	r.Snapshots, err = hydrate.Hydrate(parsed, config, r.Schedule.Assignments)
	if err != nil {
		f.add("Invalid configuration values", err.Error())
		return nil
	}
	for _, finding := range r.Snapshots.Findings {
		if counts(finding) {
			f.add("Invalid configuration values", finding.String())
		}
	}
	return r
}

// Schedule computes the assignments of a fleet, without their values, and the names of the config containers that
// reach no assignment.
func Schedule(value fleet.Value) (result *schedule.Decisions, idleContainers []string, found []Diagnostic) {
	parsed, _, err := value.Fleet()
	if err != nil {
		return nil, nil, []Diagnostic{{"Invalid fleet", err.Error()}}
	}
	var errors diagnostics
	result, wrong := schedule.Schedule(parsed)
	errors.addAll("Invalid schedule", wrong)
	if idleContainers, err = hydrate.IdleContainers(parsed, result.Assignments); err != nil {
		errors.add("Invalid fleet", err.Error())
	}
	return result, idleContainers, errors.list()
}

// Warnings are what is probably a mistake but does no harm. flotilla_scheduling has the same as data.
func (r *Computation) Warnings() []Diagnostic { return r.warnings }

func (r *Computation) collectWarnings(ofRendering fleet.Findings) []Diagnostic {
	var warnings diagnostics
	for _, warning := range r.Snapshots.Warnings {
		warnings.add("Questionable configuration values", warning.String())
	}
	var idle, unselected []string
	for _, policy := range r.Schedule.IdlePolicies {
		idle = append(idle, fmt.Sprintf("%q %s", policy.Name, policy.Reason))
	}
	for _, unscheduled := range r.Schedule.Unscheduled {
		unselected = append(unselected, fmt.Sprintf("%q: %s", unscheduled.DeploymentTarget, unscheduled.Reason))
	}
	warnings.join("Target policies that assign nothing", idle)
	warnings.join("Deployment targets without a host", unselected)
	warnings.addAll("Questionable target policy", r.Schedule.Warnings)
	warnings.addAll("Questionable rendering", ofRendering)
	warnings.addAll("Questionable manifests", fleet.FindWarnings(r.Fleet))
	return warnings.list()
}

// AssignmentIndex returns the number of the assignment with this key among Schedule.Assignments.
func (r *Computation) AssignmentIndex(host, deploymentTarget string) (int, bool) {
	i, ok := r.index[host+"/"+deploymentTarget]
	return i, ok
}

// Hosts are those that have a folder: every cluster type, and every cluster where the fleet assigns to
// clusters at all.
func (r *Computation) Hosts() []*schedule.Host {
	assignsToClusters := slices.ContainsFunc(r.Fleet.TargetPolicies, func(p fleet.TargetPolicy) bool { return p.ClusterSelector != nil }) ||
		slices.ContainsFunc(r.Fleet.Assignments, func(p fleet.ExplicitAssignment) bool { return p.Cluster != "" })
	if assignsToClusters {
		return r.Schedule.Hosts
	}
	return slices.DeleteFunc(slices.Clone(r.Schedule.Hosts), func(host *schedule.Host) bool { return host.Cluster != nil })
}

// ClustersOf is [ClustersOf] for the result's fleet.
func (r *Computation) ClustersOf(hosts []string) []string {
	return ClustersOf(r.Fleet, hosts)
}

// ClustersOf returns the names of the clusters that follow hosts, sorted: a host that is a cluster, or all clusters of
// a cluster type. A host "clusters/<name>" counts also where the fleet does not have the cluster any more.
func ClustersOf(f *fleet.Fleet, hosts []string) []string {
	clusters := map[string]bool{}
	types := map[string]bool{}
	for _, host := range hosts {
		if cluster, ok := strings.CutPrefix(host, "clusters/"); ok {
			clusters[cluster] = true
			continue
		}
		types[host] = true
	}
	if f != nil {
		for i := range f.Clusters {
			if types[f.Clusters[i].ClusterType] {
				clusters[f.Clusters[i].Name] = true
			}
		}
	}
	names := make([]string, 0, len(clusters))
	for name := range clusters {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// diagnostics collects findings, equal ones once, and of those that differ only by what they quote the first.
type diagnostics struct {
	found []Diagnostic
	seen  map[Diagnostic]bool
	more  map[string]int // by summary, those that are not listed
	count map[string]int // by summary
	alike map[Diagnostic]int
}

func (f *diagnostics) add(summary, message string) {
	finding := Diagnostic{summary, message}
	if f.seen[finding] {
		return
	}
	if f.seen == nil {
		f.seen, f.more, f.count, f.alike = map[Diagnostic]bool{}, map[string]int{}, map[string]int{}, map[Diagnostic]int{}
	}
	f.seen[finding] = true
	kind := Diagnostic{summary, fleet.WithoutQuotes(message)}
	if f.count[summary] == maxFindings || f.alike[kind] == fleet.MaxAlike {
		f.more[summary]++
		return
	}
	f.count[summary]++
	f.alike[kind]++
	f.found = append(f.found, finding)
}

// addAll adds what is wrong with objects of a fleet, the same of several objects once.
func (f *diagnostics) addAll(summary string, wrong fleet.Findings) {
	for _, finding := range wrong.Group() {
		f.add(summary, finding.String())
	}
}

// join makes one finding of several lines.
func (f *diagnostics) join(summary string, lines []string) {
	if len(lines) > 0 {
		f.add(summary, wording.Lines(lines, wording.Named))
	}
}

func (f *diagnostics) list() []Diagnostic {
	for _, finding := range slices.Clone(f.found) {
		if more := f.more[finding.Summary]; more > 0 {
			f.found = append(f.found, Diagnostic{finding.Summary, fmt.Sprintf("%d further findings of this kind are not shown", more)})
			delete(f.more, finding.Summary)
		}
	}
	return f.found
}
