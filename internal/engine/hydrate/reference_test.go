package hydrate_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/hydrate"
)

// secrets adds references to the last container, as in "DB_PASSWORD=vault:prod/db". "KEY=null" removes a key.
func (g *fleetBuilder) secrets(references ...string) *fleetBuilder {
	secrets := fleet.ContainerSecrets{References: map[string]*fleet.SecretReference{}}
	for _, text := range references {
		key, rest, _ := strings.Cut(text, "=")
		if secrets.References[key] = nil; rest != "null" {
			secrets.References[key] = parseReference(rest)
		}
	}
	if err := g.config.SetSecrets(g.last(), secrets); err != nil {
		panic(err)
	}
	return g
}

// pendingSecrets makes the secrets of the last container unknown.
func (g *fleetBuilder) pendingSecrets() *fleetBuilder {
	g.config[fleet.SecretsEntry(g.last().Name)] = fleet.UnknownEntry
	return g
}

// parseReference reads a reference, as in "vault:prod/db#password@3".
func parseReference(text string) *fleet.SecretReference {
	text, version, _ := strings.Cut(text, "@")
	text, property, _ := strings.Cut(text, "#")
	store, key, _ := strings.Cut(text, ":")
	return &fleet.SecretReference{Store: store, Key: key, Property: property, Version: version}
}

// secretsOf formats the references of a snapshot like the arguments of secrets.
func secretsOf(snapshot *hydrate.Snapshot) string {
	var all []string
	references := snapshot.Secrets()
	for _, key := range slices.Sorted(maps.Keys(references)) {
		one := references[key]
		text := fmt.Sprintf("%s=%s:%s", key, one.Store, one.Key)
		if one.Property != "" {
			text += "#" + one.Property
		}
		if one.Version != "" {
			text += "@" + one.Version
		}
		all = append(all, text)
	}
	return strings.Join(all, " ")
}

func TestReferencesMergeLikeScalars(t *testing.T) {
	t.Parallel()
	one, both := labels{"region": "west"}, labels{"region": "west", "edge": "true"}
	for name, test := range map[string]struct {
		builder      *fleetBuilder
		values, want string
	}{
		"one":              {dev().container("a", nil, `{"A":1}`).secrets("P=vault:db"), `{"A":1}`, "P=vault:db"},
		"without data":     {dev().container("a", nil, `{}`).secrets("P=vault:db#password@3", "Q=vault:q"), `{}`, "P=vault:db#password@3 Q=vault:q"},
		"the later wins":   {dev().container("a", nil, `{}`).secrets("P=vault:db").container("b", one, `{}`).secrets("P=azure:x"), `{}`, "P=azure:x"},
		"fields never mix": {dev().container("a", nil, `{}`).secrets("P=vault:db#password@3").container("b", one, `{}`).secrets("P=vault:db"), `{}`, "P=vault:db"},
		"null removes":     {dev().container("a", nil, `{}`).secrets("P=vault:db").container("b", one, `{}`).secrets("P=null"), `{}`, ""},
		"null in data removes, too": {
			dev().container("a", nil, `{}`).secrets("P=vault:db").container("b", one, `{"P":null}`), `{}`, ""},
		"null in secrets removes a value": {
			dev().container("a", nil, `{"P":"x"}`).container("b", one, `{}`).secrets("P=null"), `{}`, ""},
		"a value gives way to a reference": {
			dev().container("a", nil, `{"P":"x"}`).container("b", one, `{"P":null}`).secrets("P=vault:db"), `{}`, "P=vault:db"},
		"a reference gives way to a value": {
			dev().container("a", nil, `{}`).secrets("P=vault:db").container("b", one, `{"P":"x"}`).secrets("P=null"), `{"P":"x"}`, ""},
		"a removal in between": {
			dev().container("a", nil, `{"P":{"x":1}}`).container("b", one, `{"P":null}`).container("c", both, `{}`).secrets("P=vault:db"), `{}`, "P=vault:db"},
		"a value that looks like a reference": {
			dev().container("a", nil, `{"P":{"store":"vault","key":"db"}}`).container("b", one, `{"Q":1}`).secrets("R=vault:db"),
			`{"P":{"key":"db","store":"vault"},"Q":1}`, "R=vault:db"},
		"merged lists": {
			dev().hydration(fleet.Hydration{Lists: "append"}).container("a", nil, `{"P":[1]}`).container("b", one, `{"P":[2]}`).secrets("P=null").
				container("c", both, `{}`).secrets("Q=vault:db"), `{"P":[1,2]}`, "Q=vault:db"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result := test.builder.assign("drone", "hello", both, nil).hydrate(t)
			equal(t, "findings", findingLines(result.Findings), "")
			equal(t, "values", result.All[0].JSON, test.values)
			equal(t, "values again", canonical(t, result.All[0].Values()), test.values)
			equal(t, "references", secretsOf(result.All[0]), test.want)
		})
	}
}

