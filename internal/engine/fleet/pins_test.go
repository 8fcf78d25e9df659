package fleet_test

import (
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// twoTargets has a deployment target with manifests in Git and one with a chart.
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
	branchEntry = artifact.Entry{
		Manifests: folder.Manifests{Storage: "git", Repo: "https://git.example.com/hello", Branch: "main"},
		Pin:       folder.Pin{Commit: strings.Repeat("c0", 20)},
	}
	chartEntry = artifact.Entry{
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
	value := input(t, twoTargets).(map[string]any)
	value["artifacts"] = text
	return value
}

func TestPinsReachTheirDeploymentTargets(t *testing.T) {
	decoded, findings := fleet.Decode(
		withArtifacts(t, artifact.Resolved{"hello-live": branchEntry, "hello-test": chartEntry, "hello-else": branchEntry, "gone": chartEntry}),
	)
	wantFindings(t, findings)
	value, err := decoded.Value()
	if err != nil {
		t.Fatal(err)
	}
	if model, err := decoded.Fleet.Model(); err != nil || strings.Contains(model, "c0c0") {
		t.Errorf("the model contains the pin: %s, %v", model, err)
	}
	read, _, err := value.Fleet()
	if err != nil {
		t.Fatal(err)
	}
	targets := read.Workloads[0].DeploymentTargets
	if len(targets) != 2 || targets[0].Manifests.Pin != branchEntry.Pin || targets[1].Manifests.Pin != chartEntry.Pin ||
		targets[1].Manifests.Version != "1.x" {
		t.Errorf("got deployment targets %+v", targets)
	}
	decoded, findings = fleet.Decode(withArtifacts(t, artifact.Resolved{"hello-test": chartEntry}))
	wantFindings(t, findings)
	if targets := decoded.Fleet.Workloads[0].DeploymentTargets; targets[0].Manifests.Pin != (folder.Pin{}) {
		t.Errorf("got deployment target %+v, want no pin", targets[0])
	}
}

func TestUnknownPinsLeaveTheManifestsPending(t *testing.T) {
	fleetInput := input(t, twoTargets).(map[string]any)
	fleetInput["artifacts"] = fleet.Unknown{}
	decoded, findings := fleet.Decode(fleetInput)
	wantFindings(t, findings)
	value, err := decoded.Value()
	if err != nil || len(value.Manifests) > 0 || !value.Known() || len(decoded.PendingManifests) != 2 {
		t.Errorf("manifests %v, pending %v, %v", value.Manifests, decoded.PendingManifests, err)
	}
}

func TestPinsOfOtherManifestsAreRefused(t *testing.T) {
	other := branchEntry
	other.Manifests.Branch = "release"
	_, findings := fleet.Decode(withArtifacts(t, artifact.Resolved{"hello-live": other}))
	wantFindings(t, findings, `artifacts: deployment target "hello-live": its manifests are not those that were resolved`)
	for artifacts, want := range map[any]string{
		"{}": "artifacts: ", `{"format":"9"}`: `format "9"`, "": "artifacts: ", true: "must be the text that flotilla_artifacts has as artifacts, not a bool",
	} {
		fleetInput := input(t, twoTargets).(map[string]any)
		fleetInput["artifacts"] = artifacts
		if _, findings := fleet.Decode(fleetInput); len(findings) != 1 || findings[0].Path != "artifacts" ||
			!strings.Contains(findings[0].String(), want) {
			t.Errorf("artifacts %v: got %v, want %q", artifacts, findings, want)
		}
	}
}

// A fleet keeps the pins of its base unless it has newer pins.
func TestAFleetKeepsThePinsOfItsBase(t *testing.T) {
	decoded, findings := fleet.Decode(withArtifacts(t, artifact.Resolved{"hello-live": branchEntry}))
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
	if pin := added.Fleet.Workloads[0].DeploymentTargets[0].Manifests.Pin; pin != branchEntry.Pin {
		t.Errorf("got pin %+v", pin)
	}
	newer := branchEntry
	newer.Pin.Commit = strings.Repeat("c1", 20)
	text, err := artifact.Resolved{"hello-live": newer}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	added, findings = fleet.Decode(map[string]any{"environment": "dev", "base": base, "artifacts": text})
	wantFindings(t, findings)
	if pin := added.Fleet.Workloads[0].DeploymentTargets[0].Manifests.Pin; pin != newer.Pin {
		t.Errorf("with a newer pin: got pin %+v", pin)
	}
}
