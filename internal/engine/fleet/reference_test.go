package fleet_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/reference"
)

// fleetSchema is the JSON Schema of the argument of provider::flotilla::fleet that is published.
var fleetSchema = jsonschema.MustCompileString("fleet.json", string(reference.Schemas()["fleet.json"]))

// tabled is an object of an input, with the table that it is read by, and its JSON pointer.
type tabled struct {
	table   *fleet.Table
	object  map[string]any
	pointer string
}

// eachTabled calls do with each object of an input that has a table.
func eachTabled(of tabled, do func(tabled)) {
	do(of)
	for _, name := range slices.Sorted(maps.Keys(of.object)) {
		attribute := of.table.Find(name)
		if attribute == nil || attribute.Of == nil {
			continue
		}
		pointer := of.pointer + "/" + name
		element := func(pointer string, value any) {
			if object, is := value.(map[string]any); is {
				eachTabled(tabled{attribute.Of, object, pointer}, do)
			}
		}
		switch attribute.Type {
		case fleet.ObjectType, fleet.TextOrObjectType, fleet.BoolOrObjectType:
			element(pointer, of.object[name])
			continue
		}
		switch value := of.object[name].(type) {
		case []any:
			for i := range value {
				element(fmt.Sprintf("%s/%d", pointer, i), value[i])
			}
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(value)) {
				element(pointer+"/"+key, value[key])
			}
		}
	}
}

// accepted are inputs without a mistake, in which each attribute of each table is somewhere.
func accepted(t *testing.T) []map[string]any {
	t.Helper()
	onBase := input(t, `
environment: dev
assignments: [{cluster_type: drone, deployment_target: hello-live}, {cluster: drone-7, deployment_target: hello-live}]
`).(map[string]any)
	onBase["base"] = baseOf(t, `
environment: dev
cluster_types: [{name: drone}]
clusters: [{name: drone-7, cluster_type: drone}]
workspaces: [{name: team}]
workloads: [{name: hello, workspace: team, deployment_targets: {live: {environment: dev, manifests: {repo: 'https://git.example.com/hello'}}}}]
`)
	return []map[string]any{input(t, everything).(map[string]any), onBase, withArtifacts(t, artifact.Resolved{"hello-live": ofBranch})}
}

// A table has what code reads: an attribute that code asks for and no table has makes each reader of such an object panic, and
// one that a table has and no code asks for would not be accepted here.
func TestEachAttributeOfTheTablesIsRead(t *testing.T) {
	t.Parallel()
	seen := map[*fleet.Table]map[string]bool{}
	for _, value := range accepted(t) {
		_, findings := fleet.Decode(value)
		wantFindings(t, findings)
		eachTabled(tabled{fleet.RootTable(), value, ""}, func(of tabled) {
			if seen[of.table] == nil {
				seen[of.table] = map[string]bool{}
			}
			for name := range of.object {
				seen[of.table][name] = true
			}
		})
	}
	var check func(table *fleet.Table)
	check = func(table *fleet.Table) {
		for i := range table.Attributes {
			attribute := &table.Attributes[i]
			if !seen[table][attribute.Name] {
				t.Errorf(
					"no input has the attribute %q of a %s: add it to everything, where that shows whether code reads it",
					attribute.Name,
					table.Name,
				)
			}
			if attribute.Of != nil {
				check(attribute.Of)
			}
		}
	}
	check(fleet.RootTable())
}

func TestAReaderCannotAskForAnAttributeThatNoTableHas(t *testing.T) {
	t.Parallel()
	defer func() {
		if said := recover(); said == nil || !strings.Contains(fmt.Sprint(said), `has no attribute "title"`) {
			t.Errorf("it says %v", said)
		}
	}()
	reader := &fleet.Reader{}
	reader.Object(fleet.CollectionTable("clusters"), nil, map[string]any{"name": "a"}).Text("title")
}

