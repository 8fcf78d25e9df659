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

// Explain passes calls on to a server, and adds the sections of the guide to the diagnostics that it returns.
func Explain(server tfprotov6.ProviderServer) tfprotov6.ProviderServer { return explaining{server} }

type explaining struct{ tfprotov6.ProviderServer }

func (s explaining) ValidateProviderConfig(ctx context.Context, req *tfprotov6.ValidateProviderConfigRequest) (*tfprotov6.ValidateProviderConfigResponse, error) {
	resp, err := s.ProviderServer.ValidateProviderConfig(ctx, req)
	if resp != nil {
		explained(resp.Diagnostics)
	}
	return resp, err
}

func (s explaining) ConfigureProvider(ctx context.Context, req *tfprotov6.ConfigureProviderRequest) (*tfprotov6.ConfigureProviderResponse, error) {
	resp, err := s.ProviderServer.ConfigureProvider(ctx, req)
	if resp != nil {
		explained(resp.Diagnostics)
	}
	return resp, err
}

func (s explaining) ValidateResourceConfig(ctx context.Context, req *tfprotov6.ValidateResourceConfigRequest) (*tfprotov6.ValidateResourceConfigResponse, error) {
	resp, err := s.ProviderServer.ValidateResourceConfig(ctx, req)
	if resp != nil {
		explained(resp.Diagnostics)
	}
	return resp, err
}

func (s explaining) ReadResource(ctx context.Context, req *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	resp, err := s.ProviderServer.ReadResource(ctx, req)
	if resp != nil {
		explained(resp.Diagnostics)
	}
	return resp, err
}

func (s explaining) PlanResourceChange(ctx context.Context, req *tfprotov6.PlanResourceChangeRequest) (*tfprotov6.PlanResourceChangeResponse, error) {
	resp, err := s.ProviderServer.PlanResourceChange(ctx, req)
	if resp != nil {
		explained(resp.Diagnostics)
	}
	return resp, err
}

func (s explaining) ApplyResourceChange(ctx context.Context, req *tfprotov6.ApplyResourceChangeRequest) (*tfprotov6.ApplyResourceChangeResponse, error) {
	resp, err := s.ProviderServer.ApplyResourceChange(ctx, req)
	if resp != nil {
		explained(resp.Diagnostics)
	}
	return resp, err
}

func (s explaining) ImportResourceState(ctx context.Context, req *tfprotov6.ImportResourceStateRequest) (*tfprotov6.ImportResourceStateResponse, error) {
	resp, err := s.ProviderServer.ImportResourceState(ctx, req)
	if resp != nil {
		explained(resp.Diagnostics)
	}
	return resp, err
}

func (s explaining) ValidateDataResourceConfig(
	ctx context.Context, req *tfprotov6.ValidateDataResourceConfigRequest,
) (*tfprotov6.ValidateDataResourceConfigResponse, error) {
	resp, err := s.ProviderServer.ValidateDataResourceConfig(ctx, req)
	if resp != nil {
		explained(resp.Diagnostics)
	}
	return resp, err
}

func (s explaining) ReadDataSource(ctx context.Context, req *tfprotov6.ReadDataSourceRequest) (*tfprotov6.ReadDataSourceResponse, error) {
	resp, err := s.ProviderServer.ReadDataSource(ctx, req)
	if resp != nil {
		explained(resp.Diagnostics)
	}
	return resp, err
}
