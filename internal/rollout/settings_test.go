package rollout_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
)

func stageList(list ...map[string]any) map[string]any {
	all := make([]any, len(list))
	for i := range list {
		all[i] = list[i]
	}
	return map[string]any{"stages": all}
}

func withAttribute(object map[string]any, name string, value any) map[string]any {
	object[name] = value
	return object
}

func TestAllMistakesInSettingsAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	one := func() map[string]any { return stageList(map[string]any{"name": "canary", "percent": jsonNumber("10")}) }
	for name, test := range map[string]struct {
		value any
		want  []string
	}{
		"no object":         {"fast", []string{"must be an object, not a string"}},
		"nothing":           {map[string]any{}, []string{"stages: is required"}},
		"misspelt":          {withAttribute(one(), "on_falure", "halt"), []string{`on_falure: unknown attribute; did you mean "on_failure"?`}},
		"misspelt in stage": {stageList(map[string]any{"name": "a", "sok": "1h"}), []string{`stages["a"].sok: unknown attribute; did you mean "soak"?`}},
		"one name twice":    {stageList(map[string]any{"name": "a", "percent": jsonNumber("1")}, map[string]any{"name": "a"}), []string{`stages: has two stages with the name "a"`}},
		"no name":           {stageList(map[string]any{"percent": jsonNumber("1")}), []string{"stages[0].name: is required"}},
		"after a catch-all": {stageList(map[string]any{"name": "a"}, map[string]any{"name": "b"}), []string{`the stage "b" comes after "a", which takes all remaining hosts`}},
		"after 100 percent": {stageList(map[string]any{"name": "a", "percent": jsonNumber("100")}, map[string]any{"name": "b"}), []string{`the stage "b" comes after "a"`}},
		"no percentage":     {stageList(map[string]any{"name": "a", "percent": jsonNumber("0")}), []string{`stages["a"].percent: must be a whole number from 1 to 100, not 0`}},
		"too much":          {stageList(map[string]any{"name": "a", "ready_percent": jsonNumber("101")}), []string{`stages["a"].ready_percent: must be a whole number from 1 to 100, not 101`}},
		"a fraction":        {stageList(map[string]any{"name": "a", "percent": jsonNumber("1.5")}), []string{"must be a whole number"}},
		"a text":            {stageList(map[string]any{"name": "a", "percent": "10"}), []string{"must be a whole number, not a string"}},
		"negative":          {stageList(map[string]any{"name": "a", "max_failed": jsonNumber("-1")}), []string{"max_failed"}},
		"soak":              {stageList(map[string]any{"name": "a", "soak": "-1h"}), []string{`stages["a"].soak: "-1h" is negative`}},
		"selector":          {stageList(map[string]any{"name": "a", "cluster_selector": map[string]any{"match_lables": map[string]any{}}}), []string{`stages["a"].cluster_selector.match_lables`}},
		"on_failure":        {withAttribute(one(), "on_failure", "rollback"), []string{`did you mean "roll_back"?`}},
		"unknown":           {withAttribute(one(), "unknown", "ignore"), []string{"must be one of wait, skip"}},
		"deadline":          {withAttribute(one(), "progress_deadline", "soon"), []string{"is not a duration"}},
		"approval":          {withAttribute(one(), "approvals", []any{"app"}), []string{`approvals[0]: "app" must be <name>@<content>`}},
		"approvals":         {withAttribute(one(), "approvals", "app@1"), []string{"approvals: must be a list of strings, not a string"}},
		"a schedule":        {withAttribute(one(), "windows", []any{map[string]any{"kind": "allow", "schedule": "0 0 31 4 *", "duration": "1h"}}), []string{`windows[0].schedule: "0 0 31 4 *" names a date that does not exist`}},
		"windows of a stage": {stageList(map[string]any{"name": "a", "windows": []any{map[string]any{"kind": "allow", "shedule": "x", "duration": "0s"}}}), []string{
			`stages["a"].windows[0].shedule: unknown attribute`, `stages["a"].windows[0].schedule: is required`, `stages["a"].windows[0].duration: must be longer than 0`}},
		"a zone":           {withAttribute(one(), "windows", []any{map[string]any{"kind": "allow", "schedule": "0 0 1 * *", "duration": "1h", "time_zone": "Mars/Base"}}), []string{`windows[0].time_zone: "Mars/Base" is not a time zone`}},
		"several mistakes": {withAttribute(withAttribute(stageList(map[string]any{"name": "a", "percent": jsonNumber("0"), "soak": "x"}), "unknown", "x"), "on_failure", "x"), []string{"percent", "soak", "unknown", "on_failure"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, findings := rollout.Decode(test.value)
			if len(findings) != len(test.want) {
				t.Fatalf("got %q, want %q", findings, test.want)
			}
			for _, want := range test.want {
				if !strings.Contains(findings.Error(), want) {
					t.Errorf("%q does not contain %q", findings, want)
				}
			}
		})
	}
}

func TestMistakesInHoldsAreReported(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		value any
		want  string
	}{
		"no list":  {map[string]any{}, "must be a list of objects"},
		"misspelt": {[]any{map[string]any{"host": []any{"a"}}}, `[0].host: unknown attribute; did you mean "hosts"?`},
		"until":    {[]any{map[string]any{"until": "tomorrow"}}, `[0].until: "tomorrow" is not a time`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, _, findings := rollout.DecodeHolds(test.value); len(findings) != 1 || !strings.Contains(findings.Error(), test.want) {
				t.Errorf("got %q, want %q", findings, test.want)
			}
		})
	}
}

