package values

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/fleetvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/frame"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout/gate"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// past has earlier steps, from state and private state.
type past struct {
	state    rolloutModel    // zero for a new rollout
	memory   *rollout.Memory // nil for a new rollout, or if lost
	replaced rollout.Memory  // by this one
}

func readPast(ctx context.Context, c *frame.Call[rolloutModel]) past {
	memory := load(ctx, c.Private, c.Diagnostics)
	if c.Prior != nil {
		return past{state: *c.Prior, memory: memory}
	}
	if memory == nil { // a create sees the private state only in the same apply
		memory = &rollout.Memory{}
	}
	return past{replaced: *memory}
}

// decision says which value each cluster has now.
type decision struct {
	*rollout.ValuesOutcome
	past     past
	evidence repository.GivenEvidence
}

// decide returns nil if something is unknown, or after an error. at is zero in a plan.
func decide(m *rolloutModel, before past, at time.Time, diagnostics *diag.Diagnostics) *decision {
	s := m.decode(diagnostics)
	value, known := fleetvalue.Decode(m.Fleet, diagnostics)
	if !known || !s.known || diagnostics.HasError() {
		return nil
	}
	of, err := fleet.ParseModel(value.Model)
	if err != nil {
		diagnostics.AddAttributeError(path.Root("fleet"), "Invalid fleet", tfvalue.Sentence(err.Error()))
		return nil
	}
	hosts := hostsOf(of)
	s.checkNames(m.Name.ValueString(), hosts, diagnostics)
	s.evidence.CheckFleet(of, diagnostics)
	s.checkEnvironment(of.Environment, diagnostics)
	if diagnostics.HasError() {
		return nil
	}
	d := &decision{past: before, evidence: s.evidence, ValuesOutcome: rollout.AdvanceValues(rollout.Values{
		Name: m.Name.ValueString(), Now: s.evidence.Time(), Applied: at, Wanted: s.wanted, Hosts: hosts, Settings: s.rollout, Holds: s.holds,
		Proof: s.observe, Reports: s.reports, Released: before.addTo(s.released), Memory: before.memory,
	})}
	if d.checkBeginning(diagnostics); diagnostics.HasError() {
		return nil
	}
	return d
}

// checkEnvironment refuses reports from clusters of another environment, which may have the same names.
func (s *settings) checkEnvironment(environment string, diagnostics *diag.Diagnostics) {
	for i, document := range s.evidence.List {
		if of := document.Compliance; of != nil && len(of.Clusters) > 0 && of.About.Environment != environment {
			tfvalue.AddErrorf(diagnostics, s.evidence.At[i], "Evidence of another environment",
				"The evidence is about %s, and this fleet is of %q. Set evidence to that of a flotilla_compliance with the same fleet.",
				of.About, environment)
		}
	}
}

func hostsOf(of *fleet.Fleet) map[string]*rollout.FleetHost {
	types := make(map[string]*fleet.ClusterType, len(of.ClusterTypes))
	for i := range of.ClusterTypes {
		types[of.ClusterTypes[i].Name] = &of.ClusterTypes[i]
	}
	hosts := make(map[string]*rollout.FleetHost, len(of.Clusters))
	for i := range of.Clusters {
		cluster := &of.Clusters[i]
		if ofType := types[cluster.ClusterType]; ofType != nil {
			hosts[cluster.Name] = rollout.HostOf(of.Environment, ofType, cluster, []string{cluster.Name})
		}
	}
	return hosts
}

// addTo adds the state's values, if only the private state is lost, or after an import.
func (p *past) addTo(released rollout.ByCluster) rollout.ByCluster {
	if p.memory != nil || p.state.Values.IsNull() {
		return released
	}
	each := maps.Clone(released.Each)
	for cluster, value := range entriesOf(p.state.Values.UnderlyingValue()) {
		plain := tfvalue.Plain(value)
		if text, err := fleet.CanonicalJSON(plain); err == nil && plain != nil {
			if each == nil {
				each = map[string]string{}
			}
			each[cluster] = text
		}
	}
	return rollout.ByCluster{All: released.All, Each: each}
}

// checkBeginning refuses to give a value to clusters whose present value is unknown.
func (d *decision) checkBeginning(diagnostics *diag.Diagnostics) {
	forgotten := d.findForgotten()
	switch {
	case len(d.Unplaced) > 0:
		diagnostics.AddAttributeError(path.Root("released"), "Clusters have another value", fmt.Sprintf(
			"%s already, without evidence of the wanted or the released value: %s. The wanted value would reach all of them at once.\n\nSet "+
				"released to the value that they have, or released = { by_cluster = { %q = … } }. It does no harm later.",
			wording.Count(len(d.Unplaced), "cluster exists", "clusters exist"), listed(d.Unplaced), d.Unplaced[0]))
	case len(forgotten) > 0:
		diagnostics.AddAttributeError(path.Root("released"), "A replacement forgets the values of clusters", fmt.Sprintf(
			"%s another value than a replacement begins with: %s. Set released to their values, or leave out -replace.",
			wording.Count(len(forgotten), "cluster has", "clusters have"), listed(forgotten)))
	}
}

