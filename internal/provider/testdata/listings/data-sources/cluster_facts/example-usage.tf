# Applied by TestExamplesApply: it needs clusters with nodes.
