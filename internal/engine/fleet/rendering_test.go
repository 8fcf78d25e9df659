package fleet_test

import (
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

func TestMistakesOfRenderingAreFindings(t *testing.T) {
	t.Parallel()
	const typePrefix, targetPrefix = `cluster_types["a"].`, `workloads["w"].deployment_targets["live"].`
	for attributes, want := range map[string][]string{
		"render: preview":                         nil,
		"render: objects":                         nil,
		"render: (known after apply)":             nil,
		"render: previews":                        {typePrefix + `render: must be one of pointers, preview, objects, not "previews"; did you mean "preview"?`},
		"kubernetes_version: '1.34'":              nil,
		"kubernetes_version: v1.34.2":             nil,
		"kubernetes_version: v1.34.2+k3s1":        nil,
		"kubernetes_version: v1.34.2-eks-a1b2c3d": nil,
		"kubernetes_version: '1.34+k3s1'":         {typePrefix + `kubernetes_version: "1.34+k3s1" is not a version of Kubernetes`},
		"kubernetes_version: 1.34":                {typePrefix + `kubernetes_version: in quotes`},
		"kubernetes_version: '1'":                 {typePrefix + `kubernetes_version: "1" is not a version of Kubernetes: write "1.34" or "v1.34.2"`},
		"kubernetes_version: latest":              {typePrefix + `kubernetes_version: "latest" is not a version of Kubernetes`},
		"api_versions: [v1, example.com/v1/Some]": nil,
		"api_versions: [example.com]":             {typePrefix + `api_versions[0]: "example.com" is not an API version`},
		"api_versions: [example.com/v1/some]":     {typePrefix + `api_versions[0]: "example.com/v1/some" is not an API version`},
	} {
		_, findings := fleet.Decode(input(t, "{environment: dev, cluster_types: [{name: a, environment: dev, "+attributes+"}]}"))
		wantFindings(t, findings, want...)
	}
	_, findings := fleet.Decode(input(t, "{environment: dev, workspaces: [{name: team, least_render: objects}]}"))
	wantFindings(t, findings, `workspaces["team"].least_render: must be one of pointers, preview, not "objects"`)
	const before, after = "{environment: dev, workspaces: [{name: team}], workloads: [{name: w, workspace: team, deployment_targets: {live: {environment: dev, manifests: {repo: 'https://x'}, render: ", "}}}]}"
	_, findings = fleet.Decode(input(t, before+"all"+after))
	wantFindings(t, findings, targetPrefix+`render: must be one of pointers, preview, objects, not "all"`)
	decoded, findings := fleet.Decode(input(t, before+unknown+after))
	wantFindings(t, findings)
	if len(decoded.PendingManifests) != 1 || !decoded.Known {
		t.Errorf("an unknown rendering: got known %v, pending %q", decoded.Known, decoded.PendingManifests)
	}
}

// A deployment target may have a stronger rendering than its cluster type. Its workspace may permit a weaker rendering.
func TestOnlyAWorkspacePermitsAWeakerRendering(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		clusterType, target, least string
		isWrong                    bool
	}{
		{"", "", "", false},
		{"", "pointers", "", false},
		{"", "objects", "", false},
		{"preview", "", "", false},
		{"preview", "objects", "", false},
		{"preview", "preview", "", false},
		{"preview", "pointers", "", true},
		{"preview", "pointers", "preview", true},
		{"preview", "pointers", "pointers", false},
		{"objects", "preview", "", true},
		{"objects", "preview", "preview", false},
		{"objects", "pointers", "preview", true},
		{"objects", "pointers", "pointers", false},
		{"", "pointers", "preview", false},
	} {
		target := &fleet.DeploymentTarget{Manifests: fleet.Manifests{Render: test.target}}
		got := fleet.WeakensRendering(&fleet.ClusterType{Render: test.clusterType}, target, &fleet.Workspace{LeastRender: test.least})
		if got != test.isWrong {
			t.Errorf("%+v: got %t", test, got)
		}
	}
}

func TestTheRenderingOfADeploymentTargetWins(t *testing.T) {
	t.Parallel()
	for _, test := range [][3]string{
		{"", "", "pointers"}, {"preview", "", "preview"}, {"preview", "pointers", "pointers"}, {"", "preview", "preview"},
	} {
		target := &fleet.DeploymentTarget{Manifests: fleet.Manifests{Render: test[1]}}
		if got := fleet.RenderingOf(&fleet.ClusterType{Render: test[0]}, target); got != test[2] {
			t.Errorf("cluster type %q, deployment target %q: got %q, want %q", test[0], test[1], got, test[2])
		}
	}
}
