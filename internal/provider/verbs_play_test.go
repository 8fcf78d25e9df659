package provider_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// update is a plan and an apply of it: one change for each, and a second plan without any.
func (m *matrix) update(verb string) {
	m.bumpVersion()
	plan := m.plan(verb, 2)
	m.actions(verb, plan, rowTypes(), providertest.Update)
	dev, prod := m.commits("dev"), m.commits("prod")
	m.applyPlan(verb, plan)
	if m.commits("dev") != dev+1 || m.commits("prod") != prod+1 {
		m.errorf(verb, "all", "the apply makes %d commits on dev, and %d on prod", m.commits("dev")-dev, m.commits("prod")-prod)
	}
	m.checkSettled(verb)
}

// refreshOnly sees what was changed by hand, and nothing else; applied, it changes nothing but the state.
func (m *matrix) refreshOnly(verb string) {
	m.foreign()
	m.plan(verb+" after a commit of others", 0, providertest.RefreshOnly())
	m.plan("plan after a commit of others", 0)
	for _, name := range outsideTypes() {
		rows[name].edit(m)
		// OpenTofu has no exit code for it: https://github.com/opentofu/opentofu/issues/3107
		plan, diags := m.runner.Plan(m.t.Context(), m.configuration(), providertest.RefreshOnly())
		if m.sane(verb, diags); diags.Err() != nil || plan.ExitCode != 2 && !m.isTofu {
			m.errorf(verb, name, "after it was changed by hand, the exit code is %d: %s", plan.ExitCode, diags)
		}
		before := m.readOutside()
		m.applyPlan(verb, plan)
		if m.readOutside() != before {
			m.errorf(verb, name, "the apply changes something")
		}
		plan = m.plan("plan after "+name+" was changed by hand", 2)
		m.actions(verb, plan, []string{name}, providertest.Update)
		m.applyPlan(verb, plan)
		m.checkSettled(verb)
	}
}

// destroyPlan tells what would go, and lets it be.
func (m *matrix) destroyPlan(verb string) {
	m.actions(verb, m.plan(verb, 2, providertest.Destroy()), rowTypes(), providertest.Delete)
	m.checkSettled(verb)
}

// savedPlan applies what was planned before others did something.
func (m *matrix) savedPlan(verb string) {
	m.bumpVersion()
	plan := m.plan(verb, 2)
	m.foreign()
	m.applyPlan(verb, plan)
	m.checkSettled(verb)

	// What the plan is about was changed by hand: it is what the plan saw, or nothing is written.
	for _, name := range outsideTypes() {
		m.bumpVersion()
		plan := m.plan(verb, 2)
		rows[name].edit(m)
		before := rows[name].outside(m, "")
		diags := m.runner.ApplyPlan(m.t.Context(), plan)
		m.sane(verb, diags)
		if after := rows[name].outside(m, ""); diags.Err() != nil && after != before {
			m.errorf(verb, name, "the apply fails, and changes something: %s", diags)
		}
		if name == "flotilla_assignment" && (diags.Err() == nil || !strings.Contains(diags.String(), "all/drone/app-core")) {
			m.errorf(verb, name, "the apply does not say that the folder is not what the plan saw: %v", diags)
		}
		m.apply(verb + " after " + name + " was changed by hand, and then")
		m.checkSettled(verb)
	}

	// Another apply came between.
	if terraform, ok := m.runner.(*providertest.Terraform); ok {
		m.bumpVersion()
		plan := m.plan(verb, 2)
		m.bumpVersion()
		m.apply(verb)
		before := m.readOutside()
		if diags := terraform.ApplyPlan(m.t.Context(), plan); diags.Err() == nil || m.readOutside() != before {
			m.errorf(verb, "all", "a plan of before another apply is applied")
		}
		m.checkSettled(verb)
	}
}

// withoutRefresh sees nothing of what was changed by hand, and writes what the configuration changes.
func (m *matrix) withoutRefresh(verb string) {
	for _, name := range outsideTypes() {
		rows[name].edit(m)
	}
	m.plan(verb+" after changes by hand", 0, providertest.SkipRefresh())
	m.apply(verb + " after changes by hand, and then with a refresh")
	m.checkSettled(verb)
	m.bumpVersion()
	plan := m.plan(verb, 2, providertest.SkipRefresh())
	m.actions(verb, plan, rowTypes(), providertest.Update)
	m.applyPlan(verb, plan)
	m.checkSettled(verb)
}

