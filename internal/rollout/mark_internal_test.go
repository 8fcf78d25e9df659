package rollout

import (
	"reflect"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout/gate"
)

// A mark that changes would start every rollout again: what a later version of the provider knows of a stage must be
// left out where it has its default.
func TestTheMarkOfStagesStaysWhatItIs(t *testing.T) {
	t.Parallel()
	whole := Stage{
		Name: "canary", ClusterTypeSelector: &fleet.Selector{MatchLabels: map[string]string{"ring": "canary"}}, ClusterSelector: &fleet.Selector{},
		Hosts: []string{"large"}, Percent: 10, MaxConcurrent: 2, ReadyPercent: 90, MaxFailed: 1, Soak: time.Hour, Approval: true,
	}
	for want, stages := range map[string][]Stage{
		"97cccb1b11": nil,
		"31b4f29e31": {{Name: "canary", ReadyPercent: 100}},
		"61313892a4": {whole},
		"8839242609": {{Name: "canary", ClusterSelector: &fleet.Selector{MatchExpressions: []fleet.Expression{{Key: "ring", Operator: "Exists"}}}}},
	} {
		if got := (&Settings{Stages: stages}).mark(); got != want {
			t.Errorf("%+v has the mark %s, not %s", stages, got, want)
		}
	}
	night := whole
	night.Windows = gate.Windows{{Schedule: "0 22 * * *", Duration: time.Hour}}
	base := (&Settings{Stages: []Stage{whole}}).mark()
	if (&Settings{Stages: []Stage{night}}).mark() != base {
		t.Error("windows make another stage, so that a change of them starts the rollout again")
	}
	of := reflect.ValueOf(&whole).Elem()
	for i := range of.NumField() {
		if !of.Field(i).CanSet() || of.Type().Field(i).Name == "Windows" { // they say when, and not who
			continue
		}
		changed := whole
		reflect.ValueOf(&changed).Elem().Field(i).SetZero()
		if (&Settings{Stages: []Stage{changed}}).mark() == base {
			t.Errorf("without %s the stages have the same mark", of.Type().Field(i).Name)
		}
	}
}
