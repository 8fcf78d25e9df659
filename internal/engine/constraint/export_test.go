package constraint

import (
	"fmt"
	"maps"
	"slices"
)

// Functions returns the names of the functions and macros of rules, sorted and without operators.
func Functions() []string {
	l, err := newLanguage()
	if err != nil {
		panic(err)
	}
	names := map[string]bool{}
	for name, function := range l.Env.Functions() {
		for _, overload := range function.OverloadDecls() {
			if !overload.HasLateBinding() && isName(name) {
				names[name] = true
			}
		}
	}
	for _, macro := range l.Env.Macros() {
		names[macro.Function()] = true
	}
	return slices.Sorted(maps.Keys(names))
}

func isName(name string) bool {
	for _, c := range name {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' {
			return false
		}
	}
	return true
}

// WithFleetCost returns a copy of the program with another limit for the cost of a rule over the fleet.
func (p *Program) WithFleetCost(limit uint64) *Program {
	return &Program{language: p.language, rules: p.rules, maxFleetCost: limit}
}

// VariableRows returns the rows of the guide's table of variables.
func VariableRows() []string {
	var rows []string
	for _, variable := range newVocabulary().variables {
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s |", variable.Name, variable.Type, variable.Meaning))
	}
	return rows
}

// FieldRows returns the rows of the guide's table of fields.
func FieldRows() []string {
	v := newVocabulary()
	var rows []string
	for _, owner := range []struct {
		path  string
		class *class
	}{
		{"workspace", v.workspace}, {"workspace.limit_range[…]", v.limit}, {"host", v.host}, {"host.taints[…]", v.taint},
		{"target", v.target}, {"target.manifests", v.manifests}, {"assignment", v.assignment}, {"secrets[…]", v.secret},
		{"pods[…]", v.pod},
	} {
		for _, field := range owner.class.fields {
			rows = append(rows, fmt.Sprintf("| `%s.%s` | %s | %s |", owner.path, field.name, field.kind, field.doc))
		}
	}
	return rows
}
