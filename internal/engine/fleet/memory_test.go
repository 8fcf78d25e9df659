package fleet_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/fleettest"
)

// nearlyMiB repeats an element between two texts until the whole has nearly 1 MiB.
func nearlyMiB(before, element, after string) string {
	const length = 1<<20 - 1
	times := (length - len(before) - len(after)) / (len(element) + 1)
	return before + strings.TrimSuffix(strings.Repeat(element+",", times), ",") + after
}

// nested is a text between so many brackets.
func nested(open, text, shut string, depth int) string {
	return strings.Repeat(open, depth) + text + strings.Repeat(shut, depth)
}

// hostileModels are what is no model of anybody, by what is said of it; "" where it is read after all.
func hostileModels() map[string][]string {
	list := func(name, element string) string {
		return nearlyMiB(`{"environment":"dev","`+name+`":[`, element, `]}`)
	}
	free := func(element string) string {
		return nearlyMiB(`{"environment":"dev","cluster_types":[{"name":"a","parameters":{"a":[`, element, `]}}]}`)
	}
	const tooMuch = "is too complex: reading it would take more than 48 MiB of memory"
	return map[string][]string{
		tooMuch: {
			list("workspaces", "{}"), list("cluster_types", "{}"), list("clusters", "{}"), list("workloads", "{}"), list("workloads", "null"),
			list("target_policies", "{}"), list("config_containers", "{}"), list("templates", "{}"), list("assignments", "{}"),
			nearlyMiB(`{"environment":"dev","workloads":[{"deployment_targets":[`, `{"name":"a"}`, `]}]}`),
			nearlyMiB(`{"environment":"dev","target_policies":[{"tolerations":[`, `{}`, `]}]}`),
			nearlyMiB(`{"environment":"dev","workspaces":[{"limit_range":[`, `{}`, `]}]}`),
			free("0"), free(`{"":0}`), free(nested(`{"":`, "0", "}", 900)),
		},
		"": {
			list("clusters", `{"name":"c-1234","cluster_type":"large","labels":{"region":"west"}}`), free(`{"interval":"10m","retries":["5","10"]}`),
			nearlyMiB(`{"environment":"dev","workspaces":[{"environments":[`, `""`, `]}]}`), list("target_policies", `{"cluster_selector":{}}`),
		},
		"nested deeper than 1000 levels": {
			free(nested("[", "", "]", 1_001)),
			free(nested(`{"a":`, "0", "}", 100_000)),
		},
		"longer than the 1000 that a number may have": {free(strings.Repeat("1", 1_001))},
		`has an unknown attribute "lables"`:           {`{"environment":"dev","lables":{}}`, `{"clusters":[{"lables":1}]}`},
		"has an unexpected character at offset 13": {
			`{"clusters":[0,0]}`,
			`{"clusters":["a"]}`,
			`{"clusters":[true]}`,
			`{"clusters":[[]]}`,
		},
		"has an unexpected character at offset 12": {`{"clusters":{}}`},
		"invalid character 'x'":                    {`{"clusters":x}`, `{"clusters":[{"name":x}]}`},
		"unexpected EOF": {
			`{"clusters":[`,
			`{"clusters":[{"name":"`,
			`{"a`,
			`{"clusters"`,
			`{"clusters":[{}`,
			`{"clusters":`,
		},
		"invalid character": {
			`{"clusters" 1}`,
			`{"clusters":[{} {}]}`,
			`{1:2}`,
			`{"clusters":[{"labels":{"\x":""}}]}`,
			`{"clusters":[]]`,
			"{\"environment\":\"\n\"}",
		},
		"text follows it at offset 22":                                   {`{"environment":"dev"}{}`},
		"fleet model is not one that provider::flotilla::fleet returned": {"", " ", "[]", "1", `"x"`, "tru", "nul"},
	}
}

func TestAHostileModelTakesNeitherMemoryNorTime(t *testing.T) {
	for want, texts := range hostileModels() {
		for _, text := range texts {
			var err error
			fleettest.Bounded(t, text, func() { _, err = fleet.ParseModel(text) })
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%.60q: %v, want %q", text, err, want)
			}
		}
	}
}

func TestHostileManifestsTakeNeitherMemoryNorTime(t *testing.T) {
	value := fleet.Value{
		Format:      fleet.Format,
		Environment: "dev",
		Model:       `{"environment":"dev","workloads":[{"name":"a","deployment_targets":[{"name":"b"}]}]}`,
	}
	for text, want := range map[string]string{
		nearlyMiB(`{"parameters":{"a":[`, `{"":0}`, `]}}`):         "is too complex: reading it would take more than 48 MiB of memory",
		`{"parameters":{"a":` + nested("[", "", "]", 2_000) + `}}`: "nested deeper than 1000 levels",
		`{"repo":1}`:         "has an unexpected character at offset 8",
		"{\"repo\":\"a\"}\n": "",
		`{"repo":"a","parameters":{"a":1e9999999999}}`: "",
	} {
		value.Manifests = map[string]string{"a-b": text}
		var err error
		fleettest.Bounded(t, text, func() { _, _, err = value.Fleet() })
		if want == "" && err != nil ||
			want != "" &&
				(err == nil || !strings.Contains(err.Error(), `manifests of deployment target "a-b"`) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%.60q: %v, want %q", text, err, want)
		}
	}
}

// A large fleet is as dense as its objects are small.
func TestALargeModelIsReadWhateverItsLength(t *testing.T) {
	var text strings.Builder
	text.WriteString(`{"environment":"dev","workloads":[{"name":"w","deployment_targets":[{"name":"t"}`)
	for i := range 60_000 {
		fmt.Fprintf(&text, `,{"name":"t%d","labels":{"a":"b"}}`, i)
	}
	text.WriteString(`]}]}`)
	if _, err := fleet.ParseModel(text.String()); err != nil {
		t.Error(err)
	}
}

// FuzzParseModel: a model that is read is written as one that is read alike, within bounds.
func FuzzParseModel(f *testing.F) {
	for _, texts := range hostileModels() {
		for _, text := range texts {
			if len(text) < 10_000 {
				f.Add(text)
			}
		}
	}
	decoded, _ := fleet.Decode(fleettest.Input(fleettest.Reference(100, 1)))
	value, err := decoded.Value()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(value.Model)
	f.Fuzz(func(t *testing.T, text string) {
		var read *fleet.Fleet
		var err error
		fleettest.Bounded(t, text, func() { read, err = fleet.ParseModel(text) })
		if err != nil {
			return
		}
		once := model(t, read)
		again, err := fleet.ParseModel(once)
		if err != nil {
			t.Fatalf("%q is read, and what is written of it is not: %q: %v", text, once, err)
		}
		if twice := model(t, again); twice != once {
			t.Errorf("%q is written as %q, and then as %q", text, once, twice)
		}
	})
}

// FuzzParseManifests: whatever the manifests of a deployment target are in a fleet, they are read within bounds.
func FuzzParseManifests(f *testing.F) {
	f.Add(`{"storage":"git","repo":"https://x","parameters":{"a":[1e999,{"b":null}]}}`)
	f.Add(`{"parameters":[]}`)
	f.Fuzz(func(t *testing.T, text string) {
		value := fleet.Value{
			Format: fleet.Format, Model: `{"environment":"dev","workloads":[{"name":"a","deployment_targets":[{"name":"b"}]}]}`,
			Manifests: map[string]string{"a-b": text},
		}
		fleettest.Bounded(t, text, func() { _, _, _ = value.Fleet() })
	})
}
