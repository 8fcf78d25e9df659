package fleet

import (
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"
)

// Modes of a constraint.
const (
	Enforce = "enforce"
	Inform  = "inform"
)

// Constraint is a rule in CEL. It affects neither scheduling nor content, so it is not part of the model.
type Constraint struct {
	Name       string `json:"name"`
	Expression string `json:"expression"` // of type bool
	// MessageExpression takes precedence; the expression is the fallback.
	Message           string          `json:"message,omitempty"`
	MessageExpression string          `json:"message_expression,omitempty"`
	Mode              string          `json:"mode,omitempty"` // empty: enforce
	Match             ConstraintMatch `json:"match,omitzero"`
}

// ConstraintMatch limits the subjects of a constraint. Fields that do not apply are errors.
type ConstraintMatch struct {
	Workspace                string    `json:"workspace,omitempty"`
	WorkloadSelector         *Selector `json:"workload_selector,omitempty"`
	DeploymentTargetSelector *Selector `json:"deployment_target_selector,omitempty"`
	ClusterTypeSelector      *Selector `json:"cluster_type_selector,omitempty"`
	ClusterSelector          *Selector `json:"cluster_selector,omitempty"`
	Kinds                    []string  `json:"kinds,omitempty"`
}

const maxConstraintMessage = 1024

var constraintKind = defineKind(Table{
	Name: "constraint",
	Meaning: "A rule about assignments, about what they are made of, and about what is rendered for them, in " +
		"[CEL](https://cel.dev), as a Kubernetes ValidatingAdmissionPolicy has it. A fleet takes it by its key `constraints`. The " +
		"plan of a `flotilla_assignment` looks at everything that the fleet wants: a violation of an enforced rule is an error before " +
		"anything is written, one of a rule that informs is a line in `changes`. The data source `flotilla_scheduling` has the " +
		"results of all rules, those that hold included.",
}, func(c *Constraint) []row {
	return []row{
		namedAttribute(&c.Name, subdomainForm, "Name of the constraint, a DNS subdomain."),
		unstoredAttribute(environmentAttribute),
		textAttribute(&c.Expression, Attribute{
			Required: true,
			Meaning: "CEL that is true where the rule is kept. The variables that it uses say what it is evaluated over: " +
				"`object`, each rendered document; `assignment` or `config`, each assignment; `host`, each host; `target`, each deployment " +
				"target; `workspace`, each workspace; `environment` alone, the fleet. It is compiled and type-checked at plan.",
		}),
		textAttribute(&c.Message, Attribute{
			Meaning: "The message where the rule is violated: what is wrong and what to do. Unset: the expression.",
		}),
		textAttribute(&c.MessageExpression, Attribute{
			Meaning: "CEL that makes the message, with the variables of `expression`. It wins over `message`, which is shown where it " +
				"gives nothing. Plans, states and reports contain the message: it must not contain a secret.",
		}),
		textAttribute(&c.Mode, Attribute{
			Default: Enforce, Allowed: []string{Enforce, Inform},
			Meaning: "`enforce`: a violation fails the plan, and so does a rule that cannot be evaluated. " +
				"`inform`: a violation is only reported.",
		}),
		partAttribute(&c.Match, matchKind, Attribute{
			Meaning: "The scope of the rule. All that it says must hold; unset, the rule looks at everything.",
		}),
	}
}).checkedBy(func(o *ObjectReader, c *Constraint) {
	if length := utf8.RuneCountInString(c.Message); length > maxConstraintMessage {
		o.Report("message", "has %d characters, and %d are the most: what is long belongs into the docs that it points to",
			length, maxConstraintMessage)
	}
})

