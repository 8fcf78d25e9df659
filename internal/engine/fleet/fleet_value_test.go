package fleet_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/fleettest"
)

func TestAFleetIsReadBackFromItsValue(t *testing.T) {
	for name, input := range map[string]any{
		"everything": input(t, everything),
		"reference":  fleettest.Input(fleettest.Reference(1_000, 1)),
		"nothing":    input(t, "environment: dev"),
	} {
		t.Run(name, func(t *testing.T) {
			decoded, findings := fleet.Decode(input)
			wantFindings(t, findings)
			value, err := decoded.Value()
			if err != nil || value.Format != fleet.Format || !value.Known() {
				t.Fatalf("value of format %q, known %t: %v", value.Format, value.Known(), err)
			}
			f, config, err := value.Fleet()
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(config, decoded.Config) {
				t.Errorf("config %v, want %v", config, decoded.Config)
			}
			if got, want := targetsByName(f), targetsByName(decoded.Fleet); !reflect.DeepEqual(got, want) {
				t.Errorf("deployment targets\n%v, want\n%v", got, want)
			}
			if model(t, f) != value.Model || strings.Contains(value.Model, "manifests\":{") {
				t.Errorf("got model %s", value.Model)
			}
		})
	}
}

// explicitAssignments has assignments, which exclude the target policies of everything.
const explicitAssignments = `
environment: dev
cluster_types: [{name: drone, environment: dev}]
clusters: [{name: drone-7, environment: dev, cluster_type: drone}]
workspaces: [{name: team}]
workloads: [{name: hello, workspace: team, deployment_targets: {live: {environment: dev, manifests: {storage: helm, repo: 'https://charts.example.com', chart: hello, version: 1.2.3}}}}]
assignments: [{cluster_type: drone, deployment_target: hello-live}, {cluster: drone-7, deployment_target: hello-live}]
config_containers: [{name: platform, environment: dev, data: {}}]
`

// If no test sets a field, its errors go unnoticed. This happened with whole numbers.
func TestEveryFieldOfAFleetIsWrittenAndReadBack(t *testing.T) {
	seen := map[string]bool{}
	all, findings := fleet.Decode(input(t, everything))
	wantFindings(t, findings)
	explicit, findings := fleet.Decode(input(t, explicitAssignments))
	wantFindings(t, findings)
	controlPlane, findings := fleet.DecodeControlPlane("dev", []any{
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {platform-config: 'true'}}\ndata: {A: b}\n",
	})
	wantFindings(t, findings)
	pinned, findings := fleet.Decode(withArtifacts(t, artifact.Resolved{"hello-live": branchEntry, "hello-test": chartEntry}))
	wantFindings(t, findings)
	for _, decoded := range []*fleet.Decoded{all, explicit, controlPlane, pinned} {
		value, err := decoded.Value()
		if err != nil {
			t.Fatal(err)
		}
		read, config, err := value.Fleet()
		if err != nil {
			t.Fatalf("%s: %s", value.Model, err)
		}
		for i := range read.ConfigContainers {
			secrets, known, err := config.Secrets(&read.ConfigContainers[i])
			if err != nil || !known {
				t.Fatalf("secrets known: %t, %v", known, err)
			}
			recordFields(reflect.ValueOf(secrets), seen)
		}
		constraints, err := value.ParseConstraints()
		if err != nil {
			t.Fatal(err)
		}
		recordFields(reflect.ValueOf(read), seen)
		recordFields(reflect.ValueOf(constraints), seen)
	}
	for field, isSet := range seen {
		if !isSet {
			t.Errorf("no test sets %s", field)
		}
	}
	if len(seen) < 90 {
		t.Errorf("got only %d fields", len(seen))
	}
}

