// Package promotion implements flotilla_promotion, which releases a value after it is proven.
package promotion

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/frame"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout/gate"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// New returns the resource, a latch that exists only in the state.
func New() resource.Resource {
	return frame.Resource[promotionModel]{
		Name: "promotion", Schema: Schema, Validate: func(ctx context.Context, m *promotionModel, diagnostics *diag.Diagnostics) {
			m.decode(ctx, diagnostics)
		},
		Plan: decide, Create: decide, Update: decide, Import: importState,
		WriteOnly: func(m *promotionModel) map[string]any { return map[string]any{"now": &m.Now} },
	}.New()
}

// Schema returns the schema.
var Schema = schema.Schema{
	Description: "promotion",
	MarkdownDescription: "Lets a value through to the next environment once it has proven itself: a commit of a control plane, a map " +
		"of versions, or any other value. `candidate = flotilla_assignment.dev.proven` is the content on the branch of dev that is proven " +
		"there. A candidate arrives in one plan; the next plan shows `promoted = A -> B`, once `open` has been true for it, for the " +
		"soak time, without a break. A gate that closes later reverts nothing; a new candidate starts again. It changes nothing but the " +
		"state.",
	Attributes: map[string]schema.Attribute{
		"candidate": schemas.OptionalDynamic("The value to promote, of any type: `flotilla_assignment.dev.proven` is the proven content of " +
			"dev. While it is null, nothing is promoted. A candidate is never promoted in the plan that it arrives in."),
		"open": schemas.OptionalBool("Whether the gate is open, where more than the candidate decides. Default: `true`."),
		"now": schema.StringAttribute{
			Optional: true, WriteOnly: true,
			MarkdownDescription: "The time, such as `plantimestamp()`. It is write-only: it is in no state, and makes no difference in a plan. " +
				"Needed with `soak` and `windows`; without it `opened_at` and `promoted_at` are not known.",
		},
		"soak":      schemas.OptionalText("How long the gate must be open for the candidate, a duration such as `\"24h\"`. Default: no wait."),
		"windows":   schemas.OptionalDynamic(schemas.Setting("When values are let through.", fleet.ObjectsType, gate.WindowTable)),
		"approval":  schemas.OptionalBool("Whether each candidate needs an approval."),
		"approvals": schemas.OptionalTexts("The candidates that are approved, by the short names that `waiting_for` gives them."),
		"pin": schemas.OptionalDynamic(
			"A value that is promoted by hand, regardless of the gate. Without it, the value stays until a candidate is promoted.",
		),
		"hold":        schemas.OptionalBool("Whether the value stays unchanged, regardless of the gate."),
		"promoted":    schemas.ComputedDynamic("The value that was let through last; null until there is one."),
		"waiting_for": schemas.ComputedText("The reason why the candidate waits; null once it is let through."),
		"opened_at":   schemas.ComputedText("When the gate opened for the candidate; null while it is closed."),
		"promoted_at": schemas.ComputedText("When the value was let through."),
		"previous":    schemas.ComputedDynamic("The value that was let through before."),
	},
}

type promotionModel struct {
	Candidate  types.Dynamic `tfsdk:"candidate"`
	Open       types.Bool    `tfsdk:"open"`
	Now        types.String  `tfsdk:"now"`
	Soak       types.String  `tfsdk:"soak"`
	Windows    types.Dynamic `tfsdk:"windows"`
	Approval   types.Bool    `tfsdk:"approval"`
	Approvals  types.List    `tfsdk:"approvals"`
	Pin        types.Dynamic `tfsdk:"pin"`
	Hold       types.Bool    `tfsdk:"hold"`
	Promoted   types.Dynamic `tfsdk:"promoted"`
	WaitingFor types.String  `tfsdk:"waiting_for"`
	OpenedAt   types.String  `tfsdk:"opened_at"`
	PromotedAt types.String  `tfsdk:"promoted_at"`
	Previous   types.Dynamic `tfsdk:"previous"`
}

// decide runs on every plan, and again once everything is known.
func decide(ctx context.Context, c *frame.Call[promotionModel]) {
	prior := c.Prior
	if prior == nil {
		prior = &promotionModel{}
	}
	c.Model.decide(ctx, prior, c.Diagnostics)
}

// importState takes the last promoted value as JSON.
func importState(ctx context.Context, _ *connection.Connection, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	value, err := fleet.ParseJSON(req.ID)
	if err == nil {
		var promoted attr.Value
		if promoted, err = tfvalue.Infer(value); err == nil {
			resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("promoted"), types.DynamicValue(promoted))...)
			return
		}
	}
	resp.Diagnostics.AddError("Invalid import of promotion", fmt.Sprintf("The import ID must be the promoted value as JSON: %s.", err))
}

