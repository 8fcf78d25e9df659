# Applied by TestActionsAfterAnUpdate: actions need Terraform 1.14.