func TestTheSchemaAcceptsWhatAFleetIs(t *testing.T) {
	t.Parallel()
	for i, value := range accepted(t) {
		if err := fleetSchema.Validate(value); err != nil {
			t.Errorf("%d: %#v", i, err)
		}
	}
	whole := accepted(t)[0]
	schemas := reference.Schemas()
	for i := range fleet.RootTable().Attributes {
		attribute := &fleet.RootTable().Attributes[i]
		if attribute.Type != fleet.CollectionType || whole[attribute.Name] == nil {
			continue
		}
		list, err := jsonschema.CompileString("list.json", string(schemas[attribute.Name+".json"]))
		if err != nil {
			t.Fatal(err)
		}
		one, err := jsonschema.CompileString("one.json", string(schemas[strings.ReplaceAll(attribute.Of.Name, " ", "_")+".json"]))
		if err != nil {
			t.Fatal(err)
		}
		objects := whole[attribute.Name].([]any)
		byName := map[string]any{}
		for i, object := range objects {
			byName[fmt.Sprint("key-", i)] = object
			if err := one.Validate(object); err != nil {
				t.Errorf("one of %s: %#v", attribute.Name, err)
			}
		}
		if err := errors.Join(list.Validate(objects), list.Validate(byName)); err != nil {
			t.Errorf("%s: %#v", attribute.Name, err)
		}
	}
}

// mistake makes one mistake, and says what it did, and where the schema must find it: the pointer of the attribute, or of its object
// with the attribute's name.
type mistake struct {
	what, attribute, pointer string
	inObject                 bool
}

func misspelt(random *rand.Rand, key string) string {
	at := random.Intn(len(key))
	return key[:at] + "x" + key[at:]
}

// values are of all types.
func values() []any {
	return []any{"text", json.Number("1.5"), true, []any{json.Number("1")}, map[string]any{"x": json.Number("1")}}
}

// fits says whether an attribute may have a value of those of values.
func fits(attribute *fleet.Attribute, value any) bool {
	switch value.(type) {
	case string:
		return attribute.Allowed == nil && slices.Contains([]fleet.Type{fleet.TextType, fleet.TextOrObjectType, fleet.SchemaType}, attribute.Type)
	case json.Number:
		return attribute.Type == fleet.NumberType
	case bool:
		return attribute.Type == fleet.BoolType
	case map[string]any:
		return slices.Contains([]fleet.Type{fleet.AnyObjectType, fleet.SchemaType, fleet.QuantitiesType}, attribute.Type)
	}
	return false
}

