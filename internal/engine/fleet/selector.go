package fleet

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Selector selects objects by labels. All requirements must hold; without any, it matches everything. nil selects
// nothing.
type Selector struct {
	MatchLabels      map[string]string `json:"match_labels,omitempty"`
	MatchExpressions []Expression      `json:"match_expressions,omitempty"`
	Expression       string            `json:"expression,omitempty"` // "region in (us-west, jp), !restricted"
}

// Expression is a requirement with operator In, NotIn, Exists or DoesNotExist.
type Expression struct {
	Key      string   `json:"key"`
	Operator string   `json:"operator"`
	Values   []string `json:"values,omitempty"`
}

var selectorOperators = map[string]selection.Operator{
	"In":           selection.In,
	"NotIn":        selection.NotIn,
	"Exists":       selection.Exists,
	"DoesNotExist": selection.DoesNotExist,
}

var selectorTable = Table{
	Name: "selector",
	Meaning: "Selects objects by their labels. All that it says must hold, and `{}` matches everything. A selector that is not set " +
		"sets no condition.",
	Attributes: []Attribute{
		{Name: "match_labels", Type: TextMapType, Keys: labelKeyForm, Form: labelValueForm, Meaning: "Labels with exactly these values."},
		{Name: "match_expressions", Type: ObjectsType, Of: &expressionTable, Meaning: "Requirements, as in Kubernetes."},
		{Name: "expression", Meaning: "Requirements in Kubernetes' string form: `region in (us-west, jp), !restricted`."},
	},
}

var expressionTable = Table{
	Name:    "requirement of a selector",
	Meaning: "One requirement on one label.",
	Attributes: []Attribute{
		{Name: "key", Required: true, Form: labelKeyForm, Meaning: "Key of the label."},
		{Name: "operator", Required: true, Allowed: slices.Sorted(maps.Keys(selectorOperators)), Meaning: "How the label is compared."},
		{Name: "values", Type: TextsType, Form: labelValueForm, EmptyElements: true, Meaning: "Values of the label, for `In` and `NotIn`."},
	},
}

var (
	workloadSelector = Attribute{Meaning: "Only deployment targets of workloads with matching labels."}
	targetSelector   = Attribute{
		Meaning: "Only deployment targets with matching labels: their own and their workload's, their own winning.",
	}
	clusterTypeSelector = Attribute{Meaning: "Cluster types with matching labels."}
	clusterSelector     = Attribute{Meaning: "Clusters with matching labels: their own and their type's, their own winning."}
)

func selectorAttribute(field **Selector, a Attribute) row {
	a.Type, a.Of = ObjectType, &selectorTable
	return storedAttribute(field, a, ReadSelector)
}

// Requirements is a compiled selector.
type Requirements struct {
	requirements labels.Requirements
}

// Compile checks the selector. Paths are relative to it.
func (s *Selector) Compile() (Requirements, Findings) {
	var compiled labels.Requirements
	var findings Findings
	report := func(path *Path, problem string) bool {
		if problem != "" {
			findings.Report(path, "%s", problem)
		}
		return problem != ""
	}
	add := func(path *Path, key string, operator selection.Operator, values []string) {
		requirement, err := labels.NewRequirement(key, operator, values)
		if err != nil {
			findings.Report(path, "%s", requirementMessage(err))
			return
		}
		compiled = append(compiled, *requirement)
	}

	var root *Path
	for _, key := range slices.Sorted(maps.Keys(s.MatchLabels)) {
		path, value := root.Attribute("match_labels").Key(key), s.MatchLabels[key]
		if !report(path, cmp.Or(CheckLabelKey(key), CheckLabelValue(value))) {
			add(path, key, selection.Equals, []string{value})
		}
	}
	for i, expression := range s.MatchExpressions {
		path := root.Attribute("match_expressions").Index(i)
		operator, ok := selectorOperators[expression.Operator]
		if !ok {
			findings.Report(path.Attribute("operator"), "operator %q is not one of In, NotIn, Exists, DoesNotExist", expression.Operator)
			continue
		}
		isWrong := report(path.Attribute("key"), CheckLabelKey(expression.Key))
		for _, value := range expression.Values {
			isWrong = report(path.Attribute("values"), CheckLabelValue(value)) || isWrong
		}
		if !isWrong {
			add(path, expression.Key, operator, expression.Values)
		}
	}
	parsed, err := parseExpression(s.Expression)
	if err != nil {
		findings.Report(root.Attribute("expression"), "%s", err)
	}
	return Requirements{append(compiled, parsed...)}, findings
}

const selectorSpace = " \t\r\n"

// parseExpression adds positions, which Kubernetes' parser does not report.
func parseExpression(expression string) (labels.Requirements, error) {
	if strings.Trim(expression, selectorSpace) == "" {
		return nil, nil
	}
	if before, _, found := strings.Cut(expression, "\x00"); found {
		return nil, fmt.Errorf("at character %d: a NUL character", utf8.RuneCountInString(before)+1)
	}
	var all labels.Requirements
	start, depth := 0, 0
	for i, char := range expression + "," {
		switch char {
		case '(':
			depth++
		case ')':
			depth--
		}
		if char != ',' || depth > 0 && i < len(expression) {
			continue
		}
		part := expression[start:i]
		position := utf8.RuneCountInString(expression[:start]+part) - utf8.RuneCountInString(strings.TrimLeft(part, selectorSpace)) + 1
		if strings.Trim(part, selectorSpace) == "" {
			return nil, fmt.Errorf("at character %d: a requirement is missing", position)
		}
		requirements, err := labels.ParseToRequirements(part)
		if err != nil {
			return nil, fmt.Errorf("at character %d, %q: %s", position, strings.Trim(part, selectorSpace), requirementMessage(err))
		}
		all = append(all, requirements...)
		start = i + 1
	}
	return all, nil
}

