# Applied by TestQueriesListAgents: lists need Terraform 1.14.
