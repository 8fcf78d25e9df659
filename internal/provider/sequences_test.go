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

// A sequence is what two people do, one thing after the other, with a state each: they change, rename, move and
// respell assignments, lose and import states, replace and destroy, while others change the repositories by
// hand. After each step, all that Flotilla promises of removals is checked.
type sequence struct {
	t       *testing.T
	random  *rand.Rand
	world   world
	people  []*person
	foreign map[spot]string // files of nobody here, that must stay as they are
	did     []string
	tally   *tally
}

// world is the repositories, and the ways to write their URLs.
type world interface {
	repositories() []string
	spell(repository string, way int) string
	files(repository, branch string) map[string]string // nil where the branch is not there
	commit(repository, branch string, files map[string]string)
	commits(repository, branch string) int
	tip(repository, branch string) string // "" where the branch is not there
	check()
}

// spot is a file of a branch.
type spot struct{ repository, branch, file string }

// person is somebody with a state and a configuration.
type person struct {
	name   string
	runner providertest.Runner
	wants  map[string]*assignmentConfig
	// lastApplied is what was wanted when all was last applied, while nobody else has changed anything since.
	lastApplied map[string]assignmentConfig
}

// assignmentConfig is what a person configures of one assignment.
type assignmentConfig struct {
	name, repository, branch, path string
	spelling                       int // of writing the URL
	shape                          shape
	protection                     string
	adopt, keep, createFirst       bool
}

// shape is a fleet: who goes where, and a value that is in all folders.
type shape struct {
	targets [hostCount]uint8 // bits: deployment targets
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

// tally counts what came of the steps.
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
	s.people[0].wants[addresses[0]] = s.anyWish()
	return s
}

func (s *sequence) anyWish() *assignmentConfig {
	repositories := s.world.repositories()
	return &assignmentConfig{
		name: names[0], repository: repositories[0], branch: branches[0], path: paths[s.random.IntN(2)],
		shape: shape{targets: [hostCount]uint8{all, all, all}}, spelling: s.random.IntN(4),
	}
}

// play makes so many steps.
func (s *sequence) play(steps int) {
	for range steps {
		s.step()
		if s.t.Failed() {
			s.t.Fatalf("after:\n%s", strings.Join(s.did, "\n"))
		}
	}
	s.end()
	if s.t.Failed() {
		s.t.Fatalf("after:\n%s", strings.Join(s.did, "\n"))
	}
}

func (s *sequence) say(format string, arguments ...any) {
	s.did = append(s.did, fmt.Sprintf(format, arguments...))
}

// step does one thing.
func (s *sequence) step() {
	s.tally.steps++
	p := s.people[0]
	if len(s.people) > 1 && s.random.IntN(4) == 0 {
		p = s.people[1]
	}
	if len(p.wants) == 0 {
		p.wants[addresses[0]] = s.anyWish()
		s.say("%s adds %s: %+v", p.name, addresses[0], *p.wants[addresses[0]])
		return
	}
	address := pick(s.random, slices.Sorted(maps.Keys(p.wants)))
	w := p.wants[address]
	type choice struct {
		weight int
		what   string
		do     func()
	}
	choices := []choice{
		{18, "applies", func() { s.apply(p) }},
		{3, "plans", func() { s.plan(p) }},
		{3, "replaces " + address, func() { s.apply(p, providertest.Replace(address)) }},
		{2, "destroys everything", func() { s.apply(p, providertest.Destroy()) }},
		{1, "taints " + address, func() { p.runner.Taint(address) }},
		{10, "changes the fleet of " + address, func() { s.reshape(&w.shape) }},
		{6, "renames " + address, func() { w.name = other(s.random, names, w.name) }},
		{6, "respells the URL of " + address, func() { w.spelling = s.random.IntN(5) }},
		{2, "moves " + address + " to another branch", func() { w.branch = other(s.random, branches, w.branch) }},
		{2, "moves " + address + " to another path", func() { w.path = other(s.random, paths, w.path) }},
		{2, "moves " + address + " to another repository", func() { w.repository = other(s.random, s.world.repositories(), w.repository) }},
		{4, "changes the protection of " + address, func() { w.protection = pick(s.random, slices.Sorted(maps.Keys(protections))) }},
		{3, "changes adopt of " + address, func() { w.adopt = !w.adopt }},
		{2, "changes on_destroy of " + address, func() { w.keep = !w.keep }},
		{2, "changes create_before_destroy of " + address, func() { w.createFirst = !w.createFirst }},
		{2, "adds an assignment", func() { s.add(p) }},
		{2, "removes " + address + " from the configuration", func() { delete(p.wants, address) }},
		{2, "loses the state of " + address, func() { p.runner.Lose(address); p.lastApplied = nil }},
		{2, "imports " + address, func() { s.importIt(p, address) }},
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
			s.say("%s %s", p.name, choice.what)
			choice.do()
			if now, ok := p.wants[address]; ok && *now != before {
				s.say("    %+v", *now)
			}
			return
		}
	}
}

