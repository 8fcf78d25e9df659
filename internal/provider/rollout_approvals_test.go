package provider_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

const unwantedApproval = "is for content that is not wanted any more; remove the approval"

// newApprovalRings returns rings whose second stage needs an approval.
func newApprovalRings(t *testing.T) *rings {
	r := newRings(t)
	r.setApprovals()
	return r
}

func (r *rings) setApprovals(approvals ...any) {
	r.rollout = ringRollout(map[string]any{"approvals": approvals})
	r.rollout["stages"].([]any)[1].(map[string]any)["approval"] = true
}

// applyUntilApproval applies a version up to the second stage and returns the approval that the plan prints.
func (r *rings) applyUntilApproval(version, before, after string) string {
	r.t.Helper()
	r.applyVersion(version, before)
	r.report("canary", verdict.Ready)
	_, text, _ := strings.Cut(rolloutText(r.applyVersion(version, after)), `waits for an approval: "`)
	approval, _, ok := strings.Cut(text, `"`)
	if !ok {
		r.t.Fatal("the plan prints no approval")
	}
	return approval
}

func TestAnApprovalWithoutARolloutIsAWarning(t *testing.T) {
	t.Parallel()
	r := newApprovalRings(t)
	if plan := r.applyVersion("1", "1 1 1"); assignmentAfter(plan)["rolled_out"] != true {
		t.Fatalf("a rollout is under way: %s", rolloutText(plan))
	}
	for _, approval := range []string{"app-core@0123456789", "app-cor@0123456789"} {
		r.setApprovals(approval)
		_, diags := r.w.Plan(t.Context(), r.configuration("1"))
		if diags.Err() != nil || !diags.Has("Rollout may not do what you expect") ||
			!strings.Contains(diags.String(), fmt.Sprintf("Approval %q", approval)) {
			t.Errorf("%s: the plan says %v", approval, diags)
		}
	}
}

func TestTheApplyUsesAnApprovalOfUnknownContent(t *testing.T) {
	t.Parallel()
	for name, version := range map[string]string{"without a rollout": "1", "during a rollout": "3"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newApprovalRings(t)
			approval := r.applyUntilApproval("2", "2 1 1", "2 1 1")
			r.report("canary", verdict.Ready)
			if version == "1" {
				r.applyVersion("1", "1 1 1")
			} else {
				r.applyVersion("3", "3 1 1")
			}
			r.setApprovals(approval)
			configuration := r.configuration(version)
			fleet := configuration.Resources[assignment].Attributes["fleet"].(providertest.Call).Arguments[0].(map[string]any)
			fleet["config_containers"] = []any{map[string]any{"name": "all", "data": map[string]any{"VERSION": providertest.Unknown{Then: "2"}}}}
			_, diags := r.w.Plan(t.Context(), configuration)
			if diags.Err() != nil || strings.Contains(diags.String(), unwantedApproval) {
				t.Errorf("the plan says %v", diags)
			}
			apply(t, r.w, configuration)
			r.report("canary", verdict.Ready)
			r.applyVersion("2", "2 2 1")
		})
	}
}
