# Applied by TestExamplesApply: it needs a repository of charts.
