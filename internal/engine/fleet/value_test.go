package fleet_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/fleettest"
)

func TestCanonicalJSONIsUnique(t *testing.T) {
	for text, want := range map[string]string{
		` {"b" : 1, "a" : [ true, null ] } `:   `{"a":[true,null],"b":1}`,
		`{"a":{"c":1,"B":2,"é":3,"":4}}`:       `{"a":{"":4,"B":2,"c":1,"é":3}}`,
		`"<a href=\"x\">\u0026\u00e9\/"`:       `"<a href=\"x\">&é/"`,
		`"\u0000\t\u001f"`:                     `"\u0000\t\u001f"`,
		`[]`:                                   `[]`,
		`{}`:                                   `{}`,
		`1.50`:                                 `1.5`,
		`15e-1`:                                `1.5`,
		`-0`:                                   `0`,
		`-0.0`:                                 `0`,
		`1e3`:                                  `1000`,
		`1E+3`:                                 `1000`,
		`123456789012345678901234567890`:       `123456789012345678901234567890`,
		`0.1`:                                  `0.1`,
		`0.1000000000000000055511151231257827`: `0.1000000000000000055511151231257827`,
		`1e9000`:                               `1e+9000`,
	} {
		t.Run(text, func(t *testing.T) {
			value, err := fleet.ParseJSON(text)
			if err != nil {
				t.Fatal(err)
			}
			got, err := fleet.CanonicalJSON(value)
			if err != nil || got != want {
				t.Errorf("got %s, %v, want %s", got, err, want)
			}
		})
	}
}

func TestCanonicalJSONRefusesInvalidValues(t *testing.T) {
	for _, value := range []any{fleet.Unknown{}, 7, []any{map[string]any{"a": fleet.Unknown{}}}, json.Number("seven"), json.Number("Inf"), json.Number("1e999999999"), json.Number("-1e9999999"), json.Number("1e10000000000"), json.Number("1e-9999999")} {
		if text, err := fleet.CanonicalJSON(value); err == nil {
			t.Errorf("%#v: got %s, want an error", value, text)
		}
	}
}

func TestTheErrorOfAnObjectDoesNotDependOnItsOrder(t *testing.T) {
	object := map[string]any{"a": json.Number("one"), "b": json.Number("two"), "c": json.Number("three"), "d": fleet.Unknown{}}
	for range 100 {
		if _, err := fleet.CanonicalJSON(object); err == nil || err.Error() != `"one" is not a number` {
			t.Fatal(err)
		}
	}
}

func TestModelRoundTrip(t *testing.T) {
	check := func(f *fleet.Fleet) {
		t.Helper()
		text := model(t, f)
		parsed, err := fleet.ParseModel(text)
		if err != nil {
			t.Fatal(err)
		}
		if again := model(t, parsed); again != text {
			t.Fatalf("model\n%s\nbecomes\n%s", text, again)
		}
		for _, workload := range f.Workloads {
			for i := range workload.DeploymentTargets {
				target := &workload.DeploymentTargets[i]
				target.Manifests, target.ManifestsPending = fleet.Manifests{}, true
			}
		}
		if !reflect.DeepEqual(parsed, f) {
			t.Fatalf("fleet %+v becomes %+v", f, parsed)
		}
	}
	for seed := range uint64(200) {
		f, _ := fleettest.Small(seed)
		check(f)
	}
	decoded, findings := fleet.Decode(input(t, everything))
	wantFindings(t, findings)
	check(decoded.Fleet)
}

func TestInvalidModelsAreErrors(t *testing.T) {
	for _, text := range []string{"", "{", "[]", `{"environment":"dev","lables":{}}`, `{"environment":"dev"} trailing`, `{"environment":7}`} {
		if _, err := fleet.ParseModel(text); err == nil || !strings.Contains(err.Error(), "does not come from provider::flotilla::fleet") {
			t.Errorf("%q: got error %v", text, err)
		}
	}
}

func TestTheSameManifestsGiveTheSameEntry(t *testing.T) {
	text := func(number string) string {
		decoded, findings := fleet.Decode(
			input(t, fmt.Sprintf("environment: dev\nworkspaces: [{name: team}]\nworkloads: [{name: a, workspace: team, "+
				"deployment_targets: {b: {environment: dev, manifests: {repo: 'https://x', parameters: {c: %s}}}}}]", number)),
		)
		wantFindings(t, findings)
		return manifestsOf(t, decoded)["a-b"]
	}
	if text("1.5") != text("15e-1") {
		t.Errorf("got %s and %s for the same number", text("1.5"), text("15e-1"))
	}
}

func FuzzCanonicalJSON(f *testing.F) {
	for _, text := range []string{`{"b":1,"a":[1.50,-0,1e999,"\u2028<é"]}`, `"\ud800"`, "[[[]]]", `{"a":{"a":{}}}`, "0.1e-5000", "1e9870", "1E10000000000"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		value, err := fleet.ParseJSON(text)
		if err != nil {
			return
		}
		once, err := fleet.CanonicalJSON(value)
		if err != nil && strings.Contains(err.Error(), "out of the range of numbers") {
			return
		}
		if err != nil {
			t.Fatalf("%s has no canonical JSON: %v", text, err)
		}
		again, err := fleet.ParseJSON(once)
		if err != nil {
			t.Fatalf("%s is no JSON: %v", once, err)
		}
		if twice, err := fleet.CanonicalJSON(again); err != nil || once != twice {
			t.Fatalf("%s becomes %s, then %s, %v", text, once, twice, err)
		}
		canonical, err := fleet.Canonical(value)
		if err != nil || !reflect.DeepEqual(canonical, again) {
			t.Fatalf("%s: canonical value %#v, %v, want %#v", text, canonical, err, again)
		}
	})
}
