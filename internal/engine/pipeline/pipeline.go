// Package pipeline runs all steps from a fleet to its folders: schedule, hydrate, render. It is pure except for the
// given renderer of final objects. The benchmarks measure this package.
package pipeline

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"iter"
	"maps"
	"slices"
	"strconv"
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
	Summary string // a short sentence without a full stop
	Message string // one sentence with a subject
}

// maxFindings bounds the findings of one kind: a template could repeat one 20,000 times.
const maxFindings = 50

// Computation contains the assignments, values and templates of a fleet.
type Computation struct {
	Value     fleet.Value
	Fleet     *fleet.Fleet
	Schedule  *schedule.Decisions
	Snapshots *hydrate.Snapshots
	Templates *render.Templates
	// Renderer renders final objects. They are unknown while it is nil.
	Renderer    objects.Renderer
	Definitions Definitions

	warnings []Diagnostic
	index    map[string]int // assignments by key

	mu       sync.Mutex
	rendered []*Rendering // by destination, latest first

	exposures sync.Map // []exposure by hash of the object

	constraintsMutex sync.Mutex
	evaluated        []evaluation // latest first
}

// Compute schedules and hydrates a fleet and compiles its templates. The model must be known; another unknown entry
// affects only its own folders. With errors, the computation is nil.
func Compute(value fleet.Value) (*Computation, []Diagnostic) {
	var errors diagnostics
	r := errors.hydrate(value, func(hydrate.ValueFinding) bool { return true })
	if r == nil {
		return nil, errors.list()
	}
	r.Value.Constraints = nil // The cache shares the computation among fleets with other rules.
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
	references := func(i int) (iter.Seq2[string, fleet.SecretReference], func(string) string) {
		return r.Snapshots.All[i].References(), r.Snapshots.All[i].DecidedBy
	}
	wrong = append(wrong, r.Templates.CheckSecrets(r.Schedule.Assignments, references)...)
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

// Hydrate is Compute without templates and without findings about missing keys: [hydrate.Advice] lists them.
func Hydrate(value fleet.Value) (*Computation, []Diagnostic) {
	var errors diagnostics
	r := errors.hydrate(value, func(finding hydrate.ValueFinding) bool { return !finding.Missing })
	if found := errors.list(); len(found) > 0 {
		return nil, found
	}
	return r, nil
}

// hydrate adds all errors, and the findings that counts accepts. It returns nil if no later step can run.
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

// Schedule computes the assignments of a fleet and the config containers that reach none.
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

// Warnings returns probable mistakes.
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

// AssignmentIndex returns the index in Schedule.Assignments.
func (r *Computation) AssignmentIndex(host, deploymentTarget string) (int, bool) {
	i, ok := r.index[host+"/"+deploymentTarget]
	return i, ok
}

// Hosts returns the hosts with a folder: cluster types, and clusters if the fleet assigns to any.
func (r *Computation) Hosts() []*schedule.Host {
	assignsToClusters := slices.ContainsFunc(r.Fleet.TargetPolicies, func(p fleet.TargetPolicy) bool { return p.ClusterSelector != nil }) ||
		slices.ContainsFunc(r.Fleet.Assignments, func(p fleet.ExplicitAssignment) bool { return p.Cluster != "" })
	if assignsToClusters {
		return r.Schedule.Hosts
	}
	return slices.DeleteFunc(slices.Clone(r.Schedule.Hosts), func(host *schedule.Host) bool { return host.Cluster != nil })
}

// ClustersOf returns the clusters that follow the hosts, sorted, including clusters that the fleet no longer has.
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
	return slices.Sorted(maps.Keys(clusters))
}

// diagnostics collects distinct diagnostics, and the first few that differ only in quoted names.
type diagnostics struct {
	found []Diagnostic
	seen  map[Diagnostic]bool
	more  map[string]int // omitted, by summary
	count map[string]int
	alike map[Diagnostic]int
}

func (f *diagnostics) add(summary string, messages ...string) {
	if f.seen == nil {
		f.seen, f.more, f.count, f.alike = map[Diagnostic]bool{}, map[string]int{}, map[string]int{}, map[Diagnostic]int{}
	}
	for _, message := range messages {
		finding := Diagnostic{summary, message}
		if f.seen[finding] {
			continue
		}
		f.seen[finding] = true
		kind := Diagnostic{summary, fleet.WithoutQuotes(message)}
		if f.count[summary] == maxFindings || f.alike[kind] == fleet.MaxAlike {
			f.more[summary]++
			continue
		}
		f.count[summary]++
		f.alike[kind]++
		f.found = append(f.found, finding)
	}
}

func (f *diagnostics) addAll(summary string, wrong fleet.Findings) {
	for _, finding := range wrong.Group() {
		f.add(summary, finding.String())
	}
}

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

// Cache computes each of the last few fleets once, because a refresh, a plan and data sources repeat them. It is safe
// for concurrent use. The zero value is ready.
type Cache struct {
	Renderer    objects.Renderer
	Definitions Definitions

	mu      sync.Mutex
	entries []*cached // latest first
}

// keptFleets bounds a cache. A computation can take some hundred megabytes.
const keptFleets = 4

type cached struct {
	key      [sha256.Size]byte
	once     sync.Once
	result   *Computation
	findings []Diagnostic
}

// Compute is [Compute] with caching.
func (c *Cache) Compute(value fleet.Value) (*Computation, []Diagnostic) {
	entry := c.entry(keyOf(value))
	entry.once.Do(func() {
		if entry.result, entry.findings = Compute(value); entry.result != nil {
			entry.result.Renderer, entry.result.Definitions = c.Renderer, c.Definitions
		}
	})
	return entry.result, entry.findings
}

func (c *Cache) entry(key [sha256.Size]byte) *cached {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := slices.IndexFunc(c.entries, func(e *cached) bool { return e.key == key })
	entry := &cached{key: key}
	if at >= 0 {
		entry = c.entries[at]
		c.entries = slices.Delete(c.entries, at, at+1)
	}
	c.entries = slices.Insert(c.entries, 0, entry)
	c.entries = c.entries[:min(keptFleets, len(c.entries))]
	return entry
}

func keyOf(value fleet.Value) (key [sha256.Size]byte) {
	h := sha256.New()
	writeText(h, value.Format)
	writeText(h, value.Environment)
	writeText(h, value.Model)
	for _, entries := range []map[string]string{value.Config, value.Manifests} {
		writeText(h, strconv.Itoa(len(entries)))
		for _, name := range slices.Sorted(maps.Keys(entries)) {
			writeText(h, name)
			writeText(h, entries[name])
		}
	}
	h.Sum(key[:0])
	return key
}

// writeText writes a text with its length.
func writeText(h hash.Hash, content string) {
	var length [8]byte
	binary.LittleEndian.PutUint64(length[:], uint64(len(content)))
	h.Write(length[:])
	h.Write([]byte(content))
}
