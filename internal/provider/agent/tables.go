package agent

import (
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

// SecretTable describes the attribute credentials.
var SecretTable = &fleet.Table{
	Name:    "Secret of an agent",
	Meaning: "The attribute `credentials` of `flotilla_agent`: an existing Secret that replaces `credentials_wo`.",
	Attributes: []fleet.Attribute{
		{Name: "secret", Meaning: "Name of an existing Secret in the agent's namespace, in the form that the agent reads."},
	},
}

// secretParts complete other attributes.
var secretParts = []fleet.Attribute{
	{Name: "feedback", Type: fleet.ObjectType, Of: agent.FeedbackTable, Meaning: "The `token` or `github_app` of `feedback`."},
	{
		Name:    "registration",
		Type:    fleet.ObjectType,
		Of:      agent.RegistrationTable,
		Meaning: "The `token`, or `client_certificate` and `client_key`, of `registration`.",
	},
}

// SecretsTable describes the attribute credentials_wo.
var SecretsTable = &fleet.Table{
	Name: "secrets of an agent",
	Meaning: "The attribute `credentials_wo` of `flotilla_agent`: credentials with which the agent reads the repository, and " +
		"others. The argument is write-only: no plan and no state contains it.",
	Attributes: slices.Concat(agent.CredentialsTable.Attributes, secretParts),
}
