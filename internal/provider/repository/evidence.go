package repository

import (
	"context"
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/evidence"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/table"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/overview"
)

// GivenEvidence is the attribute evidence of a rollout: one document, or a list of them.
type GivenEvidence struct {
	evidence.List
	// At has the paths of the documents.
	At []path.Path
	// Known reports that the whole attribute is known and valid. Otherwise the list is empty.
	Known bool
}

// DecodeEvidence reads the attribute. It reports errors at their elements.
func DecodeEvidence(value types.Dynamic, diagnostics *diag.Diagnostics) GivenEvidence {
	attribute := path.Root("evidence")
	plain := tfvalue.Plain(value)
	given := GivenEvidence{Known: fleet.IsKnown(plain)}
	texts, isList := plain.([]any)
	if !isList {
		texts = []any{plain}
	}
	for i, text := range texts {
		at, name := attribute, ""
		if isList {
			at, name = attribute.AtListIndex(i), fmt.Sprintf("evidence[%d]: ", i)
		}
		switch text := text.(type) {
		case nil, fleet.Unknown:
		case string:
			document, err := evidence.ParseDocument([]byte(text))
			if err != nil {
				given.Known = false
				diagnostics.AddAttributeError(at, "Invalid evidence", tfvalue.Sentence(name+err.Error()))
				continue
			}
			given.List, given.At = append(given.List, document), append(given.At, at)
		default:
			given.Known = false
			diagnostics.AddAttributeError(at, "Invalid evidence", tfvalue.Sentence(name+
				"the evidence is a text, as data.flotilla_compliance.….evidence, or a list of such texts"))
		}
	}
	if !given.Known {
		given.List, given.At = nil, nil
	}
	return given
}

// CheckFleet refuses evidence of another fleet: measurements of another environment, and documents whose clusters are all
// unknown to the fleet. Documents with facts count together, as each may have other clusters.
func (g GivenEvidence) CheckFleet(of *fleet.Fleet, diagnostics *diag.Diagnostics) {
	var facts path.Path
	know, known := false, len(of.Clusters) == 0
	for i, d := range g.List {
		switch {
		case d.Measurements != nil && d.Measurements.Environment != of.Environment:
			tfvalue.AddErrorf(diagnostics, g.At[i], "Evidence of another environment",
				"The measurements are of environment %q, and this fleet is of %q. Set evidence to that of a flotilla_measurements of the same fleet.",
				d.Measurements.Environment, of.Environment)
		case d.Compliance != nil:
			CheckClusters(d.Compliance, of, g.At[i], diagnostics)
		case d.Facts != nil:
			if !know {
				facts = g.At[i]
			}
			know = know || len(d.Facts.Clusters) > 0
			known = known || slices.ContainsFunc(of.Clusters, func(cluster fleet.Cluster) bool {
				_, ok := d.Facts.Clusters[cluster.Name]
				return ok
			})
		}
	}
	if know && !known {
		diagnostics.AddAttributeError(facts, "Evidence of another fleet",
			"None of the clusters in the facts is a cluster of this fleet: a cluster has the same name in the fleet and in the provider's "+
				"clusters, or on the hub, that flotilla_cluster_facts asks.")
	}
}

// CheckAbout refuses evidence of another assignment than the owner or, unless nil, than the owner before.
func CheckAbout(evidence *observe.Evidence, owner delivery.Owner, before *delivery.Owner, at path.Path, diagnostics *diag.Diagnostics) {
	is := about(owner)
	if evidence == nil || evidence.About == is {
		return
	}
	if before != nil {
		was := about(*before)
		was.Environment = is.Environment
		if evidence.About == was ||
			evidence.About == (observe.About{Owner: was.Owner, Environment: is.Environment, Branch: is.Branch, Path: is.Path}) {
			return
		}
	}
	tfvalue.AddErrorf(diagnostics, at, "Evidence of another assignment",
		"The evidence is about %s. This is %s. Set evidence to that of a flotilla_compliance with the same name, fleet and gitops_repo.",
		evidence.About, is)
}

func about(owner delivery.Owner) observe.About {
	return observe.About{Owner: owner.Name, Environment: owner.Environment, Branch: owner.Location.Branch, Path: owner.Location.Path}
}

// CheckClusters refuses evidence whose clusters are all unknown to the fleet.
func CheckClusters(evidence *observe.Evidence, of *fleet.Fleet, at path.Path, diagnostics *diag.Diagnostics) {
	known := slices.ContainsFunc(of.Clusters, func(cluster fleet.Cluster) bool {
		_, ok := evidence.Clusters[cluster.Name]
		return ok
	})
	if len(evidence.Clusters) > 0 && len(of.Clusters) > 0 && !known {
		diagnostics.AddAttributeError(at, "Evidence of another fleet",
			"None of the clusters in the evidence is a cluster of this fleet: set evidence to that of a flotilla_compliance with the same fleet.")
	}
}

