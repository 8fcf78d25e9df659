package values

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/evidence"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

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

func (s *settings) facts() []*evidence.Facts {
	var all []*evidence.Facts
	for _, document := range s.evidence.List {
		if document.Facts != nil {
			all = append(all, document.Facts)
		}
	}
	return all
}

// isGiven reports whether a cluster has a value, by the proof.
func (s *settings) isGiven(cluster, value string) rollout.Given {
	given := rollout.Given{Message: "there are no facts of this cluster"}
	for _, document := range s.evidence.List {
		if document.Compliance != nil {
			of, ok := document.Compliance.Clusters[cluster]
			given.Heard = given.Heard || ok && of.Verdict != verdict.Unknown
		}
		if document.Measurements != nil {
			given.Heard = given.Heard || isMeasured(document.Measurements, cluster)
		}
	}
	for _, facts := range s.facts() {
		of := facts.Clusters[cluster]
		if of.Facts == nil {
			continue
		}
		given.Heard = true
		if s.proof == nil {
			continue
		}
		if !given.Known {
			given.Known, given.Has, given.Message = true, true, ""
		}
		if has, why := s.proves(value, of.Facts); !has {
			given.Has, given.Message = false, why
		}
	}
	return given
}

// checkMeasurements refuses hosts and assignments, which have no figure of a cluster.
func (s *settings) checkMeasurements(diagnostics *diag.Diagnostics) {
	for i, document := range s.evidence.List {
		if document.Measurements == nil {
			continue
		}
		for _, check := range document.Measurements.Checks {
			if check.Of != evidence.OfCluster && check.Of != evidence.OfFleet {
				at := s.evidence.At[i]
				tfvalue.AddErrorf(diagnostics, at, "Measurements of hosts or assignments",
					"%s: the check %q is of = %q: a rollout of values knows clusters, no hosts or assignments: use of = %q or %q",
					at, check.Name, check.Of, evidence.OfCluster, evidence.OfFleet)
			}
		}
	}
}

func isMeasured(of *evidence.Measurements, cluster string) bool {
	return slices.ContainsFunc(of.Checks, func(check evidence.Check) bool {
		figure, ok := check.Figures[cluster]
		return ok && figure.Message == "" && check.Of == evidence.OfCluster
	})
}

// proves returns the reason if it does not.
func (s *settings) proves(text string, facts map[string]any) (bool, string) {
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return false, "the value cannot be read"
	}
	has, err := s.proof.Bool(map[string]any{"value": value, "facts": facts})
	switch {
	case err != nil:
		return false, err.Error()
	case !has:
		return false, "it is not true of the facts"
	}
	return true, ""
}

// reports looks up clusters in all evidence; nil without evidence about clusters.
func (s *settings) reports(in rollout.StepInput, given func(string, folder.Key) rollout.Report) func(string, folder.Key) rollout.Report {
	var knowing []evidence.Lookup
	for _, document := range s.evidence.List {
		if of := document.Compliance; of != nil && len(of.Clusters) > 0 {
			knowing = append(knowing, compliance(in, of))
		}
	}
	if s.proof != nil {
		knowing = append(knowing, given)
	}
	return s.evidence.Reports(in, slices.Clip(knowing)...)
}

// compliance looks up the reports of agents.
func compliance(in rollout.StepInput, of *observe.Evidence) evidence.Lookup {
	return func(cluster string, key folder.Key) rollout.Report {
		is := of.Clusters[cluster]
		report := rollout.Report{Known: true, Tree: in.Deployed[key.Host][key.DeploymentTarget], Status: is.Status}
		if is.Verdict != verdict.Unknown && !of.Time.After(in.Records[key].Changed) {
			report.Status = verdict.Status{Verdict: verdict.Progressing, Message: "it is older than what was given"}
		}
		return report
	}
}
