# The ID is the name of the cluster. The next apply takes over what is there.
terraform import flotilla_agent.edge_1 'edge-1'

# Terraform 1.12 and later also take its identity, in a configuration:
# import {
#   to = flotilla_agent.edge_1
#   identity = {
#     cluster = "edge-1"
#   }
# }
# Where they are not the default, the identity has hub, name and namespace, too.
