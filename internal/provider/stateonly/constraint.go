package stateonly

import (
	"github.com/flotilla/terraform-provider-flotilla/internal/constraint"
	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
)

// Constraint returns the resource.
var Constraint = newResource(Object{
	Name:       "constraint",
	collection: "constraints",
	Schema:     kind("constraints", nil),
	check: func(value any) fleet.Findings {
		rule, known := fleet.DecodeConstraint(value)
		if !known {
			return nil
		}
		return constraint.CheckConstraint(rule)
	},
})
