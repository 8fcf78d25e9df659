package provider_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// sequence plays random steps of two people, each with a state. They change, rename and move assignments, spell URLs differently, lose
// and import states, replace and destroy, while others change the repositories by hand. Each step checks the promises about removals.
type sequence struct {
	t       *testing.T
	random  *rand.Rand
	world   world
	people  []*person
	foreign map[spot]string // files without an owner, which must not change
	log     []string
	tally   *tally
}

// world has the repositories of a sequence and spells their URLs.
type world interface {
	repositories() []string
	spell(repository string, spelling int) string
	files(repository, branch string) map[string]string // nil without the branch
	commit(repository, branch string, files map[string]string)
	commits(repository, branch string) int
	tip(repository, branch string) string // "" without the branch
	check()
}

type spot struct{ repository, branch, file string }

type person struct {
	name   string
	runner providertest.Runner
	wants  map[string]*assignmentConfig // configured assignments by address
	// lastApplied is a copy of wants at the last complete apply; nil after a change by others.
	lastApplied map[string]assignmentConfig
}

type assignmentConfig struct {
	name, repository, branch, path string
	spelling                       int // of the URL
	shape                          shape
	protection                     string
	adopt, keep, createFirst       bool
}

// shape is a fleet: the deployment targets on each host, and a value in all folders.
type shape struct {
	targets [hostCount]uint8 // bit masks
	version int
}

const (
	hostCount   = 3
	targetCount = 5
	all         = 1<<targetCount - 1
)

var (
	branches    = []string{"dev", "live"}
	paths       = []string{"", "clusters/all"}
	names       = []string{"dev", "dev-eu"}
	addresses   = []string{"flotilla_assignment.a", "flotilla_assignment.b"}
	protections = map[string]map[string]any{
		"":        nil,
		"none":    {"max_removed": 0},
		"some":    {"max_removed": 4},
		"percent": {"max_removed_percent": 20},
		"empty":   {"allow_empty": true},
		"free":    {"allow_empty": true, "max_removed": 1000, "emptied_hosts": []any{"t0", "t1", "t2"}},
	}
)

type tally struct{ steps, applied, refused, removed, renamed int }

func newSequence(t *testing.T, seed uint64, world world, runners ...providertest.Runner) *sequence {
	s := &sequence{t: t, random: rand.New(rand.NewPCG(seed, 9)), world: world, foreign: map[spot]string{}, tally: &tally{}}
	for i, runner := range runners {
		s.people = append(s.people, &person{name: fmt.Sprint("person ", i), runner: runner, wants: map[string]*assignmentConfig{}})
	}
	for _, repository := range world.repositories() {
		for _, branch := range branches {
			s.writeForeign(spot{repository, branch, "README.md"})
		}
	}
	s.people[0].wants[addresses[0]] = s.newAssignment()
	return s
}

func (s *sequence) newAssignment() *assignmentConfig {
	repositories := s.world.repositories()
	return &assignmentConfig{
		name: names[0], repository: repositories[0], branch: branches[0], path: paths[s.random.IntN(2)],
		shape: shape{targets: [hostCount]uint8{all, all, all}}, spelling: s.random.IntN(4),
	}
}

func (s *sequence) play(steps int) {
	for range steps {
		s.step()
		if s.t.Failed() {
			s.t.Fatalf("failed after these steps:\n%s", strings.Join(s.log, "\n"))
		}
	}
	s.destroyAll()
	if s.t.Failed() {
		s.t.Fatalf("failed after these steps:\n%s", strings.Join(s.log, "\n"))
	}
}

func (s *sequence) logf(format string, arguments ...any) {
	s.log = append(s.log, fmt.Sprintf(format, arguments...))
}

