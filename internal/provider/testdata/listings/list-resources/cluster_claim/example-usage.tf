# Applied by TestQueriesListWhatABranchHas: lists need Terraform 1.14.
