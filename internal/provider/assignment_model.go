package provider

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/pipeline"
)

// place is where an assignment writes.
type place fleet.GitopsRepo

// place decodes gitops_repo. known is false while some of it is unknown.
func (m *assignmentModel) place(diagnostics *diag.Diagnostics) (at place, known bool) {
	value := plain(m.GitopsRepo)
	repo, known, findings := fleet.DecodeGitopsRepo(value)
	if len(findings) == 0 {
		findings = checkGitopsRepo("", value)
	}
	addFindings(diagnostics, path.Root("gitops_repo"), "Invalid GitOps repository", asInner(findings))
	return place(repo), known && len(findings) == 0
}

// asInner keeps attributePath from taking the attributes of a dynamic value for Terraform's.
func asInner(findings fleet.Findings) fleet.Findings {
	inner := make(fleet.Findings, len(findings))
	for i, finding := range findings {
		inner[i] = fleet.Finding{Message: finding.String()}
	}
	return inner
}

// checkGitopsRepo checks what the model leaves to those who know Git. attribute is prefixed to paths.
func checkGitopsRepo(attribute string, value any) fleet.Findings {
	repo, ok := value.(map[string]any)
	if !ok {
		return nil
	}
	var findings fleet.Findings
	for name, check := range map[string]func(string) error{
		"url": git.CheckURL, "branch": git.CheckBranch,
		"path": func(text string) error {
			if text == "." || text == "./" || text == "/" || text == "" {
				return nil
			}
			return git.CheckPath(text)
		},
	} {
		text, ok := repo[name].(string)
		if !ok {
			continue
		}
		if err := check(text); err != nil {
			findings = append(findings, fleet.Finding{Path: strings.TrimPrefix(attribute+"."+name, "."), Message: err.Error()})
		}
	}
	return findings
}

func checkOwnerName(name types.String, diagnostics *diag.Diagnostics) {
	if name.IsNull() || name.IsUnknown() {
		return
	}
	if problem := fleet.CheckLabelName(name.ValueString()); problem != "" {
		diagnostics.AddAttributeError(path.Root("name"), "Invalid name", fmt.Sprintf("%q %s.", name.ValueString(), problem))
	}
}

// onDestroy is what on_destroy may be.
var onDestroy = []string{"delete", "keep"}

func checkOnDestroy(value types.String, diagnostics *diag.Diagnostics) {
	if text := value.ValueString(); !value.IsNull() && !value.IsUnknown() && !slices.Contains(onDestroy, text) {
		diagnostics.AddAttributeError(path.Root("on_destroy"), "Invalid on_destroy",
			sentence(fmt.Sprintf("%q is none of %s%s", text, strings.Join(onDestroy, ", "), fleet.DidYouMean(text, onDestroy))))
	}
}

// keeps says whether the folders stay when the assignment goes.
func (m *assignmentModel) keeps() bool { return m.OnDestroy.ValueString() == "keep" }

func checkRollback(value types.String, diagnostics *diag.Diagnostics) {
	if value.IsNull() || value.IsUnknown() {
		return
	}
	if err := git.CheckCommit(value.ValueString()); err != nil {
		diagnostics.AddAttributeError(path.Root("rollback_to"), "Invalid commit", sentence(err.Error()))
	}
}

// settings reads an attribute that is an object with these keys, strictly. What is null or not known is
// left out.
func settings(name string, value types.Dynamic, keys []string, diagnostics *diag.Diagnostics) map[string]any {
	at, summary := path.Root(name), "Invalid "+name
	given := plain(value)
	object, ok := given.(map[string]any)
	if !ok && given != nil && fleet.IsKnown(given) {
		diagnostics.AddAttributeError(at, summary, fmt.Sprintf("Must be an object: {%s}.", strings.Join(keys, ", ")))
	}
	known := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		switch {
		case !slices.Contains(keys, key):
			diagnostics.AddAttributeError(at, summary, sentence(fmt.Sprintf("unknown attribute %q%s", key, fleet.DidYouMean(key, keys))))
		case object[key] != nil && fleet.IsKnown(object[key]):
			known[key] = object[key]
		}
	}
	return known
}

