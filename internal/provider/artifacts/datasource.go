// Package artifacts implements flotilla_artifacts, which pins the artifacts of manifests.
package artifacts

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/frame"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/table"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/timeouts"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// New returns the data source.
func New() datasource.DataSource {
	return frame.DataSource[artifactsModel]{
		Name: "artifacts", Validate: validate, Read: read,
		Description: "Pins the manifests of workloads: branches and tags of Git as commits, tags and ranges of versions in registries and " +
			"chart repositories as versions and digests. With `artifacts`, `provider::flotilla::fleet` makes a fleet whose manifests stay as " +
			"they are until a plan changes them: see the guide [Pins](../guides/rendering.md#pins).\n\nEach repository is asked once. Its " +
			"credentials are the entry of the provider's `git.credentials` with the longest matching URL, `https://registry.example.com/team` " +
			"for `oci://registry.example.com/team/app`; registries get the credentials in docker's `config.json` otherwise (`auths`; " +
			"credential helpers are not run). The plain keys of `git` are for the GitOps repository alone. A registry on this machine is " +
			"asked by http, any other by https.\n\nA URL that an `index.yaml`, a redirect, a next page or a registry's realm names must be " +
			"within `sources`, too. It gets no credentials unless it has the same origin and the same entry of `git.credentials`. A realm on " +
			"another server than the registry gets the registry's credentials if an entry with the realm's URL has the same ones.",
		Attributes: map[string]schema.Attribute{
			"workloads": schemas.RequiredDynamic(schemas.Described(&fleet.Attribute{
				Meaning: "Workloads, as `provider::flotilla::fleet` takes them.", Type: fleet.CollectionType, Of: fleet.CollectionTable("workloads"),
			}, "reference-fleet")),
			"workspaces": schemas.OptionalDynamic(schemas.Described(&fleet.Attribute{
				Meaning: "Workspaces, as `provider::flotilla::fleet` takes them. Their `sources` are checked before any request: a URL " +
					"outside of them, and a workload of another workspace, is an error. Set it wherever teams write their workloads. Default: " +
					"manifests may be anywhere.",
				Type: fleet.CollectionType, Of: fleet.CollectionTable("workspaces"),
			}, "reference-fleet")),
			"environment": schemas.OptionalText("Only deployment targets of this environment. Default: all."),
			"update": schema.SetAttribute{
				Optional: true, ElementType: types.StringType,
				MarkdownDescription: "Workloads, and full names of deployment targets (`<workload>-<target>`), whose pins may change; `[]` for " +
					"none. The others keep the pins that are deployed, as long as their manifests are the same. Pins that are not deployed yet, " +
					"or have other manifests than before, are resolved in any case. Default: all may change. It needs `name` and `gitops_repo`.",
			},
			"keep_unreachable": schemas.OptionalBool("Whether the pins that are deployed stay, with a warning, where a repository does not " +
				"answer. Default: that is an error. It needs `name` and `gitops_repo`."),
			"name": schemas.OptionalText("The `name` of the `flotilla_assignment` that deploys the workloads, whose records have the pins " +
				"that are deployed. Where hosts have different ones, as during a rollout, it is the last written one."),
			"gitops_repo": schemas.OptionalDynamic(schemas.Location("The `gitops_repo` of the assignment `name`.")),
			"timeouts":    timeouts.ReadAttribute(),
			"artifacts":   schemas.ComputedText("All pins, as text for the key `artifacts` of `provider::flotilla::fleet`."),
			"pins":        pins.MapAttribute("The pins by full name of the deployment target."),
			"newest": schemas.ComputedTextMap("By full name of the deployment target, the newest version of its repository by semantic " +
				"versioning, whatever the manifests ask for, without prereleases: a tag of Git or of a registry, or a version of the chart. " +
				"Deployment targets whose repository has no such versions, or does not list them, are not in it. While a repository does not " +
				"answer and the pin is kept, it is the version that is deployed."),
		},
	}.New()
}

type artifactsModel struct {
	Workloads       types.Dynamic `tfsdk:"workloads"`
	Workspaces      types.Dynamic `tfsdk:"workspaces"`
	Environment     types.String  `tfsdk:"environment"`
	Update          types.Set     `tfsdk:"update"`
	KeepUnreachable types.Bool    `tfsdk:"keep_unreachable"`
	Name            types.String  `tfsdk:"name"`
	GitopsRepo      types.Dynamic `tfsdk:"gitops_repo"`
	Timeouts        types.Dynamic `tfsdk:"timeouts"`
	Artifacts       types.String  `tfsdk:"artifacts"`
	Pins            types.Map     `tfsdk:"pins"`
	Newest          types.Map     `tfsdk:"newest"`
}

var pins = table.Definition[*pinned]{
	table.TextOrNull("commit", "Id of the commit; null for other storage.", func(p *pinned) string { return p.Pin.Commit }),
	table.TextOrNull("version", "Version of the chart, or tag of the artifact; null in Git.", func(p *pinned) string { return p.Pin.Version }),
	table.TextOrNull("digest", "Digest of the artifact's manifest, or of the chart's archive; null in Git.",
		func(p *pinned) string { return p.Pin.Digest }),
	table.Bool("kept", "Whether it is the pin that is deployed, without having asked for another one.",
		func(p *pinned) *bool { return &p.kept }),
}

// wanted is the decoded configuration.
type wanted struct {
	manifests map[string]folder.Manifests
	sources   map[string][]string // by deployment target; nil allows all
	of        string              // name of the owner; "" for none
	at        folder.Location
	mayUpdate func(target string) bool
	// otherEnvironments are the environments of the deployment targets if none belongs to this one.
	otherEnvironments []string
}

func validate(m *artifactsModel, diagnostics *diag.Diagnostics) { m.decode(diagnostics) }

