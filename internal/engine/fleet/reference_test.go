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

// fleetSchema is the published JSON Schema of the argument of provider::flotilla::fleet.
var fleetSchema = jsonschema.MustCompileString("fleet.json", string(reference.Schemas()["fleet.json"]))

// tableObject is an object of an input, with its table and its JSON pointer.
type tableObject struct {
	table   *fleet.Table
	object  map[string]any
	pointer string
}

// walkTables calls do with the object and each object below it, if there is a table for it.
func walkTables(parent tableObject, do func(tableObject)) {
	do(parent)
	for _, name := range slices.Sorted(maps.Keys(parent.object)) {
		attribute := parent.table.Find(name)
		if attribute == nil || attribute.Of == nil {
			continue
		}
		pointer := parent.pointer + "/" + name
		element := func(pointer string, value any) {
			if object, isObject := value.(map[string]any); isObject {
				walkTables(tableObject{attribute.Of, object, pointer}, do)
			}
		}
		switch attribute.Type {
		case fleet.ObjectType, fleet.TextOrObjectType, fleet.BoolOrObjectType:
			element(pointer, parent.object[name])
			continue
		}
		switch value := parent.object[name].(type) {
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

// validInputs returns inputs without mistakes. Together they have each attribute of each table.
func validInputs(t *testing.T) []map[string]any {
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
	return []map[string]any{input(t, everything).(map[string]any), onBase, withArtifacts(t, artifact.Resolved{"hello-live": branchEntry})}
}

// The tables have exactly the attributes that the code reads: reading an attribute without a table entry panics, and an
// attribute that no code reads is a finding here.
func TestEachAttributeOfTheTablesIsRead(t *testing.T) {
	t.Parallel()
	seen := map[*fleet.Table]map[string]bool{}
	for _, value := range validInputs(t) {
		_, findings := fleet.Decode(value)
		wantFindings(t, findings)
		walkTables(tableObject{fleet.RootTable(), value, ""}, func(current tableObject) {
			if seen[current.table] == nil {
				seen[current.table] = map[string]bool{}
			}
			for name := range current.object {
				seen[current.table][name] = true
			}
		})
	}
	var check func(table *fleet.Table)
	check = func(table *fleet.Table) {
		for i := range table.Attributes {
			attribute := &table.Attributes[i]
			if !seen[table][attribute.Name] {
				t.Errorf(
					"no input has the attribute %q of a %s: add it to everything",
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

func TestReadingAnUndefinedAttributePanics(t *testing.T) {
	t.Parallel()
	defer func() {
		if got := recover(); got == nil || !strings.Contains(fmt.Sprint(got), `has no attribute "title"`) {
			t.Errorf("got panic %v", got)
		}
	}()
	reader := &fleet.Reader{}
	reader.Object(fleet.CollectionTable("clusters"), nil, map[string]any{"name": "a"}).Text("title")
}

func TestTheSchemaAcceptsValidFleets(t *testing.T) {
	t.Parallel()
	for i, value := range validInputs(t) {
		if err := fleetSchema.Validate(value); err != nil {
			t.Errorf("%d: %#v", i, err)
		}
	}
	whole := validInputs(t)[0]
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

// mistake describes one mistake. The schema must report it at the pointer: of the attribute, or of its object, with the name of
// the attribute in the message.
type mistake struct {
	description, attribute, pointer string
	inObject                        bool
}

func misspell(random *rand.Rand, key string) string {
	position := random.Intn(len(key))
	return key[:position] + "x" + key[position:]
}

// valuesOfAllTypes returns a value of each JSON type.
func valuesOfAllTypes() []any {
	return []any{"text", json.Number("1.5"), true, []any{json.Number("1")}, map[string]any{"x": json.Number("1")}}
}

// fits reports whether an attribute accepts a value of valuesOfAllTypes.
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

// makeMistake makes a random mistake in an object. It returns nil if the choice does not apply to the object.
func makeMistake(random *rand.Rand, current tableObject) *mistake {
	var keys []string
	for _, key := range slices.Sorted(maps.Keys(current.object)) {
		if attribute := current.table.Find(key); attribute != nil && !attribute.Computed {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	key := keys[random.Intn(len(keys))]
	attribute, invalidName := current.table.Find(key), invalidNames[random.Intn(len(invalidNames))]
	switch random.Intn(6) {
	case 0:
		wrong := misspell(random, key)
		current.object[wrong] = current.object[key]
		delete(current.object, key)
		return &mistake{"misspelt " + key, wrong, current.pointer, true}
	case 1:
		all := valuesOfAllTypes()
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for _, value := range all {
			if !fits(attribute, value) {
				current.object[key] = value
				return &mistake{fmt.Sprintf("%s is %v", key, value), key, current.pointer + "/" + key, false}
			}
		}
	case 2:
		if attribute.Required {
			delete(current.object, key)
			return &mistake{"missing " + key, key, current.pointer, true}
		}
	case 3:
		keys = slices.DeleteFunc(keys, func(key string) bool { return current.table.Find(key).Form == nil })
		if len(keys) > 0 {
			key = keys[random.Intn(len(keys))]
			switch current.table.Find(key).Type {
			case fleet.TextsType:
				current.object[key] = []any{invalidName}
			case fleet.TextMapType:
				current.object[key] = map[string]any{"a": invalidName}
			default:
				current.object[key] = invalidName
			}
			return &mistake{"malformed " + key, key, current.pointer + "/" + key, false}
		}
	case 4:
		keys = slices.DeleteFunc(keys, func(key string) bool { return current.table.Find(key).Keys == nil })
		if len(keys) > 0 {
			key = keys[random.Intn(len(keys))]
			values := current.object[key].(map[string]any) // validInputs has no empty ones
			values[invalidName] = values[slices.Min(slices.Collect(maps.Keys(values)))]
			return &mistake{"malkeyed " + key, key, current.pointer + "/" + key, false}
		}
	case 5:
		if len(current.table.Apart) > 0 {
			pair := current.table.Apart[random.Intn(len(current.table.Apart))]
			for _, name := range pair {
				if current.object[name] == nil {
					current.object[name] = map[fleet.Type]any{fleet.TextType: "v1", fleet.CollectionType: []any{}}[current.table.Find(name).Type]
				}
			}
			return &mistake{"both " + pair[0], pair[0], current.pointer, false}
		}
	}
	return nil
}

// invalidNames are invalid in every form.
var invalidNames = []string{"Not A Name", "-a", "a/b/c", "ä", strings.Repeat("a", 254)}

// isReportedBy reports whether a schema's error has a cause at the mistake.
func (m *mistake) isReportedBy(err *jsonschema.ValidationError) bool {
	if m.inObject && err.InstanceLocation == m.pointer && strings.Contains(err.Message, "'"+m.attribute+"'") ||
		!m.inObject && strings.HasPrefix(err.InstanceLocation+"/", m.pointer+"/") {
		return true
	}
	return slices.ContainsFunc(err.Causes, m.isReportedBy)
}

// TestTheSchemaFindsTheMistakesOfAFleet makes random mistakes: a misspelt key, a value of another type, a missing required
// attribute, an invalid name as text or key, and two attributes that exclude each other. The schema and
// provider::flotilla::fleet must both find each.
func TestTheSchemaFindsTheMistakesOfAFleet(t *testing.T) {
	t.Parallel()
	mistakes := acceptancetest.Count(200, 400)
	random := rand.New(rand.NewSource(25))
	kinds, all := map[string]int{}, validInputs(t)
	for count := 0; count < mistakes; {
		value := clone(all[random.Intn(len(all))]).(map[string]any)
		var objects []tableObject
		walkTables(tableObject{fleet.RootTable(), value, ""}, func(current tableObject) { objects = append(objects, current) })
		current := objects[random.Intn(len(objects))]
		if current.table.Name == "base fleet" || current.table.Name == "entries of a base fleet" { // people do not write these
			continue
		}
		if environment, isText := current.object["environment"].(string); isText && environment != "dev" { // a fleet checks less of it
			continue
		}
		m := makeMistake(random, current)
		if m == nil {
			continue
		}
		count++
		kinds[strings.Fields(m.description)[0]]++
		if strings.HasPrefix(m.description, "mal") && strings.HasSuffix(m.attribute, "labels") {
			kinds["labels"]++
		}
		_, findings := fleet.Decode(value)
		if !slices.ContainsFunc(findings, func(f fleet.Finding) bool { return strings.Contains("."+f.Path+".", m.attribute) }) {
			t.Errorf("%s at %s: the fleet has no such finding: %s", m.description, m.pointer, findings)
		}
		var violation *jsonschema.ValidationError
		if err := fleetSchema.Validate(value); !errors.As(err, &violation) || !m.isReportedBy(violation) {
			t.Errorf("%s at %s: the schema does not report it: %#v", m.description, m.pointer, err)
		}
	}
	for kind, want := range map[string]int{"misspelt": 40, "missing": 10, "malformed": 20, "malkeyed": 20, "labels": 15, "both": 10} {
		if kinds[kind] < want*mistakes/400 {
			t.Errorf("too few mistakes of kind %s: %v", kind, kinds)
		}
	}
}

// TestTheSchemaFindsNoOtherMistakes omits random attributes or sets them to null. If the fleet is still valid, the schema accepts it.
func TestTheSchemaFindsNoOtherMistakes(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewSource(25))
	valid, all := 0, validInputs(t)
	for range acceptancetest.Count(150, 300) {
		value := clone(all[random.Intn(len(all))]).(map[string]any)
		omitted := ""
		walkTables(tableObject{fleet.RootTable(), value, ""}, func(current tableObject) {
			for _, key := range slices.Sorted(maps.Keys(current.object)) {
				isUnchecked := key == "data" && current.object["environment"] == "prod" // a fleet of dev does not check it
				if random.Intn(25) > 0 || isUnchecked {
					continue
				}
				omitted += " " + current.pointer + "/" + key
				if delete(current.object, key); random.Intn(2) == 0 {
					current.object[key] = nil
				}
			}
		})
		if _, findings := fleet.Decode(value); len(findings) > 0 {
			continue
		}
		valid++
		if err := fleetSchema.Validate(value); err != nil {
			t.Errorf("without%s: %#v", omitted, err)
		}
	}
	if valid < acceptancetest.Count(15, 30) {
		t.Errorf("only %d fleets were valid", valid)
	}
}