// isElsewhere says whether the model, from state, is at another place. A place that is not known yet
// is assumed to be the same: what apply finds then decides.
func (m *assignmentModel) isElsewhere(at place, known bool) bool {
	var ignored diag.Diagnostics
	here, _ := m.place(&ignored)
	return known && here != at
}

func (m *assignmentModel) owner(at place) gitops.Owner {
	return gitops.Owner{Name: m.Name.ValueString(), Environment: m.environment(), Path: at.Path}
}

func (m *assignmentModel) environment() string {
	environment, _ := m.Fleet.Attributes()["environment"].(types.String)
	return environment.ValueString()
}

// outcome computes the fleet; nil where its model is not known yet, or something is wrong.
func (r *assignmentResource) outcome(ctx context.Context, m *assignmentModel, diagnostics *diag.Diagnostics) *pipeline.Result {
	if m.Fleet.IsUnknown() {
		return nil
	}
	format, _ := m.Fleet.Attributes()["format"].(types.String)
	model, _ := m.Fleet.Attributes()["model"].(types.String)
	config, _ := m.Fleet.Attributes()["config"].(types.Map)
	manifests, _ := m.Fleet.Attributes()["manifests"].(types.Map)
	if model.IsUnknown() || config.IsUnknown() {
		return nil
	}
	var configs, manifestsOf map[string]types.String
	diagnostics.Append(config.ElementsAs(ctx, &configs, false)...)
	if !manifests.IsUnknown() {
		diagnostics.Append(manifests.ElementsAs(ctx, &manifestsOf, false)...)
	}
	if diagnostics.HasError() {
		return nil
	}
	return r.connection.compute(fleet.Value{
		Format: format.ValueString(), Environment: m.environment(), Model: model.ValueString(),
		Config: knownEntries(configs), Manifests: knownEntries(manifestsOf),
	}, diagnostics)
}

// deployment reads the attribute deployed; a host whose folders are not known is left out.
func (m *assignmentModel) deployment(ctx context.Context, diagnostics *diag.Diagnostics) gitops.Deployed {
	deployed := gitops.Deployed{}
	texts := map[string]types.String{}
	if !m.Deployed.IsNull() && !m.Deployed.IsUnknown() {
		diagnostics.Append(m.Deployed.ElementsAs(ctx, &texts, false)...)
	}
	for host, text := range texts {
		if text.IsNull() || text.IsUnknown() {
			continue
		}
		folders, err := fleet.ParseJSON(text.ValueString())
		object, ok := folders.(map[string]any)
		if err != nil || !ok {
			diagnostics.AddAttributeError(path.Root("deployed").AtMapKey(host), "Invalid state",
				"The value must be the JSON of an object: {<deployment target>: <git tree id>}.")
			continue
		}
		deployed[host] = map[string]string{}
		for target, tree := range object {
			deployed[host][target], _ = tree.(string)
		}
	}
	return deployed
}

// deployedValue is the attribute deployed. A host with a folder whose content is not known yet is
// unknown, and no other.
func deployedValue(deployed gitops.Deployed) types.Map {
	hosts := make(map[string]attr.Value, len(deployed))
	for host, folders := range deployed {
		object, known := make(map[string]any, len(folders)), true
		for target, tree := range folders {
			object[target] = tree
			known = known && tree != unknownTree
		}
		text, err := fleet.CanonicalJSON(object)
		if err != nil {
			panic("a map of strings has no JSON form: " + err.Error())
		}
		hosts[host] = types.StringValue(text)
		if !known {
			hosts[host] = types.StringUnknown()
		}
	}
	return types.MapValueMust(types.StringType, hosts)
}

// remote is how to reach a place.
func (c *connection) remote(at place) git.Remote {
	return git.Remote{URL: at.URL, Branch: at.Branch, Credentials: c.credentials}
}

