// Package repository has the common parts of objects in a GitOps repository.
package repository

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
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/frame"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/once"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/timeouts"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/access"
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

// AddProblems adds the problems of a delivery at their attributes.
func AddProblems(diagnostics *diag.Diagnostics, problems []delivery.PlanProblem) {
	for _, problem := range problems {
		if problem.Warning {
			diagnostics.AddAttributeWarning(path.Root(problem.Attribute), problem.Summary, tfvalue.Sentence(problem.Detail))
			continue
		}
		diagnostics.AddAttributeError(path.Root(problem.Attribute), problem.Summary, tfvalue.Sentence(problem.Detail))
	}
}

// Kind is the diagnostic for an error of a repository or a Git host.
type Kind struct {
	of                 error
	attribute, Summary string
	Advice             string // follows the text of the error
}

// kinds are in the order of the search: an error of a Git host may also be one of Git, and advice about a key is better
// than advice about credentials.
var kinds = []Kind{
	{
		forge.ErrGitHubApp,
		"gitops_repo",
		"GitHub App gets no token",
		" Look at the provider's git.github_app, or FLOTILLA_GITHUB_APP_ID, FLOTILLA_GITHUB_APP_INSTALLATION_ID, " +
			"FLOTILLA_GITHUB_APP_PRIVATE_KEY and FLOTILLA_GITHUB_APP_URL.",
	},
	{forge.ErrUnauthorized, "delivery", "Git host refuses the credentials", ""},
	{forge.ErrRateLimited, "delivery", "Git host limits requests", ""},
	{forge.ErrNotMergeable, "delivery", "Pull request cannot be merged", ""},
	{forge.ErrHeadMoved, "delivery", "Pull request has another head", ""},
	{forge.ErrNotOwned, "delivery", "Pull request does not belong to this assignment", ""},
	{forge.ErrReviewer, "delivery", "Reviewer cannot be requested", ""},
	{forge.ErrUnreachable, "delivery", "Git host cannot be reached", ""},
	{forge.ErrNotFound, "delivery", "Repository or pull request does not exist", ""},
	{forge.ErrRefused, "delivery", "Git host refuses the pull request", ""},
	{
		git.ErrCommit,
		"rollback_to",
		"Cannot roll back to this commit",
		" The data source flotilla_history lists the commits that this assignment made.",
	},
	{git.ErrKey, "gitops_repo", "Repository refuses the credentials",
		" Set the provider's git.ssh_private_key, or for this URL alone git.credentials; or FLOTILLA_SSH_PRIVATE_KEY, or start an ssh agent."},
	{git.ErrUnauthorized, "gitops_repo", "Repository refuses the credentials",
		" Set the provider's git.token, or git.username and git.password, or for this URL alone git.credentials; " +
			"or FLOTILLA_GIT_TOKEN, or FLOTILLA_GIT_USERNAME and FLOTILLA_GIT_PASSWORD."},
	{access.ErrDenied, "gitops_repo", "URL is not allowed", " Nothing was sent there."},
	{git.ErrNotFound, "gitops_repo", "Repository does not exist", ""},
	{git.ErrNoBranch, "gitops_repo", "Branch does not exist", " Nothing was written."},
	{git.ErrUnreachable, "gitops_repo", "Repository cannot be reached", ""},
	{git.ErrHostKey, "gitops_repo", "Host key cannot be verified", ""},
	{gitops.ErrConflict, "gitops_repo", "Folder does not belong to this assignment", ""},
	{gitops.ErrOtherHolder, "name", "Another state has this assignment", " Nothing was written: plan again, which names its commit."},
	{gitops.ErrUnplanned, "gitops_repo", "Repository has changed since the plan", " Nothing was written: plan again."},
	{gitops.ErrHostNotEmpty, "gitops_repo", "Folder of a cluster type cannot move", " Nothing was written."},
	{delivery.ErrDuplicate, "name", "Two assignments have the same name", ""},
	{git.ErrRefused, "gitops_repo", "Repository refuses the commit", " Nothing was written."},
}

// OtherCredentials is the advice for a repository other than the GitOps repository.
const OtherCredentials = " Add an entry with the beginning of this URL to git.credentials of the provider: the other credentials of " +
	"git are for the GitOps repository alone."

// KindOf returns the kind of an error; one with the summary otherwise for an unknown error.
func KindOf(err error, otherwise string) Kind {
	for _, kind := range kinds {
		if errors.Is(err, kind.of) {
			return kind
		}
	}
	return Kind{err, "gitops_repo", otherwise, ""}
}

// AddError adds an error of a repository. With creates, a missing or unreachable one is only a warning: the same run may
// create it.
func AddError(ctx context.Context, diagnostics *diag.Diagnostics, err error, creates bool) {
	if timeouts.AddEnded(ctx, diagnostics, err) {
		return
	}
	kind, held := KindOf(err, "Repository cannot be used"), (*delivery.HeldError)(nil)
	at, detail := path.Root(kind.attribute), tfvalue.Sentence(err.Error())
	switch {
	case kind.attribute != "delivery" && errors.As(err, &held):
		AddProblems(diagnostics, held.Problems)
	case creates && errors.Is(kind.of, git.ErrNotFound):
		once.Warning(diagnostics, at, kind.Summary, detail+" If this run creates it, the apply succeeds; otherwise it fails.")
	case creates && errors.Is(kind.of, git.ErrUnreachable):
		once.Warning(diagnostics, at, kind.Summary, detail+" If it answers by then, the apply succeeds; otherwise it fails.")
	default:
		detail += kind.Advice
		if slices.Contains(beforeCommit, kind.of) && !errors.Is(err, git.ErrUnknown) && !errors.Is(err, delivery.ErrProposed) {
			detail += " Nothing was written."
		}
		once.Error(diagnostics, at, kind.Summary, detail)
	}
}

// beforeCommit are errors without an accepted commit, unless their text says otherwise.
var beforeCommit = []error{git.ErrKey, git.ErrUnauthorized, git.ErrNotFound, git.ErrUnreachable, git.ErrHostKey}
