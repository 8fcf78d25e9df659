// Package fleetvalue converts the value of provider::flotilla::fleet from and to Terraform.
package fleetvalue

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/pipeline"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/once"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

var attributeTypes = map[string]attr.Type{
	"format":      types.StringType,
	"environment": types.StringType,
	"model":       types.StringType,
	"config":      types.ObjectType{AttrTypes: EntriesTypes},
	"manifests":   types.ObjectType{AttrTypes: EntriesTypes},
	"constraints": types.ObjectType{AttrTypes: EntriesTypes},
}

// EntriesTypes are of entries: see package fleet.
var EntriesTypes = map[string]attr.Type{"known": types.StringType, "pending": types.MapType{ElemType: types.StringType}}

// Return is the return value of a function.
func Return() function.Return {
	return function.ObjectReturn{AttributeTypes: attributeTypes}
}

// Result converts a decoded fleet. Parts that may still change are unknown.
func Result(decoded *fleet.Decoded) (any, error) {
	known, err := decoded.Value()
	if err != nil {
		return nil, err
	}
	environment, model := types.StringUnknown(), types.StringUnknown()
	if decoded.EnvironmentKnown {
		environment = types.StringValue(known.Environment)
	}
	if known.Known() {
		model = types.StringValue(known.Model)
	}
	config, configErr := EntriesOf(known.Config, decoded.Pending, decoded.ContainersKnown)
	manifests, manifestsErr := EntriesOf(known.Manifests, decoded.PendingManifests, decoded.TargetsKnown)
	constraints, constraintsErr := EntriesOf(known.Constraints, decoded.PendingConstraints, decoded.ConstraintsKnown)
	if err := errors.Join(configErr, manifestsErr, constraintsErr); err != nil {
		return nil, err
	}
	return types.ObjectValueMust(attributeTypes, map[string]attr.Value{
		"format": types.StringValue(known.Format), "environment": environment, "model": model,
		"config": config, "manifests": manifests, "constraints": constraints,
	}), nil
}

// EntriesOf returns entries. complete: no others may follow.
func EntriesOf(known map[string]string, pending []string, complete bool) (types.Object, error) {
	text, unknown := types.StringUnknown(), make(map[string]attr.Value, len(pending))
	if complete {
		joined, err := fleet.EncodeEntries(known)
		if err != nil {
			return types.Object{}, err
		}
		text = types.StringValue(joined)
	}
	for _, name := range pending {
		unknown[name] = types.StringUnknown()
	}
	return types.ObjectValueMust(EntriesTypes,
		map[string]attr.Value{"known": text, "pending": types.MapValueMust(types.StringType, unknown)}), nil
}

const otherValue = "This must be what provider::flotilla::fleet or provider::flotilla::control_plane returned, through a local."

// Decode reads a fleet. known is false while its model is unknown.
func Decode(attribute types.Dynamic, diagnostics *diag.Diagnostics) (_ fleet.Value, known bool) {
	given := tfvalue.Plain(attribute)
	if !tfvalue.IsItselfKnown(given) {
		return fleet.Value{}, false
	}
	object, ok := given.(map[string]any)
	_, hasModel := object["model"]
	_, hasConfig := object["config"].(map[string]any)
	if !ok || !hasModel || !hasConfig {
		diagnostics.AddAttributeError(Path, "Invalid fleet", otherValue)
		return fleet.Value{}, false
	}
	value, configUnknown := fields(object, diagnostics)
	if format := object["format"]; tfvalue.IsItselfKnown(format) {
		if err := fleet.CheckFormat(value.Format); err != nil {
			diagnostics.AddAttributeError(path.Root("fleet"), "Invalid fleet", tfvalue.Sentence(err.Error()))
			return value, false
		}
	}
	return value, value.Known() && !configUnknown
}

// DecodeObject is [Decode] for a data source.
func DecodeObject(attribute types.Object, diagnostics *diag.Diagnostics) fleet.Value {
	value, _ := fields(tfvalue.PlainMap(attribute.Attributes()), diagnostics)
	return value
}

