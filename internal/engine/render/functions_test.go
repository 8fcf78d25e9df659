package render

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/Masterminds/sprig/v3"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

// TestEveryTemplateFunctionIsListed fails if an upgrade of sprig adds a function. Add it to testdata/functions.txt with -update, or
// refuse it.
func TestEveryTemplateFunctionIsListed(t *testing.T) {
	got := strings.Join(slices.Sorted(maps.Keys(functions())), "\n") + "\n"
	path := filepath.Join("testdata", "functions.txt")
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("templates have\n%s\nwant\n%s", got, want)
	}
}

func TestRefusedFunctionsExistInSprigAlone(t *testing.T) {
	available := functions()
	for name := range refusedFunctions {
		if _, ok := sprig.GenericFuncMap()[name]; !ok {
			t.Errorf("%s is refused, but sprig has no such function", name)
		}
		if _, ok := available[name]; ok {
			t.Errorf("%s is refused, but available", name)
		}
	}
}

func TestErrorsOfRefusedFunctionsGiveTheReason(t *testing.T) {
	for template, want := range map[string]string{
		"{{ now }}":                         `function "now" is not for templates: it reads the clock, or the time zone of the machine that renders`,
		"a\n{{ env \"HOME\" }}":             `line 2: function "env" is not for templates: it reads the environment of the machine that renders`,
		"{{ getHostByName \"x\" }}":         `function "getHostByName" is not for templates: it reads the network`,
		"{{ randAlphaNum 5 | quote }}":      `function "randAlphaNum" is not for templates: its result differs from run to run`,
		"{{ genPrivateKey \"rsa\" }}":       `function "genPrivateKey" is not for templates`,
		"{{ osBase .Manifests.path }}":      `use base, clean, dir, ext or isAbs`,
		"{{ derivePassword 1 \"a\" }}":      `its result would be committed unencrypted`,
		"{{ toYml .ConfigData }}":           `there is no function "toYml"; did you mean "toYaml"?`,
		"{{ _need .ConfigData }}":           `there is no function "_need"`,
		"{{ if .ConfigData }}":              `line 1: unexpected EOF`,
		"a\n\n{{ .ConfigData | 3 }}":        `line 3: non executable command in pipeline stage 2`,
		"{{ template \"x\" . }}{{ break }}": `line 1: {{break}} outside {{range}}`,
	} {
		findings := Validate(&fleet.Template{Type: "config", Name: "own", Manifests: []string{"ok", template}})
		if len(findings) != 1 {
			t.Errorf("%s: findings %v, want one", template, findings)
			continue
		}
		if findings[0].Path != "manifests[1]" || !strings.Contains(findings[0].Message, want) {
			t.Errorf("%s: got %s, want manifests[1]: %s", template, findings[0], want)
		}
	}
}

// TestHashMatchesKalypso compares hashes with the results of github.com/mitchellh/hashstructure v1.1.0.
func TestHashMatchesKalypso(t *testing.T) {
	for text, want := range hashes {
		value, err := fleet.ParseJSON(text)
		if err != nil {
			t.Fatal(err)
		}
		got, err := hash(natural(value))
		if err != nil || got != want {
			t.Errorf("hash of %s is %s, %v, want %s", text, got, err, want)
		}
	}
}

var hashes = map[string]string{
	`"text"`:            "10090654158551821336",
	`3`:                 "6399761937749426484",
	`-1`:                "15446756586918820205",
	`1.5`:               "12161883048204943186",
	`true`:              "12638153115695167454",
	`false`:             "12638153115695167455",
	`null`:              "12161962213042174405",
	`[]`:                "0",
	`{}`:                "0",
	`["a","b"]`:         "2712570657419664240",
	`["b","a"]`:         "8012847830711252742",
	`{"a":"b","c":"d"}`: "8710980024335696864",
	`{"REGION":"West US","DATABASE_URL":"mysql://west:8806/mysql2","list":[1,{"x":null}],"o":{"b":true}}`: "6783226939733724779",
}
