package reconciler_test

import (
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
)

func TestEachAgentHasARefreshOrAReason(t *testing.T) {
	t.Parallel()
	for _, name := range reconciler.Agents() {
		agent := reconciler.Named(name)
		if (agent.Refresh == nil) == (agent.NoRefresh == "") {
			t.Errorf("%s must have either Refresh or NoRefresh", name)
		}
		if agent.Refresh != nil && reconciler.KindNamed(agent.Refresh.Kind) == nil {
			t.Errorf("%s: there is no kind %s", name, agent.Refresh.Kind)
		}
	}
}
