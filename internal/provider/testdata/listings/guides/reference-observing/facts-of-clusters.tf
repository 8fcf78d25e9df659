# Applied by TestPoliciesSelectByFactsOfClusters: it needs clusters with nodes.
