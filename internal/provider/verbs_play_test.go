package provider_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// update applies a saved plan with one change for each resource.
func (m *matrix) update(verb string) {
	m.bumpVersion()
	plan := m.plan(verb, 2)
	m.checkActions(verb, plan, rowTypes(), providertest.Update)
	dev, prod := m.commits("dev"), m.commits("prod")
	m.applyPlan(verb, plan)
	if m.commits("dev") != dev+1 || m.commits("prod") != prod+1 {
		m.errorf(verb, "all", "the apply makes %d commits on dev, and %d on prod", m.commits("dev")-dev, m.commits("prod")-prod)
	}
	m.checkSettled(verb)
}

// refreshOnly finds changes by hand, and only these. Its apply changes only the state.
func (m *matrix) refreshOnly(verb string) {
	m.commitForeignFiles()
	m.plan(verb+" after a commit of others", 0, providertest.RefreshOnly())
	m.plan("plan after a commit of others", 0)
	for _, name := range outsideTypes() {
		rows[name].edit(m)
		// OpenTofu lacks the exit code: https://github.com/opentofu/opentofu/issues/3107
		plan, diags := m.runner.Plan(m.t.Context(), m.configuration(), providertest.RefreshOnly())
		if m.checkDiagnostics(verb, diags); diags.Err() != nil || plan.ExitCode != 2 && !m.isTofu {
			m.errorf(verb, name, "after a change by hand, the exit code is %d: %s", plan.ExitCode, diags)
		}
		before := m.readOutside()
		m.applyPlan(verb, plan)
		if m.readOutside() != before {
			m.errorf(verb, name, "the apply changes objects outside of the state")
		}
		plan = m.plan("plan after a change of "+name+" by hand", 2)
		m.checkActions(verb, plan, []string{name}, providertest.Update)
		m.applyPlan(verb, plan)
		m.checkSettled(verb)
	}
}

func (m *matrix) destroyPlan(verb string) {
	m.checkActions(verb, m.plan(verb, 2, providertest.Destroy()), rowTypes(), providertest.Delete)
	m.checkSettled(verb)
}

// savedPlan applies plans that are older than other changes.
func (m *matrix) savedPlan(verb string) {
	m.bumpVersion()
	plan := m.plan(verb, 2)
	m.commitForeignFiles()
	m.applyPlan(verb, plan)
	m.checkSettled(verb)

	// After a change of a planned object by hand, the apply succeeds or writes nothing.
	for _, name := range outsideTypes() {
		m.bumpVersion()
		plan := m.plan(verb, 2)
		rows[name].edit(m)
		before := rows[name].outside(m, "")
		diags := m.runner.ApplyPlan(m.t.Context(), plan)
		m.checkDiagnostics(verb, diags)
		if after := rows[name].outside(m, ""); diags.Err() != nil && after != before {
			m.errorf(verb, name, "the apply fails and writes: %s", diags)
		}
		if name == "flotilla_assignment" && (diags.Err() == nil || !strings.Contains(diags.String(), "all/drone/app-core")) {
			m.errorf(verb, name, "the apply does not report that the folder differs from the plan: %v", diags)
		}
		m.apply(verb + " after a change of " + name + " by hand, and then")
		m.checkSettled(verb)
	}

	// A second apply makes the saved plan stale.
	if terraform, ok := m.runner.(*providertest.Terraform); ok {
		m.bumpVersion()
		plan := m.plan(verb, 2)
		m.bumpVersion()
		m.apply(verb)
		before := m.readOutside()
		if diags := terraform.ApplyPlan(m.t.Context(), plan); diags.Err() == nil || m.readOutside() != before {
			m.errorf(verb, "all", "the apply of a stale plan succeeds or writes")
		}
		m.checkSettled(verb)
	}
}

