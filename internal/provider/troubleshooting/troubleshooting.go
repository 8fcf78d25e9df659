// Package troubleshooting adds the URL of its section in the guide to each error and warning.
package troubleshooting

import (
	"context"
	_ "embed"
	"reflect"
	"regexp"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// titles has the titles of the guide's sections, one a line: the summaries of all errors and warnings. A test compares them with
// the guide and with the code.
//
//go:embed titles.txt
var titles string

// guideURL is at the tag of a release, or on main.
func guideURL(version string) string {
	ref := "main"
	if released.MatchString(version) {
		ref = "v" + version
	}
	return "https://github.com/flotilla/terraform-provider-flotilla/blob/" + ref + "/docs/guides/troubleshooting.md"
}

var released = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+(-(alpha|beta|rc)[.0-9]*)?$`)

func addSections(guide string, diagnostics []*tfprotov6.Diagnostic) {
	for _, diagnostic := range diagnostics {
		section := diagnostic.Summary
		if !strings.Contains("\n"+titles, "\n"+section+"\n") {
			if !ofAttribute.MatchString(section) {
				continue // a diagnostic of the plugin framework
			}
			section = attributes
		}
		diagnostic.Detail = strings.TrimRight(diagnostic.Detail, "\n") + "\n\nMore: " + guide + "#" + anchor(section)
	}
}

// ofAttribute matches summaries that share a section.
var ofAttribute = regexp.MustCompile(`^Invalid [a-z_]+$`)

const attributes = "Invalid attribute"

// anchor returns what Markdown makes of a title.
func anchor(title string) string {
	return strings.ReplaceAll(strings.ToLower(title), " ", "-")
}

// Server has all calls of Terraform. Newer calls are in interfaces of their own, without which terraform-plugin-go
// reports them as missing.
type Server interface {
	tfprotov6.ProviderServer
	tfprotov6.ActionServer
	tfprotov6.ListResourceServer
}

// Explain adds sections of the guide to the diagnostics of a [Server].
func Explain(server tfprotov6.ProviderServer, version string) Server {
	framework, _ := server.(Server)
	return explaining{Server: framework, guide: guideURL(version)}
}

type explaining struct {
	Server
	guide string
}

func explain[Request, Response any](
	ctx context.Context, guide string, call func(context.Context, *Request) (*Response, error), req *Request,
) (*Response, error) {
	resp, err := call(ctx, req)
	if resp != nil {
		addSections(guide, reflect.ValueOf(resp).Elem().FieldByName("Diagnostics").Interface().([]*tfprotov6.Diagnostic))
	}
	return resp, err
}

func (s explaining) ValidateProviderConfig(
	ctx context.Context, req *tfprotov6.ValidateProviderConfigRequest,
) (*tfprotov6.ValidateProviderConfigResponse, error) {
	return explain(ctx, s.guide, s.Server.ValidateProviderConfig, req)
}

func (s explaining) ConfigureProvider(
	ctx context.Context, req *tfprotov6.ConfigureProviderRequest,
) (*tfprotov6.ConfigureProviderResponse, error) {
	return explain(ctx, s.guide, s.Server.ConfigureProvider, req)
}

func (s explaining) ValidateResourceConfig(
	ctx context.Context, req *tfprotov6.ValidateResourceConfigRequest,
) (*tfprotov6.ValidateResourceConfigResponse, error) {
	return explain(ctx, s.guide, s.Server.ValidateResourceConfig, req)
}

func (s explaining) ReadResource(ctx context.Context, req *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	return explain(ctx, s.guide, s.Server.ReadResource, req)
}

func (s explaining) PlanResourceChange(
	ctx context.Context, req *tfprotov6.PlanResourceChangeRequest,
) (*tfprotov6.PlanResourceChangeResponse, error) {
	return explain(ctx, s.guide, s.Server.PlanResourceChange, req)
}

func (s explaining) ApplyResourceChange(
	ctx context.Context, req *tfprotov6.ApplyResourceChangeRequest,
) (*tfprotov6.ApplyResourceChangeResponse, error) {
	return explain(ctx, s.guide, s.Server.ApplyResourceChange, req)
}

func (s explaining) ImportResourceState(
	ctx context.Context, req *tfprotov6.ImportResourceStateRequest,
) (*tfprotov6.ImportResourceStateResponse, error) {
	return explain(ctx, s.guide, s.Server.ImportResourceState, req)
}

func (s explaining) ValidateDataResourceConfig(
	ctx context.Context, req *tfprotov6.ValidateDataResourceConfigRequest,
) (*tfprotov6.ValidateDataResourceConfigResponse, error) {
	return explain(ctx, s.guide, s.Server.ValidateDataResourceConfig, req)
}

func (s explaining) ReadDataSource(ctx context.Context, req *tfprotov6.ReadDataSourceRequest) (*tfprotov6.ReadDataSourceResponse, error) {
	return explain(ctx, s.guide, s.Server.ReadDataSource, req)
}

func (s explaining) ValidateEphemeralResourceConfig(
	ctx context.Context, req *tfprotov6.ValidateEphemeralResourceConfigRequest,
) (*tfprotov6.ValidateEphemeralResourceConfigResponse, error) {
	return explain(ctx, s.guide, s.Server.ValidateEphemeralResourceConfig, req)
}

func (s explaining) OpenEphemeralResource(
	ctx context.Context, req *tfprotov6.OpenEphemeralResourceRequest,
) (*tfprotov6.OpenEphemeralResourceResponse, error) {
	return explain(ctx, s.guide, s.Server.OpenEphemeralResource, req)
}

func (s explaining) ValidateActionConfig(
	ctx context.Context, req *tfprotov6.ValidateActionConfigRequest,
) (*tfprotov6.ValidateActionConfigResponse, error) {
	return explain(ctx, s.guide, s.Server.ValidateActionConfig, req)
}

func (s explaining) PlanAction(ctx context.Context, req *tfprotov6.PlanActionRequest) (*tfprotov6.PlanActionResponse, error) {
	return explain(ctx, s.guide, s.Server.PlanAction, req)
}

func (s explaining) InvokeAction(ctx context.Context, req *tfprotov6.InvokeActionRequest) (*tfprotov6.InvokeActionServerStream, error) {
	resp, err := s.Server.InvokeAction(ctx, req)
	if err != nil || resp == nil || resp.Events == nil {
		return resp, err
	}
	return &tfprotov6.InvokeActionServerStream{Events: func(yield func(tfprotov6.InvokeActionEvent) bool) {
		for event := range resp.Events {
			if completed, isCompleted := event.Type.(tfprotov6.CompletedInvokeActionEventType); isCompleted {
				addSections(s.guide, completed.Diagnostics)
			}
			if !yield(event) {
				return
			}
		}
	}}, nil
}

func (s explaining) ValidateListResourceConfig(
	ctx context.Context, req *tfprotov6.ValidateListResourceConfigRequest,
) (*tfprotov6.ValidateListResourceConfigResponse, error) {
	return explain(ctx, s.guide, s.Server.ValidateListResourceConfig, req)
}

func (s explaining) ListResource(ctx context.Context, req *tfprotov6.ListResourceRequest) (*tfprotov6.ListResourceServerStream, error) {
	resp, err := s.Server.ListResource(ctx, req)
	if err != nil || resp == nil || resp.Results == nil {
		return resp, err
	}
	return &tfprotov6.ListResourceServerStream{Results: func(yield func(tfprotov6.ListResourceResult) bool) {
		for result := range resp.Results {
			addSections(s.guide, result.Diagnostics)
			if !yield(result) {
				return
			}
		}
	}}, nil
}
