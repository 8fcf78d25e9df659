package fleet_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/fleettest"
)

// brokenModels has invalid models by their error.
var brokenModels = map[string][]string{
	`unknown field "lables"`: {`{"environment":"dev","lables":{}}`, `{"clusters":[{"lables":1}]}`},
	"exceeded max depth": {
		`{"environment":"dev","cluster_types":[{"name":"a","parameters":{"a":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}}]}`,
	},
	"cannot unmarshal":          {`{"clusters":[0,0]}`, `{"clusters":["a"]}`, `{"clusters":{}}`, "[]", "1", `"x"`},
	"invalid character":         {`{"clusters":x}`, `{"clusters" 1}`, `{"clusters":[{} {}]}`, `{1:2}`, `{"clusters":[]]`, "{\"environment\":\"\n\"}"},
	"EOF":                       {`{"clusters":[`, `{"clusters":[{"name":"`, `{"a`, `{"clusters":`, "", " ", "tru"},
	"text follows it at offset": {`{"environment":"dev"}{}`},
}

func TestABrokenModelIsAnError(t *testing.T) {
	t.Parallel()
	for want, texts := range brokenModels {
		for _, text := range texts {
			_, err := fleet.ParseModel(text)
			if err == nil || !strings.Contains(err.Error(), want) ||
				!strings.Contains(err.Error(), "fleet model does not come from provider::flotilla::fleet") {
				t.Errorf("%.60q: got error %v, want %q", text, err, want)
			}
		}
	}
}

func TestBrokenManifestsAreAnError(t *testing.T) {
	t.Parallel()
	value := fleet.Value{
		Format: fleet.Format, Model: `{"environment":"dev","workloads":[{"name":"a","deployment_targets":[{"name":"b"}]}]}`,
		Manifests: map[string]string{"a-b": `{"repo":1}`},
	}
	if _, _, err := value.Fleet(); err == nil || !strings.Contains(err.Error(), `manifests of deployment target "a-b"`) {
		t.Error(err)
	}
	value.Manifests["a-b"] = `{"repo":"a","parameters":{"a":1e9999999999}}`
	if _, _, err := value.Fleet(); err != nil {
		t.Error(err)
	}
}

// Small objects make a large fleet dense.
func TestALargeModelIsRead(t *testing.T) {
	t.Parallel()
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

// FuzzParseModel writes each valid model and reads it again.
func FuzzParseModel(f *testing.F) {
	for _, texts := range brokenModels {
		for _, text := range texts {
			f.Add(text)
		}
	}
	decoded, _ := fleet.Decode(fleettest.Input(fleettest.Reference(100, 1)))
	value, err := decoded.Value()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(value.Model)
	f.Fuzz(func(t *testing.T, text string) {
		read, err := fleet.ParseModel(text)
		if err != nil {
			return
		}
		once := model(t, read)
		again, err := fleet.ParseModel(once)
		if err != nil {
			t.Fatalf("%q is valid, but its written form %q is not: %v", text, once, err)
		}
		if twice := model(t, again); twice != once {
			t.Errorf("%q is written as %q, and then as %q", text, once, twice)
		}
	})
}