func TestUnknownSettingsAreNoError(t *testing.T) {
	t.Parallel()
	for _, value := range []any{
		fleet.Unknown{}, map[string]any{"stages": fleet.Unknown{}}, stageList(map[string]any{"name": fleet.Unknown{}}),
		withAttribute(stageList(), "approvals", []any{fleet.Unknown{}}),
		stageList(map[string]any{"name": "a", "windows": fleet.Unknown{}}), stageList(map[string]any{"name": "a", "windows": []any{map[string]any{"kind": "deny", "schedule": fleet.Unknown{}, "duration": "1h"}}}),
	} {
		if _, known, findings := rollout.Decode(value); known || len(findings) > 0 {
			t.Errorf("%v: got known %v, findings %q", value, known, findings)
		}
	}
	if _, known, findings := rollout.DecodeHolds(fleet.Unknown{}); known || len(findings) > 0 {
		t.Errorf("holds: got known %v, findings %q", known, findings)
	}
}

func TestNamesMissingFromTheFleetAreReported(t *testing.T) {
	t.Parallel()
	settings := &rollout.Settings{Stages: []rollout.Stage{{Name: "a", Hosts: []string{"lage"}}}, Expedite: []string{"app-cor@1"}}
	holds := []rollout.FolderHold{{Hosts: []string{"large", "smal"}, DeploymentTargets: []string{"ap-core"}}}
	hosts := map[string]*rollout.FleetHost{"large": {}, "small": {}}
	wanted := folder.Trees{"large": {"app-core": "1"}}
	settingFindings, holdFindings := rollout.CheckNames(settings, holds, hosts, wanted, folder.Trees{})
	for _, want := range []string{`stages["a"].hosts[0]: there is no host "lage"; did you mean "large"?`, `expedite[0]: there is no deployment target "app-cor"; did you mean "app-core"?`} {
		if !strings.Contains(settingFindings.Error(), want) {
			t.Errorf("%q does not contain %q", settingFindings, want)
		}
	}
	for _, want := range []string{`[0].hosts[1]: there is no host "smal"`, `[0].deployment_targets[0]: there is no deployment target "ap-core"`} {
		if !strings.Contains(holdFindings.Error(), want) {
			t.Errorf("%q does not contain %q", holdFindings, want)
		}
	}
	if len(settingFindings) != 2 || len(holdFindings) != 2 {
		t.Error(settingFindings, holdFindings)
	}
}

func TestAllSettingsAreDecoded(t *testing.T) {
	t.Parallel()
	settings, known, findings := rollout.Decode(map[string]any{
		"stages": []any{map[string]any{
			"name": "canary", "cluster_type_selector": map[string]any{"match_labels": map[string]any{"ring": "canary"}},
			"hosts": []any{"large"}, "percent": jsonNumber("10"), "max_concurrent": jsonNumber("2"), "ready_percent": jsonNumber("90"),
			"max_failed": jsonNumber("1"), "soak": "1h30m", "approval": true,
			"windows": []any{map[string]any{"kind": "deny", "schedule": "0 22 * * *", "duration": "8h"}},
		}},
		"on_failure": "roll_back", "progress_deadline": "2h", "unknown": "skip", "approvals": []any{"a@1"}, "expedite": []any{"a"},
	})
	if !known || len(findings) > 0 {
		t.Fatal(known, findings)
	}
	stage := settings.Stages[0]
	if stage.Name != "canary" || stage.ClusterTypeSelector == nil || stage.Percent != 10 || stage.MaxConcurrent != 2 ||
		stage.ReadyPercent != 90 || stage.MaxFailed != 1 || stage.Soak != 90*time.Minute || !stage.Approval || len(stage.Windows) != 1 {
		t.Errorf("%+v", stage)
	}
	if !settings.RollBack || !settings.SkipUnknown || settings.ProgressDeadline != 2*time.Hour || len(settings.Approvals) != 1 ||
		len(settings.Expedite) != 1 {
		t.Errorf("%+v", settings)
	}
}

// FuzzDecode runs steps with all accepted settings.
func FuzzDecode(f *testing.F) {
	for _, text := range []string{
		`{"stages": []}`, `{"stages": [{"name": "canary", "percent": 10, "soak": "1h"}], "on_failure": "roll_back", "failed_for": "1m"}`,
		`{"stages": [{"name": "a", "hosts": ["canary"], "windows": [{"kind": "allow", "schedule": "0 22 * * *", "duration": "6h", "time_zone": "Asia/Tokyo"}]}], "unknown": "skip"}`,
		`{"stages": [{"name": "a", "cluster_type_selector": {"match_labels": {"ring": "canary"}}, "windows": [{"kind": "deny", "schedule": "* * * * *", "duration": "1h"}]}],
		"windows": [{"kind": "allow", "schedule": "0 0 29 2 *", "duration": "1h"}], "expedite": ["app"], "approvals": ["app@1"]}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber()
		var value any
		if decoder.Decode(&value) != nil {
			return
		}
		settings, known, findings := rollout.Decode(value)
		if !known || len(findings) > 0 {
			if known && settings == nil && len(findings) == 0 {
				t.Errorf("%s gives neither settings nor findings", text)
			}
			return
		}
		s := newSite(t, nil)
		s.Settings = settings
		for range 3 {
			out, _ := s.run(t)
			checkRoundTrip(t, out.Progress)
			out.Lines()
			for _, p := range out.Progress {
				if !p.NotBefore.IsZero() && !p.NotBefore.After(s.Now) {
					t.Errorf("%s: at %s the progress has NotBefore %s", text, s.Now, p.NotBefore)
				}
			}
		}
	})
}
