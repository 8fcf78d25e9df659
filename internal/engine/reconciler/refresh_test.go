package reconciler_test

import (
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
)

// An agent can be asked, or there is a reason why not.
func TestEachAgentCanBeAskedOrSaysWhyNot(t *testing.T) {
	t.Parallel()
	for _, name := range reconciler.Agents() {
		one := reconciler.Named(name)
		if (one.Refresh == nil) == (one.NoRefresh == "") {
			t.Errorf("%s can be asked, and there is a reason why not; or neither", name)
		}
		if one.Refresh != nil && reconciler.KindNamed(one.Refresh.Kind) == nil {
			t.Errorf("%s: there is no kind %s", name, one.Refresh.Kind)
		}
	}
}
