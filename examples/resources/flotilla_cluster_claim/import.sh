# The import ID is "<url>#<branch>:<path>:<name>"; the path of the repository's root is empty.
terraform import flotilla_cluster_claim.payments 'https://git.example.com/platform/gitops.git#prod::payments'

# Terraform 1.12 and later also take its identity, in a configuration:
# import {
#   to = flotilla_cluster_claim.payments
#   identity = {
#     url    = "https://git.example.com/platform/gitops.git"
#     branch = "prod"
#     name   = "payments"
#   }
# }
