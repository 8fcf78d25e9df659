package overview

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/overview"
)

func (m *overviewModel) ofOwners() bool { return m.Name.IsNull() && m.Fleet.IsNull() }

func (m *overviewModel) checkOwners(diagnostics *diag.Diagnostics) {
	refuse := func(attribute, why string) {
		diagnostics.AddAttributeError(path.Root(attribute), "Attribute does not fit", why)
	}
	if m.Name.IsNull() && tfvalue.IsGiven(m.Fleet) || m.Fleet.IsNull() && tfvalue.IsGiven(m.Name) {
		missing := map[bool]string{true: "name", false: "fleet"}[m.Name.IsNull()]
		diagnostics.AddAttributeError(path.Root(missing), "Attribute is missing",
			"The page of an assignment needs its name and its fleet. For a page of all owners of the branch, leave both out.")
		return
	}
	if !m.ofOwners() {
		if tfvalue.IsGiven(m.Evidences) {
			refuse("evidences", "It is for a page of all owners, which has neither name nor fleet. Set evidence.")
		}
		return
	}
	const why = "A page of all owners is made of their records, without name and fleet. "
	for attribute, given := range map[string]bool{
		"evidence": tfvalue.IsGiven(m.Evidence), "progress": tfvalue.IsGiven(m.Progress),
		"show_values": tfvalue.IsGiven(m.ShowValues), "region_label": tfvalue.IsGiven(m.RegionLabel),
	} {
		switch {
		case given && attribute == "evidence":
			refuse(attribute, why+"Set evidences.")
		case given:
			refuse(attribute, why+"They do not have that.")
		}
	}
}

func (m *overviewModel) readOwners(ctx context.Context, c *connection.Connection, diagnostics *diag.Diagnostics) {
	q := m.decode(diagnostics)
	if diagnostics.HasError() {
		return
	}
	if !c.CanAsk() {
		diagnostics.AddAttributeError(path.Root("gitops_repo"), "Repository cannot be read",
			"The credentials of the GitOps repository are not known yet.")
		return
	}
	at := q.in.Owner.Location
	owners := repository.OwnersAt(ctx, c.Delivery, at, m.Evidences, diagnostics)
	if diagnostics.HasError() {
		return
	}
	history, err := overview.OwnersHistory(ctx, c.Delivery, at, owners, q.history)
	if err != nil {
		repository.AddError(ctx, diagnostics, err, false)
		return
	}
	if err := m.set(overview.BuildOwners(q.in, owners, history), &q); err != nil {
		diagnostics.AddError("Cannot write the page", tfvalue.Sentence(err.Error()))
	}
}