// replace makes everything anew, and what is outside stays what it is.
func (m *matrix) replace(verb string) {
	plan := m.plan(verb, 2, providertest.Replace(m.addresses()...))
	m.actions(verb, plan, rowTypes(), providertest.DeleteThenCreate)
	m.heldAnew(verb, plan)
	m.checkSettled(verb)

	// In place of the claim that is there, its plan at apply sees a record of which it does not know that it is its own.
	m.adopt, m.createFirst = true, true
	m.apply(verb)
	plan = m.plan(verb, 2, providertest.Replace(m.addresses()...))
	m.actions(verb, plan, rowTypes(), providertest.CreateThenDelete)
	m.heldAnew(verb+" with create_before_destroy", plan)
	m.checkSettled(verb)
	m.adopt, m.createFirst = false, false
	m.apply(verb)
}

// heldAnew applies a plan that gives the records of the assignment a new holder, in one commit, and changes no other file.
func (m *matrix) heldAnew(verb string, plan *providertest.Plan) {
	m.t.Helper()
	commits, before := m.commits("dev"), m.world.files(gitops, "dev")
	m.applyPlan(verb, plan)
	if made := m.commits("dev") - commits; made > 1 {
		m.errorf(verb, "flotilla_assignment", "it makes %d commits", made)
	}
	for name, content := range m.world.files(gitops, "dev") {
		if before[name] != content && !strings.Contains(name, "/.flotilla/") {
			m.errorf(verb, "flotilla_assignment", "it changes %s", name)
		}
	}
}

// target changes what it names, and nothing else.
func (m *matrix) target(verb string) {
	groups := [][]string{{}}
	for _, name := range rowTypes() {
		if rows[name].outside != nil {
			groups = append(groups, []string{name})
		} else {
			groups[0] = append(groups[0], name)
		}
	}
	m.bumpVersion()
	left := rowTypes()
	for _, group := range groups {
		var addresses []string
		for _, name := range group {
			addresses = append(addresses, m.address(name))
		}
		before := map[string]string{}
		for _, name := range outsideTypes() {
			before[name] = rows[name].outside(m, "")
		}
		plan := m.plan(verb, 2, providertest.Target(addresses...))
		m.actions(verb, plan, group, providertest.Update)
		m.applyPlan(verb, plan)
		for _, name := range outsideTypes() {
			if changes := rows[name].outside(m, "") != before[name]; changes != slices.Contains(group, name) {
				m.errorf(verb, name, "%v: it changes is %v", addresses, changes)
			}
		}
		left = slices.DeleteFunc(left, func(name string) bool { return slices.Contains(group, name) })
		if len(left) > 0 {
			m.actions(verb+", and then", m.plan(verb, 2), left, providertest.Update)
		}
	}
	m.checkSettled(verb)
}

// moved gives everything another address, and changes nothing else.
func (m *matrix) moved(verb string) {
	before := m.readOutside()
	var blocks []providertest.Option
	for _, name := range rowTypes() {
		from := m.address(name)
		m.renamed = true
		blocks = append(blocks, providertest.MovedBlock(from, m.address(name)))
		m.renamed = false
	}
	m.renamed = true
	// Without a block an assignment would remove what it adds. The claim is of another state for all that anybody knows.
	_, diags := m.runner.Plan(m.t.Context(), m.configuration())
	m.sane(verb, diags)
	if text := diags.String(); diags.Err() == nil || !strings.Contains(text, "moved {") || m.readOutside() != before {
		m.errorf(verb, "flotilla_assignment", "a new address without a moved block reports %s", text)
	}
	plan := m.plan(verb, 2, blocks...)
	m.actions(verb, plan, rowTypes(), providertest.NoOp)
	m.applyPlan(verb, plan)
	if m.readOutside() != before {
		m.errorf(verb, "all", "something changes")
	}
	m.checkSettled(verb)
}

// removed takes everything out of the state and leaves it where it is; blocks of imports take in again what can be imported.
func (m *matrix) removed(verb string) {
	before := m.readOutside()
	var removed, imported []providertest.Option
	for _, name := range rowTypes() {
		removed = append(removed, providertest.RemovedBlock(m.address(name)))
		if id := rows[name].id; id != nil {
			imported = append(imported, providertest.ImportBlock(m.address(name), id(m)))
		}
	}
	plan := m.planOf(verb, 2, m.configuration(rowTypes()...), removed...)
	m.actions(verb, plan, rowTypes(), providertest.Forget)
	m.applyPlan(verb, plan)
	if left := m.runner.Now(); len(left) > 0 || m.readOutside() != before {
		m.errorf(verb, "all", "the state still has %d objects, or something changes", len(left))
	}
	m.taken(verb+", and then import blocks", before, imported...)
}

// stateRm is the same by commands.
func (m *matrix) stateRm(verb string) {
	before := m.readOutside()
	m.runner.Lose(m.addresses()...)
	for _, name := range rowTypes() {
		if rows[name].id == nil {
			continue
		}
		diags := m.runner.Import(m.t.Context(), m.configuration(), m.address(name), rows[name].id(m))
		m.sane(verb, diags)
		if diags.Err() != nil {
			m.errorf(verb, name, "%s", diags)
		}
	}
	m.taken(verb, before)
}