func pick[T any](random *rand.Rand, from []T) T { return from[random.IntN(len(from))] }

// other picks another one.
func other(random *rand.Rand, from []string, than string) string {
	return pick(random, slices.DeleteFunc(slices.Clone(from), func(one string) bool { return one == than }))
}

func (s *sequence) reshape(of *shape) {
	host := s.random.IntN(hostCount)
	switch s.random.IntN(8) {
	case 0:
		of.targets[host] = 0
	case 1:
		of.targets[host] = all
	case 2:
		of.targets = [hostCount]uint8{}
	case 3:
		of.targets = [hostCount]uint8{all, all, all}
	case 4, 5:
		of.version++
	default:
		of.targets[host] ^= 1 << s.random.IntN(targetCount)
	}
}

func (s *sequence) add(p *person) {
	for _, address := range addresses {
		if p.wants[address] == nil {
			p.wants[address] = s.anyWish()
			p.wants[address].name = pick(s.random, names)
			p.wants[address].path = pick(s.random, paths)
			s.say("    %s: %+v", address, *p.wants[address])
			return
		}
	}
}

// configuration is what a person has written.
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

func (of shape) fleet() providertest.Call {
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
			if of.targets[host]&(1<<target) != 0 {
				assignments = append(assignments, map[string]any{"cluster_type": hostName(host), "deployment_target": "w-" + targetName(target)})
			}
		}
	}
	return providertest.Call{Function: "fleet", Arguments: []any{map[string]any{
		"environment": "dev", "cluster_types": types, "assignments": orNone(assignments),
		"workspaces":        []any{map[string]any{"name": "team"}},
		"workloads":         []any{map[string]any{"name": "w", "workspace": "team", "deployment_targets": targets}},
		"config_containers": []any{map[string]any{"name": "all", "data": map[string]any{"VERSION": fmt.Sprint("v", of.version)}}},
	}}}
}

func orNone(list []any) []any {
	if list == nil {
		return []any{}
	}
	return list
}

func hostName(host int) string     { return fmt.Sprint("t", host) }
func targetName(target int) string { return string(rune('a' + target)) }

func (s *sequence) importIt(p *person, address string) {
	w := p.wants[address]
	id := s.world.spell(w.repository, w.spelling) + "#" + w.branch + ":" + w.path + ":" + w.name
	said := p.runner.Import(s.t.Context(), s.configuration(p), address, id)
	p.lastApplied = nil
	if said.Bugs() != nil {
		s.t.Errorf("import of %s: %s", id, said)
	}
}

// plan plans, and nothing must change by that.
func (s *sequence) plan(p *person) {
	before := s.readBranches()
	_, said := p.runner.Plan(s.t.Context(), s.configuration(p))
	s.checkDiagnostics(said)
	if changed := before.changedBranch(s.readBranches()); changed != "" {
		s.t.Errorf("a plan changes %s", changed)
	}
}

// checkDiagnostics finds what no plan and no apply may say, whatever was done before.
func (s *sequence) checkDiagnostics(said providertest.Diagnostics) {
	if said.Bugs() != nil {
		s.t.Errorf("a bug of the provider: %s", said.Bugs())
	}
	for _, diagnostic := range said {
		if diagnostic.Error && !slices.Contains([]string{
			"Mass deletion", "Nothing would be left", "A host would lose everything", "A host would lose too much",
			"A workload would lose too many hosts", otherState, "Folder does not belong to this assignment",
			"Two assignments have the same name", "Another assignment has this name", "Repository has changed since the plan",
			"One apply would remove and add the same folders", "Two assignments have the same folders",
		}, diagnostic.Summary) {
			s.t.Errorf("said is %s", diagnostic)
		}
	}
}