var matchKind = defineKind(Table{
	Name:    "match of a constraint",
	Meaning: "The scope of a rule: all that meets each attribute.",
}, func(m *ConstraintMatch) []row {
	return []row{
		textAttribute(&m.Workspace, Attribute{Meaning: "Only what belongs to this workspace."}),
		selectorAttribute(&m.WorkloadSelector, workloadSelector),
		selectorAttribute(&m.DeploymentTargetSelector, targetSelector),
		selectorAttribute(&m.ClusterTypeSelector, clusterTypeSelector),
		selectorAttribute(&m.ClusterSelector, clusterSelector),
		textsAttribute(&m.Kinds, Attribute{
			Form: kubernetesKindForm, Meaning: "Kinds of rendered documents, such as `\"Deployment\"` or `\"apps/Deployment\"`.",
		}),
	}
})

// decodeConstraint makes only the constraint pending if a part is unknown: the model has no constraints.
func decodeConstraint(d *decoder, o *ObjectReader) belonging {
	before := len(d.Findings) + d.more
	constraint := constraintKind.decode(o)
	belongs := d.belongs(o)
	o.Finish()
	isPending := o.unknown
	o.unknown = false
	if belongs != inEnvironment || constraint.Name == unknownText {
		return belongs
	}
	d.register("constraints", constraint.Name, o.path)
	switch {
	case isPending:
		d.PendingConstraints = append(d.PendingConstraints, constraint.Name)
	case len(d.Findings)+d.more == before:
		d.Constraints = append(d.Constraints, constraint)
	}
	d.refer(o.path.Attribute("match").Attribute("workspace"), "workspaces", constraint.Match.Workspace)
	return belongs
}

func adoptConstraints(d *decoder, o *ObjectReader) {
	const name = "constraints"
	if !o.Has(name) {
		return
	}
	entries, isUnknown := readEntries(o, name)
	if isUnknown {
		d.ConstraintsKnown = false
	}
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		d.adoptNames(name, []string{key})
		if entries[key] == (Unknown{}) {
			d.PendingConstraints = append(d.PendingConstraints, key)
			continue
		}
		text, _ := entries[key].(string)
		constraint, err := parseConstraint(key, text)
		if err != nil {
			o.reader.Report(o.path.Attribute(name).Key(key), "must be the JSON of a constraint, as provider::flotilla::fleet returned it")
		}
		d.Constraints = append(d.Constraints, constraint)
	}
}

// DecodeConstraint decodes one constraint without an unknown match. known is false if the expression is unknown or
// [CheckObject] finds a mistake.
func DecodeConstraint(value any) (constraint Constraint, known bool) {
	fields, _ := value.(map[string]any)
	known = len(CheckObject("constraints", value)) == 0 && IsKnown(fields["expression"])
	o, _ := (&Reader{}).object(&constraintKind.Table, nil, value)
	if o == nil || !known {
		return Constraint{}, false
	}
	constraint = constraintKind.decode(o)
	for _, text := range []*string{&constraint.Name, &constraint.Message, &constraint.MessageExpression, &constraint.Mode} {
		*text = knownText(*text)
	}
	if !IsKnown(fields["match"]) {
		constraint.Match = ConstraintMatch{}
	}
	return constraint, true
}

func parseConstraint(name, entry string) (Constraint, error) {
	var constraint Constraint
	if err := parseStrictly(entry, &constraint); err != nil {
		return Constraint{}, err
	}
	if constraint.Name != name {
		return Constraint{}, fmt.Errorf("it is that of %q", constraint.Name)
	}
	return constraint, nil
}

// ParseConstraints decodes the known rules, sorted by name.
func (v Value) ParseConstraints() ([]Constraint, error) {
	constraints := make([]Constraint, 0, len(v.Constraints))
	for _, name := range slices.Sorted(maps.Keys(v.Constraints)) {
		constraint, err := parseConstraint(name, v.Constraints[name])
		if err != nil {
			return nil, fmt.Errorf("constraint %q is not what provider::flotilla::fleet returned: %w", name, err)
		}
		constraints = append(constraints, constraint)
	}
	return constraints, nil
}