// decode reads the configuration strictly.
func (m *artifactsModel) decode(diagnostics *diag.Diagnostics) wanted {
	w := wanted{of: m.Name.ValueString(), mayUpdate: func(string) bool { return true }}
	invalid := func(attribute, format string, arguments ...any) {
		tfvalue.AddErrorf(diagnostics, path.Root(attribute), "Invalid "+attribute, format, arguments...)
	}
	if environment := m.Environment.ValueString(); !m.Environment.IsNull() && !m.Environment.IsUnknown() {
		if problem := fleet.CheckLabelName(environment); problem != "" {
			invalid("environment", "%q %s.", environment, problem)
		}
	}
	repository.CheckOwnerName(m.Name, diagnostics)
	if !m.GitopsRepo.IsNull() {
		w.at, _ = repository.DecodeLocation(m.GitopsRepo, diagnostics)
	}
	m.checkOwner(invalid)
	input, findings := fleet.DecodeArtifactInput(tfvalue.Plain(m.Workloads), tfvalue.Plain(m.Workspaces), m.Environment.ValueString())
	for _, attribute := range []string{"workloads", "workspaces"} {
		own := slices.DeleteFunc(slices.Clone(findings), func(f fleet.Finding) bool { return !strings.HasPrefix(f.Path, attribute) })
		tfvalue.AddFindings(diagnostics, path.Root(attribute), "Invalid "+attribute, tfvalue.Inner(own))
	}
	workloads, known := input.Workloads, input.Known
	w.manifests, w.sources = map[string]folder.Manifests{}, map[string][]string{}
	workloadOf, names := map[string]string{}, map[string]bool{}
	for _, workload := range workloads {
		names[workload.Name] = true
		for i := range workload.DeploymentTargets {
			name := fleet.FullName(workload.Name, workload.DeploymentTargets[i].Name)
			if other, twice := workloadOf[name]; twice {
				invalid("workloads", "Workloads %q and %q both have a deployment target of the full name %q: give one of them another name.",
					other, workload.Name, name)
			}
			w.manifests[name] = workload.DeploymentTargets[i].Manifests.Manifests
			w.sources[name] = input.Sources[workload.Workspace]
			workloadOf[name], names[name] = workload.Name, true
		}
	}
	if known && len(findings) == 0 && len(w.manifests) == 0 {
		w.otherEnvironments = input.Environments
	}
	if m.Update.IsNull() || m.Update.IsUnknown() {
		return w
	}
	named := map[string]bool{}
	for _, element := range tfvalue.Plain(m.Update).([]any) {
		if name, ok := element.(string); ok {
			named[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(named)) {
		if known && len(findings) == 0 && !names[name] {
			invalid("update", "No workload and no deployment target has the name %q%s",
				name, wording.DidYouMean(name, slices.Sorted(maps.Keys(names))))
		}
	}
	w.mayUpdate = func(target string) bool { return named[target] || named[workloadOf[target]] }
	return w
}

// checkOwner requires both parts of an assignment, or none.
func (m *artifactsModel) checkOwner(invalid func(attribute, format string, arguments ...any)) {
	needs := map[string]bool{
		"update": tfvalue.IsGiven(m.Update), "keep_unreachable": tfvalue.IsGiven(m.KeepUnreachable),
		"name": tfvalue.IsGiven(m.Name), "gitops_repo": tfvalue.IsGiven(m.GitopsRepo),
	}
	for _, missing := range []struct {
		attribute string
		isNull    bool
	}{{"name", m.Name.IsNull()}, {"gitops_repo", m.GitopsRepo.IsNull()}} {
		var given []string
		for _, attribute := range slices.Sorted(maps.Keys(needs)) {
			if needs[attribute] {
				given = append(given, attribute)
			}
		}
		if missing.isNull && len(given) > 0 {
			invalid(missing.attribute,
				"%s is required with %s: the pins that are deployed are in the records of an assignment, which has a name and a gitops_repo.",
				missing.attribute, wording.List(given, len(given)))
		}
	}
}

func read(ctx context.Context, c *connection.Connection, m *artifactsModel, diagnostics *diag.Diagnostics) {
	w := m.decode(diagnostics)
	if diagnostics.HasError() {
		return
	}
	// A misspelt environment would turn all pins off.
	if environment, others := m.Environment.ValueString(), w.otherEnvironments; environment != "" && len(others) > 0 {
		diagnostics.AddAttributeWarning(path.Root("environment"), "Environment has no pins", fmt.Sprintf(
			"No deployment target of the workloads belongs to environment %q, so nothing is pinned. The workloads have deployment targets of %s%s",
			environment, wording.List(wording.Quoted(others), wording.Named), cmp.Or(wording.DidYouMean(environment, others), ".")))
	}
	var deployed map[string]deployedPin
	if w.of != "" {
		if deployed = readDeployed(ctx, c, w, diagnostics); diagnostics.HasError() {
			return
		}
	}
	found := resolve(ctx, c.Artifacts, w, deployed)
	found.report(ctx, m.KeepUnreachable.ValueBool(), diagnostics)
	found.warnOfRepublished(diagnostics)
	if diagnostics.HasError() {
		return
	}
	resolved, newest := artifact.Resolved{}, map[string]string{}
	for name, one := range found {
		resolved[name] = one.Entry
		if one.newest != "" {
			newest[name] = one.newest
		}
	}
	text, err := resolved.Encode()
	if err != nil {
		diagnostics.AddAttributeError(path.Root("workloads"), "Invalid workloads", tfvalue.Sentence(err.Error()))
		return
	}
	m.Artifacts, m.Pins, m.Newest = types.StringValue(text), pins.MapOf(found), tfvalue.TextMap(newest)
}
