# Applied by TestQueriesListAssignmentsAndClaims: lists need Terraform 1.14.