func requirementMessage(err error) string {
	if fieldError, is := errors.AsType[*field.Error](err); is {
		return fmt.Sprintf("%q: %s", fieldError.BadValue, fieldError.Detail)
	}
	return strings.TrimPrefix(err.Error(), "unable to parse requirement: ")
}

// Matches reports whether labels meet all requirements.
func (r Requirements) Matches(set Labels) bool { return r.CountFailed(set, 1) == 0 }

// Failed returns the failing requirements in Kubernetes' string form.
func (r Requirements) Failed(set Labels) []string {
	var failed []string
	for i := range r.requirements {
		if !r.requirements[i].Matches(labels.Set(set)) {
			failed = append(failed, r.requirements[i].String())
		}
	}
	return failed
}

// CountFailed stops at limit.
func (r Requirements) CountFailed(set Labels, limit int) int {
	failed := 0
	for i := range r.requirements {
		if failed == limit {
			break
		}
		if !r.requirements[i].Matches(labels.Set(set)) {
			failed++
		}
	}
	return failed
}

// Wanted yields required keys with their possible values, for an index.
func (r Requirements) Wanted(yield func(key string, values []string) bool) {
	for i := range r.requirements {
		requirement := &r.requirements[i]
		if isIn(requirement.Operator()) && !yield(requirement.Key(), requirement.ValuesUnsorted()) {
			return
		}
	}
}

func isIn(operator selection.Operator) bool {
	return operator == selection.Equals || operator == selection.DoubleEquals || operator == selection.In
}

// Contradiction returns two requirements that exclude each other, or "".
func (r Requirements) Contradiction() string {
	for i := range r.requirements {
		for j := range i {
			a, b := &r.requirements[j], &r.requirements[i]
			if a.Key() == b.Key() && (contradict(a, b) || contradict(b, a)) {
				return a.String() + "," + b.String()
			}
		}
	}
	return ""
}

func contradict(a, b *labels.Requirement) bool {
	switch {
	case a.Operator() == selection.DoesNotExist:
		return isIn(b.Operator()) || b.Operator() == selection.Exists
	case isIn(a.Operator()):
		return !slices.ContainsFunc(a.ValuesUnsorted(), func(value string) bool {
			return b.Matches(labels.Set{a.Key(): value})
		})
	}
	return false
}

func (r Requirements) String() string {
	parts := make([]string, len(r.requirements))
	for i := range r.requirements {
		parts[i] = r.requirements[i].String()
	}
	return strings.Join(parts, ",")
}

type selectorAttributes struct {
	matchLabels, matchExpressions string
	expression                    string // may be empty
}

var (
	ourSelector        = selectorAttributes{"match_labels", "match_expressions", "expression"}
	kubernetesSelector = selectorAttributes{"matchLabels", "matchExpressions", ""}
)

// ReadSelector returns nil if the selector is absent, wrong or unknown.
func ReadSelector(o *ObjectReader, name string) *Selector {
	return readSelectorNamed(o, name, ourSelector)
}

func readSelectorNamed(o *ObjectReader, name string, names selectorAttributes) *Selector {
	before, s := len(o.reader.Findings), o.Object(name)
	if s == nil {
		return nil
	}
	selector := &Selector{MatchLabels: readWantedLabels(s, names.matchLabels)}
	for i, e := range s.List(names.matchExpressions) {
		expression := Expression{Key: readRequired(e, "key"), Operator: readRequired(e, "operator"), Values: readTextList(e, "values", true)}
		slices.Sort(expression.Values)
		expression.Values = slices.Compact(expression.Values)
		e.Finish()
		if expression.Key == environmentLabel && (expression.Operator == "In" || expression.Operator == "NotIn") {
			for _, value := range expression.Values {
				o.reader.checkEnvironment(s.At(names.matchExpressions).Index(i), value)
			}
		}
		selector.MatchExpressions = append(selector.MatchExpressions, expression)
	}
	checkEnvironmentLabel(s, names.matchLabels, selector.MatchLabels)
	if names.expression != "" {
		selector.Expression = readText(s, names.expression)
	}
	s.Finish()
	if !s.unknown {
		checkSelector(s, selector, names)
	}
	if s.unknown || len(o.reader.Findings) > before {
		return nil
	}
	return selector
}

// readWantedLabels refuses null: without the label, more would match.
func readWantedLabels(o *ObjectReader, attribute string) map[string]string {
	return readMap(o, attribute, func(element any) (text, problem string) {
		if element == nil {
			return "", "must be a string, not null"
		}
		return readScalar(o, element)
	})
}

func checkSelector(o *ObjectReader, selector *Selector, names selectorAttributes) {
	_, findings := selector.Compile()
	rename := strings.NewReplacer(ourSelector.matchLabels, names.matchLabels, ourSelector.matchExpressions, names.matchExpressions)
	said := o.reader.Findings
	for _, finding := range findings {
		attribute, rest, inside := strings.Cut(finding.Path, "[")
		attribute = rename.Replace(attribute)
		if inside {
			attribute += "[" + rest
		}
		finding.Path = o.path.String() + "." + attribute
		if !slices.ContainsFunc(said, func(f Finding) bool { return f.Path == finding.Path }) {
			o.reader.Findings = append(o.reader.Findings, finding)
		}
	}
}
