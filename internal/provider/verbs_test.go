package provider_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// matrix plays each verb of Terraform with each resource of the provider. Each apply makes the planned changes in
// the state, in repositories and on clusters, and the next plan is empty.
type matrix struct {
	t       *testing.T
	runner  providertest.Runner
	world   world
	cluster *standInCluster
	url     string // of the GitOps repository
	// statuses is the URL of a Git host with commit statuses.
	statuses    string
	version     int
	clusters    any // the provider's `clusters`
	twins       bool
	adopt       bool
	createFirst bool // create_before_destroy
	renamed     bool

	isTofu         bool
	foreignCommits int
}

func TestEachResourceHasARow(t *testing.T) {
	t.Parallel()
	server, err := startProvider()
	if err != nil {
		t.Fatal(err)
	}
	schema, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if want, got := slices.Sorted(maps.Keys(schema.ResourceSchemas)), slices.Sorted(maps.Keys(rows)); !slices.Equal(want, got) {
		t.Errorf("the provider has the resources %q, and the matrix %q", want, got)
	}
}

func TestMatrixOfResourcesAndVerbs(t *testing.T) {
	t.Parallel()
	if simulated() { // each half of the verbs in its own world
		for half := range slices.Chunk(verbs, (len(verbs)+1)/2) {
			t.Run(half[0].name, func(t *testing.T) {
				t.Parallel()
				m := newSimulatedMatrix(t)
				m.play(half)
			})
		}
		return
	}
	folder, err := mirror()
	if err != nil {
		t.Fatal(err)
	}
	for name, tool := range tools(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMatrix(
				t,
				newBareWorld(t),
				providertest.NewInstalled(t, tool, "flotilla/flotilla", "TF_CLI_CONFIG_FILE="+filepath.Join(folder, "cli.tfrc")),
			)
			m.isTofu = name == "tofu"
			m.play(verbs)
		})
	}
}

func (m *matrix) play(verbs []verb) {
	m.createAll()
	for _, verb := range verbs {
		if verb.play(m, verb.name); m.t.Failed() {
			m.t.Fatalf("%s failed, so the later verbs are skipped", verb.name)
		}
	}
}

type verb struct {
	name string
	play func(m *matrix, verb string)
}

// verbs start and end with all resources applied. The last one destroys them.
var verbs = []verb{
	{"update", (*matrix).update},
	{"-refresh-only", (*matrix).refreshOnly},
	{"plan -destroy", (*matrix).destroyPlan},
	{"saved plan applied late", (*matrix).savedPlan},
	{"-refresh=false", (*matrix).withoutRefresh},
	{"-replace", (*matrix).replace},
	{"-target", (*matrix).target},
	{"moved", (*matrix).moved},
	{"removed block", (*matrix).removed},
	{"state rm and import", (*matrix).stateRm},
	{"lost state", (*matrix).lostState},
	{"two in one apply", (*matrix).twoInOneApply},
	{"destroy", (*matrix).destroy},
}

func newSimulatedMatrix(t *testing.T) *matrix {
	world := newMemoryWorld(t, true)
	return newMatrix(t, world, providertest.New(world.start))
}

func newMatrix(t *testing.T, world world, runner providertest.Runner) *matrix {
	m := &matrix{t: t, runner: runner, world: world, cluster: &standInCluster{}, url: world.spell(gitops, 0)}
	server, certificate := m.cluster.start(t)
	m.statuses = (&standInStatuses{}).start(t)
	m.clusters = map[string]any{}
	for _, name := range []string{"edge", "edge-2"} {
		m.clusters.(map[string]any)[name] = map[string]any{"host": server + "/" + name, "cluster_ca_certificate": certificate, "token": "a-token"}
	}
	return m
}

func (m *matrix) createAll() {
	m.t.Helper()
	m.bumpVersion()
	m.apply("create")
	m.checkSettled("create")
}

// rowTypes returns the types that take part. `make test` leaves out resources of package stateonly except for two, since one
// implementation serves them all.
func rowTypes() []string {
	types := slices.Sorted(maps.Keys(rows))
	if !acceptancetest.All() {
		types = slices.DeleteFunc(types, func(name string) bool {
			return rows[name].id == nil && name != "flotilla_cluster_type" && name != "flotilla_config_container"
		})
	}
	return types
}

func outsideTypes() []string {
	return slices.DeleteFunc(rowTypes(), func(name string) bool { return rows[name].outside == nil })
}

