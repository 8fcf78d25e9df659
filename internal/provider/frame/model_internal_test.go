package frame

import (
	"reflect"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

type named struct {
	Name types.String `tfsdk:"name"`
}

type typed struct {
	named
	Hosts types.List    `tfsdk:"hosts"`
	Fleet types.Dynamic `tfsdk:"fleet"`
}

type untyped struct {
	Name  string        `tfsdk:"name"`
	Hosts []string      `tfsdk:"hosts"`
	Fleet types.Dynamic `tfsdk:"fleet"`
}

func TestModelsAreReadAndWrittenAsByTheFramework(t *testing.T) {
	t.Parallel()
	is := schema.Schema{Attributes: map[string]schema.Attribute{
		"name": schema.StringAttribute{}, "hosts": schema.ListAttribute{ElementType: types.StringType}, "fleet": schema.DynamicAttribute{},
	}}
	kind, list := is.Type().TerraformType(t.Context()), tftypes.List{ElementType: tftypes.String}
	text := func(value any) tftypes.Value { return tftypes.NewValue(tftypes.String, value) }
	for name, attributes := range map[string]map[string]tftypes.Value{
		"known":   {"name": text("a"), "hosts": tftypes.NewValue(list, []tftypes.Value{text("b")}), "fleet": text("c")},
		"null":    {"name": text(nil), "hosts": tftypes.NewValue(list, nil), "fleet": tftypes.NewValue(tftypes.DynamicPseudoType, nil)},
		"unknown": {"name": text(tftypes.UnknownValue), "hosts": tftypes.NewValue(list, tftypes.UnknownValue), "fleet": tftypes.NewValue(tftypes.DynamicPseudoType, tftypes.UnknownValue)},
	} {
		state := tfsdk.State{Schema: is, Raw: tftypes.NewValue(kind, attributes)}
		for _, models := range [][2]any{{&typed{}, &typed{}}, {&untyped{}, &untyped{}}} {
			got, want := readModel(t.Context(), state, models[0]), state.Get(t.Context(), models[1])
			if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(models[0], models[1]) {
				t.Errorf("%s: it reads %+v, %v, want %+v, %v", name, models[0], got, models[1], want)
			}
			if want.HasError() {
				continue
			}
			written := tfsdk.State{Schema: is, Raw: tftypes.NewValue(kind, nil)}
			if diags := writeModel(t.Context(), &written, is.Type(), models[0]); diags.HasError() || !written.Raw.Equal(state.Raw) {
				t.Errorf("%s: it writes %s, %v, want %s", name, written.Raw, diags, state.Raw)
			}
		}
	}
	attributes := map[string]attr.Value{
		"name": types.StringValue("a"), "hosts": types.ListNull(types.StringType), "fleet": types.DynamicNull(),
	}
	for fits, model := range map[bool]any{true: &typed{}, false: &untyped{}} {
		if copyAttributes(attributes, reflect.ValueOf(model).Elem()) != fits {
			t.Errorf("%T takes the attributes: %t", model, !fits)
		}
	}
}
