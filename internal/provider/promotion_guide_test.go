package provider_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const promotionGuide = "rollouts.md.tmpl"

// TestPromotionInOneConfigurationMovesOneStagePerApply promotes without gates.
func TestTheGuideOnPromotionIsRightAboutGates(t *testing.T) {
	t.Parallel()
	guideExample(t, promotionGuide, "examples/rollouts/promotion/main.tf")
	const gate = "candidate = flotilla_assignment.dev.proven"
	testEnvironments(t, acceptanceTools(t), "rollouts/promotion", []string{"dev", "prod"}, func(t *testing.T, e *environments) {
		gateText := gate
		setGate := func(further string) {
			e.replaceText(gateText, gate+further)
			gateText = gate + further
		}
		expectWait := func(want string) string {
			t.Helper()
			waiting := fieldText(resourceChange(t, e.w.plan(), "flotilla_promotion.prod").After, "waiting_for")
			if !strings.Contains(waiting, want) {
				t.Errorf("got waiting_for %s, want %s", waiting, want)
			}
			return waiting
		}
		e.w.run("apply", "-input=false", "-auto-approve")
		e.applyUntilSettled("prod")

		// A promotion skips versions that change before they are proven.
		e.replaceText("1.8.0", "1.9.0")
		e.apply()
		e.replaceText("1.9.0", "1.9.1")
		e.applyUntilSettled("dev", "prod")
		if commits := git(t, e.url, "log", "--format=%h", "-S1.9.0", "prod"); commits != "" {
			t.Errorf("prod got the skipped version, in commits %s", commits)
		}

		// A closed gate, a hold, the soak time, a window and a missing approval keep the value.
		setGate("\n  open = false")
		e.replaceText("1.9.1", "2.0.0")
		e.applyUntilSettled("dev")
		expectWait("the gate to open")
		setGate("\n  hold = true")
		expectWait("the end of hold")
		setGate("\n  soak = \"24h\"\n  now = plantimestamp()")
		expectWait("the soak time, not before ")
		setGate("\n  now = plantimestamp()\n  windows = [{ kind = \"deny\", schedule = \"* * * * *\", duration = \"24h\" }]")
		expectWait("a window")
		setGate("\n  approval = true")
		approval := strings.TrimPrefix(expectWait("an approval: "), "an approval: ")

		// pin sets the value by hand. The plan shows it.
		setGate("\n  pin = { payments = \"1.6.0\", reports = \"2.0.0\" }")
		if plan := resourceChange(t, e.w.plan(), "flotilla_promotion.prod"); !strings.Contains(fieldText(plan.After, "promoted"), "1.6.0") ||
			!strings.Contains(fieldText(plan.After, "waiting_for"), "the end of pin") {
			t.Errorf("pinned: %v", plan.After)
		}
		if changed := e.apply(); !slices.Equal(changed, []string{"prod"}) {
			t.Errorf("the apply of a pin changes %v, want prod", changed)
		}

		// An import restores the value after a lost state.
		setGate("\n  open = false")
		e.w.run("state", "rm", "flotilla_promotion.prod")
		value, err := json.Marshal(map[string]string{"payments": "1.6.0", "reports": "2.0.0"})
		if err != nil {
			t.Fatal(err)
		}
		e.w.run("import", "-input=false", "flotilla_promotion.prod", string(value))
		if changed := e.apply(); len(changed) > 0 {
			t.Errorf("the apply after the import changes %v, want nothing", changed)
		}
		setGate("\n  approval = true\n  approvals = [" + approval + "]")
		e.applyUntilSettled("prod")
	})
}

func TestTheGuideOnPromotionPromotesFromConfigurationToConfiguration(t *testing.T) {
	t.Parallel()
	testEnvironments(t, acceptanceTools(t), "rollouts/promotion", []string{"dev", "prod"}, func(t *testing.T, dev *environments) {
		writeFile(t, filepath.Join(dev.w.path, "outputs.tf"), "output \"proven\" {\n  value = flotilla_assignment.dev.proven\n}\n")
		block := guideBlock(t, promotionGuide, "terraform_remote_state")
		configuration := map[string]string{
			"required_providers.tf": requiredProviders,
			"dev.tf": "data \"terraform_remote_state\" \"dev\" {\n  backend = \"local\"\n  config  = { path = \"" +
				filepath.ToSlash(filepath.Join(dev.w.path, "terraform.tfstate")) + "\" }\n}\n",
			"stage.tf": block,
		}
		dev.w.run("apply", "-input=false", "-auto-approve")
		dev.w.run("apply", "-input=false", "-auto-approve") // the second apply reads the evidence that proves the value
		stage := newWorkdir(t, dev.w.tool, configuration)
		stage.run("apply", "-input=false", "-auto-approve")
		plan := resourceChange(t, stage.plan(), "flotilla_promotion.stage")
		if !strings.Contains(fieldText(plan.After, "candidate"), "1.8.0") ||
			!strings.Contains(fieldText(plan.After, "waiting_for"), "the soak time, not before ") ||
			field(plan.After, "promoted") != nil {
			t.Errorf("during the soak time: %v", plan.After)
		}
		writeFile(t, filepath.Join(stage.path, "stage.tf"), strings.Replace(block, `"24h"`, `"0s"`, 1))
		if plan := resourceChange(t, stage.plan(), "flotilla_promotion.stage"); !strings.Contains(fieldText(plan.After, "promoted"), "1.8.0") {
			t.Errorf("after the soak time: %v", plan.After)
		}
	})
}