// decode returns known as false while a part is unknown.
func (m *promotionModel) decode(ctx context.Context, diagnostics *diag.Diagnostics) (p gate.Promotion, known bool) {
	report := func(attribute, format string, arguments ...any) {
		tfvalue.AddErrorf(diagnostics, path.Root(attribute), "Invalid promotion", format, arguments...)
	}
	known = !m.Open.IsUnknown() && !m.Soak.IsUnknown() && !m.Approval.IsUnknown() && !m.Hold.IsUnknown() && !m.Now.IsUnknown()
	p.Open = m.Open.IsNull() || m.Open.ValueBool()
	p.Held, p.NeedsApproval = m.Hold.ValueBool(), m.Approval.ValueBool()
	if text := m.Soak.ValueString(); text != "" {
		var problem string
		if p.Soak, problem = fleet.ParseDuration(text, gate.MaxDuration); problem != "" {
			report("soak", "%s", problem)
		}
	}
	tfvalue.CheckFraction("candidate", m.Candidate, diagnostics)
	tfvalue.CheckFraction("pin", m.Pin, diagnostics)
	reader := &fleet.Reader{}
	p.Windows = gate.DecodeWindows(reader, nil, tfvalue.Plain(m.Windows))
	tfvalue.AddFindings(diagnostics, path.Root("windows"), "Invalid promotion", tfvalue.Inner(reader.Findings))
	known = known && !reader.Unknown
	if !m.Approvals.IsUnknown() && fleet.IsKnown(tfvalue.Plain(m.Approvals)) {
		diagnostics.Append(m.Approvals.ElementsAs(ctx, &p.Approvals, false)...)
	} else {
		known = false
	}
	if text := m.Now.ValueString(); text != "" {
		now, err := time.Parse(time.RFC3339, text)
		if err != nil {
			report("now", "%q is not a time such as \"2026-01-31T18:00:00Z\"", text)
		}
		p.Now = now
	} else if !m.Now.IsUnknown() && (p.Soak > 0 || len(p.Windows) > 0) {
		report("now", "now is required with soak and windows: set now = plantimestamp()")
	}
	if !m.Pin.IsNull() && m.Hold.ValueBool() {
		report("hold", "hold cannot be set together with pin, which sets the value by hand")
	}
	return p, known
}

// decide takes the model before, which is empty for a new promotion.
func (m *promotionModel) decide(ctx context.Context, prior *promotionModel, diagnostics *diag.Diagnostics) {
	p, known := m.decode(ctx, diagnostics)
	if diagnostics.HasError() {
		return
	}
	m.Promoted, m.Previous, m.PromotedAt = prior.Promoted, prior.Previous, prior.PromotedAt
	m.WaitingFor, m.OpenedAt = types.StringNull(), types.StringNull()
	pin, candidate := tfvalue.Plain(m.Pin), tfvalue.Plain(m.Candidate)
	isKnown, settled := fleet.IsKnown(candidate), prior.isSettled()
	if isKnown && candidate != nil {
		p.Content = tfvalue.Content(candidate)
		p.Promoted = !prior.Promoted.IsNull() && tfvalue.Content(tfvalue.Plain(prior.Promoted)) == p.Content
		p.Same = tfvalue.Content(tfvalue.Plain(prior.Candidate)) == p.Content
	}
	p.Missing = candidate == nil
	switch {
	case pin != nil && !fleet.IsKnown(pin):
		m.unknown()
		return
	case pin != nil:
		p.Pinned = true
	case isKnown && known:
	case p.Held && !m.Hold.IsUnknown(), !p.Open && !m.Open.IsUnknown(), // the value stays
		isKnown && (p.Promoted || !p.Same), !isKnown && settled: // a new candidate is not released
		m.WaitingFor, m.OpenedAt = types.StringUnknown(), types.StringUnknown()
		return
	default:
		m.unknown()
		return
	}
	if opened, err := time.Parse(time.RFC3339, prior.OpenedAt.ValueString()); err == nil {
		p.OpenedAt = opened
	}
	m.warnOfApprovals(p.Approvals, prior, diagnostics)
	verdict := p.Decide()
	m.WaitingFor = types.StringPointerValue(wording.OrNil(verdict.WaitsFor))
	m.OpenedAt = tfvalue.Time(verdict.OpenedAt)
	if p.Promoted && !p.Pinned {
		m.OpenedAt = prior.OpenedAt
	}
	switch {
	case p.Pinned:
		m.letThrough(m.Pin, prior, p.Now)
	case verdict.Promote:
		m.letThrough(m.Candidate, prior, p.Now)
	}
}

// warnOfApprovals warns of approvals for neither the candidate nor a released value.
func (m *promotionModel) warnOfApprovals(approvals []string, prior *promotionModel, diagnostics *diag.Diagnostics) {
	contents := map[string]bool{}
	for _, value := range []types.Dynamic{m.Candidate, m.Pin, prior.Candidate, prior.Promoted, prior.Previous} {
		if plain := tfvalue.Plain(value); plain != nil && fleet.IsKnown(plain) {
			contents[tfvalue.Content(plain)] = true
		}
	}
	for _, approval := range approvals {
		if !contents[approval] {
			diagnostics.AddAttributeWarning(path.Root("approvals"), "Approval is for no candidate", tfvalue.Sentence(fmt.Sprintf(
				"%q is the short name of neither the candidate nor a value that was let through%s",
				approval, fleet.DidYouMean(approval, slices.Sorted(maps.Keys(contents)))))+" The plan of a candidate that needs an approval prints it.")
		}
	}
}

// isSettled reports that the state has no unreleased candidate.
func (m *promotionModel) isSettled() bool {
	candidate := tfvalue.Plain(m.Candidate)
	return candidate == nil || !m.Promoted.IsNull() && tfvalue.Content(tfvalue.Plain(m.Promoted)) == tfvalue.Content(candidate)
}

// letThrough promotes a value, unless it is promoted already.
func (m *promotionModel) letThrough(value types.Dynamic, prior *promotionModel, now time.Time) {
	if !prior.Promoted.IsNull() && tfvalue.Content(tfvalue.Plain(prior.Promoted)) == tfvalue.Content(tfvalue.Plain(value)) {
		return
	}
	m.Promoted, m.Previous, m.PromotedAt = value, prior.Promoted, tfvalue.Time(now)
}

func (m *promotionModel) unknown() {
	m.Promoted, m.Previous = types.DynamicUnknown(), types.DynamicUnknown()
	m.WaitingFor, m.OpenedAt, m.PromotedAt = types.StringUnknown(), types.StringUnknown(), types.StringUnknown()
}
