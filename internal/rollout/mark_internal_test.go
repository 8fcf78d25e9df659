package rollout

import (
	"reflect"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout/gate"
)

// A changed mark would restart every rollout. So the mark must leave out a new attribute of a stage if it has its default.
func TestTheMarkOfStagesIsStable(t *testing.T) {
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
			t.Errorf("%+v: got the mark %s, want %s", stages, got, want)
		}
	}
	night := whole
	night.Windows = gate.Windows{{Schedule: "0 22 * * *", Duration: time.Hour}}
	base := (&Settings{Stages: []Stage{whole}}).mark()
	if (&Settings{Stages: []Stage{night}}).mark() != base {
		t.Error("windows change the mark, so changed windows would restart the rollout")
	}
	fields := reflect.ValueOf(&whole).Elem()
	for i := range fields.NumField() {
		if !fields.Field(i).CanSet() || fields.Type().Field(i).Name == "Windows" { // they select times, not hosts
			continue
		}
		changed := whole
		reflect.ValueOf(&changed).Elem().Field(i).SetZero()
		if (&Settings{Stages: []Stage{changed}}).mark() == base {
			t.Errorf("without %s the stages have the same mark", fields.Type().Field(i).Name)
		}
	}
}