func fields(object map[string]any, diagnostics *diag.Diagnostics) (value fleet.Value, configUnknown bool) {
	value.Format, _ = object["format"].(string)
	value.Environment, _ = object["environment"].(string)
	value.Model, _ = object["model"].(string)
	value.Config, _, configUnknown = entriesIn(object["config"], diagnostics)
	value.Manifests, _, _ = entriesIn(object["manifests"], diagnostics)
	value.Constraints, _, _ = entriesIn(object["constraints"], diagnostics)
	return value, configUnknown
}

// entriesIn returns the known entries and the sorted names of unknown ones; all: every entry is unknown.
func entriesIn(value any, diagnostics *diag.Diagnostics) (known map[string]string, pending []string, all bool) {
	object, _ := value.(map[string]any)
	if !tfvalue.IsItselfKnown(value) || !tfvalue.IsItselfKnown(object["known"]) {
		return nil, nil, true
	}
	if text, ok := object["known"].(string); ok {
		var err error
		if known, err = fleet.ParseEntries(text); err != nil {
			diagnostics.AddAttributeError(Path, "Invalid fleet", otherValue)
		}
	}
	names, _ := object["pending"].(map[string]any)
	return known, slices.Sorted(maps.Keys(names)), false
}

// Constraints returns the known rules and the names of unknown ones; all: every rule is unknown.
func Constraints(attribute types.Dynamic, diagnostics *diag.Diagnostics) (entries map[string]string, unknown []string, all bool) {
	object, _ := attribute.UnderlyingValue().(basetypes.ObjectValue)
	return entriesIn(tfvalue.Plain(object.Attributes()["constraints"]), diagnostics)
}

// Path is the attribute fleet.
var Path = path.Root("fleet")

// MaxDiagnostics bounds diagnostics of one kind.
const MaxDiagnostics = 50

// AddErrors adds findings as errors of the attribute fleet.
func AddErrors(diagnostics *diag.Diagnostics, found []pipeline.Diagnostic) {
	for _, finding := range found {
		once.Error(diagnostics, Path, finding.Summary, tfvalue.Sentence(finding.Message))
	}
}

// AddWarnings adds findings as warnings of it.
func AddWarnings(diagnostics *diag.Diagnostics, found []pipeline.Diagnostic) {
	for _, finding := range found {
		once.Warning(diagnostics, Path, finding.Summary, tfvalue.Sentence(finding.Message))
	}
}

// AddLimited adds [MaxDiagnostics] findings, and counts the others.
func AddLimited[T any](diagnostics *diag.Diagnostics, findings []T, add func(T)) {
	for i, finding := range findings {
		if i == MaxDiagnostics {
			tfvalue.AddWarningf(diagnostics, Path, "More findings",
				"%d further findings of the same kind are not shown.", len(findings)-MaxDiagnostics)
			return
		}
		add(finding)
	}
}

// Terraform drops members of a fleet that a data source does not name, so their unknown values do not defer it to apply.

// ModelAttribute is the attribute fleet with the model alone. further extends its description.
func ModelAttribute(further string) schema.SingleNestedAttribute {
	return schema.SingleNestedAttribute{
		Required:            true,
		MarkdownDescription: "The fleet that `provider::flotilla::fleet` or `control_plane` returned, through a `local`.",
		Attributes: map[string]schema.Attribute{
			"format":      schemas.OptionalText("Format of the fleet."),
			"environment": schemas.RequiredText("Name of the environment."),
			"model":       schemas.RequiredText("Canonical JSON of the fleet." + further),
		},
	}
}

// ValuedAttribute adds configuration values.
func ValuedAttribute() schema.SingleNestedAttribute {
	attribute := ModelAttribute("")
	attribute.Attributes["config"] = EntriesAttribute(true, "The data of the config containers.")
	return attribute
}

// RenderedAttribute adds manifests, which rendering needs.
func RenderedAttribute() schema.SingleNestedAttribute {
	attribute := ValuedAttribute()
	attribute.Attributes["manifests"] = EntriesAttribute(false, "The manifests of the deployment targets, by full name.")
	return attribute
}

