package fleet_test

import (
	"slices"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
)

func namesOf(workloads []fleet.Workload) (names []string) {
	for _, workload := range workloads {
		for _, target := range workload.DeploymentTargets {
			names = append(names, fleet.FullName(workload.Name, target.Name))
		}
	}
	return names
}

func TestWorkloadsAreReadByEnvironment(t *testing.T) {
	t.Parallel()
	target := func(environment string, repo any) map[string]any {
		return map[string]any{"environment": environment, "manifests": map[string]any{"repo": repo, "branch": "main"}}
	}
	workloads := func(repo any) any {
		return []any{map[string]any{"name": "hello", "workspace": "team", "deployment_targets": map[string]any{
			"live": target("prod", "https://git.example.com/hello"), "test": target("dev", repo),
		}}}
	}
	for environment, want := range map[string][]string{"": {"hello-live", "hello-test"}, "dev": {"hello-test"}, "stage": nil} {
		decoded, known, findings := fleet.DecodeWorkloads(workloads("https://git.example.com/hello"), environment)
		if names := namesOf(decoded); !slices.Equal(names, want) || !known || len(findings) > 0 {
			t.Errorf("%q: %v, %v, %v", environment, names, known, findings)
		}
	}
	decoded, known, findings := fleet.DecodeWorkloads(workloads(fleet.Unknown{}), "")
	if targets := decoded[0].DeploymentTargets; targets[0].Manifests.Branch != "main" || !targets[1].ManifestsPending || known || len(findings) > 0 {
		t.Errorf("with an unknown: %v, %v, %v", decoded, known, findings)
	}
	if _, known, findings = fleet.DecodeWorkloads(fleet.Unknown{}, "dev"); known || len(findings) > 0 {
		t.Errorf("unknown: %v, %v", known, findings)
	}
	for _, wrong := range []any{"hello", []any{1}, workloads("here"), workloads(1)} {
		if _, _, findings := fleet.DecodeWorkloads(wrong, ""); len(findings) != 1 {
			t.Errorf("%v: %v", wrong, findings)
		}
	}
}