// findForgotten returns the clusters that a replacement would begin with another value.
func (d *decision) findForgotten() (clusters []string) {
	for cluster, assigned := range d.past.replaced.Assigned {
		if _, is := d.Values[cluster]; is && d.Before[cluster] != d.past.replaced.Contents[assigned.Value] {
			clusters = append(clusters, cluster)
		}
	}
	slices.Sort(clusters)
	return clusters
}

func (d *decision) warn(diagnostics *diag.Diagnostics) {
	if len(d.AtOnce) > 0 {
		tfvalue.AddWarningf(diagnostics, path.Root("wanted"), "The first value reaches clusters at once",
			"The plan treats %s without evidence as new, and gives them the wanted value at once: %s. If they exist already, set released "+
				"to their values.", wording.Count(len(d.AtOnce), "cluster", "clusters"), listed(d.AtOnce))
	}
	if len(d.Others) > 0 {
		diagnostics.AddAttributeWarning(path.Root("fleet"), "New clusters have another value", fmt.Sprintf(
			"%s new in the fleet but existed before: %s. The facts report another value than the released one, which reaches them at once. "+
				"Add clusters to the fleet one after the other if they must not change together.",
			wording.Count(len(d.Others), "cluster is", "clusters are"), listed(d.Others)))
	}
	for _, note := range d.Notes {
		diagnostics.AddAttributeWarning(path.Root("stages"), "Rollout may not do what you expect", tfvalue.Sentence(note.String()))
	}
	if d.past.memory == nil {
		return
	}
	var last time.Time
	for _, assigned := range d.past.memory.Assigned {
		if at := assigned.Since.Add(-time.Second); at.After(last) {
			last = at
		}
	}
	if now := d.evidence.Time(); now.Before(last) {
		tfvalue.AddWarningf(diagnostics, path.Root("evidence"), "Evidence is older than the last values",
			"The evidence is from %s, and a value was given at %s, so it says nothing about that value. Read it again, and check that the "+
				"clocks are right.", tfvalue.TimeText(now), tfvalue.TimeText(last))
	}
}

// checkWindows refuses if windows have closed since the plan.
func (d *decision) checkWindows(now time.Time, diagnostics *diag.Diagnostics) bool {
	if gate.Open(now, d.Windowed...) {
		return true
	}
	tfvalue.AddErrorf(diagnostics, path.Root("windows"), "Windows have closed",
		"The plan was made while values could be changed; now they wait for %s. Nothing was given: plan again.",
		gate.WaitText(now, d.Windowed...))
	return false
}

func (m *rolloutModel) setUnknown() {
	m.Values, m.Changes, m.RolledOut = types.DynamicUnknown(), types.ListUnknown(types.StringType), types.BoolUnknown()
	m.RollingOut, m.Proven = types.ObjectUnknown(repository.Summary.Type().AttrTypes), types.DynamicUnknown()
}

func (d *decision) set(ctx context.Context, m *rolloutModel) {
	m.setUnknown()
	if m.Values = d.presentValues(ctx, m); d.Undecided {
		return
	}
	prior := &d.past.state
	m.RolledOut, m.RollingOut, m.Proven = types.BoolValue(d.RolledOut), types.ObjectNull(repository.Summary.Type().AttrTypes), prior.Proven
	for _, summary := range d.RollingOut() {
		m.RollingOut = repository.Summary.Value(summary)
	}
	isProven := d.RolledOut && len(d.Values) > 0 &&
		(prior.Proven.IsNull() || tfvalue.Content(tfvalue.Plain(prior.Proven)) != tfvalue.Content(tfvalue.Plain(m.Wanted)))
	if isProven {
		m.Proven = m.Wanted
	}
	lines := changesOf(d.ValuesOutcome)
	if len(lines) == 0 && !isProven && m.RollingOut.Equal(prior.RollingOut) && m.RolledOut.Equal(prior.RolledOut) {
		m.Changes = prior.Changes
		return
	}
	lines = append(lines, d.Lines()...)
	if isProven {
		lines = append(lines, "the wanted value is proven")
	}
	m.Changes = tfvalue.Texts(lines)
}

func listed(clusters []string) string { return wording.List(slices.Clone(clusters), wording.Named) }

