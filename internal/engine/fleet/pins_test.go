package fleet_test

import (
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// twoTargets has a deployment target with manifests in Git, and one with a chart.
const twoTargets = `
environment: dev
workspaces: [{name: team}]
workloads:
- name: hello
  workspace: team
  deployment_targets:
    live: {environment: dev, manifests: {repo: 'https://git.example.com/hello', branch: main}}
    test: {environment: dev, manifests: {storage: helm, repo: 'https://charts.example.com', chart: hello, version: 1.x}}
    else: {environment: prod, manifests: {repo: 'https://git.example.com/other'}}
`

var (
	ofBranch = artifact.Entry{
		Manifests: folder.Manifests{Storage: "git", Repo: "https://git.example.com/hello", Branch: "main"},
		Pin:       folder.Pin{Commit: strings.Repeat("c0", 20)},
	}
	ofChart = artifact.Entry{
		Manifests: folder.Manifests{Storage: "helm", Repo: "https://charts.example.com", Chart: "hello", Version: "1.x"},
		Pin:       folder.Pin{Version: "1.4.0", Digest: "sha256:" + strings.Repeat("d1", 32)},
	}
)

func withArtifacts(t *testing.T, pins artifact.Resolved) map[string]any {
	t.Helper()
	text, err := pins.Encode()
	if err != nil {
		t.Fatal(err)
	}
	of := input(t, twoTargets).(map[string]any)
	of["artifacts"] = text
	return of
}

func TestPinsReachTheDeploymentTargetsOfTheirNames(t *testing.T) {
	decoded, findings := fleet.Decode(
		withArtifacts(t, artifact.Resolved{"hello-live": ofBranch, "hello-test": ofChart, "hello-else": ofBranch, "gone": ofChart}),
	)
	wantFindings(t, findings)
	value, err := decoded.Value()
	if err != nil {
		t.Fatal(err)
	}
	if model, err := decoded.Fleet.Model(); err != nil || strings.Contains(model, "c0c0") {
		t.Errorf("the model has the pin: %s, %v", model, err)
	}
	read, _, err := value.Fleet()
	if err != nil {
		t.Fatal(err)
	}
	targets := read.Workloads[0].DeploymentTargets
	if len(targets) != 2 || targets[0].Manifests.Pin != ofBranch.Pin || targets[1].Manifests.Pin != ofChart.Pin ||
		targets[1].Manifests.Version != "1.x" {
		t.Errorf("deployment targets are %+v", targets)
	}
	decoded, findings = fleet.Decode(withArtifacts(t, artifact.Resolved{"hello-test": ofChart}))
	wantFindings(t, findings)
	if targets := decoded.Fleet.Workloads[0].DeploymentTargets; targets[0].Manifests.Pin != (folder.Pin{}) {
		t.Errorf("a deployment target without a pin is %+v", targets[0])
	}
}

func TestPinsThatAreNotKnownLeaveTheManifestsPending(t *testing.T) {
	of := input(t, twoTargets).(map[string]any)
	of["artifacts"] = fleet.Unknown{}
	decoded, findings := fleet.Decode(of)
	wantFindings(t, findings)
	value, err := decoded.Value()
	if err != nil || len(value.Manifests) > 0 || !value.Known() || len(decoded.PendingManifests) != 2 {
		t.Errorf("manifests %v, pending %v, %v", value.Manifests, decoded.PendingManifests, err)
	}
}

func TestPinsOfOtherManifestsAreRefused(t *testing.T) {
	other := ofBranch
	other.Manifests.Branch = "release"
	_, findings := fleet.Decode(withArtifacts(t, artifact.Resolved{"hello-live": other}))
	wantFindings(t, findings, `artifacts: deployment target "hello-live": its manifests are not those that were resolved`)
	for value, want := range map[any]string{
		"{}": "artifacts: ", `{"format":"9"}`: `format "9"`, "": "artifacts: ", true: "must be the text that flotilla_artifacts has as artifacts, not a bool",
	} {
		of := input(t, twoTargets).(map[string]any)
		of["artifacts"] = value
		if _, findings := fleet.Decode(of); len(findings) != 1 || findings[0].Path != "artifacts" ||
			!strings.Contains(findings[0].String(), want) {
			t.Errorf("of %v: %v, want %q", value, findings, want)
		}
	}
}

// A fleet that is added to keeps the pins of its base, and may get others.
func TestAFleetKeepsThePinsOfItsBase(t *testing.T) {
	decoded, findings := fleet.Decode(withArtifacts(t, artifact.Resolved{"hello-live": ofBranch}))
	wantFindings(t, findings)
	value, err := decoded.Value()
	if err != nil {
		t.Fatal(err)
	}
	known, err := fleet.EncodeEntries(value.Manifests)
	if err != nil {
		t.Fatal(err)
	}
	base := map[string]any{"format": value.Format, "environment": "dev", "model": value.Model,
		"config": map[string]any{"known": "{}"}, "manifests": map[string]any{"known": known}, "constraints": map[string]any{"known": "{}"}}
	added, findings := fleet.Decode(map[string]any{"environment": "dev", "base": base})
	wantFindings(t, findings)
	if pin := added.Fleet.Workloads[0].DeploymentTargets[0].Manifests.Pin; pin != ofBranch.Pin {
		t.Errorf("the pin is %+v", pin)
	}
	newer := ofBranch
	newer.Pin.Commit = strings.Repeat("c1", 20)
	text, err := artifact.Resolved{"hello-live": newer}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	added, findings = fleet.Decode(map[string]any{"environment": "dev", "base": base, "artifacts": text})
	wantFindings(t, findings)
	if pin := added.Fleet.Workloads[0].DeploymentTargets[0].Manifests.Pin; pin != newer.Pin {
		t.Errorf("the newer pin is %+v", pin)
	}
}
