package repository

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/evidence"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/overview"
)

const evidencesName = "evidences"

// EvidencesAttribute is an attribute with the evidence of several owners.
func EvidencesAttribute(what string) schema.ListAttribute {
	return schemas.OptionalTexts(
		what + ": `evidence` of a `flotilla_compliance` for each owner, in any order, such as from the outputs of other states. Null " +
			"stands for none yet. Evidence of an owner without records on the branch is a warning. The state keeps their hashes.",
	)
}

// OwnersAt reads all owners at a location and below it, with their evidence; nil after an error.
func OwnersAt(
	ctx context.Context, client *delivery.Service, at folder.Location, evidences types.List, diagnostics *diag.Diagnostics,
) []overview.Owned {
	given := decodeEvidences(evidences, at.Branch, diagnostics)
	if diagnostics.HasError() {
		return nil
	}
	var all []*observe.Evidence
	for _, e := range given {
		if e != nil {
			all = append(all, e)
		}
	}
	owned, err := overview.LookAtOwners(ctx, client, at, all)
	if err != nil {
		AddError(ctx, diagnostics, err, false)
		return nil
	}
	of := map[*observe.Evidence]*overview.Owned{}
	for i := range owned {
		of[owned[i].Evidence] = &owned[i]
	}
	for i, e := range given {
		if e == nil {
			continue
		}
		element, owner := path.Root(evidencesName).AtListIndex(i), of[e]
		switch {
		case owner == nil:
			tfvalue.AddWarningf(diagnostics, element, "Evidence of an unknown owner",
				"The evidence is about %s, which has nothing there.", e.About)
		case e.About.Environment != owner.Owner.Environment && owner.Owner.Environment != "":
			tfvalue.AddErrorf(diagnostics, element, "Evidence of another environment",
				"The evidence is about %s. The branch has this assignment in environment %q.", e.About, owner.Owner.Environment)
		case len(e.Clusters) > 0 && e.Tip != "":
			CheckTip(owner.Seen.Past[e.Tip], at.Branch, element, diagnostics)
		}
	}
	if diagnostics.HasError() {
		return nil
	}
	return owned
}

func decodeEvidences(evidences types.List, branch string, diagnostics *diag.Diagnostics) []*observe.Evidence {
	given := make([]*observe.Evidence, len(evidences.Elements()))
	first := map[observe.About]int{}
	for i, element := range evidences.Elements() {
		text, _ := element.(types.String)
		if text.IsNull() {
			continue
		}
		at := path.Root(evidencesName).AtListIndex(i)
		parsed, err := evidence.ParseCompliance([]byte(text.ValueString()))
		if err != nil {
			diagnostics.AddAttributeError(at, "Invalid evidence", tfvalue.Sentence(err.Error()))
			continue
		}
		about := parsed.About
		about.Environment = "" // each owner has one document
		if before, twice := first[about]; twice {
			tfvalue.AddErrorf(diagnostics, at, "Evidence is given twice", "It is about %s, as that at index %d.", parsed.About, before)
		} else if about.Branch != branch {
			tfvalue.AddErrorf(diagnostics, at, "Evidence of another branch", "It is about %s. This is branch %q.", parsed.About, branch)
		}
		first[about], given[i] = i, parsed
	}
	return given
}

// HashedEvidences returns the hashes of evidence for the state.
func HashedEvidences(evidences types.List) types.List {
	if evidences.IsNull() {
		return evidences
	}
	hashes := make([]attr.Value, len(evidences.Elements()))
	for i, element := range evidences.Elements() {
		if hashes[i] = element; !element.IsNull() {
			hashes[i] = types.StringValue(tfvalue.Hash(element.(types.String).ValueString()))
		}
	}
	return types.ListValueMust(types.StringType, hashes)
}