// recordFields records each field of the model with a JSON name, and whether a value sets it.
func recordFields(value reflect.Value, seen map[string]bool) {
	switch value.Kind() {
	case reflect.Pointer:
		if value.IsNil() {
			value = reflect.New(value.Type().Elem())
		}
		recordFields(value.Elem(), seen)
	case reflect.Slice:
		for i := range value.Len() {
			recordFields(value.Index(i), seen)
		}
	case reflect.Map:
		for _, key := range value.MapKeys() {
			recordFields(value.MapIndex(key), seen)
		}
	case reflect.Struct:
		for i := range value.NumField() {
			field := value.Type().Field(i)
			if tag := field.Tag.Get("json"); tag != "" && tag != "-" {
				name := value.Type().Name() + "." + field.Name
				seen[name] = seen[name] || !value.Field(i).IsZero()
			}
			recordFields(value.Field(i), seen)
		}
	}
}

func targetsByName(f *fleet.Fleet) map[string]fleet.DeploymentTarget {
	all := map[string]fleet.DeploymentTarget{}
	for _, workload := range f.Workloads {
		for _, target := range workload.DeploymentTargets {
			all[fleet.FullName(workload.Name, target.Name)] = target
		}
	}
	return all
}

func TestAnUnknownTagAffectsOnlyItsTarget(t *testing.T) {
	workloads := make([]any, 100)
	for i := range workloads {
		workloads[i] = input(
			t,
			fmt.Sprintf(
				`{name: app-%d, workspace: team, deployment_targets: {live: {environment: dev, manifests: {repo: 'https://x', tag: v1}}}}`,
				i,
			),
		)
	}
	whole := input(t, "environment: dev\nworkspaces: [{name: team}]").(map[string]any)
	whole["workloads"] = workloads
	before, findings := fleet.Decode(whole)
	wantFindings(t, findings)
	manifests := workloads[7].(map[string]any)["deployment_targets"].(map[string]any)["live"].(map[string]any)["manifests"].(map[string]any)
	manifests["tag"] = fleet.Unknown{}
	decoded, findings := fleet.Decode(whole)
	wantFindings(t, findings)

	valueBefore, err := before.Value()
	if err != nil {
		t.Fatal(err)
	}
	value, err := decoded.Value()
	if err != nil {
		t.Fatal(err)
	}
	if value.Model != valueBefore.Model || !decoded.TargetsKnown {
		t.Errorf("model %q, targets known: %t", value.Model, decoded.TargetsKnown)
	}
	if want := []string{"app-7-live"}; !slices.Equal(decoded.PendingManifests, want) || len(value.Manifests) != 99 {
		t.Errorf("pending %q, want %q; %d entries", decoded.PendingManifests, want, len(value.Manifests))
	}
	f, _, err := value.Fleet()
	if err != nil {
		t.Fatal(err)
	}
	for name, target := range targetsByName(f) {
		if pending := name == "app-7-live"; target.ManifestsPending != pending || (target.Manifests.Repo == "https://x") == pending {
			t.Errorf("%s: pending %t, manifests %v", name, target.ManifestsPending, target.Manifests)
		}
	}
}

func TestInvalidValuesOfAFleetAreErrors(t *testing.T) {
	decoded, findings := fleet.Decode(input(t, everything))
	wantFindings(t, findings)
	for name, test := range map[string]struct {
		change func(*fleet.Value)
		want   string
	}{
		"no format":      {func(v *fleet.Value) { v.Format = "" }, `was made by another version of the provider (its format is "", this version takes "1"): make it again with provider::flotilla::fleet`},
		"another format": {func(v *fleet.Value) { v.Format = "17" }, `its format is "17"`},
		"no model":       {func(v *fleet.Value) { v.Model = "" }, "fleet model does not come from provider::flotilla::fleet"},
		"more model":     {func(v *fleet.Value) { v.Model += "{}" }, "text follows it at offset"},
		"manifests":      {func(v *fleet.Value) { v.Manifests = map[string]string{"hello-live": `{"repos":1}`} }, `manifests of deployment target "hello-live" are not what`},
		"more manifests": {func(v *fleet.Value) { v.Manifests = map[string]string{"hello-live": `{}{}`} }, "text follows it at offset"},
	} {
		t.Run(name, func(t *testing.T) {
			value, err := decoded.Value()
			if err != nil {
				t.Fatal(err)
			}
			test.change(&value)
			if _, _, err := value.Fleet(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want %q", err, test.want)
			}
		})
	}
}
