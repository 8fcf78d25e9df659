// Package troubleshooting names, in each error and warning of the provider, the section of the guide that is about it.
package troubleshooting

import (
	"context"
	_ "embed"
	"regexp"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// titles are those of the sections that the guide to troubleshooting has, each a line: the summaries of all errors and
// warnings. A test compares them with the guide, and with the summaries in the code.
//
//go:embed titles.txt
var titles string

// troubleshooting is where the guide is published.
const guide = "https://registry.terraform.io/providers/flotilla/flotilla/latest/docs/guides/troubleshooting"

// explained adds the section of the guide to the details of diagnostics that have one.
func explained(diagnostics []*tfprotov6.Diagnostic) {
	for _, diagnostic := range diagnostics {
		section := diagnostic.Summary
		if !strings.Contains("\n"+titles, "\n"+section+"\n") {
			if !ofAttribute.MatchString(section) {
				continue // one of the plugin framework
			}
			section = attributes
		}
		diagnostic.Detail = strings.TrimRight(diagnostic.Detail, "\n") + "\n\nMore: " + guide + "#" + anchor(section)
	}
}

// ofAttribute is the summary of what is wrong with an attribute that has no section of its own: they share one.
var ofAttribute = regexp.MustCompile(`^Invalid [a-z_]+$`)

const attributes = "Invalid attribute"

// anchor is the name of a section, as Markdown makes it of its title.
func anchor(title string) string {
	return strings.ReplaceAll(strings.ToLower(title), " ", "-")
}

// Server is a server with all that Terraform may call. What the protocol has got since its first version is in interfaces of
// their own: terraform-plugin-go answers for a server without them that it has none of it.
type Server interface {
	tfprotov6.ProviderServer
	tfprotov6.ActionServer
	tfprotov6.ListResourceServer
}

// Explain passes calls on to a server of the plugin framework, which is a [Server], and adds the sections of the guide to the
// diagnostics that it returns.
func Explain(server tfprotov6.ProviderServer) Server {
	framework, _ := server.(Server)
	return explaining{framework}
}

type explaining struct{ Server }

func (s explaining) ValidateProviderConfig(ctx context.Context, req *tfprotov6.ValidateProviderConfigRequest) (*tfprotov6.ValidateProviderConfigResponse, error) {
	resp, err := s.Server.ValidateProviderConfig(ctx, req)
	if resp != nil {
		explained(resp.Diagnostics)
	}
	return resp, err
}

func (s explaining) ConfigureProvider(ctx context.Context, req *tfprotov6.ConfigureProviderRequest) (*tfprotov6.ConfigureProviderResponse, error) {
	resp, err := s.Server.ConfigureProvider(ctx, req)
	if resp != nil {
		explained(resp.Diagnostics)
	}
	return resp, err
}

func (s explaining) ValidateResourceConfig(ctx context.Context, req *tfprotov6.ValidateResourceConfigRequest) (*tfprotov6.ValidateResourceConfigResponse, error) {
	resp, err := s.Server.ValidateResourceConfig(ctx, req)
	if resp != nil {
		explained(resp.Diagnostics)
	}
	return resp, err
}

func (s explaining) ReadResource(ctx context.Context, req *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	resp, err := s.Server.ReadResource(ctx, req)
	if resp != nil {
		explained(resp.Diagnostics)
	}
	return resp, err
}

func (s explaining) PlanResourceChange(ctx context.Context, req *tfprotov6.PlanResourceChangeRequest) (*tfprotov6.PlanResourceChangeResponse, error) {
	resp, err := s.Server.PlanResourceChange(ctx, req)
	if resp != nil {
		explained(resp.Diagnostics)
	}
	return resp, err
}

func (s explaining) ApplyResourceChange(ctx context.Context, req *tfprotov6.ApplyResourceChangeRequest) (*tfprotov6.ApplyResourceChangeResponse, error) {
	resp, err := s.Server.ApplyResourceChange(ctx, req)
	if resp != nil {
		explained(resp.Diagnostics)
	}
	return resp, err
}

func (s explaining) ImportResourceState(ctx context.Context, req *tfprotov6.ImportResourceStateRequest) (*tfprotov6.ImportResourceStateResponse, error) {
	resp, err := s.Server.ImportResourceState(ctx, req)
	if resp != nil {
		explained(resp.Diagnostics)
	}
	return resp, err
}

func (s explaining) ValidateDataResourceConfig(
	ctx context.Context, req *tfprotov6.ValidateDataResourceConfigRequest,
) (*tfprotov6.ValidateDataResourceConfigResponse, error) {
	resp, err := s.Server.ValidateDataResourceConfig(ctx, req)
	if resp != nil {
		explained(resp.Diagnostics)
	}
	return resp, err
}

func (s explaining) ReadDataSource(ctx context.Context, req *tfprotov6.ReadDataSourceRequest) (*tfprotov6.ReadDataSourceResponse, error) {
	resp, err := s.Server.ReadDataSource(ctx, req)
	if resp != nil {
		explained(resp.Diagnostics)
	}
	return resp, err
}

func (s explaining) ValidateEphemeralResourceConfig(
	ctx context.Context, req *tfprotov6.ValidateEphemeralResourceConfigRequest,
) (*tfprotov6.ValidateEphemeralResourceConfigResponse, error) {
	resp, err := s.Server.ValidateEphemeralResourceConfig(ctx, req)
	if resp != nil {
		explained(resp.Diagnostics)
	}
	return resp, err
}

func (s explaining) OpenEphemeralResource(
	ctx context.Context, req *tfprotov6.OpenEphemeralResourceRequest,
) (*tfprotov6.OpenEphemeralResourceResponse, error) {
	resp, err := s.Server.OpenEphemeralResource(ctx, req)
	if resp != nil {
		explained(resp.Diagnostics)
	}
	return resp, err
}

func (s explaining) ValidateActionConfig(ctx context.Context, req *tfprotov6.ValidateActionConfigRequest) (*tfprotov6.ValidateActionConfigResponse, error) {
	resp, err := s.Server.ValidateActionConfig(ctx, req)
	if resp != nil {
		explained(resp.Diagnostics)
	}
	return resp, err
}

func (s explaining) PlanAction(ctx context.Context, req *tfprotov6.PlanActionRequest) (*tfprotov6.PlanActionResponse, error) {
	resp, err := s.Server.PlanAction(ctx, req)
	if resp != nil {
		explained(resp.Diagnostics)
	}
	return resp, err
}

func (s explaining) InvokeAction(ctx context.Context, req *tfprotov6.InvokeActionRequest) (*tfprotov6.InvokeActionServerStream, error) {
	resp, err := s.Server.InvokeAction(ctx, req)
	if err != nil || resp == nil || resp.Events == nil {
		return resp, err
	}
	return &tfprotov6.InvokeActionServerStream{Events: func(yield func(tfprotov6.InvokeActionEvent) bool) {
		for event := range resp.Events {
			if completed, isCompleted := event.Type.(tfprotov6.CompletedInvokeActionEventType); isCompleted {
				explained(completed.Diagnostics)
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
	resp, err := s.Server.ValidateListResourceConfig(ctx, req)
	if resp != nil {
		explained(resp.Diagnostics)
	}
	return resp, err
}

func (s explaining) ListResource(ctx context.Context, req *tfprotov6.ListResourceRequest) (*tfprotov6.ListResourceServerStream, error) {
	resp, err := s.Server.ListResource(ctx, req)
	if err != nil || resp == nil || resp.Results == nil {
		return resp, err
	}
	return &tfprotov6.ListResourceServerStream{Results: func(yield func(tfprotov6.ListResourceResult) bool) {
		for result := range resp.Results {
			explained(result.Diagnostics)
			if !yield(result) {
				return
			}
		}
	}}, nil
}