func (m *matrix) address(name string) string {
	if m.renamed {
		return name + ".y"
	}
	return name + ".x"
}

func (m *matrix) addresses() []string {
	var all []string
	for _, name := range rowTypes() {
		all = append(all, m.address(name))
	}
	return all
}

// configuration returns the configuration at the current version, without some types.
func (m *matrix) configuration(without ...string) providertest.Configuration {
	configuration := providertest.Configuration{
		Provider: map[string]any{"clusters": m.clusters}, Resources: map[string]providertest.Resource{},
	}
	for _, name := range rowTypes() {
		if slices.Contains(without, name) {
			continue
		}
		configuration.Resources[m.address(name)] = providertest.Resource{
			Attributes: rows[name].attributes(m, m.version, ""), CreateBeforeDestroy: m.createFirst,
		}
		if m.twins {
			configuration.Resources[name+".twin"] = providertest.Resource{Attributes: rows[name].attributes(m, m.version, "-2")}
		}
	}
	return configuration
}

func (m *matrix) bumpVersion() { m.version++ }

func (m *matrix) errorf(verb, name, format string, arguments ...any) {
	m.t.Helper()
	m.t.Errorf("%s × %s: %s", name, verb, fmt.Sprintf(format, arguments...))
}

// checkDiagnostics fails the test if Terraform reports a bug of the provider.
func (m *matrix) checkDiagnostics(verb string, diags providertest.Diagnostics) {
	m.t.Helper()
	text := diags.String()
	if diags.Bugs() != nil || strings.Contains(text, "bug in the provider") || strings.Contains(text, "inconsistent") {
		m.errorf(verb, "all", "%s", text)
	}
}

// plan requires a plan with an exit code that changes nothing.
func (m *matrix) plan(verb string, code int, options ...providertest.Option) *providertest.Plan {
	m.t.Helper()
	return m.planOf(verb, code, m.configuration(), options...)
}

func (m *matrix) planOf(
	verb string,
	code int,
	configuration providertest.Configuration,
	options ...providertest.Option,
) *providertest.Plan {
	m.t.Helper()
	before := m.readOutside()
	plan, diags := m.runner.Plan(m.t.Context(), configuration, options...)
	m.checkDiagnostics(verb, diags)
	if diags.Err() != nil {
		m.t.Fatalf("%s: the plan fails: %s", verb, diags.Err())
	}
	if after := m.readOutside(); before != after {
		m.errorf(verb, "all", "the plan changes objects outside of the state: %s\n->\n%s", before, after)
	}
	if plan.ExitCode != code {
		m.errorf(verb, "all", "the exit code of the plan is %d, want %d: %s%q", plan.ExitCode, code, describeChanges(plan), plan.Drifted)
	}
	return plan
}

func describeChanges(plan *providertest.Plan) string {
	var all []string
	for _, change := range plan.Changes {
		if change.Action != providertest.NoOp {
			all = append(all, fmt.Sprintf("%s %s: %s", change.Action, change.Address, strings.Join(changedAttributes(change), ", ")))
		}
	}
	return strings.Join(all, "\n")
}

func changedAttributes(change *providertest.Change) []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(change.After)) {
		if before, after := fmt.Sprint(change.Before[name]), fmt.Sprint(change.After[name]); before != after {
			all = append(all, fmt.Sprintf("%s: %.200s -> %.200s", name, before, after))
		}
	}
	return all
}

// checkActions checks that a plan has an action for some types, and none for the others.
func (m *matrix) checkActions(verb string, plan *providertest.Plan, names []string, want providertest.Action) {
	m.t.Helper()
	for _, name := range rowTypes() {
		got, expected := providertest.NoOp, providertest.NoOp
		if change := plan.Change(m.address(name)); change != nil {
			got = change.Action
		}
		if slices.Contains(names, name) {
			expected = want
		}
		if got != expected {
			m.errorf(verb, name, "the plan is to %s, want %s: %s", got, expected, describeChanges(plan))
		}
	}
}

func (m *matrix) applyPlan(verb string, plan *providertest.Plan) {
	m.t.Helper()
	diags := m.runner.ApplyPlan(m.t.Context(), plan)
	m.checkDiagnostics(verb, diags)
	if diags.Err() != nil {
		m.t.Fatalf("%s: the apply fails: %s", verb, diags.Err())
	}
}