// apply applies, and checks what came of it.
func (s *sequence) apply(p *person, options ...providertest.Option) {
	before := s.readBranches()
	plan, said := p.runner.Apply(s.t.Context(), s.configuration(p), options...)
	after := s.readBranches()
	s.checkDiagnostics(said)
	for _, diagnostic := range said {
		if diagnostic.Error {
			s.say("    refused: %s: %.200s", diagnostic.Summary, strings.ReplaceAll(diagnostic.Detail, "\n", " "))
		}
	}
	changed := before.changedBranch(after)
	if plan == nil {
		s.tally.refused++
		if changed != "" {
			s.t.Errorf("a plan that failed changes %s", changed)
		}
		return
	}
	s.checkForeign(after)
	s.checkRemovals(p, before, after, plan, said)
	if len(options) == 0 {
		s.checkRenames(p, before, after)
	}
	for _, someone := range s.people {
		if changed != "" || someone == p {
			someone.lastApplied = nil
		}
	}
	if said.Err() != nil {
		s.tally.refused++
		return
	}
	s.tally.applied++
	for address, instance := range p.runner.Now() {
		if len(instance.Deposed) > 0 {
			s.t.Errorf("%s has a deposed object", address)
		}
	}
	if len(options) > 0 || p.shares() {
		return
	}
	p.lastApplied = map[string]assignmentConfig{}
	for address, w := range p.wants {
		p.lastApplied[address] = *w
	}
	if s.random.IntN(2) == 0 {
		return // half of the time for more steps
	}
	next, said := p.runner.Plan(s.t.Context(), s.configuration(p))
	if said.Err() != nil {
		s.t.Errorf("after an apply the next plan fails: %s", said)
	} else if !next.Empty() {
		for _, change := range next.Changes {
			if change.Action != providertest.NoOp {
				s.t.Errorf("after an apply the next plan is not empty: %s %s: %v -> %v", change.Action, change.Address, change.Before, change.After)
			}
		}
	}
}

// shares tells whether two assignments go to one path, where one that adopts takes from the other for ever.
func (p *person) shares() bool {
	seen := map[[3]string]bool{}
	for _, w := range p.wants {
		seen[[3]string{w.repository, w.branch, w.path}] = true
	}
	return len(seen) < len(p.wants)
}

// end mends all that is left, as somebody would who reads what is said, and destroys everything: no state may
// be stuck.
func (s *sequence) end() {
	for i, p := range s.people {
		for j, address := range addresses {
			w := p.wants[address]
			if w == nil && p.runner.Now()[address].Current == nil && len(p.runner.Now()[address].Deposed) == 0 {
				continue
			}
			if w == nil {
				w = s.anyWish()
				p.wants[address] = w
			}
			w.name, w.protection, w.adopt, w.keep = fmt.Sprintf("last-%d-%d", i, j), "free", true, false
		}
		if len(p.wants) == 0 {
			continue
		}
		s.say("%s ends: %v", p.name, slices.Sorted(maps.Keys(p.wants)))
		for _, options := range [][]providertest.Option{nil, {providertest.Destroy()}} {
			_, said := p.runner.Apply(s.t.Context(), s.configuration(p), options...)
			if said.Has("One apply would remove and add the same folders") || said.Has("Two assignments have the same folders") {
				for j, address := range addresses {
					if w := p.wants[address]; w != nil { // each to a path of its own
						w.path = fmt.Sprintf("last/%d-%d", i, j)
					}
				}
				_, said = p.runner.Apply(s.t.Context(), s.configuration(p), options...)
			}
			if said.Has("Repository has changed since the plan") { // by the other assignment of the same apply: it says to plan again
				_, said = p.runner.Apply(s.t.Context(), s.configuration(p), options...)
			}
			if said.Err() != nil {
				s.t.Errorf("%s is stuck: %s", p.name, said.Err())
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