func (s *sequence) step() {
	s.tally.steps++
	p := s.people[0]
	if len(s.people) > 1 && s.random.IntN(4) == 0 {
		p = s.people[1]
	}
	if len(p.wants) == 0 {
		p.wants[addresses[0]] = s.newAssignment()
		s.logf("%s adds %s: %+v", p.name, addresses[0], *p.wants[addresses[0]])
		return
	}
	address := pick(s.random, slices.Sorted(maps.Keys(p.wants)))
	w := p.wants[address]
	type choice struct {
		weight      int
		description string
		do          func()
	}
	choices := []choice{
		{18, "applies", func() { s.apply(p) }},
		{3, "plans", func() { s.plan(p) }},
		{3, "replaces " + address, func() { s.apply(p, providertest.Replace(address)) }},
		{2, "destroys everything", func() { s.apply(p, providertest.Destroy()) }},
		{1, "taints " + address, func() { p.runner.Taint(address) }},
		{10, "changes the fleet of " + address, func() { s.reshape(&w.shape) }},
		{6, "renames " + address, func() { w.name = pickOther(s.random, names, w.name) }},
		{6, "respells the URL of " + address, func() { w.spelling = s.random.IntN(5) }},
		{2, "moves " + address + " to another branch", func() { w.branch = pickOther(s.random, branches, w.branch) }},
		{2, "moves " + address + " to another path", func() { w.path = pickOther(s.random, paths, w.path) }},
		{2, "moves " + address + " to another repository", func() { w.repository = pickOther(s.random, s.world.repositories(), w.repository) }},
		{4, "changes the protection of " + address, func() { w.protection = pick(s.random, slices.Sorted(maps.Keys(protections))) }},
		{3, "changes adopt of " + address, func() { w.adopt = !w.adopt }},
		{2, "changes on_destroy of " + address, func() { w.keep = !w.keep }},
		{2, "changes create_before_destroy of " + address, func() { w.createFirst = !w.createFirst }},
		{2, "adds an assignment", func() { s.add(p) }},
		{2, "removes " + address + " from the configuration", func() { delete(p.wants, address) }},
		{2, "loses the state of " + address, func() { p.runner.Lose(address); p.lastApplied = nil }},
		{2, "imports " + address, func() { s.importAssignment(p, address) }},
		{6, "somebody changes an owned folder by hand", s.editOwned},
		{2, "somebody removes an owned folder by hand", s.removeOwned},
		{2, "somebody changes a marker or a record by hand", s.editRecord},
		{2, "somebody writes files of their own", s.editForeign},
	}
	total := 0
	for _, choice := range choices {
		total += choice.weight
	}
	n := s.random.IntN(total)
	for _, choice := range choices {
		if n -= choice.weight; n < 0 {
			before := *w
			s.logf("%s %s", p.name, choice.description)
			choice.do()
			if now, ok := p.wants[address]; ok && *now != before {
				s.logf("    %+v", *now)
			}
			return
		}
	}
}

func pick[T any](random *rand.Rand, from []T) T { return from[random.IntN(len(from))] }

func pickOther(random *rand.Rand, from []string, current string) string {
	return pick(random, slices.DeleteFunc(slices.Clone(from), func(one string) bool { return one == current }))
}

func (s *sequence) reshape(fleet *shape) {
	host := s.random.IntN(hostCount)
	switch s.random.IntN(8) {
	case 0:
		fleet.targets[host] = 0
	case 1:
		fleet.targets[host] = all
	case 2:
		fleet.targets = [hostCount]uint8{}
	case 3:
		fleet.targets = [hostCount]uint8{all, all, all}
	case 4, 5:
		fleet.version++
	default:
		fleet.targets[host] ^= 1 << s.random.IntN(targetCount)
	}
}

func (s *sequence) add(p *person) {
	for _, address := range addresses {
		if p.wants[address] == nil {
			p.wants[address] = s.newAssignment()
			p.wants[address].name = pick(s.random, names)
			p.wants[address].path = pick(s.random, paths)
			s.logf("    %s: %+v", address, *p.wants[address])
			return
		}
	}
}

