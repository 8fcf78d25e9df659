package fleet_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
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
		read, findings := fleet.DecodeArtifactInput(workloads("https://git.example.com/hello"), nil, environment)
		if names := namesOf(read.Workloads); !slices.Equal(names, want) || !read.Known || len(findings) > 0 {
			t.Errorf("%q: got targets %v, known %v, findings %v", environment, names, read.Known, findings)
		}
	}
	read, findings := fleet.DecodeArtifactInput(workloads(fleet.Unknown{}), nil, "")
	if targets := read.Workloads[0].DeploymentTargets; targets[0].Manifests.Branch != "main" || !targets[1].ManifestsPending || read.Known ||
		len(findings) > 0 {
		t.Errorf("an unknown repository: got %v, findings %v", read, findings)
	}
	if read, findings = fleet.DecodeArtifactInput(fleet.Unknown{}, nil, "dev"); read.Known || len(findings) > 0 {
		t.Errorf("unknown workloads: got %v, findings %v", read, findings)
	}
	for _, wrong := range []any{"hello", []any{1}, workloads("here"), workloads(1)} {
		if _, findings := fleet.DecodeArtifactInput(wrong, nil, ""); len(findings) != 1 {
			t.Errorf("%v: got findings %v, want one", wrong, findings)
		}
	}
}

func TestSourcesOfAWorkspaceAreRead(t *testing.T) {
	t.Parallel()
	workloads := []any{map[string]any{"name": "hello", "workspace": "team", "deployment_targets": map[string]any{
		"live": map[string]any{"environment": "prod", "manifests": map[string]any{"repo": "https://git.example.com/hello", "branch": "main"}},
	}}}
	workspace := func(name string, sources any) any {
		return []any{map[string]any{"name": name, "sources": sources}}
	}
	read, findings := fleet.DecodeArtifactInput(workloads, workspace("team", []any{"https://git.example.com"}), "")
	if got := read.Sources["team"]; len(findings) > 0 || !slices.Equal(got, []string{"https://git.example.com"}) || !read.Known {
		t.Errorf("got %v, findings %v", read, findings)
	}
	if read, findings = fleet.DecodeArtifactInput(workloads, workspace("team", fleet.Unknown{}), ""); len(findings) > 0 || read.Known {
		t.Errorf("unknown sources: got %v, findings %v", read, findings)
	}
	for name, wrong := range map[string]any{
		`workloads["hello"].workspace: is "team", which is not among workspaces; did you mean "teams"?`: workspace("teams", nil),
		`workspaces["team"].sources[0]`: workspace("team", []any{"https://git.example.com/../x"}),
	} {
		if _, findings := fleet.DecodeArtifactInput(workloads, wrong, ""); len(findings) != 1 || !strings.HasPrefix(findings[0].String(), name) {
			t.Errorf("got findings %v, want %s", findings, name)
		}
	}
}
