// Package branchlist lists the assignments and claims of all owners on a branch for `terraform query`, including other
// states.
package branchlist

import (
	"context"
	"fmt"
	"math/big"
	stdpath "path"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/timeouts"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

var (
	_ list.ListResourceWithConfigure      = &served{}
	_ list.ListResourceWithValidateConfig = &served{}
)

var whats = map[string]string{"assignment": "The assignments", claim: "The claims of clusters"}

const claim = "cluster_claim"

// Assignments lists flotilla_assignment.
func Assignments() list.ListResource {
	return &served{name: "assignment", of: func(all gitops.Inventory) []found {
		var owners []found
		for _, owner := range all.Owners {
			owners = append(owners, found{path: owner.Path, name: owner.Name})
		}
		return owners
	}}
}

// Claims lists flotilla_cluster_claim.
func Claims() list.ListResource {
	return &served{name: claim, of: func(all gitops.Inventory) []found {
		var claims []found
		for _, one := range all.Claims {
			number := types.NumberValue(new(big.Float).SetInt64(int64(len(one.Clusters))))
			claims = append(claims, found{path: one.Path, name: one.Name, further: map[string]attr.Value{"number": number}})
		}
		return claims
	}}
}

// served lists the resources of one type.
type served struct {
	name       string
	of         func(gitops.Inventory) []found
	connection *connection.Connection
}

// unreadable returns the damaged records of this type. The record of an assignment is in its host's folder of records.
func (s *served) unreadable(all gitops.Inventory) []string {
	if s.name != claim {
		return nil
	}
	folder := stdpath.Base(stdpath.Dir(gitops.ClaimRecordPath("", "any")))
	return slices.DeleteFunc(slices.Clone(all.Unreadable), func(record string) bool { return stdpath.Base(stdpath.Dir(record)) != folder })
}

type found struct {
	path, name string
	further    map[string]attr.Value
}

// importable separates the resources that a configuration can name from texts about the others.
func importable(all []found) (listed []found, forged []string) {
	for _, one := range all {
		if problem := fleet.CheckLabelName(one.name); problem != "" {
			forged = append(forged, fmt.Sprintf("%q at path %q %s", one.name, one.path, problem))
		} else {
			listed = append(listed, one)
		}
	}
	return listed, forged
}

func (s *served) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_" + s.name
}

// Definition returns the configuration of a type.
func Definition(name string) schema.Schema {
	return schema.Schema{
		MarkdownDescription: whats[name] + " on a branch of a GitOps repository, of all owners and states, by their records.",
		Attributes: map[string]schema.Attribute{
			"gitops_repo": schemas.RequiredDynamic(
				schemas.Location(fmt.Sprintf("Where to look. They are found at the path and up to %d folders below it; without a path, from the root.",
					gitops.InventoryLevels)),
			),
		},
	}
}

func (s *served) ListResourceConfigSchema(_ context.Context, _ list.ListResourceSchemaRequest, resp *list.ListResourceSchemaResponse) {
	resp.Schema = Definition(s.name)
}

func (s *served) Configure(_ context.Context, req resource.ConfigureRequest, _ *resource.ConfigureResponse) {
	s.connection, _ = req.ProviderData.(*connection.Connection)
}

func (s *served) ValidateListResourceConfig(ctx context.Context, req list.ValidateConfigRequest, resp *list.ValidateConfigResponse) {
	var repo types.Dynamic
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("gitops_repo"), &repo)...)
	repository.DecodeLocation(repo, &resp.Diagnostics)
}

func (s *served) List(ctx context.Context, req list.ListRequest, stream *list.ListResultsStream) {
	var diagnostics diag.Diagnostics
	var repo types.Dynamic
	diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("gitops_repo"), &repo)...)
	at, _ := repository.DecodeLocation(repo, &diagnostics)
	if diagnostics.HasError() {
		stream.Results = list.ListResultsStreamDiagnostics(diagnostics)
		return
	}
	bounded, cancel := timeouts.Default.During(ctx, timeouts.Read, &s.connection.Budget)
	defer cancel()
	all, err := s.connection.Delivery.ReadInventory(bounded, at, gitops.InventoryFilter{})
	if err != nil {
		repository.AddError(bounded, &diagnostics, err, false)
		stream.Results = list.ListResultsStreamDiagnostics(diagnostics)
		return
	}
	listed, forged := importable(s.of(all))
	report := diagnostics.AddAttributeWarning
	if len(listed) == 0 {
		report = diagnostics.AddAttributeError // Terraform shows warnings of results alone
	}
	if len(forged) > 0 {
		report(path.Root("gitops_repo"), "Records have names that Flotilla does not write",
			"They are not listed, since no configuration can have these names:\n"+wording.Lines(forged, wording.Named)+
				"\nAnybody who may push to the branch can have added them: find the commit, and revert it.")
	}
	if unreadable := s.unreadable(all); len(unreadable) > 0 {
		report(path.Root("gitops_repo"), "Records cannot be read",
			"These records cannot be read, and their content is not listed:\n"+wording.Lines(unreadable, wording.Named))
	}
	if diagnostics.HasError() {
		stream.Results = list.ListResultsStreamDiagnostics(diagnostics)
		return
	}
	stream.Results = func(push func(list.ListResult) bool) {
		for i, one := range listed {
			result := req.NewListResult(ctx)
			if i == 0 {
				result.Diagnostics.Append(diagnostics...) // they belong to no result
			}
			result.DisplayName = one.name
			if one.path != "" {
				result.DisplayName = one.path + ": " + one.name
			}
			texts := map[string]attr.Value{
				"url":    types.StringValue(at.URL),
				"branch": types.StringValue(at.Branch),
				"path":   types.StringValue(one.path),
			}
			for name, value := range texts {
				result.Diagnostics.Append(result.Identity.SetAttribute(ctx, path.Root(name), value)...)
			}
			result.Diagnostics.Append(result.Identity.SetAttribute(ctx, path.Root("name"), one.name)...)
			if req.IncludeResource {
				location := types.ObjectValueMust(map[string]attr.Type{"url": types.StringType, "branch": types.StringType, "path": types.StringType},
					texts)
				result.Diagnostics.Append(result.Resource.SetAttribute(ctx, path.Root("name"), one.name)...)
				result.Diagnostics.Append(result.Resource.SetAttribute(ctx, path.Root("gitops_repo"), types.DynamicValue(location))...)
				for name, value := range one.further {
					result.Diagnostics.Append(result.Resource.SetAttribute(ctx, path.Root(name), value)...)
				}
			}
			if !push(result) {
				return
			}
		}
	}
}
