package provider_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
)

func TestARefusedPushLeavesTheStateUnchanged(t *testing.T) {
	t.Parallel()
	repo := bareRepository(t)
	hook := filepath.Join(repo.url, "hooks", "pre-receive")
	testSteps(t, resource.TestCase{
		Steps: []resource.TestStep{
			{Config: small{}.config(repo)},
			{
				PreConfig: func() {
					if err := os.MkdirAll(filepath.Dir(hook), 0o755); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(hook, []byte("#!/bin/sh\necho 'main is frozen until Monday' >&2\nexit 1\n"), 0o755); err != nil {
						t.Fatal(err)
					}
				},
				Config:      small{database: `"mysql://two"`}.config(repo),
				ExpectError: words("frozen until Monday"),
			},
			// Neither the state nor the branch has changed.
			{Config: small{}.config(repo), PlanOnly: true},
			{
				PreConfig: func() {
					if err := os.Remove(hook); err != nil {
						t.Fatal(err)
					}
				},
				Config: small{database: `"mysql://two"`}.config(repo), ConfigPlanChecks: emptyPlan,
			},
		},
	})
	if got := repo.commits(t, "dev"); got != 3 { // with the destroy
		t.Errorf("got %d commits, want 3", got)
	}
}
