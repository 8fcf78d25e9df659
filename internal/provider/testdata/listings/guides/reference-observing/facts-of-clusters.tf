# Applied by TestPoliciesSelectByWhatClustersSay: it needs clusters with nodes.
