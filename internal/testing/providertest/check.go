package providertest

import (
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// checkPlan finds planned values that core refuses: they are neither configured, nor the prior values, nor computed.
func checkPlan(schema *tfprotov6.SchemaBlock, prior, config, planned tftypes.Value) []error {
	if planned.IsNull() {
		return []error{fmt.Errorf("planned for absence but config wants existence")}
	}
	was, wants, will := mapping(prior), mapping(config), mapping(planned)
	var problems []error
	for _, attribute := range schema.Attributes {
		before, ok := was[attribute.Name]
		if !ok {
			before = tftypes.NewValue(attribute.ValueType(), nil)
		}
		if err := checkPlanned(attribute, before, wants[attribute.Name], will[attribute.Name]); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", tftypes.NewAttributePath().WithAttributeName(attribute.Name), err))
		}
	}
	return problems
}

func checkPlanned(attribute *tfprotov6.SchemaAttribute, prior, config, planned tftypes.Value) error {
	switch {
	case identical(planned, config):
		return nil
	case identical(planned, prior) && !prior.IsNull() && !config.IsNull():
		return nil
	case attribute.WriteOnly:
		if !planned.IsNull() {
			return errors.New("planned value for write-only attribute is not null")
		}
		return nil
	case attribute.Computed && (!attribute.Optional || config.IsNull()):
		return nil
	case config.IsNull():
		return fmt.Errorf("planned value %s for a non-computed attribute", planned)
	}
	return fmt.Errorf("planned value %s matches neither the config value %s nor the prior value %s", planned, config, prior)
}

// checkCompletes finds values that differ from known planned ones.
func checkCompletes(at *tftypes.AttributePath, planned, actual tftypes.Value) []error {
	switch {
	case !planned.IsKnown(), planned.IsNull() && planned.Type().Is(tftypes.DynamicPseudoType):
		return nil // no promise
	case !actual.IsKnown():
		return []error{fmt.Errorf("%s: was known, but now unknown", at)}
	case planned.IsNull() && actual.IsNull():
		return nil
	case planned.IsNull():
		return []error{fmt.Errorf("%s: was null, but now %s", at, actual)}
	case actual.IsNull():
		return []error{fmt.Errorf("%s: was %s, but now null", at, planned)}
	case !sameKind(planned.Type(), actual.Type()):
		return []error{fmt.Errorf("%s: wrong final value type: was %s, but now %s", at, planned.Type(), actual.Type())}
	case isPrimitive(planned.Type()):
		if !planned.Equal(actual) {
			return []error{fmt.Errorf("%s: was %s, but now %s", at, planned, actual)}
		}
		return nil
	case isMapping(planned.Type()):
		return checkCompletesMapping(at, planned, actual)
	case planned.Type().Is(tftypes.Set{}):
		fits := func(a, b tftypes.Value) bool { return len(checkCompletes(at, a, b)) == 0 }
		if len(sequence(actual)) > len(sequence(planned)) || !correlate(planned, actual, fits) {
			return []error{fmt.Errorf("%s: was %s, but now %s", at, planned, actual)}
		}
		return nil
	}
	was, is := sequence(planned), sequence(actual)
	if len(was) != len(is) {
		return []error{fmt.Errorf("%s: had %d elements, but now %d", at, len(was), len(is))}
	}
	var problems []error
	for i := range was {
		problems = append(problems, checkCompletes(at.WithElementKeyInt(i), was[i], is[i])...)
	}
	return problems
}

func checkCompletesMapping(at *tftypes.AttributePath, planned, actual tftypes.Value) []error {
	was, is := mapping(planned), mapping(actual)
	step := at.WithElementKeyString
	if planned.Type().Is(tftypes.Object{}) {
		step = at.WithAttributeName
	}
	var problems []error
	for _, name := range names(was) {
		if element, ok := is[name]; ok {
			problems = append(problems, checkCompletes(step(name), was[name], element)...)
		} else {
			problems = append(problems, fmt.Errorf("%s: element %q has vanished", at, name))
		}
	}
	for _, name := range names(is) {
		if _, ok := was[name]; !ok {
			problems = append(problems, fmt.Errorf("%s: new element %q has appeared", at, name))
		}
	}
	return problems
}

func checkWriteOnly(schema *tfprotov6.SchemaBlock, value tftypes.Value) []error {
	var problems []error
	attributes := mapping(value)
	for _, attribute := range schema.Attributes {
		if returned, ok := attributes[attribute.Name]; ok && attribute.WriteOnly && !returned.IsNull() {
			problems = append(problems, fmt.Errorf("write-only attribute %q was returned", attribute.Name))
		}
	}
	return problems
}