func (d *decision) presentValues(ctx context.Context, m *rolloutModel) types.Dynamic {
	known := spelledValues(m, &d.past.state)
	elements := make(map[string]attr.Value, len(d.Values))
	for cluster, text := range d.Values {
		value, ok := known[text]
		if text == "" {
			if value = d.past.unknownValue(ctx, m, known); value == nil {
				return types.DynamicUnknown()
			}
		} else if !ok {
			value = inferred(text)
			known[text] = value
		}
		elements[cluster] = value
	}
	return types.DynamicValue(mapOf(ctx, elements))
}

// spelledValues returns values of configuration and state, with their types, by their JSON.
func spelledValues(m, prior *rolloutModel) map[string]attr.Value {
	known := map[string]attr.Value{}
	note := func(value attr.Value) {
		if dynamic, ok := value.(types.Dynamic); ok {
			value = dynamic.UnderlyingValue()
		}
		plain := tfvalue.Plain(value)
		if plain == nil || !fleet.IsKnown(plain) {
			return
		}
		if text, err := fleet.CanonicalJSON(plain); err == nil && known[text] == nil {
			known[text] = value
		}
	}
	for _, of := range []types.Dynamic{m.Wanted, m.Released} {
		each, is := elements(of)
		if !is {
			note(of)
		}
		for _, cluster := range slices.Sorted(maps.Keys(each)) {
			note(each[cluster])
		}
	}
	given := entriesOf(prior.Values.UnderlyingValue())
	for _, cluster := range slices.Sorted(maps.Keys(given)) {
		note(given[cluster])
	}
	return known
}

func inferred(text string) attr.Value {
	value, err := fleet.ParseJSON(text)
	if err == nil {
		var inferred attr.Value
		if inferred, err = tfvalue.Infer(value); err == nil {
			return inferred
		}
	}
	return types.StringValue(text) // equal to no canonical JSON
}

// unknownValue returns nil if an earlier value may have another type.
func (p *past) unknownValue(ctx context.Context, m *rolloutModel, known map[string]attr.Value) attr.Value {
	wanted := m.Wanted.UnderlyingValue()
	if wanted == nil || wanted.Type(ctx) != types.StringType {
		return nil
	}
	texts := slices.Collect(maps.Keys(known))
	if p.memory != nil {
		texts = slices.AppendSeq(texts, maps.Values(p.memory.Contents))
	}
	for _, text := range texts {
		if text[0] != '"' {
			return nil
		}
	}
	return types.StringUnknown()
}

// mapOf returns an object if the elements have different types.
func mapOf(ctx context.Context, elements map[string]attr.Value) attr.Value {
	kinds := make(map[string]attr.Type, len(elements))
	var kind attr.Type
	same := true
	for cluster, value := range elements {
		kinds[cluster] = value.Type(ctx)
		if kind == nil {
			kind = kinds[cluster]
		}
		same = same && kind.Equal(kinds[cluster])
	}
	if kind == nil {
		kind = types.StringType
	}
	if !same || kind.TerraformType(ctx).Is(tftypes.DynamicPseudoType) {
		return types.ObjectValueMust(kinds, elements)
	}
	return types.MapValueMust(kind, elements)
}

const (
	maxShown = 60 // bytes of a value
	maxLines = 20 // of changed values
	maxNamed = 5  // clusters in a line
)

func cut(text string) string { return wording.Cut(wording.Line(text), maxShown) }

// changesOf joins clusters with equal changes.
func changesOf(out *rollout.ValuesOutcome) []string {
	type change struct{ from, to string }
	clusters := map[change][]string{}
	for _, cluster := range slices.Sorted(maps.Keys(out.Values)) {
		if c := (change{out.Before[cluster], out.Values[cluster]}); c.from != c.to {
			clusters[c] = append(clusters[c], cluster)
		}
	}
	order := slices.SortedFunc(maps.Keys(clusters), func(a, b change) int {
		return cmp.Or(-cmp.Compare(len(clusters[a]), len(clusters[b])), cmp.Compare(clusters[a][0], clusters[b][0]))
	})
	var lines []string
	for i, c := range order {
		if i == maxLines-1 && len(order) > maxLines {
			return append(lines, fmt.Sprintf("and %d other changes", len(order)-i))
		}
		from := "(none)"
		if c.from != "" {
			from = shown(c.from)
		}
		lines = append(lines, fmt.Sprintf("%s: %s -> %s", wording.List(clusters[c], maxNamed), from, shown(c.to)))
	}
	if len(out.Left) > 0 {
		lines = append(lines, "no value any more, since not in the fleet: "+wording.List(out.Left, maxNamed))
	}
	return lines
}