// CheckTip refuses evidence gathered at a commit that the branch lacks: it belongs to another repository.
func CheckTip(found gitops.ReportedCommit, branch string, at path.Path, diagnostics *diag.Diagnostics) bool {
	if found.ID == "" {
		tfvalue.AddErrorf(diagnostics, at, "Evidence of another repository",
			"The evidence was gathered at a commit that branch %q of this repository does not have: %s. Set evidence to that of a "+
				"flotilla_compliance with the same gitops_repo, or read it again if the branch was rewritten.", branch, found.Reason)
	}
	return found.ID != ""
}

const evidencesName = "evidences"

// EvidencesAttribute is an attribute with the evidence of several owners.
func EvidencesAttribute(what string) schema.ListAttribute {
	return schemas.OptionalTexts(what + ": `evidence` of a `flotilla_compliance` for each owner, in any order, such as from the outputs " +
		"of other states. Null stands for none yet. Evidence of an owner without records on the branch is a warning. The state keeps their " +
		"hashes.")
}

// OwnersAt reads all owners at a location and below it, with their evidence; nil after an error.
func OwnersAt(
	ctx context.Context, client *delivery.Service, at folder.Location, evidences types.List, diagnostics *diag.Diagnostics,
) []overview.Owned {
	given := decodeEvidences(evidences, at.Branch, diagnostics)
	if diagnostics.HasError() {
		return nil
	}
	var all []*observe.Evidence
	for _, e := range given {
		if e != nil {
			all = append(all, e)
		}
	}
	owned, err := overview.LookAtOwners(ctx, client, at, all)
	if err != nil {
		AddError(ctx, diagnostics, err, false)
		return nil
	}
	of := map[*observe.Evidence]*overview.Owned{}
	for i := range owned {
		of[owned[i].Evidence] = &owned[i]
	}
	for i, e := range given {
		if e == nil {
			continue
		}
		element, owner := path.Root(evidencesName).AtListIndex(i), of[e]
		switch {
		case owner == nil:
			tfvalue.AddWarningf(diagnostics, element, "Evidence of an unknown owner",
				"The evidence is about %s, which has nothing there.", e.About)
		case e.About.Environment != owner.Owner.Environment && owner.Owner.Environment != "":
			tfvalue.AddErrorf(diagnostics, element, "Evidence of another environment",
				"The evidence is about %s. The branch has this assignment in environment %q.", e.About, owner.Owner.Environment)
		case len(e.Clusters) > 0 && e.Tip != "":
			CheckTip(owner.Seen.Past[e.Tip], at.Branch, element, diagnostics)
		}
	}
	if diagnostics.HasError() {
		return nil
	}
	return owned
}

func decodeEvidences(evidences types.List, branch string, diagnostics *diag.Diagnostics) []*observe.Evidence {
	given := make([]*observe.Evidence, len(evidences.Elements()))
	first := map[observe.About]int{}
	for i, element := range evidences.Elements() {
		text, _ := element.(types.String)
		if text.IsNull() {
			continue
		}
		at := path.Root(evidencesName).AtListIndex(i)
		parsed, err := evidence.ParseCompliance([]byte(text.ValueString()))
		if err != nil {
			diagnostics.AddAttributeError(at, "Invalid evidence", tfvalue.Sentence(err.Error()))
			continue
		}
		about := parsed.About
		about.Environment = "" // each owner has one document
		if before, twice := first[about]; twice {
			tfvalue.AddErrorf(diagnostics, at, "Evidence is given twice", "It is about %s, as that at index %d.", parsed.About, before)
		} else if about.Branch != branch {
			tfvalue.AddErrorf(diagnostics, at, "Evidence of another branch", "It is about %s. This is branch %q.", parsed.About, branch)
		}
		first[about], given[i] = i, parsed
	}
	return given
}

// HashedEvidences returns the hashes of evidence for the state.
func HashedEvidences(evidences types.List) types.List {
	if evidences.IsNull() {
		return evidences
	}
	hashes := make([]attr.Value, len(evidences.Elements()))
	for i, element := range evidences.Elements() {
		if hashes[i] = element; !element.IsNull() {
			hashes[i] = types.StringValue(tfvalue.Hash(element.(types.String).ValueString()))
		}
	}
	return types.ListValueMust(types.StringType, hashes)
}

const (
	stateMeaning = "`waiting`, or, if it halts: `failed`, `stuck` (clusters were not ready in time) or `rolled_back`."
	waitMeaning  = "the condition that has to be met first: `newer_content`, `approval`, `requirements`, `pull_request`, `window`, " +
		"`clusters` (to be ready), `soak` (only time counts), `stages` (before) or `hold`."
	approvalMeaning = "`<deployment target>@<content>`, which `approvals` takes; null without a rollout."
)