func TestReferencesHaveProvenanceAndUses(t *testing.T) {
	t.Parallel()
	g := dev().container("all", nil, `{}`).secrets("P/W=vault:db", "Q=vault:q").
		container("west", labels{"region": "west"}, `{}`).secrets("P/W=vault:west").
		assign("drone", "hello", labels{"region": "west"}, nil).assign("other", "hello", nil, nil)
	result := g.hydrate(t)
	equal(t, "provenance", fmt.Sprint(result.All[0].Provenance()), "map[/P~1W:{west [all]} /Q:{all []}]")
	equal(t, "provenance elsewhere", fmt.Sprint(result.All[1].Provenance()), "map[/P~1W:{all []} /Q:{all []}]")
	equal(t, "decided by", result.All[0].DecidedBy("P/W"), "west")
	for pointer, want := range map[string]string{
		"": "[drone/hello-test other/hello-test]", "/Q": "[drone/hello-test other/hello-test]", "/Q/store": "[]", "/R": "[]",
	} {
		using, err := hydrate.Uses(result, g.assignments, pointer)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "uses of "+pointer, fmt.Sprint(using), want)
	}
}

func TestKeyIsAValueOrASecret(t *testing.T) {
	t.Parallel()
	one, other, both := labels{"region": "west"}, labels{"edge": "true"}, labels{"region": "west", "edge": "true"}
	clash := func(reference, value string) string {
		return `config container "` + reference + `": /P is a reference to a secret (config_containers["` + reference + `"].secrets["P"]), and config container "` +
			value + `" gives a value in its data: a key is either a value or a secret; remove one of the two, or set it to null where the other is given (assignment "drone/hello-test")`
	}
	for name, test := range map[string]struct {
		builder *fleetBuilder
		want    string
	}{
		"a reference over a value":   {dev().container("a", nil, `{"P":"x"}`).container("b", one, `{}`).secrets("P=vault:db"), clash("b", "a")},
		"a value over a reference":   {dev().container("a", nil, `{}`).secrets("P=vault:db").container("b", one, `{"P":"x"}`), clash("a", "b")},
		"an object":                  {dev().container("a", nil, `{"P":{"x":1}}`).container("b", one, `{}`).secrets("P=vault:db"), clash("b", "a")},
		"a reference over both":      {dev().container("a", nil, `{"P":"x"}`).container("b", one, `{}`).secrets("P=vault:db").container("c", both, `{}`).secrets("P=vault:c"), clash("c", "a")},
		"equal ranks":                {dev().container("a", one, `{"P":"x"}`).container("b", other, `{}`).secrets("P=vault:db"), clash("b", "a")},
		"both are removed":           {dev().container("a", nil, `{"P":"x"}`).container("b", one, `{}`).secrets("P=vault:db").container("c", both, `{"P":null}`), ""},
		"an unknown container above": {dev().container("a", nil, `{"P":"x"}`).container("b", one, `{}`).secrets("P=vault:db").container("c", both, ""), ""},
		"an unknown container below": {dev().container("0", nil, "").container("a", one, `{"P":"x"}`).container("b", both, `{}`).secrets("P=vault:db"), clash("b", "a")},
		"unknown secrets above":      {dev().container("a", nil, `{}`).secrets("P=vault:db").container("b", one, `{"P":"x"}`).pendingSecrets(), ""},
		"unknown secrets below":      {dev().container("a", one, `{"P":"x"}`).pendingSecrets().container("b", both, `{}`).secrets("P=vault:db"), clash("b", "a")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result := test.builder.assign("drone", "hello", both, nil).hydrate(t)
			equal(t, "findings", findingLines(result.Findings), test.want)
		})
	}
}

func TestReferencesOfEqualRankAreAmbiguous(t *testing.T) {
	t.Parallel()
	one, other, both := labels{"region": "west"}, labels{"edge": "true"}, labels{"region": "west", "edge": "true"}
	for name, test := range map[string]struct {
		builder *fleetBuilder
		want    bool
	}{
		"two references":        {dev().container("a", one, `{}`).secrets("P=vault:a").container("b", other, `{}`).secrets("P=vault:b"), true},
		"two versions":          {dev().container("a", one, `{}`).secrets("P=vault:a@1").container("b", other, `{}`).secrets("P=vault:a@2"), true},
		"a reference and null":  {dev().container("a", one, `{}`).secrets("P=vault:a").container("b", other, `{}`).secrets("P=null"), true},
		"the same":              {dev().container("a", one, `{}`).secrets("P=vault:a").container("b", other, `{}`).secrets("P=vault:a"), false},
		"a higher rank decides": {dev().container("a", one, `{}`).secrets("P=vault:a").container("b", other, `{}`).secrets("P=vault:b").container("c", both, `{}`).secrets("P=vault:c"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := findingLines(test.builder.assign("drone", "hello", both, nil).hydrate(t).Findings)
			if strings.Contains(found, `/P is ambiguous: the containers "a" and "b"`) != test.want || !test.want && found != "" {
				t.Errorf("findings: %s", found)
			}
		})
	}
}