// withoutRefresh plans only changes of the configuration, not changes by hand.
func (m *matrix) withoutRefresh(verb string) {
	for _, name := range outsideTypes() {
		rows[name].edit(m)
	}
	m.plan(verb+" after changes by hand", 0, providertest.SkipRefresh())
	m.apply(verb + " after changes by hand, and then with a refresh")
	m.checkSettled(verb)
	m.bumpVersion()
	plan := m.plan(verb, 2, providertest.SkipRefresh())
	m.checkActions(verb, plan, rowTypes(), providertest.Update)
	m.applyPlan(verb, plan)
	m.checkSettled(verb)
}

// replace replaces all resources. Objects outside of the state stay.
func (m *matrix) replace(verb string) {
	plan := m.plan(verb, 2, providertest.Replace(m.addresses()...))
	m.checkActions(verb, plan, rowTypes(), providertest.DeleteThenCreate)
	m.applyNewHolder(verb, plan)
	m.checkSettled(verb)

	// With create_before_destroy, the new claim needs adopt: it does not know that the record is its own.
	m.adopt, m.createFirst = true, true
	m.apply(verb)
	plan = m.plan(verb, 2, providertest.Replace(m.addresses()...))
	m.checkActions(verb, plan, rowTypes(), providertest.CreateThenDelete)
	m.applyNewHolder(verb+" with create_before_destroy", plan)
	m.checkSettled(verb)
	m.adopt, m.createFirst = false, false
	m.apply(verb)
}

// applyNewHolder applies a plan that gives the records a new holder. It makes at most one commit and changes no other file.
func (m *matrix) applyNewHolder(verb string, plan *providertest.Plan) {
	m.t.Helper()
	commits, before := m.commits("dev"), m.world.files(gitops, "dev")
	m.applyPlan(verb, plan)
	if n := m.commits("dev") - commits; n > 1 {
		m.errorf(verb, "flotilla_assignment", "the apply makes %d commits", n)
	}
	for name, content := range m.world.files(gitops, "dev") {
		if before[name] != content && !strings.Contains(name, "/.flotilla/") {
			m.errorf(verb, "flotilla_assignment", "the apply changes %s", name)
		}
	}
}

// target applies changes of the named resources only.
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
		m.checkActions(verb, plan, group, providertest.Update)
		m.applyPlan(verb, plan)
		for _, name := range outsideTypes() {
			if isChanged := rows[name].outside(m, "") != before[name]; isChanged != slices.Contains(group, name) {
				m.errorf(verb, name, "-target of %v changes the resource: %t", addresses, isChanged)
			}
		}
		left = slices.DeleteFunc(left, func(name string) bool { return slices.Contains(group, name) })
		if len(left) > 0 {
			m.checkActions(verb+", and then", m.plan(verb, 2), left, providertest.Update)
		}
	}
	m.checkSettled(verb)
}

// moved gives all resources new addresses. Nothing else changes.
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
	// Without moved blocks, the assignment would remove and add the same folders, and the claim would belong to another state.
	_, diags := m.runner.Plan(m.t.Context(), m.configuration())
	m.checkDiagnostics(verb, diags)
	if text := diags.String(); diags.Err() == nil || !strings.Contains(text, "moved {") || m.readOutside() != before {
		m.errorf(verb, "flotilla_assignment", "a new address without a moved block reports %s", text)
	}
	plan := m.plan(verb, 2, blocks...)
	m.checkActions(verb, plan, rowTypes(), providertest.NoOp)
	m.applyPlan(verb, plan)
	if m.readOutside() != before {
		m.errorf(verb, "all", "objects outside of the state change")
	}
	m.checkSettled(verb)
}

// removed forgets all resources by removed blocks and imports them again by import blocks, if possible.
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
	m.checkActions(verb, plan, rowTypes(), providertest.Forget)
	m.applyPlan(verb, plan)
	if left := m.runner.Now(); len(left) > 0 || m.readOutside() != before {
		m.errorf(verb, "all", "the state still has %d objects, or objects outside of it change", len(left))
	}
	m.applyImported(verb+", and then import blocks", before, imported...)
}