// taken applies what was imported: the assignment and the claim plan nothing; the agent, the promotion and the rollout learn what an id
// cannot say; what is only in the state is created. Nothing changes but the state.
func (m *matrix) taken(verb, before string, options ...providertest.Option) {
	m.t.Helper()
	code := 2 // an import is something to apply, and so is what the agent learns
	plan := m.plan(verb, code, options...)
	for _, name := range rowTypes() {
		want := []providertest.Action{providertest.NoOp}
		switch {
		case rows[name].id == nil:
			want = []providertest.Action{providertest.Create}
		case slices.Contains([]string{"flotilla_agent", "flotilla_promotion", "flotilla_rollout"}, name):
			want = append(want, providertest.Update)
		}
		got := providertest.NoOp
		if change := plan.Change(m.address(name)); change != nil {
			got = change.Action
		}
		if !slices.Contains(want, got) {
			m.errorf(verb, name, "the plan after an import is to %s: %s", got, describeChanges(plan))
		}
	}
	m.applyPlan(verb, plan)
	if m.readOutside() != before {
		m.errorf(verb, "all", "something changes:\n%s\n->\n%s", before, m.readOutside())
	}
	m.checkSettled(verb)
}

// lostState is an apply of what is all there: the claim belongs to another state for all that anybody knows, unless it is
// told otherwise. Nothing changes but the holder of the claim.
func (m *matrix) lostState(verb string) {
	m.runner.Lose(m.addresses()...)
	before := m.readOutside()
	_, diags := m.runner.Plan(m.t.Context(), m.configuration())
	m.sane(verb, diags)
	if !diags.Has("Claim belongs to another state") || m.readOutside() != before {
		m.errorf(verb, "flotilla_cluster_claim", "the diagnostics are %s", diags)
	}
	m.adopt = true
	plan := m.plan(verb, 2)
	m.actions(verb, plan, rowTypes(), providertest.Create)
	m.heldAnew(verb, plan)
	m.checkSettled(verb)
	m.adopt = false
	m.apply(verb)
	m.checkSettled(verb)
}

// twoInOneApply makes and destroys two of each. Two of one name are an error that names both.
func (m *matrix) twoInOneApply(verb string) {
	m.twins = true
	m.apply(verb)
	for _, name := range outsideTypes() {
		if rows[name].outside(m, "-2") == "" {
			m.errorf(verb, name, "the second one is nowhere")
		}
	}
	m.checkSettled(verb)
	m.bumpVersion()
	m.apply(verb)
	m.checkSettled(verb)
	m.twins = false
	m.apply(verb)
	for _, name := range outsideTypes() {
		if left := rows[name].outside(m, "-2"); left != "" {
			m.errorf(verb, name, "the second one is left: %s", left)
		}
	}
	m.checkSettled(verb)
	m.namesakes(verb)
}

// namesakes are two of one name: what has something outside of the state is refused at plan.
func (m *matrix) namesakes(verb string) {
	configuration := m.configuration()
	for _, name := range rowTypes() {
		configuration.Resources[name+".namesake"] = configuration.Resources[m.address(name)]
	}
	before := m.readOutside()
	_, diags := m.runner.Plan(m.t.Context(), configuration)
	m.sane(verb, diags)
	for _, name := range rowTypes() {
		want := rows[name].namesake
		if got := slices.ContainsFunc(diags, func(d providertest.Diagnostic) bool {
			return d.Error && strings.HasPrefix(d.Address, name+".") && (want == "" || d.Summary == want)
		}); got != (want != "") {
			m.errorf(verb, name, "two resources with one name report %s", diags)
		}
	}
	if m.readOutside() != before {
		m.errorf(verb, "all", "something changes")
	}
}

// destroy ends everything.
func (m *matrix) destroy(verb string) {
	plan := m.plan(verb, 2, providertest.Destroy())
	m.actions(verb, plan, rowTypes(), providertest.Delete)
	m.applyPlan(verb, plan)
	if left := m.runner.Now(); len(left) > 0 {
		m.errorf(verb, "all", "the state still has %d objects", len(left))
	}
	for _, name := range outsideTypes() {
		if left := rows[name].outside(m, ""); left != "" {
			m.errorf(verb, name, "left is %s", left)
		}
	}
	m.plan(verb+", and then", 0, providertest.Destroy())
	if foreign := m.show("dev", "somebody/else.yaml"); m.others > 0 && foreign != fmt.Sprint("a: ", m.others) {
		m.errorf(verb, "flotilla_assignment", "the file of somebody else is %q", foreign)
	}
}
