package values

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
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
