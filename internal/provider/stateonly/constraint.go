package stateonly

import (
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"github.com/flotilla/terraform-provider-flotilla/internal/constraint"
	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
)

// Constraint returns the resource.
var Constraint = newResource(Object{
	Name:       "constraint",
	collection: "constraints",
	Schema: schema.Schema{
		Description: "constraint",
		MarkdownDescription: "A rule about assignments, about what they are made of, and about what is rendered for them, in " +
			"[CEL](https://cel.dev), as a Kubernetes ValidatingAdmissionPolicy has it. A fleet takes it by its key `constraints`. The " +
			"plan of a `flotilla_assignment` looks at everything that the fleet wants: a violation of an enforced rule is an error before " +
			"anything is written, one of a rule that informs is a line in `changes`. The data source `flotilla_scheduling` has the " +
			"results of all rules, those that hold included.",
		Attributes: map[string]schema.Attribute{
			"name":        schemas.NameAttribute("Name of the constraint, a DNS subdomain."),
			"environment": schemas.EnvironmentAttribute(true),
			"expression": schema.StringAttribute{
				Required: true,
				MarkdownDescription: "CEL that is true where the rule is kept. The variables that it uses say what it is evaluated over: " +
					"`object`, each rendered document; `assignment` or `config`, each assignment; `host`, each host; `target`, each deployment " +
					"target; `workspace`, each workspace; `environment` alone, the fleet. It is compiled and type-checked at plan.",
			},
			"message": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "The message where the rule is violated: what is wrong and what to do. Unset: the expression.",
			},
			"message_expression": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "CEL that makes the message, with the variables of `expression`. It wins over `message`, which is said where it " +
					"gives nothing. Plans, states and reports have what it says: let it say no secret.",
			},
			"mode": schemas.DefaultAttribute(fleet.Enforce, "`enforce`: a violation fails the plan, and so does a rule that cannot be evaluated. "+
				"`inform`: a violation is only reported."),
			"match": schema.DynamicAttribute{
				Optional: true,
				MarkdownDescription: "The scope of the rule: `{workspace, workload_selector, deployment_target_selector, cluster_type_selector, " +
					"cluster_selector, kinds}`. All that it says must hold; unset, the rule looks at everything. `kinds` are of rendered documents, " +
					"such as `\"Deployment\"` or `\"apps/Deployment\"`." + schemas.SelectorDescription,
			},
		},
	},
	check: func(value any) fleet.Findings {
		rule, known := fleet.DecodeConstraint(value)
		if !known {
			return nil
		}
		return constraint.CheckConstraint(rule)
	},
})
