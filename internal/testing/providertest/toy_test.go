package providertest_test

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	providerschema "github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// toyBox contains the toys, the real objects outside of any state.
type toyBox struct {
	mu     sync.Mutex
	toys   map[string]string // size by name
	events []string
}

func newToyBox() *toyBox { return &toyBox{toys: map[string]string{}} }

func (w *toyBox) record(event string, change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, event)
	change()
}

// toyProvider has one resource with many features of Terraform: write-only arguments, dynamic and nested attributes, private
// state, replacement, and values known after apply. Its attribute wrong selects a mistake.
type toyProvider struct{ toyBox *toyBox }

// start starts a toy provider.
func (w *toyBox) start() (tfprotov6.ProviderServer, error) {
	return providerserver.NewProtocol6(&toyProvider{w})(), nil
}

func (p *toyProvider) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = "toy"
}

func (p *toyProvider) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = providerschema.Schema{Attributes: map[string]providerschema.Attribute{
		"token": providerschema.StringAttribute{Optional: true},
	}}
}

func (p *toyProvider) Configure(_ context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	resp.ResourceData = p.toyBox
}

func (p *toyProvider) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{func() resource.Resource { return &toy{} }}
}

func (p *toyProvider) DataSources(context.Context) []func() datasource.DataSource { return nil }

func (p *toyProvider) Functions(context.Context) []func() function.Function {
	return []func() function.Function{func() function.Function { return wrap{} }}
}

// wrap puts its argument into an object.
type wrap struct{}

func (wrap) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "wrap"
}

func (wrap) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Parameters: []function.Parameter{function.DynamicParameter{Name: "value", AllowUnknownValues: true}},
		Return:     function.ObjectReturn{AttributeTypes: map[string]attr.Type{"inside": types.StringType}},
	}
}

func (wrap) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var argument types.Dynamic
	if resp.Error = req.Arguments.Get(ctx, &argument); resp.Error != nil {
		return
	}
	inside := types.StringUnknown()
	if !strings.Contains(argument.String(), "<unknown>") {
		inside = types.StringValue(argument.String())
	}
	resp.Error = resp.Result.Set(
		ctx,
		types.ObjectValueMust(map[string]attr.Type{"inside": types.StringType}, map[string]attr.Value{"inside": inside}),
	)
}

type toy struct{ toyBox *toyBox }

type toyModel struct {
	Name     types.String  `tfsdk:"name"`
	Size     types.String  `tfsdk:"size"`
	Secret   types.Dynamic `tfsdk:"secret"`
	Options  types.Dynamic `tfsdk:"options"`
	Wrong    types.String  `tfsdk:"wrong"`
	ID       types.String  `tfsdk:"id"`
	Serial   types.String  `tfsdk:"serial"`
	Revision types.Int64   `tfsdk:"revision"`
}

func (t *toy) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_toy"
}

func (t *toy) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{Version: 1, Attributes: map[string]schema.Attribute{
		"name":    schema.StringAttribute{Required: true, PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()}},
		"size":    schema.StringAttribute{Optional: true},
		"secret":  schema.DynamicAttribute{Optional: true, WriteOnly: true},
		"options": schema.DynamicAttribute{Optional: true},
		"wrong":   schema.StringAttribute{Optional: true},
		"id": schema.StringAttribute{
			Computed: true, PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
		},
		"serial":   schema.StringAttribute{Computed: true},
		"revision": schema.Int64Attribute{Computed: true},
	}}
}

func (t *toy) Configure(_ context.Context, req resource.ConfigureRequest, _ *resource.ConfigureResponse) {
	t.toyBox, _ = req.ProviderData.(*toyBox)
}

// UpgradeState keeps the values of version 0.
func (t *toy) UpgradeState(context.Context) map[int64]resource.StateUpgrader {
	return map[int64]resource.StateUpgrader{
		0: {StateUpgrader: func(ctx context.Context, req resource.UpgradeStateRequest, resp *resource.UpgradeStateResponse) {
			model := toyModel{
				Name: types.StringValue("upgraded"), Secret: types.DynamicNull(), Options: types.DynamicNull(),
				ID: types.StringValue("toy"), Serial: types.StringValue("0"), Revision: types.Int64Value(0),
			}
			resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
		}},
	}
}

