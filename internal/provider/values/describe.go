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

func (o *operation) values(ctx context.Context) types.Dynamic {
	known := o.spelled()
	elements := make(map[string]attr.Value, len(o.outcome.Values))
	for cluster, text := range o.outcome.Values {
		value, ok := known[text]
		if text == "" {
			if value = o.notKnown(ctx, known); value == nil {
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

// spelled returns the values of configuration and state, with their types, by their JSON.
func (o *operation) spelled() map[string]attr.Value {
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
	for _, of := range []types.Dynamic{o.model.Wanted, o.model.Released} {
		each, is := elements(of)
		if !is {
			note(of)
		}
		for _, cluster := range slices.Sorted(maps.Keys(each)) {
			note(each[cluster])
		}
	}
	if o.prior != nil {
		given := entriesOf(o.prior.Values.UnderlyingValue())
		for _, cluster := range slices.Sorted(maps.Keys(given)) {
			note(given[cluster])
		}
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
	return types.StringValue(text) // no value is equal to it: all are canonical JSON
}

// notKnown returns an unknown value; nil if an earlier value may have another type.
func (o *operation) notKnown(ctx context.Context, known map[string]attr.Value) attr.Value {
	wanted := o.model.Wanted.UnderlyingValue()
	if wanted == nil || wanted.Type(ctx) != types.StringType {
		return nil
	}
	texts := slices.Collect(maps.Keys(known))
	if o.memory != nil {
		texts = slices.AppendSeq(texts, maps.Values(o.memory.Contents))
	}
	for _, text := range texts {
		if text[0] != '"' {
			return nil
		}
	}
	return types.StringUnknown()
}

// mapOf returns a map, or an object if the elements have different types.
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

// changesOf describes which clusters get other values. Clusters with equal changes share a line.
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