// apply requires that an apply succeeds, with at most one commit for each resource of a branch.
func (m *matrix) apply(verb string, options ...providertest.Option) {
	m.t.Helper()
	dev, prod := m.commits("dev"), m.commits("prod")
	plan, diags := m.runner.Apply(m.t.Context(), m.configuration(), options...)
	m.checkDiagnostics(verb, diags)
	if diags.Err() != nil || plan == nil {
		m.t.Fatalf("%s: the apply fails: %s", verb, diags.Err())
	}
	most := 1
	if m.twins {
		most = 2 // one for each
	}
	if m.commits("dev") > dev+most || m.commits("prod") > prod+most {
		m.errorf(verb, "all", "one apply makes %d commits on dev, and %d on prod", m.commits("dev")-dev, m.commits("prod")-prod)
	}
}

// checkSettled checks that state and world match the configuration, and that the next plan is empty. After some verbs, and after all
// verbs in `make acceptance`, it also checks a refresh-only plan.
func (m *matrix) checkSettled(verb string) {
	m.t.Helper()
	m.checkObjects(verb)
	m.plan(verb+", and then", 0)
	if acceptancetest.All() || slices.Contains([]string{"create", "update", "-refresh-only", "-replace"}, verb) {
		m.plan(verb+", and then -refresh-only", 0, providertest.RefreshOnly())
	}
}

func (m *matrix) checkObjects(verb string) {
	m.t.Helper()
	state := m.runner.Now()
	for _, name := range rowTypes() {
		if state[m.address(name)].Current == nil {
			m.errorf(verb, name, "the state lacks the resource and has %q", slices.Sorted(maps.Keys(state)))
		}
		if row := rows[name]; row.outside != nil && row.outside(m, "") != m.wantOutside(name) {
			m.errorf(verb, name, "outside of the state, got\n%s\nwant\n%s", row.outside(m, ""), m.wantOutside(name))
		}
	}
	for address, instance := range state {
		if len(instance.Deposed) > 0 {
			m.errorf(verb, address, "the state has a deposed object")
		}
	}
}

// references has the objects outside of the state by version and type, for all matrices.
var references = struct {
	sync.Mutex
	byVersion map[int]map[string]string
}{byVersion: map[int]map[string]string{}}

// wantOutside returns the objects of a type that a first apply creates in a fresh world at this version.
func (m *matrix) wantOutside(name string) string {
	m.t.Helper()
	references.Lock()
	defer references.Unlock()
	if references.byVersion[m.version] == nil {
		reference := newSimulatedMatrix(m.t)
		reference.version = m.version
		if _, diags := reference.runner.Apply(m.t.Context(), reference.configuration()); diags.Err() != nil {
			m.t.Fatal(diags)
		}
		texts := map[string]string{}
		for _, name := range outsideTypes() {
			texts[name] = rows[name].outside(reference, "")
		}
		references.byVersion[m.version] = texts
	}
	return references.byVersion[m.version][name]
}

func (m *matrix) readOutside() string {
	var all []string
	for _, branch := range []string{"dev", "prod"} {
		all = append(all, fmt.Sprint(branch, " ", m.commits(branch)))
	}
	m.cluster.mu.Lock()
	defer m.cluster.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(m.cluster.objects)) {
		all = append(all, fmt.Sprint(key, " ", m.cluster.objects[key]["spec"]))
	}
	return strings.Join(all, "\n")
}

func (m *matrix) commits(branch string) int { return m.world.commits(gitops, branch) }

func (m *matrix) show(branch, file string) string { return m.world.files(gitops, branch)[file] }

func (m *matrix) folder(branch, path, part string) string {
	files, found := m.world.files(gitops, branch), []string{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasPrefix(name, path+"/") && strings.Contains(name, part) {
			found = append(found, name+"\n"+files[name])
		}
	}
	return strings.Join(found, "\n")
}

func (m *matrix) edit(branch, file string, change func(text string) string) {
	files := maps.Clone(m.world.files(gitops, branch))
	files[file] = change(files[file])
	m.world.commit(gitops, branch, files)
}

func (m *matrix) commitForeignFiles() {
	m.t.Helper()
	m.foreignCommits++
	for _, branch := range []string{"dev", "prod"} {
		m.edit(branch, "somebody/else.yaml", func(string) string { return fmt.Sprint("a: ", m.foreignCommits) })
	}
}