// stateRm does the same by commands.
func (m *matrix) stateRm(verb string) {
	before := m.readOutside()
	m.runner.Lose(m.addresses()...)
	for _, name := range rowTypes() {
		if rows[name].id == nil {
			continue
		}
		diags := m.runner.Import(m.t.Context(), m.configuration(), m.address(name), rows[name].id(m))
		m.checkDiagnostics(verb, diags)
		if diags.Err() != nil {
			m.errorf(verb, name, "%s", diags)
		}
	}
	m.applyImported(verb, before)
}

// applyImported applies after imports. Plans leave the assignment and the claim as they are, may update the agent, the promotion and the
// rollout, whose ids lack attributes, and create the resources that are only in the state. The apply changes only the state.
func (m *matrix) applyImported(verb, before string, options ...providertest.Option) {
	m.t.Helper()
	code := 2 // imports and updates need an apply
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
			m.errorf(verb, name, "the plan after the import is to %s: %s", got, describeChanges(plan))
		}
	}
	m.applyPlan(verb, plan)
	if m.readOutside() != before {
		m.errorf(verb, "all", "objects outside of the state change:\n%s\n->\n%s", before, m.readOutside())
	}
	m.checkSettled(verb)
}

// lostState applies with an empty state to existing objects. The claim belongs to another state until adopt is set. Only its holder
// changes.
func (m *matrix) lostState(verb string) {
	m.runner.Lose(m.addresses()...)
	before := m.readOutside()
	_, diags := m.runner.Plan(m.t.Context(), m.configuration())
	m.checkDiagnostics(verb, diags)
	if !diags.Has("Claim belongs to another state") || m.readOutside() != before {
		m.errorf(verb, "flotilla_cluster_claim", "the diagnostics are %s", diags)
	}
	m.adopt = true
	plan := m.plan(verb, 2)
	m.checkActions(verb, plan, rowTypes(), providertest.Create)
	m.applyNewHolder(verb, plan)
	m.checkSettled(verb)
	m.adopt = false
	m.apply(verb)
	m.checkSettled(verb)
}

func (m *matrix) twoInOneApply(verb string) {
	m.twins = true
	m.apply(verb)
	for _, name := range outsideTypes() {
		if rows[name].outside(m, "-2") == "" {
			m.errorf(verb, name, "the second resource does not exist")
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
			m.errorf(verb, name, "the second resource still exists: %s", left)
		}
	}
	m.checkSettled(verb)
	m.planDuplicates(verb)
}

// planDuplicates plans two resources of each type with one name. The plan has an error for each type with a duplicateError only.
func (m *matrix) planDuplicates(verb string) {
	configuration := m.configuration()
	for _, name := range rowTypes() {
		configuration.Resources[name+".duplicate"] = configuration.Resources[m.address(name)]
	}
	before := m.readOutside()
	_, diags := m.runner.Plan(m.t.Context(), configuration)
	m.checkDiagnostics(verb, diags)
	for _, name := range rowTypes() {
		want := rows[name].duplicateError
		if got := slices.ContainsFunc(diags, func(d providertest.Diagnostic) bool {
			return d.Error && strings.HasPrefix(d.Address, name+".") && (want == "" || d.Summary == want)
		}); got != (want != "") {
			m.errorf(verb, name, "two resources with one name report %s", diags)
		}
	}
	if m.readOutside() != before {
		m.errorf(verb, "all", "objects outside of the state change")
	}
}

func (m *matrix) destroy(verb string) {
	plan := m.plan(verb, 2, providertest.Destroy())
	m.checkActions(verb, plan, rowTypes(), providertest.Delete)
	m.applyPlan(verb, plan)
	if left := m.runner.Now(); len(left) > 0 {
		m.errorf(verb, "all", "the state still has %d objects", len(left))
	}
	for _, name := range outsideTypes() {
		if left := rows[name].outside(m, ""); left != "" {
			m.errorf(verb, name, "outside of the state there is still %s", left)
		}
	}
	m.plan(verb+", and then", 0, providertest.Destroy())
	if foreign := m.show("dev", "somebody/else.yaml"); m.foreignCommits > 0 && foreign != fmt.Sprint("a: ", m.foreignCommits) {
		m.errorf(verb, "flotilla_assignment", "the foreign file is %q", foreign)
	}
}
