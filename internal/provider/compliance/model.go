package compliance

import (
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/compliance"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/wording"
)

// The collections have objects and not nested attributes, since mocks in Terraform's tests support only objects.
var (
	complianceClusterTypes = map[string]attr.Type{
		"cluster_type": types.StringType, "verdict": types.StringType, "commit": types.StringType, "commits_behind": types.Int64Type,
		"behind_since": types.StringType, "since": types.StringType, "message": types.StringType,
	}
	complianceAssignmentTypes = map[string]attr.Type{
		"verdict": types.StringType, "since": types.StringType, "message": types.StringType,
		"clusters": types.ListType{ElemType: types.StringType},
	}
	complianceDriftTypes = map[string]attr.Type{
		"assignment": types.StringType, "wanted": types.BoolType, "git": types.StringType, "deployed": types.StringType,
		"clusters": types.ListType{ElemType: types.StringType}, "objects": types.ListType{ElemType: types.StringType},
		"reason": types.StringType,
	}
)

type complianceModel struct {
	Name        types.String                         `tfsdk:"name"`
	Fleet       complianceFleetModel                 `tfsdk:"fleet"`
	GitopsRepo  types.Dynamic                        `tfsdk:"gitops_repo"`
	Feedback    types.Dynamic                        `tfsdk:"feedback"`
	Wait        types.Dynamic                        `tfsdk:"wait"`
	Timeouts    types.Dynamic                        `tfsdk:"timeouts"`
	Time        types.String                         `tfsdk:"time"`
	Summary     *complianceSummaryModel              `tfsdk:"summary"`
	Clusters    map[string]complianceClusterModel    `tfsdk:"clusters"`
	Assignments map[string]complianceAssignmentModel `tfsdk:"assignments"`
	Drift       []complianceDriftModel               `tfsdk:"drift"`
	Evidence    types.String                         `tfsdk:"evidence"`
}

type complianceFleetModel struct {
	Format      types.String `tfsdk:"format"`
	Environment types.String `tfsdk:"environment"`
	Model       types.String `tfsdk:"model"`
}

type complianceSummaryModel struct {
	Clusters     int64   `tfsdk:"clusters"`
	Ready        int64   `tfsdk:"ready"`
	Progressing  int64   `tfsdk:"progressing"`
	Failed       int64   `tfsdk:"failed"`
	Behind       int64   `tfsdk:"behind"`
	Unknown      int64   `tfsdk:"unknown"`
	ReadyPercent int64   `tfsdk:"ready_percent"`
	BehindSince  *string `tfsdk:"behind_since"`
}

type complianceClusterModel struct {
	ClusterType   string  `tfsdk:"cluster_type"`
	Verdict       string  `tfsdk:"verdict"`
	Commit        *string `tfsdk:"commit"`
	CommitsBehind *int64  `tfsdk:"commits_behind"`
	BehindSince   *string `tfsdk:"behind_since"`
	Since         string  `tfsdk:"since"`
	Message       string  `tfsdk:"message"`
}

type complianceAssignmentModel struct {
	Verdict  string   `tfsdk:"verdict"`
	Since    string   `tfsdk:"since"`
	Message  string   `tfsdk:"message"`
	Clusters []string `tfsdk:"clusters"`
}

type complianceDriftModel struct {
	Assignment *string  `tfsdk:"assignment"`
	Wanted     bool     `tfsdk:"wanted"`
	Git        *string  `tfsdk:"git"`
	Deployed   *string  `tfsdk:"deployed"`
	Clusters   []string `tfsdk:"clusters"`
	Objects    []string `tfsdk:"objects"`
	Reason     string   `tfsdk:"reason"`
}

// set sets the computed attributes.
func (m *complianceModel) set(answer *compliance.Answer, scheduled *schedule.Result) {
	result := answer.Result
	m.Fleet.Model = types.StringValue(tfvalue.Hash(m.Fleet.Model.ValueString()))
	m.Time = types.StringValue(tfvalue.TimeText(result.Time))
	m.Evidence = types.StringValue(string(result.Evidence().Marshal()))
	summary := result.Summary()
	m.Summary = &complianceSummaryModel{
		Clusters: int64(summary.Clusters), Ready: int64(summary.ByVerdict[verdict.Ready]), Progressing: int64(summary.ByVerdict[verdict.Progressing]),
		Failed: int64(summary.ByVerdict[verdict.Failed]), Behind: int64(summary.ByVerdict[verdict.Behind]),
		Unknown: int64(summary.ByVerdict[verdict.Unknown]), ReadyPercent: int64(summary.ReadyPercent), BehindSince: wording.OrNil(tfvalue.TimeText(summary.BehindSince)),
	}
	m.Clusters = make(map[string]complianceClusterModel, len(result.Clusters))
	for i := range result.Clusters {
		c := &result.Clusters[i]
		is := complianceClusterModel{
			ClusterType: c.Type, Verdict: string(c.Verdict), Commit: wording.OrNil(c.Commit), Since: tfvalue.TimeText(c.Since), Message: c.Message,
			BehindSince: wording.OrNil(tfvalue.TimeText(c.BehindSince)),
		}
		if behind := int64(c.Behind); behind >= 0 {
			is.CommitsBehind = &behind
		}
		if c.Verdict == verdict.Ready && c.Message == "" {
			is.Message = fmt.Sprintf("%s ready", wording.Count(len(c.Assignments), "assignment is", "assignments are"))
		}
		m.Clusters[c.Name] = is
	}
	m.Assignments = map[string]complianceAssignmentModel{}
	for key, trouble := range result.Troubles() {
		m.Assignments[key] = complianceAssignmentModel{string(trouble.Verdict), tfvalue.TimeText(trouble.Since), trouble.Message, trouble.Clusters}
	}
	wanted := make(map[string]bool, len(scheduled.Assignments))
	for _, assignment := range scheduled.Assignments {
		wanted[assignment.Key()] = true
	}
	m.Drift = []complianceDriftModel{}
	for _, d := range result.Drift(wanted) {
		m.Drift = append(m.Drift, complianceDriftModel{
			Assignment: wording.OrNil(d.Assignment), Wanted: d.Wanted, Git: wording.OrNil(d.Git), Deployed: wording.OrNil(d.Deployed),
			Clusters: tfvalue.OrEmpty(d.Clusters), Objects: tfvalue.OrEmpty(d.Objects), Reason: d.Reason,
		})
	}
}
