# The import ID is "<url>#<branch>:<path>:<name>"; the path of the repository's root is empty.
terraform import flotilla_assignment.dev 'https://git.example.com/platform/gitops.git#dev:clusters:dev'

# Terraform 1.12 and later also take its identity, in a configuration:
# import {
#   to = flotilla_assignment.dev
#   identity = {
#     url    = "https://git.example.com/platform/gitops.git"
#     branch = "dev"
#     path   = "clusters"
#     name   = "dev"
#   }
# }