func (t *toy) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() {
		var prior toyModel
		resp.Diagnostics.Append(req.State.Get(ctx, &prior)...)
		if prior.Wrong.ValueString() == "refuse destroy" {
			resp.Diagnostics.AddAttributeError(path.Root("wrong"), "Stays", "This toy stays.")
		}
		return
	}
	var plan toyModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	switch plan.Wrong.ValueString() {
	case "plan secret":
		var config toyModel
		resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
		resp.Diagnostics.Append(resp.Plan.SetAttribute(ctx, path.Root("secret"), config.Secret)...)
	case "plan size":
		resp.Diagnostics.Append(resp.Plan.SetAttribute(ctx, path.Root("size"), "other")...)
	case "plan differs":
		t.toyBox.record("plan", func() {
			resp.Diagnostics.Append(resp.Plan.SetAttribute(ctx, path.Root("serial"), fmt.Sprint("of plan ", len(t.toyBox.events)))...)
		})
	}
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, "planned", []byte(`{"size": `+quoted(plan.Size)+`}`))...)
}

func quoted(text types.String) string { return fmt.Sprintf("%q", text.ValueString()) }

func (t *toy) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("name"), req.ID)...)
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, "imported", []byte(`true`))...)
}

func (t *toy) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state toyModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	t.toyBox.record("read "+state.Name.ValueString(), func() {
		size, ok := t.toyBox.toys[state.Name.ValueString()]
		if !ok {
			resp.State.RemoveResource(ctx)
			return
		}
		state.Size = types.StringValue(size)
		if size == "" {
			state.Size = types.StringNull()
		}
		state.ID, state.Serial = types.StringValue("toy"), types.StringValue("1")
		state.Revision = types.Int64Value(state.Revision.ValueInt64())
		resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
		resp.Diagnostics.Append(resp.Private.SetKey(ctx, "read", []byte(`true`))...)
	})
}

func (t *toy) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan toyModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	if plan.Wrong.ValueString() == "fail create" {
		resp.Diagnostics.AddError("Cannot create", "It is wrong.")
		return
	}
	t.toyBox.record("create "+plan.Name.ValueString(), func() { t.toyBox.toys[plan.Name.ValueString()] = plan.Size.ValueString() })
	t.fill(&plan, 1)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, "created", []byte(`true`))...)
	switch plan.Wrong.ValueString() {
	case "half create":
		resp.Diagnostics.AddError("Half made", "It is wrong.")
	case "apply size":
		resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("size"), "other")...)
	case "unknown serial":
		resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("serial"), types.StringUnknown())...)
	}
}

func (t *toy) fill(plan *toyModel, revision int64) {
	plan.ID, plan.Revision = types.StringValue("toy"), types.Int64Value(revision)
	if plan.Serial.IsUnknown() {
		plan.Serial = types.StringValue("1")
	}
}

func (t *toy) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan, prior toyModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &prior)...)
	if plan.Wrong.ValueString() == "fail update" {
		resp.Diagnostics.AddError("Cannot update", "It is wrong.")
		return
	}
	t.toyBox.record("update "+plan.Name.ValueString(), func() { t.toyBox.toys[plan.Name.ValueString()] = plan.Size.ValueString() })
	t.fill(&plan, prior.Revision.ValueInt64()+1)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, "updated", []byte(`true`))...)
}

func (t *toy) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state toyModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if state.Wrong.ValueString() == "fail delete" {
		resp.Diagnostics.AddError("Cannot delete", "It is wrong.")
		return
	}
	t.toyBox.record("delete "+state.Name.ValueString(), func() { delete(t.toyBox.toys, state.Name.ValueString()) })
}

// toyConfiguration returns a configuration with one toy.
func toyConfiguration(attributes map[string]any) providertest.Configuration {
	return providertest.Configuration{Resources: map[string]providertest.Resource{"toy_toy.one": {Attributes: attributes}}}
}
