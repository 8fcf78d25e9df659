package provider

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/attributes"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
)

// location decodes gitops_repo. known is false while some of it is unknown.
func (m *assignmentModel) location(diagnostics *diag.Diagnostics) (at delivery.Location, known bool) {
	return decodeLocation(m.GitopsRepo, diagnostics)
}

// decodeLocation decodes an attribute gitops_repo. known is false while some of it is unknown.
func decodeLocation(attribute types.Dynamic, diagnostics *diag.Diagnostics) (at delivery.Location, known bool) {
	value := plain(attribute)
	repo, known, findings := fleet.DecodeGitopsRepo(value)
	if len(findings) == 0 {
		findings = checkGitopsRepo("", value)
	}
	addFindings(diagnostics, path.Root("gitops_repo"), "Invalid GitOps repository", asInner(findings))
	return delivery.Location(repo), known && len(findings) == 0
}

// asInner marks a path inside of a dynamic value, so that attributePath does not look for it in Terraform's schema.
func asInner(findings fleet.Findings) fleet.Findings {
	inner := make(fleet.Findings, len(findings))
	for i, finding := range findings {
		inner[i] = fleet.Finding{Message: finding.String()}
	}
	return inner
}

// checkGitopsRepo checks what package fleet does not: URL and branch by the rules of Git. attribute is the prefix of paths.
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

// onDestroy are the values of on_destroy.
var onDestroy = []string{"delete", "keep"}

func checkOnDestroy(value types.String, diagnostics *diag.Diagnostics) {
	if text := value.ValueString(); !value.IsNull() && !value.IsUnknown() && !slices.Contains(onDestroy, text) {
		diagnostics.AddAttributeError(path.Root("on_destroy"), "Invalid on_destroy",
			sentence(fmt.Sprintf("%q is none of %s%s", text, strings.Join(onDestroy, ", "), fleet.DidYouMean(text, onDestroy))))
	}
}

// checkCommitMessage finds a message of several lines: it is the first line of a message that has others.
func checkCommitMessage(value types.String, diagnostics *diag.Diagnostics) {
	if strings.ContainsAny(value.ValueString(), "\r\n") {
		diagnostics.AddAttributeError(path.Root("commit_message"), "Invalid commit_message",
			"The message must be one line: it is the first line of the commit message. Take out the line break.")
	}
}

// keeps says whether the folders stay when the assignment is destroyed.
func (m *assignmentModel) keeps() bool { return m.OnDestroy.ValueString() == "keep" }

func checkRollback(value types.String, diagnostics *diag.Diagnostics) {
	if value.IsNull() || value.IsUnknown() {
		return
	}
	if err := git.CheckCommit(value.ValueString()); err != nil {
		diagnostics.AddAttributeError(path.Root("rollback_to"), "Invalid commit", sentence(err.Error()))
	}
}

// readStrictly reads an attribute that is an object whose type Terraform does not check. read is called where
// there is one.
func readStrictly(attribute string, value types.Dynamic, diagnostics *diag.Diagnostics, read func(*attributes.Object)) {
	given := plain(value)
	if given == nil {
		return
	}
	reader := &attributes.Reader{}
	if object := reader.Object(nil, given); object != nil {
		read(object)
		object.Finish()
	}
	addFindings(diagnostics, path.Root(attribute), "Invalid "+attribute, asInner(reader.Findings))
}

// decodeFleet reads what provider::flotilla::fleet or control_plane returned. known is false while its
// model is not known.
func decodeFleet(attribute types.Dynamic, diagnostics *diag.Diagnostics) (value fleet.Value, known bool) {
	given := plain(attribute)
	if !isKnownNow(given) {
		return fleet.Value{}, false
	}
	object, ok := given.(map[string]any)
	_, hasModel := object["model"]
	_, hasConfig := object["config"].(map[string]any)
	if !ok || !hasModel || !hasConfig {
		diagnostics.AddAttributeError(path.Root("fleet"), "Invalid fleet",
			"This must be what provider::flotilla::fleet or provider::flotilla::control_plane returned, through a local.")
		return fleet.Value{}, false
	}
	value.Format, _ = object["format"].(string)
	value.Environment, _ = object["environment"].(string)
	value.Model, _ = object["model"].(string)
	var configUnknown bool
	value.Config, _, configUnknown = entriesIn(object["config"], diagnostics)
	value.Manifests, _, _ = entriesIn(object["manifests"], diagnostics)
	value.Constraints, _, _ = entriesIn(object["constraints"], diagnostics)
	if format := object["format"]; isKnownNow(format) {
		if err := fleet.CheckFormat(value.Format); err != nil {
			diagnostics.AddAttributeError(path.Root("fleet"), "Invalid fleet", sentence(err.Error()))
			return value, false
		}
	}
	return value, value.Known() && !configUnknown
}

// isKnownNow says whether a value itself is known. Values inside of it may not be.
func isKnownNow(value any) bool {
	_, unknown := value.(fleet.Unknown)
	return !unknown
}

// entriesIn returns the entries of one kind that are known, and the names of those that are not, sorted. all is true where
// none is known.
func entriesIn(value any, diagnostics *diag.Diagnostics) (known map[string]string, pending []string, all bool) {
	object, _ := value.(map[string]any)
	if !isKnownNow(value) || !isKnownNow(object["known"]) {
		return nil, nil, true
	}
	if text, ok := object["known"].(string); ok {
		known = knownEntries(text, diagnostics)
	}
	names, _ := object["pending"].(map[string]any)
	return known, slices.Sorted(maps.Keys(names)), false
}

// contentValue is the attribute content: a hash of all folders, with their hosts. It is unknown while the content of any
// folder is.
func contentValue(trees rollout.Trees) types.String {
	h := sha256.New()
	for _, host := range slices.Sorted(maps.Keys(trees)) {
		fmt.Fprintf(h, "%s\n", host)
		for _, target := range slices.Sorted(maps.Keys(trees[host])) {
			tree := trees[host][target]
			if tree == "" {
				return types.StringUnknown()
			}
			fmt.Fprintf(h, "%s/%s %s\n", host, target, tree)
		}
	}
	return types.StringValue(hex.EncodeToString(h.Sum(nil))[:16])
}

// repoOf is a location in the form that templates get; nil while it is not known.
func repoOf(at delivery.Location, known bool) *render.Repo {
	if !known {
		return nil
	}
	return &render.Repo{URL: at.URL, Branch: at.Branch, Path: at.Path}
}
