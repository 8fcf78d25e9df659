# The ID is the name of the cluster. The next apply takes over what is there.
terraform import flotilla_agent.edge_1 'edge-1'