func (s *sequence) configuration(p *person) providertest.Configuration {
	configuration := providertest.Configuration{Resources: map[string]providertest.Resource{}}
	for address, w := range p.wants {
		attributes := map[string]any{
			"name": w.name, "fleet": w.shape.fleet(),
			"gitops_repo": map[string]any{"url": s.world.spell(w.repository, w.spelling), "branch": w.branch, "path": w.path},
		}
		if limits := protections[w.protection]; limits != nil {
			attributes["protection"] = limits
		}
		if w.adopt {
			attributes["adopt"] = true
		}
		if w.keep {
			attributes["on_destroy"] = "keep"
		}
		configuration.Resources[address] = providertest.Resource{Attributes: attributes, CreateBeforeDestroy: w.createFirst}
	}
	return configuration
}

func (f shape) fleet() providertest.Call {
	var types, assignments []any
	targets := map[string]any{}
	for target := range targetCount {
		targets[targetName(target)] = map[string]any{
			"environment": "dev", "manifests": map[string]any{"repo": "https://git.example.com/app", "branch": "main"},
		}
	}
	for host := range hostCount {
		types = append(types, map[string]any{"name": hostName(host)})
		for target := range targetCount {
			if f.targets[host]&(1<<target) != 0 {
				assignments = append(assignments, map[string]any{"cluster_type": hostName(host), "deployment_target": "w-" + targetName(target)})
			}
		}
	}
	return providertest.Call{Function: "fleet", Arguments: []any{map[string]any{
		"environment": "dev", "cluster_types": types, "assignments": nonNil(assignments),
		"workspaces":        []any{map[string]any{"name": "team"}},
		"workloads":         []any{map[string]any{"name": "w", "workspace": "team", "deployment_targets": targets}},
		"config_containers": []any{map[string]any{"name": "all", "data": map[string]any{"VERSION": fmt.Sprint("v", f.version)}}},
	}}}
}

func nonNil(list []any) []any {
	if list == nil {
		return []any{}
	}
	return list
}

func hostName(host int) string     { return fmt.Sprint("t", host) }
func targetName(target int) string { return string(rune('a' + target)) }

func (s *sequence) importAssignment(p *person, address string) {
	w := p.wants[address]
	id := s.world.spell(w.repository, w.spelling) + "#" + w.branch + ":" + w.path + ":" + w.name
	diags := p.runner.Import(s.t.Context(), s.configuration(p), address, id)
	p.lastApplied = nil
	if diags.Bugs() != nil {
		s.t.Errorf("the import of %s reports %s", id, diags)
	}
}

func (s *sequence) plan(p *person) {
	before := s.readBranches()
	_, diags := p.runner.Plan(s.t.Context(), s.configuration(p))
	s.checkDiagnostics(diags)
	if changed := before.changedBranch(s.readBranches()); changed != "" {
		s.t.Errorf("a plan changes %s", changed)
	}
}

// checkDiagnostics allows only the errors that a plan or an apply may report after any steps.
func (s *sequence) checkDiagnostics(diags providertest.Diagnostics) {
	if diags.Bugs() != nil {
		s.t.Errorf("the provider has a bug: %s", diags.Bugs())
	}
	for _, diagnostic := range diags {
		if diagnostic.Error && !slices.Contains([]string{
			"Mass deletion", "Nothing would be left", "A host would lose everything", "A host would lose too much",
			"A workload would lose too many hosts", otherState, "Folder does not belong to this assignment",
			"Two assignments have the same name", "Another assignment has this name", "Repository has changed since the plan",
			"One apply would remove and add the same folders", "Two assignments have the same folders",
		}, diagnostic.Summary) {
			s.t.Errorf("got the error %s", diagnostic)
		}
	}
}