func TestVersionCoversReferences(t *testing.T) {
	t.Parallel()
	version := func(g *fleetBuilder) string { return g.assign("drone", "hello", nil, nil).hydrate(t).All[0].Version }
	plain := version(dev().container("a", nil, `{"A":1}`))
	equal(t, "without references", plain, version(dev().container("a", nil, `{"A":1}`).container("b", nil, `{}`).secrets()))
	seen := map[string]string{plain: "no reference"}
	for _, reference := range []string{"P=vault:db", "P=vault:db@1", "P=vault:db@2", "P=vault:db#1", "P=azure:db", "Q=vault:db", "P=vault:d"} {
		version := version(dev().container("a", nil, `{"A":1}`).secrets(reference))
		if seen[version] != "" {
			t.Errorf("%s and %s have version %s", reference, seen[version], version)
		}
		seen[version] = reference
	}
}

func TestUnknownSecretsMakeTheSnapshotUnknown(t *testing.T) {
	t.Parallel()
	g := dev().container("a", nil, `{"A":1}`).secrets("Q=vault:q").container("west", labels{"region": "west"}, `{"B":2}`).pendingSecrets().
		assign("west", "hello", labels{"region": "west"}, nil).assign("east", "hello", nil, nil)
	result := g.hydrate(t)
	if west := result.All[0]; west.Known || west.Version != "" || west.JSON != "" || west.Values() != nil || west.Secrets() != nil {
		t.Errorf("snapshot with unknown secrets: %+v", west)
	}
	equal(t, "elsewhere", secretsOf(result.All[1]), "Q=vault:q")
	using, _ := hydrate.Uses(result, g.assignments, "/B")
	equal(t, "uses of a known value", fmt.Sprint(using), "[west/hello-test]")
}

// encryptedFile returns the Secret "db", encrypted by sops or kubeseal.
func encryptedFile(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile("../encrypted/testdata/" + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// encrypted adds encrypted files to the last container.
func (g *fleetBuilder) encrypted(texts ...string) *fleetBuilder {
	if err := g.config.SetSecrets(g.last(), fleet.ContainerSecrets{Encrypted: texts}); err != nil {
		panic(err)
	}
	return g
}

func TestHigherRankedEncryptedFileOfASecretWins(t *testing.T) {
	t.Parallel()
	one, other, both := labels{"region": "west"}, labels{"edge": "true"}, labels{"region": "west", "edge": "true"}
	sops, sealed := encryptedFile(t, "sops"), encryptedFile(t, "sealed")
	cache := strings.ReplaceAll(sealed, "name: db", "name: cache")
	ambiguous := `config container "b": encrypted[0], of Secret "db", is ambiguous: the containers "a" and "b" have equal priority and equally many labels, ` +
		`and give different encrypted files; raise the priority of the one that should win (assignment "drone/hello-test")`
	for name, test := range map[string]struct {
		builder          *fleetBuilder
		want, complaints string
	}{
		"one":                   {dev().container("a", nil, `{}`).encrypted(sops), "db of a", ""},
		"two Secrets, sorted":   {dev().container("a", nil, `{}`).encrypted(sops, cache), "cache of a, db of a", ""},
		"the later wins":        {dev().container("b", nil, `{}`).encrypted(sops).container("a", one, `{}`).encrypted(cache, sealed), "cache of a, db of a", ""},
		"equal ranks":           {dev().container("a", one, `{}`).encrypted(sops).container("b", other, `{}`).encrypted(sealed), "db of b", ambiguous},
		"equal ranks and texts": {dev().container("a", one, `{}`).encrypted(sops).container("b", other, `{}`).encrypted(sops), "db of b", ""},
		"a higher rank decides": {dev().container("a", one, `{}`).encrypted(sops).container("b", other, `{}`).encrypted(sealed).container("c", both, `{}`).encrypted(sops), "db of c", ""},
		"an unknown container of a higher rank": {
			dev().container("a", one, `{}`).encrypted(sops).container("b", other, `{}`).encrypted(sealed).container("c", both, `{}`).pendingSecrets(), "", ""},
		"an unknown container of a lower rank": {
			dev().container("a", one, `{}`).encrypted(sops).container("b", other, `{}`).encrypted(sealed).container("c", nil, ``), "", ambiguous},
		"precedence by name": {
			dev().hydration(fleet.Hydration{Precedence: "name"}).container("a", nil, `{}`).encrypted(sops).container("b", nil, `{}`).encrypted(sealed), "db of b", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result := test.builder.assign("drone", "hello", both, nil).hydrate(t)
			var files []string
			for _, file := range result.All[0].Encrypted() {
				files = append(files, file.Name+" of "+file.Container)
			}
			equal(t, "files", strings.Join(files, ", "), test.want)
			equal(t, "findings", findingLines(result.Findings), test.complaints)
		})
	}
}

func TestVersionCoversEncryptedFiles(t *testing.T) {
	t.Parallel()
	sops, sealed := encryptedFile(t, "sops"), encryptedFile(t, "sealed")
	versions := map[string]bool{}
	for _, files := range [][]string{nil, {sops}, {sealed}, {sops, strings.ReplaceAll(sealed, "name: db", "name: cache")}} {
		versions[dev().container("a", nil, `{"A":1}`).encrypted(files...).assign("drone", "hello", nil, nil).hydrate(t).All[0].Version] = true
	}
	equal(t, "different versions", len(versions), 4)
}
