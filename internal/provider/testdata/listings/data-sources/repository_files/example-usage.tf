# Applied by TestExamplesApply: it needs the repositories of a control plane.