func (s *sequence) apply(p *person, options ...providertest.Option) {
	before := s.readBranches()
	plan, diags := p.runner.Apply(s.t.Context(), s.configuration(p), options...)
	after := s.readBranches()
	s.checkDiagnostics(diags)
	for _, diagnostic := range diags {
		if diagnostic.Error {
			s.logf("    refused: %s: %.200s", diagnostic.Summary, strings.ReplaceAll(diagnostic.Detail, "\n", " "))
		}
	}
	changed := before.changedBranch(after)
	if plan == nil {
		s.tally.refused++
		if changed != "" {
			s.t.Errorf("a failed plan changes %s", changed)
		}
		return
	}
	s.checkForeign(after)
	s.checkRemovals(p, before, after, plan, diags)
	if len(options) == 0 {
		s.checkRenames(p, before, after)
	}
	for _, other := range s.people {
		if changed != "" || other == p {
			other.lastApplied = nil
		}
	}
	if diags.Err() != nil {
		s.tally.refused++
		return
	}
	s.tally.applied++
	for address, instance := range p.runner.Now() {
		if len(instance.Deposed) > 0 {
			s.t.Errorf("%s has a deposed object", address)
		}
	}
	if len(options) > 0 || p.hasSharedPath() {
		return
	}
	p.lastApplied = map[string]assignmentConfig{}
	for address, w := range p.wants {
		p.lastApplied[address] = *w
	}
	if s.random.IntN(2) == 0 {
		return // saves time for more steps
	}
	next, diags := p.runner.Plan(s.t.Context(), s.configuration(p))
	if diags.Err() != nil {
		s.t.Errorf("the plan after an apply fails: %s", diags)
	} else if !next.Empty() {
		for _, change := range next.Changes {
			if change.Action != providertest.NoOp {
				s.t.Errorf("the plan after an apply is not empty: %s %s: %v -> %v", change.Action, change.Address, change.Before, change.After)
			}
		}
	}
}

// hasSharedPath reports whether two assignments have one path. If they adopt, each apply takes folders from the other.
func (p *person) hasSharedPath() bool {
	seen := map[[3]string]bool{}
	for _, w := range p.wants {
		seen[[3]string{w.repository, w.branch, w.path}] = true
	}
	return len(seen) < len(p.wants)
}

// destroyAll follows the remedies of the errors and destroys everything: no state may be stuck.
func (s *sequence) destroyAll() {
	for i, p := range s.people {
		for j, address := range addresses {
			w := p.wants[address]
			if w == nil && p.runner.Now()[address].Current == nil && len(p.runner.Now()[address].Deposed) == 0 {
				continue
			}
			if w == nil {
				w = s.newAssignment()
				p.wants[address] = w
			}
			w.name, w.protection, w.adopt, w.keep = fmt.Sprintf("last-%d-%d", i, j), "free", true, false
		}
		if len(p.wants) == 0 {
			continue
		}
		s.logf("%s ends: %v", p.name, slices.Sorted(maps.Keys(p.wants)))
		for _, options := range [][]providertest.Option{nil, {providertest.Destroy()}} {
			_, diags := p.runner.Apply(s.t.Context(), s.configuration(p), options...)
			if diags.Has("One apply would remove and add the same folders") || diags.Has("Two assignments have the same folders") {
				for j, address := range addresses {
					if w := p.wants[address]; w != nil { // its own path
						w.path = fmt.Sprintf("last/%d-%d", i, j)
					}
				}
				_, diags = p.runner.Apply(s.t.Context(), s.configuration(p), options...)
			}
			if diags.Has("Repository has changed since the plan") { // by the other assignment of this apply: plan again
				_, diags = p.runner.Apply(s.t.Context(), s.configuration(p), options...)
			}
			if diags.Err() != nil {
				s.t.Errorf("%s is stuck: %s", p.name, diags.Err())
				return
			}
		}
		if left := p.runner.Now(); len(left) > 0 {
			s.t.Errorf("the state of %s still has %v", p.name, slices.Sorted(maps.Keys(left)))
		}
	}
	s.checkForeign(s.readBranches())
	s.world.check()
}
