// Package repository has the common parts of objects in a GitOps repository.
package repository

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/frame"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// DecodeLocation decodes gitops_repo. known is false while a part is unknown.
func DecodeLocation(attribute types.Dynamic, diagnostics *diag.Diagnostics) (at folder.Location, known bool) {
	value := tfvalue.Plain(attribute)
	repo, known, findings := fleet.DecodeGitopsRepo(value)
	if len(findings) == 0 {
		findings = CheckGitopsRepo("", value)
	}
	tfvalue.AddFindings(diagnostics, path.Root("gitops_repo"), "Invalid GitOps repository", tfvalue.Inner(findings))
	return repo, known && len(findings) == 0
}

// ReadLocation reads gitops_repo of an object.
func ReadLocation(o *fleet.ObjectReader) folder.Location {
	if !o.Has("gitops_repo") {
		o.Report("gitops_repo", "is required")
		return folder.Location{}
	}
	value, _ := o.Value("gitops_repo")
	at, _, findings := fleet.DecodeGitopsRepo(value)
	if len(findings) == 0 {
		findings = CheckGitopsRepo("", value)
	}
	for _, finding := range findings {
		o.Report(strings.TrimSuffix("gitops_repo."+finding.Path, "."), "%s", finding.Message)
	}
	return at
}

// CheckGitopsRepo checks URL and branch by the rules of Git, which package fleet does not know.
func CheckGitopsRepo(attribute string, value any) fleet.Findings {
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

// CheckOwnerName reports a name that is no DNS label.
func CheckOwnerName(name types.String, diagnostics *diag.Diagnostics) {
	if name.IsNull() || name.IsUnknown() {
		return
	}
	if problem := fleet.CheckLabelName(name.ValueString()); problem != "" {
		tfvalue.AddErrorf(diagnostics, path.Root("name"), "Invalid name", "%q %s.", name.ValueString(), problem)
	}
}

// ForTemplates returns a location for templates; nil while unknown.
func ForTemplates(at folder.Location, known bool) *folder.Location {
	if !known {
		return nil
	}
	return &at
}

// Identity identifies an object by its name and its location.
var Identity = map[string]identityschema.Attribute{
	"url":    identityschema.StringAttribute{RequiredForImport: true, Description: "URL of the GitOps repository."},
	"branch": identityschema.StringAttribute{RequiredForImport: true, Description: "Its branch."},
	"path":   identityschema.StringAttribute{OptionalForImport: true, Description: "Path in the repository. Default: its root."},
	"name":   identityschema.StringAttribute{RequiredForImport: true, Description: "Name at this location."},
}

// Identify returns the identity of an object, if it is known.
func Identify(name types.String, attribute types.Dynamic) map[string]types.String {
	at, _ := DecodeLocation(attribute, &diag.Diagnostics{})
	return map[string]types.String{
		"url": types.StringValue(at.URL), "branch": types.StringValue(at.Branch), "path": types.StringValue(at.Path), "name": name,
	}
}

// Imported reads an import by identity or by "<url>#<branch>:<path>:<name>".
func Imported(
	ctx context.Context, req resource.ImportStateRequest, diagnostics *diag.Diagnostics,
) (repo types.Dynamic, at folder.Location, name types.String, ok bool) {
	identity := frame.Imports(ctx, req, diagnostics)
	if diagnostics.HasError() {
		return repo, at, name, false
	}
	if identity == nil {
		url, rest, _ := strings.Cut(req.ID, "#")
		parts := strings.Split(rest, ":")
		if len(parts) != 3 || url == "" || parts[0] == "" || parts[2] == "" {
			diagnostics.AddError("Invalid import ID",
				`The import ID must be "<url>#<branch>:<path>:<name>", with an empty path for the root of the repository.`)
			return repo, at, name, false
		}
		identity = map[string]types.String{
			"url": types.StringValue(url), "branch": types.StringValue(parts[0]), "path": types.StringValue(parts[1]),
			"name": types.StringValue(parts[2]),
		}
	}
	values := map[string]attr.Value{
		"url":    identity["url"],
		"branch": identity["branch"],
		"path":   types.StringValue(identity["path"].ValueString()),
	}
	texts := map[string]attr.Type{"url": types.StringType, "branch": types.StringType, "path": types.StringType}
	repo = types.DynamicValue(types.ObjectValueMust(texts, values))
	at, ok = DecodeLocation(repo, diagnostics)
	return repo, at, identity["name"], ok
}

// LocationText returns a location in the form of an import.
func LocationText(at folder.Location) string { return at.URL + "#" + at.Branch + ":" + at.Path }

// Names are the names to find on a branch, if given.
type Names struct{ Assignment, Host, DeploymentTarget string }

// WarnOfNames warns of names without a record at a location: a misspelt name and one that is not written yet both give an
// empty result without an error.
func WarnOfNames(ctx context.Context, from *delivery.Service, at folder.Location, given Names, diagnostics *diag.Diagnostics) {
	if given == (Names{}) {
		return
	}
	found, err := from.ReadInventory(ctx, at, gitops.InventoryFilter{})
	if err != nil {
		return
	}
	names, hosts, targets := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, owner := range found.Owners {
		names[owner.Name] = true
	}
	for i := range found.Assignments {
		hosts[found.Assignments[i].Host], targets[found.Assignments[i].DeploymentTarget] = true, true
	}
	for _, one := range []struct {
		attribute, kind, name string
		known                 map[string]bool
	}{
		{"name", "assignment", given.Assignment, names}, {"host", "host", given.Host, hosts},
		{"deployment_target", "deployment target", given.DeploymentTarget, targets},
	} {
		if one.name == "" || one.known[one.name] {
			continue
		}
		diagnostics.AddAttributeWarning(path.Root(one.attribute), "Branch has no such name", tfvalue.Sentence(fmt.Sprintf(
			"branch %q has no %s %q%s", at.Branch, one.kind, one.name, fleet.DidYouMean(one.name, slices.Sorted(maps.Keys(one.known)))))+
			" It may not be written yet.")
	}
}