// EntriesAttribute is for entries. With pending, Terraform reads the data source only after all are known.
func EntriesAttribute(required bool, what string) schema.SingleNestedAttribute {
	return schema.SingleNestedAttribute{
		Required: required, Optional: !required, MarkdownDescription: what,
		Attributes: map[string]schema.Attribute{
			"known":   schemas.RequiredText("JSON of the known ones, by name."),
			"pending": schemas.OptionalTextMap("Unknown ones, by name."),
		},
	}
}

// Hashed replaces the contents by a hash of the model, so that the state differs if the fleet does.
func Hashed(of types.Object) types.Object {
	attributes := of.Attributes()
	for name, value := range attributes {
		switch name {
		case "format", "environment":
		case "model":
			attributes[name] = types.StringValue(tfvalue.Hash(value.(types.String).ValueString()))
		case "config": // it is required
			attributes[name] = types.ObjectValueMust(EntriesTypes,
				map[string]attr.Value{"known": types.StringValue("{}"), "pending": types.MapNull(types.StringType)})
		default:
			attributes[name] = types.ObjectNull(EntriesTypes)
		}
	}
	return types.ObjectValueMust(of.AttributeTypes(context.Background()), attributes)
}

// Narrowing selects assignments in data sources. null selects all.
type Narrowing struct {
	ClusterType      types.String `tfsdk:"cluster_type"`
	Cluster          types.String `tfsdk:"cluster"`
	DeploymentTarget types.String `tfsdk:"deployment_target"`
}

// Narrowed adds the attributes of a Narrowing to others.
func Narrowed(others map[string]schema.Attribute) map[string]schema.Attribute {
	others["cluster_type"] = schemas.OptionalText("Only assignments to this cluster type, or to clusters of it.")
	others["cluster"] = schemas.OptionalText("Only assignments to this cluster.")
	others["deployment_target"] = schemas.OptionalText("Only assignments of this deployment target, by its full name.")
	return others
}

// Check reports names that the fleet lacks, which would silently select nothing.
func (n Narrowing) Check(scheduled *schedule.Decisions, diagnostics *diag.Diagnostics) {
	var clusterTypes, clusters, targets []string
	for _, host := range scheduled.Hosts {
		if host.Cluster != nil {
			clusters = append(clusters, host.Cluster.Name)
		} else {
			clusterTypes = append(clusterTypes, host.ClusterType.Name)
		}
	}
	for _, target := range scheduled.Targets {
		targets = append(targets, target.Name)
	}
	for _, by := range []struct {
		attribute, kind string
		value           types.String
		names           []string
	}{
		{"cluster_type", "cluster type", n.ClusterType, clusterTypes},
		{"cluster", "cluster", n.Cluster, clusters},
		{"deployment_target", "deployment target", n.DeploymentTarget, targets},
	} {
		if name := by.value.ValueString(); !by.value.IsNull() && !slices.Contains(by.names, name) {
			tfvalue.AddErrorf(diagnostics, path.Root(by.attribute), "No such "+by.kind,
				"no %s of this fleet is called %q%s", by.kind, name, fleet.DidYouMean(name, by.names))
		}
	}
}

// Includes reports whether an assignment is selected.
func (n Narrowing) Includes(assignment *schedule.Assignment) bool {
	cluster := ""
	if assignment.Host.Cluster != nil {
		cluster = assignment.Host.Cluster.Name
	}
	return n.selects(assignment.Host.ClusterType.Name, cluster, assignment.Target.Name)
}

// IncludesGone reports whether a folder is selected that is no longer wanted.
func (n Narrowing) IncludesGone(key folder.Key, f *fleet.Fleet) bool {
	cluster, isCluster := strings.CutPrefix(key.Host, "clusters/")
	if !isCluster {
		return n.selects(key.Host, "", key.DeploymentTarget)
	}
	clusterType := ""
	for i := range f.Clusters {
		if f.Clusters[i].Name == cluster {
			clusterType = f.Clusters[i].ClusterType
		}
	}
	return n.selects(clusterType, cluster, key.DeploymentTarget)
}

func (n Narrowing) selects(clusterType, cluster, target string) bool {
	return (n.ClusterType.IsNull() || n.ClusterType.ValueString() == clusterType) &&
		(n.Cluster.IsNull() || n.Cluster.ValueString() == cluster) &&
		(n.DeploymentTarget.IsNull() || n.DeploymentTarget.ValueString() == target)
}
