package provider

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/kinds"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/pipeline"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/wire"
)

const definitionsAttribute = "custom_resource_definitions"

// decodeDefinitions reads CustomResourceDefinitions. Unknown texts define nothing.
func decodeDefinitions(value types.Dynamic, diagnostics *diag.Diagnostics) (defined pipeline.Definitions) {
	at := path.Root(definitionsAttribute)
	report := func(format string, arguments ...any) {
		tfvalue.AddErrorf(diagnostics, at, "Invalid definitions", format, arguments...)
	}
	read := tfvalue.Plain(value)
	elements, areMany := fleet.Elements((*fleet.Path)(nil).Attribute(definitionsAttribute), read)
	if !areMany && read != nil {
		elements = []fleet.Element{{Path: (*fleet.Path)(nil).Attribute(definitionsAttribute), Value: read}}
	}
	sum := sha256.New()
	for _, element := range elements {
		if _, isUnknown := element.Value.(fleet.Unknown); isUnknown {
			continue
		}
		text, isText := element.Value.(string)
		if !isText {
			report("%s must be a text of YAML documents, or a list or map of such texts", element.Path)
			continue
		}
		objects, err := fleet.ReadObjects(text)
		if err != nil {
			report("%s cannot be read: %s", element.Path, err)
			continue
		}
		if len(objects) == 0 {
			report("%s has no CustomResourceDefinition", element.Path)
		}
		sum.Write([]byte(text))
		for _, object := range objects {
			if !kinds.IsDefinition(object) {
				continue // files of projects also have Namespaces and the like
			}
			definition, err := kinds.ReadDefinition(object)
			if err != nil {
				report("%s: %s %s", element.Path, nameOf(object), err)
				continue
			}
			defined.All = append(defined.All, definition)
		}
	}
	defined.Sum = hex.EncodeToString(sum.Sum(nil))
	return defined
}

func nameOf(object map[string]any) string {
	metadata, _ := object["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	return fmt.Sprintf("%q", name)
}

// sayChanges lists the resources with an attribute changes.
var sayChanges = map[string]bool{"flotilla_assignment": true, "flotilla_agent": true, "flotilla_rollout": true}

// UpgradeResourceState reads the attribute changes as empty. The state has the changes of the last apply; the next plan
// must neither show those lines nor omit equal new ones. If a refresh emptied it, Terraform would report a change outside
// of Terraform after every apply.
func (s *server) UpgradeResourceState(
	ctx context.Context, req *tfprotov6.UpgradeResourceStateRequest,
) (*tfprotov6.UpgradeResourceStateResponse, error) {
	if sayChanges[req.TypeName] && req.RawState != nil {
		var attributes map[string]json.RawMessage
		if json.Unmarshal(req.RawState.JSON, &attributes) == nil && attributes["changes"] != nil {
			attributes["changes"] = json.RawMessage("[]")
			if text, err := json.Marshal(attributes); err == nil {
				without := *req
				without.RawState = &tfprotov6.RawState{JSON: text}
				req = &without
			}
		}
	}
	return s.Server.UpgradeResourceState(ctx, req)
}

// ReadResource writes numbers as text. Terraform finds a 1 from a provider different from a 1 in the state: each `plan
// -refresh-only -detailed-exitcode` would return 2 without showing a change (github.com/hashicorp/terraform/issues/36403).
func (s *server) ReadResource(ctx context.Context, req *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	resp, err := s.Server.ReadResource(ctx, req)
	if err == nil && resp.NewState != nil {
		if message, err := wire.NumbersAsText(resp.NewState.MsgPack); err == nil {
			resp.NewState = &tfprotov6.DynamicValue{MsgPack: message}
		}
	}
	return resp, err
}