// addRepositoryError reports what went wrong with a repository. When creates, one that is not there or
// cannot be reached is only a warning: it may be made in the same run.
func addRepositoryError(ctx context.Context, diagnostics *diag.Diagnostics, err error, creates bool) {
	if addEnded(ctx, diagnostics, err) || addForgeError(diagnostics, err) {
		return
	}
	at := path.Root("gitops_repo")
	detail := sentence(err.Error())
	switch {
	case errors.Is(err, git.ErrCommit):
		diagnostics.AddAttributeError(path.Root("rollback_to"), "Commit cannot be gone back to", detail+
			" The data source flotilla_history lists the commits that this assignment made.")
	case errors.Is(err, git.ErrUnauthorized):
		diagnostics.AddAttributeError(at, "Repository refuses the credentials", detail+
			" Set the provider's git.token, or git.username and git.password, or FLOTILLA_GIT_TOKEN, FLOTILLA_GIT_USERNAME and FLOTILLA_GIT_PASSWORD.")
	case errors.Is(err, git.ErrNotFound) || errors.Is(err, git.ErrUnreachable):
		summary := "Repository cannot be reached"
		if errors.Is(err, git.ErrNotFound) {
			summary = "Repository does not exist"
		}
		if creates {
			diagnostics.AddAttributeWarning(at, summary, detail+" If this run creates it, all is well; else apply will fail.")
			return
		}
		diagnostics.AddAttributeError(at, summary, detail)
	case errors.Is(err, git.ErrHostKey):
		diagnostics.AddAttributeError(at, "Host key cannot be verified", detail)
	case errors.Is(err, gitops.ErrConflict):
		diagnostics.AddAttributeError(at, "Folder belongs to somebody else", detail)
	case errors.Is(err, git.ErrRefused):
		diagnostics.AddAttributeError(at, "Repository refuses the commit", detail+" Nothing was written.")
	default:
		diagnostics.AddAttributeError(at, "Repository cannot be used", detail)
	}
}

// ImportState takes "<url>#<branch>:<path>:<name>", and reads from the repository's records what the
// owner of that name has there.
func (r *assignmentResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	url, rest, _ := strings.Cut(req.ID, "#")
	parts := strings.Split(rest, ":")
	if len(parts) != 3 || url == "" || parts[0] == "" || parts[2] == "" {
		resp.Diagnostics.AddError("Invalid import ID",
			`The import ID must be "<url>#<branch>:<path>:<name>", with an empty path for the root of the repository.`)
		return
	}
	repo := map[string]attr.Value{"url": types.StringValue(url), "branch": types.StringValue(parts[0]), "path": types.StringValue(parts[1])}
	texts := map[string]attr.Type{"url": types.StringType, "branch": types.StringType, "path": types.StringType}
	model := assignmentModel{
		Name:          types.StringValue(parts[2]),
		GitopsRepo:    types.DynamicValue(types.ObjectValueMust(texts, repo)),
		Delivery:      types.DynamicNull(),
		Protection:    types.DynamicNull(),
		Adopt:         types.BoolNull(),
		CommitMessage: types.StringNull(),
		RollbackTo:    types.StringNull(),
		OnDestroy:     types.StringNull(),
		Timeouts:      types.DynamicNull(),
		PullRequest:   types.StringNull(),
	}
	checkOwnerName(model.Name, &resp.Diagnostics)
	at, known := model.place(&resp.Diagnostics)
	if !known || resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := defaultTimeouts.during(ctx, forRead)
	defer cancel()
	var owned gitops.Deployed
	err := r.connection.inspect(ctx, r.connection.remote(at), model.owner(at), func(view *gitops.View) (err error) {
		owned, err = view.Owned(ctx)
		model.Commit = types.StringValue(view.Commit)
		return err
	})
	if err != nil {
		addRepositoryError(ctx, &resp.Diagnostics, err, false)
		return
	}
	if len(owned) == 0 {
		resp.Diagnostics.AddError("Nothing to import",
			fmt.Sprintf("The repository has no record of an owner called %q at path %q of branch %q.", parts[2], parts[1], parts[0]))
		return
	}
	fleetType := basetypes.ObjectType{AttrTypes: fleetTypes}
	model.Fleet = types.ObjectNull(fleetType.AttrTypes)
	model.Deployed = deployedValue(owned)
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}
