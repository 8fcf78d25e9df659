package repository

import (
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/provider/table"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

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