// makeMistake makes one in an object; nil where it made none.
func makeMistake(random *rand.Rand, of tabled) *mistake {
	var keys []string
	for _, key := range slices.Sorted(maps.Keys(of.object)) {
		if attribute := of.table.Find(key); attribute != nil && !attribute.Computed {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	key := keys[random.Intn(len(keys))]
	attribute, noName := of.table.Find(key), noNames[random.Intn(len(noNames))]
	switch random.Intn(6) {
	case 0:
		wrong := misspelt(random, key)
		of.object[wrong] = of.object[key]
		delete(of.object, key)
		return &mistake{"misspelt " + key, wrong, of.pointer, true}
	case 1:
		all := values()
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for _, value := range all {
			if !fits(attribute, value) {
				of.object[key] = value
				return &mistake{fmt.Sprintf("%s is %v", key, value), key, of.pointer + "/" + key, false}
			}
		}
	case 2:
		if attribute.Required {
			delete(of.object, key)
			return &mistake{"missing " + key, key, of.pointer, true}
		}
	case 3:
		keys = slices.DeleteFunc(keys, func(key string) bool { return of.table.Find(key).Form == nil })
		if len(keys) > 0 {
			key = keys[random.Intn(len(keys))]
			switch of.table.Find(key).Type {
			case fleet.TextsType:
				of.object[key] = []any{noName}
			case fleet.TextMapType:
				of.object[key] = map[string]any{"a": noName}
			default:
				of.object[key] = noName
			}
			return &mistake{"malformed " + key, key, of.pointer + "/" + key, false}
		}
	case 4:
		keys = slices.DeleteFunc(keys, func(key string) bool { return of.table.Find(key).Keys == nil })
		if len(keys) > 0 {
			key = keys[random.Intn(len(keys))]
			values := of.object[key].(map[string]any) // of which accepted has none that is empty
			values[noName] = values[slices.Min(slices.Collect(maps.Keys(values)))]
			return &mistake{"malkeyed " + key, key, of.pointer + "/" + key, false}
		}
	case 5:
		if len(of.table.Apart) > 0 {
			pair := of.table.Apart[random.Intn(len(of.table.Apart))]
			for _, name := range pair {
				if of.object[name] == nil {
					of.object[name] = map[fleet.Type]any{fleet.TextType: "v1", fleet.CollectionType: []any{}}[of.table.Find(name).Type]
				}
			}
			return &mistake{"both " + pair[0], pair[0], of.pointer, false}
		}
	}
	return nil
}

// noNames are no texts of any form.
var noNames = []string{"Not A Name", "-a", "a/b/c", "ä", strings.Repeat("a", 254)}

// foundBy says whether a schema's error has a cause at the mistake.
func (m *mistake) foundBy(err *jsonschema.ValidationError) bool {
	if m.inObject && err.InstanceLocation == m.pointer && strings.Contains(err.Message, "'"+m.attribute+"'") ||
		!m.inObject && strings.HasPrefix(err.InstanceLocation+"/", m.pointer+"/") {
		return true
	}
	return slices.ContainsFunc(err.Causes, m.foundBy)
}

// Random mistakes, each a misspelt key, a value of another type, a required attribute that is missing, a text or key that is no name,
// or two attributes of which only one may be set, are found by the schema where provider::flotilla::fleet finds them.
func TestTheSchemaFindsTheMistakesThatAFleetFinds(t *testing.T) {
	t.Parallel()
	mistakes := acceptancetest.Count(200, 400)
	random := rand.New(rand.NewSource(25))
	kinds, all := map[string]int{}, accepted(t)
	for made := 0; made < mistakes; {
		value := clone(all[random.Intn(len(all))]).(map[string]any)
		var objects []tabled
		eachTabled(tabled{fleet.RootTable(), value, ""}, func(of tabled) { objects = append(objects, of) })
		of := objects[random.Intn(len(objects))]
		if of.table.Name == "base fleet" || of.table.Name == "entries of a base fleet" { // which people do not write
			continue
		}
		if environment, is := of.object["environment"].(string); is && environment != "dev" { // of which a fleet checks less
			continue
		}
		m := makeMistake(random, of)
		if m == nil {
			continue
		}
		made++
		kinds[strings.Fields(m.what)[0]]++
		if strings.HasPrefix(m.what, "mal") && strings.HasSuffix(m.attribute, "labels") {
			kinds["labels"]++
		}
		_, findings := fleet.Decode(value)
		if !slices.ContainsFunc(findings, func(f fleet.Finding) bool { return strings.Contains("."+f.Path+".", m.attribute) }) {
			t.Errorf("%s at %s: fleet does not find it: %s", m.what, m.pointer, findings)
		}
		var violation *jsonschema.ValidationError
		if err := fleetSchema.Validate(value); !errors.As(err, &violation) || !m.foundBy(violation) {
			t.Errorf("%s at %s: the schema does not find it: %#v", m.what, m.pointer, err)
		}
	}
	for kind, want := range map[string]int{"misspelt": 40, "missing": 10, "malformed": 20, "malkeyed": 20, "labels": 15, "both": 10} {
		if kinds[kind] < want*mistakes/400 {
			t.Errorf("too few mistakes are %s: %v", kind, kinds)
		}
	}
}

// What is left out of a fleet that is one, or is null, is no mistake for the schema unless it is one for a fleet.
func TestTheSchemaFindsNoOtherMistakes(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewSource(25))
	valid, all := 0, accepted(t)
	for range acceptancetest.Count(150, 300) {
		value := clone(all[random.Intn(len(all))]).(map[string]any)
		what := ""
		eachTabled(tabled{fleet.RootTable(), value, ""}, func(of tabled) {
			for _, key := range slices.Sorted(maps.Keys(of.object)) {
				ofOther := key == "data" && of.object["environment"] == "prod" // which a fleet of dev does not check
				if random.Intn(25) > 0 || ofOther {
					continue
				}
				what += " " + of.pointer + "/" + key
				if delete(of.object, key); random.Intn(2) == 0 {
					of.object[key] = nil
				}
			}
		})
		if _, findings := fleet.Decode(value); len(findings) > 0 {
			continue
		}
		valid++
		if err := fleetSchema.Validate(value); err != nil {
			t.Errorf("without%s: %#v", what, err)
		}
	}
	if valid < acceptancetest.Count(15, 30) {
		t.Errorf("only %d were fleets", valid)
	}
}