// Summary describes a summary of one deployment target.
var Summary = table.Definition[rollout.Summary]{
	table.Text("summary",
		"stage, hosts, since when, and the condition that it waits for, in words.", func(s rollout.Summary) string { return s.Text }),
	table.Text("state", stateMeaning, func(s rollout.Summary) string { return string(s.Condition) }),
	table.Text("waits_for", waitMeaning, func(s rollout.Summary) string { return string(s.WaitsFor) }),
	table.TextOrNull("approval", approvalMeaning, func(s rollout.Summary) string { return s.Approval }),
}

// RollingOut describes the objects of rolling_out.
var RollingOut = append(slices.Clone(Summary),
	table.Number("others", "number of further deployment targets that the summary includes.", func(s rollout.Summary) int { return s.Others }))

// Rollouts describes the objects of rollouts.
var Rollouts = table.Definition[rollout.Progress]{
	table.Text("summary", "all of it in words.", rollout.Progress.Text),
	table.Text("state", stateMeaning, func(p rollout.Progress) string { return string(p.Condition) }),
	table.Text("waits_for", waitMeaning, func(p rollout.Progress) string { return string(p.WaitsFor) }),
	table.TextOrNull("approval", approvalMeaning, rollout.Progress.Approval),
	table.Number("stage", "number of its stage among the stages with hosts of the change; 0 without a rollout.",
		func(p rollout.Progress) int { return p.Stage }),
	table.Number("stages", "number of stages that have hosts of the change.", func(p rollout.Progress) int { return p.Stages }),
	table.TextOrNull("stage_name", "name of its stage; null for the stage of the hosts that no stage names.",
		func(p rollout.Progress) string { return p.StageName }),
	table.Bool("removes", "whether the stage removes folders: `stage` and `stages` then count those stages.",
		func(p rollout.Progress) *bool { return &p.Removes }),
	table.Number("hosts_done", "number of hosts that are as wanted.", func(p rollout.Progress) int { return p.HostsDone }),
	table.Number("hosts", "number of hosts that the change reaches.", func(p rollout.Progress) int { return p.Hosts }),
	table.TextOrNull("since", "time when it entered its stage.", func(p rollout.Progress) string { return tfvalue.TimeText(p.Since) }),
}

// DecodeProgress reads the attribute progress, ordered by deployment target.
func DecodeProgress(value types.String, diagnostics *diag.Diagnostics) []rollout.Progress {
	if value.IsNull() || value.IsUnknown() {
		return nil
	}
	all, err := rollout.ParseProgress(value.ValueString())
	if err != nil {
		diagnostics.AddAttributeError(path.Root("progress"), "Invalid progress",
			tfvalue.Sentence(err.Error())+" Set it to progress of the assignment.")
	}
	return all
}

// Source is the commit of the Terraform configuration that caused a change.
var Source = table.Definition[folder.Source]{
	table.Text("url", "URL of the repository that has the configuration of Terraform.", folder.Source.URL),
	table.Text("commit", "Full id of the commit there.", folder.Source.Commit),
}

// Manifests locates the manifests of a deployment target.
var Manifests = table.Definition[*folder.Manifests]{
	table.Text("storage", "`git`, `helm` or `oci`.", func(m *folder.Manifests) string { return m.Storage }),
	table.Text("repo", "URL of the repository.", func(m *folder.Manifests) string { return m.Repo }),
	table.TextOrNull("branch", "The branch.", func(m *folder.Manifests) string { return m.Branch }),
	table.TextOrNull("tag", "The tag.", func(m *folder.Manifests) string { return m.Tag }),
	table.TextOrNull("commit", "The commit.", func(m *folder.Manifests) string { return m.Commit }),
	table.TextOrNull("path", "Path in the repository or artifact.", func(m *folder.Manifests) string { return m.Path }),
	table.TextOrNull("chart", "Name of the chart.", func(m *folder.Manifests) string { return m.Chart }),
	table.TextOrNull("version", "Version of the chart or artifact.", func(m *folder.Manifests) string { return m.Version }),
	table.TextOrNull("digest", "Digest of the artifact.", func(m *folder.Manifests) string { return m.Digest }),
	table.ObjectOrNull("pin", "The pin that they were resolved to, by `artifacts` of the fleet; null where they are not pinned.", pin,
		func(m *folder.Manifests) folder.Pin { return m.Pin }),
}

var pin = table.Definition[folder.Pin]{
	table.TextOrNull("commit", "The commit, of Git.", func(p folder.Pin) string { return p.Commit }),
	table.TextOrNull("version", "The exact version of the chart or artifact, or its tag.", func(p folder.Pin) string { return p.Version }),
	table.TextOrNull("digest", "Digest of the artifact, or of the chart's archive.", func(p folder.Pin) string { return p.Digest }),
}
