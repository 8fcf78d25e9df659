package assignment

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/timeouts"
)

// importState takes an identity or "<url>#<branch>:<path>:<name>", and reads the owner's folders from the records.
func importState(ctx context.Context, c *connection.Connection, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	repo, at, name, ok := repository.Imported(ctx, req, &resp.Diagnostics)
	if !ok {
		return
	}
	imported := assignmentModel{
		Name: name, GitopsRepo: repo, Changes: tfvalue.Texts(nil), RollingOut: types.MapNull(repository.RollingOut.Type()),
	}
	repository.CheckOwnerName(imported.Name, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := timeouts.Default.During(ctx, timeouts.Read, c.Ledger())
	defer cancel()
	known := &delivery.OwnerState{Owner: delivery.Owner{Location: at, Name: name.ValueString()}}
	if err := c.Delivery.Refresh(ctx, known); err != nil {
		repository.AddError(ctx, &resp.Diagnostics, err, false)
		return
	}
	if len(known.Trees) == 0 {
		resp.Diagnostics.AddError("Nothing to import",
			fmt.Sprintf("The repository has no record of an owner called %q at path %q of branch %q.", name.ValueString(), at.Path, at.Branch))
		return
	}
	imported.Commit = types.StringValue(known.Tip)
	imported.Content = contentValue(known.Current())
	m := &assignmentPrivate{SavedState: known.SavedState}
	m.save(ctx, resp.Private, &resp.Diagnostics)
	resp.Diagnostics.Append(resp.State.Set(ctx, &imported)...)
}
