package fleet

// ConstraintModes are the modes of a constraint: "enforce" fails the plan, "inform" is told. The first is the default.
var ConstraintModes = []string{"enforce", "inform"}

// Constraint is a rule about assignments and what is rendered, written in CEL.
type Constraint struct {
	Name       string `json:"name"`
	Expression string `json:"expression"` // of type bool; true is as it should be
	// Message says what is wrong where the rule is violated. MessageExpression does so with the variables of the rule, and
	// wins where both are given. Where neither is, or MessageExpression gives nothing that can be shown, the message is the
	// expression.
	Message           string          `json:"message,omitempty"`
	MessageExpression string          `json:"message_expression,omitempty"` // of type string
	Mode              string          `json:"mode,omitempty"`               // one of [ConstraintModes]; empty is the first
	Match             ConstraintMatch `json:"match,omitzero"`
}

// ConstraintMatch says for what a constraint holds. All that it says must be met; the zero value is met by everything.
// What it says must be about something that the rule is evaluated over: the hosts of a rule about deployment targets cannot
// be selected, for example.
type ConstraintMatch struct {
	Workspace                string    `json:"workspace,omitempty"`
	WorkloadSelector         *Selector `json:"workload_selector,omitempty"`
	DeploymentTargetSelector *Selector `json:"deployment_target_selector,omitempty"`
	ClusterTypeSelector      *Selector `json:"cluster_type_selector,omitempty"`
	ClusterSelector          *Selector `json:"cluster_selector,omitempty"` // hosts that are cluster types do not meet it
	Kinds                    []string  `json:"kinds,omitempty"`            // of objects: "Deployment", "apps/Deployment" or "apps/v1/Deployment"
}
